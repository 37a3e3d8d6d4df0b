// Asking other programs: runs one to its end, and reads its output. Threads: one.
#pragma once

#include <string>
#include <vector>

namespace heddle::os {

// Returns the program's exit status, or -1 when it could not be run or ended otherwise. output: what it wrote to stdout
// and stderr, up to 64 KiB. It reads nothing, and is ended after 10 s.
int run_command(const std::vector<std::string>& words, std::string* output);

}  // namespace heddle::os

// The text of oshrun --help: the contract of the command line. Threads: one.
#pragma once

namespace heddle::launcher {

void print_help();

}  // namespace heddle::launcher

// heddle-info --report: the facts that a report of a bug needs, in the form in which they are pasted. Threads: one.
#pragma once

#include <string>

namespace heddle::tools {

// The rest of the first line of a file that begins so, without blanks and quotes around it; "unknown" when there is none.
std::string value_in(const char* path, const std::string& key);

// The commit of the sources, with "-dirty" where they differ from it; empty when they are in no repository. Written by
// commit.cmake.
extern const char* const kCommit;

// Prints them on stdout. No name of a user or of a host is among them, and no variable that is none of Heddle's or UCX's.
// Asks each launcher in PATH for its version.
void print_bug_report();

}  // namespace heddle::tools

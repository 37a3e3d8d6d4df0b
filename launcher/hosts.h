// Jobs on several hosts: which hosts, and the launcher of the machine that oshrun hands over to. One thread; starts
// nothing itself: the launcher takes oshrun's place.
#pragma once

#include <string>
#include <vector>

#include "options.h"

namespace heddle::launcher {

// Reads "a:2,b" (a host without a number has one PE). False after a line on stderr.
bool read_hosts(const char* text, std::vector<Host>* hosts);

// The same, a host in each line, also as "a slots=2"; "#" begins a comment.
bool read_host_file(const char* path, std::vector<Host>* hosts);

// Becomes the first of prterun, mpirun and srun that is in PATH, which is told what options say. Returns the status for
// exit when it cannot, after a line on stderr.
int hand_over(const Options& options);

}  // namespace heddle::launcher

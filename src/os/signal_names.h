// Names of signals, as kill -l has them: TERM. The C library's are newer than the oldest one that Heddle runs with.
#pragma once

namespace heddle::os {

// "?" for a signal that is not in the table: one that neither ends a job nor can be sent to ask a PE.
const char* name_of_signal(int signal);

// In any case of letters, with SIG in front of it or without; 0 for a name that is not in the table.
int number_of_signal(const char* name);

}  // namespace heddle::os

#include "report.h"

#include <sys/wait.h>

#include <cstring>

namespace heddle::launcher {

std::string how_it_ended(int wait_status) {
    if (!WIFSIGNALED(wait_status))
        return "exited with status " + std::to_string(WEXITSTATUS(wait_status));
    const int signal = WTERMSIG(wait_status);
    return "was killed by signal " + std::to_string(signal) + " (" + strsignal(signal) +
           (WCOREDUMP(wait_status) ? ", core dumped)" : ")");
}

std::string ending_others(int others) {
    if (others == 0)
        return {};
    if (others == 1)
        return "; ending the other PE";
    return "; ending the other " + std::to_string(others) + " PEs";
}

}  // namespace heddle::launcher

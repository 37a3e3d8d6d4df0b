#include "os/signal_names.h"

#include <strings.h>
#include <csignal>

namespace heddle::os {

namespace {

constexpr struct {
    const char* name;
    int number;
} kSignals[] = {{"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT},  {"USR1", SIGUSR1},
                {"USR2", SIGUSR2}, {"ALRM", SIGALRM}, {"TERM", SIGTERM},  {"URG", SIGURG},
                {"IO", SIGIO},     {"PWR", SIGPWR},   {"WINCH", SIGWINCH}};

}  // namespace

const char* name_of_signal(int signal) {
    for (const auto& one : kSignals)
        if (one.number == signal)
            return one.name;
    return "?";
}

int number_of_signal(const char* name) {
    if (strncasecmp(name, "SIG", 3) == 0)
        name += 3;
    for (const auto& one : kSignals)
        if (strcasecmp(one.name, name) == 0)
            return one.number;
    return 0;
}

}  // namespace heddle::os

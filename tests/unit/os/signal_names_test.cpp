// Names of signals.
#include "os/signal_names.h"

#include <gtest/gtest.h>
#include <csignal>
#include <string>

namespace heddle::os {
namespace {

TEST(SignalNames, LeadThereAndBack) {
    const int signals[] = {SIGHUP,  SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM,
                           SIGTERM, SIGURG, SIGIO,   SIGPWR,  SIGWINCH};
    for (const int signal : signals) {
        EXPECT_EQ(number_of_signal(name_of_signal(signal)), signal) << signal;
        EXPECT_STREQ(name_of_signal(signal), signal == SIGIO ? "IO" : sigabbrev_np(signal));
    }
}

TEST(SignalNames, AreReadAsPeopleWriteThem) {
    for (const char* name : {"USR2", "usr2", "SIGUSR2", "sigUsr2"}) EXPECT_EQ(number_of_signal(name), SIGUSR2);
    for (const char* name : {"", "SIG", "KILL", "USR", "USR22", "12"}) EXPECT_EQ(number_of_signal(name), 0);
    EXPECT_STREQ(name_of_signal(0), "?");
    EXPECT_STREQ(name_of_signal(SIGKILL), "?");
}

}  // namespace
}  // namespace heddle::os

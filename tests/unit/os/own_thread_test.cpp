#include "os/own_thread.h"

#include <gtest/gtest.h>

namespace {

void* mask_of_caller(void* mask) {
    pthread_sigmask(SIG_SETMASK, nullptr, static_cast<sigset_t*>(mask));
    return nullptr;
}

TEST(OwnThreadTest, TakesItsOwnFaultsAndNoSignalOfTheProgram) {
    sigset_t before, after, inside;
    mask_of_caller(&before);
    pthread_t thread;
    ASSERT_EQ(heddle::os::start_own_thread(&thread, mask_of_caller, &inside), 0);
    pthread_join(thread, nullptr);
    mask_of_caller(&after);
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD, SIGPROF, SIGABRT})
        EXPECT_EQ(sigismember(&inside, signal), 1) << signal;
    for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP})
        EXPECT_EQ(sigismember(&inside, signal), 0) << signal;
    for (int signal = 1; signal < 32; ++signal)
        EXPECT_EQ(sigismember(&after, signal), sigismember(&before, signal)) << "the caller's mask, signal " << signal;
}

}  // namespace

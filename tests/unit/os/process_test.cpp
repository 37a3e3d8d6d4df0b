// Dying with the launcher.
#include "os/process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

namespace heddle::os {
namespace {

TEST(DieWith, KillsWhenTheLastWriteEndCloses) {
    int lifeline[2], ready[2];
    ASSERT_EQ(pipe(lifeline), 0);
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(lifeline[1]);
        const char good = die_with(lifeline[0]) ? 'y' : 'n';
        if (write(ready[1], &good, 1) != 1)
            _exit(1);
        sleep(30);
        _exit(0);
    }
    char good = 0;
    ASSERT_EQ(read(ready[0], &good, 1), 1);
    EXPECT_EQ(good, 'y');
    EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0);  // nothing has closed yet
    close(lifeline[1]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

TEST(DieWith, IsFalseWhenTheLauncherIsGoneAlready) {
    int lifeline[2];
    ASSERT_EQ(pipe(lifeline), 0);
    close(lifeline[1]);
    const pid_t child = fork();
    if (child == 0)
        _exit(die_with(lifeline[0]) ? 0 : 7);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
    EXPECT_FALSE(die_with(-1));
}

}  // namespace
}  // namespace heddle::os

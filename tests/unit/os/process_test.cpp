// Dying with the launcher; standard descriptors.
#include "os/process.h"

#include "os/clock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <string>

namespace heddle::os {
namespace {

std::string path_of(int fd) {
    return "/proc/self/fd/" + std::to_string(fd);
}

// How a child ends that holds on to the read end of a pipe, and then goes on, when the pipe's last write end closes.
void hold_until_closed(Lifeline (*hold)(int fd), void (*go_on)(), int* status) {
    int lifeline[2], ready[2];
    ASSERT_EQ(pipe(lifeline), 0);
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(lifeline[1]);
        const char good = hold(lifeline[0]) == Lifeline::kHeld ? 'y' : 'n';
        if (write(ready[1], &good, 1) != 1)
            _exit(3);
        go_on();
        sleep(60);
        _exit(0);
    }
    char good = 0;
    ASSERT_EQ(read(ready[0], &good, 1), 1);
    EXPECT_EQ(good, 'y');
    EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0);  // nothing has closed yet
    close(lifeline[1]);
    ASSERT_EQ(waitpid(child, status, 0), child);
}

TEST(DieWith, KillsWhenTheLastWriteEndCloses) {
    int status = 0;
    hold_until_closed([](int fd) { return die_with(path_of(fd).c_str(), 0); }, [] {}, &status);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

// What die_with says in a child, which has asked to die with its parent (signal) or not (0).
Lifeline in_child(const std::string& path, int launcher, int signal) {
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, signal);
        _exit(static_cast<int>(die_with(path.c_str(), launcher)));
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    return static_cast<Lifeline>(WEXITSTATUS(status));
}

TEST(DieWith, SeesThatTheLauncherIsGone) {
    int lifeline[2];
    ASSERT_EQ(pipe(lifeline), 0);
    close(lifeline[1]);
    EXPECT_EQ(in_child(path_of(lifeline[0]), 0, 0), Lifeline::kGone);
}

TEST(DieWith, IsContentWithAParentThatTakesItAlong) {
    const std::string nothing = "/proc/self/fd/987654";
    EXPECT_EQ(in_child(nothing, getpid(), SIGKILL), Lifeline::kHeld);
    EXPECT_EQ(in_child(nothing, getpid(), 0), Lifeline::kNone);
    EXPECT_EQ(in_child(nothing, getpid(), SIGTERM), Lifeline::kNone);  // which may be ignored
    EXPECT_EQ(in_child(nothing, getppid(), SIGKILL), Lifeline::kNone);
    EXPECT_EQ(die_with(nothing.c_str(), 0), Lifeline::kNone);
    EXPECT_EQ(errno, ENOENT);
}

TEST(HasEnded, OfNumbersOfThisNamespaceAlone) {
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    siginfo_t info;
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
    const uint32_t here = process_namespace();
    ASSERT_NE(here, 0u);
    for (int reaped = 0; reaped < 2; ++reaped) {
        EXPECT_TRUE(has_ended(child, here));
        EXPECT_FALSE(has_ended(child, here + 1));
        EXPECT_FALSE(has_ended(child, 0));
        waitpid(child, nullptr, WNOHANG);
    }
    EXPECT_FALSE(has_ended(getpid(), here));
}

TEST(Age, IsThatOfTheProcess) {
    const uint64_t before_ns = now_ns(), age_ns = heddle::os::age_ns();
    EXPECT_GT(age_ns, 0U);
    sleep_ns(50 * kMillisecondNs);
    const uint64_t older_ns = heddle::os::age_ns();
    EXPECT_GE(older_ns, age_ns + 49 * kMillisecondNs);  // both by clocks that may differ by parts of a millisecond
    const pid_t child = fork();
    if (child == 0)  // a process of its own, which is younger
        _exit(heddle::os::age_ns() <= now_ns() - before_ns + 10 * kMillisecondNs ? 0 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST(DieWithByThread, EndsWhenTheLastWriteEndCloses) {
    int status = 0;
    hold_until_closed([](int fd) { return die_with_by_thread(fd); },
                      [] {
                          for (int fd = 3; fd < 64; ++fd) close(fd);
                      },
                      &status);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
}

TEST(DieWithByThread, SeesThatTheLauncherIsGoneAndThatThereIsNoPipe) {
    int lifeline[2];
    ASSERT_EQ(pipe(lifeline), 0);
    close(lifeline[1]);
    EXPECT_EQ(die_with_by_thread(lifeline[0]), Lifeline::kGone);
    close(lifeline[0]);
    EXPECT_EQ(die_with_by_thread(-1), Lifeline::kNone);
    const int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(die_with_by_thread(other), Lifeline::kNone);
    close(other);
}

// Daemons have none: what is opened next must not take their places.
TEST(StandardDescriptors, ThoseThatAreClosedAreHeld) {
    const pid_t child = fork();
    if (child == 0) {
        const auto target_of = [](int fd) {
            char target[256];
            const ssize_t bytes = readlink(path_of(fd).c_str(), target, sizeof target);
            return std::string(target, bytes > 0 ? static_cast<size_t>(bytes) : 0);
        };
        const std::string before = target_of(1);
        close(0);
        close(2);
        hold_standard_descriptors();
        const int next = open("/dev/zero", O_RDONLY | O_CLOEXEC);
        _exit(target_of(0) == "/dev/null" && target_of(1) == before && target_of(2) == "/dev/null" && next > 2 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace heddle::os

#include "os/process_table.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace heddle::os {
namespace {

TEST(ProcessTable, TellsOfAProcess) {
    ProcessEntry own;
    ASSERT_TRUE(read_process(getpid(), &own));
    EXPECT_EQ(own.parent, getppid());
    EXPECT_EQ(own.state, 'R');
    EXPECT_EQ(visible_parent(), getppid());
    EXPECT_FALSE(read_process(1 << 30, &own));
}

TEST(ProcessTable, CountsChildrenAndTheirRemains) {
    const int before = count_children(getpid());
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_NAME, "a ) b (");
        const char byte = 0;
        _exit(write(ends[1], &byte, 1) != 1);
    }
    char byte;
    ASSERT_EQ(read(ends[0], &byte, 1), 1);  // it has its name
    ProcessEntry entry;
    ASSERT_TRUE(read_process(child, &entry));
    EXPECT_EQ(std::string(entry.name), "a ) b (");
    EXPECT_EQ(entry.parent, getpid());
    EXPECT_EQ(count_children(getpid()), before + 1);
    waitpid(child, nullptr, 0);
    EXPECT_EQ(count_children(getpid()), before);
    close(ends[0]);
    close(ends[1]);
}

TEST(ProcessTable, KnowsMappedFiles) {
    EXPECT_EQ(maps_file(getpid(), "unit_os"), Answer::kYes);
    EXPECT_EQ(maps_file(getpid(), "/libheddle-that-is-not.so"), Answer::kNo);
    EXPECT_EQ(maps_file(1 << 30, "unit_os"), Answer::kNo) << "there is no such process";
}

TEST(ProcessTable, TellsWhereMappingsMayNotBeRead) {
    constexpr int kNoNamespaces = 77;
    const pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWUSER) != 0)
            _exit(kNoNamespaces);
        ProcessEntry parent;
        _exit(read_process(getppid(), &parent) && maps_file(getppid(), "unit_os") == Answer::kUntold ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    if (WEXITSTATUS(status) == kNoNamespaces)
        GTEST_SKIP() << "no user namespaces";
    EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace heddle::os

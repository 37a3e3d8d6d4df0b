#include "os/process_table.h"

#include <gtest/gtest.h>
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
    EXPECT_TRUE(maps_file(getpid(), "unit_os"));
    EXPECT_FALSE(maps_file(getpid(), "/libheddle-that-is-not.so"));
    EXPECT_FALSE(maps_file(1 << 30, "unit_os"));
}

}  // namespace
}  // namespace heddle::os

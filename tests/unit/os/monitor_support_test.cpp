// What the kernel says about monitor instructions, from files that stand for its own.
#include "os/monitor_support.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace heddle::os {
namespace {

class UmwaitControl : public testing::Test {
  protected:
    UmwaitControl() {
        char name[] = "/tmp/heddle-umwait-XXXXXX";
        folder_ = mkdtemp(name);
    }
    ~UmwaitControl() override { std::filesystem::remove_all(folder_); }

    void write(const char* name, const char* text) { std::ofstream(folder_ + "/" + name) << text; }
    MonitorSupport read() const {
        MonitorSupport support;
        read_umwait_control(folder_.c_str(), &support);
        return support;
    }

    std::string folder_;
};

TEST_F(UmwaitControl, AbsentSetsNoLimit) {
    EXPECT_EQ(read().umwait_cap_ticks, 0u);
    EXPECT_TRUE(read().umwait_c02);
}

TEST_F(UmwaitControl, IsReadAsTheKernelWritesIt) {
    write("max_time", "100000\n");
    write("enable_c02", "1\n");
    EXPECT_EQ(read().umwait_cap_ticks, 100000u);
    EXPECT_TRUE(read().umwait_c02);
    write("max_time", "4294967292\n");
    write("enable_c02", "0\n");
    EXPECT_EQ(read().umwait_cap_ticks, 4294967292u);
    EXPECT_FALSE(read().umwait_c02);
}

TEST_F(UmwaitControl, WhatIsNoNumberSetsNoLimit) {
    write("max_time", "");
    write("enable_c02", "?\n");
    EXPECT_EQ(read().umwait_cap_ticks, 0u);
    EXPECT_TRUE(read().umwait_c02);
}

#if defined(__x86_64__)

TEST(MonitorSupport, NothingWhereTheCounterIsForbidden) {
    EXPECT_TRUE(counter_is_allowed());
    const pid_t child = fork();
    if (child == 0) {
        if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV) != 0)
            _exit(2);
        const MonitorSupport support = monitor_support();
        _exit(counter_is_allowed() || support.umwait || support.mwaitx);
    }
    int status = -1;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

#endif

}  // namespace
}  // namespace heddle::os

// Which monitor is chosen on this machine, and that it runs. Those that the CPU lacks: monitor_emulated_test.cpp.
#include "os/monitor_wait.h"

#include <gtest/gtest.h>
#include <fstream>
#include <sstream>
#include <string>

namespace heddle::os {

namespace {

#if defined(__x86_64__)

bool cpu_has(const std::string& flag) {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("flags", 0) != 0)
            continue;
        std::istringstream words(line);
        for (std::string word; words >> word;)
            if (word == flag)
                return true;
        return false;
    }
    return false;
}

std::string name_of(const Monitor* monitor) {
    return monitor ? monitor->name : "";
}

TEST(FindMonitor, ObeysTheCpu) {
    const bool umwait = cpu_has("waitpkg"), mwaitx = cpu_has("mwaitx");
    EXPECT_EQ(name_of(find_monitor(MonitorChoice::kUmwait)), umwait ? "umwait" : "");
    EXPECT_EQ(name_of(find_monitor(MonitorChoice::kMwaitx)), mwaitx ? "mwaitx" : "");
    EXPECT_EQ(name_of(find_monitor(MonitorChoice::kAuto)), umwait ? "umwait" : mwaitx ? "mwaitx" : "");
    EXPECT_EQ(find_monitor(MonitorChoice::kWfe), nullptr);
}

TEST(FindMonitor, WhatItReturnsRuns) {
    const Monitor* monitor = find_monitor(MonitorChoice::kAuto);
    if (!monitor)
        GTEST_SKIP() << "this CPU has neither UMWAIT nor MWAITX";
    alignas(64) long line = 0;
    for (int i = 0; i < 100; ++i) {
        monitor->arm(&line);
        monitor->wait(20000);
    }
}

#endif

TEST(FindMonitor, NoneIsNone) {
    EXPECT_EQ(find_monitor(MonitorChoice::kNone), nullptr);
}

TEST(FindMonitor, FakeCounts) {
    const Monitor* fake = find_monitor(MonitorChoice::kFake);
    ASSERT_NE(fake, nullptr);
    const FakeMonitorCalls before = fake_monitor_calls();
    fake->arm(&before);
    fake->wait(1000);
    fake->wait(1000);
    EXPECT_EQ(fake_monitor_calls().arms, before.arms + 1);
    EXPECT_EQ(fake_monitor_calls().waits, before.waits + 2);
}

}  // namespace
}  // namespace heddle::os

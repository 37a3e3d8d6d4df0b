// The monitors: the machine code of each backend, byte for byte, because this machine may lack the instructions; and
// that the choice obeys what the CPU has.
#include "os/monitor_wait.h"

#include <gtest/gtest.h>
#include <fstream>
#include <sstream>
#include <string>

namespace heddle::os {

#if defined(__x86_64__)
Monitor encoding_of_umwait();  // in monitor_wait.cpp, for this test alone
Monitor encoding_of_mwaitx();
#endif

namespace {

#if defined(__x86_64__)

// The first of the four instructions in the machine code from `function` on, or "".
template <class Function>
std::string first_monitor_instruction(Function* function) {
    constexpr int kMostBytes = 400;  // sanitizers put much of their own in front
    const auto* code = reinterpret_cast<const unsigned char*>(function);
    for (int i = 0; i < kMostBytes; ++i) {
        const unsigned char* at = code + i;
        if (at[0] == 0x0f && at[1] == 0x01 && at[2] == 0xfa)
            return "monitorx";
        if (at[0] == 0x0f && at[1] == 0x01 && at[2] == 0xfb)
            return "mwaitx";
        if (at[0] != 0xf3 && at[0] != 0xf2)
            continue;
        const unsigned char* opcode = at + 1 + ((at[1] & 0xf0) == 0x40);  // a REX prefix, for r8 to r15
        const bool register_six = (opcode[2] & 0xf8) == 0xf0;             // ModRM: register operand, /6
        if (opcode[0] == 0x0f && opcode[1] == 0xae && register_six)
            return at[0] == 0xf3 ? "umonitor" : "umwait";
    }
    return "";
}

TEST(MonitorEncoding, Umwait) {
    const Monitor monitor = encoding_of_umwait();
    EXPECT_STREQ(monitor.name, "umwait");
    EXPECT_EQ(first_monitor_instruction(monitor.arm), "umonitor");
    EXPECT_EQ(first_monitor_instruction(monitor.wait), "umwait");
}

TEST(MonitorEncoding, Mwaitx) {
    const Monitor monitor = encoding_of_mwaitx();
    EXPECT_STREQ(monitor.name, "mwaitx");
    EXPECT_EQ(first_monitor_instruction(monitor.arm), "monitorx");
    EXPECT_EQ(first_monitor_instruction(monitor.wait), "mwaitx");
}

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

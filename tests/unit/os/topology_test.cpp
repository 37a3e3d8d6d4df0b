// What the machine offers: siblings as the kernel's folder lists them, and cores as a quota allows.
#include "os/topology.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/inotify.h>
#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace heddle::os {
namespace {

// A made-up folder of CPUs, as long as the object lives.
class CpuFolder {
  public:
    CpuFolder() {
        std::string name = testing::TempDir() + "heddle_cpus_XXXXXX";
        path_ = mkdtemp(name.data()) ? name : "";
    }
    ~CpuFolder() { std::filesystem::remove_all(path_); }
    CpuFolder(const CpuFolder&) = delete;
    CpuFolder& operator=(const CpuFolder&) = delete;

    void list(int cpu, const std::string& siblings, const char* file = "topology/thread_siblings_list") const {
        const std::filesystem::path path = path_ + "/cpu" + std::to_string(cpu) + "/" + file;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << siblings;
    }
    // The numbers of the siblings, of `words` words that were all ones before.
    std::vector<int> siblings(int cpu, size_t words = 2, decltype(smt_siblings)* find = smt_siblings) const {
        std::vector<uint64_t> cpus(words + 1, ~uint64_t{0});
        find(cpu, cpus.data(), words, path_.c_str());
        EXPECT_EQ(cpus[words], ~uint64_t{0}) << "writes behind its room";
        std::vector<int> numbers;
        for (size_t i = 0; i < 64 * words; ++i)
            if (cpus[i / 64] >> (i % 64) & 1)
                numbers.push_back(static_cast<int>(i));
        return numbers;
    }
    std::vector<int> siblings_in(int cpu, const std::string& text, size_t words = 2) const {
        list(cpu, text);
        return siblings(cpu, words);
    }

  private:
    std::string path_;
};

using Numbers = std::vector<int>;

TEST(CacheSiblings, ShareTheLastLevelThatThereIs) {
    const CpuFolder folder;
    EXPECT_EQ(folder.siblings(1, 2, cache_siblings), Numbers{});
    folder.list(1, "0-1\n", "cache/index2/shared_cpu_list");
    EXPECT_EQ(folder.siblings(1, 2, cache_siblings), Numbers{0});
    folder.list(1, "0-3,70\n", "cache/index3/shared_cpu_list");
    EXPECT_EQ(folder.siblings(1, 2, cache_siblings), (Numbers{0, 2, 3, 70}));
}

TEST(SmtSiblings, AreTheOthersOfTheList) {
    const CpuFolder folder;
    EXPECT_EQ(folder.siblings_in(0, "0,2\n"), (Numbers{2}));
    EXPECT_EQ(folder.siblings_in(2, "0,2"), (Numbers{0}));
    EXPECT_EQ(folder.siblings_in(1, "0-1\n"), (Numbers{0}));
    EXPECT_EQ(folder.siblings_in(3, "3,35\n"), (Numbers{35}));
    EXPECT_EQ(folder.siblings_in(4, "4,68,100\n"), (Numbers{68, 100}));
    EXPECT_EQ(folder.siblings_in(9, "8-11\n"), (Numbers{8, 10, 11}));
    EXPECT_EQ(folder.siblings_in(64, "0-1,62-66\n"), (Numbers{0, 1, 62, 63, 65, 66}));
}

TEST(SmtSiblings, ThereAreNoneWhereTheKernelListsNone) {
    const CpuFolder folder;
    EXPECT_EQ(folder.siblings(0), Numbers{}) << "no such file";
    EXPECT_EQ(folder.siblings(-1), Numbers{});
    for (const char* text : {"5\n", "5-5", "", "\n", "garbage", ",", "-", "a,3"})
        EXPECT_EQ(folder.siblings_in(5, text), Numbers{}) << '"' << text << '"';
}

TEST(SmtSiblings, WhatIsMalformedEndsTheList) {
    const CpuFolder folder;
    EXPECT_EQ(folder.siblings_in(0, "0,2 7\n"), (Numbers{2}));
    EXPECT_EQ(folder.siblings_in(0, "0,2,x,7\n"), (Numbers{2}));
    EXPECT_EQ(folder.siblings_in(0, "0,2-x\n"), (Numbers{2}));
    EXPECT_EQ(folder.siblings_in(0, "7-3,9\n"), (Numbers{9})) << "a range backwards is empty";
}

TEST(SmtSiblings, ThoseBeyondTheRoomAreLeftOut) {
    const CpuFolder folder;
    EXPECT_EQ(folder.siblings_in(63, "63,64\n", 1), Numbers{});
    EXPECT_EQ(folder.siblings_in(63, "63,64\n", 2), (Numbers{64}));
    EXPECT_EQ(folder.siblings_in(130, "1,130\n", 2), (Numbers{1}));
    EXPECT_EQ(folder.siblings_in(0, "0,18446744073709551615\n"), Numbers{});
    EXPECT_EQ(folder.siblings_in(0, "0,126-18446744073709551615\n"), (Numbers{126, 127}));
}

TEST(CoresOfQuota, Table) {
    const struct {
        const char* text;
        int cores;
    } kCases[] = {
        {"max 100000\n", 0},
        {"max", 0},
        {"150000 100000\n", 2},
        {"100000 100000", 1},
        {"50000 100000", 1},
        {"1 100000", 1},
        {"400000 100000", 4},
        {"400001 100000", 5},
        {"1600000 50000", 32},
        {"", 0},
        {"\n", 0},
        {"garbage", 0},
        {"100000", 0},
        {"100000 max", 0},
        {"100000 0", 0},
        {"0 100000", 0},
        {"0 0", 0},
        {"18446744073709551614 1", 0},
    };
    for (const auto& one : kCases) EXPECT_EQ(cores_of_quota(one.text), one.cores) << '"' << one.text << '"';
}

// Made-up control groups, as long as the object lives.
class Groups {
  public:
    explicit Groups(const std::string& own) {
        std::string name = testing::TempDir() + "heddle_groups_XXXXXX";
        path_ = mkdtemp(name.data()) ? name : "";
        write("own", own);
    }
    ~Groups() { std::filesystem::remove_all(path_); }
    Groups(const Groups&) = delete;
    Groups& operator=(const Groups&) = delete;

    void write(const std::string& file, const std::string& text) const {
        const std::filesystem::path path = path_ + "/" + file;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
    }
    void write_version_1(const std::string& folder, long quota_us, long period_us) const {
        write(folder + "/cpu.cfs_quota_us", std::to_string(quota_us) + "\n");
        write(folder + "/cpu.cfs_period_us", std::to_string(period_us) + "\n");
    }
    int cores() const { return quota_cores((path_ + "/own").c_str(), path_.c_str()); }
    // How many files directly in a folder cores() opens.
    int count_opens(const std::string& folder) const {
        const int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        EXPECT_GE(inotify_add_watch(watch, (path_ + "/" + folder).c_str(), IN_OPEN), 0);
        cores();
        alignas(inotify_event) char events[4096];
        int opens = 0;
        const ssize_t bytes = read(watch, events, sizeof events);
        for (ssize_t at = 0; at < bytes;) {
            const auto* const event = reinterpret_cast<const inotify_event*>(events + at);
            opens += (event->mask & (IN_OPEN | IN_ISDIR)) == IN_OPEN;
            at += static_cast<ssize_t>(sizeof *event + event->len);
        }
        close(watch);
        return opens;
    }

  private:
    std::string path_;
};

const char* const kVersion1 = "12:memory:/docker/a1\n4:cpu,cpuacct:/docker/a1\n3:cpuset:/docker/a1\n";

TEST(QuotaCores, OfVersion2IsTheLeastUpToTheMountedGroup) {
    const Groups groups("0::/slice/job\n");
    EXPECT_EQ(groups.cores(), 0);
    groups.write("slice/job/cpu.max", "max 100000\n");
    EXPECT_EQ(groups.cores(), 0);
    groups.write("slice/cpu.max", "700000 100000\n");
    EXPECT_EQ(groups.cores(), 7);
    groups.write("slice/job/cpu.max", "800000 100000\n");
    EXPECT_EQ(groups.cores(), 7);
    groups.write("cpu.max", "250000 100000\n");
    EXPECT_EQ(groups.cores(), 3);
    groups.write("slice/job/cpu.max", "50000 100000\n");
    EXPECT_EQ(groups.cores(), 1);
}

TEST(QuotaCores, OfVersion2AreThoseOfTheRootOfAContainer) {
    const Groups groups("0::/\n");
    groups.write("cpu.max", "400000 100000\n");
    EXPECT_EQ(groups.cores(), 4);
}

TEST(QuotaCores, OfVersion1AreSeen) {
    for (const std::string mounted : {"cpu", "cpu,cpuacct"}) {
        const Groups groups(kVersion1);
        EXPECT_EQ(groups.cores(), 0);
        groups.write_version_1(mounted + "/docker/a1", -1, 100000);
        EXPECT_EQ(groups.cores(), 0) << "no limit";
        groups.write_version_1(mounted + "/docker/a1", 350000, 100000);
        EXPECT_EQ(groups.cores(), 4);
        groups.write_version_1(mounted + "/docker", 400000, 200000);
        EXPECT_EQ(groups.cores(), 2);
    }
}

TEST(QuotaCores, OfVersion1AreSeenInAContainer) {
    const Groups groups(kVersion1);  // the host's path, which is not there
    groups.write_version_1("cpu,cpuacct", 200000, 100000);
    EXPECT_EQ(groups.cores(), 2);
}

// Each process of a job reads them at its start.
TEST(QuotaCores, AFileIsReadOnce) {
    for (const char* own : {"4:cpu:/\n", "4:cpu:/a\n", "4:cpu,cpuacct:/a\n"}) {
        const Groups groups(own);
        groups.write_version_1("cpu", 200000, 100000);
        groups.write_version_1("cpu/a", 300000, 100000);
        EXPECT_EQ(groups.count_opens("cpu"), 2) << own;  // quota and period
        EXPECT_EQ(groups.cores(), 2) << own;
    }
}

TEST(QuotaCores, OfOtherControllersAreNone) {
    const Groups groups("2:cpuset:/a\n1:cpuacct:/a\n");
    groups.write_version_1("cpuset/a", 100000, 100000);
    groups.write_version_1("cpuacct/a", 100000, 100000);
    groups.write_version_1("cpu/a", 100000, 100000);
    EXPECT_EQ(groups.cores(), 0);
}

TEST(QuotaCores, OfBothVersionsAreTheLeast) {
    const Groups groups(std::string(kVersion1) + "0::/slice\n");
    groups.write("slice/cpu.max", "300000 100000\n");
    groups.write_version_1("cpu/docker/a1", 500000, 100000);
    EXPECT_EQ(groups.cores(), 3);
    groups.write_version_1("cpu/docker/a1", 200000, 100000);
    EXPECT_EQ(groups.cores(), 2);
}

TEST(QuotaCores, WhatIsMissingOrMalformedIsNoLimit) {
    EXPECT_EQ(quota_cores("/nowhere", "/nowhere"), 0);
    for (const char* own : {"", "\n", "garbage\n", ":\n", "0:\n", "0::", "4:cpu:\n", "::::\n"}) {
        const Groups groups(own);
        EXPECT_EQ(groups.cores(), 0) << own;
    }
    const Groups groups("4:cpu:/a\n");
    groups.write("cpu/a/cpu.cfs_quota_us", "100000\n");
    EXPECT_EQ(groups.cores(), 0) << "no period";
    groups.write("cpu/a/cpu.cfs_period_us", "0\n");
    EXPECT_EQ(groups.cores(), 0);
}

TEST(UsableCores, AreThoseOfTheAffinityMask) {
    const int all = usable_cores();
    EXPECT_GE(all, 1);
    EXPECT_LE(all, static_cast<int>(sysconf(_SC_NPROCESSORS_CONF)));
    std::thread([] {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        EXPECT_EQ(usable_cores(), 1);
    }).join();
}

}  // namespace
}  // namespace heddle::os

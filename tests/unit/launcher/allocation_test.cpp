// The lists in which job schedulers name hosts and numbers of PEs.
#include "allocation.h"

#include <gtest/gtest.h>
#include <cstdlib>
#include <string>
#include <vector>

namespace heddle::launcher {
namespace {

std::string hosts(const char* text) {
    std::vector<std::string> names;
    if (!expand_host_list(text, &names))
        return "malformed";
    std::string all;
    for (const std::string& name : names) all += name + " ";
    return all;
}

TEST(HostList, IsExpanded) {
    EXPECT_EQ(hosts("n1"), "n1 ");
    EXPECT_EQ(hosts("n1,login.site-2"), "n1 login.site-2 ");
    EXPECT_EQ(hosts("n[1-3,7]"), "n1 n2 n3 n7 ");
    EXPECT_EQ(hosts("n[08-11],m[1]"), "n08 n09 n10 n11 m1 ");
    EXPECT_EQ(hosts("r[1-2]n[01-02]-ib"), "r1n01-ib r1n02-ib r2n01-ib r2n02-ib ");
    EXPECT_EQ(hosts("[1-2]"), "1 2 ");
}

TEST(HostList, WhatIsMalformedIsRefused) {
    for (const char* text :
         {"", ",", "n1,", ",n1", "n[", "n[]", "n[1", "n[1-]", "n[-1]", "n[3-1]", "n[1,]", "n[a]", "n]", "n[1]]", "n m",
          "n[1-99999999]", "n[1-60000],m[1-60000]", "n[1-300][1-300]", "n[11111111111111111111]"})
        EXPECT_EQ(hosts(text), "malformed") << text;
}

TEST(Counts, AreExpanded) {
    std::vector<int> counts;
    EXPECT_TRUE(expand_counts("4", &counts));
    EXPECT_EQ(counts, (std::vector<int>{4}));
    EXPECT_TRUE(expand_counts("2(x3),1", &counts));
    EXPECT_EQ(counts, (std::vector<int>{2, 2, 2, 1}));
    for (const char* text : {"", "0", "x", "2(", "2(x", "2(x3", "2(x3),", "2,,1", "-1", "2(3)", "1(x99999999)", "1 "})
        EXPECT_FALSE(expand_counts(text, &counts)) << text;
}

class Slurm : public testing::Test {
  protected:
    Slurm() { clear(); }
    ~Slurm() override { clear(); }
    static void clear() {
        for (const char* name : {"SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE", "SLURM_CPUS_PER_TASK",
                                 "SLURM_JOB_CPUS_PER_NODE", "SLURM_NODELIST", "SLURM_JOBID"})
            unsetenv(name);
    }
    static std::string read() {
        Allocation allocation;
        std::string error;
        if (!read_slurm(&allocation, &error))
            return error;
        std::string text = allocation.scheduler + " " + std::to_string(allocation.cores_per_pe);
        for (const Host& host : allocation.hosts) text += " " + host.name + ":" + std::to_string(host.pes);
        return text;
    }
};

TEST_F(Slurm, TellsTasksOfEachHost) {
    EXPECT_EQ(read(), " 0") << "no allocation";
    setenv("SLURM_JOB_NODELIST", "n[1-3,7]", 1);
    EXPECT_EQ(read(), " 0") << "left over from somewhere: no job";
    setenv("SLURM_JOB_ID", "17", 1);
    EXPECT_EQ(read(), "SLURM_TASKS_PER_NODE= does not tell a number for each host of n[1-3,7]");
    setenv("SLURM_TASKS_PER_NODE", "2(x3),1", 1);
    setenv("SLURM_CPUS_PER_TASK", "4", 1);
    EXPECT_EQ(read(), "Slurm 4 n1:2 n2:2 n3:2 n7:1");
    setenv("SLURM_TASKS_PER_NODE", "2(x3)", 1);
    EXPECT_EQ(read(), "SLURM_TASKS_PER_NODE=2(x3) does not tell a number for each host of n[1-3,7]");
    unsetenv("SLURM_TASKS_PER_NODE");
    setenv("SLURM_JOB_CPUS_PER_NODE", "16(x3),2", 1);
    EXPECT_EQ(read(), "Slurm 4 n1:4 n2:4 n3:4 n7:1");
    setenv("SLURM_JOB_NODELIST", "n[", 1);
    EXPECT_EQ(read(), "SLURM_JOB_NODELIST=n[ is no list of hosts");
}

TEST(Flux, TellsCoresOfEachHost) {
    Allocation allocation;
    EXPECT_TRUE(read_flux("16 f[1-2]\n4 g\n", &allocation));
    ASSERT_EQ(allocation.hosts.size(), 3u);
    EXPECT_EQ(allocation.hosts[1].name, "f2");
    EXPECT_EQ(allocation.hosts[1].pes, 8);
    EXPECT_EQ(allocation.hosts[2].pes, 4);
    for (const char* text : {"", "\n", "f1\n", "4\n", "x f1\n", "4 f[\n"}) {
        Allocation none;
        EXPECT_FALSE(read_flux(text, &none)) << text;
    }
}

}  // namespace
}  // namespace heddle::launcher

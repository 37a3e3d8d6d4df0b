// The cores of PEs and their threads, on made-up machines: nodes, hyper-threads, holes, and too few cores.
#include "cores.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace heddle::launcher {
namespace {

using Plan = std::vector<CpuList>;

std::vector<Cpu> simple(int cores, int nodes = 1) {
    std::vector<Cpu> cpus;
    for (int i = 0; i < cores; ++i) cpus.push_back({i, i / (cores / nodes), i});
    return cpus;
}

// 2 nodes of 4 cores of 2 hyper-threads: CPUs 0-3 and 8-11, 4-7 and 12-15.
std::vector<Cpu> hyper() {
    std::vector<Cpu> cpus;
    for (int core = 0; core < 8; ++core) {
        cpus.push_back({core, core / 4, core});
        cpus.push_back({core + 8, core / 4, core});
    }
    return cpus;
}

// A made-up folder of the kernel, as long as the object lives.
class System {
  public:
    System() {
        std::string name = testing::TempDir() + "heddle_system_XXXXXX";
        path_ = mkdtemp(name.data()) ? name : "";
    }
    ~System() { std::filesystem::remove_all(path_); }
    System(const System&) = delete;
    System& operator=(const System&) = delete;

    void write(const std::string& file, const std::string& text) const {
        const std::filesystem::path path = path_ + "/" + file;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text << '\n';
    }
    std::string read(const CpuList& numbers) const {
        std::string text;
        for (const Cpu& cpu : read_cpus(numbers, path_.c_str()))
            text += std::to_string(cpu.number) + "/" + std::to_string(cpu.node) + "/" + std::to_string(cpu.core) + " ";
        return text;
    }

  private:
    std::string path_;
};

TEST(CpuLists, AreThoseOfTheKernel) {
    for (const char* text : {"", "0", "0-3", "0-3,8", "1,3,5-7", "1023"}) {
        CpuList list;
        EXPECT_TRUE(parse_cpu_list(text, &list)) << text;
        EXPECT_EQ(to_text(list), text);
    }
    CpuList list;
    EXPECT_TRUE(parse_cpu_list("0-1,4\n", &list));
    EXPECT_EQ(list, (CpuList{0, 1, 4}));
    for (const char* text : {"a", "-1", "1-", "3-1", "1,,2", "1;2", "2,1", "1-2,2", " 1", "99999999"})
        EXPECT_FALSE(parse_cpu_list(text, &list)) << text;
}

TEST(ReadCpus, SortsByNodeAndCore) {
    const System system;
    EXPECT_EQ(system.read({0, 5}), "0/0/0 5/0/5 ") << "the kernel tells nothing";
    system.write("node/online", "0,2");
    system.write("node/node0/cpulist", "0-1,4-5");
    system.write("node/node2/cpulist", "2-3,6-7");
    for (int cpu = 0; cpu < 8; ++cpu)
        system.write("cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
                     std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
    EXPECT_EQ(system.read({0, 1, 2, 3, 4, 5, 6, 7}), "0/0/0 4/0/0 1/0/1 5/0/1 2/2/2 6/2/2 3/2/3 7/2/3 ");
    EXPECT_EQ(system.read({1, 3, 7}), "1/0/1 3/2/3 7/2/3 ") << "only the usable ones";
}

TEST(PlanCores, OneCoreForEachPe) {
    EXPECT_EQ(plan_cores(simple(4), 3, 1), (Plan{{0}, {1}, {2}}));
    EXPECT_EQ(plan_cores(simple(4), 7, 1), (Plan{{0}, {1}, {2}, {3}, {0}, {1}, {2}}));
    EXPECT_EQ(plan_cores(simple(1), 3, 1), (Plan{{0}, {0}, {0}}));
}

TEST(PlanCores, APeLiesWithinANode) {
    EXPECT_EQ(plan_cores(simple(8, 2), 2, 3), (Plan{{0, 1, 2}, {4, 5, 6}})) << "CPU 3 stays free";
    EXPECT_EQ(plan_cores(simple(8, 2), 2, 4), (Plan{{0, 1, 2, 3}, {4, 5, 6, 7}}));
    EXPECT_EQ(plan_cores(simple(8, 2), 3, 2), (Plan{{0, 1}, {2, 3}, {4, 5}}));
}

TEST(PlanCores, APeLiesAcrossNodesOnlyWhereNotAllFit) {
    EXPECT_EQ(plan_cores(simple(6, 2), 3, 2), (Plan{{0, 1}, {2, 3}, {4, 5}}));
    EXPECT_EQ(plan_cores(simple(4, 2), 1, 3), (Plan{{0, 1, 2}}));
    EXPECT_EQ(plan_cores(simple(4, 2), 2, 9), (Plan{{0, 1, 2, 3}, {0, 1, 2, 3}})) << "all there are";
}

TEST(PlanCores, HyperThreadsComeWhenCoresAreTooFew) {
    EXPECT_EQ(plan_cores(hyper(), 2, 4), (Plan{{0, 1, 2, 3}, {4, 5, 6, 7}}));
    EXPECT_EQ(plan_cores(hyper(), 8, 1), (Plan{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}));
    EXPECT_EQ(plan_cores(hyper(), 4, 4), (Plan{{0, 1, 8, 9}, {2, 3, 10, 11}, {4, 5, 12, 13}, {6, 7, 14, 15}}));
    EXPECT_EQ(plan_cores(hyper(), 1, 16).front().size(), 16u);
}

TEST(PlanCores, HolesAreNoCores) {
    const std::vector<Cpu> cpus = {{1, 0, 1}, {4, 0, 4}, {9, 1, 9}, {17, 1, 17}, {70, 1, 70}};
    EXPECT_EQ(plan_cores(cpus, 2, 2), (Plan{{1, 4}, {9, 17}}));
    EXPECT_EQ(plan_cores(cpus, 1, 3), (Plan{{9, 17, 70}}));
}

TEST(PlanCores, NoCpuIsSharedWhereThereAreEnough) {
    for (int pes = 1; pes <= 16; ++pes)
        for (int n = 1; n * pes <= 16; ++n) {
            std::vector<int> uses(16, 0);
            for (const CpuList& list : plan_cores(hyper(), pes, n)) {
                EXPECT_EQ(list.size(), static_cast<size_t>(n));
                EXPECT_TRUE(std::is_sorted(list.begin(), list.end()));
                for (const int cpu : list) EXPECT_EQ(uses[static_cast<size_t>(cpu)]++, 0) << pes << " PEs, " << n;
            }
        }
}

TEST(WidenToNodes, AddsTheOtherCores) {
    EXPECT_EQ(to_text(widen_to_nodes(hyper(), {5})), "4-7,12-15");
    EXPECT_EQ(to_text(widen_to_nodes(hyper(), {0, 12})), "0-15");
}

class Threads : public testing::Test {
  protected:
    Threads() {
        unsetenv("OMP_NUM_THREADS");
        unsetenv("OMP_WAIT_POLICY");
    }
    // The variables that the first program gets, "NAME=VALUE" with a blank behind each, and the line in brackets.
    static std::string plan(int cores, Options options) {
        for (const Program& program : options.programs) options.pes += program.pes;
        const std::string line = plan_threads(cores, &options);
        std::string text;
        for (const auto& [name, value] : options.programs[0].environment) text += name + "=" + value + " ";
        return text + "[" + line + "]";
    }
    static Options job(int pes) {
        Options options;
        options.programs.resize(1);
        options.programs[0].pes = pes;
        return options;
    }
};

TEST_F(Threads, GetAnEqualShareOfTheCores) {
    EXPECT_EQ(plan(8, job(2)), "OMP_NUM_THREADS=4 []");
    EXPECT_EQ(plan(8, job(3)), "OMP_NUM_THREADS=2 []");
    EXPECT_EQ(plan(1, job(1)), "OMP_NUM_THREADS=1 []");
    EXPECT_EQ(plan(4, job(7)), "OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive []") << "no threads were asked for";
}

TEST_F(Threads, AreAsManyAsThePesCores) {
    Options options = job(2);
    options.cores_per_pe = 3;
    EXPECT_EQ(plan(8, options), "OMP_NUM_THREADS=3 []");
    EXPECT_EQ(plan(5, options),
              "OMP_NUM_THREADS=3 OMP_WAIT_POLICY=passive [2 PEs with up to 3 threads each (-c) share 5 cores: OpenMP "
              "waits passively]");
    options = job(2);
    options.bind = Bind::kCore;
    EXPECT_EQ(plan(8, options), "OMP_NUM_THREADS=1 []");
}

TEST_F(Threads, AreWhatTheUserSays) {
    setenv("OMP_NUM_THREADS", "4,2", 1);
    EXPECT_EQ(plan(8, job(2)), "[]");
    EXPECT_EQ(plan(1, job(2)),
              "OMP_WAIT_POLICY=passive [2 PEs with up to 4 threads each (OMP_NUM_THREADS) share 1 core: OpenMP waits "
              "passively]");
    Options options = job(2);
    options.programs[0].environment = {{"OMP_NUM_THREADS", "2"}, {"OMP_WAIT_POLICY", "active"}};
    EXPECT_EQ(plan(4, options), "OMP_NUM_THREADS=2 OMP_WAIT_POLICY=active []");
    EXPECT_EQ(plan(3, options),
              "OMP_NUM_THREADS=2 OMP_WAIT_POLICY=active [2 PEs with up to 2 threads each (OMP_NUM_THREADS) share 3 "
              "cores: OMP_WAIT_POLICY=passive would help]");
    setenv("OMP_NUM_THREADS", "nonsense", 1);
    EXPECT_EQ(plan(8, job(8)), "[]");
}

TEST_F(Threads, OfAllProgramsCount) {
    Options options = job(2);
    options.programs.push_back(options.programs[0]);
    options.programs[0].environment = {{"OMP_NUM_THREADS", "3"}};
    EXPECT_EQ(plan(10, options), "OMP_NUM_THREADS=3 []") << "2 PEs of 3 threads and 2 of 2";
    EXPECT_NE(plan(9, options).find("share 9 cores"), std::string::npos);
}

}  // namespace
}  // namespace heddle::launcher

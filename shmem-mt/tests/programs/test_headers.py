"""Parts of the programs that need no OpenSHMEM: histograms, the numbers that tell messages apart, partners, and
cores."""

import shutil
import subprocess

import pytest
from shmem_mt import sources

PROGRAM = """
#include <cstdio>
#include <set>
#include <thread>

#include "programs/common/cores.hpp"
#include "programs/common/histogram.hpp"
#include "programs/common/options.hpp"
#include "programs/common/partners.hpp"
#include "programs/common/validation.hpp"
#include "programs/progress/overlap_computation.hpp"
#include "programs/progress/thread_switches.hpp"

using namespace shmem_mt;

#define WANT(what) if (!(what)) return std::printf("%s, line %d\\n", #what, __LINE__), 1

int buckets() {
    for (int bucket = 0; bucket + 1 < Histogram::kBuckets; ++bucket) {
        const long least = Histogram::least_ns(bucket), next = Histogram::least_ns(bucket + 1);
        WANT(Histogram::bucket_of(least) == bucket && Histogram::bucket_of(next - 1) == bucket);
        WANT(next - least <= (least < 32 ? 1 : least / 32));
    }
    WANT(Histogram::bucket_of(Histogram::kLongestNs) == Histogram::kBuckets - 1);
    Histogram one, other;
    one.add(300e-9);
    one.add(1e9);
    other.add(301e-9);
    other.add(one);
    WANT(other.total == 3 && other.longest_s == 1e9);
    WANT(other.pairs().rfind("[[296,", 0) == 0 && other.pairs().find(",2],[") != std::string::npos);
    WANT(Histogram().pairs() == "[]");
    std::vector<Histogram> threads(2);
    for (int thread = 0; thread < 2; ++thread) {
        Marks marks(&threads, thread);
        for (int i = 0; i <= thread; ++i) marks.mark();
    }
    WANT(threads[0].total == 1 && threads[1].total == 2);
    Marks(nullptr, 0).mark();
    return 0;
}

int bases() {
    std::set<long> found;
    size_t count = 0;
    for (const long pe : {0L, 1L, 8190L, 8191L, 16382L, 16383L, 16384L, 100000L, (1L << 30) - 2}) {
        for (int thread = 0; thread < 62; ++thread, ++count) {
            const long base = make_base(static_cast<int>(pe), thread, 7);
            WANT((base & ((1L << 28) - 1)) == 0);
            found.insert(base);
        }
    }
    for (int thread = 62; thread < kMaxThreads; ++thread, ++count) found.insert(make_base(8191, thread, 7));
    WANT(found.size() == count);
    found.clear();
    count = 0;
    for (long token = 8; token < 7 + (1L << 16); ++token, ++count) found.insert(make_base(8191, 0, token));
    WANT(found.size() == count);
    return 0;
}

// A PE of that host that may use CPUs from first on.
// Every PE has one partner, half of them send, PE 0 among them, and all are as near as wanted.
bool pairs_up(const std::vector<long>& hosts, const std::vector<Partner>& partners, const std::string& wanted) {
    size_t senders = 0;
    for (size_t pe = 0; pe < partners.size(); ++pe) {
        const Partner& other = partners[static_cast<size_t>(partners[pe].pe)];
        senders += partners[pe].sends;
        if (other.pe != static_cast<int>(pe) || other.sends == partners[pe].sends)
            return false;
    }
    return partners.size() == hosts.size() && 2 * senders == hosts.size() && partners[0].sends &&
           nearness(hosts, partners) == wanted;
}

int partners() {
    for (const int n_pes : {2, 4, 8, 256}) {
        const size_t n = static_cast<size_t>(n_pes);
        std::vector<long> one(n, 7), block, cyclic;
        for (int pe = 0; pe < n_pes; ++pe) {
            block.push_back(pe < n_pes / 2 ? 9 : 3);
            cyclic.push_back(pe % 2);
        }
        WANT(pairs_up(one, near_partners(one), "near") && far_partners(one).empty());
        const std::vector<Partner> by_itself = partners_of(block, "");
        for (int pe = 0; pe < n_pes; ++pe) {
            const Partner half = half_partner(pe, n_pes);
            WANT(by_itself[static_cast<size_t>(pe)].pe == half.pe && half.sends == (pe < n_pes / 2));
        }
        for (const std::vector<long>& hosts : {block, cyclic}) {
            WANT(pairs_up(hosts, partners_of(hosts, ""), "far") && pairs_up(hosts, partners_of(hosts, "far"), "far"));
            WANT(n_pes == 2 ? near_partners(hosts).empty() : pairs_up(hosts, partners_of(hosts, "near"), "near"));
        }
    }
    const std::vector<long> uneven = {1, 2, 1, 1, 3, 1}, three = {1, 2, 3, 1, 2, 3, 3, 3};
    WANT(near_partners(uneven).empty() && far_partners(uneven).empty());
    WANT(pairs_up(uneven, partners_of(uneven, ""), "mixed"));
    WANT(pairs_up(three, partners_of(three, "far"), "far") && pairs_up(three, partners_of(three, "near"), "near"));
    WANT(half_partner(0, 1).pe == 0 && half_partner(0, 1).sends);
    return 0;
}

Cores bound(long host, int first, int count, long group = 0, double group_cpus = 0) {
    Cores cores;
    cores.host = host;
    for (int cpu = first; cpu < first + count; ++cpu) CPU_SET(cpu, &cores.cpus);
    cores.group = group;
    cores.group_cpus = group_cpus;
    return cores;
}

int cores() {
    WANT(!too_few_cores({bound(1, 0, 2), bound(1, 0, 2)}, 1));
    WANT(too_few_cores({bound(1, 0, 2), bound(1, 0, 2)}, 2));
    WANT(!too_few_cores({bound(1, 0, 2), bound(1, 2, 2)}, 2));
    WANT(too_few_cores({bound(1, 0, 1), bound(1, 0, 1), bound(1, 0, 8)}, 1));  // two of three share one
    WANT(!too_few_cores({bound(1, 0, 1), bound(1, 0, 2), bound(1, 0, 8)}, 1));
    WANT(!too_few_cores({bound(1, 0, 1), bound(2, 0, 1)}, 1));  // hosts
    WANT(too_few_cores({bound(1, 0, 1), bound(2, 0, 1), bound(2, 0, 1)}, 1));
    WANT(too_few_cores({bound(1, 0, 8, 7, 1.5), bound(1, 0, 8, 7, 1.5)}, 1));
    WANT(!too_few_cores({bound(1, 0, 8, 7, 1.5), bound(1, 0, 8, 8, 1.5)}, 1));  // groups
    WANT(!too_few_cores({bound(1, 0, 8, 7, 1.5), bound(2, 0, 8, 7, 1.5)}, 1));
    WANT(!too_few_cores({Cores(), Cores()}, 1));  // not known
    WANT(most_of_a_host({{1, 3}, {2, 4}, {1, 5}}) == 8);
    const Cores own = cores_of(3);
    WANT(own.host != 0 && own.host == cores_of(4).host && CPU_COUNT(&own.cpus) > 0);
    return 0;
}

// A thread that sleeps gives its core away; what another one does is not counted.
int switches() {
    const auto sleep = [] {
        for (int i = 0; i < 20; ++i) std::this_thread::sleep_for(std::chrono::microseconds(100));
    };
    ThreadSwitches begin = thread_switches();
    sleep();
    ThreadSwitches end = thread_switches();
    WANT(end.voluntary - begin.voluntary >= 20 && end.involuntary >= begin.involuntary);
    begin = end;
    std::thread([&] { sleep(); }).join();  // a wait, perhaps
    end = thread_switches();
    WANT(end.voluntary - begin.voluntary <= 5);
    return 0;
}

// Each stretch of a computation comes to what was foreseen, and goes on where the last one ended: behind half of the
// memory, at its end, beyond it, several times round.
int computations() {
    WANT(Computation::bytes_of(kMemory) > last_cache_bytes() && Computation::bytes_of(kNearestCache) <= 32 << 10);
    for (const char* const kind : {kRegisters, kMultiplyAdds, kBranches, kNearestCache, kMemory}) {
        Computation computation(kind);
        const long lines = std::max(1000L, Computation::bytes_of(kind) / kLineBytes);
        uint64_t x = 7;
        std::set<uint64_t> found;
        for (const long units : {0L, 1L, lines / 2, lines / 2 - 1, 1L, lines - 3, 8L, 2 * lines + 5}) {
            const uint64_t right = computation.result(x, units);
            x = computation.run(x, units);
            WANT(x == right);
            found.insert(x);
        }
        WANT(found.size() == 8);
        const uint64_t line = computation.result(0, 1);
        computation.run(0, 1);
        WANT((computation.result(0, 1) != line) == (Computation::bytes_of(kind) > 0));
        WANT(computation.seconds_per_unit() > 0);
    }
    return 0;
}

int main() {
    return buckets() + bases() + partners() + cores() + switches() + computations();
}
"""


@pytest.mark.skipif(shutil.which("c++") is None, reason="no c++ on PATH")
def test_histograms_numbers_of_messages_and_cores(tmp_path):
    """Undefined behaviour ends the program."""
    source, binary = tmp_path / "headers.cpp", tmp_path / "headers"
    source.write_text(PROGRAM)
    checks = ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
    flags = ["-std=c++17", "-O1", "-pthread", "-Wall", "-Werror", *checks]
    command = ["c++", *flags, "-I", sources.root(), source, "-o", binary]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([binary], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout

// Collectives one after the other without anything in between, over several teams, in every way to meet. dest and
// source are plain memory, so ThreadSanitizer reports a member that reads before it may, or is written to too early.
#include "job.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <tuple>

namespace heddle::test {
namespace {

struct Way {
    const char* central_barrier;
    const char* algorithms;  // "short" or "long" ways to move the data
    bool checked = false;    // a checked run: members compare what they call, and tell where they are
};

class CollectivesTest : public testing::TestWithParam<std::tuple<int, Way>> {
  protected:
    void TearDown() override { unsetenv("HEDDLE_CHECK"); }
    void SetUp() override {
        const auto [n_pes, way] = GetParam();
        const bool as_short = std::string(way.algorithms) == "short";
        setenv("SHMEM_SYMMETRIC_SIZE", "8M", 1);
        setenv("HEDDLE_BARRIER", way.central_barrier, 1);
        setenv("HEDDLE_CHECK", way.checked ? "1" : "0", 1);
        setenv("HEDDLE_BROADCAST", as_short ? "inline" : "pull", 1);
        for (const char* name : {"HEDDLE_COLLECT", "HEDDLE_FCOLLECT", "HEDDLE_ALLTOALL"})
            setenv(name, as_short ? "bounce" : "push", 1);
        for (const char* name : {"HEDDLE_REDUCE", "HEDDLE_SCAN"}) setenv(name, as_short ? "bounce" : "sliced", 1);
    }
};

// The buffers of one team's collectives; dest has room for a part of each member.
struct Buffers {
    long* source;
    long* dest;
};

// Writes source, does every collective on team, and looks at dest; `round` makes the values differ. As soon as one has
// returned the member uses its source again, and once it has looked its dest, too.
void all_collectives(shmem_team_t team, const Buffers& at, size_t nelems, long round) {
    const int size = shmem_team_n_pes(team), me = shmem_team_my_pe(team);
    const auto value = [&](int member, size_t i) { return round * 1000 + member * 100 + static_cast<long>(i % 50); };
    const auto fill = [&] {
        std::fill_n(at.dest, nelems, -2);
        shmem_team_sync(team);  // dest is ready on all
        for (size_t i = 0; i < nelems; ++i) at.source[i] = value(me, i);
    };
    const auto reuse = [&] { std::fill_n(at.source, nelems, -1); };
    fill();
    shmem_long_sum_reduce(team, at.dest, at.source, nelems);
    shmem_long_max_reduce(team, at.source, at.source, nelems);
    for (size_t i = 0; i < nelems; ++i) {
        ASSERT_EQ(at.dest[i], size * value(0, i) + 100L * size * (size - 1) / 2);
        ASSERT_EQ(at.source[i], value(size - 1, i));
    }
    fill();
    shmem_long_sum_inscan(team, at.dest, at.source, nelems);
    reuse();
    for (size_t i = 0; i < nelems; ++i) ASSERT_EQ(at.dest[i], (me + 1) * value(0, i) + 50L * me * (me + 1));
    for (int root = 0; root < size; ++root) {
        fill();
        shmem_long_broadcast(team, at.dest, at.source, nelems, root);
        reuse();
        for (size_t i = 0; i < nelems; ++i) ASSERT_EQ(at.dest[i], value(root, i));
    }
    fill();
    shmem_long_fcollect(team, at.dest, at.source, nelems);
    reuse();
    for (int member = 0; member < size; ++member)
        for (size_t i = 0; i < nelems; ++i)
            ASSERT_EQ(at.dest[static_cast<size_t>(member) * nelems + i], value(member, i));
    fill();
    shmem_long_collect(team, at.dest, at.source, nelems - static_cast<size_t>(me) % 2);
    reuse();
    size_t place = 0;
    for (int member = 0; member < size; ++member)
        for (size_t i = 0; i < nelems - static_cast<size_t>(member) % 2; ++i)
            ASSERT_EQ(at.dest[place++], value(member, i));
    fill();
    shmem_long_sum_exscan(team, at.dest, at.source, nelems);
    reuse();
    for (size_t i = 0; i < nelems; ++i) ASSERT_EQ(at.dest[i], me * value(0, i) + 50L * me * (me - 1));
    fill();
    const size_t block = nelems / static_cast<size_t>(size);
    shmem_long_alltoall(team, at.dest, at.source, block);
    reuse();
    for (int member = 0; member < size; ++member)
        for (size_t i = 0; i < block; ++i)
            ASSERT_EQ(at.dest[static_cast<size_t>(member) * block + i],
                      value(member, static_cast<size_t>(me) * block + i));
    fill();
    const size_t pairs = block / 2;  // of each block every second element, and into every second place
    shmem_long_alltoalls(team, at.dest, at.source, 2, 2, pairs);
    reuse();
    for (int member = 0; member < size; ++member)
        for (size_t i = 0; i < pairs; ++i)
            ASSERT_EQ(at.dest[2 * (static_cast<size_t>(member) * pairs + i)],
                      value(member, 2 * (static_cast<size_t>(me) * pairs + i)));
}

// The operations of a reduction, in the same two buffers.
void all_reductions(shmem_team_t team, const Buffers& at, size_t nelems) {
    const int size = shmem_team_n_pes(team), me = shmem_team_my_pe(team);
    const long everybody = (1L << size) - 1;
    const auto expect = [&](int (*reduce)(shmem_team_t, unsigned long*, const unsigned long*, size_t), long mine,
                            long right) {
        shmem_team_sync(team);
        for (size_t i = 0; i < nelems; ++i) at.source[i] = mine;
        ASSERT_EQ(reduce(team, reinterpret_cast<unsigned long*>(at.dest), reinterpret_cast<unsigned long*>(at.source),
                         nelems),
                  0);
        for (size_t i = 0; i < nelems; ++i) ASSERT_EQ(at.dest[i], right);
    };
    expect(shmem_ulong_or_reduce, 1L << me, everybody);
    expect(shmem_ulong_and_reduce, ~(1L << me), ~everybody);
    expect(shmem_ulong_xor_reduce, 3L << me, 1L ^ 1L << size);
    expect(shmem_ulong_min_reduce, 10 + me, 10);
    expect(shmem_ulong_max_reduce, 10 + me, 9 + size);
    expect(shmem_ulong_prod_reduce, me + 1, [&] {
        long factorial = 1;
        for (long i = 2; i <= size; ++i) factorial *= i;
        return factorial;
    }());
}

TEST_P(CollectivesTest, FollowEachOther) {
    const int n_pes = std::get<0>(GetParam());
    run_pes(n_pes, [&](int pe) {
        shmem_init();
        constexpr size_t kMax = 1500;
        const size_t all = kMax * static_cast<size_t>(n_pes);
        const Buffers world = {symmetric<long>(kMax), symmetric<long>(all)};
        const Buffers half = {symmetric<long>(kMax), symmetric<long>(all)};
        shmem_team_t every_second, reversed;
        ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (n_pes + 1) / 2, nullptr, 0, &every_second), 0);
        ASSERT_EQ(every_second != SHMEM_TEAM_INVALID, pe % 2 == 0);
        ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, n_pes - 1, -1, n_pes, nullptr, 0, &reversed), 0);
        for (long round = 1; round <= 3; ++round) {
            for (const size_t nelems : {size_t{8}, size_t{30}, kMax}) {
                all_collectives(SHMEM_TEAM_WORLD, world, nelems, round);
                if (every_second != SHMEM_TEAM_INVALID)
                    all_collectives(every_second, half, nelems, round + 10);
                all_collectives(reversed, world, nelems, round + 20);
                all_reductions(SHMEM_TEAM_SHARED, world, nelems);
            }
        }
        shmem_team_destroy(reversed);
        shmem_team_destroy(every_second);
        for (long* buffer : {half.dest, half.source, world.dest, world.source}) shmem_free(buffer);
        shmem_finalize();
    });
}

std::string name_of(const testing::TestParamInfo<std::tuple<int, Way>>& info) {
    const Way& way = std::get<1>(info.param);
    return std::string(way.central_barrier) + "_" + way.algorithms + (way.checked ? "_checked_" : "_") +
           std::to_string(std::get<0>(info.param));
}

constexpr Way kWays[] = {{"central", "short"},      {"central", "long"},        {"flat", "short"},     {"flat", "long"},
                         {"dissemination", "long"}, {"central", "short", true}, {"flat", "long", true}};
INSTANTIATE_TEST_SUITE_P(All, CollectivesTest,
                         testing::Combine(testing::Values(1, 2, 3, 5, 8), testing::ValuesIn(kWays)), name_of);

// Short broadcasts and scans are publish steps: members may be far behind, and posts must not be used again too early.
TEST(Tellings, MembersMayLagBehind) {
    setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
    // As notes, so that nobody writes to a dest that its owner may still be looking at.
    setenv("HEDDLE_BROADCAST", "inline", 1);
    setenv("HEDDLE_SCAN", "inline", 1);
    for (const char* way : {"central", "flat"}) {
        setenv("HEDDLE_BARRIER", way, 1);
        run_pes(4, [](int pe) {
            shmem_init();
            long* from = symmetric<long>(1);
            long* to = symmetric<long>(1);
            for (long i = 0; i < 400; ++i) {
                if (pe == 3 && i % 50 == 0)
                    std::this_thread::sleep_for(std::chrono::milliseconds(2));
                *from = i * 4 + pe;
                if (i % 3 == 0) {
                    shmem_long_sum_exscan(SHMEM_TEAM_WORLD, to, from, 1);
                    ASSERT_EQ(*to, i * 4 * pe + pe * (pe - 1) / 2);
                } else {
                    const int root = static_cast<int>(i % 2);
                    shmem_long_broadcast(SHMEM_TEAM_WORLD, to, from, 1, root);
                    ASSERT_EQ(*to, i * 4 + root);
                }
            }
            shmem_free(to);
            shmem_free(from);
            shmem_finalize();
        });
    }
}

using ThreadedTest = JobTest;

// Each thread of a PE has a team of its own, and all are in collectives at the same time.
TEST_P(ThreadedTest, TeamsOfThreadsDoNotMeet) {
    for (const char* name : {"HEDDLE_BARRIER", "HEDDLE_BROADCAST", "HEDDLE_COLLECT", "HEDDLE_FCOLLECT",
                             "HEDDLE_ALLTOALL", "HEDDLE_REDUCE", "HEDDLE_SCAN"})
        unsetenv(name);
    run_job([&](int) {
        constexpr size_t kMax = 600;
        std::vector<shmem_team_t> teams(static_cast<size_t>(n_threads()));
        std::vector<Buffers> buffers(teams.size());
        for (size_t i = 0; i < teams.size(); ++i) {
            const int n = n_pes(), start = i % 2 ? n - 1 : 0, stride = i % 2 ? -1 : 1;
            ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, n, nullptr, 0, &teams[i]), 0);
            buffers[i] = {symmetric<long>(kMax), symmetric<long>(kMax * static_cast<size_t>(n))};
        }
        run_threads([&](int thread) {
            const size_t mine = static_cast<size_t>(thread);
            for (long round = 1; round <= 3; ++round)
                for (const size_t nelems : {size_t{8}, kMax})
                    all_collectives(teams[mine], buffers[mine], nelems, round + thread);
        });
        for (size_t i = 0; i < teams.size(); ++i) {
            shmem_team_destroy(teams[i]);
            shmem_free(buffers[i].dest);
            shmem_free(buffers[i].source);
        }
    });
}

// Splits of different parents at the same time, by threads of the same PEs: segments and pooled teams change hands.
TEST_P(ThreadedTest, TeamsComeAndGoInEveryThread) {
    unsetenv("HEDDLE_BARRIER");
    run_job([&](int pe) {
        std::vector<shmem_team_t> parents(static_cast<size_t>(n_threads()));
        for (shmem_team_t& parent : parents)
            ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes(), nullptr, 0, &parent), 0);
        run_threads([&](int thread) {
            const shmem_team_t parent = parents[static_cast<size_t>(thread)];
            for (int round = 0; round < 30; ++round) {
                shmem_team_t row, column;
                ASSERT_EQ(shmem_team_split_2d(parent, 1 + (round + thread) % 4, nullptr, 0, &row, nullptr, 0, &column),
                          0);
                shmem_team_sync(row);
                shmem_team_sync(column);
                ASSERT_EQ(shmem_team_translate_pe(row, shmem_team_my_pe(row), SHMEM_TEAM_WORLD), pe);
                shmem_ctx_t ctx;
                ASSERT_EQ(shmem_team_create_ctx(row, SHMEM_CTX_SERIALIZED, &ctx), 0);
                ASSERT_NE(ctx, SHMEM_CTX_INVALID);
                shmem_team_destroy(row);  // and ctx with it
                shmem_team_destroy(column);
            }
        });
        shmem_barrier_all();
        for (shmem_team_t parent : parents) shmem_team_destroy(parent);
    });
}

HEDDLE_FOR_ALL_SHAPES(ThreadedTest);

TEST(Teams, ComeAndGo) {
    setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
    unsetenv("HEDDLE_BARRIER");
    run_pes(5, [](int pe) {
        shmem_init();
        for (int round = 0; round < 150; ++round) {
            shmem_team_t row, column, inner;
            ASSERT_EQ(shmem_team_split_2d(SHMEM_TEAM_WORLD, 1 + round % 6, nullptr, 0, &row, nullptr, 0, &column), 0);
            ASSERT_EQ(shmem_team_split_strided(row, 0, 1, 1, nullptr, 0, &inner), 0);
            shmem_team_sync(column);
            ASSERT_EQ(inner != SHMEM_TEAM_INVALID, shmem_team_my_pe(row) == 0);
            shmem_ctx_t ctx;
            ASSERT_EQ(shmem_team_create_ctx(column, 0, &ctx), 0);
            ASSERT_EQ(shmem_team_translate_pe(column, shmem_team_my_pe(column), SHMEM_TEAM_WORLD), pe);
            shmem_team_destroy(inner);
            shmem_team_destroy(row);
            shmem_team_destroy(column);  // and ctx with it
        }
        shmem_finalize();
    });
}

// Scans of many members with a core each go in blocks; the bits are those of adding up in the order of the members.
class ScansOfMany : public testing::TestWithParam<int> {};

TEST_P(ScansOfMany, AreSumsInTheOrderOfTheMembers) {
    setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
    constexpr size_t kMax = 30;  // doubles of a note
    const int n_pes = GetParam();
    run_pes(
        n_pes,
        [&](int pe) {
            shmem_init();
            double* const source = symmetric<double>(kMax);
            double* const dest = symmetric<double>(kMax);
            const auto value = [](int member, int round, size_t i) {
                return 1.0 / (member + 3) + 1e9 * ((member * 7 + round) % 5) + static_cast<double>(i);
            };
            for (int round = 0; round < 70; ++round) {  // beyond the depth of publish steps, twice
                const size_t count = 1 + static_cast<size_t>(round) % kMax;
                double before[kMax] = {}, upto[kMax];
                for (size_t i = 0; i < count; ++i) {
                    for (int member = 0; member < pe; ++member)
                        before[i] = member == 0 ? value(0, round, i) : before[i] + value(member, round, i);
                    upto[i] = pe == 0 ? value(0, round, i) : before[i] + value(pe, round, i);
                    source[i] = value(pe, round, i);
                }
                shmem_double_sum_exscan(SHMEM_TEAM_WORLD, dest, source, count);
                ASSERT_EQ(memcmp(dest, before, count * sizeof *dest), 0) << n_pes << " PEs, round " << round;
                shmem_double_sum_inscan(SHMEM_TEAM_WORLD, source, source, count);
                ASSERT_EQ(memcmp(source, upto, count * sizeof *dest), 0) << n_pes << " PEs, round " << round;
            }
            shmem_finalize();
        },
        n_pes);
}
INSTANTIATE_TEST_SUITE_P(Pes, ScansOfMany, testing::Values(15, 16, 17, 32, 33, 50), testing::PrintToStringParamName());

}  // namespace
}  // namespace heddle::test

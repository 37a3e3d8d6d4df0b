// Collectives one after the other without anything in between, over several teams, in every way to meet. dest and
// source are plain memory, so ThreadSanitizer reports a member that reads before it may, or is written to too early.
#include "job.h"

#include <chrono>
#include <string>
#include <tuple>

namespace heddle::test {
namespace {

struct Way {
    const char* meeting;
    const char* algorithms;  // "short" or "long" ways to move the data
};

class CollectivesTest : public testing::TestWithParam<std::tuple<int, Way>> {
  protected:
    void SetUp() override {
        const auto [n_pes, way] = GetParam();
        const bool as_short = std::string(way.algorithms) == "short";
        setenv("SHMEM_SYMMETRIC_SIZE", "8M", 1);
        setenv("HEDDLE_BARRIER", way.meeting, 1);
        setenv("HEDDLE_BROADCAST", as_short ? "note" : "pull", 1);
        for (const char* name : {"HEDDLE_COLLECT", "HEDDLE_FCOLLECT", "HEDDLE_ALLTOALL"})
            setenv(name, as_short ? "mail" : "push", 1);
        for (const char* name : {"HEDDLE_REDUCE", "HEDDLE_SCAN"}) setenv(name, as_short ? "mail" : "slices", 1);
    }
};

// The buffers of one team's collectives; dest has room for a part of each member.
struct Buffers {
    long* source;
    long* dest;
};

// Writes source, does every collective on team, and looks at dest; `round` makes the values differ.
void all_collectives(shmem_team_t team, const Buffers& at, size_t nelems, long round) {
    const int size = shmem_team_n_pes(team), me = shmem_team_my_pe(team);
    const auto value = [&](int member, size_t i) { return round * 1000 + member * 100 + static_cast<long>(i % 50); };
    const auto fill = [&] {
        shmem_team_sync(team);  // dest is ready on all
        for (size_t i = 0; i < nelems; ++i) at.source[i] = value(me, i);
    };
    fill();
    shmem_long_sum_reduce(team, at.dest, at.source, nelems);
    shmem_long_max_reduce(team, at.source, at.source, nelems);
    for (size_t i = 0; i < nelems; ++i) {
        ASSERT_EQ(at.dest[i], size * value(0, i) + 100L * size * (size - 1) / 2);
        ASSERT_EQ(at.source[i], value(size - 1, i));
    }
    fill();
    shmem_long_sum_inscan(team, at.dest, at.source, nelems);
    for (size_t i = 0; i < nelems; ++i) ASSERT_EQ(at.dest[i], (me + 1) * value(0, i) + 50L * me * (me + 1));
    for (int root = 0; root < size; ++root) {
        fill();
        shmem_long_broadcast(team, at.dest, at.source, nelems, root);
        for (size_t i = 0; i < nelems; ++i) ASSERT_EQ(at.dest[i], value(root, i));
    }
    fill();
    shmem_long_fcollect(team, at.dest, at.source, nelems);
    for (int member = 0; member < size; ++member)
        for (size_t i = 0; i < nelems; ++i)
            ASSERT_EQ(at.dest[static_cast<size_t>(member) * nelems + i], value(member, i));
    fill();
    shmem_long_collect(team, at.dest, at.source, nelems - static_cast<size_t>(me) % 2);
    size_t place = 0;
    for (int member = 0; member < size; ++member)
        for (size_t i = 0; i < nelems - static_cast<size_t>(member) % 2; ++i)
            ASSERT_EQ(at.dest[place++], value(member, i));
    fill();
    const size_t block = nelems / static_cast<size_t>(size);
    shmem_long_alltoall(team, at.dest, at.source, block);
    for (int member = 0; member < size; ++member)
        for (size_t i = 0; i < block; ++i)
            ASSERT_EQ(at.dest[static_cast<size_t>(member) * block + i],
                      value(member, static_cast<size_t>(me) * block + i));
}

TEST_P(CollectivesTest, FollowEachOther) {
    const int n_pes = std::get<0>(GetParam());
    run_pes(n_pes, [&](int pe) {
        shmem_init();
        constexpr size_t kMost = 1500;
        const size_t all = kMost * static_cast<size_t>(n_pes);
        const Buffers world = {symmetric<long>(kMost), symmetric<long>(all)};
        const Buffers half = {symmetric<long>(kMost), symmetric<long>(all)};
        shmem_team_t every_second, reversed;
        ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (n_pes + 1) / 2, nullptr, 0, &every_second), 0);
        ASSERT_EQ(every_second != SHMEM_TEAM_INVALID, pe % 2 == 0);
        ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, n_pes - 1, -1, n_pes, nullptr, 0, &reversed), 0);
        for (long round = 1; round <= 3; ++round) {
            for (const size_t nelems : {size_t{8}, size_t{30}, kMost}) {
                all_collectives(SHMEM_TEAM_WORLD, world, nelems, round);
                if (every_second != SHMEM_TEAM_INVALID)
                    all_collectives(every_second, half, nelems, round + 10);
                all_collectives(reversed, world, nelems, round + 20);
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
    return std::string(way.meeting) + "_" + way.algorithms + "_" + std::to_string(std::get<0>(info.param));
}

constexpr Way kWays[] = {
    {"central", "short"}, {"central", "long"}, {"flat", "short"}, {"flat", "long"}, {"dissemination", "long"}};
INSTANTIATE_TEST_SUITE_P(All, CollectivesTest,
                         testing::Combine(testing::Values(1, 2, 3, 5, 8), testing::ValuesIn(kWays)), name_of);

// Short broadcasts and scans are tellings: members may be far behind, and posts must not be used again too early.
TEST(Tellings, MembersMayLagBehind) {
    setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
    // As notes, so that nobody writes to a dest that its owner may still be looking at.
    setenv("HEDDLE_BROADCAST", "note", 1);
    setenv("HEDDLE_SCAN", "note", 1);
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

}  // namespace
}  // namespace heddle::test

// A job's profile: what PEs pass on adds up, in any order, and does not grow.
#include "profiling/counts.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

namespace heddle::profiling {
namespace {

Site make_site(const char* function, uint64_t linked, uint64_t calls, uint64_t time, int pe) {
    Site site;
    snprintf(site.function.data(), site.function.size(), "%s", function);
    snprintf(site.module.data(), site.module.size(), "prog");
    site.linked = linked;
    site.pes = 1;
    site.counts.calls = calls;
    site.counts.time = time;
    site.time.add(time, pe);
    site.calls.add(calls, pe);
    return site;
}

std::unique_ptr<JobProfile> profile_of(int pe) {
    auto made = std::make_unique<JobProfile>();
    made->pes = 1;
    made->wall.add(1000, pe);
    made->add(make_site("shmem_quiet", 16, 10 + static_cast<uint64_t>(pe), 100 * static_cast<uint64_t>(pe), pe));
    if (pe % 2 == 0)
        made->add(make_site("shmem_put", 32, 5, 7, pe));
    made->pairs[static_cast<size_t>(pe % kGroups)][0] = {1, 8};
    return made;
}

TEST(Counts, ProfilesAddUpInAnyOrder) {
    constexpr int kPes = 21;
    std::vector<int> order(kPes);
    for (int pe = 0; pe < kPes; ++pe) order[static_cast<size_t>(pe)] = pe;
    std::mt19937 random(testing::UnitTest::GetInstance()->random_seed());
    for (int round = 0; round < 5; ++round) {
        std::shuffle(order.begin(), order.end(), random);
        const auto all = std::make_unique<JobProfile>();
        for (const int pe : order) all->add(*profile_of(pe));
        ASSERT_EQ(all->pes, 21u);
        ASSERT_EQ(all->n_sites, 2u);
        const Site& quiet = all->sites[all->sites[0].linked == 16 ? 0 : 1];
        EXPECT_EQ(quiet.pes, 21u);
        EXPECT_EQ(quiet.counts.calls, 21u * 10 + 210);
        EXPECT_EQ(quiet.time.sum, 21000u);
        EXPECT_EQ(quiet.time.least, 0u);
        EXPECT_EQ(quiet.time.least_pe, 0);
        EXPECT_EQ(quiet.time.most, 2000u);
        EXPECT_EQ(quiet.time.most_pe, 20);
        const Site& put = all->sites[all->sites[0].linked == 16 ? 1 : 0];
        EXPECT_EQ(put.pes, 11u);
        EXPECT_EQ(all->wall.sum, 21000u);
        for (size_t from = 0; from < 21; ++from) EXPECT_EQ(all->pairs[from][0].bytes, 8u);
    }
}

TEST(Counts, PlacesWithoutRoomAreLostAndSaid) {
    const auto job = std::make_unique<JobProfile>();
    for (uint64_t i = 0; i < JobProfile::kMostSites + 10; ++i) job->add(make_site("shmem_put", i, 3, 1, 0));
    EXPECT_EQ(job->n_sites, JobProfile::kMostSites);
    EXPECT_EQ(job->lost_calls, 30u);
    job->add(make_site("shmem_put", 0, 4, 1, 1));  // a place that is there
    EXPECT_EQ(job->lost_calls, 30u);
    EXPECT_EQ(job->sites[0].counts.calls, 7u);
}

TEST(Counts, CallsOfOneLineInTwoContextsOrKindsAreApart) {
    const Site one = make_site("shmem_quiet", 16, 1, 1, 0);
    Site other = one;
    other.context = 1;
    EXPECT_FALSE(one.is_alike(other));
    other = one;
    other.kind = Kind::kQuiet;
    EXPECT_FALSE(one.is_at_place_of(other));
    other = one;
    other.linked = 17;
    EXPECT_TRUE(one.is_alike(other));
    EXPECT_FALSE(one.is_at_place_of(other));
}

TEST(Counts, GroupsHoldAllPes) {
    for (const int n_pes : {1, 2, 63, 64, 65, 127, 128, 129, 1000, 25600000}) {
        const int shift = group_shift(n_pes);
        EXPECT_LT((n_pes - 1) >> shift, kGroups) << n_pes;
        EXPECT_EQ(groups_of(static_cast<uint64_t>(n_pes)), ((n_pes - 1) >> shift) + 1) << n_pes;
        EXPECT_TRUE(n_pes > kGroups || shift == 0) << n_pes;
    }
}

TEST(Counts, TimeOfAllFollowsFromThoseThatWereTimed) {
    Counts counts;
    EXPECT_EQ(counts.time_of_all(), 0u);
    counts.calls = 1000;
    counts.timed_calls = 10;
    counts.time = 50;
    EXPECT_EQ(counts.time_of_all(), 5000u);
    counts.exact_calls = 400;  // long ones, of which each counts once
    counts.exact_time = 1000000;
    EXPECT_EQ(counts.time_of_all(), 1000000u + 600 * 5);
}

}  // namespace
}  // namespace heddle::profiling

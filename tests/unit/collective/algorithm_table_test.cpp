// The table of algorithms: every operation has one of its own for every size, larger data never goes back to a way for
// smaller data, and a forced one is taken wherever the data fits.
#include "collective/algorithm_table.h"

#include "base/settings.h"
#include "team/segment_table.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <climits>
#include <cstdlib>
#include <string>
#include <vector>

namespace heddle::collective {
namespace {

using enum Algorithm;

struct Known {
    Operation operation;
    const char* setting;
    std::vector<std::pair<const char*, Algorithm>> words;
};
const Known kKnown[] = {
    {Operation::kBroadcast, "HEDDLE_BROADCAST", {{"inline", kInline}, {"push", kPush}, {"pull", kPull}}},
    {Operation::kCollect, "HEDDLE_COLLECT", {{"bounce", kBounce}, {"push", kPush}}},
    {Operation::kFcollect, "HEDDLE_FCOLLECT", {{"inline", kInline}, {"bounce", kBounce}, {"push", kPush}}},
    {Operation::kAlltoall, "HEDDLE_ALLTOALL", {{"inline", kInline}, {"bounce", kBounce}, {"push", kPush}}},
    {Operation::kReduce, "HEDDLE_REDUCE", {{"bounce", kBounce}, {"sliced", kSliced}}},
    {Operation::kScan, "HEDDLE_SCAN", {{"inline", kInline}, {"bounce", kBounce}, {"sliced", kSliced}}},
};
constexpr int kSizes[] = {1, 2, 3, 8, 9, 4096, INT_MAX};

size_t max_bytes(Algorithm algorithm) {
    return algorithm == kInline ? team::kInlineBytes : algorithm == kBounce ? team::kBounceBytes : SIZE_MAX;
}

// Every power of two, what inline data and bounce buffers hold, and the neighbours of all of them.
std::vector<size_t> boundaries() {
    std::vector<size_t> all = {0, SIZE_MAX - 1, SIZE_MAX};
    for (size_t at : {team::kInlineBytes, team::kBounceBytes}) all.insert(all.end(), {at - 1, at, at + 1});
    for (int bit = 0; bit < 63; ++bit)
        for (size_t around : {0, 1, 2}) all.push_back((size_t{1} << bit) - 1 + around);
    std::sort(all.begin(), all.end());
    return all;
}

class SelectTest : public testing::TestWithParam<bool> {
  protected:
    void SetUp() override { team::team_segments.oversubscribed = GetParam(); }
    void TearDown() override {
        team::team_segments.oversubscribed = false;
        base::settings = {};
        for (const Known& known : kKnown) unsetenv(known.setting);
    }

    // As init does it.
    static void set(const char* name, const char* word) {
        setenv(name, word, 1);
        char error[256];
        ASSERT_TRUE(base::read_settings(&base::settings, error, sizeof error)) << error;
    }
};

TEST_P(SelectTest, EverySizeHasAWayThatFits) {
    for (const Known& known : kKnown) {
        for (int size : kSizes) {
            for (size_t bytes : boundaries()) {
                const Algorithm algorithm = select(known.operation, bytes, size);
                EXPECT_LE(bytes, max_bytes(algorithm)) << known.setting << " " << size;
                EXPECT_TRUE(std::any_of(known.words.begin(), known.words.end(),
                                        [&](const auto& word) { return word.second == algorithm; }))
                    << known.setting << " has no such algorithm: " << static_cast<int>(algorithm);
            }
        }
    }
}

TEST_P(SelectTest, LargerDataNeverGoesBackToAWayForSmaller) {
    for (const Known& known : kKnown) {
        for (int size : kSizes) {
            Algorithm last = kInline;
            for (size_t bytes : boundaries()) {
                const Algorithm algorithm = select(known.operation, bytes, size);
                EXPECT_GE(algorithm, last) << known.setting << " " << size << " members, " << bytes << " bytes";
                last = algorithm;
            }
        }
    }
}

// A word that is added to settings.def is added to kKnown, too.
TEST_P(SelectTest, EveryWordOfTheSettingsIsKnown) {
    base::SettingRow rows[base::kMaxSettings];
    const size_t count = base::setting_rows(rows, std::size(rows));
    for (const Known& known : kKnown) {
        std::string words = "auto";
        for (const auto& word : known.words) words.append("|").append(word.first);
        const auto* row =
            std::find_if(rows, rows + count, [&](const auto& each) { return std::string(each.name) == known.setting; });
        ASSERT_NE(row, rows + count) << known.setting;
        EXPECT_EQ(row->fallback, words) << known.setting;
    }
}

TEST_P(SelectTest, WhatIsForcedIsTakenWhereItFits) {
    for (const Known& known : kKnown) {
        for (const auto& [word, algorithm] : known.words) {
            for (int size : kSizes) {
                for (size_t bytes : boundaries()) {
                    set(known.setting, "auto");
                    const Algorithm chosen = select(known.operation, bytes, size);
                    set(known.setting, word);
                    EXPECT_EQ(select(known.operation, bytes, size), bytes <= max_bytes(algorithm) ? algorithm : chosen)
                        << known.setting << "=" << word << ", " << bytes << " bytes, " << size << " members";
                }
            }
        }
        unsetenv(known.setting);
    }
}

TEST_P(SelectTest, AForcedOneIsThatOperationsAlone) {
    std::vector<Algorithm> before;
    for (const Known& known : kKnown) before.push_back(select(known.operation, 100, 4));
    for (size_t forced = 0; forced < std::size(kKnown); ++forced) {
        set(kKnown[forced].setting, kKnown[forced].words.back().first);
        for (size_t other = 0; other < std::size(kKnown); ++other) {
            if (other != forced) {
                EXPECT_EQ(select(kKnown[other].operation, 100, 4), before[other])
                    << kKnown[forced].setting << " changes " << kKnown[other].setting;
            }
        }
        set(kKnown[forced].setting, "auto");
    }
}

INSTANTIATE_TEST_SUITE_P(All, SelectTest, testing::Bool(),
                         [](const auto& parameters) { return parameters.param ? "oversubscribed" : "a_core_each"; });

// As many threads as there is room for share, each at least 16 KiB; a setting is stronger.
TEST(SelectSharersTest, TakesThreadsThatHaveRoomAndWork) {
    constexpr size_t kKib = 1024;
    const auto two = [] { return 2; };
    const auto many = [] { return 64; };
    EXPECT_EQ(select_sharers(SIZE_MAX, 4, two), 2);
    EXPECT_EQ(select_sharers(SIZE_MAX, 4, many), 4);
    EXPECT_EQ(select_sharers(SIZE_MAX, 4, [] { return 1; }), 1);
    EXPECT_EQ(select_sharers(64 * kKib, 8, many), 4);
    EXPECT_EQ(select_sharers(64 * kKib - 1, 8, many), 3);
    EXPECT_EQ(select_sharers(32 * kKib - 1, 8, many), 1);
    EXPECT_EQ(select_sharers(0, 8, many), 1);
    EXPECT_EQ(select_shares(SIZE_MAX, 4), 4);
    EXPECT_EQ(select_shares(384 * kKib, 4), 3);
    EXPECT_EQ(select_shares(256 * kKib - 1, 4), 1);
    EXPECT_EQ(select_shares(0, 4), 1);
    base::settings.collective_threads = base::CollectiveThreads::kAll;
    EXPECT_EQ(select_shares(1, 8), 8);
    EXPECT_EQ(select_shares(0, 8), 1);
    EXPECT_EQ(select_sharers(1, 8, two), 8);
    EXPECT_EQ(select_sharers(0, 8, two), 1);  // nothing to share
    base::settings.collective_threads = base::CollectiveThreads::kOne;
    EXPECT_EQ(select_sharers(SIZE_MAX, 8, many), 1);
    EXPECT_EQ(select_shares(SIZE_MAX, 8), 1);
    base::settings = {};
}

}  // namespace
}  // namespace heddle::collective

// The order of a reduction: which calls have the tree, and that combine_as_tree gives the tree's bits for each number of
// members.
#include "collective/reduction_order.h"

#include <gtest/gtest.h>
#include <cstdint>
#include <random>
#include <vector>

namespace heddle::collective {
namespace {

// A kernel whose result changes with every change of order.
void mix(void* dest, const void* a, const void* b, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        const uint64_t left = static_cast<const uint64_t*>(a)[i], right = static_cast<const uint64_t*>(b)[i];
        const uint64_t x = left * 0xbf58476d1ce4e5b9 + (right ^ right >> 29) * 0x94d049bb133111eb + 1;
        static_cast<uint64_t*>(dest)[i] = x ^ x >> 31;
    }
}

using Values = std::vector<uint64_t>;

Values right_value(const std::vector<Values>& parts, size_t first, size_t count) {
    if (count == 1)
        return parts[first];
    size_t half = 1;
    while (2 * half < count) half *= 2;
    const Values left = right_value(parts, first, half), right = right_value(parts, first + half, count - half);
    Values both(left.size());
    mix(both.data(), left.data(), right.data(), left.size());
    return both;
}

TEST(CombineAsTree, HasTheTreesBits) {
    const unsigned seed = std::random_device()();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    for (const size_t nelems : {size_t{1}, size_t{3}, size_t{128}, size_t{129}, size_t{300}}) {
        std::vector<Values> parts;
        for (int size = 1; size <= 140; ++size) {
            parts.emplace_back();
            for (size_t i = 0; i < nelems; ++i) parts.back().push_back(random());
            Values got(nelems);
            combine_as_tree(
                mix, reinterpret_cast<char*>(got.data()), size,
                [&](int i) { return reinterpret_cast<const char*>(parts[static_cast<size_t>(i)].data()); }, nelems,
                sizeof(uint64_t));
            ASSERT_EQ(got, right_value(parts, 0, parts.size())) << size << " members, " << nelems << " elements";
        }
    }
}

TEST(ReductionOrder, IsATreeForShortRealsOfManyMembers) {
    constexpr int kSerial = 64;
    char error[256] = "";
    ASSERT_TRUE(base::read_settings(&base::settings, error, sizeof error)) << error;
    for (const Kind kind :
         {Kind::kFloat, Kind::kDouble, Kind::kLongDouble, Kind::kComplexFloat, Kind::kComplexDouble}) {
        EXPECT_FALSE(has_any_order(kind));
        EXPECT_FALSE(is_tree_order(kind, kSerial, 8));
        EXPECT_TRUE(is_tree_order(kind, kSerial + 1, 8));
        EXPECT_TRUE(is_tree_order(kind, 1000000, kMaxTreeBytes));
        EXPECT_FALSE(is_tree_order(kind, 1000000, kMaxTreeBytes + 1));
    }
    for (int kind = 0; kind <= static_cast<int>(Kind::kU64); ++kind) {
        EXPECT_TRUE(has_any_order(static_cast<Kind>(kind)));
        EXPECT_FALSE(is_tree_order(static_cast<Kind>(kind), 1000000, 8));
    }
}

}  // namespace
}  // namespace heddle::collective

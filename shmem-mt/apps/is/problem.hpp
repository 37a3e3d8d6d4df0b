// The problem of the NAS Parallel Benchmark IS, as its report specifies it: keys that are sums of four random numbers,
// two of them changed in each iteration, and the ranks that five keys must have then. A key's rank is the number of
// smaller keys.
#pragma once

#include <cstdint>

#include "apps/common/npb_random.hpp"
#include "apps/common/range.hpp"

namespace shmem_mt {

constexpr int kIsIterations = 10;
constexpr int kIsTested = 5;

// The key drawn as number `index` has rank + slope * (iteration - lag): of the two keys that change, one goes below it
// or one above.
struct IsTested {
    long index, rank;
    int slope, lag;
};

struct IsClass {
    const char* name;
    int log2_keys;
    int log2_range;  // keys lie below that power of two
    IsTested tested[kIsTested];

    long keys() const { return 1L << log2_keys; }
    long range() const { return 1L << log2_range; }
};

constexpr IsClass kIsClasses[] = {
    {"S",
     16,
     11,
     {{48427, 0, 1, 0}, {17148, 18, 1, 0}, {23627, 346, 1, 0}, {62548, 64917, -1, 0}, {4431, 65463, -1, 0}}},
    {"W",
     20,
     16,
     {{357773, 1249, 1, 2},
      {934767, 11698, 1, 2},
      {875723, 1039987, -1, 0},
      {898999, 1043896, -1, 0},
      {404505, 1048018, -1, 0}}},
    {"A",
     23,
     19,
     {{2112377, 104, 1, 1},
      {662041, 17523, 1, 1},
      {5336171, 123928, 1, 1},
      {3642833, 8288932, -1, 1},
      {4250760, 8388264, -1, 1}}},
    {"B",
     25,
     21,
     {{41869, 33422937, -1, 0},
      {812306, 10244, 1, 0},
      {5102857, 59149, 1, 0},
      {18232239, 33135281, -1, 0},
      {26860214, 99, 1, 0}}},
    {"C",
     27,
     23,
     {{44172927, 61147, 1, 0},
      {72999161, 882988, 1, 0},
      {74326391, 266290, 1, 0},
      {129606274, 133997595, -1, 0},
      {21736814, 133525895, -1, 0}}},
};

inline long right_rank(const IsTested& tested, int iteration) {
    return tested.rank + tested.slope * (iteration - tested.lag);
}

// The keys with these numbers.
inline void draw_keys(const IsClass& problem, const Range& numbers, int32_t* keys) {
    NpbRandom random;
    random.skip(4 * static_cast<uint64_t>(numbers.begin));
    const double quarter = static_cast<double>(problem.range() / 4);
    for (long i = numbers.begin; i < numbers.end; ++i) {
        double sum = 0;
        for (int draw = 0; draw < 4; ++draw) sum += random.next();
        keys[i - numbers.begin] = static_cast<int32_t>(quarter * sum);
    }
}

// Calls set(number, key) for what changes before that iteration, the first being 1.
template <class Set>
void change_keys(const IsClass& problem, int iteration, Set&& set) {
    set(static_cast<long>(iteration), static_cast<int32_t>(iteration));
    set(static_cast<long>(iteration) + kIsIterations, static_cast<int32_t>(problem.range() - iteration));
}

}  // namespace shmem_mt

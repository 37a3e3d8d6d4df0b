// More active sets and teams than a small table would hold: every active set of the job, each used; recursive halving
// by blocks and by strides; teams of one PE without limit, pairs by the hundred, all alive at once and used.
#include "check.h"

#include <vector>

using namespace conformance;

namespace {

constexpr int kMaxPes = 64;
long psync[SHMEM_REDUCE_SYNC_SIZE > SHMEM_COLLECT_SYNC_SIZE ? SHMEM_REDUCE_SYNC_SIZE : SHMEM_COLLECT_SYNC_SIZE];
int work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
int mine, sum;
int all[kMaxPes];

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

// The members sum their numbers, and so find whether it is they who met.
void use_active_set(int start, int log_stride, int size) {
    if (pe < start || (pe - start) % (1 << log_stride) != 0 || (pe - start) >> log_stride >= size)
        return;
    mine = pe;
    sum = -1;
    shmem_sync(start, log_stride, size, psync);  // sum is mine until all are here
    shmem_int_sum_to_all(&sum, &mine, 1, start, log_stride, size, work, psync);
    CHECK_EQ(sum, size * start + ((size - 1) * size / 2 << log_stride));
    shmem_barrier(start, log_stride, size, psync);
}

// More than 256 with 24 PEs.
void every_active_set() {
    subject = "every active set";
    for (int log_stride = 0; log_stride == 0 || 1 << log_stride < n_pes; ++log_stride)
        for (int start = 0; start < n_pes; ++start)
            for (int size = 1; start + ((size - 1) << log_stride) < n_pes; ++size)
                use_active_set(start, log_stride, size);
}

void halving() {
    subject = "recursive halving";
    for (int start = 0, size = n_pes; size > 1;) {  // by blocks
        use_active_set(start, 0, size);
        const int lower = (size + 1) / 2;
        const bool is_upper = pe >= start + lower;
        start += is_upper ? lower : 0;
        size = is_upper ? size - lower : lower;
    }
    for (int log_stride = 0; 1 << log_stride < n_pes; ++log_stride) {  // by strides
        const int start = pe % (1 << log_stride);
        use_active_set(start, log_stride, (n_pes - start + (1 << log_stride) - 1) >> log_stride);
    }
}

void use_team(shmem_team_t team, int expected) {
    mine = pe;
    CHECK_EQ(shmem_int_sum_reduce(team, &sum, &mine, 1), 0);
    CHECK_EQ(sum, expected);
}

// Each row is one PE, and takes no room.
void teams_of_one() {
    subject = "teams of one PE";
    constexpr int kTeams = 1500;
    std::vector<shmem_team_t> alone;
    for (int i = 0; i < kTeams; ++i) {
        shmem_team_t column = SHMEM_TEAM_INVALID;
        if (i % 100 == 0) {
            alone.push_back(SHMEM_TEAM_INVALID);
            CHECK_EQ(shmem_team_split_2d(SHMEM_TEAM_WORLD, 1, nullptr, 0, &alone.back(), nullptr, 0, &column), 0);
            CHECK_EQ(shmem_team_n_pes(column), n_pes);
            shmem_team_destroy(column);
        } else {
            shmem_team_t one;
            CHECK_EQ(shmem_team_split_strided(alone[0], 0, 1, 1, nullptr, 0, &one), 0);
            alone.push_back(one);
        }
        CHECK_EQ(shmem_team_n_pes(alone.back()), 1);
    }
    for (shmem_team_t team : alone) {
        use_team(team, pe);
        CHECK_EQ(shmem_int_fcollect(team, all, &mine, 1), 0);
        CHECK_EQ(all[0], pe);
        shmem_team_destroy(team);
    }
}

void pairs() {
    subject = "pairs";
    const int times = n_pes > 1 ? 40 : 0;
    std::vector<shmem_team_t> teams;
    for (int i = 0; i < times; ++i) {
        shmem_team_t pair, column;
        CHECK_EQ(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, nullptr, 0, &pair, nullptr, 0, &column), 0);
        shmem_team_destroy(column);
        teams.push_back(pair);
    }
    for (shmem_team_t team : teams) {
        const int first = pe / 2 * 2;
        use_team(team, first + 1 < n_pes ? 2 * first + 1 : first);
        shmem_team_destroy(team);
    }
}

// Ends the job with a message (test_jobs.py).
void too_many() {
    shmem_team_t team;
    int made = 0;
    while (shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, nullptr, 0, &team) == 0) CHECK(++made < 5000);
    use_active_set(0, 0, n_pes);
}

}  // namespace

int main() {
    start("many_sets");
    CHECK(n_pes <= kMaxPes);
    for (long& word : psync) word = SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    if (number("HEDDLE_TEST_TOO_MANY", 0))
        too_many();
    every_active_set();
    halving();
    teams_of_one();
    pairs();
    return finish();
}

// Several posted collectives of one team are under way beside each other: a later one completes while an earlier one
// waits, for a member that is not in the library; teams that come and go in the same memory, with as many posted
// collectives as there are instances and more, of which some teams use few.
#include "check.h"

#include <shmemx.h>
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

using namespace conformance;

namespace {

constexpr int kTogether = 2;  // as many as the library says that it carries out beside each other
constexpr int kMost = 11, kWords = 300;

uint64_t done_by[64];  // at PE 0: who has completed everything
uint64_t sums[kMost], ones[kMost];
uint64_t words[kMost][kWords], offered[kMost][kWords];

uint64_t sum_of(int size, uint64_t of) {
    const auto n = static_cast<uint64_t>(size);
    return n * of + n * (n - 1) / 2;
}

// PE 0 posts what the others post, and then does not come back to the library until they are done. So it has to have
// done its part of the last one, too, when it returned from posting: with one instance that waited for the first one.
void an_absent_member_holds_up_nobody() {
    subject = "posted collectives beside each other";
    std::fill(done_by, done_by + 64, 0);
    shmem_barrier_all();
    shmemx_request_t requests[kTogether] = {};
    CHECK_EQ(shmemx_team_sync_nbe(SHMEM_TEAM_WORLD, &requests[0]), 0);
    for (int i = 1; i < kTogether; ++i) {
        ones[i] = static_cast<uint64_t>(pe + i);
        CHECK_EQ(shmemx_uint64_sum_reduce_nbe(SHMEM_TEAM_WORLD, &sums[i], &ones[i], 1, &requests[i]), 0);
    }
    if (pe == 0) {
        const auto begin = std::chrono::steady_clock::now();
        for (int other = 1; other < n_pes; ++other)
            while (__atomic_load_n(&done_by[other], __ATOMIC_ACQUIRE) == 0)
                if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(60))
                    fail(__FILE__, __LINE__, "PE %d waits for what PE 0 has posted already", other);
    } else {
        for (int i = kTogether; i-- > 0;) shmemx_request_wait(&requests[i]);  // the last one first
        shmem_uint64_p(&done_by[pe], 1, 0);
    }
    for (shmemx_request_t& request : requests) shmemx_request_wait(&request);
    for (int i = 1; i < kTogether; ++i) CHECK_EQ(sums[i], sum_of(n_pes, static_cast<uint64_t>(i)));
    shmem_barrier_all();
}

// The deprecated active set of all PEs is another team than the world and its instances.
void an_active_set_is_no_instance() {
    static long sync[SHMEM_BARRIER_SYNC_SIZE];
    subject = "an active set beside posted collectives";
    for (long& word : sync) word = SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    for (int i = 0; i < 3; ++i) {
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
        CHECK_EQ(shmemx_team_sync_nbe(SHMEM_TEAM_WORLD, &request), 0);
        shmem_barrier(0, 0, n_pes, sync);
        shmemx_request_wait(&request);
    }
}

// The members of a team post `count` collectives, with blocking ones between, and wait in an order of their own.
void post_on(shmem_team_t team, int count, uint64_t round) {
    const int me = shmem_team_my_pe(team), size = shmem_team_n_pes(team);
    Random shared = random_for(round, static_cast<uint64_t>(count), static_cast<uint64_t>(size));
    Random own = random_for(round, static_cast<uint64_t>(pe), 77);
    std::vector<shmemx_request_t> requests(static_cast<size_t>(count), SHMEMX_REQUEST_NULL);
    std::vector<int> kinds, roots;
    for (int i = 0; i < count; ++i) {
        const int kind = kinds.emplace_back(static_cast<int>(shared.below(4)));
        const int root = roots.emplace_back(static_cast<int>(shared.below(static_cast<size_t>(size))));
        shmemx_request_t* const request = &requests[static_cast<size_t>(i)];
        ones[i] = round + static_cast<uint64_t>(i + me);
        for (int k = 0; k < kWords; ++k) offered[i][k] = round * 1000 + static_cast<uint64_t>(i * 31 + root + k);
        if (kind == 0)
            CHECK_EQ(shmemx_team_barrier_nbe(team, request), 0);
        else if (kind == 1)
            CHECK_EQ(shmemx_uint64_sum_reduce_nbe(team, &sums[i], &ones[i], 1, request), 0);
        else if (kind == 2)
            CHECK_EQ(shmemx_uint64_max_reduce_nbe(team, words[i], offered[i], kWords, request), 0);
        else
            CHECK_EQ(shmemx_uint64_broadcast_nbe(team, words[i], offered[i], kWords, root, request), 0);
        if (shared.below(9) == 0)
            CHECK_EQ(shmem_team_sync(team), 0);  // behind all that were posted
        if (own.below(4) == 0)
            shmemx_request_wait(&requests[own.below(static_cast<size_t>(i + 1))]);
    }
    for (size_t i = requests.size(); i-- > 0;) shmemx_request_wait(&requests[i]);
    for (int i = 0; i < count; ++i) {
        const size_t at = static_cast<size_t>(i);
        if (kinds[at] == 1)
            CHECK_EQ(sums[i], sum_of(size, round + static_cast<uint64_t>(i)));
        if (kinds[at] == 2 || (kinds[at] == 3 && me != roots[at]))
            CHECK_BYTES("words", words[i], offered[i], sizeof words[i]);
    }
    CHECK_EQ(shmem_team_sync(team), 0);  // nobody reads any more
}

// Teams of several sizes take and leave the same segments. What a larger one left in an instance, or one that used more
// instances, is gone.
void teams_that_come_and_go() {
    subject = "posted collectives on teams that come and go";
    for (uint64_t round = 1; round <= 40; ++round) {
        Random shared = random_for(round, 5);
        const int size = 1 + static_cast<int>(shared.below(static_cast<size_t>(n_pes)));
        const int first = static_cast<int>(shared.below(static_cast<size_t>(n_pes - size + 1)));
        const int counts[] = {1 + static_cast<int>(shared.below(kMost)), 1 + static_cast<int>(shared.below(3))};
        shmem_team_t team = SHMEM_TEAM_INVALID;
        CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, first, 1, size, nullptr, 0, &team), 0);
        CHECK_EQ(team != SHMEM_TEAM_INVALID, pe >= first && pe < first + size);
        if (team != SHMEM_TEAM_INVALID) {
            for (const int count : counts) post_on(team, count, round);
            shmem_team_destroy(team);
        }
        shmem_sync_all();  // before, somebody's words may be those of the team
        post_on(SHMEM_TEAM_WORLD, counts[1], round + 1000);
    }
}

}  // namespace

int main() {
    start("team_instances");
    // Under `manual` alone nobody but PE 0 itself can do its part, and only on a node is all of it done in posting.
    if (number("HEDDLE_TEST_ABSENT", 0) != 0)
        an_absent_member_holds_up_nobody();
    an_active_set_is_no_instance();
    teams_that_come_and_go();
    start_again();
    an_active_set_is_no_instance();
    teams_that_come_and_go();
    return finish();
}

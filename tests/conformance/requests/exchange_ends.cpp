// The ends of exchanges: source may be written as soon as one is complete, also on a member that receives nothing while
// its data is still on its way. Block sizes are those at which the ways to other nodes change; lists and blocks are
// empty, too. Between nodes of one PE, short exchanges leave no work to another thread where a core is free.
#include "check.h"

#include <shmemx.h>

#include <dirent.h>
#include <unistd.h>
#include <cstdlib>
#include <vector>

using namespace conformance;

namespace {

constexpr size_t kLong = 4 << 20;

enum Way { kBlocking, kPosted, kStarted, kWays };

// The neighbors of a call, and its lists.
struct Lists {
    std::vector<int> ranks;
    std::vector<size_t> in, to, out, from;

    void add(int rank, size_t incoming, size_t at, size_t outgoing, size_t out_of) {
        ranks.push_back(rank);
        in.push_back(incoming), to.push_back(at), out.push_back(outgoing), from.push_back(out_of);
    }
    void exchange(unsigned char* dest, const unsigned char* source, shmemx_request_t* req) const {
        CHECK_EQ(req ? shmemx_neighbor_alltoallv_nbe(SHMEM_TEAM_WORLD, ranks.data(), ranks.size(), dest, in.data(),
                                                     to.data(), source, out.data(), from.data(), 1, req)
                     : shmemx_neighbor_alltoallv(SHMEM_TEAM_WORLD, ranks.data(), ranks.size(), dest, in.data(),
                                                 to.data(), source, out.data(), from.data(), 1),
                 0);
    }
};

// Each PE sends to the next one, but the last: nobody waits for what it has not sent. Each start overwrites the source
// at once.
void sources_may_be_written(unsigned char* dest, unsigned char* source, Way way, size_t bytes, int times) {
    subject = "source behind an exchange of one direction";
    Lists lists;
    if (pe > 0)
        lists.add(pe - 1, bytes, 0, 0, SIZE_MAX);  // offsets of nothing are not looked at
    if (pe < n_pes - 1)
        lists.add(pe + 1, 0, SIZE_MAX, bytes, 0);
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    shmemx_plan_t plan = SHMEMX_PLAN_NULL;
    if (way == kStarted) {
        shmemx_plan_begin(&plan);
        lists.exchange(dest, source, &request);
        shmemx_plan_end(&plan);
    }
    std::vector<unsigned char> expected(bytes);
    for (int i = 0; i < times; ++i) {
        random_for(bytes, static_cast<uint64_t>(i), static_cast<uint64_t>(pe)).fill(source, bytes);
        if (way == kStarted)
            CHECK_EQ(shmemx_request_start(plan, &request), 0);
        else
            lists.exchange(dest, source, way == kPosted ? &request : nullptr);
        shmemx_request_wait(&request);
        memset(source, 0xee, bytes);
        random_for(bytes, static_cast<uint64_t>(i), static_cast<uint64_t>(pe - 1)).fill(expected.data(), bytes);
        if (pe > 0)
            CHECK_BYTES("dest", dest, expected.data(), bytes);
    }
    shmemx_plan_free(&plan);
    shmem_barrier_all();
}

int count_threads() {
    DIR* const threads = opendir("/proc/self/task");
    CHECK(threads);
    int count = 0;
    while (const dirent* const entry = readdir(threads)) count += entry->d_name[0] != '.';
    closedir(threads);
    return count;
}

// To wake a thread takes longer than to send a few bytes. While one PE naps, the others sleep: a core is free.
void short_ones_wake_no_thread(unsigned char* dest, unsigned char* source) {
    subject = "threads of short exchanges";
    Lists lists;
    lists.add((pe + 1) % n_pes, 8, 0, 8, 0);
    if (n_pes > 2)
        lists.add((pe + n_pes - 1) % n_pes, 8, 8, 8, 8);
    lists.exchange(dest, source, nullptr);
    const int before = count_threads();
    for (int i = 0; i < 60; ++i) {
        if (pe == i % n_pes)
            usleep(2000);
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
        lists.exchange(dest, source, &request);
        shmemx_request_wait(&request);
    }
    CHECK_EQ(count_threads(), before);
    shmem_barrier_all();
}

}  // namespace

int main() {
    start("exchange_ends");
    auto* const dest = static_cast<unsigned char*>(shmem_malloc(kLong));
    auto* const source = static_cast<unsigned char*>(shmem_malloc(kLong));
    CHECK(dest && source);
    if (number("HEDDLE_TEST_NO_THREAD", 0))
        short_ones_wake_no_thread(dest, source);
    for (int way = 0; way < kWays; ++way)
        for (const size_t bytes :
             {size_t{0}, size_t{1}, size_t{16383}, size_t{16384}, size_t{16385}, size_t{32767}, size_t{65537}, kLong})
            sources_may_be_written(dest, source, static_cast<Way>(way), bytes, bytes == kLong ? 5 : 20);
    Lists none;
    none.exchange(nullptr, nullptr, nullptr);
    shmem_free(source);
    shmem_free(dest);
    return finish();
}

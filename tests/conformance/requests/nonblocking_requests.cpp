// Requests that hold collectives: beside puts, gets and atomics; merged; looked at in groups; between begin and end;
// waited for by other threads than posted them; SHARED ones to which threads post at once. What a barrier that is
// posted makes complete, and what a sync orders. Runs under every HEDDLE_PROGRESS.
#include "check.h"
#include "completion.h"
#include "nonblocking_collectives.h"

#include <heddle/hot_path.h>
#include <sched.h>
#include <algorithm>
#include <barrier>
#include <memory>
#include <thread>

using namespace conformance;

namespace {

constexpr size_t kArenaBytes = 8 << 20, kLargeBytes = HEDDLE_LARGE_BYTES + 999, kThreads = 3;
unsigned char *landing, *offered;  // kLargeBytes each: where the previous PE puts, and what others get
uint64_t counter, fetched_from;
std::vector<Group> groups;
std::vector<unsigned char> large;  // of this PE, not symmetric
int next, previous;

Arena& heap(size_t thread = 0) {
    static Arena arenas[kThreads] = {{static_cast<unsigned char*>(shmem_malloc(kArenaBytes)), kArenaBytes},
                                     {static_cast<unsigned char*>(shmem_malloc(kArenaBytes)), kArenaBytes},
                                     {static_cast<unsigned char*>(shmem_malloc(kArenaBytes)), kArenaBytes}};
    return arenas[thread];
}

void post_all(const std::vector<Post>& posts, shmemx_request_t* request) {
    for (const Post& post : posts) post.fill(), post.post(request);
}

void check_all(const std::vector<Post>& posts) {
    for (const Post& post : posts) post.check("dest"), post.check_source();
}

shmemx_request_t allocate(bool is_shared) {
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    CHECK_EQ(shmemx_request_allocate(&request, is_shared ? SHMEMX_REQUEST_SHARED : SHMEMX_REQUEST_PRIVATE), 0);
    return request;
}

void fill_large(uint64_t round, int from, unsigned char* to) {
    random_for(round, static_cast<uint64_t>(from), 41).fill(to, kLargeBytes);
}

void check_landing(uint64_t round) {
    std::vector<unsigned char> right(kLargeBytes);
    fill_large(round, previous, right.data());
    CHECK_BYTES("what the previous PE put", landing, right.data(), kLargeBytes);
}

// --- One request holds everything, in each way of completing it.
void everything_under_one(bool is_shared, bool with_nbi, size_t way) {
    Random shared = random_for(way, is_shared, 42);
    fill_large(way, pe, large.data());
    counter = 0, fetched_from = 7 + static_cast<uint64_t>(pe);
    const std::vector<Post> one = draw_posts(groups[0], 5, heap(), shared),
                            other = draw_posts(groups[2], 5, heap(), shared);
    shmemx_request_t request = is_shared ? allocate(true) : SHMEMX_REQUEST_NULL;
    std::vector<unsigned char> got(kLargeBytes), right(kLargeBytes);
    uint64_t fetched = 0;
    post_all(one, &request);
    subject = "everything under one request";
    if (with_nbi) {
        shmemx_request_begin(&request);
        shmem_putmem_nbi(landing, large.data(), kLargeBytes, next);
        post_all(other, &request);
        shmem_getmem_nbi(got.data(), offered, kLargeBytes, next);
        shmem_uint64_atomic_fetch_nbi(&fetched, &fetched_from, next);
        shmemx_request_end(&request);
    } else {
        shmemx_putmem_nbe(landing, large.data(), kLargeBytes, next, &request);
        shmemx_uint64_atomic_fetch_nbe(&fetched, &fetched_from, next, &request);
        post_all(other, &request);
        shmemx_getmem_nbe(got.data(), offered, kLargeBytes, next, &request);
    }
    shmemx_uint64_atomic_add_nbe(&counter, 5, next, &request);
    shmemx_request_fence(&request);
    shmemx_uint64_atomic_inc_nbe(&counter, next, &request);
    complete_request(&request, is_shared, way);
    check_all(one), check_all(other);
    CHECK_EQ(fetched, 7 + next);
    fill_large(0, next, right.data());
    CHECK_BYTES("what was got", got.data(), right.data(), kLargeBytes);
    shmemx_request_free(&request);
    shmem_sync_all();  // completes nothing
    CHECK_EQ(counter, 6);
    check_landing(way);
    end_round(heap());
}

// --- Several requests: each is found once, when its collectives are complete.
void any_and_some(int by) {
    Random shared = random_for(static_cast<uint64_t>(by), 2, 43);
    std::vector<std::vector<Post>> posts;
    for (size_t i = 0; i < 12; ++i) posts.push_back(draw_posts(groups[i % 2 ? 2 : 0], 3, heap(), shared));
    shmemx_request_t requests[13] = {};
    for (size_t i = 0; i < 12; ++i) post_all(posts[i], &requests[i + 1]);
    bool seen[13] = {};
    for (size_t found = 0; found < 12;) {
        size_t indices[13], count = 1;
        if (by == 0)
            indices[0] = shmemx_request_wait_any(13, requests);
        else if (by == 1)
            indices[0] = shmemx_request_test_any(13, requests);
        else
            count = shmemx_request_wait_some(13, requests, indices);
        if (by == 1 && indices[0] == SIZE_MAX) {
            sched_yield();
            continue;
        }
        CHECK(count >= 1 && count <= 12 - found);
        for (size_t i = 0; i < count; ++i) {
            CHECK(indices[i] >= 1 && indices[i] <= 12 && !seen[indices[i]]);
            seen[indices[i]] = true;
            CHECK(requests[indices[i]] == SHMEMX_REQUEST_NULL);
            check_all(posts[indices[i] - 1]);
        }
        found += count;
    }
    CHECK_EQ(shmemx_request_wait_any(13, requests), SIZE_MAX);
    end_round(heap());
}

// The one that can be complete is found while the other cannot: its last member comes afterwards.
void any_finds_what_is_complete() {
    static uint64_t go;
    static long sums[2], ones[2] = {1, 1};
    sums[0] = sums[1] = 0, go = 0;
    shmem_barrier_all();
    subject = "shmemx_request_wait_any";
    const Group& alone = *std::find_if(groups.begin(), groups.end(), [](const Group& group) {
        return group.size == 1 && group.member() && group.team != SHMEM_TEAM_SHARED;
    });
    if (pe == 0)
        shmem_uint64_wait_until(&go, SHMEM_CMP_EQ, static_cast<uint64_t>(n_pes) - 1);
    shmemx_request_t requests[2] = {};
    CHECK_EQ(shmemx_long_sum_reduce_nbe(SHMEM_TEAM_WORLD, &sums[0], &ones[0], 1, &requests[0]), 0);
    CHECK_EQ(shmemx_long_sum_reduce_nbe(alone.team, &sums[1], &ones[1], 1, &requests[1]), 0);
    if (pe != 0) {
        CHECK_EQ(shmemx_request_wait_any(2, requests), 1);
        CHECK_EQ(sums[1], 1);
        CHECK_EQ(shmemx_request_test_any(2, requests), SIZE_MAX);
        shmem_uint64_atomic_inc(&go, 0);
    }
    for (shmemx_request_t& request : requests) shmemx_request_wait(&request);
    CHECK_EQ(sums[0], n_pes);
    CHECK_EQ(sums[1], 1);
    shmem_barrier_all();
}

// Merged, over and over, with more that is posted to the whole.
void merges(bool is_shared) {
    Random shared = random_for(is_shared, 1, 44);
    std::vector<std::vector<Post>> posts;
    for (size_t i = 0; i < 12; ++i) posts.push_back(draw_posts(groups[i % 2 ? 2 : 0], 2, heap(), shared));
    shmemx_request_t parts[4] = {}, whole = is_shared ? allocate(true) : SHMEMX_REQUEST_NULL;
    for (size_t i = 0; i < 12; ++i) {
        post_all(posts[i], i % 5 == 4 ? &whole : &parts[i % 4]);
        if (i % 3 == 2)
            shmemx_request_merge(&whole, 4, parts);
    }
    for (shmemx_request_t part : parts) CHECK(part == SHMEMX_REQUEST_NULL);
    complete_request(&whole, is_shared, is_shared ? 0 : 8);
    for (const auto& some : posts) check_all(some);
    shmemx_request_free(&whole);
    end_round(heap());
}

// Sources are the poster's again.
void local_completion() {
    Random shared = random_for(1, 1, 45);
    const std::vector<Post> posts = draw_posts(groups[0], 15, heap(), shared);
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    post_all(posts, &request);
    subject = "shmemx_request_wait_local";
    shmemx_request_wait_local(&request);
    CHECK(request != SHMEMX_REQUEST_NULL);
    for (const Post& post : posts)
        if (!post.in_place)
            memset(post.source, 0x99, post.source_bytes());
    shmemx_request_wait(&request);
    for (const Post& post : posts) post.check("dest, when the source was written again");
    end_round(heap());
}

// --- Meetings.

// Puts that were posted before are at their target when the barrier is complete, and so when any member sees it
// complete.
void barrier_completes_puts(bool is_shared) {
    for (uint64_t round = 100; round < 110; ++round) {
        subject = "shmemx_team_barrier_nbe";
        fill_large(round, pe, large.data());
        counter = 0;
        shmem_barrier_all();
        shmemx_request_t request = is_shared ? allocate(true) : SHMEMX_REQUEST_NULL;
        shmem_putmem_nbi(landing, large.data(), kLargeBytes / 2, next);
        shmem_putmem(landing + kLargeBytes / 2, large.data() + kLargeBytes / 2, kLargeBytes - kLargeBytes / 2, next);
        shmem_uint64_atomic_add(&counter, 3, next);
        CHECK_EQ(shmemx_team_barrier_nbe(groups[round % 2 ? 2 : 0].team, &request), 0);
        if (pe == static_cast<int>(round) % n_pes)
            compute_ms(3);
        complete_request(&request, is_shared, round % kWaysByRequest);
        CHECK_EQ(counter, 3);
        check_landing(round);
        shmemx_request_free(&request);
        shmem_sync_all();  // nobody writes to those who look
    }
    shmem_barrier_all();
}

// Nobody is through a sync that not all have begun; one behind the other without waiting.
void syncs_order() {
    constexpr size_t kRounds = 100;
    static uint64_t begun[kRounds];
    std::fill_n(begun, kRounds, 0);
    shmem_barrier_all();
    subject = "shmemx_team_sync_nbe";
    std::vector<shmemx_request_t> requests(kRounds, SHMEMX_REQUEST_NULL);
    for (size_t i = 0; i < kRounds; ++i) {
        for (int other = 0; other < n_pes; ++other) shmem_uint64_atomic_inc(&begun[i], other);
        shmem_quiet();
        CHECK_EQ(shmemx_team_sync_nbe(SHMEM_TEAM_WORLD, &requests[i]), 0);
        for (size_t k = 0; k < i; ++k)
            if (requests[k] != SHMEMX_REQUEST_NULL && shmemx_request_test(&requests[k]))
                CHECK_EQ(shmem_uint64_atomic_fetch(&begun[k], pe), n_pes);
        if (i % 10 == static_cast<size_t>(pe) % 10)
            compute_ms(1);
    }
    for (size_t i = kRounds; i-- > 0;) {
        shmemx_request_wait(&requests[i]);
        for (size_t k = 0; k <= i; ++k) CHECK_EQ(shmem_uint64_atomic_fetch(&begun[k], pe), n_pes);
    }
    shmem_barrier_all();
}

// --- Threads.

// Another thread waits; the one that posted is gone.
void handed_over() {
    for (uint64_t round = 0; round < 10; ++round) {
        Random shared = random_for(round, 1, 46);
        const std::vector<Post> posts = draw_posts(groups[round % 2 ? 2 : 0], 6, heap(), shared);
        shmemx_request_t requests[2] = {};
        std::thread([&] {
            for (size_t i = 0; i < posts.size(); ++i) posts[i].fill(), posts[i].post(&requests[i % 2]);
        }).join();
        std::thread first([&] { complete_request(&requests[0], false, round); });
        complete_request(&requests[1], false, 0);
        first.join();
        check_all(posts);
        end_round(heap());
    }
}

// Each thread has a team of all PEs and posts to it under one SHARED request; each waits for all.
void threads_share_a_request() {
    shmem_team_t teams[kThreads];
    Group of_thread[kThreads];
    for (size_t i = 0; i < kThreads; ++i) {
        CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, nullptr, 0, &teams[i]), 0);
        of_thread[i] = {teams[i], 0, 1, n_pes, pe};
    }
    shmemx_request_t request = allocate(true);
    std::barrier<> all(kThreads);  // a wait covers what other threads posted before: so they go in step
    std::vector<std::thread> threads;
    for (size_t thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, thread] {
            Random shared = random_for(thread, 1, 47), own = random_for(thread, static_cast<uint64_t>(pe), 48);
            for (int round = 0; round < 12; ++round) {
                Arena& arena = heap(thread);
                arena.clear();
                std::vector<Post> posts;
                for (size_t i = 0; i < 8; ++i) {
                    posts.push_back(draw_post(of_thread[thread], 70000, shared));
                    CHECK(posts.back().take_memory(arena, shared));
                }
                CHECK_EQ(shmem_team_sync(of_thread[thread].team), 0);
                post_all(posts, &request);
                if (own.below(2))
                    shmemx_request_wait(&request);
                else
                    while (!shmemx_request_test(&request)) sched_yield();
                check_all(posts);
                arena.check_gaps();
                all.arrive_and_wait();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    shmemx_request_free(&request);
    for (shmem_team_t team : teams) shmem_team_destroy(team);
    shmem_barrier_all();
    for (size_t i = 0; i < kThreads; ++i) heap(i).clear();
}

// Several threads wait for one request at once, and one that has nothing to do with it polls.
void many_wait() {
    Random shared = random_for(9, 1, 49);
    for (int round = 0; round < 6; ++round) {
        const std::vector<Post> posts = draw_posts(groups[0], 10, heap(), shared);
        shmemx_request_t request = allocate(true);
        post_all(posts, &request);
        std::vector<std::thread> threads;
        for (int i = 0; i < 3; ++i) {
            threads.emplace_back([&] {
                shmemx_request_wait(&request);
                check_all(posts);
            });
        }
        for (int i = 0; i < 100; ++i) shmemx_progress();
        for (std::thread& thread : threads) thread.join();
        CHECK(request != SHMEMX_REQUEST_NULL);
        CHECK_EQ(shmemx_request_test(&request), 1);
        shmemx_request_free(&request);
        end_round(heap());
    }
}

// A thread that sleeps in a call already drives what another one posts afterwards and leaves alone: the other PEs need
// it before they come to that call.
void a_sleeper_drives_what_comes_later(uint64_t round) {
    Random shared = random_for(round, 1, 50);
    shmem_team_t meeting = SHMEM_TEAM_INVALID;
    CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, nullptr, 0, &meeting), 0);
    std::vector<Post> posts;
    for (size_t bytes : {size_t{100000}, size_t{50}, size_t{20000}}) {
        for (size_t i = 0; i < 5; ++i) {
            posts.push_back(make_post(kCollectives[shared.below(kCollectives.size())], groups[2], bytes, shared));
            CHECK(posts.back().take_memory(heap(), shared));
        }
    }
    shmem_sync_all();
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    if (pe == static_cast<int>(round) % n_pes) {
        std::thread sleeper([&] { CHECK_EQ(shmem_team_sync(meeting), 0); });
        nap_ms(30);
        post_all(posts, &request);
        sleeper.join();
        shmemx_request_wait(&request);
    } else {
        post_all(posts, &request);
        shmemx_request_wait(&request);
        CHECK_EQ(shmem_team_sync(meeting), 0);
    }
    check_all(posts);
    shmem_team_destroy(meeting);
    end_round(heap());
}

}  // namespace

int main() {
    start("nonblocking_requests");
    next = (pe + 1) % n_pes, previous = (pe + n_pes - 1) % n_pes;
    landing = static_cast<unsigned char*>(shmem_malloc(kLargeBytes));
    offered = static_cast<unsigned char*>(shmem_malloc(kLargeBytes));
    large.resize(kLargeBytes);
    CHECK(landing && offered && heap(kThreads - 1).has_room(kArenaBytes / 2));
    fill_large(0, pe, offered);
    groups = make_groups();
    shmem_barrier_all();
    for (size_t way = 0; way < kWaysByRequest; ++way)
        for (bool is_shared : {false, true}) everything_under_one(is_shared, way % 2 == is_shared, way);
    for (int by : {0, 1, 2}) any_and_some(by);
    any_finds_what_is_complete();
    for (bool is_shared : {false, true}) merges(is_shared);
    local_completion();
    for (bool is_shared : {false, true}) barrier_completes_puts(is_shared);
    syncs_order();
    handed_over();
    threads_share_a_request();
    many_wait();
    for (uint64_t round = 0; round < 4; ++round) a_sleeper_drives_what_comes_later(round);
    destroy_groups(groups);
    return finish();
}

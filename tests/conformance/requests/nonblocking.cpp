// Collectives that are posted: each gives the bits of its blocking form; many are outstanding at once, on one team and
// on all; members wait in other orders than they post, and post on two teams in different orders; blocking ones come
// between and behind; a member that comes late holds nobody up in posting. Runs under every HEDDLE_PROGRESS.
#include "check.h"
#include "completion.h"
#include "nonblocking_collectives.h"

#include <algorithm>
#include <thread>

using namespace conformance;

namespace {

constexpr size_t kHeapBytes = 20 << 20, kStaticBytes = 4 << 20;
constexpr size_t kSizes[] = {0, 1, 8, 45, 241, 2051, 16391, 70001, 300007};
alignas(64) unsigned char static_memory[kStaticBytes];
uint64_t arrivals;  // at this PE: how many others have posted
std::vector<Group> groups;

Arena& heap() {
    static Arena arena(static_cast<unsigned char*>(shmem_align(64, kHeapBytes)), kHeapBytes);
    return arena;
}
Arena& static_data() {
    static Arena arena(static_memory, kStaticBytes);
    return arena;
}

// Groups whose members all PEs know alike: not the shared one where there are several nodes.
bool is_known_to_all(const Group& group) {
    return group.team != SHMEM_TEAM_SHARED || group.size == n_pes;
}

// Ends a round in which all PEs took from the arenas.
void end_round() {
    shmem_barrier_all();
    for (Arena* arena : {&heap(), &static_data()}) {
        arena->check_gaps();
        arena->clear();
    }
}

// --- One at a time, against the blocking form.

void like_blocking(const Collective& what, const Group& group, size_t bytes, uint64_t number) {
    Random shared = random_for(number, static_cast<uint64_t>(group.start), 21);
    Arena& arena = number % 2 ? heap() : static_data();
    arena.clear();
    const Post blocking_form = [&] {
        Post post = make_post(what, group, bytes, shared);
        CHECK(post.take_memory(arena, shared));
        return post;
    }();
    Post posted = blocking_form;
    posted.dest = arena.take(posted.dest_bytes(), shared.below(16) * what.info.bytes);
    posted.in_place = blocking_form.in_place && shared.below(2);
    if (posted.in_place)
        posted.source = posted.dest;
    else if (blocking_form.in_place)
        posted.source = arena.take(posted.source_bytes(), 0);
    CHECK_EQ(shmem_team_sync(group.team), 0);  // memory is ready on all
    blocking_form.fill();
    blocking_form.perform();
    posted.fill();
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    const bool is_shared = number % 5 == 0;
    if (is_shared)
        CHECK_EQ(shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED), 0);
    posted.post(&request);
    complete_request(&request, is_shared, number % kWaysByRequest);
    shmemx_request_free(&request);
    subject = what.info.name;
    CHECK_BYTES("beside the blocking form", posted.dest, blocking_form.dest, posted.dest_bytes());
    posted.check("dest");
    posted.check_source();
    arena.check_gaps();
}

void all_like_blocking() {
    uint64_t number = 0;
    for (const Group& group : groups) {
        for (const Collective& what : kCollectives) {
            for (size_t bytes : kSizes) {
                ++number;
                // The world sees all; a team of each kind every third size.
                if (group.member() && (&group == groups.data() || (bytes < 20000 && number % 3 == 0)))
                    like_blocking(what, group, bytes, number);
            }
        }
    }
    end_round();
}

// --- Many at once.

// How many requests the posts of one round share, and in which way each of these is completed.
struct Requests {
    std::vector<shmemx_request_t> all;
    bool are_shared;

    Requests(size_t count, bool shared) : all(count, SHMEMX_REQUEST_NULL), are_shared(shared) {
        for (shmemx_request_t& request : all)
            if (are_shared)
                CHECK_EQ(shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED), 0);
    }
    shmemx_request_t* of(size_t i) { return &all[i % all.size()]; }
    // In an order and by functions that are another PE's affair.
    void complete(Random& own) {
        std::vector<shmemx_request_t*> order;
        for (shmemx_request_t& request : all) order.push_back(&request);
        for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[own.below(i)]);
        for (shmemx_request_t* request : order) complete_request(request, are_shared, own.below(kWaysByRequest));
        for (shmemx_request_t& request : all) shmemx_request_free(&request);
    }
};

std::vector<Post> take_posts(const Group& group, size_t count, Random& shared) {
    std::vector<Post> posts;
    while (posts.size() < count) {
        Post post = draw_post(group, 300000, shared);
        if (!post.take_memory(heap(), shared))
            break;
        posts.push_back(post);
    }
    return posts;
}

void check_all(const std::vector<Post>& posts) {
    for (const Post& post : posts) {
        if (!post.group->member())
            continue;
        post.check("one of many");
        post.check_source();
    }
}

// More than there may be tasks of any engine, in program order, on one team.
void many_of_one_team(const Group& group, size_t n_requests, bool are_shared, uint64_t number) {
    Random shared = random_for(number, 1, 22), own = random_for(number, static_cast<uint64_t>(pe), 23);
    const std::vector<Post> posts = take_posts(group, 150, shared);
    shmem_sync_all();
    if (group.member()) {
        Requests requests(n_requests, are_shared);
        for (size_t i = 0; i < posts.size(); ++i) {
            posts[i].fill();
            posts[i].post(requests.of(i));
        }
        requests.complete(own);
        check_all(posts);
    }
    end_round();
}

// All teams at once; each PE goes from one to the other as it likes.
void many_of_all_teams(uint64_t number) {
    Random shared = random_for(number, 1, 24), own = random_for(number, static_cast<uint64_t>(pe), 25);
    std::vector<std::vector<Post>> of_team;
    for (const Group& group : groups)
        if (is_known_to_all(group))
            of_team.push_back(take_posts(group, 20, shared));
    shmem_sync_all();
    std::erase_if(of_team, [](const auto& posts) { return posts.empty() || !posts[0].group->member(); });
    Requests requests(1 + own.below(20), own.below(2));
    std::vector<size_t> done(of_team.size());
    for (size_t left = of_team.size(); left > 0;) {
        const size_t team = own.below(of_team.size());
        if (done[team] == of_team[team].size())
            continue;
        const Post& post = of_team[team][done[team]++];
        post.fill();
        post.post(requests.of(own.below(requests.all.size())));
        left -= done[team] == of_team[team].size();
    }
    // A request that nothing was posted to is complete.
    requests.complete(own);
    for (const auto& posts : of_team) check_all(posts);
    end_round();
}

// --- Orders that must not matter.

// Members post to two teams in different orders, and wait for what they posted first before they wait for the other:
// the wait for the one drives the other.
void crossed(const Group& one, const Group& other, size_t bytes) {
    Random shared = random_for(bytes, 1, 26);
    for (const Collective& what : kCollectives) {
        if (bytes > 10000 && shared.below(4) != 0)
            continue;
        Post posts[] = {make_post(what, one, bytes, shared), make_post(what, other, bytes, shared)};
        for (Post& post : posts) CHECK(post.take_memory(heap(), shared));
        shmem_sync_all();
        shmemx_request_t requests[2] = {};
        const size_t first = static_cast<size_t>(pe) % 2;
        for (size_t i : {first, 1 - first}) {
            posts[i].fill();
            posts[i].post(&requests[i]);
        }
        for (size_t i : {first, 1 - first}) {
            shmemx_request_wait(&requests[i]);
            posts[i].check("posted in another order elsewhere");
        }
        end_round();
    }
}

// A blocking collective waits for what was posted before it to the same team; of another team it does not care.
void blocking_between(const Group& group, const Group& other, uint64_t number) {
    Random shared = random_for(number, 1, 27), own = random_for(number, static_cast<uint64_t>(pe), 28);
    std::vector<Post> before = take_posts(group, 12, shared), behind = take_posts(group, 4, shared);
    std::vector<Post> elsewhere = take_posts(other, 2, shared);
    shmem_sync_all();
    Requests requests(3, false);
    for (const Post* post = before.data(); post < before.data() + 8; ++post)
        post->fill(), post->post(requests.of(own.below(3)));
    for (const Post& post : elsewhere) post.fill(), post.perform(), post.check("blocking, of another team");
    for (size_t i = 8; i < before.size(); ++i) before[i].fill(), before[i].post(requests.of(own.below(3)));
    for (const Post& post : behind) {
        post.fill();
        post.perform();
        post.check("blocking, behind posted ones");
    }
    check_all(before);  // before anybody waits
    requests.complete(own);
    check_all(before), check_all(behind), check_all(elsewhere);
    end_round();
}

// --- Posting does not wait. The late PE comes when all others say that they have posted everything; till then what it
// has to contribute to is not complete.
void one_is_late(int late, size_t count, bool computes) {
    const Group& world = groups[0];
    Random shared = random_for(static_cast<uint64_t>(late), 1, 29);
    std::vector<Post> posts;
    for (size_t bytes : {size_t{40}, size_t{4000}, size_t{300000}}) {
        for (const Collective& what : kCollectives) {
            if ((bytes > 10000 && shared.below(4) != 0) || posts.size() == count)
                continue;
            posts.push_back(make_post(what, world, bytes, shared));
            CHECK(posts.back().take_memory(heap(), shared));
        }
    }
    for (const Post& post : take_posts(world, count - posts.size(), shared)) posts.push_back(post);
    shmem_sync_all();
    std::vector<shmemx_request_t> requests(posts.size(), SHMEMX_REQUEST_NULL);
    if (pe == late) {
        subject = "the others, who post";
        shmem_uint64_wait_until(&arrivals, SHMEM_CMP_EQ, static_cast<uint64_t>(n_pes) - 1);
        arrivals = 0;
        nap_ms(100);
    }
    for (size_t i = 0; i < posts.size(); ++i) posts[i].fill(), posts[i].post(&requests[i]);
    if (pe != late) {
        for (size_t i = 0; i < posts.size(); ++i) {
            const Collective& what = *posts[i].what;
            if (!what.waits_for_all() || (what.kind == Collective::kReduce && posts[i].move.nelems == 0))
                continue;
            subject = what.info.name;
            CHECK_EQ(shmemx_request_test(&requests[i]), 0);
            CHECK(requests[i] != SHMEMX_REQUEST_NULL);
        }
        shmem_uint64_atomic_inc(&arrivals, late);
        subject = "shmem_quiet beside collectives";
        shmem_quiet();  // completes no collective, and waits for none
    }
    if (computes)
        compute_ms(50);
    for (size_t i = posts.size(); i-- > 0;) shmemx_request_wait(&requests[i]);
    check_all(posts);
    end_round();
}

// --- A thread that waits for a lock carries on what its PE has posted, before or meanwhile. PE 0 holds the lock until
// two sums are there, of which the second begins on each PE behind the first one's end there.
void behind_a_lock(bool posted_meanwhile) {
    subject = "shmem_set_lock";
    static long lock, sums[2], ones[] = {1, 1};
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    const auto post = [&] {
        for (size_t i = 0; i < std::size(sums); ++i)
            CHECK_EQ(shmemx_long_sum_reduce_nbe(SHMEM_TEAM_WORLD, &sums[i], &ones[i], 1, &request), 0);
    };
    const auto wait_for_lock = [] {
        shmem_set_lock(&lock);
        shmem_clear_lock(&lock);
    };
    for (long& sum : sums) sum = 0;
    if (pe == 0)
        shmem_set_lock(&lock);
    shmem_barrier_all();
    if (pe == 0) {
        nap_ms(60);  // the others sleep
        post();
        shmemx_request_wait(&request);
        shmem_clear_lock(&lock);
    } else if (posted_meanwhile) {
        std::thread waiting(wait_for_lock);
        nap_ms(30);
        post();
        waiting.join();
    } else {
        post();
        wait_for_lock();
    }
    shmemx_request_wait(&request);
    for (const long sum : sums) CHECK_EQ(sum, n_pes);
    shmem_barrier_all();
}

// --- Teams that end right behind their last collective, while others of the world go on.
void teams_that_go() {
    for (uint64_t round = 0; round < 20; ++round) {
        Random shared = random_for(round, 1, 30), own = random_for(round, static_cast<uint64_t>(pe), 31);
        shmem_team_t team = SHMEM_TEAM_INVALID;
        const int stride = static_cast<int>(1 + round % 2), size = (n_pes + stride - 1) / stride;
        CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, stride, size, nullptr, 0, &team), 0);
        const Group group = {team, 0, stride, size, team == SHMEM_TEAM_INVALID ? -1 : pe / stride};
        const std::vector<Post> posts = take_posts(group, 6, shared), of_world = take_posts(groups[0], 8, shared);
        shmem_sync_all();
        Requests going_on(1, false);
        for (const Post& post : of_world) post.fill(), post.post(going_on.of(0));
        if (group.member()) {
            Requests requests(2, false);
            for (size_t i = 0; i < posts.size(); ++i) posts[i].fill(), posts[i].post(requests.of(i));
            requests.complete(own);
            shmem_team_destroy(team);
            check_all(posts);
        }
        going_on.complete(own);
        check_all(of_world);
        end_round();
    }
}

// The last one before the end of the job.
void at_the_end() {
    static long sum, one = 1;
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    CHECK_EQ(shmemx_long_sum_reduce_nbe(SHMEM_TEAM_WORLD, &sum, &one, 1, &request), 0);
    shmemx_request_wait(&request);
    CHECK_EQ(sum, n_pes);
}

}  // namespace

int main() {
    start("nonblocking");
    CHECK(heap().has_room(kHeapBytes / 2));
    groups = make_groups();
    all_like_blocking();
    uint64_t number = 0;
    for (const Group& group : groups) {
        if (!is_known_to_all(group))
            continue;
        ++number;
        many_of_one_team(group, number % 2 ? 150 : 1, number % 3 == 0, number);
    }
    for (uint64_t round = 0; round < 4; ++round) many_of_all_teams(round);
    for (size_t bytes : {size_t{24}, size_t{3000}, size_t{300000}}) crossed(groups[0], groups[2], bytes);
    for (uint64_t round = 0; round < 4; ++round)
        blocking_between(groups[round % 2 ? 2 : 0], groups[round % 2 ? 0 : 2], round);
    for (int late = 0; late < std::min(n_pes, 3); ++late) one_is_late(late, late % 2 ? 50 : 200, late % 2);
    for (const bool posted_meanwhile : {false, true}) behind_a_lock(posted_meanwhile);
    teams_that_go();
    destroy_groups(groups);
    at_the_end();
    return finish();
}

// Who makes progress: what HEDDLE_PROGRESS says or shmemx_progress_policy, which may be changed at any time and differ
// between PEs. A background thread completes collectives while the program makes no call; without one, shmemx_progress
// does. A word that is no policy changes nothing.
#include "check.h"
#include "nonblocking_collectives.h"

#include <dirent.h>
#include <sched.h>
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

using namespace conformance;

namespace {

constexpr size_t kArenaBytes = 16 << 20;
constexpr const char* kPolicies[] = {"manual", "thread", "thread:block", "thread:spin", "auto"};
const std::vector<size_t> kAllSizes = {80, 3000, 70000, 400000}, kFewSizes = {80, 70000};
std::vector<Group> groups;

Arena& heap() {
    static Arena arena(static_cast<unsigned char*>(shmem_malloc(kArenaBytes)), kArenaBytes);
    return arena;
}

size_t threads_of_process() {
    size_t count = 0;
    DIR* tasks = opendir("/proc/self/task");
    CHECK(tasks);
    while (const dirent* entry = readdir(tasks)) count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

// Until its dest is right, as memory shows it. A collective that is not complete may write to dest at any time; that it
// is right at last says who has made progress.
template <class Step>
void watch(const Post& post, Step step) {
    if (post.dest_bytes() == 0)
        return;
    std::vector<unsigned char> right(post.dest_bytes() + 8, Buffer::kFresh);
    if (post.what->kind == Collective::kReduce)
        expect_reduction(post.what->info, post.what->reduce, post.move.stream, post.group->rank, post.group->size,
                         post.move.nelems, right.data());
    else
        post.move.expect(post.group->rank, post.group->size, right.data());
    subject = post.what->info.name;
    const auto same = [&] {
        std::atomic_thread_fence(std::memory_order_acquire);
        const volatile unsigned char* at = post.dest;
        for (size_t i = post.dest_bytes(); i-- > 0;)
            if (at[i] != right[i])
                return false;
        return true;
    };
    while (!same()) step();
}

// One of each kind that moves bytes, of which none is complete by itself.
std::vector<Post> one_of_each(size_t bytes, uint64_t number) {
    Random shared = random_for(number, bytes, 61);
    std::vector<Post> posts;
    for (const Collective& what : kCollectives) {
        if (what.info.kind == 'f' || what.kind == Collective::kMeet)
            continue;  // NaNs may differ in what is no value
        posts.push_back(make_post(what, groups[number % 2 ? 2 : 0], bytes, shared));
        CHECK(posts.back().take_memory(heap(), shared));
    }
    shmem_sync_all();
    return posts;
}

bool spans_nodes() {
    return shmem_team_n_pes(SHMEM_TEAM_SHARED) < n_pes;
}

// Whether a background thread is there under this policy whatever else runs: with auto on one node only where a core is
// free for it.
bool has_a_thread(const char* policy) {
    return strncmp(policy, "thread", 6) == 0 || (strcmp(policy, "auto") == 0 && spans_nodes());
}

// On one node a short one that is alone has done at once what others wait for, and its poster does the rest when it
// waits; a background thread is woken for what is longer.
constexpr size_t kShortBytes = 16384;
bool is_for_the_background(const Post& post) {
    return spans_nodes() || post.move.nelems * post.what->info.bytes > kShortBytes;
}

// Nobody calls the library between posting and the end of all; the test's time limit says when nobody does it.
void by_the_background(const std::vector<size_t>& sizes) {
    for (size_t bytes : sizes) {
        std::vector<Post> posts = one_of_each(bytes, bytes / 80);
        std::erase_if(posts, [](const Post& post) { return !is_for_the_background(post); });
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
        for (const Post& post : posts) post.fill(), post.post(&request);
        for (const Post& post : posts) watch(post, [] { nap_ms(1); });  // the core is the background's
        shmemx_request_wait(&request);
        for (const Post& post : posts) post.check("dest");
        end_round(heap());
    }
}

// Nothing is called between but shmemx_progress.
void by_polling(const std::vector<size_t>& sizes) {
    for (size_t bytes : sizes) {
        const std::vector<Post> posts = one_of_each(bytes, bytes / 80);
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
        for (const Post& post : posts) post.fill(), post.post(&request);
        for (const Post& post : posts) watch(post, [] { shmemx_progress(), sched_yield(); });
        while (!shmemx_request_test(&request)) sched_yield();
        for (const Post& post : posts) post.check("dest");
        end_round(heap());
    }
}

// Calls of which none finds what it looks for.
long never[2];
uint64_t no_signal;
const long kOnes[] = {1, 1};
const struct {
    const char* name;
    void (*call)();
} kTests[] = {
    {"shmem_long_test", [] { CHECK(!shmem_long_test(never, SHMEM_CMP_EQ, 1)); }},
    {"shmem_long_test_all", [] { CHECK(!shmem_long_test_all(never, 2, nullptr, SHMEM_CMP_EQ, 1)); }},
    {"shmem_long_test_any", [] { CHECK(shmem_long_test_any(never, 2, nullptr, SHMEM_CMP_EQ, 1) == SIZE_MAX); }},
    {"shmem_long_test_some",
     [] {
         size_t indices[2];
         CHECK_EQ(shmem_long_test_some(never, 2, indices, nullptr, SHMEM_CMP_EQ, 1), size_t{0});
     }},
    {"shmem_long_test_all_vector", [] { CHECK(!shmem_long_test_all_vector(never, 2, nullptr, SHMEM_CMP_EQ, kOnes)); }},
    {"shmem_long_test_any_vector",
     [] { CHECK(shmem_long_test_any_vector(never, 2, nullptr, SHMEM_CMP_EQ, kOnes) == SIZE_MAX); }},
    {"shmem_long_test_some_vector",
     [] {
         size_t indices[2];
         CHECK_EQ(shmem_long_test_some_vector(never, 2, indices, nullptr, SHMEM_CMP_EQ, kOnes), size_t{0});
     }},
    {"shmem_signal_fetch", [] { CHECK_EQ(shmem_signal_fetch(&no_signal), uint64_t{0}); }},
};

// Nothing is called between but one function that tests or fetches.
void by_testing() {
    for (const auto& test : kTests) {
        const std::vector<Post> posts = one_of_each(3000, 3);
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
        for (const Post& post : posts) post.fill(), post.post(&request);
        for (const Post& post : posts)
            watch(post, [&] {
                subject = test.name;
                test.call();
                sched_yield();
            });
        shmemx_request_wait(&request);
        for (const Post& post : posts) post.check("dest");
        end_round(heap());
    }
}

// What was posted while nobody made progress is carried on by the thread that a later policy brings.
void from_manual_to_a_thread(const char* policy) {
    CHECK_EQ(shmemx_progress_policy("manual"), 0);
    std::vector<Post> posts = one_of_each(200000, 2);
    std::erase_if(posts, [](const Post& post) { return !is_for_the_background(post); });
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    for (const Post& post : posts) post.fill(), post.post(&request);
    CHECK_EQ(shmemx_progress_policy(policy), 0);
    for (const Post& post : posts) watch(post, [] { nap_ms(1); });
    shmemx_request_wait(&request);
    for (const Post& post : posts) post.check("dest");
    end_round(heap());
}

// Without outstanding operations it does nothing, whoever calls it.
void idle_polls() {
    subject = "shmemx_progress";
    std::thread other([] {
        for (int i = 0; i < 10000; ++i) shmemx_progress();
    });
    for (int i = 0; i < 10000; ++i) shmemx_progress();
    other.join();
}

void words() {
    subject = "shmemx_progress_policy";
    for (const char* policy : kPolicies) CHECK_EQ(shmemx_progress_policy(policy), 0);
    for (const char* word :
         {"", "fast", "thread:", "thread:fast", "Auto", "manual ", "thread:spin:block", "auto|manual"})
        CHECK(shmemx_progress_policy(word) != 0);
    const int monitor = shmemx_progress_policy("thread:monitor");  // where the machine has such an instruction
    CHECK(monitor == 0 || monitor == 1);
    if (monitor == 0)
        by_the_background(kFewSizes);
    by_polling(kFewSizes);  // with the last one that was right
    CHECK_EQ(shmemx_progress_policy("manual"), 0);
    CHECK(shmemx_progress_policy("none") != 0);
    by_polling(kFewSizes);
}

// What the thread for the network does, where there is one, says the policy.
void network_words() {
    subject = "shmemx_progress_network";
    long* const word = static_cast<long*>(shmem_malloc(sizeof(long)));
    bool has_network = false;
    for (int other = 0; other < n_pes; ++other) has_network |= shmem_ptr(word, other) == nullptr;
    const auto is_word = [&](const char* policy, std::initializer_list<std::string> right) {
        if (shmemx_progress_policy(policy) != 0)
            return;  // this machine has no such instruction
        const std::string got = shmemx_progress_network();
        CHECK(has_network ? std::count(right.begin(), right.end(), got) == 1 : got == "none");
    };
    is_word("manual", {"none"});
    is_word("thread:block", {"epoll"});
    is_word("thread:spin", {"spin", "epoll"});  // with one core
    is_word("thread:monitor", {"umwait", "mwaitx", "wfe", "fake", "epoll"});
    is_word("auto", {"epoll"});
    shmem_free(word);
}

// Each PE changes its own while collectives are outstanding; another thread changes it, too.
void changes() {
    Random own = random_for(2, static_cast<uint64_t>(pe), 62);
    for (uint64_t round = 0; round < 40; ++round) {
        Random shared = random_for(round, 1, 63);
        const std::vector<Post> one = draw_posts(groups[0], 6, heap(), shared),
                                other = draw_posts(groups[2], 6, heap(), shared);
        shmemx_request_t requests[2] = {};
        std::atomic<bool> stop = false;
        std::thread changer;
        if (round % 4 == 3) {
            changer = std::thread([&] {
                for (size_t i = 0; !stop.load(std::memory_order_relaxed) && i < 50; ++i)
                    CHECK_EQ(shmemx_progress_policy(kPolicies[i % std::size(kPolicies)]), 0);
            });
        }
        for (size_t i = 0; i < 6; ++i) {
            one[i].fill(), one[i].post(&requests[0]);
            if (own.below(3) == 0)
                CHECK_EQ(shmemx_progress_policy(kPolicies[own.below(std::size(kPolicies))]), 0);
            other[i].fill(), other[i].post(&requests[1]);
        }
        if (own.below(2))
            compute_ms(1);
        for (size_t i : {1, 0}) shmemx_request_wait(&requests[i]);
        stop.store(true, std::memory_order_relaxed);
        if (changer.joinable())
            changer.join();
        for (size_t i = 0; i < 6; ++i) one[i].check("dest"), other[i].check("dest");
        end_round(heap());
    }
}

}  // namespace

int main() {
    start("progress");
    groups = make_groups();
    CHECK(heap().has_room(kArenaBytes / 2));
    const size_t threads = threads_of_process();
    const char* policy_at_start = getenv("HEDDLE_PROGRESS");
    if (has_a_thread(policy_at_start ? policy_at_start : "auto"))
        by_the_background(kAllSizes);
    by_polling(kAllSizes);
    by_testing();
    if (progress_is("manual"))
        CHECK_EQ(threads_of_process(), threads);
    idle_polls();
    words();
    network_words();
    for (const char* policy : kPolicies) {
        if (strcmp(policy, "thread:spin") == 0)
            continue;  // takes cores that the other PEs need; as HEDDLE_PROGRESS it has a test of its own
        CHECK_EQ(shmemx_progress_policy(policy), 0);
        if (has_a_thread(policy))
            by_the_background(kFewSizes);
        by_polling(kFewSizes);
    }
    for (const char* policy : {"thread", "thread:block"}) from_manual_to_a_thread(policy);
    changes();
    destroy_groups(groups);
    return finish();
}

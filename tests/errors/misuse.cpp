// misuse SCENARIO: programs that misuse requests and thread groups. Each function says what it does; what must come
// of it is in test_requests.py. Prints "survived".
#include <shmemx.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

long word, dest[64], source[64];
shmemx_request_t exchanged;  // symmetric
std::string kind;            // the second argument

shmemx_request_t shared_request() {
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED);
    return request;
}

// Uses the handle in the way that the second argument names.
void use(shmemx_request_t request) {
    shmemx_request_t several[] = {SHMEMX_REQUEST_NULL, request}, whole = SHMEMX_REQUEST_NULL;
    long fetched = 0;
    size_t indices[2];
    if (kind == "wait")
        shmemx_request_wait(&request);
    else if (kind == "wait_local")
        shmemx_request_wait_local(&request);
    else if (kind == "test")
        shmemx_request_test(&request);
    else if (kind == "free")
        shmemx_request_free(&request);
    else if (kind == "fence")
        shmemx_request_fence(&request);
    else if (kind == "wait_any")
        shmemx_request_wait_any(2, several);
    else if (kind == "wait_some")
        shmemx_request_wait_some(2, several, indices);
    else if (kind == "test_any")
        shmemx_request_test_any(2, several);
    else if (kind == "merge")
        shmemx_request_merge(&whole, 2, several);
    else if (kind == "begin")
        shmemx_request_begin(&request);
    else if (kind == "put")
        shmemx_long_put_nbe(dest, source, 4, 0, &request);
    else if (kind == "get")
        shmemx_long_get_nbe(source, dest, 4, 0, &request);
    else if (kind == "put_signal")
        shmemx_long_put_signal_nbe(dest, source, 4, reinterpret_cast<uint64_t*>(&word), 1, SHMEM_SIGNAL_SET, 0,
                                   &request);
    else if (kind == "add")
        shmemx_long_atomic_add_nbe(&word, 1, 0, &request);
    else if (kind == "fetch")
        shmemx_long_atomic_fetch_nbe(&fetched, &word, 0, &request);
    else if (kind == "sum")
        shmemx_long_sum_reduce_nbe(SHMEM_TEAM_WORLD, dest, source, 4, &request);
    else if (kind == "fcollect")
        shmemx_fcollectmem_nbe(SHMEM_TEAM_WORLD, dest, source, 4, &request);
    else if (kind == "barrier")
        shmemx_team_barrier_nbe(SHMEM_TEAM_WORLD, &request);
}

void freed(int) {
    const shmemx_request_t request = shared_request();
    shmemx_request_t handle = request;
    shmemx_request_free(&handle);
    use(request);
}

// A PRIVATE request ends when its wait is over.
void waited_for(int) {
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    shmemx_request_allocate(&request, SHMEMX_REQUEST_PRIVATE);
    const shmemx_request_t handle = request;
    shmemx_request_wait(&request);
    use(handle);
}

void merged(int) {
    shmemx_request_t request = shared_request(), whole = SHMEMX_REQUEST_NULL;
    const shmemx_request_t handle = request;
    shmemx_request_merge(&whole, 1, &request);
    use(handle);
}

void of_another_pe(int pe) {
    if (pe == 1) {
        for (int i = 0; i < 10; ++i) shared_request();  // so that PE 0 has none there
        exchanged = shared_request();
    }
    shmem_barrier_all();
    shmemx_request_t theirs;
    shmem_getmem(&theirs, &exchanged, sizeof theirs, 1);
    if (pe == 0)
        use(theirs);
    shmem_barrier_all();
}

void garbage(int) {
    use(reinterpret_cast<shmemx_request_t>(uintptr_t{0x123456789a00}));
}

void two_posters(int) {
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    shmemx_request_allocate(&request, kind == "shared" ? SHMEMX_REQUEST_SHARED : SHMEMX_REQUEST_PRIVATE);
    std::thread other([&] {
        for (int i = 0; i < 20000; ++i) shmemx_long_put_nbe(dest, source, 4, 0, &request);
    });
    for (int i = 0; i < 20000; ++i) shmemx_long_get_nbe(source + 8, dest + 8, 4, 0, &request);
    other.join();
    shmemx_request_free(&request);
}

void two_posters_of_collectives(int) {
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    shmemx_request_allocate(&request, kind == "shared" ? SHMEMX_REQUEST_SHARED : SHMEMX_REQUEST_PRIVATE);
    shmem_team_t teams[2];
    for (shmem_team_t& team : teams) shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, nullptr, 0, &team);
    std::thread other([&] {
        for (int i = 0; i < 20000; ++i) shmemx_long_sum_reduce_nbe(teams[0], dest, source, 4, &request);
    });
    for (int i = 0; i < 20000; ++i) shmemx_long_max_reduce_nbe(teams[1], dest + 8, source + 8, 4, &request);
    other.join();
    shmemx_request_free(&request);
}

// One thread after the other is fine, on a PRIVATE request too.
void posters_by_turns(int) {
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    for (int i = 0; i < 100; ++i) std::thread([&] { shmemx_long_put_nbe(dest, source, 4, 0, &request); }).join();
    shmemx_request_wait(&request);
}

void begun_twice(int) {
    shmemx_request_t one = SHMEMX_REQUEST_NULL, other = SHMEMX_REQUEST_NULL;
    shmemx_request_begin(&one);
    shmemx_request_begin(kind == "same" ? &one : &other);
}

void ended_with_another(int) {
    shmemx_request_t one = SHMEMX_REQUEST_NULL, other = SHMEMX_REQUEST_NULL;
    shmemx_request_begin(&one);
    shmemx_request_end(&other);
}

void ended_by_another_thread(int) {
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    shmemx_request_begin(&request);
    std::thread([&] {
        shmemx_request_end(&request);
        volatile int last = 0;  // without it the thread's library would call
        static_cast<void>(last);
    }).join();
}

void merged_into_itself(int) {
    shmemx_request_t requests[] = {SHMEMX_REQUEST_NULL, shared_request(), SHMEMX_REQUEST_NULL};
    shmemx_request_t copy = requests[1];
    shmemx_request_merge(kind == "same" ? &requests[1] : &copy, 3, requests);
}

// Each of the threads is (thread, nthreads) of one reduction; "function": they differ in what they are in.
void group(const std::vector<std::pair<int, int>>& members) {
    std::vector<std::thread> threads;
    std::vector<int> results(members.size());  // something behind the calls: a tail call has no place of its own
    for (size_t i = 0; i < members.size(); ++i) {
        threads.emplace_back([&, i] {
            if (kind == "function" && i == 1)
                results[i] =
                    shmemx_long_max_reduce_mt(SHMEM_TEAM_WORLD, dest, source, 4, members[i].first, members[i].second);
            else
                results[i] =
                    shmemx_long_sum_reduce_mt(SHMEM_TEAM_WORLD, dest, source, 4, members[i].first, members[i].second);
        });
    }
    for (std::thread& thread : threads) thread.join();
}
void unequal_nthreads(int) {
    group({{0, 3}, {1, 2}});
}
void same_number(int) {
    group({{1, 2}, {1, 2}});
}
void different_functions(int) {
    kind = "function";
    group({{0, 2}, {1, 2}});
}
void right_group(int pe) {
    for (int i = 0; i < 50; ++i) pe == 0 ? group({{2, 3}, {0, 3}, {1, 3}}) : group({{1, 2}, {0, 2}});
}

// A reduction that two threads post together, of which the kind says what is wrong; both are posted by this thread.
void post_sum(const shmem_team_t team, shmemx_request_t* request, int thread, int nthreads, long* to, size_t nelems) {
    volatile int result = shmemx_long_sum_reduce_mt_nbe(team, to, source, nelems, thread, nthreads, request);
    static_cast<void>(result);
}
void posted_alone(shmemx_request_t* request) {
    post_sum(SHMEM_TEAM_WORLD, request, 0, 2, dest, 4);
}
void group_of_posts(int) {
    shmemx_request_t request = kind == "null" ? SHMEMX_REQUEST_NULL : shared_request();
    if (kind == "private")
        shmemx_request_allocate(&request, SHMEMX_REQUEST_PRIVATE);
    if (kind == "plan") {
        shmemx_plan_t plan;
        shmemx_plan_begin(&plan);
    }
    posted_alone(&request);
    if (kind == "function") {
        volatile int result = shmemx_long_max_reduce_mt_nbe(SHMEM_TEAM_WORLD, dest, source, 4, 1, 2, &request);
        static_cast<void>(result);
    } else if (kind == "number") {
        std::thread([&] { posted_alone(&request); }).join();
    } else {
        post_sum(SHMEM_TEAM_WORLD, &request, 1, kind == "nthreads" ? 3 : 2, kind == "dest" ? dest + 4 : dest,
                 kind == "nelems" ? 3 : 4);
    }
    shmemx_request_wait(&request);
}
void posted_by_some(int) {
    shmemx_request_t request = shared_request();
    shmem_team_t team = SHMEM_TEAM_WORLD;
    if (kind == "destroy")
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), nullptr, 0, &team);
    post_sum(team, &request, 0, 2, dest, 4);
    if (kind == "destroy")
        shmem_team_destroy(team);
    else if (kind == "finalize")
        shmem_finalize();
}

}  // namespace

int main(int argc, char** argv) {
    const struct {
        const char* name;
        void (*run)(int pe);
    } scenarios[] = {{"freed", freed},
                     {"waited_for", waited_for},
                     {"merged", merged},
                     {"of_another_pe", of_another_pe},
                     {"garbage", garbage},
                     {"two_posters", two_posters},
                     {"two_posters_of_collectives", two_posters_of_collectives},
                     {"posters_by_turns", posters_by_turns},
                     {"begun_twice", begun_twice},
                     {"ended_with_another", ended_with_another},
                     {"ended_by_another_thread", ended_by_another_thread},
                     {"merged_into_itself", merged_into_itself},
                     {"unequal_nthreads", unequal_nthreads},
                     {"same_number", same_number},
                     {"group_of_posts", group_of_posts},
                     {"posted_by_some", posted_by_some},
                     {"different_functions", different_functions},
                     {"right_group", right_group}};
    int provided;
    if (argc < 2 || shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0)
        return 2;
    kind = argc > 2 ? argv[2] : "";
    for (const auto& scenario : scenarios)
        if (strcmp(scenario.name, argv[1]) == 0)
            scenario.run(shmem_my_pe());
    shmem_finalize();
    printf("survived\n");
    return 0;
}

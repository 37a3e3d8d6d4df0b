// What a PE costs that has nothing to do. With nothing outstanding no thread of it wakes up; while it is blocked for a
// second it burns a small part of a core, under every HEDDLE_PROGRESS but thread:spin. Looks at the kernel's counts, so
// that a loaded machine changes nothing.
#include "check.h"
#include "nonblocking_collectives.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>

using namespace conformance;

namespace {

constexpr double kMostOfACore = 0.3;  // the aim is 0.05; this fails when something spins or naps far too short
uint64_t word, signal_word;
long sum, one = 1;

double seconds(clockid_t clock) {
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Thread {
    long switches;  // voluntary ones: it slept
    char state;
    bool operator==(const Thread&) const = default;
};

// Of all threads but the calling one.
std::map<long, Thread> other_threads() {
    std::map<long, Thread> threads;
    DIR* tasks = opendir("/proc/self/task");
    CHECK(tasks);
    while (const dirent* entry = readdir(tasks)) {
        const long id = atol(entry->d_name);
        FILE* file = id ? fopen(("/proc/self/task/" + std::string(entry->d_name) + "/status").c_str(), "r") : nullptr;
        if (!file)
            continue;
        Thread thread = {-1, '?'};
        for (char line[256]; fgets(line, sizeof line, file);) {
            sscanf(line, "State: %c", &thread.state);
            sscanf(line, "voluntary_ctxt_switches: %ld", &thread.switches);
        }
        fclose(file);
        CHECK(thread.switches >= 0);
        if (id != gettid())
            threads[id] = thread;
    }
    closedir(tasks);
    return threads;
}

// With nothing outstanding: once all threads sleep and have slept for a while, none wakes up for a second.
void nobody_wakes_up(const char* behind) {
    subject = behind;
    shmem_barrier_all();
    std::map<long, Thread> before = other_threads();
    for (int tries = 0;; ++tries) {
        nap_ms(300);
        const std::map<long, Thread> now = other_threads();
        bool all_sleep = true;
        for (const auto& [id, thread] : now) all_sleep = all_sleep && thread.state == 'S';
        if (now == before && all_sleep)
            break;
        if (tries == 60)
            fail(__FILE__, __LINE__, "%zu threads have not come to rest", now.size());
        before = now;
    }
    nap_ms(1000);
    for (const auto& [id, thread] : other_threads()) {
        CHECK(before.contains(id));
        CHECK_EQ(thread.switches, before[id].switches);
    }
    shmem_barrier_all();
}

// PE 0 comes a second late: what do the others burn meanwhile?
template <class Wait, class Come>
void blocked(const char* name, Wait wait, Come come) {
    subject = name;
    word = signal_word = 0;
    shmem_barrier_all();
    if (pe == 0) {
        nap_ms(1000);
        come();
    } else {
        const double begin = seconds(CLOCK_MONOTONIC), cpu_begin = seconds(CLOCK_PROCESS_CPUTIME_ID);
        wait();
        const double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin, all = seconds(CLOCK_MONOTONIC) - begin;
        printf("%s under %s, PE %d: %.2f %% of a core\n", name, getenv("HEDDLE_PROGRESS"), pe, 100 * cpu / all);
        if (!progress_is("thread:spin") && cpu > kMostOfACore * all)
            fail(__FILE__, __LINE__, "burned %.3f s of CPU time in %.3f s, right would be below %.0f %%", cpu, all,
                 100 * kMostOfACore);
    }
    shmem_barrier_all();
}

void for_all_others(void (*tell)(int other)) {
    for (int other = 1; other < n_pes; ++other) tell(other);
}

void all_that_block() {
    blocked(
        "shmem_wait_until", [] { shmem_uint64_wait_until(&word, SHMEM_CMP_EQ, 1); },
        [] { for_all_others([](int other) { shmem_uint64_p(&word, 1, other), shmem_quiet(); }); });
    blocked(
        "shmem_signal_wait_until", [] { shmem_signal_wait_until(&signal_word, SHMEM_CMP_EQ, 1); },
        [] { for_all_others([](int other) { shmem_signal_set(&signal_word, 1, other); }); });
    blocked("shmem_barrier_all", shmem_barrier_all, shmem_barrier_all);
    const auto sync = [] { shmem_team_sync(SHMEM_TEAM_WORLD); };
    blocked("shmem_team_sync", sync, sync);
    const auto reduce = [] { shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &one, 1); };
    blocked("shmem_long_sum_reduce", reduce, reduce);
    const auto posted = [] {
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
        shmemx_long_sum_reduce_nbe(SHMEM_TEAM_WORLD, &sum, &one, 1, &request);
        shmemx_request_wait(&request);
        CHECK_EQ(sum, n_pes);
    };
    blocked("shmemx_request_wait", posted, posted);
    const auto posted_before = [] {
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
        shmemx_long_sum_reduce_nbe(SHMEM_TEAM_WORLD, &sum, &one, 1, &request);
        nap_ms(1000);  // outstanding, while this PE does something else
        shmemx_request_wait(&request);
    };
    blocked("an outstanding collective", posted_before, posted);
}

// Something was outstanding, and is complete.
void collectives() {
    static long dest[8192], source[8192];
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    for (int i = 0; i < 20; ++i)
        CHECK_EQ(shmemx_long_max_reduce_nbe(SHMEM_TEAM_WORLD, dest, source, 8192, &request), 0);
    compute_ms(5);
    shmemx_request_wait(&request);
}

}  // namespace

int main() {
    start("idle");
    const bool is_one_node = shmem_team_n_pes(SHMEM_TEAM_SHARED) == n_pes;  // a network has heartbeats
    if (is_one_node && !progress_is("thread:spin")) {
        nobody_wakes_up("the start");
        collectives();
        nobody_wakes_up("collectives that were posted");
    }
    if (n_pes > 1)
        all_that_block();
    return finish();
}

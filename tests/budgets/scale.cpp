// What a collective costs as its members grow in number: counted, not timed. All PEs are threads of this process, each
// as if with a core of its own, but for `oversubscribed`. Some come late: when all others sleep in the kernel.
//
//     scale PES ALGORITHM LEVEL     ALGORITHM: flat, central, dissemination, or oversubscribed: more PEs than cores;
//     LEVEL: single, multiple
//
// prints for each collective its name and, of all PEs together,
//     wakes      calls that wake, from when the late ones come
//     woken      sleepers that these woke
//     all_wakes  the same calls from the beginning on
//     waits      calls that sleep, from the beginning on, but for those that their time limit has ended (a sleeper
//                looks twice a second whether another PE leaves the job)
//     lines      cache lines of the shared area that the collective has changed
#include "memory/node_memory.h"
#include "support/pes_as_threads.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <shmem.h>
#include <shmemx.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

constexpr int kMaxPes = 512;
constexpr int kNobody = -1;

struct Counts {
    std::atomic<long> wakes{0}, woken{0}, waits{0};
};
Counts counts;

struct Pe {
    // The word that its thread sleeps on, or is about to, while it is as it was; null: none.
    std::atomic<const std::atomic<uint32_t>*> word{nullptr};
    std::atomic<uint32_t> was{0};
    std::atomic<bool> is_back{false};  // from the collective

    bool sleeps() const {
        const std::atomic<uint32_t>* const at = word.load();
        return at && at->load() == was.load();
    }
};
std::array<Pe, kMaxPes> pes;
thread_local int this_pe = kNobody;
pthread_barrier_t all;         // PEs and main; the C library's, which does not call syscall
std::atomic<int> may_come{0};  // of the late PEs those below this one
heddle::memory::NodeMemory node;
using Syscall = long(long, ...);
std::atomic<Syscall*> libc_syscall{nullptr};

}  // namespace

// In place of libc's, through which the library calls futex.
extern "C" long syscall(long number, ...) noexcept {
    va_list list;
    va_start(list, number);
    std::array<long, 6> given;
    for (long& one : given) one = va_arg(list, long);
    va_end(list);
    const long operation = number == SYS_futex ? given[1] & FUTEX_CMD_MASK : -1;
    Pe* const pe = operation == FUTEX_WAIT_BITSET && this_pe != kNobody ? &pes[static_cast<size_t>(this_pe)] : nullptr;
    if (operation == FUTEX_WAKE)
        counts.wakes.fetch_add(1);
    if (pe) {
        pe->was = static_cast<uint32_t>(given[2]);
        pe->word = reinterpret_cast<const std::atomic<uint32_t>*>(given[0]);
    }
    // Not a static variable of the function: the C++ library waits for another thread's initialization by syscall.
    Syscall* next = libc_syscall.load(std::memory_order_relaxed);
    if (!next)
        libc_syscall.store(next = reinterpret_cast<Syscall*>(dlsym(RTLD_NEXT, "syscall")), std::memory_order_relaxed);
    const long result = next(number, given[0], given[1], given[2], given[3], given[4], given[5]);
    if (operation == FUTEX_WAIT_BITSET && !(result == -1 && errno == ETIMEDOUT))
        counts.waits.fetch_add(1);
    if (pe)
        pe->word = nullptr;
    if (operation == FUTEX_WAKE && result > 0)
        counts.woken.fetch_add(result);
    return result;
}

namespace {

[[noreturn]] void fail(const char* what) {
    fprintf(stderr, "scale: %s\n", what);
    _exit(1);
}

// The shared area of the job: its pages that hold anything.
class Area {
  public:
    struct Empty {};
    explicit Area(Empty) {}
    Area() {
        const auto end = static_cast<off_t>(node.layout.shared_offset + node.layout.shared_bytes);
        auto at = static_cast<off_t>(node.layout.shared_offset);
        while ((at = lseek(node.fd, at, SEEK_DATA)) >= 0 && at < end) {
            const off_t hole = std::min(end, lseek(node.fd, at, SEEK_HOLE));
            for (; at < hole; at += kPage) memcpy(pages_[at].data(), node.base + at, kPage);
        }
    }
    // Lines that differ from what they were in `before`.
    long changed_since(const Area& before) const {
        constexpr size_t kLine = 64;
        static const Page kEmpty = {};
        long lines = 0;
        for (const auto& [at, page] : pages_) {
            const auto was = before.pages_.find(at);
            const Page& old = was == before.pages_.end() ? kEmpty : was->second;
            for (size_t i = 0; i < kPage; i += kLine) lines += memcmp(&page[i], &old[i], kLine) != 0;
        }
        return lines;
    }

  private:
    static constexpr size_t kPage = 4096;
    using Page = std::array<char, kPage>;
    std::unordered_map<off_t, Page> pages_;
};

// One PE's memory and teams.
struct Own {
    int me, n;
    size_t longs = 0;  // of source
    long *dest = nullptr, *source = nullptr;
    shmem_team_t row = SHMEM_TEAM_INVALID, column = SHMEM_TEAM_INVALID;  // of a grid, rows of kRow
    shmem_team_t half = SHMEM_TEAM_INVALID;
};
constexpr int kRow = 4;
constexpr size_t kLongs = 4096;       // 32 KiB: more than a bounce buffer holds
constexpr size_t kLongsOfAPart = 66;  // of fcollect: more than a note holds
constexpr size_t kLongsOfALongPart =
    130;  // of collect: where members have a core each, more than goes by bounce buffers

void post_and_wait(const Own& own, bool grid) {
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    if (grid) {
        shmemx_team_sync_nbe(own.row, &request);
        shmemx_team_sync_nbe(own.column, &request);
    } else {
        shmemx_team_sync_nbe(SHMEM_TEAM_WORLD, &request);
    }
    shmemx_request_wait(&request);
}

enum class Comes {
    kFirstLast,        // all others sleep when PE 0 comes
    kFirstOfRowLast,   // and when the first PE of each row does
    kLowerHalfInTurn,  // or the PEs of the lower half, from PE 0 on, each when all that have come sleep
};

struct Collective {
    const char* name;
    Comes late;
    void (*run)(Own&);
};
const Collective kCollectives[] = {
    {"sync", Comes::kFirstLast, [](Own&) { shmem_sync_all(); }},
    {"barrier", Comes::kFirstLast, [](Own&) { shmem_barrier_all(); }},
    {"broadcast_short", Comes::kFirstLast,
     [](Own& own) { shmem_long_broadcast(SHMEM_TEAM_WORLD, own.dest, own.source, 1, 0); }},
    {"broadcast_4k", Comes::kFirstLast,
     [](Own& own) { shmem_long_broadcast(SHMEM_TEAM_WORLD, own.dest, own.source, 512, 0); }},
    {"broadcast_long", Comes::kFirstLast,
     [](Own& own) { shmem_long_broadcast(SHMEM_TEAM_WORLD, own.dest, own.source, kLongs, 0); }},
    {"collect_short", Comes::kFirstLast,
     [](Own& own) { shmem_long_collect(SHMEM_TEAM_WORLD, own.dest, own.source, 1); }},
    {"collect_long", Comes::kFirstLast,
     [](Own& own) { shmem_long_collect(SHMEM_TEAM_WORLD, own.dest, own.source, kLongsOfALongPart); }},
    {"fcollect_short", Comes::kFirstLast,
     [](Own& own) { shmem_long_fcollect(SHMEM_TEAM_WORLD, own.dest, own.source, 1); }},
    {"fcollect_long", Comes::kFirstLast,
     [](Own& own) { shmem_long_fcollect(SHMEM_TEAM_WORLD, own.dest, own.source, kLongsOfAPart); }},
    {"alltoall", Comes::kFirstLast, [](Own& own) { shmem_long_alltoall(SHMEM_TEAM_WORLD, own.dest, own.source, 1); }},
    {"alltoalls", Comes::kFirstLast,
     [](Own& own) { shmem_long_alltoalls(SHMEM_TEAM_WORLD, own.dest, own.source, 2, 1, 1); }},
    {"reduce_short", Comes::kFirstLast,
     [](Own& own) { shmem_long_sum_reduce(SHMEM_TEAM_WORLD, own.dest, own.source, 1); }},
    {"reduce_long", Comes::kFirstLast,
     [](Own& own) { shmem_long_sum_reduce(SHMEM_TEAM_WORLD, own.dest, own.source, kLongs); }},
    {"inscan_short", Comes::kFirstLast,
     [](Own& own) { shmem_long_sum_inscan(SHMEM_TEAM_WORLD, own.dest, own.source, 1); }},
    {"exscan_short", Comes::kFirstLast,
     [](Own& own) { shmem_long_sum_exscan(SHMEM_TEAM_WORLD, own.dest, own.source, 1); }},
    {"inscan_long", Comes::kFirstLast,
     [](Own& own) { shmem_long_sum_inscan(SHMEM_TEAM_WORLD, own.dest, own.source, kLongs); }},
    {"split", Comes::kFirstLast,
     [](Own& own) { shmem_team_split_strided(SHMEM_TEAM_WORLD, own.me % 2, 2, own.n / 2, nullptr, 0, &own.half); }},
    {"row_sync", Comes::kFirstOfRowLast, [](Own& own) { shmem_team_sync(own.row); }},
    {"sync_nbe", Comes::kFirstLast, [](Own& own) { post_and_wait(own, false); }},
    {"grid_sync_nbe", Comes::kFirstOfRowLast, [](Own& own) { post_and_wait(own, true); }},
    {"sync_in_turn", Comes::kLowerHalfInTurn, [](Own&) { shmem_sync_all(); }},
    {"inscan_in_turn", Comes::kLowerHalfInTurn,
     [](Own& own) { shmem_long_sum_inscan(SHMEM_TEAM_WORLD, own.dest, own.source, 1); }},
};

// Who comes late to a collective, and looks whether all that have come sleep, or are back.
struct Late {
    const Collective& collective;
    int n;

    bool is(int pe) const {
        switch (collective.late) {
            case Comes::kFirstLast:
                return pe == 0;
            case Comes::kFirstOfRowLast:
                return pe % kRow == 0;
            default:
                return pe < n / 2;
        }
    }
    // True when all of them slept at once: who wakes one has changed its word before, and nobody has called meanwhile.
    bool all_sleep() const {
        const long wakes = counts.wakes.load();
        for (int i = 0; i < n; ++i) {
            const Pe& pe = pes[static_cast<size_t>(i)];
            const bool has_come = !is(i) || i < may_come.load();
            if (has_come && !pe.is_back.load() && !pe.sleeps())
                return false;
        }
        return counts.wakes.load() == wakes;
    }
    void wait_until_all_sleep() const {
        while (!all_sleep()) usleep(200);
    }
};

// What each PE does while watch_over counts.
void take_part(const Collective& collective, Own& own) {
    Pe& pe = pes[static_cast<size_t>(own.me)];
    for (size_t i = 0; i < own.longs; ++i) own.source[i] += own.me + 1;  // what is written differs from what was there
    pe.is_back = false;
    pthread_barrier_wait(&all);
    pthread_barrier_wait(&all);
    while (Late{collective, own.n}.is(own.me) && own.me >= may_come) usleep(200);
    collective.run(own);
    pe.is_back = true;
    pthread_barrier_wait(&all);
}

void print(const char* name, long wakes, long woken, long all_wakes, long waits, long lines) {
    printf("%s wakes %ld woken %ld all_wakes %ld waits %ld lines %ld\n", name, counts.wakes - wakes,
           counts.woken - woken, counts.wakes - all_wakes, counts.waits - waits, lines);
}

void watch_over(const Collective& collective, int n_pes) {
    const Late late = {collective, n_pes};
    pthread_barrier_wait(&all);  // nobody is on the way out of the last one
    may_come = 0;
    const Area before;
    const long all_wakes = counts.wakes, waits = counts.waits;
    pthread_barrier_wait(&all);
    late.wait_until_all_sleep();
    const long wakes = counts.wakes, woken = counts.woken;
    for (int pe = 0; collective.late == Comes::kLowerHalfInTurn && pe < n_pes / 2; ++pe) {
        may_come = pe + 1;
        late.wait_until_all_sleep();
    }
    may_come = n_pes;
    pthread_barrier_wait(&all);
    print(collective.name, wakes, woken, all_wakes, waits, Area().changed_since(before));
}

void run_pe(int pe, int n_pes, bool multiple) {
    this_pe = pe;
    int provided;
    shmem_init_thread(multiple ? SHMEM_THREAD_MULTIPLE : SHMEM_THREAD_SINGLE, &provided);
    if (pe == 0)
        node = heddle::memory::node_memory;
    pthread_barrier_wait(&all);
    pthread_barrier_wait(&all);
    Own own = {.me = pe, .n = n_pes};
    const size_t n = static_cast<size_t>(n_pes);
    own.dest = static_cast<long*>(shmem_calloc(std::max(kLongs, kLongsOfALongPart * n), sizeof(long)));
    own.longs = std::max(kLongs, 2 * n);
    own.source = static_cast<long*>(shmem_calloc(own.longs, sizeof(long)));
    shmem_team_split_2d(SHMEM_TEAM_WORLD, kRow, nullptr, 0, &own.row, nullptr, 0, &own.column);
    for (const Collective& collective : kCollectives) take_part(collective, own);
    pthread_barrier_wait(&all);
    shmem_finalize();
}

}  // namespace

int main(int argc, char** argv) {
    const int n_pes = argc == 4 ? atoi(argv[1]) : 0;
    if (n_pes < 2 * kRow || n_pes > kMaxPes || n_pes % kRow != 0)
        fail("scale PES ALGORITHM LEVEL, PES being 8, 12 ... 512");
    const std::string algorithm = argv[2];
    setenv("HEDDLE_BARRIER", algorithm == "oversubscribed" ? "auto" : argv[2], 1);
    setenv("HEDDLE_SPIN_US", "0", 1);  // who waits sleeps at once
    setenv("HEDDLE_YIELD_US", "0", 1);
    setenv("HEDDLE_MONITOR", "none", 1);
    setenv("HEDDLE_PROGRESS", "manual", 1);  // no further threads
    setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
    pthread_barrier_init(&all, nullptr, static_cast<unsigned>(n_pes) + 1);
    std::thread job([&] {
        heddle::test::run_pes(
            n_pes, [&](int pe) { run_pe(pe, n_pes, std::string(argv[3]) == "multiple"); },
            algorithm == "oversubscribed" ? 1 : n_pes);
    });
    pthread_barrier_wait(&all);
    print("start", 0, 0, 0, 0, Area().changed_since(Area(Area::Empty())));
    pthread_barrier_wait(&all);
    for (const Collective& collective : kCollectives) watch_over(collective, n_pes);
    pthread_barrier_wait(&all);
    job.join();
    return 0;
}

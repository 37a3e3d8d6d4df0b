// Two threads put at the same time on one context, data that goes in several records; a third one has put, and fences,
// while both are within their copies. A fence orders what other threads send behind it, so each of the two may have to
// wait for the others ahead of its next record: not for what they have written and not sent. The copies are held where
// they read a page that is protected, until both have come there.
#include "check.h"

#include <sys/mman.h>
#include <unistd.h>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>

using namespace conformance;

namespace {

constexpr size_t kBytes = 40000, kHeld = 16384, kRoom = 65536;
constexpr int kPutters = 2;

char *sources[kPutters], *dests[kPutters];
size_t page_bytes;
std::atomic<int> turn, held[kPutters], let_go, done[kPutters];
thread_local int putter = -1;

void hold(int, siginfo_t* info, void*) {
    if (putter < 0)
        _exit(99);
    const int now = turn.load();
    const uintptr_t page = reinterpret_cast<uintptr_t>(info->si_addr) / page_bytes * page_bytes;
    mprotect(reinterpret_cast<void*>(page), page_bytes, PROT_READ | PROT_WRITE);  // NOLINT: an address of the kernel's
    held[putter].store(now);
    while (let_go.load() != now) continue;
    const unsigned spins = static_cast<unsigned>(now) * 2654435761u >> 20;  // they meet at any distance
    for (unsigned i = 0; i < spins % 1024 * static_cast<unsigned>(putter); ++i)
        std::atomic_signal_fence(std::memory_order_seq_cst);
}

void put(int number, int turns) {
    putter = number;
    for (int now = 1; now <= turns; ++now) {
        while (turn.load() != now) sched_yield();
        if (now % 2 == 0)
            shmem_putmem(dests[number], sources[number], kBytes, 1);
        else
            shmem_putmem_nbi(dests[number], sources[number], kBytes, 1);
        done[number].store(now);
    }
}

void run(int turns) {
    for (int i = 0; i < kPutters; ++i) {
        void* const memory = mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(memory != MAP_FAILED);
        sources[i] = static_cast<char*>(memory);
        memset(sources[i], 'a' + i, kRoom);
    }
    struct sigaction action = {};
    action.sa_sigaction = hold;
    action.sa_flags = SA_SIGINFO;
    struct sigaction before;
    CHECK_EQ(sigaction(SIGSEGV, &action, &before), 0);
    std::thread putters[] = {std::thread(put, 0, turns), std::thread(put, 1, turns)};
    auto* const word = reinterpret_cast<long*>(dests[0] + kBytes);
    for (int now = 1; now <= turns; ++now) {
        for (char* const source : sources) CHECK_EQ(mprotect(source + kHeld, page_bytes, PROT_NONE), 0);
        turn.store(now);
        for (const std::atomic<int>& one : held)
            while (one.load() != now) sched_yield();
        shmem_long_p(word, now, 1);
        shmem_fence();  // they must wait for it
        let_go.store(now);
        for (const std::atomic<int>& one : done)
            while (one.load() != now) sched_yield();
        shmem_quiet();
    }
    for (std::thread& thread : putters) thread.join();
    sigaction(SIGSEGV, &before, nullptr);
}

}  // namespace

int main() {
    start("puts_beside_fences");
    page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    for (char*& dest : dests) {
        dest = static_cast<char*>(shmem_calloc(1, kRoom));
        CHECK(dest != nullptr);
    }
    shmem_barrier_all();
    if (pe == 0 && n_pes > 1 && page_bytes <= kHeld)
        run(static_cast<int>(number("HEDDLE_TEST_ROUNDS", 3000)));
    shmem_barrier_all();
    for (int i = 0; i < kPutters && pe == 1 && page_bytes <= kHeld; ++i)
        for (size_t at = 0; at < kBytes; ++at) CHECK_EQ(dests[i][at], 'a' + i);
    return finish();
}

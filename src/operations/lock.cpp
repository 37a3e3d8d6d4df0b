#include "operations/lock.h"

#include "base/error.h"
#include "memory/symmetric.h"
#include "operations/check.h"
#include "os/futex.h"
#include "progress/wait_policy.h"

namespace heddle::operations {

namespace {

using Word = std::atomic<uint32_t>;
static_assert(sizeof(long) == 2 * sizeof(Word));

// A node: who comes next (PE plus one, 0: nobody yet) and these.
constexpr uint32_t kInUse = 1u << 31;     // by a thread of its PE, that holds the lock or waits for it
constexpr uint32_t kWaiting = 1u << 30;   // the predecessor has not let go
constexpr uint32_t kSleeping = 1u << 29;  // in the kernel: whoever clears kWaiting wakes it
constexpr uint32_t kNext = kSleeping - 1;

struct Lock {
    Word* tail;
    Word* node;
    size_t offset;
    bool in_heap;

    Word* node_of(int pe) const {
        const heddle_peer& peer = memory::symmetric->peers[pe];
        return reinterpret_cast<Word*>((in_heap ? peer.heap : peer.data) + offset) + 1;
    }
};

Lock find(const char* function, long* address) {
    require_running(function);
    const memory::Symmetric& memory = *memory::symmetric;
    require_atomic(function, "lock", address, sizeof *address, memory.pe);
    const bool in_heap = memory.heap.holds(address);
    const size_t offset = reinterpret_cast<uintptr_t>(address) - (in_heap ? memory.heap : memory.data).base;
    const int home = static_cast<int>(offset / sizeof *address % static_cast<size_t>(memory.n_pes));
    Lock lock = {nullptr, nullptr, offset, in_heap};
    lock.tail = lock.node_of(home) - 1;
    lock.node = lock.node_of(memory.pe);
    return lock;
}

uint32_t me() {
    return static_cast<uint32_t>(memory::symmetric->pe) + 1;
}

bool claim_node(const Lock& lock) {
    uint32_t free = 0;
    // Acquire: pairs with the release in clear_lock by another thread of this PE.
    return lock.node->compare_exchange_strong(free, kInUse, std::memory_order_acquire, std::memory_order_relaxed);
}

void await_turn(const char* function, Word& node) {
    // Acquire: pairs with the release in hand_on; what was done under the lock is seen.
    const auto my_turn = [&] { return (node.load(std::memory_order_acquire) & kWaiting) == 0; };
    if (my_turn())
        return;
    progress::WaitSteps steps(function, &node, true);
    while (!my_turn()) {
        if (!steps.step(my_turn))
            continue;
        // One word holds both bits, so either hand_on sees kSleeping or the kernel sees kWaiting gone.
        const uint32_t seen = node.fetch_or(kSleeping, std::memory_order_relaxed) | kSleeping;
        if (seen & kWaiting)
            os::futex_wait(&node, seen, nullptr);
    }
}

void hand_on(Word& next) {
    // Release: pairs with await_turn.
    const uint32_t old = next.fetch_and(~(kWaiting | kSleeping), std::memory_order_release);
    if (old & kSleeping)
        os::futex_wake_all(&next);
}

}  // namespace

void set_lock(const char* function, long* address) {
    const Lock lock = find(function, address);
    while (!claim_node(lock))
        progress::wait_for_store(function, lock.node, [&] { return lock.node->load(std::memory_order_relaxed) == 0; });
    // acq_rel: pairs with that of the PE before and of the PE behind, and with the release in clear_lock.
    const uint32_t before = lock.tail->exchange(me(), std::memory_order_acq_rel);
    if (before == 0)
        return;
    lock.node->fetch_or(kWaiting, std::memory_order_relaxed);  // ahead of the link, which is how it is found
    // Release: pairs with the acquire in clear_lock, so that it finds kWaiting set.
    lock.node_of(static_cast<int>(before) - 1)->fetch_or(me(), std::memory_order_release);
    await_turn(function, *lock.node);
}

int test_lock(const char* function, long* address) {
    const Lock lock = find(function, address);
    if (!claim_node(lock))
        return 1;
    uint32_t free = 0;
    // Acquire: pairs with the release in clear_lock.
    if (lock.tail->compare_exchange_strong(free, me(), std::memory_order_acq_rel, std::memory_order_relaxed))
        return 0;
    lock.node->store(0, std::memory_order_release);  // pairs with claim_node
    return 1;
}

void clear_lock(const char* function, long* address) {
    const Lock lock = find(function, address);
    const uint32_t state = lock.node->load(std::memory_order_acquire);  // pairs with the link in set_lock
    if ((state & (kInUse | kWaiting)) != kInUse)
        base::fatal(function, "lock %p is not held by this PE", static_cast<void*>(address));
    if ((state & kNext) == 0) {
        uint32_t last = me();
        // seq_cst: the quiet of clear_lock; releases what was done under the lock to the next that comes.
        if (lock.tail->compare_exchange_strong(last, 0, std::memory_order_seq_cst, std::memory_order_relaxed)) {
            lock.node->store(0, std::memory_order_release);  // pairs with claim_node
            return;
        }
        // Somebody stands behind, and is about to link itself.
        progress::wait_for_store(function, lock.node,
                                 [&] { return (lock.node->load(std::memory_order_acquire) & kNext) != 0; });
    }
    const uint32_t next = lock.node->exchange(0, std::memory_order_seq_cst) & kNext;
    hand_on(*lock.node_of(static_cast<int>(next) - 1));
}

}  // namespace heddle::operations

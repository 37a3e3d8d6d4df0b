#include "operations/lock.h"

#include "base/error.h"
#include "base/settings.h"
#include "base/tsan.h"
#include "bootstrap/bootstrap.h"
#include "memory/symmetric.h"
#include "operations/check.h"
#include "operations/observer.h"
#include "operations/order.h"
#include "operations/remote.h"
#include "os/futex.h"
#include "os/locked.h"
#include "progress/engine.h"
#include "progress/wait_policy.h"
#include "team/deadlock.h"

#include <pthread.h>
#include <algorithm>
#include <optional>
#include <vector>

namespace heddle::operations {

using base::Call;

namespace {

using Word = std::atomic<uint32_t>;
static_assert(sizeof(long) == 2 * sizeof(Word));

// A node: the next PE in the queue (plus one; 0: none yet) and these bits.
constexpr uint32_t kInUse = 1u << 31;     // a thread of this PE holds the lock or waits for it
constexpr uint32_t kWaiting = 1u << 30;   // the predecessor has not released the lock
constexpr uint32_t kSleeping = 1u << 29;  // on this word, in the kernel: the PE that clears kWaiting wakes the sleeper
constexpr uint32_t kAtWakeup = 1u << 28;  // at its PE's wake-up: the PE that clears kWaiting advances that
constexpr uint32_t kNext = kAtWakeup - 1;

// One of the two words of a lock, on any PE. All operations on it are atomic, and acquire and release: locks order what
// is done under them.
class AnyWord {
  public:
    AnyWord(const char* function, long* lock, int word, int pe)
        : function_(function),
          as_mine_(reinterpret_cast<Word*>(lock) + word),
          here_(reinterpret_cast<Word*>(memory::address_on(as_mine_, pe))),
          pe_(pe) {}

    // The word in this PE's address space; null on another node.
    Word* here() const { return here_; }
    int pe() const { return pe_; }

    uint32_t exchange(uint32_t value) const {
        return here_ ? here_->exchange(value, std::memory_order_acq_rel) : ask(HEDDLE_AMO_SWAP, value, 0);
    }
    bool compare_exchange(uint32_t expected, uint32_t value) const {
        if (!here_)
            return ask(HEDDLE_AMO_COMPARE_SWAP, value, expected) == expected;
        // seq_cst: the quiet that clear_lock implies, and acquire in test_lock.
        return here_->compare_exchange_strong(expected, value, std::memory_order_seq_cst, std::memory_order_relaxed);
    }
    uint32_t fetch_or(uint32_t bits) const {
        return here_ ? here_->fetch_or(bits, std::memory_order_acq_rel) : ask(HEDDLE_AMO_OR, bits, 0);
    }
    uint32_t fetch_and(uint32_t bits) const {
        return here_ ? here_->fetch_and(bits, std::memory_order_acq_rel) : ask(HEDDLE_AMO_AND, bits, 0);
    }

  private:
    uint32_t ask(heddle_amo_op op, uint32_t operand, uint32_t expected) const {
        uint32_t old = 0;
        remote_amo({.call = {function_}, .ctx = SHMEM_CTX_DEFAULT, .blocking = true}, op, &old, as_mine_, operand,
                   expected, sizeof old, pe_);
        return old;
    }

    const char* function_;
    Word* as_mine_;
    Word* here_;
    int pe_;
};

struct Lock {
    const char* function;
    long* address;
    AnyWord tail;  // the tail on the lock's home, the only one in use
    Word* node;    // this PE's

    AnyWord node_of(uint32_t pe_plus_one) const { return {function, address, 1, static_cast<int>(pe_plus_one) - 1}; }
};

Lock find(const char* function, long* address) {
    require_running(function);
    const memory::Symmetric& memory = *memory::symmetric;
    require_atomic(function, "lock", address, sizeof *address, memory.pe);
    const size_t offset =
        reinterpret_cast<uintptr_t>(address) - (memory.heap.holds(address) ? memory.heap : memory.data).base;
    const int home = static_cast<int>(offset / sizeof *address % static_cast<size_t>(memory.n_pes));
    return {function, address, AnyWord(function, address, 0, home), AnyWord(function, address, 1, memory.pe).here()};
}

uint32_t me() {
    return static_cast<uint32_t>(memory::symmetric->pe) + 1;
}

bool claim_node(const Lock& lock) {
    uint32_t free = 0;
    // Acquire: pairs with operations::clear_lock and operations::test_lock in another thread of this PE.
    return lock.node->compare_exchange_strong(free, kInUse, std::memory_order_acquire, std::memory_order_relaxed);
}

// What a wait for the lock waits for, in reports.
progress::WaitTarget target_of(const Lock& lock) {
    return {.kind = progress::WaitTarget::Kind::kLock, .value_bytes = sizeof(long), .address = lock.address};
}

// Waits for the lock. ahead: the PE before this one in the queue.
__attribute__((noinline)) void await_turn(Call call, const Lock& lock, int ahead) {
    Word& node = *lock.node;
    // Acquire: pairs with operations::hand_on; what was done under the lock is seen.
    const auto my_turn = [&] { return (node.load(std::memory_order_acquire) & kWaiting) == 0; };
    if (my_turn())
        return;
    const progress::WaitTarget target = target_of(lock);
    if (base::settings.check) {
        const team::WaitForPe wait(call, ahead);
        team::DeadlockDetector circle(call);
        const auto my_turn_or_look = [&] {
            if (my_turn())
                return true;
            circle.look();
            return false;
        };
        return progress::wait_for_store(call.function, &node, my_turn_or_look, true, &target);
    }
    if (memory::symmetric->has_network)  // whose operations wake nobody that sleeps on the word
        return progress::wait_for_store(call.function, &node, my_turn, true, &target);
    progress::WaitSteps steps(call.function, &node, true, &target);
    while (!my_turn()) {
        if (!steps.step(my_turn))
            continue;
        // One word holds all bits: either hand_on sees where this thread sleeps, or this thread, or the kernel, sees
        // that kWaiting is clear.
        const uint32_t place = steps.sleeps_at_wakeup() ? kAtWakeup : kSleeping;
        const uint32_t seen = node.fetch_or(place, std::memory_order_relaxed) | place;
        if (place == kAtWakeup) {
            steps.sleep_at_wakeup(my_turn);
            continue;
        }
        const timespec until = steps.next_look();
        if (seen & kWaiting)
            os::futex_wait(&node, seen, &until);
    }
}

void hand_on(const AnyWord& next) {
    const uint32_t old = next.fetch_and(~(kWaiting | kSleeping | kAtWakeup));  // pairs with operations::await_turn
    if (old & kSleeping)
        os::futex_wake_all(next.here());
    if (old & kAtWakeup)
        sync::wakeups.of[bootstrap::job.slot_of(next.pe())].event_count.advance();
}

// In a checked run: the locks that threads of this PE hold, and where each was taken.
class Books {
  public:
    // Ends the PE when this thread holds the lock. With several threads only reports: another thread may clear the
    // lock.
    void check(const Call& call, const long* lock) {
        const os::Locked locked(mutex_);
        const auto held = find(lock);
        if (held == held_.end() || !pthread_equal(held->thread, pthread_self()))
            return;
        constexpr const char* kMessage =
            "this thread holds lock %p already, since %s: right would be shmem_clear_lock before this %s";
        const base::CallText before = base::describe(held->call), now = base::describe(call);
        if (progress::threads_of_program() == 1)
            base::fatal(call.function, kMessage, static_cast<const void*>(lock), before.data(), now.data());
        base::complain(call.function, kMessage, static_cast<const void*>(lock), before.data(), now.data());
    }
    void take(const Call& call, const long* lock) {
        const os::Locked locked(mutex_);
        held_.push_back({lock, pthread_self(), call});
    }
    void clear(const long* lock) {
        const os::Locked locked(mutex_);
        if (const auto held = find(lock); held != held_.end())
            held_.erase(held);
    }

    void report(const char* function) {
        const os::Locked locked(mutex_);
        for (const Held& held : held_)
            base::complain(function,
                           "this PE ends while it holds lock %p, since %s: right would be shmem_clear_lock before",
                           static_cast<const void*>(held.lock), base::describe(held.call).data());
        held_.clear();
    }

  private:
    struct Held {
        const long* lock;
        pthread_t thread;
        Call call;
    };
    std::vector<Held>::iterator find(const long* lock) {
        return std::find_if(held_.begin(), held_.end(), [&](const Held& held) { return held.lock == lock; });
    }

    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    std::vector<Held> held_;
};

// The records of this process: a lock is known by its address here. Several threads may make them at once.
Books& books() {
    static std::atomic<Books*> the_books{nullptr};
    Books* known = the_books.load(std::memory_order_acquire);  // pairs with operations::books
    if (!known) {
        auto* const made = new Books;  // lives as long as the process
        tsan::release(made);
        if (the_books.compare_exchange_strong(known, made, std::memory_order_acq_rel))
            return *made;
        delete made;
    }
    tsan::acquire(known);
    return *known;
}

void take(Call call, long* address) {
    const Lock lock = find(call.function, address);
    std::optional<ObservedWait> observed;
    while (!claim_node(lock)) {
        const progress::WaitTarget target = target_of(lock);
        const auto is_free = [&] { return lock.node->load(std::memory_order_relaxed) == 0; };
        if (!observed)
            observed.emplace(Observer::Wait::kLock, call);
        progress::wait_for_store(call.function, lock.node, is_free, true, &target);
    }
    // Pairs with operations::take, operations::test_lock and operations::clear_lock.
    const uint32_t before = lock.tail.exchange(me());
    if (before == 0)
        return;
    if (!observed)
        observed.emplace(Observer::Wait::kLock, call);
    // Before the link below, through which a predecessor finds this node.
    lock.node->fetch_or(kWaiting, std::memory_order_relaxed);
    lock.node_of(before).fetch_or(me());  // pairs with operations::clear_lock, which then sees kWaiting set
    await_turn(call, lock, static_cast<int>(before) - 1);
}

// True when there is more to do: in a checked run, for an observer, and under ThreadSanitizer.
bool is_watched() {
    return base::settings.observed || tsan::is_on();
}
__attribute__((noinline, cold)) void note_taken(Call call, const long* lock) {
    tsan::acquire();
    if (base::settings.check)
        books().take(call, lock);
    if (Observer* const told = find_observer())
        told->take_lock(lock);
}
__attribute__((noinline, cold)) void take_watched(Call call, long* address) {
    require_running(call.function);
    if (base::settings.check)
        books().check(call, address);
    take(call, address);
    note_taken(call, address);
}
__attribute__((noinline, cold)) void note_cleared(const long* lock) {
    books().clear(lock);
}

}  // namespace

void set_lock(Call call, long* address) {
    if (__builtin_expect(is_watched(), 0))
        return take_watched(call, address);
    take(call, address);
}

int test_lock(Call call, long* address) {
    const Lock lock = find(call.function, address);
    if (!claim_node(lock)) {
        progress::poll_after_test();
        return 1;
    }
    // Pairs with operations::take and operations::clear_lock.
    if (lock.tail.compare_exchange(0, me())) {
        if (__builtin_expect(is_watched(), 0))
            note_taken(call, address);
        return 0;
    }
    lock.node->store(0, std::memory_order_release);  // pairs with operations::claim_node
    progress::poll_after_test();
    return 1;
}

void clear_lock(Call call, long* address) {
    const char* const function = call.function;
    const Lock lock = find(function, address);
    const uint32_t state = lock.node->load(std::memory_order_acquire);  // pairs with operations::take
    if ((state & (kInUse | kWaiting)) != kInUse)
        base::fatal(function, "lock %p is not held by this PE", static_cast<void*>(address));
    if (base::settings.check)
        note_cleared(address);
    settle_if_any(function, SHMEM_CTX_DEFAULT);  // on the node, earlier operations are complete
    if (Observer* const told = find_observer())
        told->give_lock(address);
    if ((state & kNext) == 0) {
        // Releases what was done under the lock to the next owner. Pairs with operations::take and
        // operations::test_lock.
        if (lock.tail.compare_exchange(me(), 0)) {
            lock.node->store(0, std::memory_order_release);  // pairs with operations::claim_node
            return;
        }
        // Another PE is in the queue and about to link itself. Acquire: pairs with operations::take.
        progress::wait_for_store(function, lock.node,
                                 [&] { return (lock.node->load(std::memory_order_acquire) & kNext) != 0; });
    }
    const uint32_t next = lock.node->exchange(0, std::memory_order_seq_cst) & kNext;
    hand_on(lock.node_of(next));
}

void report_held_locks(const char* function) {
    if (base::settings.check)
        books().report(function);
}

int holder_of(const long* lock) {
    for (int pe = 0; pe < memory::symmetric->n_pes; ++pe) {
        const auto* const node = reinterpret_cast<const Word*>(memory::address_on(lock, pe));
        // Relaxed: the holder of a moment ago.
        if (node && (node[1].load(std::memory_order_relaxed) & (kInUse | kWaiting)) == kInUse)
            return pe;
    }
    return -1;
}

}  // namespace heddle::operations

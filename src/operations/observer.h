// The hook of observed runs (Settings::observed): what a tool of src/checking/ or src/profiling/ is told of the
// program's operations, and may carry out itself, later. Only observed runs have an observer, and no more than one.
// Other runs never look for it where the hot path or a common case is: the inlined operations, put_at_once, fence and
// quiet with nothing outstanding.
//
// Threads: any may call the observer; it must be ready for that. The observer may call carry_out from any thread.
#pragma once

#include "base/call.h"
#include "base/pe_local.h"
#include "context/context.h"
#include "progress/fiber.h"

#include <heddle/accesses.h>
#include <heddle/hot_path.h>
#include <heddle/request.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace heddle::team {
struct Team;
}

namespace heddle::operations {

// One operation as the program called it. The target, the extent and the addresses have been checked.
struct Operation {
    enum class Kind : uint8_t {
        kPut,        // nblocks blocks of nelems elements each; one block but for the strided and blocked forms
        kGet,        // likewise
        kAtomic,     // amo, on the datum of element_bytes at dest; fetch: where the old value goes, or null
        kPutSignal,  // a put of nelems elements and then the signal
    };

    Kind kind = Kind::kPut;
    base::Call call;
    shmem_ctx_t ctx = nullptr;
    int pe = 0;        // of the context
    int world_pe = 0;  // the same PE in the world
    // Of a put and a signal's data: dest is symmetric, source is this PE's. Of a get: the other way round.
    void* dest = nullptr;
    const void* source = nullptr;
    size_t nelems = 0, element_bytes = 1;
    size_t nblocks = 1, dest_step = 0, source_step = 0;  // from block to block, in bytes
    heddle_amo_op amo = HEDDLE_AMO_FETCH;
    uint64_t operand = 0, compare = 0;
    void* fetch = nullptr;
    uint64_t* sig_addr = nullptr;
    uint64_t signal = 0;
    int sig_op = 0;
    shmemx_request_t* req = nullptr;  // the operation joins *req; null: none
    // The call returns behind it: of a put, source may be reused then; of a get and a fetch, the value is there.
    bool blocking = true;

    size_t block_bytes() const { return nelems * element_bytes; }
    // Nothing comes back: the operation is complete behind a quiet, and needs not be before.
    bool only_stores() const { return kind != Kind::kGet && !fetch; }
};

// Carries the operation out, without telling the observer, and returns when its buffers may be reused: its memory is
// stored to on this node, or a message to another one is under way. req is not looked at.
void carry_out(const Operation& operation);

class Observer {
  public:
    virtual ~Observer() = default;

    // Called before an operation is carried out. True: the observer has done so, or will.
    virtual bool issue(const Operation& operation) = 0;
    // Behind it, in the same thread, where issue has returned false: the call returns.
    virtual void end_operation() {}
    // What follows on ctx is to be ordered behind what was issued before, for each PE (fence).
    virtual void order(const char* function, shmem_ctx_t ctx) = 0;
    // What was issued on ctx is to be complete (quiet, barrier, the end of a context); ctx null: on all contexts. pes:
    // of the context, the only ones concerned; null: all.
    virtual void complete(const char* function, shmem_ctx_t ctx, const int* pes = nullptr, size_t npes = 0) = 0;
    // True when nothing that was issued on ctx is left with the observer.
    virtual bool is_complete(shmem_ctx_t ctx) = 0;
    // The calling thread is about to wait for, or to test, symmetric memory of its PE.
    virtual void look() = 0;
    // The calling thread is about to enter a collective.
    virtual void enter_collective(const base::Call& call) = 0;

    // --- For observers of the order that a program makes.

    // A word of this PE's symmetric memory, in which a wait or a test of this thread has found what it looked for.
    virtual void see(const void*, size_t) {}
    // The last write to such a word, as far as that is known: its PE and its call. False: unknown. A thread that sleeps
    // in a wait may ask.
    virtual bool try_last_write(const void*, size_t, int* /*pe*/, base::CallText* /*call*/) { return false; }
    // The thread holds a lock; it is about to give one back, and what it did before is complete.
    virtual void take_lock(const long*) {}
    virtual void give_lock(const long*) {}
    // A request is complete.
    virtual void complete_request() {}
    // A collective is posted to a request; its end is the request's.
    virtual void post_collective(const base::Call&) {}
    // A buffer of one that is posted, in use until a request is complete.
    virtual void post_buffer(const base::Call&, const void*, size_t, bool /*writes*/) {}
    // Before and behind a collective: the team, and the root's rank; -1: none.
    virtual void begin_collective(const team::Team&, int) {}
    virtual void end_collective(const team::Team&) {}
    // This PE's part in a collective's buffer, symmetric memory that is read or written between both.
    virtual void use_buffer(const base::Call&, const void*, size_t, bool /*writes*/) {}
    // A block of the heap, and the call that has allocated it; a block that is free again.
    virtual void allocate(const base::Call&, const void*, size_t) {}
    virtual void free(const base::Call&, const void*) {}
    // The program gets an address of another PE's memory, which it may load and store.
    virtual void hand_out_address() {}
    // A load or store by the program itself, as heddle_slow_access.
    virtual void access(const void*, size_t, heddle_access_kind, const void* /*caller*/, heddle_recent*) {}

    // --- For observers of the time that a program spends.

    // The calling thread begins to wait, and has waited; the first may come in another wait. ctx: null where there is
    // none.
    enum class Wait : uint8_t { kQuiet, kFence, kValue, kRequest, kLock, kCollective };
    virtual void begin_wait(Wait, const base::Call&, shmem_ctx_t) {}
    virtual void end_wait() {}
    // The collective that the calling thread has begun to wait in is of this team. Of several threads of the PE that
    // carry it out, one tells.
    virtual void join_collective(const team::Team&) {}

    // The last of all calls, in finalize, while all PEs can still be reached.
    virtual void stop(const char* function) = 0;
};

// The addresses whose accesses the observer wants to be told of (heddle/accesses.h), and whether the program tells:
// false until the first of its accesses. Relaxed atomics.
extern heddle_watched watched_accesses;
extern bool program_tells_accesses;

// This PE's observer: null but in checked runs that ask for a tool. Set by init and finalize.
extern HEDDLE_PE_LOCAL base::PePointer<Observer> observer;

// Where the program called the operation that this thread issues next; null: unknown, and the stack tells. An address
// in this library: the exported function has been called, not the inlined one. Set for an observer alone, which clears
// it.
extern constinit thread_local const void* called_from;

// Operations of one kind, place, context and size that an observer of time need not be told of one by one: the next
// `left` of a thread are counted here, and carried out at once by loads and stores. Of contexts whose PEs are the
// world's, without an order of their own.
struct ObservedRun {
    Operation::Kind kind = Operation::Kind::kPut;
    uint32_t left = 0;
    const void* caller = nullptr;
    shmem_ctx_t ctx = nullptr;
    uint64_t destroyed = 0;  // contexts, when the run began: another one may have the handle since
    size_t bytes = 0;
    const heddle_peer* peers = nullptr;  // of n_pes
    unsigned n_pes = 0;
    int group_shift = 0;  // PEs are told apart as far as the bits above
    uintptr_t heap_base = 0, data_base = 0;
    // What has been counted, for another thread that reads it. Relaxed, all: counts order nothing.
    uint64_t n = 0;
    uint64_t following = 0;  // operations that begin where the one before has ended, on the same PE
    uint64_t groups = 0;     // with operations, a bit each
    std::array<uint64_t, 64> operations = {};
    uintptr_t last_end = 0;
    int last_pe = -1;

    // The address at which this PE reaches what is `there` on pe, where the operation belongs to the run. Otherwise
    // null, and nothing was done.
    char* count(Operation::Kind what, const void* from, shmem_ctx_t on, const void* there, size_t size, int pe) {
        if (__atomic_load_n(&left, __ATOMIC_RELAXED) == 0 || from != caller || what != kind || on != ctx ||
            size != bytes || static_cast<unsigned>(pe) >= n_pes ||
            context::contexts->destroyed.load(std::memory_order_relaxed) != destroyed)
            return nullptr;
        const heddle_peer& peer = peers[pe];
        const auto address = reinterpret_cast<uintptr_t>(there);
        const auto fits = [size](uintptr_t offset, size_t region) {
            return offset < region && region - offset >= size;
        };
        char* reached = nullptr;
        if (fits(address - heap_base, peer.heap_size))
            reached = peer.heap + (address - heap_base);
        else if (fits(address - data_base, peer.data_size))
            reached = peer.data + (address - data_base);
        else
            return nullptr;
        const auto bump = [](uint64_t& value, uint64_t by) { __atomic_store_n(&value, value + by, __ATOMIC_RELAXED); };
        __atomic_store_n(&left, left - 1, __ATOMIC_RELAXED);
        bump(n, 1);
        const auto group = static_cast<unsigned>(pe) >> group_shift;
        bump(operations[group], 1);
        bump(groups, ~groups & uint64_t{1} << group);
        bump(following, address == last_end && pe == last_pe);
        last_end = address + size;
        last_pe = pe;
        return reached;
    }
};
// A thread's runs, by the place of the call.
struct ObservedRuns {
    std::array<ObservedRun, 8> runs;
    ObservedRun& of(const void* caller) { return runs[reinterpret_cast<uintptr_t>(caller) / 4 % runs.size()]; }
};
// Of the calling thread; null: none. An observer's object, which lives as long as the process.
extern constinit thread_local ObservedRuns* observed_runs;

// Marks, while it lives, that the calling thread works for the observer, which is not told of what it does.
class Unobserved {
  public:
    Unobserved() { ++depth_; }
    ~Unobserved() { --depth_; }
    Unobserved(const Unobserved&) = delete;
    Unobserved& operator=(const Unobserved&) = delete;
    static bool is_marked() { return depth_ != 0; }

  private:
    static constinit thread_local int depth_;
};

// The observer of what the calling thread does, or null. None in a fiber, which may leave its thread where the observer
// waits: what a posted collective asks of the observer is asked before it is posted.
inline Observer* find_observer() {
    Observer* const found = observer;
    return HEDDLE_UNLIKELY(found != nullptr) && !Unobserved::is_marked() && !progress::Fiber::current() ? found
                                                                                                        : nullptr;
}

// What the observer is told of an operation until the caller returns.
class ObservedOperation {
  public:
    ObservedOperation() = default;
    ~ObservedOperation() {
        if (HEDDLE_UNLIKELY(told_ != nullptr))
            told_->end_operation();
    }
    ObservedOperation(const ObservedOperation&) = delete;
    ObservedOperation& operator=(const ObservedOperation&) = delete;

    // True when the observer takes the operation from the caller, which has then nothing more to do.
    bool is_taken(Observer& told, const Operation& operation) {
        if (told.issue(operation))
            return true;
        told_ = &told;
        return false;
    }

  private:
    Observer* told_ = nullptr;
};

// Returns from the caller where the observer takes the operation from it.
#define HEDDLE_OBSERVE(...)                                                                     \
    ::heddle::operations::ObservedOperation observed_operation;                                 \
    if (::heddle::operations::Observer* const observes = ::heddle::operations::find_observer(); \
        HEDDLE_UNLIKELY(observes != nullptr) &&                                                 \
        observed_operation.is_taken(*observes, ::heddle::operations::Operation{__VA_ARGS__}))   \
    return

// A wait of the calling thread that the observer is told of, while it lives.
class ObservedWait {
  public:
    ObservedWait(Observer::Wait what, const base::Call& call, shmem_ctx_t ctx = nullptr)
        : ObservedWait(find_observer(), what, call, ctx) {}
    // told: as find_observer has found it.
    ObservedWait(Observer* told, Observer::Wait what, const base::Call& call, shmem_ctx_t ctx = nullptr) {
        if (HEDDLE_UNLIKELY(told != nullptr)) {
            told->begin_wait(what, call, ctx);
            told_ = told;
        }
    }
    ~ObservedWait() {
        if (HEDDLE_UNLIKELY(told_ != nullptr))
            told_->end_wait();
    }
    ObservedWait(const ObservedWait&) = delete;
    ObservedWait& operator=(const ObservedWait&) = delete;

  private:
    Observer* told_ = nullptr;
};

}  // namespace heddle::operations

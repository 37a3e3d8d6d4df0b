// Random operations of every kind, of 1 byte to 100 KiB, on random PEs, checked against a model. HEDDLE_TEST_OPERATIONS
// (20000) in all, shared out among two threads of each PE. Each thread has a slice of every PE's memory for itself, and
// three contexts: the default one, a PRIVATE one, and one that both threads use. The model knows what each slice holds
// and what is outstanding; only what the order of operations leaves open is kept apart, by a fence, a quiet or the wait
// for a request, whichever suits. What all share (counters, signals, tickets) is compared at the end: sums, and that
// each ticket was had once.
#include "check.h"
#include "tables.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

using namespace conformance;

namespace {

constexpr size_t kThreads = 2, kContexts = 3, kRequests = 4, kNoRequest = kRequests;
constexpr size_t kMostBytes = 100 * 1024, kSliceBytes = 256 * 1024, kMostPending = 48;
constexpr size_t kHotBytes = 2048;  // where half of the operations begin, so that they meet
constexpr size_t kCounters = 5;

// What all PEs do to one, as sums.
struct Sums {
    uint64_t counters[kCounters], signals, tickets, ticket_sum, ticket_squares;
};
constexpr size_t kSumWords = sizeof(Sums) / sizeof(uint64_t);

unsigned char* slices;           // kSliceBytes for each thread of each PE
uint64_t *own_signals, *hashes;  // one for each thread of each PE
Sums *done, *right;              // for each PE: by this one, and by all
Sums* shared;                    // counters and signals, and the next ticket
shmem_ctx_t shared_context;

using Bytes = std::vector<unsigned char>;
enum class Form { kBlocking, kNbi, kNbe };

uint64_t hash_of(const unsigned char* data, size_t bytes) {
    return std::hash<std::string_view>{}({reinterpret_cast<const char*>(data), bytes});
}

// An atomic in all its forms, and what it makes of a word.
struct Atomic {
    void (*call)(shmem_ctx_t, uint64_t*, uint64_t, int);
    void (*nbe)(shmem_ctx_t, uint64_t*, uint64_t, int, shmemx_request_t*);
    uint64_t (*fetch)(shmem_ctx_t, uint64_t*, uint64_t, int);
    void (*fetch_nbi)(shmem_ctx_t, uint64_t*, uint64_t*, uint64_t, int);
    void (*fetch_nbe)(shmem_ctx_t, uint64_t*, uint64_t*, uint64_t, int, shmemx_request_t*);
    uint64_t (*after)(uint64_t old, uint64_t value);
};
#define ATOMIC(name, fetching, result)                                                    \
    {                                                                                     \
        shmem_ctx_uint64_atomic_##name,                                                   \
        shmemx_ctx_uint64_atomic_##name##_nbe,                                            \
        shmem_ctx_uint64_atomic_##fetching,                                               \
        shmem_ctx_uint64_atomic_##fetching##_nbi,                                         \
        shmemx_ctx_uint64_atomic_##fetching##_nbe,                                        \
        []([[maybe_unused]] uint64_t old, uint64_t value) -> uint64_t { return result; }, \
    }
constexpr Atomic kAtomics[] = {
    ATOMIC(set, swap, value),          ATOMIC(add, fetch_add, old + value), ATOMIC(and, fetch_and, old& value),
    ATOMIC(or, fetch_or, old | value), ATOMIC(xor, fetch_xor, old ^ value),
};

// An operation on [begin, end) of this thread's slice on target.
struct Operation {
    int target = 0;
    size_t begin = 0, end = 0;
    size_t context = 0, request = kNoRequest;
    bool reads = false, writes = false;
    bool fenced = false;  // a fence of its context lies behind it
    Bytes source;         // of what may outlast its call
    Bytes got, expected;  // of what reads

    size_t bytes() const { return end - begin; }
    bool meets(const Operation& other) const {
        return target == other.target && begin < other.end && other.begin < end && (writes || other.writes);
    }
};

class Worker {
  public:
    explicit Worker(size_t number)
        : slice_(static_cast<size_t>(pe) * kThreads + number),
          random_(random_for(7, slice_)),
          model_(static_cast<size_t>(n_pes), Bytes(kSliceBytes)),
          delivered_(static_cast<size_t>(n_pes)),
          next_ticket_(static_cast<size_t>(n_pes)),
          sums_(static_cast<size_t>(n_pes)) {}

    void run(size_t steps) {
        subject = "random operations";
        CHECK_EQ(shmem_ctx_create(SHMEM_CTX_PRIVATE, &contexts_[1]), 0);
        for (size_t step = 0; step < steps; ++step) {
            one_step();
            if (pending_.size() > kMostPending)
                quiet(random_.below(kContexts));
        }
        for (size_t request = 0; request < kRequests; ++request) end(request);
        for (size_t context = 0; context < kContexts; ++context) quiet(context);
        CHECK_EQ(pending_.size(), 0);
        shmem_ctx_destroy(contexts_[1]);
        for (int target = 0; target < n_pes; ++target) check_slice(target);
    }

    void add_sums() const {
        for (size_t i = 0; i < sums_.size(); ++i)
            for (size_t word = 0; word < kSumWords; ++word)
                reinterpret_cast<uint64_t*>(&done[i])[word] += reinterpret_cast<const uint64_t*>(&sums_[i])[word];
    }

  private:
    // All take a Form, for those to which that means something.
    void one_step() {
        static constexpr void (Worker::* kKinds[])(Form) = {
            &Worker::put,        &Worker::put,         &Worker::put,         &Worker::get,     &Worker::get,
            &Worker::single,     &Worker::put_strided, &Worker::get_strided, &Worker::atomic,  &Worker::fetching_atomic,
            &Worker::put_signal, &Worker::count,       &Worker::take_ticket, &Worker::deliver, &Worker::order,
            &Worker::finish};
        (this->*kKinds[random_.below(std::size(kKinds))])(static_cast<Form>(random_.below(3)));
    }
    void single(Form) { single_of<uint8_t, uint16_t, uint32_t, uint64_t>(random_.below(4)); }
    void order(Form form) {
        form == Form::kBlocking ? quiet(random_.below(kContexts)) : fence(random_.below(kContexts));
    }
    void finish(Form) { end(random_.below(kRequests), random_.below(2)); }

    size_t random_bytes() { return std::min(kMostBytes, 1 + random_.below(size_t{1} << random_.below(18))); }

    Operation choose(Form form, size_t bytes, size_t alignment = 1) {
        Operation chosen;
        chosen.target = static_cast<int>(random_.below(static_cast<size_t>(n_pes)));
        const size_t room = kSliceBytes - bytes + 1;
        chosen.begin = random_.below(random_.below(2) ? std::min(room, kHotBytes) : room) / alignment * alignment;
        chosen.end = chosen.begin + bytes;
        chosen.context = random_.below(kContexts);
        if (form == Form::kNbe)
            chosen.request = random_.below(kRequests);
        return chosen;
    }

    // Nothing outstanding meets it any more, but for what a fence puts ahead of it, when `by_fence` allows that.
    void settle(const Operation& next, bool by_fence) {
        for (const Operation& before : pending_) {
            const bool may_fence = by_fence && next.writes && !before.reads && before.context == next.context;
            if (!before.meets(next) || (may_fence && before.fenced))
                continue;
            if (may_fence && random_.below(2))
                fence(before.context);
            else if (before.request != kNoRequest && random_.below(2))
                end(before.request);
            else
                quiet(before.context);
            return settle(next, by_fence);
        }
    }

    unsigned char* place(const Operation& operation) const { return slices + slice_ * kSliceBytes + operation.begin; }
    uint64_t* word_of(const Operation& operation) const { return reinterpret_cast<uint64_t*>(place(operation)); }
    unsigned char* modelled(const Operation& operation) {
        return model_[static_cast<size_t>(operation.target)].data() + operation.begin;
    }
    shmem_ctx_t context_of(const Operation& operation) const { return contexts_[operation.context]; }

    // New data for it, in the model too.
    void write(Operation& operation) {
        operation.writes = true;
        settle(operation, true);
        operation.source.resize(operation.bytes());
        random_.fill(operation.source.data(), operation.bytes());
        std::copy(operation.source.begin(), operation.source.end(), modelled(operation));
    }
    void pend(Operation& operation, Form form) {
        if (form == Form::kBlocking) {  // its source may be used again
            std::fill(operation.source.begin(), operation.source.end(), 0xee);
            operation.source.clear();
        }
        pending_.push_back(std::move(operation));
    }

    void issue_put(const Operation& operation, Form form) {
        const shmem_ctx_t ctx = context_of(operation);
        unsigned char* const to = place(operation);
        const unsigned char* const from = operation.source.data();
        if (form == Form::kBlocking)
            shmem_ctx_putmem(ctx, to, from, operation.bytes(), operation.target);
        else if (form == Form::kNbi)
            shmem_ctx_putmem_nbi(ctx, to, from, operation.bytes(), operation.target);
        else
            shmemx_ctx_putmem_nbe(ctx, to, from, operation.bytes(), operation.target, &requests_[operation.request]);
    }
    void put(Form form) {
        Operation operation = choose(form, random_bytes());
        write(operation);
        issue_put(operation, form);
        pend(operation, form);
    }

    void get(Form form) {
        Operation operation = choose(form, random_bytes());
        operation.reads = true;
        settle(operation, false);
        operation.expected.assign(modelled(operation), modelled(operation) + operation.bytes());
        operation.got.resize(operation.bytes());
        const shmem_ctx_t ctx = context_of(operation);
        unsigned char* const to = operation.got.data();
        if (form == Form::kBlocking) {
            shmem_ctx_getmem(ctx, to, place(operation), operation.bytes(), operation.target);
            return check(operation);
        }
        if (form == Form::kNbi)
            shmem_ctx_getmem_nbi(ctx, to, place(operation), operation.bytes(), operation.target);
        else
            shmemx_ctx_getmem_nbe(ctx, to, place(operation), operation.bytes(), operation.target,
                                  &requests_[operation.request]);
        pend(operation, form);
    }

    // p or g of the type of this number.
    template <class T, class... Others>
    void single_of(size_t number) {
        if constexpr (sizeof...(Others) > 0)
            if (number > 0)
                return single_of<Others...>(number - 1);
        Operation operation = choose(Form::kBlocking, sizeof(T), sizeof(T));
        T* const at = reinterpret_cast<T*>(place(operation));
        if (random_.below(2)) {
            write(operation);
            T value;
            memcpy(&value, operation.source.data(), sizeof value);
            shmem_p(context_of(operation), at, value, operation.target);
            return pend(operation, Form::kBlocking);
        }
        operation.reads = true;
        settle(operation, false);
        const T got = shmem_g(context_of(operation), at, operation.target);
        CHECK_BYTES("g", &got, modelled(operation), sizeof got);
    }

    // Elements `strides[0]` apart on the target and `strides[1]` here.
    struct Strided {
        size_t elements, strides[2];
        size_t bytes(size_t side) const { return ((elements - 1) * strides[side] + 1) * sizeof(uint32_t); }
        // Elements of `from`, on its side, to those of `to`.
        void copy(unsigned char* to, size_t to_side, const unsigned char* from) const {
            for (size_t i = 0; i < elements; ++i)
                memcpy(to + i * strides[to_side] * sizeof(uint32_t), from + i * strides[1 - to_side] * sizeof(uint32_t),
                       sizeof(uint32_t));
        }
    };
    Strided choose_strided() { return {1 + random_.below(300), {1 + random_.below(9), 1 + random_.below(9)}}; }

    void put_strided(Form) {
        const Strided shape = choose_strided();
        Operation operation = choose(Form::kBlocking, shape.bytes(0), sizeof(uint32_t));
        operation.writes = true;
        settle(operation, true);
        Bytes source(shape.bytes(1));
        random_.fill(source.data(), source.size());
        shape.copy(modelled(operation), 0, source.data());
        shmem_ctx_uint32_iput(context_of(operation), reinterpret_cast<uint32_t*>(place(operation)),
                              reinterpret_cast<const uint32_t*>(source.data()),
                              static_cast<ptrdiff_t>(shape.strides[0]), static_cast<ptrdiff_t>(shape.strides[1]),
                              shape.elements, operation.target);
        std::fill(source.begin(), source.end(), 0xee);
        pend(operation, Form::kBlocking);
    }

    void get_strided(Form) {
        const Strided shape = choose_strided();
        Operation operation = choose(Form::kBlocking, shape.bytes(0), sizeof(uint32_t));
        operation.reads = true;
        settle(operation, false);
        operation.expected.assign(shape.bytes(1), 0x77);
        operation.got = operation.expected;
        shape.copy(operation.expected.data(), 1, modelled(operation));
        shmem_ctx_uint32_iget(context_of(operation), reinterpret_cast<uint32_t*>(operation.got.data()),
                              reinterpret_cast<const uint32_t*>(place(operation)),
                              static_cast<ptrdiff_t>(shape.strides[1]), static_cast<ptrdiff_t>(shape.strides[0]),
                              shape.elements, operation.target);
        check(operation);
    }

    // Changes a word of the model; what it held before.
    uint64_t change(const Operation& operation, uint64_t (*after)(uint64_t, uint64_t), uint64_t value) {
        uint64_t old;
        memcpy(&old, modelled(operation), sizeof old);
        const uint64_t now = after(old, value);
        memcpy(modelled(operation), &now, sizeof now);
        return old;
    }

    void atomic(Form form) {
        Operation operation = choose(form, sizeof(uint64_t), sizeof(uint64_t));
        operation.writes = true;
        settle(operation, true);
        const Atomic& kind = kAtomics[random_.below(std::size(kAtomics))];
        const uint64_t value = random_.next();
        change(operation, kind.after, value);
        if (form == Form::kNbe)
            kind.nbe(context_of(operation), word_of(operation), value, operation.target, &requests_[operation.request]);
        else
            kind.call(context_of(operation), word_of(operation), value, operation.target);
        pend(operation, form);
    }

    void fetching_atomic(Form form) {
        Operation operation = choose(form, sizeof(uint64_t), sizeof(uint64_t));
        operation.reads = operation.writes = true;
        settle(operation, form == Form::kBlocking);
        const Atomic& kind = kAtomics[random_.below(std::size(kAtomics))];
        const uint64_t value = random_.next(), old = change(operation, kind.after, value);
        const shmem_ctx_t ctx = context_of(operation);
        if (form == Form::kBlocking) {
            CHECK_EQ(kind.fetch(ctx, word_of(operation), value, operation.target), old);
            return;
        }
        operation.expected.resize(sizeof old);
        operation.got.resize(sizeof old);
        memcpy(operation.expected.data(), &old, sizeof old);
        auto* const to = reinterpret_cast<uint64_t*>(operation.got.data());
        if (form == Form::kNbi)
            kind.fetch_nbi(ctx, to, word_of(operation), value, operation.target);
        else
            kind.fetch_nbe(ctx, to, word_of(operation), value, operation.target, &requests_[operation.request]);
        pend(operation, form);
    }

    void put_with_signal(const Operation& operation, Form form, uint64_t* signal, uint64_t value, int how) {
        const shmem_ctx_t ctx = context_of(operation);
        unsigned char* const to = place(operation);
        const unsigned char* const from = operation.source.data();
        if (form == Form::kBlocking)
            shmem_ctx_putmem_signal(ctx, to, from, operation.bytes(), signal, value, how, operation.target);
        else if (form == Form::kNbi)
            shmem_ctx_putmem_signal_nbi(ctx, to, from, operation.bytes(), signal, value, how, operation.target);
        else
            shmemx_ctx_putmem_signal_nbe(ctx, to, from, operation.bytes(), signal, value, how, operation.target,
                                         &requests_[operation.request]);
    }

    void put_signal(Form form) {
        Operation operation = choose(form, random_bytes());
        write(operation);
        const uint64_t value = random_.below(1000);
        sums_of(operation).signals += value;
        put_with_signal(operation, form, &shared->signals, value, SHMEM_SIGNAL_ADD);
        pend(operation, form);
    }

    // An atomic that all PEs do on the same words.
    void count(Form form) {
        const Operation operation = choose(form, 0);
        const size_t word = random_.below(kCounters);
        const uint64_t value = random_.next();
        sums_of(operation).counters[word] += value;
        if (form == Form::kNbe)
            shmemx_ctx_uint64_atomic_add_nbe(context_of(operation), &shared->counters[word], value, operation.target,
                                             &requests_[operation.request]);
        else
            shmem_ctx_uint64_atomic_add(context_of(operation), &shared->counters[word], value, operation.target);
    }

    void take_ticket(Form) {
        const Operation operation = choose(Form::kBlocking, 0);
        const auto ticket = shmem_atomic_fetch_inc(context_of(operation), &shared->tickets, operation.target);
        CHECK(ticket >= next_ticket_[static_cast<size_t>(operation.target)]);
        next_ticket_[static_cast<size_t>(operation.target)] = ticket + 1;
        Sums& sums = sums_of(operation);
        sums.tickets += 1;
        sums.ticket_sum += ticket;
        sums.ticket_squares += ticket * ticket;
    }

    // Data and behind it a word, by a signal or by a fence: who sees the word sees the data, on any context, and no
    // quiet has been needed.
    void deliver(Form form) {
        if (form == Form::kNbe)
            form = Form::kNbi;  // under a request, data may stay until somebody waits
        Operation operation = choose(form, random_bytes());
        write(operation);
        const uint64_t value = ++delivered_[static_cast<size_t>(operation.target)];
        uint64_t* const signal = &own_signals[slice_];
        if (random_.below(2)) {
            put_with_signal(operation, form, signal, value, SHMEM_SIGNAL_SET);
        } else {
            issue_put(operation, form);
            fence(operation.context);
            shmem_ctx_uint64_atomic_set(context_of(operation), signal, value, operation.target);
        }
        const shmem_ctx_t other = contexts_[random_.below(kContexts)];
        while (shmem_ctx_uint64_atomic_fetch(other, signal, operation.target) != value) continue;
        operation.got.resize(operation.bytes());
        operation.expected.assign(modelled(operation), modelled(operation) + operation.bytes());
        shmem_ctx_getmem(other, operation.got.data(), place(operation), operation.bytes(), operation.target);
        check(operation);
        operation.got.clear();
        pend(operation, form);  // nobody has said that its source may be used again
    }

    void fence(size_t context) {
        shmem_ctx_fence(contexts_[context]);
        for (Operation& operation : pending_) operation.fenced |= operation.context == context;
    }
    void quiet(size_t context) {
        shmem_ctx_quiet(contexts_[context]);
        complete([&](const Operation& operation) { return operation.context == context; });
    }
    void end(size_t request, bool wait = true) {
        if (wait)
            shmemx_request_wait(&requests_[request]);
        if (wait || shmemx_request_test(&requests_[request]))
            complete([&](const Operation& operation) { return operation.request == request; });
    }
    template <class Which>
    void complete(Which which) {
        for (const Operation& operation : pending_)
            if (which(operation))
                check(operation);
        pending_.erase(std::remove_if(pending_.begin(), pending_.end(), which), pending_.end());
    }

    void check(const Operation& operation) const {
        if (!operation.got.empty())
            CHECK_BYTES("what was read", operation.got.data(), operation.expected.data(), operation.expected.size());
    }
    // As this PE reads it; the target looks at its memory itself (check_memory).
    void check_slice(int target) {
        const Bytes& right_bytes = model_[static_cast<size_t>(target)];
        Bytes now(kSliceBytes);
        shmem_getmem(now.data(), slices + slice_ * kSliceBytes, kSliceBytes, target);
        CHECK_BYTES("the slice at the end", now.data(), right_bytes.data(), kSliceBytes);
        shmem_uint64_p(&hashes[slice_], hash_of(right_bytes.data(), kSliceBytes), target);
    }
    Sums& sums_of(const Operation& operation) { return sums_[static_cast<size_t>(operation.target)]; }

    const size_t slice_;  // number of this thread among those of all PEs
    Random random_;
    shmem_ctx_t contexts_[kContexts] = {SHMEM_CTX_DEFAULT, SHMEM_CTX_INVALID, shared_context};
    shmemx_request_t requests_[kRequests] = {};
    std::vector<Operation> pending_;
    std::vector<Bytes> model_;           // of the slice on each PE
    std::vector<uint64_t> delivered_;    // what the own signal on each PE holds
    std::vector<uint64_t> next_ticket_;  // of each PE: none is below
    std::vector<Sums> sums_;             // for each PE
};

void check_memory() {
    subject = "memory and sums at the end";
    const size_t pes = static_cast<size_t>(n_pes);
    for (size_t slice = 0; slice < pes * kThreads; ++slice)
        CHECK_EQ(hash_of(slices + slice * kSliceBytes, kSliceBytes), hashes[slice]);
    CHECK_EQ(shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, reinterpret_cast<uint64_t*>(right),
                                     reinterpret_cast<const uint64_t*>(done), kSumWords * pes),
             0);
    const Sums& mine = right[pe];
    CHECK_BYTES("counters", shared->counters, mine.counters, sizeof mine.counters);
    CHECK_EQ(shared->signals, mine.signals);
    const uint64_t count = mine.tickets;
    CHECK_EQ(shared->tickets, count);
    CHECK_EQ(mine.ticket_sum, count * (count - 1) / 2);
    CHECK_EQ(mine.ticket_squares, (count - 1) * count * (2 * count - 1) / 6);
}

template <class T>
T* make(size_t count) {
    auto* made = static_cast<T*>(shmem_calloc(count, sizeof(T)));
    CHECK(made);
    return made;
}

}  // namespace

int main() {
    start("stress");
    const size_t pes = static_cast<size_t>(n_pes), workers = pes * kThreads;
    const size_t steps = (number("HEDDLE_TEST_OPERATIONS", 20000) + workers - 1) / workers;
    slices = make<unsigned char>(workers * kSliceBytes);
    own_signals = make<uint64_t>(workers), hashes = make<uint64_t>(workers);
    done = make<Sums>(pes), right = make<Sums>(pes), shared = make<Sums>(1);
    CHECK_EQ(shmem_ctx_create(0, &shared_context), 0);
    std::vector<std::unique_ptr<Worker>> all;
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kThreads; ++i) all.push_back(std::make_unique<Worker>(i));
    for (auto& worker : all) threads.emplace_back([&worker, steps] { worker->run(steps); });
    for (std::thread& thread : threads) thread.join();
    for (auto& worker : all) worker->add_sums();
    shmem_ctx_destroy(shared_context);
    shmem_barrier_all();
    check_memory();
    if (pe == 0)
        printf("stress: %zu operations\n", steps * workers);
    return finish();
}

// Waits and tests of variables that peers change by plain stores (section 9.9). Threads: any. The loads acquire: what
// the peer ordered before the change (fence, quiet, signal) is seen after the wait or test.
#pragma once

#include "base/tsan.h"
#include "operations/check.h"
#include "operations/observer.h"
#include "progress/wait_policy.h"

#include <heddle/constants.h>
#include <heddle/hot_path.h>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace heddle::operations {

// The values that the elements of a set are compared with: one for all (Same), or one for each (Each).
template <class T>
struct Same {
    T value;
    T operator[](size_t) const { return value; }
};
template <class T>
struct Each {
    const T* values;
    T operator[](size_t i) const { return values[i]; }
};

template <class T>
bool compare(T value, int cmp, T with) {
    switch (cmp) {
        case SHMEM_CMP_EQ:
            return value == with;
        case SHMEM_CMP_NE:
            return value != with;
        case SHMEM_CMP_GT:
            return value > with;
        case SHMEM_CMP_GE:
            return value >= with;
        case SHMEM_CMP_LT:
            return value < with;
        default:
            return value <= with;
    }
}

inline void require_wait(const char* function, const char* argument, const void* ivars, size_t nelems,
                         size_t element_bytes, int cmp) {
    require_running(function);
    require_comparison(function, cmp);
    check_ivars(function, argument, ivars, nelems, element_bytes);
}

template <class T>
T load(const T* ivar) {
    // Acquire: pairs with operations::fence, operations::quiet, SignalTo::send, fabric::apply and fabric::apply_signal.
    const T value = __atomic_load_n(ivar, __ATOMIC_ACQUIRE);
    tsan::acquire(ivar);
    tsan::acquire();
    return value;
}

// What a wait waits for, in reports: a value, or one of nelems elements.
template <class T>
progress::WaitTarget target_of(const T* ivar, int cmp, T cmp_value) {
    return {.kind = progress::WaitTarget::Kind::kValue,
            .value_bytes = sizeof(T),
            .is_signed = std::is_signed_v<T>,
            .comparison = cmp,
            .address = ivar,
            .value = static_cast<uint64_t>(cmp_value)};
}
template <class T>
progress::WaitTarget target_of_any(const T* ivars, size_t nelems, int cmp) {
    return {.kind = progress::WaitTarget::Kind::kAnyValue,
            .value_bytes = sizeof(T),
            .comparison = cmp,
            .address = ivars,
            .nelems = nelems};
}

// The calling thread's wait or test has found what it looked for.
template <class T>
void saw(const T* ivar) {
    if (Observer* const told = find_observer())
        told->see(ivar, sizeof *ivar);
}

// Waits; returns the value that compared true. argument: the parameter's name for ivar.
template <class T>
T wait_until(const char* function, const T* ivar, int cmp, T cmp_value, const char* argument = "ivar") {
    require_wait(function, argument, ivar, 1, sizeof(T), cmp);
    T value;
    const auto holds = [&] {
        value = load(ivar);
        return compare(value, cmp, cmp_value);
    };
    if (!holds()) {
        const progress::WaitTarget target = target_of(ivar, cmp, cmp_value);
        const ObservedWait observed(Observer::Wait::kValue, {function});
        progress::wait_for_store(function, ivar, holds, true, &target);
    }
    saw(ivar);
    return value;
}

// The result of a test, which makes progress when the test did not hold.
inline bool tested(bool holds) {
    if (!holds)
        progress::poll_after_test();
    return holds;
}

template <class T>
int test(const char* function, const T* ivar, int cmp, T cmp_value) {
    require_wait(function, "ivar", ivar, 1, sizeof(T), cmp);
    const bool holds = compare(load(ivar), cmp, cmp_value);
    if (holds)
        saw(ivar);
    return tested(holds);
}

// Where this thread's next search for one element that holds begins: after the element found last, and one time in
// eight anywhere. The first serves the elements of one set in turn; the second makes every set fair, however calls for
// several sets alternate.
//
// A search begins at element i of n when the state lies in one interval of 2^61 / n of its 2^64 values. The states of
// every p-th call, p = odd * 2^t, are all that agree in their low t bits: the congruence has a full period. They lie
// 2^t apart, so some lie in the interval while n * 2^t <= 2^61. For calls without a period the chance is 1 / 8n. Cost:
// a multiplication.
class Turn {
  public:
    size_t begin(size_t nelems) {
        if (nelems <= 1)
            return 0;
        if (HEDDLE_UNLIKELY(state_ == 0))
            state_ = seed();
        state_ = state_ * 6364136223846793005 + 1442695040888963407;  // D. Knuth's MMIX
        if (state_ >> 61 == 0)
            return static_cast<size_t>(static_cast<Wide>(state_ << 3) * nelems >> 64);
        return next_ < nelems ? next_ : 0;
    }
    void found(size_t i) { next_ = i + 1; }

  private:
    __extension__ typedef unsigned __int128 Wide;
    static uint64_t seed();  // differs for each thread: each call may come from a new thread

    uint64_t state_ = 0;
    size_t next_ = 0;
};
extern constinit thread_local Turn turn;

// The set of a wait or test; elements with a nonzero status are left out.
template <class T, class Values>
struct Set {
    const T* ivars;
    size_t nelems;
    const int* status;
    int cmp;
    Values values;

    bool has(size_t i) const { return !status || status[i] == 0; }
    bool holds(size_t i) const { return compare(load(ivars + i), cmp, values[i]); }

    bool empty() const {
        for (size_t i = 0; i < nelems; ++i)
            if (has(i))
                return false;
        return true;
    }
    bool all() const {
        for (size_t i = 0; i < nelems; ++i)
            if (has(i) && !holds(i))
                return false;
        see_all();
        return true;
    }
    void see_these(const size_t* indices, size_t found) const {
        if (HEDDLE_UNLIKELY(observer != nullptr))
            for (size_t i = 0; i < found; ++i) saw(ivars + indices[i]);
    }
    // All that are in the set hold.
    void see_all() const {
        if (HEDDLE_UNLIKELY(observer != nullptr))
            for (size_t i = 0; i < nelems; ++i)
                if (has(i))
                    saw(ivars + i);
    }
    // The first element from `begin` on, cyclically, that holds, or SIZE_MAX.
    size_t any(size_t begin) const {
        size_t found = find(begin, nelems);
        if (found == SIZE_MAX)
            found = find(0, begin);
        if (found != SIZE_MAX)
            turn.found(found);
        return found;
    }
    size_t find(size_t begin, size_t end) const {
        for (size_t i = begin; i < end; ++i)
            if (has(i) && holds(i))
                return i;
        return SIZE_MAX;
    }
    size_t some(size_t* indices) const {
        size_t found = 0;
        for (size_t i = 0; i < nelems; ++i)
            if (has(i) && holds(i))
                indices[found++] = i;
        return found;
    }
};

template <class T, class Values>
Set<T, Values> checked_set(const char* function, const T* ivars, size_t nelems, const int* status, int cmp,
                           Values values) {
    require_wait(function, "ivars", ivars, nelems, sizeof(T), cmp);
    return {ivars, nelems, status, cmp, values};
}

template <class T, class Values>
void wait_until_all(const char* function, const T* ivars, size_t nelems, const int* status, int cmp, Values values) {
    const auto set = checked_set(function, ivars, nelems, status, cmp, values);
    std::optional<ObservedWait> observed;
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < nelems; ++i)
        if (set.has(i) && !set.holds(i)) {
            const progress::WaitTarget target = target_of(ivars + i, cmp, set.values[i]);
            if (!observed)
                observed.emplace(Observer::Wait::kValue, base::Call{function});
            progress::wait_for_store(function, ivars + i, [&] { return set.holds(i); }, true, &target);
            last = i;
        }
    observed.reset();
    if (last != SIZE_MAX)
        saw(ivars + last);  // ahead of the others: it has ended the wait
    set.see_all();
}

template <class T, class Values>
size_t wait_until_any(const char* function, const T* ivars, size_t nelems, const int* status, int cmp, Values values) {
    const auto set = checked_set(function, ivars, nelems, status, cmp, values);
    const size_t begin = turn.begin(nelems);
    const bool is_empty = set.empty();
    size_t found = is_empty ? SIZE_MAX : set.any(begin);
    if (!is_empty && found == SIZE_MAX) {
        const progress::WaitTarget target = target_of_any(ivars, nelems, cmp);
        const ObservedWait observed(Observer::Wait::kValue, {function});
        progress::wait_for_stores(function, ivars, [&] { return (found = set.any(begin)) != SIZE_MAX; }, &target);
    }
    if (found != SIZE_MAX)
        saw(ivars + found);
    return found;
}

template <class T, class Values>
size_t wait_until_some(const char* function, const T* ivars, size_t nelems, size_t* indices, const int* status, int cmp,
                       Values values) {
    const auto set = checked_set(function, ivars, nelems, status, cmp, values);
    const bool is_empty = set.empty();
    size_t found = is_empty ? 0 : set.some(indices);
    if (!is_empty && found == 0) {
        const progress::WaitTarget target = target_of_any(ivars, nelems, cmp);
        const ObservedWait observed(Observer::Wait::kValue, {function});
        progress::wait_for_stores(function, ivars, [&] { return (found = set.some(indices)) != 0; }, &target);
    }
    set.see_these(indices, found);
    return found;
}

template <class T, class Values>
int test_all(const char* function, const T* ivars, size_t nelems, const int* status, int cmp, Values values) {
    return tested(checked_set(function, ivars, nelems, status, cmp, values).all());
}

template <class T, class Values>
size_t test_any(const char* function, const T* ivars, size_t nelems, const int* status, int cmp, Values values) {
    const size_t found = checked_set(function, ivars, nelems, status, cmp, values).any(turn.begin(nelems));
    if (found != SIZE_MAX)
        saw(ivars + found);
    tested(found != SIZE_MAX);
    return found;
}

template <class T, class Values>
size_t test_some(const char* function, const T* ivars, size_t nelems, size_t* indices, const int* status, int cmp,
                 Values values) {
    const auto set = checked_set(function, ivars, nelems, status, cmp, values);
    const size_t found = set.some(indices);
    set.see_these(indices, found);
    tested(found != 0);
    return found;
}

}  // namespace heddle::operations

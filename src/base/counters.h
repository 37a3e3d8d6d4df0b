// Counters of a PE: what it has done since its first init. They lie in the PE's record of the job page, so that a
// launcher can read them. At the end the PEs add them up (runtime/report.h).
//
// Nothing that an operation on the node does is counted. Threads: any.
#pragma once

#include "base/pe_local.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::base {

struct Counter {
    std::atomic<uint64_t> value;

    // Relaxed, all: counts order nothing. add is for what costs a system call or more. add_cheaply is a load and a
    // store: exact while one thread at a time counts, and loses some where several do.
    void add() { value.fetch_add(1, std::memory_order_relaxed); }
    void add_cheaply(uint64_t number = 1) { value.store(read() + number, std::memory_order_relaxed); }
    uint64_t read() const { return value.load(std::memory_order_relaxed); }
};

struct alignas(64) Counters {  // zeroed memory is one
#define COUNTER(name, unit, meaning) Counter name;
#include "base/counters.def"
};

// Of this PE; before init, and in a forked child, those of nobody. Set by runtime.
extern Counters counters_of_nobody;
extern HEDDLE_PE_LOCAL Counters* counters;

struct CounterRow {
    const char* name;
    const char* unit;
    const char* description;  // unit and meaning
    Counter Counters::* counter;
};
constexpr CounterRow kCounterRows[] = {
#define COUNTER(name, unit, meaning) {#name, #unit, #unit ": " meaning, &Counters::name},
#include "base/counters.def"
};

}  // namespace heddle::base

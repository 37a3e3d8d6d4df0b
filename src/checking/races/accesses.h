// Accesses: the loads and stores of this PE's own symmetric memory that its program has told of (heddle/accesses.h).
// They are kept until the program calls the library. What happens between two calls has one place in the order of the
// PE's operations. A loop over an array is one access for each 512 bytes of it.
//
// A thread sets bits of the entries that it has last added to without the table's lock, nor a call (heddle_recent), in
// one epoch. An epoch ends under the lock, before bits are taken.
//
// Threads: any; a table for each, with a lock that its thread takes alone but while another one flushes. An Inside
// is around add and ignore.
#pragma once

#include "checking/races/block_bytes.h"
#include "checking/races/shared_lock.h"

#include <heddle/accesses.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::checking::races {

class Accesses {
  public:
    enum WatchedRange { kOfNode, kOfData, kOfBuffers };
    static_assert(kOfBuffers + 1 == HEDDLE_WATCHED_RANGES);

    // Accesses by one instruction of the program to some bytes of the block that begins there.
    struct OfBlock {
        uintptr_t begin;
        const void* caller;
        bool writes;
        BlockBytes bytes;
    };
    using Visitor = void (*)(void* to, const std::vector<OfBlock>& blocks);

    Accesses(Visitor visitor, void* to) : visitor_(visitor), to_(to) {}

    // The address must be watched as this PE's own. A table that is full is visited at once. recent: null, or
    // where the program notes further accesses by the caller to these 512 bytes; of those that nothing else watches.
    void add(uintptr_t address, size_t bytes, bool writes, const void* caller, heddle_recent* recent);
    // Visits what has been added, by any thread, before it returns. Called before each operation of the PE, and before
    // each time that it learns of others.
    void flush();

    // Whether the program tells of accesses at all.
    static bool are_told();
    // Sets one of the ranges of which it tells, all empty at first.
    static void watch(WatchedRange range, uintptr_t begin, size_t bytes);
    static void watch_none();
    // What is recent is told of by a call once more.
    static void end_epoch();
    static uint64_t epoch();
    // As an address of a block that nobody asks for, what the program notes in the epoch goes nowhere.
    static void ignore(uintptr_t address, const void* caller, heddle_recent* recent);
    static bool is_watched(WatchedRange range, const void* address, size_t bytes);

  private:
    static constexpr size_t kEntries = 4096, kMostUsed = kEntries / 4 * 3;

    struct Entry {
        uintptr_t block;
        const void* caller;
        bool writes;
        BlockBytes bytes;  // relaxed, for the thread sets some without the lock
    };
    struct Table {
        Table() { used.reserve(kMostUsed); }  // a handler of a signal allocates nothing
        SharedLock lock = {};
        std::atomic<bool> is_taken{false};  // by a thread, which gives it back at its end
        Table* next = nullptr;
        std::vector<uint16_t> used;
        std::array<Entry, kEntries> entries = {};
        BlockBytes nowhere = {};  // the bits of blocks that nobody asks for
    };
    struct OfThread {
        Table* table = nullptr;
        ~OfThread();
    };

    Entry& entry_of(Table& table, uintptr_t block, const void* caller, bool writes);
    void visit(Table& table);
    static void begin_parts(WatchedRange range, const heddle_watched_range& now);
    static void end_parts(WatchedRange range, const heddle_watched_range& before, const heddle_watched_range& now);
    static void set_bits(Entry& entry, size_t begin, size_t end);
    static void clear(Entry& entry);
    static BlockBytes take(Entry& entry);
    static Table* take_table();

    // Of all threads that there have been, for all observers of this process, one after the other. None ever goes.
    static std::atomic<Table*> tables_;
    static SharedLock watched_lock_;  // of the ranges, for those that change them
    static thread_local OfThread of_thread_;

    Visitor visitor_;
    void* to_;
};

}  // namespace heddle::checking::races

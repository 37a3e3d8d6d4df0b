#include "checking/races/accesses.h"

#include "operations/observer.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <utility>

namespace heddle::checking::races {

constinit std::atomic<Accesses::Table*> Accesses::tables_{nullptr};
constinit thread_local Accesses::OfThread Accesses::of_thread_;

// Relaxed, here and in what follows: see heddle/accesses.h.
bool Accesses::are_told() {
    return __atomic_load_n(&operations::program_tells_accesses, __ATOMIC_RELAXED);
}

void Accesses::watch(WatchedRange range, uintptr_t begin, size_t bytes) {
    auto& watch = operations::watched_accesses.ranges[range];
    if (__atomic_load_n(&watch.begin, __ATOMIC_RELAXED) == begin &&
        __atomic_load_n(&watch.bytes, __ATOMIC_RELAXED) == bytes)
        return;  // as behind most calls: the epoch goes on
    __atomic_store_n(&watch.bytes, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&watch.begin, begin, __ATOMIC_RELAXED);
    __atomic_store_n(&watch.bytes, bytes, __ATOMIC_RELAXED);
    end_epoch();
}

void Accesses::end_epoch() {
    __atomic_fetch_add(&operations::watched_accesses.epoch, 1, __ATOMIC_RELAXED);
}

bool Accesses::is_watched(WatchedRange range, const void* address, size_t bytes) {
    return heddle_touches(&operations::watched_accesses.ranges[range], address, bytes) != 0;
}

void Accesses::watch_none() {
    for (const WatchedRange range : {kOfNode, kOfData, kOfBuffers}) watch(range, 0, 0);
}

Accesses::OfThread::~OfThread() {
    if (table)
        table->is_taken.store(false, std::memory_order_release);  // pairs with Accesses::take_table
    table = nullptr;
}

Accesses::Table* Accesses::take_table() {
    for (Table* table = tables_.load(std::memory_order_acquire); table; table = table->next)
        if (!table->is_taken.exchange(true, std::memory_order_acquire))  // pairs with OfThread::~OfThread
            return table;
    auto* const made = new Table;
    made->is_taken.store(true, std::memory_order_relaxed);
    made->next = tables_.load(std::memory_order_relaxed);
    // Release: the acquire loads of the list, here and in flush, see what is in the table.
    while (!tables_.compare_exchange_weak(made->next, made, std::memory_order_release, std::memory_order_relaxed)) {
    }
    return made;
}

void Accesses::set_bits(Entry& entry, size_t begin, size_t end) {
    while (begin < end) {
        const size_t bit = begin % 64, bits = std::min(64 - bit, end - begin);
        uint64_t& word = entry.bytes[begin / 64];
        const uint64_t mask = (bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1) << bit;
        __atomic_store_n(&word, __atomic_load_n(&word, __ATOMIC_RELAXED) | mask, __ATOMIC_RELAXED);
        begin += bits;
    }
}

void Accesses::add(uintptr_t address, size_t bytes, bool writes, const void* caller, heddle_recent* recent) {
    OfThread& here = of_thread_;
    if (std::exchange(here.is_inside, true))
        return;
    if (!here.table)
        here.table = take_table();
    Table& table = *here.table;
    const std::lock_guard locked(table.lock);
    for (const uintptr_t end = address + bytes; address < end;) {
        const uintptr_t block = address / kBlockBytes;
        const size_t begin = address % kBlockBytes, last = std::min(kBlockBytes, begin + (end - address));
        Entry& entry = entry_of(table, block, caller, writes);
        set_bits(entry, begin, last);
        if (recent)
            *recent = {caller, block * kBlockBytes,
                       __atomic_load_n(&operations::watched_accesses.epoch, __ATOMIC_RELAXED), entry.bytes.data()};
        address += last - begin;
    }
    here.is_inside = false;
}

// The entry, or a new one. A table that is full is visited first.
Accesses::Entry& Accesses::entry_of(Table& table, uintptr_t block, const void* caller, bool writes) {
    static_assert(kEntries == size_t{1} << (64 - 52) && kMostUsed < kEntries);
    if (table.used.size() == kMostUsed)
        visit(table);
    size_t number =
        (block * 0x9e3779b97f4a7c15 ^ (reinterpret_cast<uintptr_t>(caller) + writes) * 0xc2b2ae3d27d4eb4f) >> 52;
    for (;; number = (number + 1) % kEntries) {
        Entry& entry = table.entries[number];
        if (entry.block == block && entry.caller == caller && entry.writes == writes)
            return entry;
        if (entry.caller)
            continue;
        table.used.push_back(static_cast<uint16_t>(number));
        clear(entry);  // of a bit that came behind the end of an epoch
        entry.block = block;
        entry.caller = caller;
        entry.writes = writes;
        return entry;
    }
}

void Accesses::clear(Entry& entry) {
    for (uint64_t& word : entry.bytes) __atomic_store_n(&word, 0, __ATOMIC_RELAXED);
}

// Appends each run of bytes, and leaves none.
void Accesses::take_runs(Entry& entry, std::vector<Run>* runs) {
    std::array<uint64_t, kWords> bytes;
    for (size_t i = 0; i < kWords; ++i) bytes[i] = __atomic_load_n(&entry.bytes[i], __ATOMIC_RELAXED);
    clear(entry);
    const auto is_set = [&](size_t at) { return (bytes[at / 64] >> (at % 64) & 1) != 0; };
    for (size_t at = 0; at < kBlockBytes;) {
        const uint64_t rest = bytes[at / 64] >> (at % 64);
        if (rest == 0) {
            at = (at / 64 + 1) * 64;
            continue;
        }
        at += static_cast<size_t>(std::countr_zero(rest));
        size_t end = at;
        while (end < kBlockBytes && is_set(end))
            end += static_cast<size_t>(std::countr_one(bytes[end / 64] >> (end % 64)));
        runs->push_back({entry.block * kBlockBytes + at, end - at, entry.writes, entry.caller});
        at = end;
    }
}

// Under the table's lock.
void Accesses::visit(Table& table) {
    if (table.used.empty())
        return;
    end_epoch();
    std::vector<Run> runs;
    for (const uint16_t number : table.used) {
        take_runs(table.entries[number], &runs);
        table.entries[number].caller = nullptr;
    }
    table.used.clear();
    if (!runs.empty())
        visitor_(to_, runs);
}

void Accesses::flush() {
    for (Table* table = tables_.load(std::memory_order_acquire); table; table = table->next) {
        const std::lock_guard locked(table->lock);
        visit(*table);
    }
}

}  // namespace heddle::checking::races

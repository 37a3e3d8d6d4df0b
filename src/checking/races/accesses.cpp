#include "checking/races/accesses.h"

#include "checking/races/inside.h"
#include "operations/observer.h"

#include <algorithm>
#include <atomic>
#include <mutex>

namespace heddle::checking::races {

constinit std::atomic<Accesses::Table*> Accesses::tables_{nullptr};
constinit SharedLock Accesses::watched_lock_;
constinit thread_local Accesses::OfThread Accesses::of_thread_;

// Relaxed, here and in what follows: see heddle/accesses.h.
bool Accesses::are_told() {
    return __atomic_load_n(&operations::program_tells_accesses, __ATOMIC_RELAXED);
}

namespace {

constinit uint64_t part_bits = HEDDLE_LEAST_PART_BITS;  // where parts are told apart
constexpr uint64_t kOnePart = 63;                       // the part_bits of a program's addresses as a single part
constexpr unsigned char kAnything = 0x80;               // beside a bit for each range

// The parts of a range, by their numbers modulo HEDDLE_PARTS.
struct Parts {
    explicit Parts(const heddle_watched_range& range)
        : first(range.begin >> part_bits),
          n(range.bytes == 0 ? 0 : ((range.begin + range.bytes - 1) >> part_bits) - first + 1) {}
    bool are_many() const { return n > HEDDLE_PARTS / 4; }  // as of buffers on a stack and on the heap
    bool holds(size_t number) const { return (number - first) % HEDDLE_PARTS < n; }
    const size_t first, n;
};

void change_part(size_t number, unsigned char set, unsigned char clear) {
    unsigned char& part = operations::watched_accesses.parts[number % HEDDLE_PARTS];
    __atomic_store_n(&part, static_cast<unsigned char>((part | set) & ~clear), __ATOMIC_RELAXED);
}

void look_with(uint64_t bits) {
    __atomic_store_n(&operations::watched_accesses.part_bits, bits, __ATOMIC_RELAXED);
}

}  // namespace

void Accesses::watch(WatchedRange range, uintptr_t begin, size_t bytes) {
    auto& watch = operations::watched_accesses.ranges[range];
    const std::lock_guard locked(watched_lock_);
    if (watch.begin == begin && watch.bytes == bytes)
        return;  // as behind most calls: the epoch goes on
    const heddle_watched_range before = watch, now = {begin, bytes};
    if (range == kOfNode && before.bytes == 0) {  // the first range of all
        part_bits = HEDDLE_LEAST_PART_BITS;
        while (Parts(now).are_many()) ++part_bits;
        look_with(part_bits);
    }
    begin_parts(range, now);
    __atomic_store_n(&watch.bytes, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&watch.begin, begin, __ATOMIC_RELAXED);
    __atomic_store_n(&watch.bytes, bytes, __ATOMIC_RELAXED);
    end_parts(range, before, now);
    end_epoch();
}

// The parts of the range may be watched from now on. Of a range with many parts, all may.
void Accesses::begin_parts(WatchedRange range, const heddle_watched_range& now) {
    const Parts has(now);
    if (has.are_many()) {
        change_part(0, kAnything, 0);
        return look_with(kOnePart);
    }
    for (size_t i = 0; i < has.n; ++i) change_part(has.first + i, static_cast<unsigned char>(1 << range), 0);
}

void Accesses::end_parts(WatchedRange range, const heddle_watched_range& before, const heddle_watched_range& now) {
    const Parts had(before), has(now);
    if (had.are_many()) {
        if (has.are_many())
            return;
        look_with(part_bits);
        return change_part(0, 0, kAnything);
    }
    for (size_t i = 0; i < had.n; ++i)
        if (has.are_many() || !has.holds(had.first + i))
            change_part(had.first + i, 0, static_cast<unsigned char>(1 << range));
}

void Accesses::end_epoch() {
    __atomic_fetch_add(&operations::watched_accesses.epoch, 1, __ATOMIC_RELEASE);  // pairs with Accesses::epoch
}

uint64_t Accesses::epoch() {
    // What is watched in the epoch is seen.
    return __atomic_load_n(&operations::watched_accesses.epoch, __ATOMIC_ACQUIRE);  // pairs with Accesses::end_epoch
}

bool Accesses::is_watched(WatchedRange range, const void* address, size_t bytes) {
    return heddle_touches(&operations::watched_accesses.ranges[range], address, bytes) != 0;
}

void Accesses::ignore(uintptr_t address, const void* caller, heddle_recent* recent) {
    OfThread& here = of_thread_;
    if (!here.table)
        here.table = take_table();
    *recent = {caller, address / kBlockBytes * kBlockBytes,
               __atomic_load_n(&operations::watched_accesses.epoch, __ATOMIC_RELAXED), here.table->nowhere.data()};
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

// Leaves none.
BlockBytes Accesses::take(Entry& entry) {
    BlockBytes bytes;
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = __atomic_load_n(&entry.bytes[i], __ATOMIC_RELAXED);
    clear(entry);
    return bytes;
}

// Under the table's lock.
void Accesses::visit(Table& table) {
    if (table.used.empty())
        return;
    end_epoch();
    std::vector<OfBlock> blocks;
    blocks.reserve(table.used.size());
    for (const uint16_t number : table.used) {
        Entry& entry = table.entries[number];
        blocks.push_back({entry.block * kBlockBytes, entry.caller, entry.writes, take(entry)});
        entry.caller = nullptr;
    }
    table.used.clear();
    visitor_(to_, blocks);
}

void Accesses::flush() {
    const Inside inside;
    for (Table* table = tables_.load(std::memory_order_acquire); table; table = table->next) {
        const std::lock_guard locked(table->lock);
        visit(*table);
    }
}

}  // namespace heddle::checking::races

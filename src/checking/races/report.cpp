#include "checking/races/report.h"

#include <cstdarg>
#include <cstdio>

namespace heddle::checking::races {

namespace {

__attribute__((format(printf, 1, 2))) std::string text(const char* format, ...) {
    std::array<char, 1024> line;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line.data(), line.size(), format, arguments);
    va_end(arguments);
    return line.data();
}

std::string name_of(const Mark& mark) {
    if (mark.thread == 0)
        return text("PE %d", static_cast<int>(mark.pe));
    return text("PE %d (thread %d)", static_cast<int>(mark.pe), static_cast<int>(mark.thread));
}

const char* verb_of(const Mark& mark) {
    if (mark.is_atomic)
        return mark.writes ? "changes atomically" : "reads atomically";
    return mark.writes ? "writes" : "reads";
}

uint64_t hash(const char* letters) {
    uint64_t value = 14695981039346656037u;  // FNV-1a
    for (; *letters; ++letters) value = (value ^ static_cast<unsigned char>(*letters)) * 1099511628211u;
    return value;
}

const char* quiet_for(Flow flow) {
    switch (flow) {
        case Flow::kContextA:
        case Flow::kContextB:
            return "shmem_ctx_quiet of the call's context";
        case Flow::kRequest:
            return "a wait for the call's request";
        default:
            return "shmem_quiet";
    }
}

std::string cure_of_own(const Race& race) {
    const bool may_fence =
        race.earlier.completion == Completion::kOrdered && (race.later.writes || race.later.is_atomic);
    if (may_fence)
        return "missing: shmem_fence or shmem_quiet between them, without which they may arrive in any order";
    return text("missing: %s between them, without which the first may not be complete", quiet_for(race.earlier.flow));
}

}  // namespace

std::string describe_cure(const Race& race) {
    const Mark &earlier = race.earlier, &later = race.later;
    const int from = static_cast<int>(earlier.pe), to = static_cast<int>(later.pe);
    if (race.is_buffer)
        return text("missing: %s before the buffer is used again", quiet_for(earlier.flow));
    if (from == to)
        return cure_of_own(race);
    if (!race.is_known) {
        if (earlier.is_atomic != later.is_atomic)
            return "missing: atomics on both sides, or a wait or barrier between them";
        return text(
            "missing: a wait (shmem_wait_until, shmem_signal_wait_until) of PE %d for what PE %d says behind it, "
            "or a barrier",
            to, from);
    }
    if (earlier.flow == Flow::kSignal)
        return text("missing: a wait of PE %d for the signal (shmem_signal_wait_until)", to);
    const bool is_of_context = earlier.flow == Flow::kContextA || earlier.flow == Flow::kContextB;
    if (race.edge == Edge::kWait && race.owner == to && earlier.completion == Completion::kOrdered && !is_of_context)
        return text("missing: shmem_fence on PE %d between it and the flag that PE %d has waited for", from, to);
    if (race.edge == Edge::kWait || race.edge == Edge::kRead)
        return text("missing: %s on PE %d between it and the flag that PE %d has seen", quiet_for(earlier.flow), from,
                    to);
    return text("missing: %s on PE %d before the synchronization with PE %d, which completes nothing by itself",
                quiet_for(earlier.flow), from, to);
}

std::string describe(const Race& race, const base::CallText& earlier, const base::CallText& later,
                     const std::string& object) {
    const std::string memory =
        race.owner < 0 ? text("at %p", race.address) : text("of PE %d's memory, %s", race.owner, object.c_str());
    return text("%s on %s %s %zu byte%s %s, which %s on %s %s%s; ", later.data(), name_of(race.later).c_str(),
                verb_of(race.later), race.bytes, race.bytes == 1 ? "" : "s", memory.c_str(), earlier.data(),
                name_of(race.earlier).c_str(), verb_of(race.earlier), race.is_buffer ? ", not complete yet" : "") +
           describe_cure(race);
}

bool Reported::is_new(const base::CallText& one, const base::CallText& other) {
    const uint64_t key = (hash(one.data()) + hash(other.data())) | 1;  // 0: a free entry
    for (size_t i = 0; i < kPairs; ++i) {
        // Relaxed: an entry never changes.
        std::atomic<uint64_t>& pair = pairs_[(key + i) % kPairs];
        uint64_t there = pair.load(std::memory_order_relaxed);
        if (there == 0 && pair.compare_exchange_strong(there, key, std::memory_order_relaxed))
            return true;
        if (there == key)
            return false;
    }
    return true;
}

}  // namespace heddle::checking::races

// Time and vector clocks of the race detector (docs/decisions/0048). A PE's time counts its operations. A clock says of
// every PE which of its operations have been issued, and which are complete, before now. Threads: the owner's lock.
//
// Operations that are known to be in the memory of one PE alone, by a fence and a flag, have *arrived* there. A word of
// a clock has that PE above the time. Of two arrivals at different PEs the earlier one counts as complete, which hides
// races and invents none.
//
// The operations of a PE that are completed together form a flow: those of a context, of signals, or of requests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::checking::races {

using Time = uint64_t;  // 0: before all operations

// Contexts beside the default one share two flows: a quiet of one then counts for all of the flow, which hides races
// and invents none.
enum class Flow : uint8_t { kDefault, kContextA, kContextB, kSignal, kRequest };
constexpr int kFlows = 5;

inline bool raise(Time& known, Time to) {
    if (to <= known)
        return false;
    known = to;
    return true;
}

constexpr int kTimeBits = 48;
constexpr Time arrival(Time time, int at) {
    return static_cast<Time>(at) << kTimeBits | time;
}
constexpr Time time_of(Time arrival) {
    return arrival & ((Time{1} << kTimeBits) - 1);
}
constexpr int place_of(Time arrival) {
    return static_cast<int>(arrival >> kTimeBits);
}

// Joins an arrival into the one that is known, of a flow that is complete up to a time. True when either has changed.
inline bool join_arrival(Time& known, Time& complete, Time other) {
    if (time_of(other) <= complete || known == other)
        return false;
    if (time_of(known) > complete && place_of(known) != place_of(other))
        complete = std::min(time_of(known), time_of(other));
    else if (time_of(known) >= time_of(other))
        return false;
    if (time_of(known) < time_of(other))
        known = other;
    return true;
}

// The words of a clock: the issued operations of each PE, then the complete ones by PE and flow, then the arrivals.
constexpr size_t clock_words(int n_pes) {
    return static_cast<size_t>(n_pes) * (1 + 2 * kFlows);
}
constexpr size_t complete_word(int n_pes, int pe, Flow flow) {
    return static_cast<size_t>(n_pes) + static_cast<size_t>(pe) * kFlows + static_cast<size_t>(flow);
}
constexpr size_t arrival_word(int n_pes, int pe, Flow flow) {
    return static_cast<size_t>(n_pes) * kFlows + complete_word(n_pes, pe, flow);
}

// Joins `from` into `to`, both of clock_words(n_pes). True when `to` has changed.
inline bool join(Time* to, const Time* from, int n_pes) {
    const size_t pes = static_cast<size_t>(n_pes), arrivals = pes * (1 + kFlows);
    bool changed = false;
    for (size_t i = 0; i < arrivals; ++i) changed |= raise(to[i], from[i]);
    for (size_t i = arrivals; i < clock_words(n_pes); ++i)
        changed |= join_arrival(to[i], to[i - pes * kFlows], from[i]);
    return changed;
}

class Clock {
  public:
    explicit Clock(int n_pes) : n_pes_(n_pes), words_(clock_words(n_pes)) {}

    Time& issued(int pe) { return words_[static_cast<size_t>(pe)]; }
    Time issued(int pe) const { return words_[static_cast<size_t>(pe)]; }
    Time& complete(int pe, Flow flow) { return words_[complete_word(n_pes_, pe, flow)]; }
    Time complete(int pe, Flow flow) const { return words_[complete_word(n_pes_, pe, flow)]; }
    // `pe`'s operations on the flow, up to that time, are in the memory of the PE `at`.
    bool arrive(int pe, Flow flow, Time time, int at) {
        return join_arrival(words_[arrival_word(n_pes_, pe, flow)], complete(pe, flow), arrival(time, at));
    }
    bool has_arrived(int pe, Flow flow, Time time, int at) const {
        const Time known = words_[arrival_word(n_pes_, pe, flow)];
        return time_of(known) >= time && place_of(known) == at;
    }
    bool join(const Time* from) { return races::join(words_.data(), from, n_pes_); }
    const Time* words() const { return words_.data(); }
    size_t size() const { return words_.size(); }

  private:
    int n_pes_;
    std::vector<Time> words_;
};

}  // namespace heddle::checking::races

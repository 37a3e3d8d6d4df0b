// Time and vector clocks of the race detector (docs/decisions/0048). A PE's time counts its operations. A clock says of
// every PE which of its operations have been issued, and which are complete, before now. Threads: the owner's lock.
//
// The operations of a PE that are completed together form a flow: those of a context, of signals, or of requests.
#pragma once

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

// The words of a clock: the issued operations of each PE, then the complete ones by PE and flow.
constexpr size_t clock_words(int n_pes) {
    return static_cast<size_t>(n_pes) * (1 + kFlows);
}
constexpr size_t complete_word(int n_pes, int pe, Flow flow) {
    return static_cast<size_t>(n_pes) + static_cast<size_t>(pe) * kFlows + static_cast<size_t>(flow);
}

// Joins `from` into `to`, both of clock_words(n_pes). True when `to` has changed.
inline bool join(Time* to, const Time* from, size_t words) {
    bool changed = false;
    for (size_t i = 0; i < words; ++i) changed |= raise(to[i], from[i]);
    return changed;
}

class Clock {
  public:
    explicit Clock(int n_pes) : n_pes_(n_pes), words_(clock_words(n_pes)) {}

    Time& issued(int pe) { return words_[static_cast<size_t>(pe)]; }
    Time issued(int pe) const { return words_[static_cast<size_t>(pe)]; }
    Time& complete(int pe, Flow flow) { return words_[complete_word(n_pes_, pe, flow)]; }
    Time complete(int pe, Flow flow) const { return words_[complete_word(n_pes_, pe, flow)]; }
    bool join(const Time* from) { return races::join(words_.data(), from, words_.size()); }
    const Time* words() const { return words_.data(); }
    size_t size() const { return words_.size(); }

  private:
    int n_pes_;
    std::vector<Time> words_;
};

}  // namespace heddle::checking::races

// Knowledge: what one PE knows of the operations of all PEs, and so which earlier accesses are before its next one.
// Threads: the detector's lock.
#pragma once

#include "checking/races/clock.h"
#include "checking/races/mark.h"

#include <array>
#include <vector>

namespace heddle::checking::races {

using Fenced = std::array<Time, kFlows>;  // by flow: the operations before the PE's last fence

class Knowledge {
  public:
    Knowledge(int this_pe, int pes)
        : pe(this_pe), n_pes(pes), clock(pes), here_(static_cast<size_t>(pes) * kFlows, Time{0}) {}

    const int pe;
    const int n_pes;
    Clock clock;
    Fenced fenced = {};

    // Operations of `from` on the flow, to this PE, that a flag behind a fence has shown to be here.
    Time& here(int from, Flow flow) { return here_[static_cast<size_t>(from) * kFlows + static_cast<size_t>(flow)]; }
    Time here(int from, Flow flow) const {
        return here_[static_cast<size_t>(from) * kFlows + static_cast<size_t>(flow)];
    }

    // True when `earlier`, an access to owner's memory, is over before this PE's access `now` begins.
    bool is_before(const Mark& earlier, const Mark& now, int owner) const {
        const int from = static_cast<int>(earlier.pe);
        const Time time = earlier.time;
        if (earlier.completion == Completion::kAtReturn)
            return from == pe || clock.issued(from) >= time;
        if (clock.complete(from, earlier.flow) >= time || clock.has_arrived(from, earlier.flow, time, owner))
            return true;
        if (earlier.completion == Completion::kAtQuiet)
            return false;
        if (owner == pe && here(from, earlier.flow) >= time)
            return true;
        return from == pe && (now.writes || now.is_atomic) && fenced[static_cast<size_t>(earlier.flow)] >= time;
    }

    // The clock for others, to whom what is here has arrived at this PE.
    Clock published() const {
        Clock known = clock;
        for (int from = 0; from < n_pes; ++from)
            for (int flow = 0; flow < kFlows; ++flow) known.arrive(from, Flow(flow), here(from, Flow(flow)), pe);
        return known;
    }

  private:
    std::vector<Time> here_;
};

}  // namespace heddle::checking::races

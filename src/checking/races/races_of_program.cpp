// Races, the part about the program's own loads and stores, and about whose memory an address is.
#include "bootstrap/bootstrap.h"
#include "checking/races/objects.h"
#include "checking/races/places.h"
#include "checking/races/race_detector.h"
#include "checking/races/races.h"
#include "memory/node_memory.h"
#include "memory/symmetric.h"

namespace heddle::checking::races {

using bootstrap::job;

bool Races::find(const void* address, size_t* position) const {
    const memory::Symmetric& memory = *memory::symmetric;
    const auto at = reinterpret_cast<uintptr_t>(address);
    if (memory.heap.holds(address))
        *position = at - memory.heap.base;
    else if (memory.data.holds(address))
        *position = data_position() + (at - memory.data.base);
    else
        return false;
    return true;
}

// Of the address's block for heddle_recent, whether all is this PE's own memory, and not in use by operations.
bool Races::is_own_block(const void* address) {
    const memory::Symmetric& memory = *memory::symmetric;
    const char* const begin =
        static_cast<const char*>(address) - reinterpret_cast<uintptr_t>(address) % HEDDLE_RECENT_BYTES;
    const char* const last = begin + HEDDLE_RECENT_BYTES - 1;
    const auto is_in = [&](const auto& range) { return range.holds(begin) && range.holds(last); };
    return (is_in(memory.heap) || is_in(memory.data)) &&
           !Accesses::is_watched(Accesses::kOfBuffers, begin, HEDDLE_RECENT_BYTES);
}

int Races::find_owner(const void* address, size_t* position) const {
    const memory::NodeMemory& node = memory::node_memory;
    const size_t offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(node.heap(0));
    const size_t slot = offset / node.layout.stride, inside = offset % node.layout.stride;
    if (slot >= pe_of_slot_.size())
        return -1;
    if (inside < memory::symmetric->heap.bytes)
        *position = inside;
    else if (inside - node.layout.data_offset < memory::symmetric->data.bytes)
        *position = data_position() + (inside - node.layout.data_offset);
    else
        return -1;
    return pe_of_slot_[slot];
}

void Races::take_runs(void* races, const std::vector<Accesses::Run>& runs) {
    auto* const here = static_cast<Races*>(races);
    std::vector<Detector::AtOnce> accesses;
    accesses.reserve(runs.size());
    size_t position;
    for (const Accesses::Run& run : runs)
        if (here->find(reinterpret_cast<const void*>(run.begin), &position))
            accesses.push_back({{.owner = job.pe, .position = position, .bytes = run.bytes, .writes = run.writes},
                                {run.writes ? kStore : kLoad, run.caller}});
    here->detector_->access_at_once(accesses);
}

void Races::take_accesses() {
    if (Accesses::are_told())
        accesses_.flush();
}

void Races::watch_buffers() {
    if (!Accesses::are_told())
        return;
    const PendingBuffers::Hull hull = detector_->held();
    Accesses::watch(Accesses::kOfBuffers, hull.begin, hull.end - hull.begin);
}

void Races::access(const void* address, size_t bytes, heddle_access_kind kind, const void* caller,
                   heddle_recent* recent) {
    size_t position = 0;
    const bool is_own = find(address, &position);
    const int owner = is_own ? job.pe : find_owner(address, &position);
    if (kind == HEDDLE_ACCESS_ATOMIC) {  // of the language: a flag, if another PE has changed it
        if (owner < 0)
            return;
        take_accesses();
        detector_->see(owner, position, bytes, Edge::kWait);
        return detector_->settle();
    }
    const bool writes = kind == HEDDLE_ACCESS_STORE;
    const base::Call call = {writes ? kStore : kLoad, caller};
    if (Accesses::is_watched(Accesses::kOfBuffers, address, bytes))
        detector_->touch(address, bytes, writes, call);
    if (is_own)
        return accesses_.add(reinterpret_cast<uintptr_t>(address), bytes, writes, caller,
                             is_own_block(address) ? recent : nullptr);
    // At once: no call of the library need be between it and what another PE does then.
    if (owner < 0)
        return;
    detector_->access({.owner = owner, .position = position, .bytes = bytes, .writes = writes}, call);
    if (writes)
        detector_->settle();
}

}  // namespace heddle::checking::races

// Races, the part about the program's own loads and stores, and about whose memory an address is.
#include "base/invariant.h"
#include "bootstrap/bootstrap.h"
#include "checking/races/inside.h"
#include "checking/races/objects.h"
#include "checking/races/places.h"
#include "checking/races/race_detector.h"
#include "checking/races/races.h"
#include "memory/node_memory.h"
#include "memory/symmetric.h"
#include "os/locked.h"

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

// Of the address's block for heddle_recent: all is this PE's own memory, or all is private, and no operation uses any
// of it.
Races::Block Races::block_of(const void* address) const {
    const memory::Symmetric& memory = *memory::symmetric;
    const char* const begin = static_cast<const char*>(address) - reinterpret_cast<uintptr_t>(address) % kBlockBytes;
    const char* const last = begin + kBlockBytes - 1;
    const auto is_in = [&](const auto& range) { return range.holds(begin) && range.holds(last); };
    const auto touches = [&](Accesses::WatchedRange range) { return Accesses::is_watched(range, begin, kBlockBytes); };
    const bool is_own = is_in(memory.heap) || is_in(memory.data);
    if ((!is_own && (touches(Accesses::kOfNode) || touches(Accesses::kOfData))) ||
        (touches(Accesses::kOfBuffers) && detector_->may_hold(begin, kBlockBytes)))
        return Block::kOther;
    return is_own ? Block::kOwn : Block::kPrivate;
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

// Blocks of the program's addresses are blocks of positions: both ranges of memory begin at a page.
void Races::take_blocks(void* races, const std::vector<Accesses::OfBlock>& blocks) {
    auto* const here = static_cast<Races*>(races);
    std::vector<RaceDetector::OfBlock> accesses;
    accesses.reserve(blocks.size());
    size_t position;
    for (const Accesses::OfBlock& block : blocks)
        if (here->find(reinterpret_cast<const void*>(block.begin), &position)) {
            HEDDLE_INVARIANT(position % kBlockBytes == 0);
            accesses.push_back(
                {job.pe, position, block.writes, {block.writes ? kStore : kLoad, block.caller}, block.bytes});
        }
    here->detector_->access_blocks(accesses);
}

void Races::take_accesses() {
    if (Accesses::are_told())
        accesses_.flush();
}

void Races::watch_buffers() {
    if (!Accesses::are_told())
        return;
    const os::Locked locked(watch_lock_);
    constexpr uintptr_t kMostAhead = 15;  // of an access of 16 bytes: a program looks where it begins
    PendingBuffers::Hull hull = detector_->held();
    if (hull.begin != hull.end)
        hull.begin -= kMostAhead;
    Accesses::watch(Accesses::kOfBuffers, hull.begin, hull.end - hull.begin);
    if (hull.begin != hull.end)
        Accesses::end_epoch();  // a block in the hull may be in use from now on
}

void Races::access(const void* address, size_t bytes, heddle_access_kind kind, const void* caller,
                   heddle_recent* recent) {
    if (Inside::is_here())
        return;
    const Inside inside;
    const uint64_t epoch = Accesses::epoch();  // where it ends from here on, nothing is recent
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
    const Block block = recent ? block_of(address) : Block::kOther;
    if (is_own)
        accesses_.add(reinterpret_cast<uintptr_t>(address), bytes, writes, caller,
                      block == Block::kOwn ? recent : nullptr);
    else if (block == Block::kPrivate)
        Accesses::ignore(reinterpret_cast<uintptr_t>(address), caller, recent);
    if (block != Block::kOther)
        recent->epoch = epoch;
    if (is_own)
        return;
    // At once: no call of the library need be between it and what another PE does then.
    if (owner < 0)
        return;
    detector_->access({.owner = owner, .position = position, .bytes = bytes, .writes = writes}, call);
    if (writes)
        detector_->settle();
}

}  // namespace heddle::checking::races

#include "profiling/trace.h"

#include "memory/symmetric.h"
#include "os/locked.h"
#include "os/thread_exit.h"

#include <algorithm>
#include <new>

namespace heddle::profiling {

namespace {

std::atomic<uint64_t> n_traces{0};

struct KnownLog {
    uint64_t trace = 0;
    void* log = nullptr;
    std::atomic<bool>* has_ended = nullptr;  // of the log
};
constinit thread_local KnownLog known_log;

void leave_log() {
    if (known_log.has_ended)
        known_log.has_ended->store(true, std::memory_order_release);  // pairs with Trace::this_log
    known_log = {};
}

constexpr size_t kMost = size_t{8} << 20, kLeast = size_t{256} << 10, kOfJob = size_t{256} << 20;

}  // namespace

size_t trace_bytes(size_t setting, int n_pes) {
    const size_t wanted = setting != 0 ? setting : kOfJob / static_cast<size_t>(std::min(n_pes, kTracedPes));
    const size_t chunks = std::clamp(wanted, kLeast, setting != 0 ? SIZE_MAX / 2 : kMost) / TraceChunk::kBytes;
    return Trace::kHeadBytes + chunks * TraceChunk::kBytes;
}

uint64_t word_of(const void* address) {
    const memory::Symmetric& symmetric = *memory::symmetric;
    const auto at = reinterpret_cast<uintptr_t>(address);
    if (symmetric.heap.holds(address))
        return at - symmetric.heap.base + 1;
    return symmetric.data.holds(address) ? (at - symmetric.data.base + 1) | kInStaticData : 0;
}

Trace::Trace(void* area, size_t bytes)
    : number_(n_traces.fetch_add(1, std::memory_order_relaxed) + 1),
      head_(new(area) TraceHead),
      max_chunks_((bytes - kHeadBytes) / TraceChunk::kBytes) {
    head_->begin = os::both_clocks();
}

Trace::Log* Trace::this_log() {
    if (known_log.trace == number_) [[likely]]
        return static_cast<Log*>(known_log.log);
    const os::Locked locked(lock_);
    Log* taken = nullptr;
    for (uint32_t i = 0; i < n_logs_ && !taken; ++i)
        if (logs_[i].has_ended.exchange(false, std::memory_order_acquire))  // pairs with profiling::leave_log
            taken = &logs_[i];
    if (!taken && n_logs_ == kLogs)
        return nullptr;
    if (!taken) {
        taken = &logs_[n_logs_];
        taken->thread = n_logs_++;
    }
    known_log = {number_, taken, &taken->has_ended};
    os::ThreadExit<leave_log>::ask();
    return taken;
}

TraceChunk* Trace::take_chunk(const Log& log) {
    const uint32_t i = head_->chunks.fetch_add(1, std::memory_order_relaxed);
    if (i >= max_chunks_) {
        head_->chunks.fetch_sub(1, std::memory_order_relaxed);
        return nullptr;
    }
    auto* const chunk = new (reinterpret_cast<char*>(head_) + kHeadBytes + i * TraceChunk::kBytes) TraceChunk;
    chunk->thread = log.thread;
    return chunk;
}

TraceEvent* Trace::add(const TraceEvent& event, bool is_of_program) {
    if (!is_on())
        return nullptr;
    Log* const log = this_log();
    uint32_t n = log && log->chunk ? log->chunk->n.load(std::memory_order_relaxed) : TraceChunk::kEvents;
    if (log && n == TraceChunk::kEvents) {
        log->chunk = take_chunk(*log);
        n = 0;
    }
    if (!log || !log->chunk) {
        head_->lost.fetch_add(1, std::memory_order_relaxed);
        uint64_t first = head_->first_lost.load(std::memory_order_relaxed);
        while (event.begin < first &&
               !head_->first_lost.compare_exchange_weak(first, event.begin, std::memory_order_relaxed)) {
        }
        return nullptr;
    }
    log->chunk->is_of_program |= is_of_program;
    TraceEvent& to = log->chunk->events[n];
    to = event;
    log->chunk->n.store(n + 1, std::memory_order_release);  // ahead of who gets the chunk, which reads n first
    return &to;
}

void Trace::note(base::SlowEvent what, uint64_t begin_ticks, int pe, uint64_t bytes) {
    const uint64_t now = os::ticks_now();
    add({.begin = begin_ticks != 0 ? begin_ticks : now,
         .end = now,
         .bytes = bytes,
         .what = kSlow + static_cast<uint32_t>(what),
         .place = kNoPlace,
         .pe = pe},
        false);
}

void Trace::turn(bool on) {
    const uint64_t now = os::ticks_now();
    if (is_on_.exchange(on, std::memory_order_relaxed) == on)
        return;
    uint64_t none = UINT64_MAX;
    if (!on)
        head_->paused_from.compare_exchange_strong(none, now, std::memory_order_relaxed);
    head_->paused_until.store(on ? now : 0, std::memory_order_relaxed);
}

uint32_t Trace::number_of(const SiteName& name) {
    uint32_t i = 0;
    while (i < head_->n_places && !head_->places[i].is_at_place_of(name)) ++i;
    if (i < head_->n_places)
        return i;
    if (i == TraceHead::kPlaces)
        return kNoPlace;
    head_->places[i] = name;
    return head_->n_places++;
}

}  // namespace heddle::profiling

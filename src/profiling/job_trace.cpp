#include "profiling/job_trace.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>

namespace heddle::profiling {

namespace {

bool is(const TraceEvent& event, Kind kind) {
    return event.what == static_cast<uint32_t>(kind);
}

// The heap is the program's, too: what it has written there is no event.
bool is_known(const TraceEvent& event) {
    constexpr uint32_t kSlowEnd = kSlow + static_cast<uint32_t>(base::SlowEvent::kCopy) + 1;
    return event.what < std::size(kKinds) || event.what == kGiveLock || (event.what >= kSlow && event.what < kSlowEnd);
}

bool is_store(const TraceEvent& event) {
    return event.word != 0 && (is(event, Kind::kPut) || is(event, Kind::kAtomic) || is(event, Kind::kPutSignal));
}

bool stores_to(const TraceEvent& store, uint64_t word) {
    if (!is(store, Kind::kPut))
        return store.word == word;
    return word - store.word < store.bytes;
}

// Marks the calls that the next one in the trace follows at once.
void mark_followed(std::vector<TimedEvent>& events) {
    std::map<std::pair<uint32_t, uint32_t>, TimedEvent*> last;
    for (TimedEvent& event : events) {
        if (!is_store(event))
            continue;
        event.is_followed = event.begins_run == 0;
        TimedEvent*& before = last[{event.thread, event.place}];
        if (before)
            before->is_followed |= before->number + 1 == event.number;
        before = &event;
    }
}

using Events = std::vector<const TimedEvent*>;

void sort_by_begin(Events& events) {
    std::sort(events.begin(), events.end(),
              [](const TimedEvent* a, const TimedEvent* b) { return a->begin_ns < b->begin_ns; });
}

// The last event that has begun by then and fulfils the condition; null: none among the most recent ones.
template <class Condition>
const TimedEvent* find_last(const Events& events, int64_t by_ns, Condition condition) {
    constexpr int kLooks = 4096;
    auto at = std::upper_bound(events.begin(), events.end(), by_ns,
                               [](int64_t ns, const TimedEvent* event) { return ns < event->begin_ns; });
    for (int looks = 0; at != events.begin() && looks < kLooks; ++looks)
        if (condition(**--at))
            return *at;
    return nullptr;
}

// From which on stores may be missing, since events of a thread were lost.
int64_t first_loss_ns(const JobTrace& trace) {
    int64_t first = INT64_MAX;
    for (const PeTrace& pe : trace.pes) {
        if (pe.lost == 0)
            continue;
        std::map<uint32_t, int64_t> last;
        for (const TimedEvent& event : pe.events) last[event.thread] = event.end_ns;
        for (const auto& [thread, end_ns] : last) first = std::min(first, end_ns);
    }
    return first;
}

struct ArrowSearch {
    const JobTrace& trace;
    std::unordered_map<int, Events> stores;      // by target
    std::unordered_map<uint64_t, Events> gives;  // of locks, by word
    std::map<std::pair<uint64_t, uint32_t>, Events> collectives;
    std::vector<Arrow> arrows;

    explicit ArrowSearch(const JobTrace& of) : trace(of) {}

    void sort_in(const TimedEvent& event) {
        if (is_store(event))
            stores[event.pe].push_back(&event);
        else if (event.what == kGiveLock)
            gives[event.word].push_back(&event);
        else if (is(event, Kind::kCollective) && event.word != 0)
            collectives[{event.word, event.number}].push_back(&event);
    }

    void end_wait(const TimedEvent& wait, bool has_gaps) {
        const auto to = stores.find(wait.of_pe);
        if (to == stores.end())
            return;
        const auto by_ns = wait.end_ns + static_cast<int64_t>(trace.clock_error_ns);
        const TimedEvent* const store =
            find_last(to->second, by_ns, [&](const TimedEvent& one) { return stores_to(one, wait.word); });
        if (store && store->is_followed && (!has_gaps || store->end_ns >= wait.begin_ns))
            arrows.push_back({store, &wait});
    }

    // The lock was held when the wait began.
    void end_wait_for_lock(const TimedEvent& wait) {
        const auto of = gives.find(wait.word);
        if (of == gives.end())
            return;
        const auto error_ns = static_cast<int64_t>(trace.clock_error_ns);
        const TimedEvent* const give = find_last(of->second, wait.end_ns + error_ns,
                                                 [&](const TimedEvent& one) { return one.of_pe != wait.of_pe; });
        if (give && give->begin_ns + error_ns >= wait.begin_ns)
            arrows.push_back({give, &wait});
    }

    void end_collective(const Events& members) {
        if (members.size() != static_cast<size_t>(members[0]->pe))
            return;
        const TimedEvent* const last =
            *std::max_element(members.begin(), members.end(),
                              [](const TimedEvent* a, const TimedEvent* b) { return a->begin_ns < b->begin_ns; });
        for (const TimedEvent* member : members)
            if (member != last && member->end_ns + static_cast<int64_t>(trace.clock_error_ns) > last->begin_ns)
                arrows.push_back({last, member});
    }
};

}  // namespace

uint64_t JobTrace::lost() const {
    uint64_t sum = 0;
    for (const PeTrace& pe : pes) sum += pe.lost;
    return sum;
}

size_t JobTrace::events() const {
    size_t sum = 0;
    for (const PeTrace& pe : pes) sum += pe.events.size();
    return sum;
}

PeTrace read_trace(int pe, const TraceHead& head, const TraceChunk* chunks, size_t n_chunks,
                   const ClockOffset& at_begin, const ClockOffset& at_end, uint64_t origin_ns) {
    PeTrace trace;
    trace.pe = pe;
    trace.lost = head.lost.load(std::memory_order_relaxed);
    trace.was_paused = head.was_paused.load(std::memory_order_relaxed);
    trace.places.assign(head.places.begin(), head.places.begin() + std::min(head.n_places, TraceHead::kPlaces));
    const double ticks = static_cast<double>(std::max(head.end.ticks, head.begin.ticks + 1) - head.begin.ticks);
    const double ns = static_cast<double>(head.end.ns - head.begin.ns);
    const auto to_ns = [&](uint64_t at) {
        const double share = static_cast<double>(static_cast<int64_t>(at - head.begin.ticks)) / ticks;
        const double offset = static_cast<double>(at_begin.ns) * (1 - share) + static_cast<double>(at_end.ns) * share;
        return static_cast<int64_t>(head.begin.ns - origin_ns) + static_cast<int64_t>(share * ns + offset);
    };
    for (SiteName& place : trace.places) place.function.back() = place.module.back() = '\0';
    std::vector<const TraceChunk*> order;
    for (size_t i = 0; i < n_chunks; ++i)
        if (chunks[i].thread < Trace::kLogs)
            order.push_back(&chunks[i]);
    std::stable_sort(order.begin(), order.end(),
                     [](const TraceChunk* a, const TraceChunk* b) { return a->thread < b->thread; });
    for (const TraceChunk* chunk : order) {
        trace.is_of_program.resize(std::max<size_t>(trace.is_of_program.size(), chunk->thread + 1));
        if (chunk->is_of_program)
            trace.is_of_program[chunk->thread] = true;
        // Acquire: pairs with Trace::add, whose thread may go on where the library's own threads do.
        const uint32_t n = std::min<uint32_t>(chunk->n.load(std::memory_order_acquire), TraceChunk::kEvents);
        for (uint32_t i = 0; i < n; ++i) {
            TimedEvent event;
            static_cast<TraceEvent&>(event) = chunk->events[i];
            if (!is_known(event))
                continue;
            event.begin_ns = to_ns(event.begin);
            event.end_ns = to_ns(event.end);
            event.of_pe = pe;
            event.thread = chunk->thread;
            trace.events.push_back(event);
        }
    }
    mark_followed(trace.events);
    return trace;
}

std::vector<Arrow> find_arrows(const JobTrace& trace) {
    ArrowSearch find(trace);
    bool has_gaps = false;
    for (const PeTrace& pe : trace.pes) {
        has_gaps |= pe.was_paused;
        for (const TimedEvent& event : pe.events) find.sort_in(event);
    }
    for (auto& [pe, events] : find.stores) sort_by_begin(events);
    for (auto& [word, events] : find.gives) sort_by_begin(events);
    const int64_t until_ns = first_loss_ns(trace);
    for (const PeTrace& pe : trace.pes)
        for (const TimedEvent& event : pe.events) {
            if (event.word == 0 || event.end_ns > until_ns)
                continue;
            if (is(event, Kind::kWait))
                find.end_wait(event, has_gaps);
            else if (is(event, Kind::kLock))
                find.end_wait_for_lock(event);
        }
    for (const auto& [which, members] : find.collectives) find.end_collective(members);
    return find.arrows;
}

}  // namespace heddle::profiling

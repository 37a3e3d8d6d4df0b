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

// The stores that are not in the trace: those of a run, and those to several places. A run goes from the call that has
// begun it to the next wait of the thread. It had no other call where the next one at its place has the next number.
void find_hidden_stores(const std::vector<TimedEvent>& events, std::vector<Span>* gaps) {
    struct Run {
        const TimedEvent* begun;
        int64_t end_ns;
    };
    std::map<std::pair<uint32_t, uint32_t>, Run> runs;  // by thread and place
    for (const TimedEvent& event : events) {
        if (is(event, Kind::kPut) && event.word == 0)
            gaps->push_back({event.begin_ns, event.end_ns});
        if (event.what > static_cast<uint32_t>(Kind::kPutSignal) &&
            event.what <= static_cast<uint32_t>(Kind::kCollective)) {
            for (auto at = runs.lower_bound({event.thread, 0}); at != runs.end() && at->first.first == event.thread;
                 ++at)
                at->second.end_ns = std::min(at->second.end_ns, event.begin_ns);
            continue;
        }
        if (const auto at = runs.find({event.thread, event.place}); at != runs.end()) {
            const Run& run = at->second;
            if (run.begun->number + 1 != event.number)
                gaps->push_back({run.begun->begin_ns, std::min(run.end_ns, event.begin_ns)});
            runs.erase(at);
        }
        if (is_store(event) && event.begins_run)
            runs[{event.thread, event.place}] = {&event, INT64_MAX};
    }
    for (const auto& [where, run] : runs) gaps->push_back({run.begun->begin_ns, run.end_ns});
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

struct ArrowSearch {
    const JobTrace& trace;
    std::unordered_map<int, Events> stores;      // by target
    std::unordered_map<uint64_t, Events> gives;  // of locks, by word
    std::map<std::pair<uint64_t, uint32_t>, Events> collectives;
    std::unordered_map<int, int> nodes;  // by PE
    std::vector<Span> gaps;
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

    int node_of(const TimedEvent& event) const { return nodes.at(event.of_pe); }
    int64_t error_ns(const TimedEvent& a, const TimedEvent& b) const {
        return node_of(a) == node_of(b) ? 0 : static_cast<int64_t>(trace.clock_error_ns);
    }
    // gaps: by their begins, each with the latest end of those up to it.
    bool has_gap(int64_t begin_ns, int64_t end_ns) const {
        const auto behind = std::lower_bound(gaps.begin(), gaps.end(), end_ns,
                                             [](const Span& gap, int64_t ns) { return gap.begin_ns < ns; });
        return behind != gaps.begin() && std::prev(behind)->end_ns > begin_ns;
    }
    void add(const TimedEvent* from, const TimedEvent& wait) {
        if (from && !has_gap(from->begin_ns, std::max(wait.end_ns, from->end_ns)))
            arrows.push_back({from, &wait});
    }

    // The last store during the wait. Other nodes have other clocks, and their stores take a while: then the last one
    // up to soon behind the wait.
    void end_wait(const TimedEvent& wait) {
        const auto to = stores.find(wait.of_pe);
        if (to == stores.end())
            return;
        constexpr int64_t kLookNs = 2000;  // from the look that made it wait to the begin of the wait, and more
        const auto covers = [&](const TimedEvent& one) { return stores_to(one, wait.word); };
        const TimedEvent* const during = find_last(to->second, wait.end_ns, [&](const TimedEvent& one) {
            return covers(one) && one.end_ns + kLookNs + error_ns(one, wait) >= wait.begin_ns;
        });
        if (during)
            return add(during, wait);
        const auto is_far = [&](const TimedEvent& one) { return covers(one) && node_of(one) != node_of(wait); };
        const auto late_ns = wait.end_ns + static_cast<int64_t>(trace.clock_error_ns);
        const TimedEvent* const late = find_last(to->second, late_ns, is_far);
        add(late, wait);
    }

    // The lock was held when the wait began, by another thread.
    void end_wait_for_lock(const TimedEvent& wait) {
        const auto of = gives.find(wait.word);
        if (of == gives.end())
            return;
        const auto late_ns = wait.end_ns + static_cast<int64_t>(trace.clock_error_ns);
        const TimedEvent* const give = find_last(of->second, late_ns, [&](const TimedEvent& one) {
            const bool is_own = one.of_pe == wait.of_pe && one.thread == wait.thread;
            return !is_own && one.begin_ns <= wait.end_ns + error_ns(one, wait);
        });
        if (give && give->begin_ns + error_ns(*give, wait) >= wait.begin_ns)
            add(give, wait);
    }

    void end_collective(const Events& members) {
        if (members.size() != static_cast<size_t>(members[0]->pe))
            return;
        const TimedEvent* const last =
            *std::max_element(members.begin(), members.end(),
                              [](const TimedEvent* a, const TimedEvent* b) { return a->begin_ns < b->begin_ns; });
        for (const TimedEvent* member : members)
            if (member != last && member->end_ns + error_ns(*member, *last) > last->begin_ns)
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
    trace.places.assign(head.places.begin(), head.places.begin() + std::min(head.n_places, TraceHead::kPlaces));
    const double ticks = static_cast<double>(std::max(head.end.ticks, head.begin.ticks + 1) - head.begin.ticks);
    const double ns = static_cast<double>(head.end.ns - head.begin.ns);
    const auto to_ns = [&](uint64_t at) {
        const double share = static_cast<double>(static_cast<int64_t>(at - head.begin.ticks)) / ticks;
        const double offset = static_cast<double>(at_begin.ns) * (1 - share) + static_cast<double>(at_end.ns) * share;
        return static_cast<int64_t>(head.begin.ns - origin_ns) + static_cast<int64_t>(share * ns + offset);
    };
    for (SiteName& place : trace.places) place.function.back() = place.module.back() = '\0';
    if (const uint64_t first = head.first_lost.load(std::memory_order_relaxed); trace.lost != 0)
        trace.first_lost_ns = to_ns(first);
    if (const uint64_t from = head.paused_from.load(std::memory_order_relaxed); from != UINT64_MAX) {
        const uint64_t until = head.paused_until.load(std::memory_order_relaxed);
        trace.gaps.push_back({to_ns(from), until == 0 ? INT64_MAX : to_ns(until)});
    }
    std::vector<const TraceChunk*> order;
    for (size_t i = 0; i < n_chunks; ++i)
        if (chunks[i].thread < Trace::kLogs)
            order.push_back(&chunks[i]);
    std::stable_sort(order.begin(), order.end(),
                     [](const TraceChunk* a, const TraceChunk* b) { return a->thread < b->thread; });
    trace.events.reserve(order.size() * TraceChunk::kEvents);
    for (const TraceChunk* chunk : order) {
        trace.is_of_program.resize(std::max<size_t>(trace.is_of_program.size(), chunk->thread + 1));
        if (chunk->is_of_program)
            trace.is_of_program[chunk->thread] = true;
        const uint32_t n = std::min<uint32_t>(chunk->n.load(std::memory_order_relaxed), TraceChunk::kEvents);
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
    find_hidden_stores(trace.events, &trace.gaps);
    return trace;
}

std::vector<Arrow> find_arrows(const JobTrace& trace) {
    ArrowSearch find(trace);
    int64_t until_ns = INT64_MAX;  // from which on events may be missing
    for (const PeTrace& pe : trace.pes) {
        until_ns = std::min(until_ns, pe.first_lost_ns);
        find.nodes[pe.pe] = pe.node;
        find.gaps.insert(find.gaps.end(), pe.gaps.begin(), pe.gaps.end());
        for (const TimedEvent& event : pe.events) find.sort_in(event);
    }
    std::sort(find.gaps.begin(), find.gaps.end(), [](const Span& a, const Span& b) { return a.begin_ns < b.begin_ns; });
    for (size_t i = 1; i < find.gaps.size(); ++i)
        find.gaps[i].end_ns = std::max(find.gaps[i].end_ns, find.gaps[i - 1].end_ns);
    for (auto& [pe, events] : find.stores) sort_by_begin(events);
    for (auto& [word, events] : find.gives) sort_by_begin(events);
    for (const PeTrace& pe : trace.pes)
        for (const TimedEvent& event : pe.events) {
            if (event.word == 0 || event.end_ns > until_ns)
                continue;
            if (is(event, Kind::kWait))
                find.end_wait(event);
            else if (is(event, Kind::kLock))
                find.end_wait_for_lock(event);
        }
    for (const auto& [which, members] : find.collectives) find.end_collective(members);
    return find.arrows;
}

}  // namespace heddle::profiling

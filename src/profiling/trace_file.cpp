#include "profiling/trace_file.h"

#include "bootstrap/bootstrap.h"
#include "profiling/document.h"
#include "profiling/text.h"

#include <cerrno>
#include <map>

namespace heddle::profiling {

namespace {

using base::SlowEvent;

// How an event of the library's own is shown: what it is called, and whether it lasts.
struct SlowEventName {
    SlowEvent what;
    const char* name;
    bool lasts;
};
constexpr SlowEventName kSlowEvents[] = {
    {SlowEvent::kSleep, "sleep", true},
    {SlowEvent::kServiceSleep, "sleep until the network has something", true},
    {SlowEvent::kMessageSent, "message sent", false},
    {SlowEvent::kMessageReceived, "message received", false},
    {SlowEvent::kControlMessage, "control message of a collective", false},
    {SlowEvent::kStep, "step of a collective", true},
    {SlowEvent::kCopy, "copy in the background", true},
};

// "solve.c:214" of each place, which is looked for once.
class Places {
  public:
    const std::string& text_of(const SiteName& site) {
        const auto [at, is_new] = texts_.try_emplace({site.module.data(), site.linked});
        if (is_new)
            at->second = place_of(site, texts_.size() <= kMostLines);
        return at->second;
    }

  private:
    std::map<std::pair<std::string, uint64_t>, std::string> texts_;
};

class TraceWriter {
  public:
    explicit TraceWriter(FILE* file) : file_(file) {}

    void add(const std::string& event) {
        // ferror tells at the end.
        fputs(is_first_ ? "" : ",\n", file_);
        fwrite(event.data(), 1, event.size(), file_);
        is_first_ = false;
    }
    void name(const char* what, int pe, uint32_t thread, const std::string& value) {
        add(print("{\"name\": \"%s\", \"ph\": \"M\", \"pid\": %d, \"tid\": %u, \"args\": {\"name\": %s}}", what, pe,
                  thread, quoted(value).c_str()));
    }
    void call(const TimedEvent& event, const SiteName& site, const std::string& place);
    void slow(const TimedEvent& event);
    void arrow(const Arrow& arrow, size_t number);

  private:
    // In microseconds, as the format has it.
    static std::string us(int64_t ns) {
        return print("%s%lld.%03lld", ns < 0 ? "-" : "", static_cast<long long>((ns < 0 ? -ns : ns) / 1000),
                     static_cast<long long>((ns < 0 ? -ns : ns) % 1000));
    }
    static std::string at(const TimedEvent& event, int64_t ns) {
        return print("\"ts\": %s, \"pid\": %d, \"tid\": %u", us(ns).c_str(), event.of_pe, event.thread);
    }
    static std::string lasting(const TimedEvent& event) {
        return print("\"ph\": \"X\", \"dur\": %s, ", us(event.end_ns - event.begin_ns).c_str()) +
               at(event, event.begin_ns);
    }

    FILE* const file_;
    bool is_first_ = true;
};

std::string arguments_of(const TimedEvent& event) {
    const auto bytes = static_cast<unsigned long long>(event.bytes);
    std::string text;
    switch (static_cast<Kind>(event.what)) {
        case Kind::kPut:
        case Kind::kGet:
        case Kind::kAtomic:
        case Kind::kPutSignal:
            text = print(", \"pe\": %d, \"bytes\": %llu, \"call\": %u", event.pe, bytes, event.number);
            break;
        case Kind::kQuiet:
        case Kind::kFence:
        case Kind::kRequest:
            return print(", \"operations\": %llu, \"call\": %u", bytes, event.number);
        case Kind::kCollective:
            return event.word != 0 ? print(", \"of the team\": %u, \"members\": %d", event.number, event.pe) : "";
        case Kind::kWait:
        case Kind::kLock:
        case Kind::kPosted:
            text = print(", \"call\": %u", event.number);
            break;
    }
    if (event.word != 0)
        text += print(", \"word\": \"%s+%#llx\"", event.word & kInStaticData ? "data" : "heap",
                      static_cast<unsigned long long>((event.word & ~kInStaticData) - 1));
    return text;
}

void TraceWriter::call(const TimedEvent& event, const SiteName& site, const std::string& place) {
    std::string text =
        print("{\"name\": %s, \"cat\": \"%s\", ", quoted(site.function.data()).c_str(), kKinds[event.what]) +
        lasting(event) + ", \"args\": {\"at\": " + quoted(place);
    if (site.context != 0)
        text += print(", \"context\": %u", site.context);
    add(text + arguments_of(event) + "}}");
}

void TraceWriter::slow(const TimedEvent& event) {
    if (event.what == kGiveLock)
        return add("{\"name\": \"gives a lock back\", \"cat\": \"lock\", \"ph\": \"X\", \"dur\": 0.001, " +
                   at(event, event.begin_ns) + "}");
    const SlowEventName& name = kSlowEvents[event.what - kSlow];
    std::string text = print("{\"name\": \"%s\", \"cat\": \"library\", ", name.name) +
                       (name.lasts ? lasting(event) : "\"ph\": \"i\", \"s\": \"t\", " + at(event, event.begin_ns));
    text += ", \"args\": {";
    if (event.pe >= 0)
        text += print("\"pe\": %d", event.pe);
    if (!name.lasts)
        text += print("%s\"bytes\": %llu", event.pe >= 0 ? ", " : "", static_cast<unsigned long long>(event.bytes));
    add(text + "}}");
}

// Both ends lie within the slices of their events.
void TraceWriter::arrow(const Arrow& arrow, size_t number) {
    add(print("{\"name\": \"ends the wait\", \"cat\": \"arrow\", \"ph\": \"s\", \"id\": %zu, ", number) +
        at(*arrow.from, arrow.from->begin_ns) + "}");
    add(print("{\"name\": \"ends the wait\", \"cat\": \"arrow\", \"ph\": \"f\", \"bp\": \"e\", \"id\": %zu, ", number) +
        at(*arrow.to, std::max(arrow.to->begin_ns, arrow.to->end_ns - 1)) + "}");
}

SiteName nowhere() {
    SiteName name;
    snprintf(name.function.data(), name.function.size(), "a call of a further place");
    return name;
}

}  // namespace

bool write_trace(const JobTrace& trace, const std::vector<Arrow>& arrows, FILE* file) {
    const SiteName unknown = nowhere();
    Places places;
    fputs("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n", file);
    TraceWriter to(file);
    for (const PeTrace& pe : trace.pes) {
        to.name("process_name", pe.pe, 0,
                print("PE %d of %s, node %d", pe.pe, program_invocation_short_name, bootstrap::job.node_of(pe.pe)));
        to.add(
            print("{\"name\": \"process_sort_index\", \"ph\": \"M\", \"pid\": %d, \"tid\": 0, \"args\": "
                  "{\"sort_index\": %d}}",
                  pe.pe, pe.pe));
        for (uint32_t thread = 0; thread < pe.is_of_program.size(); ++thread)
            to.name("thread_name", pe.pe, thread,
                    print(pe.is_of_program[thread] ? "thread %u" : "thread %u, of the library", thread));
        for (const TimedEvent& event : pe.events) {
            if (event.what >= kGiveLock) {
                to.slow(event);
                continue;
            }
            const SiteName& site = event.place < pe.places.size() ? pe.places[event.place] : unknown;
            to.call(event, site, places.text_of(site));
        }
    }
    for (size_t i = 0; i < arrows.size(); ++i) to.arrow(arrows[i], i + 1);
    fprintf(file,
            "\n], \"otherData\": {\"program\": %s, \"pes\": %d, \"traced_pes\": %zu, \"lost_events\": %llu, "
            "\"clock_error_ns\": %llu}}\n",
            quoted(program_invocation_short_name).c_str(), bootstrap::job.n_pes, trace.pes.size(),
            static_cast<unsigned long long>(trace.lost()), static_cast<unsigned long long>(trace.clock_error_ns));
    return fflush(file) == 0 && ferror(file) == 0;
}

}  // namespace heddle::profiling

#include "bootstrap/status_report.h"

#include "base/elf_file.h"
#include "base/source_line.h"
#include "bootstrap/wait_graph.h"
#include "os/clock.h"

#include <unistd.h>
#include <algorithm>
#include <cctype>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

namespace heddle::bootstrap {

namespace {

constexpr size_t kFewPids = 4;  // a group's processes that are told

__attribute__((format(printf, 1, 2))) std::string format(const char* how, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, how);
    vsnprintf(text, sizeof text, how, arguments);
    va_end(arguments);
    return text;
}

// A text of the page, up to its first unprintable character.
template <size_t kBytes>
std::string printable(const char (&text)[kBytes]) {
    size_t length = 0;
    while (length < kBytes && isgraph(static_cast<unsigned char>(text[length]))) ++length;
    return {text, length};
}

std::string seconds(uint64_t from_ns, uint64_t to_ns) {
    return format("%.1f", to_ns > from_ns ? static_cast<double>(to_ns - from_ns) * 1e-9 : 0.0);
}

bool read_memory(const StatusSource& source, uint64_t offset, void* to, size_t bytes) {
    return source.memory_fd >= 0 && offset <= INT64_MAX &&
           pread(source.memory_fd, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

std::string number_text(uint64_t value, const WaitState& wait) {
    const unsigned bits = wait.value_bytes * 8u;
    if (!wait.is_signed)
        return std::to_string(bits < 64 ? value & ((uint64_t{1} << bits) - 1) : value);
    return std::to_string(static_cast<int64_t>(value << (64 - bits)) >> (64 - bits));
}

// "flag[3]", "heap+0x40", or nothing.
std::string object_text(const WaitState& wait) {
    base::ObjectName object;
    if (wait.is_object_known && memchr(wait.module, '\0', sizeof wait.module) && wait.module[0] == '/' &&
        base::find_object(wait.module, wait.object, &object)) {
        const uint64_t element = wait.value_bytes ? wait.value_bytes : sizeof(long);
        if (object.bytes <= element && object.offset == 0)
            return object.name;
        if (object.offset % element == 0 && object.bytes % element == 0)
            return format("%s[%" PRIu64 "]", object.name, object.offset / element);
        return format("%s+%#" PRIx64, object.name, object.offset);
    }
    switch (wait.region) {
        case WaitState::Region::kHeap:
            return format("heap+%#" PRIx64, wait.offset);
        case WaitState::Region::kData:
            return format("static data+%#" PRIx64, wait.offset);
        default:
            return {};
    }
}

// The lines of source of a report's places, each looked for once.
class Lines {
  public:
    explicit Lines(uint64_t for_ns) : end_ns_(for_ns == 0 ? 0 : os::now_ns() + for_ns) {}

    // "ring.c:42", or nothing.
    std::string find(const std::string& module, uint64_t linked) {
        const std::pair key(module, linked);
        if (const auto known = lines_.find(key); known != lines_.end())
            return known->second;
        std::string& line = lines_[key];
        const uint64_t now_ns = os::now_ns();
        if (!module.empty() && module[0] == '/' && now_ns < end_ns_)
            line = base::source_line(module.c_str(), linked, (end_ns_ - now_ns) / os::kMillisecondNs).data();
        return line;
    }

  private:
    std::map<std::pair<std::string, uint64_t>, std::string> lines_;
    uint64_t end_ns_;
};

// "PE 3: shmem_long_p called at prog+0x12bc, ring.c:42". The line is known where the writer's module is the waiting
// PE's, too.
std::string writer_text(const WaitState& wait, Lines* lines) {
    size_t length = 0;
    while (length < sizeof wait.writer_call && isprint(static_cast<unsigned char>(wait.writer_call[length]))) ++length;
    std::string call(wait.writer_call, length);
    if (const size_t open = call.rfind(" ("); open != std::string::npos && call.back() == ')') {
        call.pop_back();
        call.erase(open + 1, 1);
    }
    const std::string module = printable(wait.module);
    const std::string name = " at " + module.substr(module.rfind('/') + 1) + "+";
    if (const size_t at = call.find(name); at != std::string::npos)
        if (const std::string line = lines->find(module, strtoull(call.c_str() + at + name.size(), nullptr, 16));
            !line.empty())
            call += ", " + line;
    return "PE " + std::to_string(wait.writer) + ": " + call;
}

// "(flag[3] >= 3, is 2)", "(lock at heap+0x40, held by PE 0)", or nothing.
std::string target_text(const StatusSource& source, const WaitState& wait, Lines* lines) {
    const std::string object = object_text(wait);
    const bool has_value =
        wait.value_bytes == 1 || wait.value_bytes == 2 || wait.value_bytes == 4 || wait.value_bytes == 8;
    std::string text;
    switch (wait.awaits) {
        case WaitState::Awaits::kValue: {
            if (object.empty() || !has_value)
                return {};
            text = object + " " + printable(wait.comparison) + " " + number_text(wait.value, wait);
            uint64_t now = 0;
            if (!read_memory(source, wait.file_offset, &now, wait.value_bytes))
                break;
            text += ", is " + number_text(now, wait);
            if (wait.writer >= 0 && number_text(now, wait) == number_text(wait.seen, wait))  // nobody has written since
                text += ", last written by " + writer_text(wait, lines);
            break;
        }
        case WaitState::Awaits::kAnyValue:
            if (object.empty())
                return {};
            text = format("%" PRIu64 " elements from ", wait.nelems) + object + " on, " + printable(wait.comparison);
            break;
        case WaitState::Awaits::kLock:
            text = object.empty() ? "a lock" : object;
            if (wait.holder >= 0)
                text += format(", held by PE %d", wait.holder);
            break;
        default:
            return {};
    }
    return "(" + text + ")";
}

// "shmem_signal_wait_until(flag[3] >= 3, is 2)"
std::string wait_text(const StatusSource& source, const WaitState& wait, Lines* lines) {
    const std::string function = printable(wait.function);
    return (function.empty() ? "Heddle" : function) + target_text(source, wait, lines);
}

// " (called at prog+0x12bc, ring.c:42)", or nothing.
std::string place_text(const WaitState& wait, Lines* lines) {
    const std::string place = printable(wait.place);
    if (place.empty())
        return {};
    const std::string line = lines->find(printable(wait.module), wait.linked);
    return " (called at " + place + (line.empty() ? "" : ", " + line) + ")";
}

// What one thread of a PE, or the PE, answers. Answers with the same texts are told together.
struct Answer {
    int slot = 0;
    int pe = 0;
    int thread = 0;  // 0: there is one answer of this PE
    std::string text;
    std::string place;      // told behind the text, and the number
    uint64_t since_ns = 0;  // 0: no wait
    uint64_t number = 0;    // of a collective; 0: unknown
};

// "shmem_barrier_all #1042 (called at prog+0x12bc)"; "#1042-1043" of answers with several numbers.
std::string text_of(const std::vector<const Answer*>& group) {
    uint64_t first = UINT64_MAX, last = 0;
    for (const Answer* one : group) {
        if (one->number == 0)
            continue;
        first = std::min(first, one->number);
        last = std::max(last, one->number);
    }
    std::string text = group[0]->text;
    if (last != 0)
        text.append(" #").append(std::to_string(first));
    if (first < last)
        text.append("-").append(std::to_string(last));
    return text.append(group[0]->place);
}

// The answer of a PE none of whose threads publishes a wait: it runs, or waits for its launcher.
Answer other_answer(const PeRecord& record, int slot, int pe) {
    // Relaxed, and names that mix: see PeRecord.
    const uint64_t since_ns = record.wait_since_ns.load(std::memory_order_relaxed);
    const bool leaves = state_of(record) == PeState::kLeaving;
    if (since_ns == 0)
        return {slot, pe, 0, leaves ? "at its end" : "running, not waiting in Heddle", ""};
    const WaitName name = wait_name_of(record);
    char text[sizeof name] = {};
    memcpy(text, name.data(), sizeof name);
    const std::string function = printable(text);
    return {slot, pe, 0, (leaves ? "at its end, in " : "in ") + (function.empty() ? "Heddle" : function), "", since_ns};
}

// The answers of one PE: of each thread that waits, or of none.
std::vector<Answer> answers_of(const StatusSource& source, int slot, Lines* lines) {
    const PeRecord& record = source.page->records()[slot];
    const int pe = pe_of(*source.page, slot);
    if (source.processes[static_cast<size_t>(slot)].ended)
        return {{slot, pe, 0, "has ended", ""}};
    const PeState state = state_of(record);
    if (state == PeState::kAbsent)
        return {{slot, pe, 0, "has not called shmem_init", ""}};
    if (state == PeState::kFinalized)
        return {{slot, pe, 0, "has called shmem_finalize and runs on", ""}};
    if (state != PeState::kRunning && state != PeState::kLeaving)
        return {{slot, pe, 0, "in a state that its own stores have damaged", ""}};
    const char* const before = state == PeState::kLeaving ? "at its end, in " : "in ";
    std::vector<Answer> answers;
    for (const WaitState& wait : waits_of(*source.page, slot))
        answers.push_back({slot, pe, wait.thread, before + wait_text(source, wait, lines), place_text(wait, lines),
                           wait.since_ns, wait.number});
    if (answers.empty())
        return {other_answer(record, slot, pe)};
    if (answers.size() == 1)
        answers[0].thread = 0;
    return answers;
}

// "3 PEs (0-1, 3; pids 11, 12, 14)", "PE 2 (pid 13)", "PE 2 (pid 13, thread 17)"
std::string name_of(const StatusSource& source, const std::vector<const Answer*>& group) {
    std::vector<int> pes;
    std::string pids;
    for (const Answer* one : group) {
        if (!pes.empty() && pes.back() == one->pe)
            continue;
        pes.push_back(one->pe);
        const auto& [pid, ended] = source.processes[static_cast<size_t>(one->slot)];
        if (pid > 0 && !ended && pes.size() <= kFewPids)
            pids += (pids.empty() ? "" : ", ") + std::to_string(pid);
    }
    if (!pids.empty() && pes.size() > kFewPids)
        pids += ", ...";
    if (group.size() == 1) {
        const std::string thread = group[0]->thread ? format("thread %d", group[0]->thread) : "";
        const std::string inside =
            (pids.empty() ? "" : "pid " + pids) + (pids.empty() || thread.empty() ? "" : ", ") + thread;
        return format("PE %d", pes[0]) + (inside.empty() ? "" : " (" + inside + ")");
    }
    const std::string number = pes.size() == 1 ? "PE " + std::to_string(pes[0]) : std::to_string(pes.size()) + " PEs";
    const std::string threads = group.size() > pes.size() ? std::to_string(group.size()) + " threads of " : "";
    const std::string list = pes.size() == 1 ? "" : describe_numbers(pes);
    const std::string told = pids.empty() ? "" : (pes.size() == 1 ? "pid " : "pids ") + pids;
    const std::string inside = list + (list.empty() || told.empty() ? "" : "; ") + told;
    return threads + number + (inside.empty() ? "" : " (" + inside + ")");
}

// What several PEs answer.
std::string plural(const std::string& text) {
    if (text.rfind("has ", 0) != 0)
        return text;
    const std::string runs_on = " and runs on";
    const size_t at = text.find(runs_on);
    return "have " + text.substr(4, at == std::string::npos ? at : at - 4) +
           (at == std::string::npos ? "" : " and run on");
}

std::string since_text(const std::vector<const Answer*>& group, uint64_t now_ns) {
    uint64_t first = UINT64_MAX, last = 0;
    for (const Answer* one : group) {
        first = std::min(first, one->since_ns);
        last = std::max(last, one->since_ns);
    }
    if (last == 0)
        return {};
    const std::string longest = seconds(first, now_ns), shortest = seconds(last, now_ns);
    return " since " + (longest == shortest ? longest : shortest + " to " + longest) + " s";
}

bool waits_before(const StatusSource& source, int slot, uint64_t before_ns) {
    const std::vector<WaitState> waits = waits_of(*source.page, slot);
    return !waits.empty() &&
           std::all_of(waits.begin(), waits.end(), [&](const WaitState& wait) { return wait.since_ns < before_ns; });
}

int n_slots(const StatusSource& source) {
    return static_cast<int>(source.processes.size());
}

}  // namespace

std::vector<std::string> describe_pes(const StatusSource& source) {
    Lines lines(source.lines_ns);
    std::vector<Answer> answers;
    for (int slot = 0; slot < n_slots(source); ++slot)
        for (Answer& answer : answers_of(source, slot, &lines)) answers.push_back(std::move(answer));
    std::vector<std::vector<const Answer*>> groups;
    std::map<std::pair<std::string, std::string>, size_t> group_of;
    for (const Answer& answer : answers) {
        const auto [found, is_new] = group_of.emplace(std::pair(answer.text, answer.place), groups.size());
        if (is_new)
            groups.emplace_back();
        groups[found->second].push_back(&answer);
    }
    std::vector<std::string> text;
    text.reserve(groups.size());
    for (const auto& group : groups)
        text.push_back(name_of(source, group) + ": " + (group.size() > 1 ? plural(text_of(group)) : text_of(group)) +
                       since_text(group, source.now_ns));
    for (std::string& line : describe_relations(*source.page, n_slots(source))) text.push_back(std::move(line));
    for (std::string& line : describe_unacked(*source.page, n_slots(source))) text.push_back(std::move(line));
    return text;
}

std::vector<std::string> describe_pe(const StatusSource& source, int slot) {
    Lines lines(source.lines_ns);
    std::vector<std::string> text;
    for (const Answer& answer : answers_of(source, slot, &lines))
        text.push_back((answer.thread ? format("thread %d: ", answer.thread) : "") + text_of({&answer}) +
                       since_text({&answer}, source.now_ns));
    return text;
}

bool all_wait(const StatusSource& source, uint64_t before_ns) {
    bool any = false;
    for (int slot = 0; slot < n_slots(source); ++slot) {
        if (source.processes[static_cast<size_t>(slot)].ended)
            continue;
        if (!waits_before(source, slot, before_ns))
            return false;
        any = true;
    }
    return any;
}

bool any_waits(const StatusSource& source, uint64_t before_ns) {
    for (int slot = 0; slot < n_slots(source); ++slot)
        if (waits_before(source, slot, before_ns))
            return true;
    return false;
}

std::string describe_last_calls(const StatusSource& source, int slot) {
    constexpr uint32_t kTold = 6;
    const PeStatus& status = source.page->statuses()[slot];
    const uint32_t seen = status.n_calls.load(std::memory_order_relaxed);
    std::string text;
    bool is_checked = false;
    for (uint32_t i = 0; i < std::min(seen, kTold); ++i) {
        CallRecord call;
        if (!status.calls[(seen - 1 - i) % PeStatus::kCalls].read(&call) || call.kind == CallRecord::Kind::kNone)
            continue;
        is_checked |= call.kind != CallRecord::Kind::kWait;
        size_t length = 0;
        while (length < sizeof call.text && isprint(static_cast<unsigned char>(call.text[length]))) ++length;
        text += (text.empty() ? "" : ", ") + std::string(call.text, length) + " " + seconds(call.at_ns, source.now_ns) +
                " s ago";
    }
    return is_checked ? text : "";
}

}  // namespace heddle::bootstrap

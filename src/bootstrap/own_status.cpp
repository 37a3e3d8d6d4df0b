#include "bootstrap/own_status.h"

#include "bootstrap/bootstrap.h"
#include "os/clock.h"
#include "os/memfd.h"
#include "os/process.h"

#include <unistd.h>
#include <cstring>

namespace heddle::bootstrap {

namespace {

// True for a wait in the call before, and for what that call's own place has called again.
bool is_part_of(const CallRecord& before, const CallRecord& call) {
    if (call.kind == CallRecord::Kind::kCollective)
        return before.kind == call.kind && strncmp(before.text, call.text, sizeof call.text) == 0;
    const size_t length = strlen(call.text);
    return strncmp(before.text, call.text, length) == 0 && (before.text[length] == '\0' || before.text[length] == ' ');
}

}  // namespace

PeStatus* own_status() {
    return job.page ? job.page->statuses() + job.slot : nullptr;
}

void limit_dump() {
    const size_t page_bytes = os::page_bytes();
    char* const base = reinterpret_cast<char*>(job.page);
    os::set_dumped(base, job_page_bytes(static_cast<int>(job.page->n_pes)), false);
    os::set_dumped(base, os::round_up(sizeof(JobPage), page_bytes), true);
    const auto mine = static_cast<size_t>(reinterpret_cast<char*>(own_status()) - base);
    const size_t begin = mine / page_bytes * page_bytes;
    os::set_dumped(base + begin, os::round_up(mine + sizeof(PeStatus), page_bytes) - begin, true);
}

void record_call(CallRecord::Kind kind, const char* text) {
    PeStatus* const mine = own_status();
    if (!mine)
        return;
    CallRecord call;
    call.at_ns = os::now_ns();
    call.kind = kind;
    strncpy(call.text, text, sizeof call.text - 1);
    // Relaxed: threads that meet in one place, a whole round of the ring apart, mix two names at worst.
    const uint32_t seen = mine->n_calls.load(std::memory_order_relaxed);
    auto& newest = mine->calls[(seen - 1) % PeStatus::kCalls];
    CallRecord before;
    if (seen != 0 && newest.read(&before) && is_part_of(before, call)) {
        if (kind == CallRecord::Kind::kCollective)
            newest.write(call);
        return;
    }
    const uint32_t number = mine->n_calls.fetch_add(1, std::memory_order_relaxed);
    mine->calls[number % PeStatus::kCalls].write(call);
}

StatusSource source_of_own_page(uint64_t lines_ns) {
    StatusSource source;
    source.page = job.page;
    for (int slot = 0; slot < job.n_slots; ++slot) {
        const PeRecord& record = job.record(slot);
        const int pid = slot == job.slot ? getpid() : record.pid.load(std::memory_order_relaxed);
        const uint32_t space = record.process_namespace.load(std::memory_order_relaxed);
        source.processes.push_back({pid, !job.as_thread && pid != 0 && os::has_ended(pid, space)});
    }
    if (os::identify(job.memory_fd) == job.memory_file)  // the program may have closed it
        source.memory_fd = job.memory_fd;
    source.now_ns = os::now_ns();
    source.lines_ns = lines_ns;
    return source;
}

}  // namespace heddle::bootstrap

#include "report.h"

#include <sys/wait.h>

#include <cctype>
#include <cstdio>
#include <cstring>

namespace heddle::launcher {

namespace {

using bootstrap::PeRecord;
using bootstrap::PeState;

// The name up to the first unprintable character.
std::string wait_name(const PeRecord& record) {
    const bootstrap::WaitName name = bootstrap::wait_name_of(record);
    size_t length = 0;
    while (isgraph(static_cast<unsigned char>(name[length]))) ++length;
    return length ? std::string(name.data(), length) : "Heddle";
}

// The stores in bootstrap::show_wait are relaxed: a name and an address of two waits may mix, which harms nothing.
std::string where(const PeRecord& record, uint64_t now_ns) {
    const uint64_t since_ns = record.wait_since_ns.load(std::memory_order_acquire);
    if (since_ns == 0)
        return "running, not waiting in Heddle";
    std::string text = "in " + wait_name(record);
    char part[64];
    const unsigned long long address = record.wait_address.load(std::memory_order_relaxed);
    if (address != 0) {
        snprintf(part, sizeof part, " on 0x%llx", address);
        text += part;
    }
    snprintf(part, sizeof part, " since %.1f s",
             now_ns > since_ns ? static_cast<double>(now_ns - since_ns) * 1e-9 : 0.0);
    return text + part;
}

}  // namespace

PeState state_of(const PeRecord& record) {
    // Pairs with Leaving::Leaving and runtime::stop.
    return static_cast<PeState>(record.state.load(std::memory_order_acquire));
}

std::string how_it_ended(int wait_status) {
    if (!WIFSIGNALED(wait_status))
        return "exited with status " + std::to_string(WEXITSTATUS(wait_status));
    const int signal = WTERMSIG(wait_status);
    return "was killed by signal " + std::to_string(signal) + " (" + strsignal(signal) +
           (WCOREDUMP(wait_status) ? ", core dumped)" : ")");
}

std::string where_it_is(int pe, pid_t pid, bool ended, const PeRecord& record, uint64_t now_ns) {
    const std::string name = "PE " + std::to_string(pe);
    if (ended)
        return name + ": has ended";
    const std::string process = name + " (pid " + std::to_string(pid) + "): ";
    switch (state_of(record)) {
        case PeState::kAbsent:
            return process + "has not called shmem_init";
        case PeState::kRunning:
            return process + where(record, now_ns);
        case PeState::kLeaving:
            return process + "is at its end (" + where(record, now_ns) + ")";
        case PeState::kFinalized:
            return process + "has called shmem_finalize and runs on";
    }
    return process + "in a state that its own stores have damaged";
}

std::string ending_others(int others) {
    if (others == 0)
        return {};
    if (others == 1)
        return "; ending the other PE";
    return "; ending the other " + std::to_string(others) + " PEs";
}

}  // namespace heddle::launcher

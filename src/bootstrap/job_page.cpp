#include "bootstrap/job_page.h"

#include "os/process.h"
#include "os/topology.h"

#include <unistd.h>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace heddle::bootstrap {

namespace {

// The name up to the first unprintable character.
std::string printable_wait_name(const PeRecord& record) {
    const WaitName name = wait_name_of(record);
    size_t length = 0;
    while (isgraph(static_cast<unsigned char>(name[length]))) ++length;
    return length ? std::string(name.data(), length) : "Heddle";
}

// The stores in bootstrap::show_wait are relaxed: a name and an address of two waits may mix, which harms nothing.
std::string describe_wait(const PeRecord& record, uint64_t now_ns) {
    const uint64_t since_ns = record.wait_since_ns.load(std::memory_order_acquire);
    if (since_ns == 0)
        return "running, not waiting in Heddle";
    std::string text = "in " + printable_wait_name(record);
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

WaitName wait_name_of(const PeRecord& record) {
    WaitName name = {};
    for (size_t i = 0; i < PeRecord::kNameWords; ++i) {
        const uint64_t word = record.wait_name[i].load(std::memory_order_relaxed);  // see PeRecord
        memcpy(name.data() + i * sizeof word, &word, sizeof word);
    }
    return name;
}

PeState state_of(const PeRecord& record) {
    // Pairs with Leaving::Leaving and runtime::stop.
    return static_cast<PeState>(record.state.load(std::memory_order_acquire));
}

std::string describe_place(const PeRecord& record, uint64_t now_ns) {
    switch (state_of(record)) {
        case PeState::kAbsent:
            return "has not called shmem_init";
        case PeState::kRunning:
            return describe_wait(record, now_ns);
        case PeState::kLeaving:
            return "is at its end (" + describe_wait(record, now_ns) + ")";
        case PeState::kFinalized:
            return "has called shmem_finalize and runs on";
    }
    return "in a state that its own stores have damaged";
}

JobPage* create_job_page(int n_pes, int* fd) {
    const size_t bytes = job_page_bytes(n_pes);
    *fd = os::create_memory("heddle", bytes);
    if (*fd < 0) {
        errno = -*fd;
        return nullptr;
    }
    auto* page = static_cast<JobPage*>(os::map_shared(*fd, 0, bytes));  // zeroed, which is its initial state
    if (!page) {
        const int error = errno;
        close(*fd);
        errno = error;
        return nullptr;
    }
    page->magic = kJobPageMagic;
    page->n_pes = static_cast<uint32_t>(n_pes);
    page->cores = static_cast<uint32_t>(os::usable_cores());
    os::usable_cpus(page->cpus, kCpuWords);
    page->token = os::random_word();
    return page;
}

}  // namespace heddle::bootstrap

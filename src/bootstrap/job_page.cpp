#include "bootstrap/job_page.h"

#include "os/process.h"
#include "os/topology.h"

#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace heddle::bootstrap {

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

#include "runtime/build_memory.h"

#include "base/settings.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/own_status.h"
#include "memory/node_memory.h"
#include "memory/peers.h"
#include "memory/static_data.h"
#include "memory/symmetric.h"
#include "os/memfd.h"
#include "runtime/tools.h"
#include "team/team.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heddle::runtime {

using bootstrap::job;

namespace {

// The PEs that share memory exchange their sizes, agree on one layout, and map it.
bool map_memory(const char* function, const memory::StaticRange& data, char* error, size_t error_bytes) {
    const size_t heap_bytes = base::settings.symmetric_size;
    bootstrap::exchange(function, {heap_bytes, data.bytes(), own_tools(), base::settings.trace_size});
    size_t data_bytes = 0;
    for (int pe = 0; pe < job.n_pes; ++pe) {
        if (job.slot_of(pe) < 0)
            continue;
        const bootstrap::Post post = bootstrap::posted(job.slot_of(pe));
        if (!are_alike(kAgreed, pe, static_cast<uint8_t>(post[2]), error, error_bytes))
            return false;
        if (post[3] != base::settings.trace_size) {
            snprintf(error, error_bytes,
                     "HEDDLE_TRACE_SIZE is %zu bytes here, but %zu on PE %d: right would be one value for all",
                     base::settings.trace_size, static_cast<size_t>(post[3]), pe);
            return false;
        }
        if (post[0] != heap_bytes) {
            snprintf(error, error_bytes,
                     "SHMEM_SYMMETRIC_SIZE is %zu bytes here, but %zu on PE %d: right would be one value for all",
                     heap_bytes, static_cast<size_t>(post[0]), pe);
            return false;
        }
        data_bytes = std::max(data_bytes, static_cast<size_t>(post[1]));
    }
    const memory::Layout layout = memory::plan(
        job.n_slots, bootstrap::job_page_bytes(static_cast<int>(job.page->n_pes)),
        team::team_segments_bytes(job.n_slots) * static_cast<size_t>(job.n_page_nodes), heap_bytes, data_bytes);
    if (!memory::map_node(job.memory_fd, layout, job.slot)) {
        snprintf(error, error_bytes,
                 "cannot map the memory of %d PEs, %zu bytes of heap each: %s; right would be a smaller "
                 "SHMEM_SYMMETRIC_SIZE (or a higher limit, ulimit -v)",
                 job.n_slots, heap_bytes, os::describe_memory_error(errno));
        return false;
    }
    bootstrap::limit_dump();
    return true;
}

}  // namespace

bool build_memory(const char* function, char* error, size_t error_bytes) {
    memory::StaticRange data;
    if (!job.as_thread)
        data = memory::find_static_data();
    if (!map_memory(function, data, error, error_bytes))
        return false;
    const memory::NodeMemory& node = memory::node_memory;
    if (data.bytes() > 0 && !memory::move_static_data(data, node.fd, node.data_file_offset(job.slot))) {
        snprintf(error, error_bytes, "cannot make static data shared: %s", strerror(errno));
        return false;
    }
    auto* symmetric = new memory::Symmetric;  // stays valid as long as the process
    symmetric->heap = {reinterpret_cast<uintptr_t>(node.heap(job.slot)), node.layout.heap_bytes};
    symmetric->data = {data.begin, data.bytes()};
    symmetric->pe = job.pe;
    symmetric->n_pes = job.n_pes;
    symmetric->has_network = job.n_nodes > 1;
    symmetric->published = memory::make_peer_table(job.n_pes);
    symmetric->nobody = memory::nobody();
    if (!symmetric->published || !symmetric->nobody) {
        snprintf(error, error_bytes, "no address space for the table of %d PEs; right would be a higher ulimit -v",
                 job.n_pes);
        return false;
    }
    auto* peers = static_cast<heddle_peer*>(calloc(static_cast<size_t>(job.n_pes), sizeof(heddle_peer)));
    if (!peers) {
        snprintf(error, error_bytes, "no memory for a table of %d PEs", job.n_pes);
        return false;
    }
    for (int pe = 0; pe < job.n_pes; ++pe) {
        const int slot = job.slot_of(pe);
        if (job.node_of(pe) == job.node)
            peers[pe] = {node.heap(slot), node.layout.heap_bytes, node.data(slot), data.bytes()};
    }
    // A PE reaches itself at its own addresses. No gap lies behind its static data, so its last bytes take the slow
    // path.
    if (data.bytes() > 0) {
        peers[job.pe].data = reinterpret_cast<char*>(data.begin);
        peers[job.pe].data_size = data.bytes() - HEDDLE_SHORT_BYTES;
    }
    symmetric->peers = peers;
    memory::symmetric.publish(symmetric);  // pairs with runtime::publish, after a fork by another thread
    return true;
}

}  // namespace heddle::runtime

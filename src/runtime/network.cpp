#include "runtime/network.h"

#include "base/counters.h"
#include "base/error.h"
#include "base/lifecycle.h"
#include "base/settings.h"
#include "base/tsan.h"
#include "bootstrap/bootstrap.h"
#include "checking/checking.h"
#include "fabric/channel_count.h"
#include "fabric/multirail/rail_devices.h"
#include "fabric/network.h"
#include "fabric/transport/address_parts.h"
#include "memory/symmetric.h"
#include "operations/remote.h"
#include "os/clock.h"
#include "os/plugin.h"
#include "os/process.h"
#include "progress/engine.h"
#include "progress/wait_policy.h"
#include "runtime/pe.h"
#include "runtime/tools.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace heddle::runtime {

using bootstrap::job;

namespace {

HEDDLE_PE_LOCAL std::atomic<bool> is_leaving{false};

// The tools of pe: the byte behind the rails in its address blob; none is no part. False with the reason in error where
// that cannot be told.
bool find_tools(int pe, uint8_t* tools, char* error, size_t error_bytes) {
    char address_blob[fabric::kMaxAddressBlobBytes];
    const size_t bytes = bootstrap::address_blob_of(pe, address_blob, error, error_bytes);
    const fabric::Part there =
        bytes == 0 ? fabric::Part{} : fabric::part_of(address_blob, bytes, fabric::network->rails());
    *tools = there.bytes == 1 ? static_cast<uint8_t>(*there.data) : 0;
    return bytes != 0;
}

// Decides whether the loss of a PE is an error. False when this PE needs no answers any more. Otherwise true after a
// while in which the launcher, which knows more, may have ended the job.
bool is_still_missed(fabric::Loss loss) {
    // A launcher that notices the end of a PE by itself names that PE within two seconds (Open MPI 4.1, measured), and
    // gives up an unreachable host. A launcher that is told first waits for that host for minutes.
    constexpr uint64_t kEndedNs = 5000000000, kCutOffNs = 1000000000;
    // Relaxed: the thread that sets it then waits for the service thread in part_from_network.
    if (is_leaving.load(std::memory_order_relaxed))
        return false;
    os::sleep_ns(loss == fabric::Loss::kBroken ? kEndedNs : kCutOffNs);
    return !is_leaving.load(std::memory_order_relaxed);
}

// Ends this PE with a message when the process of `pe` has ended. Only for a PE of this PE's page.
void blame_if_ended(int pe) {
    const int slot = job.slot_of(pe);
    if (slot < 0)
        return;
    const bootstrap::PeRecord& record = job.record(slot);
    const int pid = record.pid.load(std::memory_order_relaxed);
    if (pid != 0 && os::has_ended(pid, record.process_namespace.load(std::memory_order_relaxed)))
        base::fatal("network", "PE %d (process %d) has ended without shmem_finalize", pe, pid);
}

// Ends this PE with a message that names the lost PE.
void lose(int pe, fabric::Loss loss, const char* reason) {
    if (!is_still_missed(loss))
        return;
    blame_if_ended(pe);
    base::fatal("network", "PE %d does not answer any more: %s", pe, reason);
}

bool goes_on_without_a_rail() {
    return base::settings.net_rails > 1 && base::settings.rail_loss == base::RailLoss::kContinue;
}

// A rail has failed. HEDDLE_RAIL_LOSS=end: the job ends. HEDDLE_RAIL_LOSS=continue: the rail is marked as lost and
// reported once on each node, and the job ends when the last rail is lost.
void lose_rail(int rail, int pe, fabric::Loss loss, const char* reason) {
    if (is_leaving.load(std::memory_order_relaxed))
        return;
    const char* const devices = (*this_pe.rails)[static_cast<size_t>(rail)].c_str();
    if (goes_on_without_a_rail()) {
        const uint32_t all = (uint32_t{1} << this_pe.rails->size()) - 1, lost = uint32_t{1} << rail;
        // Relaxed: orders nothing.
        const uint32_t before = job.page->lost_rails.fetch_or(lost, std::memory_order_relaxed);
        if (before & lost)
            return;
        if ((before | lost) != all)
            return base::report("network", "rail %d (%s) to PE %d does not work any more: %s; going on without it",
                                rail, devices, pe, reason);
    }
    if (!is_still_missed(loss))
        return;
    blame_if_ended(pe);
    base::fatal("network", "rail %d (%s) to PE %d does not work any more: %s", rail, devices, pe, reason);
}

// The first PEs of the nodes before and after this node; empty unless this PE is the first of its node.
fabric::Ring ring_of_nodes() {
    const auto first_of = [](int node) {
        int pe = 0;
        while (job.node_of(pe) != node) ++pe;
        return pe;
    };
    if (first_of(job.node) != job.pe)
        return {};
    return {first_of((job.node + job.n_nodes - 1) % job.n_nodes), first_of((job.node + 1) % job.n_nodes)};
}

fabric::Region region_of(const memory::SymmetricRegion& region) {
    return {reinterpret_cast<char*>(region.base), region.bytes};
}

fabric::ChannelConfig channel_config_of_job() {
    const memory::Symmetric& symmetric = *memory::symmetric;
    fabric::ChannelConfig config;
    config.regions.of[static_cast<int>(fabric::RegionName::kHeap)] = region_of(symmetric.heap);
    config.regions.of[static_cast<int>(fabric::RegionName::kData)] = region_of(symmetric.data);
    config.token = job.token;
    config.pe = job.pe;
    config.n_pes = job.n_pes;
    config.job.address_blob_of = bootstrap::address_blob_of;
    config.job.lost = lose;
    config.job.rail_lost = lose_rail;
    config.job.notify = [](void* engine) { static_cast<progress::Engine*>(engine)->on_messages(); };
    config.job.run_ready = [](void* engine) { static_cast<progress::Engine*>(engine)->drive(); };
    config.job.waiting = progress::engine;
    config.policy = progress::wait_policy;
    config.ring = ring_of_nodes();
    if (!base::settings.net_coalesce)
        config.full_bytes = 1;
    if (goes_on_without_a_rail())
        config.lost_rails = &job.page->lost_rails;
    return config;
}

// The plugin's file. False, with the reason in error, when it cannot be loaded.
bool find_plugin(std::string* file, char* error, size_t error_bytes) {
    const base::NetTransport asked = base::settings.net_transport;
    const base::NetTransport taken = asked == base::NetTransport::kAuto ? base::NetTransport::kUcx : asked;
    *file = "libheddle_" + base::word_of(taken) + ".so";
    if (os::load_plugin(file->c_str()))
        return true;
    snprintf(error, error_bytes,
             "HEDDLE_NET_TRANSPORT=%s needs %s beside libheddle.so: %s; right would be an installation that was built "
             "where the library of that name is, or all PEs on one node",
             base::word_of(asked).c_str(), file->c_str(), dlerror());
    return false;
}

// The channels of each PE: one number on all of them, so it follows from what all of them know alike.
int open_channels() {
    const auto asked = static_cast<int>(base::settings.net_channels);
    if (asked != 0 || base::settings.net_rails > 1)
        return std::max(1, asked);
    if (job.n_slots == job.n_pes)
        return fabric::channels_for(job.cores / static_cast<uint32_t>(job.n_pes));
    std::vector<int> pes_of(static_cast<size_t>(job.n_nodes));
    for (int pe = 0; pe < job.n_pes; ++pe) ++pes_of[static_cast<size_t>(job.node_of(pe))];
    return fabric::channels_beside(*std::max_element(pes_of.begin(), pes_of.end()));
}

bool read_options(fabric::NetworkOptions* options, char* error, size_t error_bytes) {
    // Where PEs share cores, a busy PE may be silent while all others have their turns.
    const uint64_t turns = (static_cast<uint64_t>(job.n_slots) + job.cores - 1) / job.cores;
    options->heartbeat_timeout_ns = base::settings.net_heartbeat_timeout_s * 1000000000 * turns;
    if (!fabric::deal_devices(base::settings.net_devices, base::settings.net_rails, &options->rails, error,
                              error_bytes))
        return false;
    this_pe.rails = new std::vector<std::string>(options->rails);
    options->transport = {"", base::settings.net_transports, open_channels(), fabric::kMessageBytes,
                          base::settings.net_protocol};
    if (!goes_on_without_a_rail())
        return true;
    const bool is_asked_for = options->transport.protocol == fabric::Protocol::kRma;
    if (is_asked_for)
        snprintf(error, error_bytes,
                 "HEDDLE_NET_PROTOCOL=rma with HEDDLE_RAIL_LOSS=continue: right would be am, for what does not go "
                 "as messages cannot be sent again");
    options->transport.protocol = fabric::Protocol::kAm;
    return !is_asked_for;
}

}  // namespace

bool open_network(char* error, size_t error_bytes) {
    if (!fabric::network) {
        fabric::NetworkOptions options;
        std::string plugin;
        if (!find_plugin(&plugin, error, error_bytes) || !read_options(&options, error, error_bytes))
            return false;
        options.plugin = plugin.c_str();
        fabric::network = fabric::Network::open(options, channel_config_of_job(), error, error_bytes).release();
        if (!fabric::network)
            return false;
        char address_blob[fabric::kMaxAddressBlobBytes];
        static_assert(bootstrap::kMaxAddressBlobBytes == fabric::kMaxAddressBlobBytes);
        size_t address_blob_bytes = fabric::network->address_blob(address_blob);
        const char tools = static_cast<char>(own_tools());
        if (address_blob_bytes != 0 && tools != 0 &&
            !fabric::add_part(address_blob, &address_blob_bytes, {&tools, sizeof tools}))
            address_blob_bytes = 0;
        if (address_blob_bytes == 0)
            snprintf(error, error_bytes,
                     "the addresses of this PE take more than %zu bytes: right would be fewer rails "
                     "(HEDDLE_NET_RAILS) or channels (HEDDLE_NET_CHANNELS)",
                     sizeof address_blob);
        if (address_blob_bytes == 0 ||
            !bootstrap::publish_address_blob(address_blob, address_blob_bytes, error, error_bytes))
            return false;
    }
    is_leaving.store(false, std::memory_order_relaxed);
    spread_over_channels();
    progress::engine->set_network();
    progress::wait_policy->before_wait = operations::flush_before_wait;
    progress::wait_policy->hand_over = [] { fabric::network->take_over(); };
    return true;
}

// The PEs of a page share its cores, but where each is bound to some.
void spread_over_channels() {
    if (!fabric::network)
        return;
    int count = static_cast<int>(base::settings.net_channels);
    if (count == 0) {
        const progress::WaitPolicy& policy = *progress::wait_policy;
        const uint32_t share = job.cores / static_cast<uint32_t>(job.n_slots);
        rlimit files = {};
        getrlimit(RLIMIT_NOFILE, &files);
        count = policy.multiple_asked
                    ? fabric::channels_to_use(std::min(share, policy.own_cores), job.n_pes, files.rlim_cur)
                    : 1;
    }
    fabric::network->spread_over(count);
}

bool agree_on_races(char* error, size_t error_bytes) {
    if (job.n_pes > checking::kMostPes)
        return true;  // nobody looks
    const int end = job.pe == 0 ? job.n_pes : 1;
    for (int pe = 0; pe < end; ++pe) {
        uint8_t tools = 0;
        if (!find_tools(pe, &tools, error, error_bytes) || !are_alike(kRaces, pe, tools, error, error_bytes))
            return false;
    }
    return true;
}

bool agree_on_tools(char* error, size_t error_bytes) {
    if ((own_tools() & kAgreed) == 0)
        return true;
    const int next = (job.pe + 1) % job.n_pes;
    uint8_t tools = 0;
    return find_tools(next, &tools, error, error_bytes) && are_alike(kAgreed, next, tools, error, error_bytes);
}

bool serve_network(char* error, size_t error_bytes) {
    if (fabric::network->start())
        return true;
    snprintf(error, error_bytes, "cannot start the thread that serves the network: %s", strerror(errno));
    return false;
}

void count_control_messages() {
    fabric::ControlInbox& inbox = fabric::network->control_inbox();
    base::counters->control_messages_received.value.store(inbox.received(), std::memory_order_relaxed);
    base::counters->control_messages_waiting.value.store(inbox.most_waiting(), std::memory_order_relaxed);
}

void serve_until_parted() {
    fabric::network->set_service(fabric::Service::kSleeps);  // until the next init chooses (apply_progress)
}

void part_from_network() {
    is_leaving.store(true, std::memory_order_relaxed);
    fabric::network->begin_leaving();
    fabric::network->stop();
}

namespace {

// A process that ends leaves its connections to the kernel. Under ThreadSanitizer the network is closed first: its
// threads would otherwise run while their library is destroyed, and be reported.
__attribute__((destructor)) void close_network() {
    if (!tsan::is_on() || !fabric::network || base::lifecycle != base::Lifecycle::kFinalized)
        return;
    tsan::look_away();
    delete fabric::network;
    tsan::look_back();
    fabric::network = nullptr;
}

}  // namespace

}  // namespace heddle::runtime

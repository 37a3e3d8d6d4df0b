// SHMEM-MT bandwidth and bibandwidth: blocking put and get by size, a window of messages, then quiet; a sample ends
// with the target's acknowledgement. memcpy of the same sizes through the same windows is measured with them,
// interleaved.
#include <algorithm>
#include <string>
#include <vector>

#include "programs/common/transfer_points.hpp"

namespace shmem_mt {
namespace {

// Slots of a window: 64 messages, fewer when they would not fit 4 MiB, but at least 4.
long window_slots(long size_bytes) {
    long slots = 64;
    while (slots > 4 && slots * size_bytes > (4L << 20)) slots /= 2;
    return slots;
}

void run_point(Job& job, TransferMemory& memory, const std::string& op, const TransferSpec& spec) {
    const std::string sync = op == "get" ? "blocking" : "quiet";
    if (!job.options().wants_sync(sync))
        return;
    const bool with_reference = spec.route == Route::kDefaultContext && !spec.bidirectional && op == "put";
    std::vector<NamedTransfer> group = {{spec.bidirectional ? "put" : op, sync, spec}};
    if (with_reference)
        group.push_back({"memcpy", "none", plain_twin(job, memory, spec)});
    run_transfers(job, memory, spec.bidirectional ? "bibandwidth" : "bandwidth", Metric::kBandwidth, group);
}

void run_all(Job& job) {
    const Options& options = job.options();
    long largest = 0;
    for (const long size : options.sizes) {
        TransferSpec spec;
        spec.size_bytes = size;
        spec.slots = window_slots(size);
        largest = std::max(largest, Transfer::region_bytes(spec));
    }
    TransferMemory memory(job, largest);
    const auto routes = wanted_routes(job, "bandwidth");
    for (const auto& placement : options.placements) {
        for (const Route route : routes) {
            for (const auto& op : options.ops) {
                for (const long size : options.sizes) {
                    TransferSpec spec;
                    spec.op = op == "get" ? Op::kGet : Op::kPut;
                    spec.route = route;
                    spec.on_heap = placement == "heap";
                    spec.bidirectional = op == "put_both_ways";
                    spec.size_bytes = size;
                    spec.slots = window_slots(size);
                    spec.quiet_every = spec.slots;
                    if (Transfer::fits(job, spec))
                        run_point(job, memory, op, spec);
                }
            }
        }
    }
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    Options defaults;
    defaults.sizes = {64, 1024, 16384, 262144, 1048576, 4194304};
    defaults.placements = {"heap"};
    defaults.contexts = {"default", "private"};
    Job job("bandwidth", parse_options(argc, argv, defaults, {"put", "get", "put_both_ways"}));
    if (threads_available(job, "bandwidth"))
        run_all(job);
    job.finish();
    return 0;
}

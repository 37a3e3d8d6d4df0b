// SHMEM-MT bandwidth and bibandwidth: blocking put and get by size. Puts that the target reads go through a ring
// (read_stream.hpp). Blind puts, and gets, are a window of messages, then quiet; a sample of puts ends with the target's
// acknowledgement. memcpy of the same sizes through the same windows is measured with blind puts, interleaved. Windows
// are 4 MiB and less, which caches hold, or (cold) more than twice the last cache.
#include <algorithm>
#include <string>
#include <vector>

#include "programs/common/transfer_points.hpp"
#include "programs/pt2pt/read_stream.hpp"
#include "programs/pt2pt/window_slots.hpp"

namespace shmem_mt {
namespace {

void run_stream(Job& job, TransferMemory& memory, ReadStream::Post* posts, const TransferSpec& spec) {
    if (!job.options().wants_sync("fence_flag"))
        return;
    ReadStream stream(job, memory, posts, spec);
    Agreed verdict;
    if (job.options().validate)
        verdict = stream.validate();
    const Samples samples = measure(job, {[&](long count) { return stream.sample(count); }}, TimeOf::kCommonWindow,
                                    {static_cast<double>(spec.size_bytes)})[0];
    Json params = job.params("put");
    params.integer("size_bytes", spec.size_bytes).text("placement", "heap").text("context", context_name(spec.route));
    params.text("sync", "fence_flag").text("touch", "read").text("cache", spec.cold ? "cold" : "hot");
    params.integer("window_bytes", Transfer::window_bytes(spec));
    print_point(job, "bandwidth", params, "bandwidth", "bytes/s", metric_values(job, spec, Metric::kBandwidth, samples),
                samples, job.options().validate ? &verdict : nullptr);
}

void run_point(Job& job, TransferMemory& memory, const std::string& op, const TransferSpec& spec) {
    const std::string sync = op == "get" ? "blocking" : "quiet";
    if (!job.options().wants_sync(sync))
        return;
    const bool with_reference =
        spec.route == Route::kDefaultContext && !spec.bidirectional && op == "put" && !spec.cold;
    std::vector<NamedTransfer> group = {{spec.bidirectional ? "put" : op, sync, spec}};
    if (with_reference)
        group.push_back({"memcpy", "none", plain_twin(job, memory, spec)});
    run_transfers(job, memory, spec.bidirectional ? "bibandwidth" : "bandwidth", Metric::kBandwidth, group);
}

// One operation, size and place, by touch and cache.
void run_axes(Job& job, TransferMemory& memory, ReadStream::Post* posts, const std::string& op, TransferSpec spec,
              bool cold_fits) {
    const Options& options = job.options();
    for (const auto& cache : options.caches) {
        spec.cold = cache == "cold";
        spec.slots = bandwidth_slots(spec.size_bytes, spec.cold, job.threads());
        spec.quiet_every = spec.slots;
        if (spec.cold && Transfer::region_bytes(spec) * job.threads() > kMostColdBytes) {
            job.skip("bandwidth", "cache=cold", "a window of twice the last cache would need more than 2 GiB");
            continue;
        }
        if (spec.cold && !cold_fits) {
            job.skip("bandwidth", "cache=cold",
                     "no room for a window of twice the last cache, in the symmetric heap or in memory");
            continue;
        }
        for (const auto& touch : op == "put" ? options.touches : std::vector<std::string>{"write-only"}) {
            if (touch == "read" && spec.on_heap)
                run_stream(job, memory, posts, spec);
            else if (touch == "write-only" && Transfer::fits(job, spec))
                run_point(job, memory, op, spec);
        }
    }
}

void run_all(Job& job) {
    const Options& options = job.options();
    long largest = 4096, largest_cold = 0;
    for (const auto& cache : options.caches) {
        for (const long size : options.sizes) {
            TransferSpec spec;
            spec.size_bytes = size;
            spec.slots = bandwidth_slots(size, cache == "cold", job.threads());
            const long bytes = Transfer::region_bytes(spec);
            if (cache == "hot")
                largest = std::max(largest, bytes);
            else if (bytes * job.threads() <= kMostColdBytes)
                largest_cold = std::max(largest_cold, bytes);
        }
    }
    const bool cold_fits = largest_cold <= largest || fits_memory(job, largest_cold);
    TransferMemory memory(job, cold_fits ? std::max(largest, largest_cold) : largest);
    auto* posts =
        static_cast<ReadStream::Post*>(symmetric_alloc(sizeof(ReadStream::Post) * static_cast<size_t>(job.threads())));
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
                    run_axes(job, memory, posts, op, spec, cold_fits);
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
    defaults.touches = {"read", "write-only"};
    defaults.caches = {"hot"};
    Job job("bandwidth", parse_options(argc, argv, defaults, {"put", "get", "put_both_ways"}));
    if (threads_available(job, "bandwidth"))
        run_all(job);
    job.finish();
    return 0;
}

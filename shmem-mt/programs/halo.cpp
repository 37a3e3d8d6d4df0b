// SHMEM-MT halo: seconds an exchange of all six faces (halo.hpp), packing and unpacking included, in a grid of PEs as
// near to a cube as their number allows. The size is that of a face.
#include "halo.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "transfer_points.hpp"

namespace shmem_mt {
namespace {

constexpr const char* kName = "halo";

void run_point(Job& job, HaloMemory& memory, HaloSync sync, const char* sync_name, Route route, long edge) {
    Halo halo(job, memory, sync, route, edge);
    Agreed verdict;
    if (job.options().validate)
        verdict = halo.validate();
    const Samples samples = measure(job, {[&](long count) { return halo.sample(count); }})[0];
    const Place& grid = halo.grid();
    Json params = job.params("exchange");
    params.integer("size_bytes", 8 * edge * edge).text("placement", "heap").text("context", context_name(route));
    params.text("sync", sync_name).integer("edge", edge);
    params.text("grid", std::to_string(grid[0]) + "x" + std::to_string(grid[1]) + "x" + std::to_string(grid[2]));
    params.integer("remote_faces", halo.remote_faces());
    const Agreed* const shown = job.options().validate ? &verdict : nullptr;
    std::vector<double> times, rates;
    for (const double seconds : samples.seconds) {
        const double count = static_cast<double>(samples.count);
        times.push_back(seconds / count);
        rates.push_back(kFaces * job.n_pes() * count / seconds);
    }
    print_point(job, kName, params, "time", "s", times, samples, shown);
    print_point(job, kName, params, "rate", "faces/s", rates, samples, shown);
}

// The edge of the largest square of cells that `bytes` hold.
long edge_of(long bytes) {
    long edge = 1;
    while (8 * (edge + 1) * (edge + 1) <= bytes) ++edge;
    return edge;
}

void run_all(Job& job) {
    const Options& options = job.options();
    long largest = 0;
    for (const long size : options.sizes) largest = std::max(largest, size);
    HaloMemory memory(std::max(8L, largest));
    const struct {
        HaloSync sync;
        const char* name;
    } kSyncs[] = {{HaloSync::kSignal, "put_signal"}, {HaloSync::kBarrier, "quiet_barrier"}};
    const auto routes = wanted_routes(job, kName);
    for (const auto& way : kSyncs) {
        if (!options.wants_sync(way.name))
            continue;
        if (way.sync == HaloSync::kSignal && !SHMEM_MT_HAVE_PUT_SIGNAL) {
            job.skip(kName, way.name, "the library has no shmem_putmem_signal (OpenSHMEM 1.5)");
            continue;
        }
        for (const Route route : routes) {
            for (const long size : options.sizes) run_point(job, memory, way.sync, way.name, route, edge_of(size));
        }
    }
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    Options defaults;
    defaults.sizes = {512, 8192, 131072};
    defaults.placements = {"heap"};
    defaults.contexts = {"default", "shared", "private"};
    Job job(kName, parse_options(argc, argv, defaults, {"exchange"}), Pes::kAny);
    if (job.threads() > kFaces) {
        job.skip(kName, "threads=" + std::to_string(job.threads()), "a box has no more than 6 faces to share");
    } else if (threads_available(job, kName)) {
        run_all(job);
    }
    job.finish();
    return 0;
}

// SHMEM-MT halo: seconds an exchange of all six faces (halo.hpp), packing and unpacking included, in a grid of PEs as
// near to a cube as their number allows. The size is that of a face.
#include "halo.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "transfer_points.hpp"

namespace shmem_mt {
namespace {

constexpr const char* kName = "halo";

struct Way {
    HaloSync sync;
    const char* name;
    Route route;
};

void print_way(Job& job, const Halo& halo, const Way& way, long edge, const Samples& samples, const Agreed& verdict) {
    const Place& grid = halo.grid();
    Json params = job.params("exchange");
    params.integer("size_bytes", 8 * edge * edge).text("placement", "heap").text("context", context_name(way.route));
    params.text("sync", way.name).integer("edge", edge);
    params.text("grid", std::to_string(grid[0]) + "x" + std::to_string(grid[1]) + "x" + std::to_string(grid[2]));
    params.integer("remote_faces", halo.remote_faces());
    const Agreed* const shown = job.options().validate ? &verdict : nullptr;
    std::vector<double> times, rates;
    for (const double seconds : samples.seconds) {
        times.push_back(seconds / static_cast<double>(samples.count));
        rates.push_back(kFaces * job.n_pes() / times.back());
    }
    print_point(job, kName, params, "time", "s", times, samples, shown);
    print_point(job, kName, params, "rate", "faces/s", rates, samples, shown);
}

// All ways with boxes of that edge, interleaved.
void run_group(Job& job, HaloMemory& memory, const std::vector<Way>& ways, long edge) {
    std::vector<std::unique_ptr<Halo>> halos;
    std::vector<Agreed> verdicts;
    std::vector<Body> bodies;
    for (const Way& way : ways) {
        halos.push_back(std::make_unique<Halo>(job, memory, way.sync, way.route, edge));
        Halo* const halo = halos.back().get();
        verdicts.push_back(job.options().validate ? halo->validate() : Agreed{});
        bodies.push_back([halo](long count) { return halo->sample(count); });
    }
    const std::vector<Samples> samples = measure(job, bodies);
    for (size_t i = 0; i < ways.size(); ++i) print_way(job, *halos[i], ways[i], edge, samples[i], verdicts[i]);
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
    HaloMemory memory(edge_of(largest));
    const struct {
        HaloSync sync;
        const char* name;
    } kSyncs[] = {{HaloSync::kSignal, "put_signal"}, {HaloSync::kBarrier, "quiet_barrier"}};
    const auto routes = wanted_routes(job, kName);
    std::vector<Way> ways;
    for (const auto& sync : kSyncs) {
        if (!options.wants_sync(sync.name))
            continue;
        if (sync.sync == HaloSync::kSignal && !SHMEM_MT_HAVE_PUT_SIGNAL) {
            job.skip(kName, sync.name, "the library has no shmem_putmem_signal (OpenSHMEM 1.5)");
            continue;
        }
        for (const Route route : routes) ways.push_back({sync.sync, sync.name, route});
    }
    for (const long size : options.sizes) run_group(job, memory, ways, edge_of(size));
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

// SHMEM-MT halo: boxes of a 3-D grid and their faces. Operations:
//   exchange             seconds an exchange of all six faces (exchange.hpp), packing and unpacking included, in a
//                        grid of PEs as near to a cube as their number allows. The size is that of a face. Without
//                        --ops this is measured
//   jacobi7, jacobi27    Jacobi's method for a Poisson problem (jacobi_problem.hpp) with 7 and with 27 points, each
//                        thread with a box and a context of its own, faces by put with signal
//   jacobi7-overlapped   jacobi7 with the inner cells computed while faces travel
//   async7, async27      jacobi7 and jacobi27 without waiting for neighbours (jacobi_team.hpp)
// --size is the edge of the problem's grid in cells. Phases of thread 0: `exchange`, puts, waits and sums; `pack`,
// packing and unpacking faces.
#include "apps/halo/exchange.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/common/problem_size.hpp"
#include "apps/halo/jacobi_form.hpp"
#include "programs/common/transfer_points.hpp"

namespace shmem_mt {
namespace {

constexpr const char* kName = "halo";
constexpr const char* kExchange = "exchange";

// What completes an exchange, and the contexts of the threads.
struct Variant {
    HaloSync sync;
    const char* name;
    Route route;
};

void print_variant(Job& job, const Halo& halo, const Variant& variant, long edge, const Samples& samples,
                   const Agreed& verdict) {
    const Place& grid = halo.grid();
    Json params = job.params(kExchange);
    params.integer("size_bytes", 8 * edge * edge)
        .text("placement", "heap")
        .text("context", context_name(variant.route));
    params.text("sync", variant.name).integer("edge", edge);
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

// All variants with boxes of that edge, interleaved.
void run_group(Job& job, HaloMemory& memory, const std::vector<Variant>& variants, long edge) {
    std::vector<std::unique_ptr<Halo>> halos;
    std::vector<Agreed> verdicts;
    std::vector<Body> bodies;
    for (const Variant& variant : variants) {
        halos.push_back(std::make_unique<Halo>(job, memory, variant.sync, variant.route, edge));
        Halo* const halo = halos.back().get();
        verdicts.push_back(job.options().validate ? halo->validate() : Agreed{});
        bodies.push_back([halo](long count) { return halo->sample(count); });
    }
    const std::vector<Samples> samples = measure(job, bodies);
    for (size_t i = 0; i < variants.size(); ++i)
        print_variant(job, *halos[i], variants[i], edge, samples[i], verdicts[i]);
}

// The edge of the largest square of cells that `bytes` hold.
long edge_of(long bytes) {
    long edge = 1;
    while (8 * (edge + 1) * (edge + 1) <= bytes) ++edge;
    return edge;
}

void run_exchange(Job& job) {
    const Options& options = job.options();
    long largest = 0;
    for (const long size : options.sizes) largest = std::max(largest, size);
    HaloMemory memory(edge_of(largest));
    const struct {
        HaloSync sync;
        const char* name;
    } kSyncs[] = {{HaloSync::kSignal, "put_signal"},
                  {HaloSync::kBarrier, "quiet_barrier"},
                  {HaloSync::kRequest, "request_merged"},
                  {HaloSync::kNeighbors, "neighbor_alltoallv"},
                  {HaloSync::kPlan, "plan"}};
    const auto routes = wanted_routes(job, kName);
    std::vector<Variant> variants;
    for (const auto& sync : kSyncs) {
        if (!options.wants_sync(sync.name))
            continue;
        if (sync.sync == HaloSync::kSignal && !SHMEM_MT_HAVE_PUT_SIGNAL) {
            job.skip(kName, sync.name, "the library has no shmem_putmem_signal (OpenSHMEM 1.5)");
            continue;
        }
        if (sync.sync == HaloSync::kRequest && !(SHMEM_MT_HAVE_SHMEMX && SHMEM_MT_HAVE_PUT_SIGNAL)) {
            job.skip(kName, sync.name, kNoRequests);
            continue;
        }
        if (is_collective(sync.sync) && !SHMEM_MT_HAVE_PLANS) {
            job.skip(kName, sync.name, kNoPlans);
            continue;
        }
        for (const Route route : routes) {
            if (!is_collective(sync.sync) || route == Route::kDefaultContext)
                variants.push_back({sync.sync, sync.name, route});
        }
    }
    for (const long size : options.sizes) run_group(job, memory, variants, edge_of(size));
}

std::vector<std::string> known_ops() {
    std::vector<std::string> ops = {kExchange};
    for (const JacobiForm& form : kJacobiForms) ops.push_back(form.name);
    return ops;
}

void run_solvers(Job& job, long edge) {
    std::vector<Route> routes;
    std::map<Stencil, std::shared_ptr<JacobiTeam>> teams;
    std::map<Stencil, std::shared_ptr<const JacobiReference>> references;
    std::vector<std::unique_ptr<MiniApp>> forms;
    for (const JacobiForm& form : kJacobiForms) {
        if (!job.options().wants_op(form.name))
            continue;
        if (routes.empty())
            routes = wanted_routes(job, kName);
        auto& team = teams[form.stencil];
        if (team == nullptr)
            team = std::make_shared<JacobiTeam>(job, form.stencil, edge);
        auto& reference = references[form.stencil];
        const bool serial = job.options().validate && form.in_step && edge <= JacobiReference::kLargestEdge;
        if (serial && reference == nullptr)
            reference = std::make_shared<const JacobiReference>(form.stencil, edge);
        for (const Route route : routes) {
            if (route != Route::kSharedContext)  // measured with the exchange alone
                forms.push_back(std::make_unique<Jacobi>(job, form, route, team, reference));
        }
    }
    run_forms(job, kName, forms);
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    Options defaults;
    defaults.ops = {kExchange};
    defaults.sizes = {512, 8192, 131072};
    defaults.placements = {"heap"};
    defaults.contexts = {"default", "shared", "private"};
    const Options options = parse_options(argc, argv, defaults, known_ops());
    const long edge = size_of(options, {12, 48, 96, 160});
    if (edge > kLargestJacobiEdge)
        usage_error(argv[0], "--size " + options.size + ": the edge of the grid is 1 to " +
                                 std::to_string(kLargestJacobiEdge) + " cells");
    Job job(kName, options, Pes::kAny);
    if (job.options().wants_op(kExchange) && job.threads() > kFaces) {
        job.skip(kName, "threads=" + std::to_string(job.threads()), "a box has no more than 6 faces to share");
    } else if (threads_available(job, kName) && job.options().wants_op(kExchange)) {
        run_exchange(job);
    }
    if (job.thread_level_ok() && options.ops != std::vector<std::string>{kExchange}) {
        job.bind_threads();
        run_solvers(job, whole_length(job, edge, 3, kLargestJacobiEdge));
    }
    job.finish();
    return 0;
}

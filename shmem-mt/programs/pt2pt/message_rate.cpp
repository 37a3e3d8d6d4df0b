// SHMEM-MT message-rate: one direction, PE i to PE i + n/2, every thread to its own window. Two numbers:
//   rate           blind: until quiet and the target's acknowledgement that the last data is there
//   consumed_rate  until a core of the target has read every message in order
// plain_store and plain_load, one 8-byte store or load a message in the same loop, are interleaved with them.
//
// SHMEM-MT requests: the blind rate of put, get and fetch-add by what completes them, interleaved, with one context for
// all threads or one for each.
#include <algorithm>
#include <string>
#include <vector>

#include "programs/common/transfer_points.hpp"
#include "programs/pt2pt/consumer.hpp"
#include "programs/pt2pt/window_slots.hpp"

namespace shmem_mt {
namespace {

constexpr const char* kName = "message-rate";
constexpr const char* kRequestsName = "requests";

constexpr OpName kOps[] = {
    {"p", Op::kP, "quiet", false},
    {"g", Op::kG, "blocking", false},
    {"put", Op::kPut, "quiet", true},
    {"get", Op::kGet, "blocking", true},
    {"put_nbi", Op::kPutNbi, "quiet", true},
    {"get_nbi", Op::kGetNbi, "quiet", true},
    {"atomic_add", Op::kAdd, "quiet", false},
    {"atomic_fetch_add", Op::kFetchAdd, "blocking", false},
    {"atomic_fetch_add_nbi", Op::kFetchAddNbi, "quiet", false},
    {"put_quiet", Op::kPut, "quiet_each", true},
    {"put_nbe", Op::kPutNbi, "request_each", true, Requests::kEach},
    {"put_nbe", Op::kPutNbi, "request_merged", true, Requests::kMerged},
    {"put_nbe", Op::kPutNbi, "request_shared", true, Requests::kShared},
    {"get_nbe", Op::kGetNbi, "request_each", true, Requests::kEach},
    {"get_nbe", Op::kGetNbi, "request_merged", true, Requests::kMerged},
    {"get_nbe", Op::kGetNbi, "request_shared", true, Requests::kShared},
};

// The benchmark requests: each name is one group.
constexpr OpName kRequestOps[] = {
    {"requests_put", Op::kPut, "quiet_each", true},
    {"requests_put", Op::kPutNbi, "quiet", true},
    {"requests_put", Op::kPutNbi, "request_each", true, Requests::kEach},
    {"requests_put", Op::kPutNbi, "request_merged", true, Requests::kMerged},
    {"requests_put", Op::kPutNbi, "request_shared", true, Requests::kShared},
    {"requests_get", Op::kGet, "blocking", true},
    {"requests_get", Op::kGetNbi, "quiet", true},
    {"requests_get", Op::kGetNbi, "request_each", true, Requests::kEach},
    {"requests_get", Op::kGetNbi, "request_merged", true, Requests::kMerged},
    {"requests_get", Op::kGetNbi, "request_shared", true, Requests::kShared},
    {"requests_fetch_add", Op::kFetchAdd, "blocking", false},
    {"requests_fetch_add", Op::kFetchAddNbi, "quiet", false},
    {"requests_fetch_add", Op::kFetchAddNbi, "request_each", false, Requests::kEach},
    {"requests_fetch_add", Op::kFetchAddNbi, "request_merged", false, Requests::kMerged},
    {"requests_fetch_add", Op::kFetchAddNbi, "request_shared", false, Requests::kShared},
};

TransferSpec make_spec(const OpName& op, Route route, bool on_heap, long size) {
    TransferSpec spec;
    spec.op = op.op;
    spec.route = route;
    spec.requests = op.requests;
    spec.quiet_every = op.requests == Requests::kEach || std::string(op.sync) == "quiet_each" ? 1 : 0;
    spec.on_heap = on_heap;
    spec.size_bytes = size;
    spec.slots = rate_slots(size);
    return spec;
}

// Says by name, once, what the library cannot do.
bool wanted(Job& job, const char* benchmark, const OpName& op, Route route) {
    if (!job.options().wants_sync(op.sync))
        return false;
    const bool fetches = op.op == Op::kFetchAddNbi && op.requests == Requests::kNone;
    if (fetches && !SHMEM_MT_HAVE_FETCH_NBI && route == Route::kDefaultContext)
        job.skip(benchmark, std::string(op.name) + " with " + op.sync,
                 "the library has no shmem_atomic_fetch_add_nbi (OpenSHMEM 1.5)");
    if (fetches)
        return SHMEM_MT_HAVE_FETCH_NBI;
    if (op.requests == Requests::kNone || SHMEM_MT_HAVE_SHMEMX)
        return true;
    if (route == Route::kDefaultContext)
        job.skip(benchmark, std::string(op.name) + " with " + op.sync, kNoRequests);
    return false;
}

void run_op(Job& job, TransferMemory& memory, const OpName& op, Route route, bool on_heap) {
    if (!wanted(job, kName, op, route))
        return;
    const std::vector<long> sizes = op.sized ? job.options().sizes : std::vector<long>{8};
    for (const long size : sizes) {
        const TransferSpec spec = make_spec(op, route, on_heap, size);
        if (!Transfer::fits(job, spec))
            continue;
        std::vector<NamedTransfer> group = {{op.name, op.sync, spec}};
        const bool with_reference = route == Route::kDefaultContext && (op.op == Op::kP || op.op == Op::kG);
        if (with_reference) {
            group.push_back({op.op == Op::kP ? "plain_store" : "plain_load", "none", plain_twin(job, memory, spec)});
        }
        run_transfers(job, memory, kName, Metric::kRate, group);
    }
}

void run_requests(Job& job, TransferMemory& memory, const std::string& name, Route route, bool on_heap) {
    std::vector<OpName> rows;
    for (const auto& op : kRequestOps) {
        if (name == op.name && wanted(job, kRequestsName, op, route))
            rows.push_back(op);
    }
    const bool sized = !rows.empty() && rows[0].sized;
    for (const long size : sized ? job.options().sizes : std::vector<long>{8}) {
        std::vector<NamedTransfer> group;
        for (const auto& op : rows) {
            const TransferSpec spec = make_spec(op, route, on_heap, size);
            if (Transfer::fits(job, spec))
                group.push_back({name.substr(name.find('_') + 1), op.sync, spec});
        }
        run_transfers(job, memory, kRequestsName, Metric::kRate, group);
    }
}

void run_consumed(Job& job, Consumer::Channel* channels, Route route, long batch) {
    const char* sync = batch == 1 ? "self_flag" : "fence_flag";
    if (!job.options().wants_sync(sync))
        return;
    Consumer consumer(job, channels, route, batch);
    Agreed verdict;
    if (job.options().validate)
        verdict = consumer.validate();
    const Samples samples =
        measure(job, {[&](long count) { return consumer.sample(count); }}, TimeOf::kCommonWindow, {8})[0];
    Json params = job.params("p");
    params.integer("size_bytes", 8).text("placement", "heap").text("context", context_name(route)).text("sync", sync);
    params.text("touch", "read").text("cache", "hot").integer("window_bytes", 8 * Consumer::kSlots);
    params.integer("batch", batch);
    TransferSpec spec;
    print_point(job, kName, params, "consumed_rate", "messages/s", metric_values(job, spec, Metric::kRate, samples),
                samples, job.options().validate ? &verdict : nullptr);
}

void run_all(Job& job) {
    const Options& options = job.options();
    long largest = 8192;
    for (const long size : options.sizes)
        largest = std::max(largest, Transfer::region_bytes(make_spec(kOps[2], Route::kDefaultContext, true, size)));
    TransferMemory memory(job, largest);
    auto* channels = static_cast<Consumer::Channel*>(
        symmetric_alloc(sizeof(Consumer::Channel) * static_cast<size_t>(job.threads())));
    const auto routes = wanted_routes(job, kName);
    for (const auto& name : options.ops) {
        for (const Route route : routes) {
            if (name == "consumed") {
                for (const long batch : options.batches) run_consumed(job, channels, route, batch);
                continue;
            }
            for (const auto& placement : options.placements) {
                if (name.rfind("requests_", 0) == 0)
                    run_requests(job, memory, name, route, placement == "heap");
                for (const auto& op : kOps) {
                    if (name == op.name)
                        run_op(job, memory, op, route, placement == "heap");
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
    defaults.sizes = {8, 64, 512, 4096};
    defaults.placements = {"heap", "static"};
    defaults.contexts = {"default", "shared", "private"};
    defaults.batches = {1, 8, 512};
    std::vector<std::string> known;
    for (const auto& op : kOps) known.push_back(op.name);
    for (const auto& op : kRequestOps) known.push_back(op.name);
    known.erase(std::unique(known.begin(), known.end()), known.end());
    known.push_back("consumed");
    Job job(kName, parse_options(argc, argv, defaults, known));
    if (threads_available(job, kName))
        run_all(job);
    job.finish();
    return 0;
}

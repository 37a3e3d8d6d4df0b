// SHMEM-MT latency: seconds for one operation that the next one has to wait for.
//   put_round_trip, put_signal_round_trip   there and back (round_trip.hpp)
//   put_quiet, p_quiet, atomic_add_quiet    one slot, quiet after each (common/transfer.hpp)
//   get, g, atomic_fetch, atomic_fetch_add  one slot, each behind the result of the one before. Reads and atomics also
//                                           of lines that the target has just written, or keeps writing (owner.hpp)
//   barrier_all, sync_all                   over all PEs, until the slowest one has finished
//   wait_burn                               CPU seconds that PE n/2 burns while it waits for a PE that sleeps, and the
//                                           time from the put to its wake-up
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "programs/common/barriers.hpp"
#include "programs/common/transfer_points.hpp"
#include "programs/pt2pt/owner.hpp"
#include "programs/pt2pt/round_trip.hpp"

namespace shmem_mt {
namespace {

constexpr const char* kName = "latency";

constexpr OpName kOps[] = {
    {"p_quiet", Op::kP, "quiet_each", false},
    {"put_quiet", Op::kPut, "quiet_each", true},
    {"g", Op::kG, "blocking", false},
    {"get", Op::kGet, "blocking", true},
    {"atomic_add_quiet", Op::kAdd, "quiet_each", false},
    {"atomic_fetch_add", Op::kFetchAdd, "blocking", false},
    {"atomic_fetch", Op::kFetch, "blocking", false},
};

bool wants(const std::vector<std::string>& list, const char* name) {
    return std::find(list.begin(), list.end(), name) != list.end();
}

void run_warm(Job& job, TransferMemory& memory, const OpName& op, Route route) {
    for (const auto& placement : job.options().placements) {
        for (const long size : op.sized ? job.options().sizes : std::vector<long>{8}) {
            TransferSpec spec;
            spec.op = op.op;
            spec.route = route;
            spec.on_heap = placement == "heap";
            spec.size_bytes = size;
            spec.chained = std::string(op.sync) == "blocking";
            spec.quiet_every = spec.chained ? 0 : 1;
            if (Transfer::fits(job, spec))
                run_transfers(job, memory, kName, Metric::kLatency, {{op.name, op.sync, spec}});
        }
    }
}

// Validates and measures a body whose points name who had the line.
template <class Body>
void run_owned(Job& job, Body& body, const OpName& op, Route route, long size, const char* owner) {
    Agreed verdict;
    if (job.options().validate)
        verdict = body.validate();
    std::vector<Samples> samples =
        measure(job, {[&](long count) { return body.sample(count); }}, TimeOf::kSlowestPe, {static_cast<double>(size)});
    stamp_operations(job, samples[0],
                     [&](long count, std::vector<Histogram>& histograms) { return body.sample(count, &histograms); });
    Json params = job.params(op.name);
    params.integer("size_bytes", size).text("placement", "heap").text("context", context_name(route));
    params.text("sync", op.sync).text("cache", "hot").text("owner", owner);
    print_point(job, kName, params, "latency", "s", metric_values(job, TransferSpec{}, Metric::kLatency, samples[0]),
                samples[0], job.options().validate ? &verdict : nullptr);
}

void run_one_sided(Job& job, TransferMemory& memory, RoundTrip::Mailbox* boxes, const OpName& op, Route route) {
    if (!job.options().wants_sync(op.sync))
        return;
    const std::vector<std::string>& owners = job.options().owners;
    if (wants(owners, "warm"))
        run_warm(job, memory, op, route);
    if (!op_reads(op.op) && !op_is_atomic_update(op.op))
        return;
    for (const long size : op.sized ? job.options().sizes : std::vector<long>{8}) {
        if (!wants(owners, "handed-over") || size % 8 != 0)
            continue;
        HandedOver handed(job, memory, boxes, op.op, route, size);
        run_owned(job, handed, op, route, size, "handed-over");
    }
    for (const char* owner : {"contended", "false-sharing"}) {
        if (!wants(owners, owner))
            continue;
        Contended contended(job, memory, boxes, op.op, route, std::string(owner) == "false-sharing");
        run_owned(job, contended, op, route, 8, owner);
    }
}

void run_round_trip(Job& job, TransferMemory& memory, RoundTrip::Mailbox* boxes, const TripSpec& spec) {
    static const char* const kSyncs[] = {"last_word", "fence_flag", "put_signal"};
    const char* sync = kSyncs[static_cast<int>(spec.ping)];
    if (!job.options().wants_sync(sync))
        return;
    RoundTrip round_trip(job, memory, boxes, spec);
    Agreed verdict;
    if (job.options().validate)
        verdict = round_trip.validate();
    Samples samples = measure(job, {[&](long count) { return round_trip.sample(count); }}, TimeOf::kSlowestPe,
                              {2 * static_cast<double>(spec.size_bytes)})[0];
    stamp_operations(job, samples, [&](long count, std::vector<Histogram>& histograms) {
        return round_trip.sample(count, &histograms);
    });
    Json params = job.params(spec.ping == Ping::kPutSignal ? "put_signal_round_trip" : "put_round_trip");
    params.integer("size_bytes", spec.size_bytes).text("placement", "heap").text("context", context_name(spec.route));
    params.text("sync", sync)
        .text("touch", spec.read ? "read" : "write-only")
        .text("cache", spec.cold ? "cold" : "hot")
        .integer("window_bytes", spec.slots(job.threads()) * spec.stride());
    print_point(job, kName, params, "latency", "s", metric_values(job, TransferSpec{}, Metric::kLatency, samples),
                samples, job.options().validate ? &verdict : nullptr);
}

void run_round_trips(Job& job, TransferMemory& memory, RoundTrip::Mailbox* boxes, bool with_signal, Route route,
                     bool cold_fits) {
    if (with_signal && !SHMEM_MT_HAVE_PUT_SIGNAL) {
        if (route == Route::kDefaultContext)
            job.skip(kName, "put_signal_round_trip", "the library has no shmem_putmem_signal (OpenSHMEM 1.5)");
        return;
    }
    const Options& options = job.options();
    if (!with_signal && wants(options.touches, "read") && wants(options.caches, "hot"))
        run_round_trip(job, memory, boxes, {Ping::kLastWord, route});
    for (const auto& cache : options.caches) {
        for (const auto& touch : options.touches) {
            for (const long size : options.sizes) {
                const Ping ping = with_signal ? Ping::kPutSignal : Ping::kFenceFlag;
                const TripSpec spec = {ping, route, size, touch == "read", cache == "cold"};
                if (spec.region_bytes(job.threads()) * job.threads() > kMostColdBytes)
                    job.skip(kName, "cache=cold", "a window of twice the last cache would need more than 2 GiB");
                else if (spec.cold && !cold_fits)
                    job.skip(kName, "cache=cold",
                             "no room for a window of twice the last cache, in the symmetric heap or in memory");
                else
                    run_round_trip(job, memory, boxes, spec);
            }
        }
    }
}

void run_barrier(Job& job, bool sync_only) {
    const char* name = sync_only ? "sync_all" : "barrier_all";
    if (!job.options().wants_sync(name))
        return;
    Agreed verdict;
    if (job.options().validate)
        verdict = validate_barrier(job, sync_only);
    Samples samples = measure(job, {barriers(job, sync_only)}, TimeOf::kSlowestPe)[0];
    stamp_operations(job, samples, [&](long count, std::vector<Histogram>& histograms) {
        return time_barriers(job, sync_only, count, &histograms);
    });
    Json params = job.params(name);
    params.integer("size_bytes", 0).text("placement", "heap").text("context", "default").text("sync", name);
    print_point(job, kName, params, "latency", "s", metric_values(job, TransferSpec{}, Metric::kLatency, samples),
                samples, job.options().validate ? &verdict : nullptr);
}

// One sample a program start. Only PE 0 and its partner take part. CPU time of the whole waiting process, so
// progress threads count. The wake-up is stamped on both sides when they share a clock, otherwise it is half
// of the round trip.
void run_wait_burn(Job& job) {
    if (!job.options().wants_sync("wait_until"))
        return;
    Control* control = job.control();
    Samples samples;
    Checker checker(job.options().fault);
    const long token = job.next_token();
    Report cpu, stamp;
    shmem_barrier_all();
    if (job.me() == 0) {
        usleep(static_cast<useconds_t>(1e6 * job.options().sleep_s));
        const double put_at = now_seconds();
        shmem_long_p(&control->flag, token, job.partner());
        shmem_quiet();
        shmem_long_wait_until(&control->ack, SHMEM_CMP_EQ, token);
        stamp.seconds = job.one_host() ? 0 : 0.5 * (now_seconds() - put_at);
        stamp.first_start = stamp.last_start = put_at;
    } else if (job.is_in_first_pair()) {
        const double before = cpu_seconds();
        shmem_long_wait_until(&control->flag, SHMEM_CMP_EQ, token);
        const double seen_at = now_seconds();
        cpu.seconds = cpu_seconds() - before;
        checker.compare_word(__atomic_load_n(&control->flag, __ATOMIC_ACQUIRE), token);
        shmem_long_p(&control->ack, token, 0);
        shmem_quiet();
        stamp.first_start = stamp.last_start = seen_at;
    }
    const double burned = job.agree(cpu).max_seconds;
    const Agreed agreed = job.agree(stamp);
    const double woken = job.one_host() ? agreed.start_spread_s : agreed.max_seconds;
    Agreed verdict;
    if (job.options().validate)
        verdict = agree_verdict(job, checker);
    const Agreed* shown = job.options().validate ? &verdict : nullptr;
    Json params = job.params("wait_burn");
    params.integer("size_bytes", 8).text("placement", "heap").text("context", "default").text("sync", "wait_until");
    params.number("sleep_s", job.options().sleep_s);
    params.text("clock", job.one_host() ? "both sides" : "half round trip");
    print_point(job, kName, params, "cpu_time", "s", {burned}, samples, shown);
    print_point(job, kName, params, "wake_latency", "s", {woken}, samples, shown);
}

void run_all(Job& job) {
    const Options& options = job.options();
    long largest = 4096, largest_cold = 0;
    for (const long size : options.sizes) {
        largest = std::max({largest, (size + 4095) / 4096 * 4096, HandedOver::region_bytes(size)});
        for (const auto& cache : options.caches) {
            const TripSpec spec = {Ping::kFenceFlag, Route::kDefaultContext, size, true, cache == "cold"};
            const long bytes = spec.region_bytes(job.threads());
            long& most = spec.cold ? largest_cold : largest;
            most = bytes * job.threads() <= kMostColdBytes ? std::max(most, bytes) : most;
        }
    }
    const bool cold_fits = largest_cold <= largest || fits_memory(job, largest_cold);
    TransferMemory memory(job, cold_fits ? std::max(largest, largest_cold) : largest);
    auto* boxes = static_cast<RoundTrip::Mailbox*>(
        symmetric_alloc(sizeof(RoundTrip::Mailbox) * static_cast<size_t>(job.threads())));
    const auto routes = wanted_routes(job, kName);
    for (const auto& name : options.ops) {
        if (name == "barrier_all" || name == "sync_all") {
            run_barrier(job, name == "sync_all");
        } else if (name == "wait_burn") {
            run_wait_burn(job);
        } else {
            const auto op = std::find_if(std::begin(kOps), std::end(kOps), [&](auto& o) { return name == o.name; });
            for (const Route route : routes) {
                if (op != std::end(kOps)) {
                    run_one_sided(job, memory, boxes, *op, route);
                } else {
                    run_round_trips(job, memory, boxes, name == "put_signal_round_trip", route, cold_fits);
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
    defaults.sizes = {8, 64, 1024, 16384, 262144};
    defaults.placements = {"heap"};
    defaults.contexts = {"default", "private"};
    defaults.touches = {"read", "write-only"};
    defaults.caches = {"hot"};
    defaults.owners = {"handed-over", "warm", "contended", "false-sharing"};
    std::vector<std::string> known = {"put_round_trip", "put_signal_round_trip"};
    for (const auto& op : kOps) known.push_back(op.name);
    for (const char* name : {"barrier_all", "sync_all", "wait_burn"}) known.push_back(name);
    Job job(kName, parse_options(argc, argv, defaults, known));
    if (threads_available(job, kName))
        run_all(job);
    job.finish();
    return 0;
}

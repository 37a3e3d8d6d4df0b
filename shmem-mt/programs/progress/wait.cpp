// SHMEM-MT wait: the cost of waiting: how late a PE goes on, and the CPU time that it burns meanwhile.
//   wait_until, barrier_all, team_sync, request_wait
//       All PEs but PE 0 block in the operation (request_wait: for a non-blocking sum over all PEs) while PE 0 sleeps,
//       outside of the library, for each of --waits-ms; then PE 0 does its part. Several threads wait for a word each.
//       wake_latency  from the moment when PE 0 begins its part to the return of the last PE that waits
//       cpu_time      of the whole process meanwhile, the library's threads included; the mean of the PEs that wait
//       cpu_share     cpu_time as percent of a core
//   barrier_cost      back-to-back barriers beside the switches between processes that PEs on one core cannot do
//                     without (context_switch.hpp), in turns: the time of each, and the time of a barrier of n PEs over
//                     that of n switches
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "programs/common/barriers.hpp"
#include "programs/common/job.hpp"
#include "programs/common/measure.hpp"
#include "programs/common/progress_policy.hpp"
#include "programs/progress/context_switch.hpp"

namespace shmem_mt {
namespace {

constexpr const char* kName = "wait";

enum class Kind { kWaitUntil, kBarrierAll, kTeamSync, kRequestWait };

struct KindName {
    const char* op;
    Kind kind;
    const char* why_not;  // empty: it is there
};

const KindName kKinds[] = {
    {"wait_until", Kind::kWaitUntil, ""},
    {"barrier_all", Kind::kBarrierAll, ""},
    {"team_sync", Kind::kTeamSync,
     SHMEM_MT_HAVE_TEAM_COLLECTIVES ? "" : "the library has no shmem_team_sync (OpenSHMEM 1.5)"},
    {"request_wait", Kind::kRequestWait, SHMEM_MT_HAVE_PROGRESS ? "" : kNoProgress},
};

constexpr const char* kBarrierCost = "barrier_cost";

void sleep_for(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// Symmetric; a word that threads wait for has a cache line of its own.
struct Words {
    struct alignas(64) Flag {
        long value;
    } flags[kMaxThreads];
    alignas(64) long source;
    alignas(64) long dest;
};

// One kind of wait of one length. All members are collective.
class Wait {
  public:
    Wait(Job& job, Words* words, const KindName& name, double seconds)
        : job_(job), words_(words), name_(name), seconds_(seconds), checker_(job.options().fault) {}

    // The time that samples have taken so far, at least; the same on all PEs.
    double spent_s() const { return seconds_ * static_cast<double>(latencies_.size()); }

    void sample() {
        const long token = job_.next_token();
        words_->source = token + job_.me();
        words_->dest = 0;
        const bool skipped = job_.options().fault == Fault::kSkippedOperation ||
                             (job_.options().fault == Fault::kStaleResult && !latencies_.empty());
        Report acted, returned, burned, share;
        shmem_barrier_all();
        if (job_.me() == 0) {
            sleep_for(seconds_);
            acted.seconds = now_seconds();
            if (!skipped)
                act(token);
        } else {
            const double start = now_seconds(), cpu = cpu_seconds();
            if (!skipped)
                job_.team().run([&](int thread) { block(thread, token); });
            burned.seconds = cpu_seconds() - cpu;
            returned.seconds = now_seconds();
            share.seconds = 100 * burned.seconds / (returned.seconds - start);
        }
        const double acted_at = job_.agree(acted).max_seconds;
        if (job_.me() != 0) {
            check(token, returned.seconds - acted_at);
            returned.seconds = std::max(0.0, returned.seconds - acted_at);
        }
        latencies_.push_back(job_.agree(returned).max_seconds);
        const double all_per_waiting = static_cast<double>(job_.n_pes()) / (job_.n_pes() - 1);
        cpu_times_.push_back(job_.agree(burned).mean_seconds * all_per_waiting);
        shares_.push_back(job_.agree(share).mean_seconds * all_per_waiting);
    }

    void print() {
        const bool checked = job_.options().validate && (job_.one_host() || brings_data());
        Agreed verdict;
        if (checked)
            verdict = agree_verdict(job_, checker_);
        const Agreed* const shown = checked ? &verdict : nullptr;
        Json params = job_.params(name_.op);
        params.integer("size_bytes", 8).text("placement", "heap").text("context", "default").text("sync", name_.op);
        params.number("wait_s", seconds_);
        if (job_.one_host())
            print_point(job_, kName, params, "wake_latency", "s", latencies_, {}, shown);
        else
            job_.skip(kName, std::string("wake_latency of ") + name_.op, "the PEs have no clock in common");
        print_point(job_, kName, params, "cpu_time", "s", cpu_times_, {}, shown);
        print_point(job_, kName, params, "cpu_share", "%", shares_, {}, shown);
    }

  private:
    // PE 0's part.
    void act(long token) {
        if (name_.kind != Kind::kWaitUntil)
            return block(0, token);
        for (int pe = 1; pe < job_.n_pes(); ++pe) {
            for (int thread = 0; thread < job_.threads(); ++thread)
                shmem_long_p(&words_->flags[thread].value, token, pe);
        }
        shmem_quiet();
    }

    void block(int thread, long token) {
        const bool is_barrier = name_.kind == Kind::kBarrierAll || name_.kind == Kind::kTeamSync;
        if (is_barrier && job_.options().fault == Fault::kEarlyBarrier)
            return;
        switch (name_.kind) {
            case Kind::kWaitUntil:
                shmem_long_wait_until(&words_->flags[thread].value, SHMEM_CMP_EQ, token);
                break;
            case Kind::kBarrierAll:
                shmem_barrier_all();
                break;
            case Kind::kTeamSync:
#if SHMEM_MT_HAVE_TEAM_COLLECTIVES
                shmem_team_sync(SHMEM_TEAM_WORLD);
#endif
                break;
            case Kind::kRequestWait:
#if SHMEM_MT_HAVE_PROGRESS
                shmemx_request_t request = SHMEMX_REQUEST_NULL;
                shmemx_long_sum_reduce_nbe(SHMEM_TEAM_WORLD, &words_->dest, &words_->source, 1, &request);
                shmemx_request_wait(&request);
#endif
                break;
        }
    }

    bool brings_data() const { return name_.kind == Kind::kWaitUntil || name_.kind == Kind::kRequestWait; }

    // No PE returns before PE 0 has begun its part, nor without what it brings.
    void check(long token, double late_s) {
        if (job_.one_host())
            checker_.compare_word(late_s >= 0, 1);
        for (int thread = 0; name_.kind == Kind::kWaitUntil && thread < job_.threads(); ++thread)
            checker_.compare_word(__atomic_load_n(&words_->flags[thread].value, __ATOMIC_ACQUIRE), token);
        const long n = job_.n_pes();
        if (name_.kind == Kind::kRequestWait)
            checker_.compare_word(words_->dest, n * token + n * (n - 1) / 2);
    }

    Job& job_;
    Words* const words_;
    const KindName name_;
    const double seconds_;
    Checker checker_;
    std::vector<double> latencies_, cpu_times_, shares_;  // one a sample
};

// A sample of each in turn; those that take long have fewer.
void run_waits(Job& job, Words* words) {
    const Options& options = job.options();
    std::vector<Wait> waits;
    for (const KindName& name : kKinds) {
        if (!options.wants_op(name.op) || !options.wants_sync(name.op))
            continue;
        std::string why_not = name.why_not;
        if (why_not.empty() && job.threads() > 1 && name.kind != Kind::kWaitUntil)
            why_not = "one thread of a PE calls it";
        if (!why_not.empty()) {
            job.skip(kName, name.op, why_not);
            continue;
        }
        for (const long milliseconds : options.waits_ms)
            waits.emplace_back(job, words, name, 1e-3 * static_cast<double>(milliseconds));
    }
    for (int i = 0; i < options.samples; ++i) {
        for (Wait& wait : waits) {
            if (i == 0 || wait.spent_s() < options.point_s)
                wait.sample();
        }
    }
    for (Wait& wait : waits) wait.print();
}

// Seconds of a switch on PE 0's core, while the other PEs sleep. Collective.
double switch_seconds(Job& job, ContextSwitch& context_switch) {
    const double window_s = std::max(0.005, job.options().sample_s);
    Report mine;
    shmem_barrier_all();
    if (job.me() == 0) {
        sleep_for(0.1 * window_s);  // the others are on their way out of the barrier
        mine.seconds = context_switch.measure(window_s);
    } else {
        sleep_for(1.2 * window_s);
    }
    return job.agree(mine).max_seconds;
}

void run_barrier_cost(Job& job, ContextSwitch& context_switch) {
    if (!job.options().wants_sync("barrier_all"))
        return;
    if (switch_seconds(job, context_switch) <= 0)
        return job.skip(kName, kBarrierCost, "PE 0 cannot measure switches between two processes on one core");
    Agreed verdict;
    if (job.options().validate)
        verdict = validate_barrier(job, false);
    const Agreed* const shown = job.options().validate ? &verdict : nullptr;
    const Body body = barriers(job, false);
    Samples samples;
    samples.count = warm_up(job, body, TimeOf::kSlowestPe);
    std::vector<double> barrier_times, switch_times, ratios;
    for (int i = 0; i < job.options().samples; ++i) {
        barrier_times.push_back(take_sample(job, body, TimeOf::kSlowestPe, 0, &samples) /
                                static_cast<double>(samples.count));
        switch_times.push_back(switch_seconds(job, context_switch));
        ratios.push_back(barrier_times.back() / (job.n_pes() * switch_times.back()));
    }
    const auto params = [&](const char* part) {
        Json json = job.params(kBarrierCost);
        json.integer("size_bytes", 0).text("placement", "heap").text("context", "default").text("sync", "barrier_all");
        return json.text("part", part);
    };
    print_point(job, kName, params("barrier"), "time", "s", barrier_times, samples, shown);
    print_point(job, kName, params("switch"), "time", "s", switch_times, samples, shown);
    print_point(job, kName, params("barrier"), "switches", "x", ratios, samples, shown);
}

// HEDDLE_PROGRESS, or nothing. It leaves the environment: a library does not start under a policy that the machine
// cannot do, and here such a policy is skipped by name.
std::string take_policy() {
    const char* const policy = std::getenv("HEDDLE_PROGRESS");
    const std::string taken = policy ? policy : "";
    unsetenv("HEDDLE_PROGRESS");
    return taken;
}

void run_all(Job& job, const std::string& policy, ContextSwitch* context_switch) {
    const std::string why_not = policy.empty() ? "" : why_no_policy(job, policy);
    if (!why_not.empty())
        return job.skip(kName, "HEDDLE_PROGRESS=" + policy, why_not);
    if (job.n_pes() == 1)
        return job.skip(kName, "1 PE", "it has nobody to wait for");
    if (!job.thread_level_ok())
        return job.skip(kName, "threads=" + std::to_string(job.threads()),
                        "the library does not give SHMEM_THREAD_MULTIPLE");
    run_waits(job, static_cast<Words*>(symmetric_alloc(sizeof(Words))));
    if (!job.options().wants_op(kBarrierCost))
        return;
    if (job.threads() > 1)
        job.skip(kName, kBarrierCost, "one thread of a PE calls it");
    else
        run_barrier_cost(job, *context_switch);
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    Options defaults;
    defaults.waits_ms = {1, 10, 100, 1000};
    std::vector<std::string> known;
    for (const KindName& name : kKinds) known.push_back(name.op);
    known.push_back(kBarrierCost);
    const Options options = parse_options(argc, argv, defaults, known);
    std::unique_ptr<ContextSwitch> context_switch;
    if (options.wants_op(kBarrierCost))
        context_switch = std::make_unique<ContextSwitch>();
    const std::string policy = take_policy();
    Job job(kName, options, Pes::kAny);
    run_all(job, policy, context_switch.get());
    job.finish();
    return 0;
}

// SHMEM-MT overlap: how much of the time of a communication disappears behind a computation of about the same length:
// a large non-blocking put or get, while the target PE waits in a barrier (one PE alone puts to itself), or a
// non-blocking collective of all PEs, behind which all compute. What is computed: --computation (overlap_computation.hpp).
//   communication   post, complete (quiet, or wait for the request)
//   compute         the computation alone, under the policy manual, without progress
//   total           post, compute, complete
//   post            how long the posting call took, in total
//   inside          how long the computation took, in total
//   overlap         100 * (1 - (total - compute) / communication) percent: below 0 where both together take longer than
//                   one after the other
//   slowdown        inside over compute
// The first three are measured in turns, by one loop between the same barriers; a PE that gets data looks at the end of
// the data, ahead of the last barrier of a get or a collective, and behind that of a put. A look at the clock in the
// middle takes time, so `post` and `inside` come from samples of their own. Times are those of the PE that took longest.
//
// Each is measured under each of --policies, in turns: what makes progress while the PE computes
// (common/progress_policy.hpp). With "polled" the computation stops for a poll every so often. Of the --polls-us that
// are shorter than the computation, the one with the least `total` is chosen before anything is measured, and named:
// poll_interval.
//
// Points of `total` and of the overlap have the context switches of the thread that computes, a second of their samples,
// of the PE that had most.
#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "programs/common/measure.hpp"
#include "programs/common/progress_policy.hpp"
#include "programs/common/run_together.hpp"
#include "programs/common/transfer.hpp"
#include "programs/progress/communication.hpp"
#include "programs/progress/overlap_computation.hpp"
#include "programs/progress/thread_switches.hpp"

namespace shmem_mt {
namespace {

constexpr const char* kName = "overlap";
constexpr const char* kAlonePolicy = "manual";  // of the computation alone: a thread may cost it time
constexpr int kTries = 5;                       // of what is calibrated; the median counts

constexpr Variant kVariants[] = {
    {"put", "quiet"},
    {"put", "request_each"},
    {"get", "quiet", true},
    {"get", "request_each", true},
    {"broadcast", "request_wait", false, Collective::kBroadcast},
    {"fcollect", "request_wait", false, Collective::kFcollect},
    {"alltoall", "request_wait", false, Collective::kAlltoall},
    {"sum_reduce", "request_wait", false, Collective::kSumReduce},
};

// One variant of a communication under one policy. All members are collective.
class Overlap {
  public:
    Overlap(Job& job, Computation& computation, std::unique_ptr<Communication> communication, const Variant& variant,
            const std::string& policy, long size)
        : job_(job),
          computation_(computation),
          communication_(std::move(communication)),
          variant_(variant),
          policy_(policy),
          size_(size) {}

    const Variant& variant() const { return variant_; }
    const std::string& policy() const { return policy_; }
    const std::string& computation() const { return computation_.kind(); }
    long size() const { return size_; }
    bool polls() const { return polls_; }
    double poll_interval_s() const { return static_cast<double>(units_per_poll_) * unit_s_; }

    // Each round has other bytes, so that of so many communications each one that brings nothing is seen.
    Agreed validate() {
        set_policy(policy_);
        Checker checker(job_.options().fault);
        units_ = 1000;
        units_per_poll_ = 300;
        for (int round = 0; round < (size_ <= kShortBytes ? kShortRounds : kRounds); ++round) {
            const long token = job_.next_token();
            const uint64_t seed = static_cast<uint64_t>(token);
            communication_->fill(token);
            shmem_barrier_all();
            if (communication_->active()) {
                const uint64_t right = computation_.result(seed, units_);
                checker.compare_word(static_cast<long>(checked_round(round, seed)), static_cast<long>(right));
            }
            if (variant_.ends_here())
                communication_->check(checker, token);
            shmem_barrier_all();
            if (!variant_.ends_here())
                communication_->check(checker, token);
        }
        return agree_verdict(job_, checker);
    }

    // Makes the computation `ratio` times as long as the communication, and finds the best interval of polls.
    void calibrate(double ratio) {
        const long count = warm_up(job_, body(kCommunicates), TimeOf::kSlowestPe);
        const double once = timed(job_, body(kCommunicates), count, TimeOf::kSlowestPe) / static_cast<double>(count);
        Report unit;
        unit.seconds = computation_.seconds_per_unit();
        units_ = std::max(1L, static_cast<long>(once / job_.agree(unit).max_seconds));
        const std::vector<double> seconds = medians(count, {body(kCommunicates), body(kComputes)});
        unit_s_ = seconds[1] / static_cast<double>(count * units_);  // here and now, with whatever load the core has
        units_ = std::max(1L, static_cast<long>(ratio * seconds[0] / static_cast<double>(count) / unit_s_));
        if (polls_)
            choose_interval(count);
    }

    // `count` times post, compute and complete, or parts of it (kCommunicates, ...).
    Report sample(unsigned parts, long count) {
        const long token = job_.next_token();
        set_policy(parts & kCommunicates ? policy_ : kAlonePolicy);
        communication_->mark(token);
        double posting = 0, computing = 0;
        ThreadSwitches begin, end;
        Report report = run_together(
            job_,
            [&](int) {
                if (!communication_->active())
                    return;
                begin = thread_switches();
                if (parts & kStamps)
                    stamped_loop(count, &posting, &computing);
                else
                    loop(parts, count);
                end = thread_switches();
            },
            [&] {
                const bool early = variant_.ends_here() && seen(parts, token);
                shmem_barrier_all();
                return early || (!variant_.ends_here() && seen(parts, token));
            });
        if (!communication_->active())
            report.seconds = 0;
        if (parts & kStamps) {
            posts_.push_back(agreed_each(posting, count));
            insides_.push_back(agreed_each(computing, count));
        } else if (parts & kCommunicates && parts & kComputes) {
            voluntary_.push_back(agreed_rate(end.voluntary - begin.voluntary, report.seconds));
            involuntary_.push_back(agreed_rate(end.involuntary - begin.involuntary, report.seconds));
        }
        return report;
    }

    static constexpr unsigned kCommunicates = 1, kComputes = 2, kStamps = 4;

    // Context switches a second of the last `count` samples that communicate and compute without stamps.
    double voluntary_per_s(size_t count) const { return mean_of_last(voluntary_, count); }
    double involuntary_per_s(size_t count) const { return mean_of_last(involuntary_, count); }

    // Seconds of the posting call, and of the computation beside the communication, in the last `count` samples
    // with stamps.
    std::vector<double> last_posts(size_t count) const {
        return {posts_.end() - static_cast<long>(count), posts_.end()};
    }
    std::vector<double> last_insides(size_t count) const {
        return {insides_.end() - static_cast<long>(count), insides_.end()};
    }

  private:
    static constexpr int kRounds = 3, kShortRounds = 8;  // of a validating pass
    static constexpr long kShortBytes = 64L << 10;

    static double mean_of_last(const std::vector<double>& values, size_t count) {
        return std::accumulate(values.end() - static_cast<long>(count), values.end(), 0.0) / static_cast<double>(count);
    }

    bool seen(unsigned parts, long token) const { return !(parts & kCommunicates) || communication_->marked(token); }

    Body body(unsigned parts) {
        return [this, parts](long count) { return sample(parts, count); };
    }

    // Of the seconds of each of `bodies`, tried in turns.
    std::vector<double> medians(long count, const std::vector<Body>& bodies) {
        std::vector<std::vector<double>> seconds(bodies.size());
        for (int i = 0; i < kTries; ++i) {
            for (size_t b = 0; b < bodies.size(); ++b)
                seconds[b].push_back(timed(job_, bodies[b], count, TimeOf::kSlowestPe));
        }
        std::vector<double> result;
        for (auto& tries : seconds) {
            std::sort(tries.begin(), tries.end());
            result.push_back(tries[tries.size() / 2]);
        }
        return result;
    }

    // The one with the shortest total of those that leave room for a poll; where none does, one poll in the middle.
    void choose_interval(long count) {
        std::vector<long> candidates;
        std::vector<Body> bodies;
        for (const long us : job_.options().polls_us) {
            const long units = static_cast<long>(1e-6 * static_cast<double>(us) / unit_s_);
            if (units > 0 && units < units_)
                candidates.push_back(units);
        }
        if (candidates.empty())
            candidates.push_back(units_ / 2 + 1);
        for (const long units : candidates) {
            bodies.push_back([this, units](long n) {
                units_per_poll_ = units;
                return sample(kCommunicates | kComputes, n);
            });
        }
        const std::vector<double> seconds = medians(count, bodies);
        const auto best = std::min_element(seconds.begin(), seconds.end()) - seconds.begin();
        units_per_poll_ = candidates[static_cast<size_t>(best)];
    }

    // The computation as this policy has it, beside a communication.
    uint64_t compute_beside(uint64_t x) const {
        long left = units_;
        for (; polls_ && left > units_per_poll_; left -= units_per_poll_) {
            x = computation_.run(x, units_per_poll_);
            poll_progress();
        }
        return computation_.run(x, left);
    }

    // A planted fault may do something else.
    uint64_t checked_round(int round, uint64_t seed) const {
        const Fault fault = job_.options().fault;
        uint64_t result = seed;
        if (fault != Fault::kSkippedOperation && (fault != Fault::kStaleResult || round == 0))
            communication_->post(fault == Fault::kLastElementMissing ? size_ - 8 : size_);
        if (fault != Fault::kSkippedComputation)
            result = compute_beside(seed);
        communication_->complete();
        return result;
    }

    void loop(unsigned parts, long count) {
        if (!(parts & kCommunicates)) {
            for (long i = 0; i < count; ++i) result_ = computation_.run(result_, units_);
            return;
        }
        for (long i = 0; i < count && job_.options().fault != Fault::kIdleTimedPass; ++i) {
            communication_->post(size_);
            if (parts & kComputes)
                result_ = compute_beside(result_);
            communication_->complete();
        }
    }

    void stamped_loop(long count, double* posting, double* computing) {
        for (long i = 0; i < count; ++i) {
            const double start = now_seconds();
            communication_->post(size_);
            const double posted = now_seconds();
            result_ = compute_beside(result_);
            *computing += now_seconds() - posted;
            communication_->complete();
            *posting += posted - start;
        }
    }

    // Seconds an operation, without the look at the clock, of the PE that took longest.
    double agreed_each(double seconds, long count) {
        Report mine;
        mine.seconds = std::max(0.0, seconds / static_cast<double>(count) - clock_cost_);
        return job_.agree(mine).max_seconds;
    }

    // Of the PE that had most of them.
    double agreed_rate(long events, double seconds) {
        Report mine;
        mine.seconds = seconds > 0 ? static_cast<double>(events) / seconds : 0;
        return job_.agree(mine).max_seconds;
    }

    Job& job_;
    Computation& computation_;
    const std::unique_ptr<Communication> communication_;
    const Variant variant_;
    const std::string policy_;
    const bool polls_ = policy_ == kPolledPolicy;
    const long size_;
    long units_ = 1;
    long units_per_poll_ = 1;
    double unit_s_ = 0;
    uint64_t result_ = 1;
    const double clock_cost_ = clock_cost();
    std::vector<double> posts_, insides_;          // one a sample with stamps
    std::vector<double> voluntary_, involuntary_;  // one a sample that communicates and computes, without stamps
};

std::vector<double> each(const Samples& samples) {
    std::vector<double> values;
    for (const double seconds : samples.seconds) values.push_back(seconds / static_cast<double>(samples.count));
    return values;
}

// Prints what one variant's four samples say.
void print_variant(Job& job, const Overlap& overlap, const Samples* samples, const Agreed& verdict) {
    const std::vector<double> communication = each(samples[0]), alone = each(samples[1]), total = each(samples[2]);
    const std::vector<double> inside = overlap.last_insides(total.size());
    std::vector<double> percent, slowdown;
    for (size_t i = 0; i < total.size(); ++i) {
        percent.push_back(100 * (1 - (total[i] - alone[i]) / communication[i]));
        slowdown.push_back(inside[i] / alone[i]);
    }
    Samples all = samples[2];
    for (const int part : {0, 3}) {
        all.wrong = all.wrong || samples[part].wrong;
        all.too_fast = all.too_fast || samples[part].too_fast;
    }
    Samples together = all;
    together.voluntary_per_s = overlap.voluntary_per_s(total.size());
    together.involuntary_per_s = overlap.involuntary_per_s(total.size());
    const Agreed* const shown = job.options().validate ? &verdict : nullptr;
    const auto params = [&](const char* part) {
        Json json = job.params(overlap.variant().op);
        json.integer("size_bytes", overlap.size()).text("placement", "heap").text("context", "default");
        json.text("sync", overlap.variant().sync).text("policy", overlap.policy());
        json.text("computation", overlap.computation());
        if (SHMEM_MT_HAVE_PROGRESS_NETWORK && overlap.policy() == kMonitorPolicy)
            json.text("network_thread", network_thread(overlap.policy()));
        return json.number("compute_ratio", job.options().compute_ratio).text("part", part);
    };
    print_point(job, kName, params("overlap"), "overlap", "%", percent, together, shown);
    print_point(job, kName, params("compute"), "slowdown", "x", slowdown, all, shown);
    print_point(job, kName, params("communication"), "time", "s", communication, all, shown);
    print_point(job, kName, params("compute"), "time", "s", alone, all, shown);
    print_point(job, kName, params("total"), "time", "s", total, together, shown);
    print_point(job, kName, params("post"), "time", "s", overlap.last_posts(total.size()), all, shown);
    print_point(job, kName, params("inside"), "time", "s", inside, all, shown);
    if (overlap.polls())
        print_point(job, kName, params("inside"), "poll_interval", "s", {overlap.poll_interval_s()}, all, shown);
}

// Memory for all points of a program, allocated once for the largest.
class Buffers {
  public:
    // Collective.
    explicit Buffers(Job& job) : job_(job) {
        for (const Variant& variant : kVariants) {
            for (const long size : job.options().sizes) {
                if (fits(variant, size))
                    (variant.one_sided() ? one_sided_ : collective_) =
                        std::max(variant.one_sided() ? one_sided_ : collective_, bytes(variant, size));
            }
        }
        transfers_ = std::make_unique<TransferMemory>(job, one_sided_);
        source_ = symmetric_alloc(static_cast<size_t>(collective_));
        dest_ = symmetric_alloc(static_cast<size_t>(collective_));
    }

    bool fits(const Variant& variant, long size) const {
        return variant.one_sided() || bytes(variant, size) <= job_.options().buffer_bytes;
    }

    std::unique_ptr<Communication> communication(const Variant& variant, long size) const {
        if (variant.one_sided())
            return std::make_unique<OneSided>(job_, transfers_->window(true), transfers_->local(), variant.reads,
                                              variant.with_request(), size);
#if SHMEM_MT_HAVE_PROGRESS
        const Team world = {"world", job_.n_pes(), job_.me()};
        const Call call = {variant.collective, world, source_, dest_, static_cast<size_t>(size / 8)};
        return std::make_unique<NonBlockingCollective>(call);
#else
        return nullptr;
#endif
    }

  private:
    // With a word behind the end, in pages.
    long bytes(const Variant& variant, long size) const {
        const long data = variant.one_sided() ? size : buffer_bytes(variant.collective, job_.n_pes(), size);
        return (data + 8 + 4095) / 4096 * 4096;
    }

    Job& job_;
    long one_sided_ = 4096;
    long collective_ = 4096;
    std::unique_ptr<TransferMemory> transfers_;
    void* source_ = nullptr;
    void* dest_ = nullptr;
};

// All variants of one operation and size under all policies, interleaved.
void run_group(Job& job, const Buffers& buffers, Computation& computation, const std::vector<Variant>& variants,
               const std::vector<std::string>& policies, long size) {
    constexpr unsigned kBoth = Overlap::kCommunicates | Overlap::kComputes;
    constexpr unsigned kParts[] = {Overlap::kCommunicates, Overlap::kComputes, kBoth, kBoth | Overlap::kStamps};
    std::vector<std::unique_ptr<Overlap>> overlaps;
    std::vector<Agreed> verdicts;
    std::vector<Body> bodies;
    for (const Variant& variant : variants) {
        for (const std::string& policy : policies) {
            overlaps.push_back(std::make_unique<Overlap>(job, computation, buffers.communication(variant, size),
                                                         variant, policy, size));
            Overlap* const overlap = overlaps.back().get();
            verdicts.push_back(job.options().validate ? overlap->validate() : Agreed{});
            overlap->calibrate(job.options().compute_ratio);
            for (const unsigned parts : kParts)
                bodies.push_back([overlap, parts](long count) { return overlap->sample(parts, count); });
        }
    }
    const std::vector<Samples> samples = measure(job, bodies);
    for (size_t i = 0; i < overlaps.size(); ++i)
        print_variant(job, *overlaps[i], &samples[std::size(kParts) * i], verdicts[i]);
}

// The variants of `op` that are asked for and that the library has; says by name what is skipped.
std::vector<Variant> wanted_variants(Job& job, const std::string& op) {
    std::vector<Variant> variants;
    for (const Variant& variant : kVariants) {
        if (op != variant.op || !job.options().wants_sync(variant.sync))
            continue;
        std::string why_not = variant.why_not();
        if (why_not.empty() && !variant.one_sided() && job.n_pes() == 1)
            why_not = "1 PE has nobody to wait for";
        if (why_not.empty())
            variants.push_back(variant);
        else
            job.skip(kName, variant.one_sided() ? op + " with " + variant.sync : op, why_not);
    }
    return variants;
}

std::vector<std::string> wanted_policies(Job& job) {
    std::vector<std::string> policies;
    for (const std::string& policy : job.options().policies) {
        const std::string why_not = why_no_policy(job, policy);
        if (why_not.empty())
            policies.push_back(policy);
        else
            job.skip(kName, "policy " + policy, why_not);
    }
    return policies;
}

// Whether the machine has memory for what its PEs compute with, in half of what is available. Collective.
bool fits_computation(Job& job, const std::string& kind) {
    const long bytes = Computation::bytes_of(kind);
    Report mine;
    mine.ok = bytes * (job.one_host() ? job.n_pes() : 1) <= available_bytes() / 2;
    return job.agree(mine).ok;
}

// All that is asked for, behind that computation.
void run_behind(Job& job, const std::string& kind, const Buffers& buffers, const std::vector<std::string>& policies) {
    Computation computation(kind);
    for (const auto& op : job.options().ops) {
        const std::vector<Variant> variants = wanted_variants(job, op);
        if (variants.empty() || policies.empty())
            continue;
        for (const long size : job.options().sizes) {
            if (size % 8 != 0)
                job.skip(kName, std::to_string(size) + " bytes", "overlap is measured with multiples of 8 bytes");
            else if (!buffers.fits(variants[0], size))
                job.skip(kName, op + " of " + std::to_string(size) + " bytes",
                         "it would need buffers larger than --buffer-bytes");
            else
                run_group(job, buffers, computation, variants, policies, size);
        }
    }
}

void run_all(Job& job) {
    const Buffers buffers(job);
    const std::vector<std::string> policies = wanted_policies(job);
    for (const auto& kind : job.options().computations) {
        if (fits_computation(job, kind))
            run_behind(job, kind, buffers, policies);
        else
            job.skip(kName, "computation " + kind,
                     "twice the last cache for each PE is more than half of the memory that is available");
    }
    set_policy(kAutoPolicy);
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    Options defaults;
    defaults.sizes = {8, 4096, 65536, 262144, 1048576, 4194304};
    defaults.policies = {"manual", kPolledPolicy, kAutoPolicy, "thread:spin", "thread:monitor", "thread:block"};
    defaults.polls_us = {2, 10, 50, 200, 1000};
    std::vector<std::string> known;
    for (const Variant& variant : kVariants) {
        if (known.empty() || known.back() != variant.op)
            known.push_back(variant.op);
    }
    Job job(kName, parse_options(argc, argv, defaults, known), Pes::kPairsOrOne);
    if (job.threads() > 1)
        job.skip(kName, "threads=" + std::to_string(job.threads()), "one thread of each PE communicates");
    else
        run_all(job);
    job.finish();
    return 0;
}

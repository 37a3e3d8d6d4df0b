// Turns a way to run `count` operations into samples: calibrates the count, warms up until the time is steady, then
// repeats. Several bodies are interleaved (A B A B ...), so that drift hits all of them. Collective: every PE calls it
// with bodies of its own.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "programs/common/histogram.hpp"
#include "programs/common/session.hpp"
#include "programs/common/validation.hpp"

namespace shmem_mt {

// Runs `count` operations and reports this PE's time (seconds; 0 where this PE does not time) and thread
// starts.
using Body = std::function<Report(long count)>;

// No sample has more operations: the pattern of validation.hpp has 28 bits for the number of a message.
constexpr long kMostOperations = 1L << 27;
// A sample whose threads started farther apart than this share of it is staggered: some ran alone.
constexpr double kMostSpread = 0.05;
// Single operations are stamped where they last longer: two looks at the clock, 25 ns each, are a small part of that.
constexpr double kLeastStamped = 200e-9;

struct Samples {
    long count = 1;               // operations a sample (each thread of each sender)
    std::vector<double> seconds;  // one a sample
    std::vector<double> spreads;  // start spread of each sample, seconds
    long preempted = -1;          // how often the kernel has taken a core from a thread of the PEs; -1: not counted
    double origin_cores = 0, target_cores = 0;  // busy for a PE of each half, added up over the samples
    bool wrong = false;                         // the timed pass itself has seen wrong values
    bool too_fast = false;                      // a sample was faster than the machine's limit
    double clock_error_s = 0;    // several hosts: how far their clocks may be apart in a sample, at the worst
    Histogram durations;         // at PE 0: of single operations; empty where none were stamped
    long windows = 0, late = 0;  // at PE 0, of the window scheme: those that count, and those that a PE reached late

    double voluntary_per_s = -1,
           involuntary_per_s = -1;  // context switches of the thread that computes; -1: not counted

    bool ok() const { return !wrong && !too_fast; }
};

// kCommonWindow: from the first start to the last end, for rates of several senders.
enum class TimeOf { kSlowestPe, kCommonWindow };

inline double agreed_seconds(const Agreed& agreed, TimeOf time_of) {
    return time_of == TimeOf::kSlowestPe ? agreed.max_seconds : agreed.window_seconds;
}

// `count` times `growth`, at most 16 times and at most kMostOperations.
inline long grown(long count, double growth) {
    const double wanted = static_cast<double>(count) * std::min(16.0, growth);
    return static_cast<long>(std::min(wanted, static_cast<double>(kMostOperations)));
}

// How often the kernel has taken a core from a thread of this process that could have gone on.
inline long preempted() {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

// One sample, its stamps on the clock of all PEs. Collective.
inline Agreed agree_sample(Session& session, const Body& body, long count) {
    session.synchronize();
    const long before = preempted();
    const double began = now_seconds(), ran = cpu_seconds();
    Report mine = body(count);
    mine.cores = (cpu_seconds() - ran) / std::max(now_seconds() - began, 1e-9);
    mine.preempted = preempted() - before;
    mine.clock_error_s = session.clock_error_s();
    return session.agree(mine);
}

inline double timed(Session& session, const Body& body, long count, TimeOf time_of) {
    return agreed_seconds(agree_sample(session, body, count), time_of);
}

// A count whose run lasts about half of the goal (seconds) or more because of the operations, not because of
// what a run costs once: four times the count must take more than twice the time. Otherwise a thread that
// waits for its turn on a core would pass for a slow operation.
inline long calibrate(Session& session, const Body& body, TimeOf time_of, double* seconds) {
    const double goal = session.options().sample_s;
    long count = 1;
    *seconds = timed(session, body, count, time_of);
    for (;;) {
        while (*seconds < 0.5 * goal && count < kMostOperations) {
            const double growth = *seconds > 0 ? 0.9 * goal / *seconds : 16;
            count = grown(count, std::max(2.0, growth));
            *seconds = timed(session, body, count, time_of);
        }
        if (4 * count > kMostOperations || *seconds > 10 * goal || *seconds > session.options().point_s / 8)
            return count;
        const double longer = timed(session, body, 4 * count, time_of);
        if (longer > 2 * *seconds)
            return count;
        count *= 4;
        *seconds = longer;
    }
}

// What a run costs once, whatever its count, in seconds: the start, the acknowledgement, the last barrier. From the
// least times of one operation and of two.
inline double cost_once(Session& session, const Body& body, TimeOf time_of) {
    constexpr int kTries = 3;
    double least[] = {0, 0};
    for (int attempt = 0; attempt < kTries; ++attempt) {
        for (long count = 1; count <= 2; ++count) {
            const double seconds = timed(session, body, count, time_of);
            least[count - 1] = attempt == 0 ? seconds : std::min(least[count - 1], seconds);
        }
    }
    return std::max(0.0, 2 * least[0] - least[1]);
}

// How long a sample is to be, in seconds: options.sample_s, or a hundred times what it costs once, within bounds. Where
// cores are too few that is the scheduler's time, for which no sample is longer. `each`: an operation's time.
inline double sample_goal(Session& session, const Body& body, TimeOf time_of, double each) {
    constexpr double kLeastShare = 100, kMostGrowth = 8;
    const Options& options = session.options();
    const double most = std::min(kMostGrowth * options.sample_s, options.point_s / 8);
    if (session.oversubscribed() || each > most / 8)
        return options.sample_s;
    return std::max(options.sample_s, std::min(most, kLeastShare * cost_once(session, body, time_of)));
}

// The count that makes a sample last about sample_goal, after as many runs as it takes for two neighbours to differ by
// less than 3 % (at most 8: a noisy machine never gets steady; none where one operation lasts ten samples).
inline long warm_up(Session& session, const Body& body, TimeOf time_of) {
    double seconds = 0;
    long count = calibrate(session, body, time_of, &seconds);
    const double goal = sample_goal(session, body, time_of, seconds / static_cast<double>(count));
    if (count == 1 && seconds > 10 * goal)
        return count;
    for (int i = 0; i < 8 && seconds < session.options().point_s / 4; ++i) {
        const long next = grown(count, std::max(1.0, 1.1 * goal / seconds));
        const double before = seconds * static_cast<double>(next) / static_cast<double>(count);
        count = next;
        seconds = timed(session, body, count, time_of);
        if (std::abs(seconds - before) < 0.03 * before)
            break;
    }
    return count;
}

// Adds a sample of samples->count operations, of which each moves so many bytes of a thread. Returns its seconds.
// Collective.
inline double take_sample(Session& session, const Body& body, TimeOf time_of, double bytes, Samples* samples) {
    const Agreed agreed = agree_sample(session, body, samples->count);
    const double seconds = agreed_seconds(agreed, time_of);
    const double least_s = static_cast<double>(samples->count) * session.limit().least_s(bytes);
    samples->seconds.push_back(seconds);
    samples->spreads.push_back(agreed.start_spread_s);
    samples->clock_error_s = std::max(samples->clock_error_s, agreed.clock_error_s);
    samples->preempted = std::max(0L, samples->preempted) + agreed.preempted;
    samples->origin_cores += agreed.origin_cores;
    samples->target_cores += agreed.target_cores;
    samples->wrong = samples->wrong || !agreed.ok;
    samples->too_fast = samples->too_fast || seconds < least_s;
    return seconds;
}

// `bytes`: what a thread moves in one operation of each body, for the machine's limit; empty: nothing.
inline std::vector<Samples> measure(Session& session, const std::vector<Body>& bodies,
                                    TimeOf time_of = TimeOf::kSlowestPe, const std::vector<double>& bytes = {}) {
    std::vector<Samples> all(bodies.size());
    for (size_t b = 0; b < bodies.size(); ++b) all[b].count = warm_up(session, bodies[b], time_of);
    double spent = 0;
    for (int sample = 0; sample < session.options().samples; ++sample) {
        if (sample >= 3 && spent > session.options().point_s * static_cast<double>(bodies.size()))
            break;
        for (size_t b = 0; b < bodies.size(); ++b)
            spent += take_sample(session, bodies[b], time_of, bytes.empty() ? 0 : bytes[b], &all[b]);
    }
    return all;
}

// The verdict of a validating pass, agreed by all PEs. Collective.
inline Agreed agree_verdict(Session& session, const Checker& checker) {
    Report mine;
    mine.ok = checker.ok();
    mine.checked_bytes = checker.checked_bytes();
    mine.expected_bytes = checker.expected_bytes();
    Agreed verdict = session.agree(mine);
    verdict.ok = verdict.ok && session.arithmetic_ok() && verdict.checked_bytes > 0 &&
                 verdict.checked_bytes == verdict.expected_bytes;
    return verdict;
}

// The verdict of run(checkers), a validating pass whose threads have a checker each. Collective.
template <class Run>
Agreed validate_threads(Session& session, Run&& run) {
    Checker checker(session.options().fault);
    std::vector<Checker> checkers(static_cast<size_t>(session.threads()), checker);
    const Report report = run(checkers);
    for (const Checker& one : checkers) checker.add(one);
    if (!report.ok)
        checker.compare_word(0, 1);
    return agree_verdict(session, checker);
}

// What makes a point invalid, as words.
inline std::string why_invalid(const Session& session, const Agreed& verdict, const Samples& samples) {
    std::string why;
    const auto add = [&why](bool holds, const std::string& words) {
        why += holds ? (why.empty() ? "" : ", ") + words : "";
    };
    const bool compared = verdict.checked_bytes > 0 && verdict.checked_bytes == verdict.expected_bytes;
    add(!session.arithmetic_ok(), "a mean over the PEs was wrong");
    add(!compared, "the check compared " + std::to_string(verdict.checked_bytes) + " of " +
                       std::to_string(verdict.expected_bytes) + " bytes");
    add(!verdict.ok && compared && session.arithmetic_ok(), "the validating pass found wrong values");
    add(samples.wrong, "the timed pass moved wrong values");
    add(samples.too_fast, "a sample was faster than the machine's limit");
    return why;
}

inline double median_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

// At PE 0 the sum of all PEs' histograms. Collective.
inline Histogram gathered(Session& session, const Histogram& mine) {
    static_assert(sizeof mine <= Session::kMostGathered);
    std::vector<Histogram> all(session.me() == 0 ? static_cast<size_t>(session.n_pes()) : 0);
    session.gather(&mine, sizeof mine, all.data());
    Histogram sum;
    for (const Histogram& one : all) sum.add(one);
    return sum;
}

// A further pass behind the samples, in which each thread that times stamps every operation into its histogram:
// body(count, histograms). Where operations are shorter than kLeastStamped there is none. Collective.
template <class StampedBody>
void stamp_operations(Session& session, Samples& samples, StampedBody&& body) {
    constexpr double kSamples = 2, kFewest = 8, kMost = 20000;
    const double each_s = median_of(samples.seconds) / static_cast<double>(samples.count);
    if (each_s < kLeastStamped)
        return;
    const double wanted = kSamples * session.options().sample_s / each_s;
    std::vector<Histogram> by_thread(static_cast<size_t>(session.threads()));
    const Report report = body(static_cast<long>(std::clamp(wanted, kFewest, kMost)), by_thread);
    Histogram mine;
    for (const Histogram& one : by_thread) mine.add(one);
    samples.wrong = !session.agree(report).ok || samples.wrong;
    samples.durations = gathered(session, mine);
}

// Prints one measured point. `values` are the samples in `unit`; `verdict` is null when validation was
// switched off.
inline void print_point(Session& session, const char* benchmark, const Json& params, const char* metric,
                        const char* unit, const std::vector<double>& values, const Samples& samples,
                        const Agreed* verdict) {
    Json point;
    point.text("event", "point").text("benchmark", benchmark).object("params", params).text("metric", metric);
    point.text("unit", unit).numbers("samples", values);
    if (verdict) {
        const bool valid = verdict->ok && samples.ok();
        point.boolean("valid", valid).integer("checked_bytes", verdict->checked_bytes);
        if (!valid)
            point.text("why", why_invalid(session, *verdict, samples));
    } else {
        point.raw("valid", "null");
    }
    point.integer("operations_per_sample", samples.count).text("binding", session.binding());
    if (samples.preempted >= 0) {
        const double taken = static_cast<double>(samples.seconds.size());
        point.integer("preempted", samples.preempted).number("origin_cores", samples.origin_cores / taken);
        if (session.n_pes() > 1)
            point.number("target_cores", samples.target_cores / taken);
    }
    if (samples.clock_error_s > 0)
        point.number("clock_error_s", samples.clock_error_s);
    if (samples.windows > 0)
        point.integer("windows", samples.windows).integer("late_windows", samples.late);
    if (samples.voluntary_per_s >= 0) {
        point.number("voluntary_switches_per_s", samples.voluntary_per_s);
        point.number("involuntary_switches_per_s", samples.involuntary_per_s);
    }
    if (samples.durations.total > 0)
        point.raw("durations_ns", samples.durations.pairs()).number("longest_s", samples.durations.longest_s);
    if (!samples.spreads.empty()) {
        const double spread = median_of(samples.spreads);
        point.number("start_spread_s", spread);
        point.boolean("staggered", spread > kMostSpread * median_of(samples.seconds));
    }
    session.print_point(point);
}

}  // namespace shmem_mt

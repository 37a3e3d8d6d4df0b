// Turns a way to run `count` operations into samples: calibrates the count, warms up until the time is steady, then
// repeats. Several bodies are interleaved (A B A B ...), so that drift hits all of them. Collective: every PE calls it
// with bodies of its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

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

struct Samples {
    long count = 1;               // operations a sample (each thread of each sender)
    std::vector<double> seconds;  // one a sample
    std::vector<double> spreads;  // start spread of each sample, seconds
    bool ok = true;               // what the timed pass itself saw, and no sample was faster than the machine's limit
};

// kCommonWindow: from the first start to the last end, for rates of several senders (Session::end_together).
enum class TimeOf { kSlowestPe, kMeanOfPes, kCommonWindow };

inline double agreed_seconds(const Agreed& agreed, TimeOf time_of) {
    if (time_of == TimeOf::kCommonWindow)
        return agreed.window_seconds;
    return time_of == TimeOf::kSlowestPe ? agreed.max_seconds : agreed.mean_seconds;
}

// `count` times `growth`, at most 16 times and at most kMostOperations.
inline long grown(long count, double growth) {
    const double wanted = static_cast<double>(count) * std::min(16.0, growth);
    return static_cast<long>(std::min(wanted, static_cast<double>(kMostOperations)));
}

inline double timed(Session& session, const Body& body, long count, TimeOf time_of) {
    return agreed_seconds(session.agree(body(count)), time_of);
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
// less than 3 % (at most 8: a noisy machine never gets steady).
inline long warm_up(Session& session, const Body& body, TimeOf time_of) {
    double seconds = 0;
    long count = calibrate(session, body, time_of, &seconds);
    const double goal = sample_goal(session, body, time_of, seconds / static_cast<double>(count));
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

// `bytes`: what a thread moves in one operation of each body, for the machine's limit; empty: nothing.
inline std::vector<Samples> measure(Session& session, const std::vector<Body>& bodies,
                                    TimeOf time_of = TimeOf::kSlowestPe, const std::vector<double>& bytes = {}) {
    std::vector<Samples> all(bodies.size());
    for (size_t b = 0; b < bodies.size(); ++b) all[b].count = warm_up(session, bodies[b], time_of);
    double spent = 0;
    for (int sample = 0; sample < session.options().samples; ++sample) {
        if (sample >= 3 && spent > session.options().point_s * static_cast<double>(bodies.size()))
            break;
        for (size_t b = 0; b < bodies.size(); ++b) {
            const Agreed agreed = session.agree(bodies[b](all[b].count));
            const double seconds = agreed_seconds(agreed, time_of);
            all[b].seconds.push_back(seconds);
            all[b].spreads.push_back(agreed.start_spread_s);
            all[b].ok =
                all[b].ok && agreed.ok &&
                seconds >= static_cast<double>(all[b].count) * session.limit().least_s(bytes.empty() ? 0 : bytes[b]);
            spent += seconds;
        }
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

inline double median_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
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
        point.boolean("valid", verdict->ok && samples.ok).integer("checked_bytes", verdict->checked_bytes);
    } else {
        point.raw("valid", "null");
    }
    point.integer("operations_per_sample", samples.count).text("binding", session.binding());
    if (!samples.spreads.empty()) {
        const double spread = median_of(samples.spreads);
        point.number("start_spread_s", spread);
        point.boolean("staggered", spread > kMostSpread * median_of(samples.seconds));
    }
    session.print_point(point);
}

}  // namespace shmem_mt

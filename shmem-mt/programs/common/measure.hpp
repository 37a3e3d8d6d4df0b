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

struct Samples {
    long count = 1;               // operations a sample (each thread of each sender)
    std::vector<double> seconds;  // one a sample
    std::vector<double> spreads;  // start spread of each sample, seconds
    bool ok = true;
};

enum class TimeOf { kSlowestPe, kMeanOfPes };

inline double agreed_seconds(const Agreed& agreed, TimeOf time_of) {
    return time_of == TimeOf::kSlowestPe ? agreed.max_seconds : agreed.mean_seconds;
}

inline double timed(Session& session, const Body& body, long count, TimeOf time_of) {
    return agreed_seconds(session.agree(body(count)), time_of);
}

// A count whose run lasts about half of the goal (seconds) or more because of the operations, not because of
// what a run costs once: four times the count must take more than twice the time. Otherwise a thread that
// waits for its turn on a core would pass for a slow operation.
inline long calibrate(Session& session, const Body& body, TimeOf time_of, double* seconds) {
    const double goal = session.options().sample_s;
    constexpr long kLargest = 1L << 27;
    long count = 1;
    *seconds = timed(session, body, count, time_of);
    for (;;) {
        while (*seconds < 0.5 * goal && count < kLargest) {
            const double growth = *seconds > 0 ? 0.9 * goal / *seconds : 16;
            count = static_cast<long>(static_cast<double>(count) * std::min(16.0, std::max(2.0, growth)));
            *seconds = timed(session, body, count, time_of);
        }
        if (count >= kLargest || *seconds > 10 * goal || *seconds > session.options().point_s / 8)
            return count;
        const double longer = timed(session, body, 4 * count, time_of);
        if (longer > 2 * *seconds)
            return count;
        count *= 4;
        *seconds = longer;
    }
}

// The count that makes a sample last about options.sample_s, after as many runs as it takes for two
// neighbours to differ by less than 3 % (at most 8: a noisy machine never gets steady).
inline long warm_up(Session& session, const Body& body, TimeOf time_of) {
    double seconds = 0;
    long count = calibrate(session, body, time_of, &seconds);
    for (int i = 0; i < 8 && seconds < session.options().point_s / 4; ++i) {
        const double growth = std::max(1.0, std::min(16.0, 1.1 * session.options().sample_s / seconds));
        const double before = seconds * growth;
        count = static_cast<long>(static_cast<double>(count) * growth);
        seconds = timed(session, body, count, time_of);
        if (std::abs(seconds - before) < 0.03 * before)
            break;
    }
    return count;
}

inline std::vector<Samples> measure(Session& session, const std::vector<Body>& bodies,
                                    TimeOf time_of = TimeOf::kSlowestPe) {
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
            all[b].ok = all[b].ok && agreed.ok;
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
    std::vector<double> spreads = samples.spreads;
    std::sort(spreads.begin(), spreads.end());
    point.integer("operations_per_sample", samples.count);
    if (!spreads.empty())
        point.number("start_spread_s", spreads[spreads.size() / 2]);
    session.print_point(point);
}

}  // namespace shmem_mt

// The frame of every mini-app. A MiniApp is one form of one app: all threads of all PEs run it as a whole, again and
// again, in turns with the other forms (run_forms). Behind each run, outside of the timed region, the form checks its
// own answer. Each form prints a verdict and these points:
//   rate            units of work a second
//   time            seconds a run: `total`, of the slowest PE; and by phase, of thread 0, the mean of the PEs. Time
//                   that is booked on no phase is `compute`
//   communication   percent of the total that phases of communication take
//   imbalance       how uneven the computing is: of the seconds that thread 0 spends outside of phases of communication,
//                   those of the PE that spends most over the mean of the PEs. None where nearly all is communication
//   memory          bytes, of the first form: `job`, what all PEs have in memory when the forms have run; `working set`,
//                   what an iteration touches of the PEs of one host, params.last_caches_bytes beside it
//   figure_of_merit what the original program prints of itself, in its unit; params.timed says what its time has
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/job_memory.hpp"
#include "apps/common/problem_size.hpp"
#include "programs/common/job.hpp"
#include "programs/common/measure.hpp"
#include "programs/common/run_together.hpp"

namespace shmem_mt {

struct Phase {
    const char* name;
    bool communicates;
    bool is_span = false;  // of several phases: it is for figures alone
};

// A figure of merit, as the original program prints it.
struct Figure {
    const char* name;
    const char* unit;
    const char* timed;           // what its time has, in words
    double work;                 // of a run, in units times seconds
    std::vector<size_t> phases;  // whose time it is; none: the total's
    bool left_out = false;       // the phases' time is left out of the total instead
};

class MiniApp {
  public:
    // `op` names the form. Phases are numbered in this order.
    MiniApp(Job& job, std::string op, std::vector<Phase> phases)
        : job_(job), op_(std::move(op)), phases_(std::move(phases)), booked_(phases_.size()), means_(phases_.size()) {}

    virtual ~MiniApp() = default;
    MiniApp(const MiniApp&) = delete;
    MiniApp& operator=(const MiniApp&) = delete;

    const std::string& op() const { return op_; }
    const std::vector<Phase>& phases() const { return phases_; }
    const std::vector<double>& means(size_t phase) const { return means_[phase]; }  // seconds a run, one a sample

    // Seconds a run that thread 0 computes, one a sample: of the PE that takes longest, and the mean of the PEs.
    struct Computing {
        double longest, mean;
    };
    const std::vector<Computing>& computing() const { return computing_; }

    // What tells the problem from others: fields of params and of the verdict.
    virtual void describe(Json& params) const = 0;

    // What the verdict rests on: fields of it.
    virtual void explain(Json& verdict) const = 0;

    // Of a run, and what is counted.
    virtual double work() const = 0;
    virtual const char* unit() const = 0;

    // Of the last run.
    virtual std::vector<Figure> figures() const { return {}; }

    // Bytes that an iteration touches on this PE, about; 0: so few that no cache matters.
    virtual double working_set() const { return 0; }

    // Makes everything as it is to be before a run. Thread 0 of all PEs, not timed.
    virtual void prepare() {}

    // All threads of all PEs. Needs no barrier at its end.
    virtual void run(int thread) = 0;

    // Compares the answer of the last run with the right one. Thread 0 of all PEs, not timed.
    virtual void check(Checker& checker) = 0;

    // `count` runs. Collective.
    Report sample(long count) {
        std::fill(booked_.begin(), booked_.end(), 0.0);
        ran_ = 0;
        Report all;
        double seconds = 0;
        for (long i = 0; i < count; ++i) {
            prepare();
            Report one = run_together(
                job_, [&](int thread) { clocked(thread == 0 ? &ran_ : nullptr, [&] { run(thread); }); },
                [&] {
                    job_.barrier();
                    return true;
                });
            Checker checker(job_.options().fault);
            if (job_.options().validate)
                check(checker);
            seconds += one.seconds;
            one.ok = all.ok && (checker.ok() || !job_.options().validate);
            one.checked_bytes = checker.checked_bytes();
            one.expected_bytes = checker.expected_bytes();
            all = one;
        }
        all.seconds = seconds;
        for (size_t phase = 0; phase < phases_.size(); ++phase) {
            Report mine;
            mine.seconds = booked_[phase] / static_cast<double>(count);
            means_[phase].push_back(job_.agree(mine).mean_seconds);
        }
        Report mine;
        mine.seconds = computed_seconds() / static_cast<double>(count);
        const Agreed computed = job_.agree(mine);
        computing_.push_back({computed.max_seconds, computed.mean_seconds});
        return all;
    }

  protected:
    // Calls f() and books the time that thread 0 spends there.
    template <class F>
    decltype(auto) spend(int thread, size_t phase, F&& f) {
        return clocked(thread == 0 ? &booked_[phase] : nullptr, f);
    }

    void book(size_t phase, double seconds) { booked_[phase] += seconds; }

    Job& job_;

  private:
    double computed_seconds() const {
        double seconds = ran_;
        for (size_t phase = 0; phase < phases_.size(); ++phase)
            seconds -= phases_[phase].communicates && !phases_[phase].is_span ? booked_[phase] : 0;
        return seconds;
    }

    const std::string op_;
    const std::vector<Phase> phases_;
    std::vector<double> booked_;  // thread 0, of the current sample
    double ran_ = 0;              // likewise, without the barrier of the PEs behind it
    std::vector<std::vector<double>> means_;
    std::vector<Computing> computing_;
};

// One run and its verdict. Collective.
inline Agreed verify(Job& job, MiniApp& app) {
    Agreed verdict = job.agree(app.sample(1));
    verdict.ok = verdict.ok && job.arithmetic_ok() && verdict.checked_bytes > 0 &&
                 verdict.checked_bytes == verdict.expected_bytes;
    return verdict;
}

// A run that computes for a smaller share of its time is said to compute nothing: what is left are looks at the clock.
constexpr double kLeastComputing = 0.01;

// What a form has shown, by sample; seconds a run. Samples that compute nothing have no imbalance.
struct Measured {
    std::vector<double> totals, rates, compute, shares, imbalances;
    std::vector<std::vector<double>> phases, figures;
};

// 0 where its phases took no time.
inline double value_of(const Figure& figure, double total, const std::vector<double>& phases) {
    double seconds = 0;
    for (const size_t phase : figure.phases) seconds += phases[phase];
    if (figure.left_out || figure.phases.empty())
        seconds = total - seconds;
    return seconds > 0 ? figure.work / seconds : 0;
}

inline Measured measured(const MiniApp& app, const std::vector<Figure>& figures, const Samples& samples) {
    Measured found;
    found.phases.resize(app.phases().size());
    found.figures.resize(figures.size());
    const size_t count = samples.seconds.size();
    for (size_t i = 0; i < count; ++i) {
        const double total = samples.seconds[i] / static_cast<double>(samples.count);
        double rest = total, communication = 0;
        std::vector<double> spent;
        for (size_t phase = 0; phase < app.phases().size(); ++phase) {
            const std::vector<double>& all = app.means(phase);
            const double seconds = all[all.size() - count + i];
            spent.push_back(seconds);
            found.phases[phase].push_back(seconds);
            rest -= app.phases()[phase].is_span ? 0 : seconds;
            communication += app.phases()[phase].communicates ? seconds : 0;
        }
        for (size_t k = 0; k < figures.size(); ++k) found.figures[k].push_back(value_of(figures[k], total, spent));
        found.totals.push_back(total);
        found.rates.push_back(app.work() / total);
        found.compute.push_back(rest);
        found.shares.push_back(100 * communication / total);
        const MiniApp::Computing& computing = app.computing()[app.computing().size() - count + i];
        if (computing.mean >= kLeastComputing * total)
            found.imbalances.push_back(computing.longest / computing.mean);
    }
    return found;
}

inline double middle_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

// The problem, and how it was chosen where it grows with the PEs and threads.
inline void describe_run(const Job& job, const MiniApp& app, Json& params) {
    app.describe(params);
    if (is_weak(job.options()))
        params.text("scale", job.options().scale).text("size", job.options().size);
}

// What the job takes, and what its iterations touch on the host where that is most.
struct Memory {
    double job = 0, working_set = 0, caches = 0;
};

// Collective.
inline Memory memory_of(Job& job, const MiniApp& app) {
    return {job_bytes(job), job.most_of_a_host(app.working_set()), last_caches_bytes()};
}

inline void print_form(Job& job, const char* benchmark, const MiniApp& app, const Samples& samples,
                       const Agreed& verdict, const Memory* memory) {
    const std::vector<Figure> figures = app.figures();
    const Measured found = measured(app, figures, samples);
    const bool known = job.options().validate;
    Json line;
    line.text("event", "verdict").text("benchmark", benchmark).text("form", app.op());
    describe_run(job, app, line);
    line.text("verdict", !known ? "not checked" : verdict.ok && samples.ok() ? "pass" : "fail");
    app.explain(line);
    Json seconds;
    seconds.number("total", middle_of(found.totals)).number("compute", middle_of(found.compute));
    for (size_t phase = 0; phase < found.phases.size(); ++phase) {
        if (!app.phases()[phase].is_span)
            seconds.number(app.phases()[phase].name, middle_of(found.phases[phase]));
    }
    line.object("seconds", seconds).number("communication_percent", middle_of(found.shares));
    if (!found.imbalances.empty())
        line.number("imbalance", middle_of(found.imbalances));
    Json merits;
    for (size_t k = 0; k < figures.size(); ++k) merits.number(figures[k].name, middle_of(found.figures[k]));
    line.object("figures_of_merit", merits);
    if (memory != nullptr) {
        line.number("job_bytes", memory->job).number("working_set_bytes", memory->working_set);
        line.number("last_caches_bytes", memory->caches);
        if (memory->working_set > 0)
            line.boolean("in_caches", memory->working_set <= memory->caches);
    }
    if (job.me() == 0)
        line.print();

    const Agreed* const shown = known ? &verdict : nullptr;
    const auto point = [&](const char* part, const char* metric, const char* unit, const std::vector<double>& values,
                           const char* timed = nullptr) {
        Json params = job.params(app.op());
        describe_run(job, app, params);
        params.text("part", part);
        if (timed != nullptr)
            params.text("timed", timed);
        if (std::string(part) == "working set")
            params.number("last_caches_bytes", memory->caches);
        print_point(job, benchmark, params, metric, unit, values, samples, shown);
    };
    point("total", "rate", (std::string(app.unit()) + "/s").c_str(), found.rates);
    point("total", "time", "s", found.totals);
    point("compute", "time", "s", found.compute);
    for (size_t phase = 0; phase < found.phases.size(); ++phase) {
        if (!app.phases()[phase].is_span)
            point(app.phases()[phase].name, "time", "s", found.phases[phase]);
    }
    point("communication", "communication", "%", found.shares);
    if (!found.imbalances.empty())
        point("imbalance", "imbalance", "x", found.imbalances);
    for (size_t k = 0; k < figures.size(); ++k)
        point(figures[k].name, "figure_of_merit", figures[k].unit, found.figures[k], figures[k].timed);
    if (memory != nullptr)
        point("job", "memory", "bytes", {memory->job});
    if (memory != nullptr && memory->working_set > 0)
        point("working set", "memory", "bytes", {memory->working_set});
}

// All forms, verified, then measured in turns. Collective.
inline void run_forms(Job& job, const char* benchmark, const std::vector<std::unique_ptr<MiniApp>>& forms) {
    std::vector<Agreed> verdicts;
    std::vector<Body> bodies;
    for (const auto& form : forms) {
        MiniApp* const app = form.get();
        verdicts.push_back(job.options().validate ? verify(job, *app) : Agreed{});
        bodies.push_back([app](long count) { return app->sample(count); });
    }
    const std::vector<Samples> samples = measure(job, bodies);
    if (forms.empty())
        return;
    const Memory memory = memory_of(job, *forms[0]);
    for (size_t i = 0; i < forms.size(); ++i)
        print_form(job, benchmark, *forms[i], samples[i], verdicts[i], i == 0 ? &memory : nullptr);
}

// The program of a mini-app: run_all(job) where the library can have so many threads. The exit status.
template <class RunAll>
int run_program(const char* benchmark, const Options& options, RunAll&& run_all) {
    Job job(benchmark, options, Pes::kAny);
    if (job.thread_level_ok()) {
        job.bind_threads();
        run_all(job);
    } else {
        job.skip(benchmark, "threads=" + std::to_string(job.threads()),
                 "the library does not give SHMEM_THREAD_MULTIPLE");
    }
    job.finish();
    return 0;
}

}  // namespace shmem_mt

// How many rows lie between two polls of a form under the policy `manual`: as --poll-rows says, or with which a step
// takes least time.
#pragma once

#include <algorithm>
#include <string>

#include "apps/common/forms.hpp"
#include "programs/common/job.hpp"
#include "programs/common/run_together.hpp"

namespace shmem_mt {

// The best of three, seconds. Collective.
template <class Step>
double step_seconds(Job& job, Step&& step) {
    double best = 0;
    for (int i = 0; i < 3; ++i) {
        const Report report = run_together(job, step, [] { return true; });
        const double seconds = job.agree(report).max_seconds;
        best = i == 0 ? seconds : std::min(best, seconds);
    }
    return best;
}

// The rows between two polls, which it prints; 0 for a form that has no polls. set_rows(rows) is called before
// step(thread), which all threads of all PEs run. Collective.
template <class SetRows, class Step>
long place_polls(Job& job, const char* benchmark, const Form& form, SetRows&& set_rows, Step&& step) {
    if (form.policy == nullptr || std::string(form.policy) != "manual")
        return 0;
    long best = job.options().poll_rows;
    if (best == 0) {
        make_progress_as(form);
        double shortest = 0;
        for (long rows = 8; rows <= 4096; rows *= 4) {
            set_rows(rows);
            const double seconds = step_seconds(job, step);
            if (best == 0 || seconds < shortest) {
                best = rows;
                shortest = seconds;
            }
        }
    }
    Json tuned;
    tuned.text("event", "tuned").text("benchmark", benchmark).text("form", form.name).integer("poll_rows", best);
    if (job.me() == 0)
        tuned.print();
    return best;
}

}  // namespace shmem_mt

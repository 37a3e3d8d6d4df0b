// How many rows lie between two polls of a form under the policy `manual`: as --poll-rows says, or with which a step
// takes least time. The steps that decide are none of those that are reported.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "apps/common/forms.hpp"
#include "programs/common/job.hpp"
#include "programs/common/measure.hpp"
#include "programs/common/run_together.hpp"

namespace shmem_mt {

// Which of them has the least median: the least time of all would be that of the luckiest step.
inline size_t shortest(const std::vector<std::vector<double>>& seconds) {
    std::vector<double> medians;
    for (const std::vector<double>& tries : seconds) medians.push_back(median_of(tries));
    return static_cast<size_t>(std::min_element(medians.begin(), medians.end()) - medians.begin());
}

// Of so many rows, tried in turns. Collective.
template <class SetRows, class Step>
long best_of(Job& job, const std::vector<long>& candidates, SetRows&& set_rows, Step&& step) {
    constexpr int kTries = 3;
    std::vector<std::vector<double>> seconds(candidates.size());
    for (int i = 0; i < kTries; ++i) {
        for (size_t c = 0; c < candidates.size(); ++c) {
            set_rows(candidates[c]);
            seconds[c].push_back(job.agree(run_together(job, step, [] { return true; })).max_seconds);
        }
    }
    return candidates[shortest(seconds)];
}

// The rows between two polls, which it prints; 0 for a form that has no polls. set_rows(rows) is called before
// step(thread), which all threads of all PEs run. Collective.
template <class SetRows, class Step>
long place_polls(Job& job, const char* benchmark, const Form& form, SetRows&& set_rows, Step&& step) {
    if (form.policy == nullptr || std::string(form.policy) != "manual")
        return 0;
    long rows = job.options().poll_rows;
    if (rows == 0) {
        make_progress_as(form);
        rows = best_of(job, {8, 32, 128, 512, 2048}, set_rows, step);
    }
    Json tuned;
    tuned.text("event", "tuned").text("benchmark", benchmark).text("form", form.name).integer("poll_rows", rows);
    if (job.me() == 0)
        tuned.print();
    return rows;
}

}  // namespace shmem_mt

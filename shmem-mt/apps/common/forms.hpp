// The forms of a mini-app: blocking collectives; the same with the exchange of ghosts hidden, where there is one, which
// is the best that standard OpenSHMEM can do; non-blocking collectives under each way to make progress while the
// program computes; and a pipelined algorithm, which leaves the collectives more time. Forms that a library cannot run
// are skipped by name.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "programs/common/job.hpp"
#include "programs/common/progress_policy.hpp"

namespace shmem_mt {

enum class Style { kBlocking, kOverlapped, kNonblocking, kPipelined };

struct Form {
    const char* name;
    Style style;
    const char* policy;  // of progress; null: the one that the program was started with
};

constexpr Form kForms[] = {
    {"blocking", Style::kBlocking, nullptr},
    {"overlapped", Style::kOverlapped, nullptr},
    {"manual", Style::kNonblocking, "manual"},
    {"auto", Style::kNonblocking, "auto"},
    {"thread:spin", Style::kNonblocking, "thread:spin"},
    {"thread:monitor", Style::kNonblocking, "thread:monitor"},
    {"thread:block", Style::kNonblocking, "thread:block"},
    {"pipelined", Style::kPipelined, nullptr},
};

// Whether products need the ghosts of a vector, whose exchange a form may hide.
enum class Ghosts { kNone, kExchanged };

inline std::vector<Form> forms_with(Ghosts ghosts) {
    std::vector<Form> forms;
    for (const Form& form : kForms) {
        if (form.style != Style::kOverlapped || ghosts == Ghosts::kExchanged)
            forms.push_back(form);
    }
    return forms;
}

inline std::vector<std::string> form_names(Ghosts ghosts) {
    std::vector<std::string> names;
    for (const Form& form : forms_with(ghosts)) names.push_back(form.name);
    return names;
}

// Whether a form has non-blocking collectives (shmemx.h).
inline bool is_nonblocking(const Form& form) {
    return form.style == Style::kNonblocking || form.style == Style::kPipelined;
}

inline std::string policy_of(const Form& form) {
    const char* const started = std::getenv("HEDDLE_PROGRESS");
    if (form.policy != nullptr)
        return form.policy;
    return SHMEM_MT_HAVE_PROGRESS && started && *started ? started : kAutoPolicy;
}

// Sets the policy of progress of this PE from here on. False when the machine does not have it.
inline bool make_progress_as(const Form& form) {
    return set_policy(policy_of(form));
}

// Those that are asked for and possible on all PEs. Collective.
inline std::vector<Form> possible_forms(Job& job, const char* benchmark, Ghosts ghosts) {
    std::vector<Form> forms;
    for (const Form& form : forms_with(ghosts)) {
        if (!job.options().wants_op(form.name))
            continue;
        const bool lacks = is_nonblocking(form) && !SHMEM_MT_HAVE_PROGRESS;
        const std::string reason = lacks ? kNoProgress : why_no_policy(job, policy_of(form));
        if (reason.empty())
            forms.push_back(form);
        else
            job.skip(benchmark, form.name, reason);
    }
    return forms;
}

}  // namespace shmem_mt

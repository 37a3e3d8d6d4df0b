// Progress, the interface (shmemx.h): one poll, and the policy of the background threads.

#include "base/error.h"
#include "base/settings.h"
#include "fabric/network.h"
#include "operations/check.h"
#include "progress/engine.h"
#include "runtime/runtime.h"

namespace heddle::runtime {

void make_progress(const char* function) {
    operations::require_running(function);
    progress::engine->help([](const progress::Owners&) { return true; });
    progress::poll_in_loop();
}

const char* apply_progress(progress::Progress progress) {
    progress::Engine& engine = *progress::engine;
    if (const char* reason = engine.set_progress(progress))
        return reason;
    if (fabric::network)
        fabric::network->set_service(engine.is_manual()                         ? fabric::Service::kNone
                                     : engine.spins()                           ? fabric::Service::kSpins
                                     : progress == progress::Progress::kMonitor ? fabric::Service::kWatches
                                                                                : fabric::Service::kSleeps);
    return nullptr;
}

const char* network_progress(const char* function) {
    operations::require_running(function);
    return fabric::network ? fabric::network->service_name() : "none";
}

int set_progress_policy(const char* function, const char* policy) {
    operations::require_running(function);
    operations::require_pointer(function, "policy", policy);
    progress::Progress choice;
    const char* words = "";
    if (!base::find_choice("HEDDLE_PROGRESS", policy, &choice, &words)) {
        base::complain(function, "policy \"%s\" is none: right would be one of %s", policy, words);
        return 1;
    }
    if (const char* reason = apply_progress(choice)) {
        base::complain(function, "policy \"%s\" cannot be: %s", policy, reason);
        return 1;
    }
    return 0;
}

}  // namespace heddle::runtime

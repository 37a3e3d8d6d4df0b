#include "checking/checking.h"

#include "base/error.h"
#include "base/pe_local.h"
#include "base/settings.h"
#include "bootstrap/bootstrap.h"
#include "checking/chaos/chaos.h"
#include "checking/races/detector_network.h"
#include "checking/races/races.h"
#include "checking/status/end_signals.h"
#include "checking/status/status_signal.h"
#include "operations/observer.h"
#include "progress/engine.h"
#include "progress/wait_policy.h"

#include <string>

namespace heddle::checking {

namespace {

HEDDLE_PE_LOCAL base::PePointer<Chaos> chaos;
void (*before_wait_of_others)() = nullptr;  // the same in each PE

void before_wait() {
    if (Chaos* const here = chaos)
        here->before_wait();
    if (before_wait_of_others)
        before_wait_of_others();
}

void start_races() {
    if (base::settings.chaos != 0)
        base::fatal("HEDDLE_RACES", "HEDDLE_CHAOS is set, too: right would be one of them in a run");
    std::string reason;
    races::Races* const made = races::Races::make(&reason);
    if (!made && bootstrap::job.pe == 0)
        base::report("HEDDLE_RACES", "no races are looked for: %s", reason.c_str());
    if (!made)
        return;
    progress::engine->set_observed(true);
    operations::observer = made;
}

}  // namespace

void start(int pe) {
    if (base::settings.races)
        start_races();
    if (base::settings.chaos == 0)
        return;
    progress::WaitPolicy& policy = *progress::wait_policy;
    if (policy.before_wait != before_wait) {
        before_wait_of_others = policy.before_wait;
        policy.before_wait = before_wait;
    }
    policy.counts_cpu_of_waits = true;
    chaos = new Chaos(base::settings.chaos, pe);
    progress::engine->set_observed(true);
    operations::observer = chaos;
}

void stop(const char* function) {
    operations::Observer* const ended = operations::observer;
    if (!ended)
        return;
    ended->stop(function);
    forget();
    progress::engine->set_observed(false);
    // A thread that runs on, and tells of a load, may still be inside.
    if (!__atomic_load_n(&operations::program_tells_accesses, __ATOMIC_RELAXED))
        delete ended;
}

void forget() {
    operations::observer = nullptr;
    chaos = nullptr;
}

void stop_serving() {
    races::Races::stop_serving();
}

bool is_answer_awaited() {
    return races::is_answer_awaited();
}

uint32_t threads() {
    Chaos* const here = chaos;
    return status_threads() + end_threads() + races::Races::threads() + (here ? here->threads() : 0);
}

}  // namespace heddle::checking

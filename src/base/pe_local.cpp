// Definitions of the state that base/ keeps for each PE.

#include "base/counters.h"
#include "base/lifecycle.h"
#include "base/log.h"
#include "base/slow_event.h"

namespace heddle::base {

HEDDLE_PE_LOCAL bool debug_enabled = false;
Counters counters_of_nobody;
HEDDLE_PE_LOCAL Counters* counters = &counters_of_nobody;
HEDDLE_PE_LOCAL Lifecycle lifecycle = Lifecycle::kBeforeInit;
HEDDLE_PE_LOCAL std::atomic<SlowEventSink*> slow_event_sink{nullptr};
constinit thread_local bool runs_exit_handlers = false;

}  // namespace heddle::base

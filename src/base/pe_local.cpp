// Definitions of the state that base/ keeps for each PE.

#include "base/counters.h"
#include "base/lifecycle.h"
#include "base/log.h"

namespace heddle::base {

HEDDLE_PE_LOCAL bool debug_enabled = false;
Counters counters_of_nobody;
HEDDLE_PE_LOCAL Counters* counters = &counters_of_nobody;
HEDDLE_PE_LOCAL Lifecycle lifecycle = Lifecycle::kBeforeInit;
constinit thread_local bool runs_exit_handlers = false;

}  // namespace heddle::base

// Definitions of the state that base/ keeps for each PE.

#include "base/lifecycle.h"
#include "base/log.h"

namespace heddle::base {

HEDDLE_PE_LOCAL bool debug_enabled = false;
HEDDLE_PE_LOCAL Lifecycle lifecycle = Lifecycle::kBeforeInit;
constinit thread_local bool runs_exit_handlers = false;

}  // namespace heddle::base

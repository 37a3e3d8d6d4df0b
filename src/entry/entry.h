// Includes and macros of the generated shims.
#pragma once

#include "collective/exchange.h"
#include "collective/node/data_movement.h"
#include "collective/node/reduce.h"
#include "collective/nonblocking.h"
#include "collective/posted_group.h"
#include "collective/sync.h"
#include "entry/twin.h"
#include "operations/amo.h"
#include "operations/lock.h"
#include "operations/order.h"
#include "operations/rma.h"
#include "operations/signal.h"
#include "operations/wait.h"
#include "runtime/runtime.h"

// The name of the called interface function, and the place of the call.
#define HEDDLE_CALL(name) (heddle::base::Call{name, __builtin_return_address(0)})

#define HEDDLE_NO_GENERICS
#define HEDDLE_NO_INLINE  // the shims are the definitions: nothing is inlined from the header
#include <shmemx.h>

// What the generated shims call.
#pragma once

#include "collective/sync_all.h"
#include "entry/twin.h"
#include "operations/amo.h"
#include "operations/order.h"
#include "operations/rma.h"
#include "operations/signal.h"
#include "operations/wait.h"
#include "runtime/runtime.h"

#define HEDDLE_NO_INLINE  // the shims are definitions; nothing here is to be inlined from the header
#include <shmem.h>

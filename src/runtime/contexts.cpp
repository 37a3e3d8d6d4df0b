// Creating and destroying contexts, as programs call it: the checks, then src/context.

#include <heddle/constants.h>

#include "base/error.h"
#include "context/context.h"
#include "operations/check.h"
#include "operations/order.h"
#include "runtime/runtime.h"

namespace heddle::runtime {

int create_context(const char* function, long options, shmem_ctx_t* ctx) {
    operations::require_running(function);
    operations::require_pointer(function, "ctx", ctx);
    constexpr long kKnown = SHMEM_CTX_PRIVATE | SHMEM_CTX_SERIALIZED | SHMEM_CTX_NOSTORE;
    *ctx = SHMEM_CTX_INVALID;
    if (options & ~kKnown) {
        base::complain(function, "options %#lx: the bits %#lx are unknown", options, options & ~kKnown);
        return 1;
    }
    *ctx = context::create(options);
    return *ctx == SHMEM_CTX_INVALID;
}

void destroy_context(const char* function, shmem_ctx_t ctx) {
    operations::require_running(function);
    if (ctx == SHMEM_CTX_INVALID)
        return;
    if (ctx == SHMEM_CTX_DEFAULT)
        base::fatal(function, "ctx is SHMEM_CTX_DEFAULT, which cannot be destroyed");
    operations::quiet(function, ctx);
    context::destroy(ctx);
}

}  // namespace heddle::runtime

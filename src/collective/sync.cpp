#include "collective/sync.h"

#include "collective/collective_call.h"
#include "operations/order.h"

namespace heddle::collective {

void sync_all(const Call& call) {
    CollectiveCall(call, SHMEM_TEAM_WORLD, {}).barrier();
}

void barrier_all(const Call& call) {
    // The quiet waits only for transfers that other threads carry out. All other operations on the node are stores,
    // which the barrier itself makes visible.
    operations::require_running(call.function);
    operations::settle_if_any(call.function, SHMEM_CTX_DEFAULT);
    sync_all(call);
}

void barrier_all_comparing(const Call& call, const Shape& shape) {
    operations::require_running(call.function);
    operations::settle_if_any(call.function, SHMEM_CTX_DEFAULT);
    CollectiveCall coll(call, SHMEM_TEAM_WORLD, {});
    comparing_barrier(coll, shape);
}

int sync(const Call& call, const Group& group) {
    CollectiveCall(call, group, {}).barrier();
    return 0;
}

int barrier(const Call& call, const Group& group) {
    operations::quiet(call.function, SHMEM_CTX_DEFAULT);
    return sync(call, group);
}

}  // namespace heddle::collective

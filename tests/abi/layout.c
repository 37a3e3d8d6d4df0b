/* Compiles only while the layout that programs were compiled against is unchanged. A change here is a change of the
 * symbol's name: heddle_abi_2, heddle_streams_3. Values that are in the binary interface are pinned with it. */
#include <shmem.h>

#define PIN(what, value) _Static_assert((what) == (value), #what " is not " #value)

PIN(sizeof(struct heddle_peer), 32);
PIN(_Alignof(struct heddle_peer), 8);
PIN(offsetof(struct heddle_peer, heap), 0);
PIN(offsetof(struct heddle_peer, heap_size), 8);
PIN(offsetof(struct heddle_peer, data), 16);
PIN(offsetof(struct heddle_peer, data_size), 24);

PIN(sizeof(struct heddle_ctx), 8);
PIN(offsetof(struct heddle_ctx, peers), 0);

PIN(sizeof(struct heddle_abi_1), 24);
PIN(_Alignof(struct heddle_abi_1), 8);
PIN(offsetof(struct heddle_abi_1, heap_base), 0);
PIN(offsetof(struct heddle_abi_1, data_base), 8);
PIN(offsetof(struct heddle_abi_1, default_ctx), 16);

PIN(sizeof(struct heddle_stream), 48);
PIN(offsetof(struct heddle_stream, base), 0);
PIN(offsetof(struct heddle_stream, published), 8);
PIN(offsetof(struct heddle_stream, simple_end), 16);
PIN(offsetof(struct heddle_stream, idle), 24);
PIN(offsetof(struct heddle_stream, request), 32);
PIN(offsetof(struct heddle_stream, claimed), 40);

PIN(sizeof(struct heddle_streams), 56);
PIN(offsetof(struct heddle_streams, ctx), 0);
PIN(offsetof(struct heddle_streams, epoch), 8);
PIN(offsetof(struct heddle_streams, n_pes), 16);
PIN(offsetof(struct heddle_streams, to), 24);
PIN(offsetof(struct heddle_streams, heap_base), 32);
PIN(offsetof(struct heddle_streams, heap_words), 40);
PIN(offsetof(struct heddle_streams, nbi_to), 48);
/* Inlined code writes records. */
PIN(HEDDLE_PUT_RECORD_BYTES, 16);
PIN(HEDDLE_PUT_RECORD(0x123456789abcul, 8ul), 0x0200123456789abc);

PIN(sizeof(enum heddle_amo_op), 4);
PIN(HEDDLE_AMO_FETCH, 0);
PIN(HEDDLE_AMO_SET, 1);
PIN(HEDDLE_AMO_SWAP, 2);
PIN(HEDDLE_AMO_COMPARE_SWAP, 3);
PIN(HEDDLE_AMO_ADD, 4);
PIN(HEDDLE_AMO_AND, 5);
PIN(HEDDLE_AMO_OR, 6);
PIN(HEDDLE_AMO_XOR, 7);

PIN(HEDDLE_GAP_BYTES, 4096);
PIN(sizeof(shmem_ctx_t), 8);
PIN(sizeof(shmem_team_t), 8);
PIN(sizeof(struct heddle_team), 4);
PIN(sizeof(shmem_team_config_t), 4);
PIN(offsetof(shmem_team_config_t, num_contexts), 0);
PIN(sizeof(shmem_ctx_session_config_t), 8);
PIN(offsetof(shmem_ctx_session_config_t, total_ops), 0);
PIN(sizeof(heddle_complexd), 16);
PIN(sizeof(heddle_complexf), 8);

PIN(SHMEM_THREAD_SINGLE, 0);
PIN(SHMEM_THREAD_FUNNELED, 1);
PIN(SHMEM_THREAD_SERIALIZED, 2);
PIN(SHMEM_THREAD_MULTIPLE, 3);
PIN(SHMEM_CMP_EQ, 1);
PIN(SHMEM_CMP_NE, 2);
PIN(SHMEM_CMP_GT, 3);
PIN(SHMEM_CMP_GE, 4);
PIN(SHMEM_CMP_LT, 5);
PIN(SHMEM_CMP_LE, 6);
PIN(SHMEM_SIGNAL_SET, 0);
PIN(SHMEM_SIGNAL_ADD, 1);
PIN(SHMEM_MALLOC_ATOMICS_REMOTE, 1);
PIN(SHMEM_MALLOC_SIGNAL_REMOTE, 2);
PIN(SHMEM_MAX_NAME_LEN, 256);
PIN(SHMEM_CTX_PRIVATE, 1);
PIN(SHMEM_CTX_SERIALIZED, 2);
PIN(SHMEM_CTX_NOSTORE, 4);
PIN(SHMEM_CTX_SESSION_BATCH, 1);
PIN(SHMEM_CTX_SESSION_TOTAL_OPS, 1);
PIN(SHMEM_TEAM_NUM_CONTEXTS, 1);
/* Programs have arrays of these many elements compiled in. */
PIN(SHMEM_SYNC_VALUE, 0);
PIN(SHMEM_SYNC_SIZE, 1);
PIN(SHMEM_BARRIER_SYNC_SIZE, 1);
PIN(SHMEM_BCAST_SYNC_SIZE, 1);
PIN(SHMEM_COLLECT_SYNC_SIZE, 1);
PIN(SHMEM_REDUCE_SYNC_SIZE, 1);
PIN(SHMEM_REDUCE_MIN_WRKDATA_SIZE, 1);
PIN(SHMEM_ALLTOALL_SYNC_SIZE, 1);
PIN(SHMEM_ALLTOALLS_SYNC_SIZE, 1);

/* Names that a program may use for itself. */
#ifdef I
#error "shmem.h defines I"
#endif
#ifdef complex
#error "shmem.h defines complex"
#endif
#ifdef bool
#error "shmem.h defines bool"
#endif

/* The predefined handles are constants; comparisons are constant expressions, for switch labels. */
shmem_team_t const teams[] = {SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED, SHMEM_TEAM_INVALID};
shmem_ctx_t const contexts[] = {SHMEM_CTX_DEFAULT, SHMEM_CTX_INVALID};

int main(void) {
    return 0;
}

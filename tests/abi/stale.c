/* Words of heddle_abi_1 that a compiler keeps from before shmem_init (docs/decisions/0006): each function has a loop
 * that initializes in its first round, so that what is constant is read ahead of it. Every put must arrive where it is
 * read: in static data, which a program with fixed addresses has below the size of a heap, and in the heap. Prints what
 * went wrong. */
#include <shmem.h>
#include <stdio.h>
#include <string.h>

enum { kRounds = 3, kWords = 6, kLarge = 1 << 20 };

long small[64];
long large[kLarge] = {1}; /* more than 4 MiB, so that a program's first addresses are below the size of its data */
static int failures;

static void expect(const char* where, int round, const volatile long* at, long right) {
    if (*at != right) {
        printf("%s, round %d: %p holds %ld, right is %ld\n", where, round, (const void*)at, *at, right);
        ++failures;
    }
}

static int next_pe(void) {
    return (shmem_my_pe() + 1) % shmem_n_pes();
}

/* The value that round's put to the word must leave. */
static long value(int round, int word) {
    return 1000L * (round + 1) + word;
}

/* More words than there are registers, for a compiler that reads some anew. */
#define PUT_ALL(CTX, TO, FROM_A, FROM_B, FROM_C)                  \
    shmem_ctx_long_p(CTX, &TO[5], value(round, 0), pe);           \
    shmem_ctx_long_p(CTX, &TO[6], value(round, 1) + FROM_A, pe);  \
    shmem_ctx_long_p(CTX, &TO[7 + FROM_A], value(round, 2), pe);  \
    shmem_ctx_long_p(CTX, &TO[9 + FROM_B], value(round, 3), pe);  \
    shmem_ctx_long_p(CTX, &TO[11 + FROM_C], value(round, 4), pe); \
    shmem_ctx_long_put(CTX, &TO[20], source, kWords, pe)

#define EXPECT_ALL(WHERE, TO, FROM_A, FROM_B, FROM_C)        \
    expect(WHERE, round, &TO[5], value(round, 0));           \
    expect(WHERE, round, &TO[6], value(round, 1) + FROM_A);  \
    expect(WHERE, round, &TO[7 + FROM_A], value(round, 2));  \
    expect(WHERE, round, &TO[9 + FROM_B], value(round, 3));  \
    expect(WHERE, round, &TO[11 + FROM_C], value(round, 4)); \
    for (int i = 0; i < kWords; ++i) expect(WHERE, round, &TO[20 + i], value(round, i))

/* The default context, one lazy init. */
__attribute__((noinline)) static void default_context(int a, int b, int c) {
    int ready = 0;
    for (int round = 0; round < kRounds; ++round) {
        if (!ready) {
            shmem_init();
            ready = 1;
        }
        long source[kWords];
        const int pe = next_pe();
        for (int i = 0; i < kWords; ++i) source[i] = value(round, i);
        PUT_ALL(SHMEM_CTX_DEFAULT, small, a, b, c);
        PUT_ALL(SHMEM_CTX_DEFAULT, large, a, b, c);
        shmem_barrier_all();
        EXPECT_ALL("default context, small", small, a, b, c);
        EXPECT_ALL("default context, large", large, a, b, c);
        shmem_barrier_all();
    }
    shmem_finalize();
}

/* A context for all rounds, one lazy init; the heap, too. */
__attribute__((noinline)) static void one_context(int a, int b, int c) {
    static shmem_ctx_t ctx;
    static long* heap;
    for (int round = 0; round < kRounds; ++round) {
        if (!heap) {
            shmem_init();
            shmem_ctx_create(0, &ctx);
            heap = shmem_malloc(64 * sizeof(long));
        }
        long source[kWords];
        const int pe = next_pe();
        for (int i = 0; i < kWords; ++i) source[i] = value(round, i);
        PUT_ALL(ctx, small, a, b, c);
        PUT_ALL(ctx, heap, a, b, c);
        const long got = shmem_ctx_long_g(ctx, &large[0], pe);
        expect("one context, get", round, &got, 1);
        shmem_ctx_quiet(ctx);
        shmem_barrier_all();
        EXPECT_ALL("one context, small", small, a, b, c);
        EXPECT_ALL("one context, heap", heap, a, b, c);
        shmem_barrier_all();
    }
    shmem_finalize();
    heap = NULL;
}

/* A context and an init in each round; atomics. */
__attribute__((noinline)) static void init_in_each_round(int a, int b, int c) {
    for (int round = 0; round < kRounds; ++round) {
        shmem_init();
        shmem_ctx_t ctx;
        shmem_ctx_create(0, &ctx);
        memset(small, 0, sizeof small);
        shmem_barrier_all();
        long source[kWords];
        const int pe = next_pe();
        for (int i = 0; i < kWords; ++i) source[i] = value(round, i);
        PUT_ALL(ctx, small, a, b, c);
        PUT_ALL(ctx, large, a, b, c);
        shmem_ctx_long_atomic_add(ctx, &small[40], value(round, 5), pe);
        shmem_long_atomic_inc(&small[40], pe);
        shmem_ctx_destroy(ctx);
        shmem_barrier_all();
        EXPECT_ALL("init in each round, small", small, a, b, c);
        EXPECT_ALL("init in each round, large", large, a, b, c);
        expect("init in each round, atomic", round, &small[40], value(round, 5) + 1);
        shmem_finalize();
    }
}

/* The words are stale in a process's first init alone, so each run is for one function: how many arguments say which.
 */
int main(int argc, char** argv) {
    (void)argv;
    if (argc == 1)
        default_context(argc, argc, argc - 1);
    else if (argc == 2)
        one_context(argc - 2, argc - 1, argc - 2);
    else
        init_in_each_round(argc - 3, argc - 2, argc - 2);
    if (failures == 0)
        printf("right\n");
    return failures != 0;
}

// Single sentences of the standard that the programs of rows and models have no place for (docs/conformance.md names
// each check here): what calls imply beside what they return. Where an order matters PE 0 is late, so that a PE that
// should have waited for it is seen not to.
#include "sentences.h"
#include "check.h"
#include "tables.h"

#include <pthread.h>
#include <unistd.h>
#include <iterator>

using namespace conformance;

namespace {

constexpr size_t kBlock = 6000;  // words: more than a network takes at once
uint64_t static_block[kBlock];
uint64_t* heap_block;
uint64_t private_block[kBlock];
int next, previous, last;

void pe_0_is_late() {
    if (pe == 0)
        usleep(20000);
}

uint64_t word(uint64_t round, int from, size_t i) {
    return round * 1000003 + static_cast<uint64_t>(from) * 7919 + i;
}

// Starts a put of a block to the next PE, which nothing but the call under test completes.
void put_block(shmem_ctx_t ctx, uint64_t* block, uint64_t round) {
    for (size_t i = 0; i < kBlock; ++i) private_block[i] = word(round, pe, i);
    shmem_ctx_put64_nbi(ctx, block, private_block, kBlock, next);
}

void check_block(const uint64_t* block, uint64_t round) {
    for (size_t i = 0; i < kBlock; ++i)
        CHECK_EQ(__atomic_load_n(&block[i], __ATOMIC_RELAXED), word(round, previous, i));
}

// --- Setup and end.

// A finalize that is not the last one is a barrier: what all did before is complete behind it.
void inner_finalize_is_a_barrier() {
    subject = "shmem_finalize, not the last one";
    for (uint64_t round = 1; round <= 3; ++round) {
        shmem_init();
        pe_0_is_late();
        put_block(SHMEM_CTX_DEFAULT, static_block, round);
        shmem_finalize();
        check_block(static_block, round);
        shmem_sync_all();
    }
}

// The last one completes what is outstanding before any PE leaves; what is static stays readable.
int last_finalize_completes() {
    subject = "shmem_finalize, the last one";
    pe_0_is_late();
    put_block(SHMEM_CTX_DEFAULT, static_block, 99);
    const int status = finish();
    check_block(static_block, 99);
    return status;
}

// The standard's handles and constants where C wants constant expressions.
shmem_team_t const handles[] = {SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED, SHMEM_TEAM_INVALID};
shmem_ctx_t const contexts[] = {SHMEM_CTX_DEFAULT, SHMEM_CTX_INVALID};
static_assert(SHMEM_THREAD_SINGLE < SHMEM_THREAD_FUNNELED && SHMEM_THREAD_FUNNELED < SHMEM_THREAD_SERIALIZED &&
                  SHMEM_THREAD_SERIALIZED < SHMEM_THREAD_MULTIPLE,
              "levels of threads increase");
static_assert(sizeof SHMEM_VENDOR_STRING <= SHMEM_MAX_NAME_LEN, "the name has room for its end");
[[noreturn, maybe_unused]] void global_exit_does_not_return() {
    shmem_global_exit(1);  // -Werror: a noreturn function that returns
}

void handles_compare() {
    subject = "handles";
    for (size_t i = 0; i < std::size(handles); ++i)
        for (size_t k = 0; k < std::size(handles); ++k) CHECK_EQ(handles[i] == handles[k], i == k);
    CHECK(contexts[0] == SHMEM_CTX_DEFAULT && contexts[1] == SHMEM_CTX_INVALID && contexts[0] != contexts[1]);
}

// --- Memory.

struct Object {
    char before;
    long numbers[3];
    union {
        double real;
        int parts[2];
    };
};
Object static_object;

// Addresses within objects: members, elements, parts of unions, through pointer arithmetic.
void addresses_within_objects() {
    subject = "addresses within an object";
    auto* heap_object = static_cast<Object*>(shmem_calloc(2, sizeof(Object))) + 1;
    for (Object* object : {&static_object, heap_object}) {
        shmem_long_p(&object->numbers[1] + 1, 20 + pe, next);
        shmem_int_p(&object->parts[1], 30 + pe, next);
        shmem_char_p(&object->before, static_cast<char>(40 + pe), next);
        shmem_barrier_all();
        CHECK(object->numbers[2] == 20 + previous && object->parts[1] == 30 + previous &&
              object->before == 40 + previous);
        CHECK(object->numbers[0] == 0 && object->numbers[1] == 0 && object->parts[0] == 0);
        shmem_barrier_all();
    }
    shmem_free(heap_object - 1);
}

// Each memory routine that does something quiets the default context and is a barrier; new memory is used at once.
void memory_routines_are_barriers() {
    subject = "memory routines as barriers";
    long* held = nullptr;
    for (uint64_t round = 1; round <= 8; ++round) {
        pe_0_is_late();
        put_block(SHMEM_CTX_DEFAULT, static_block, round);
        long* made = nullptr;
        switch (round) {
            case 1:
                made = held = static_cast<long*>(shmem_malloc(64));
                break;
            case 2:
                made = held = static_cast<long*>(shmem_realloc(held, 1 << 20));
                break;
            case 3:
                shmem_free(held);
                break;
            case 4:
                made = held = static_cast<long*>(shmem_realloc(nullptr, 64));
                break;
            case 5:
                CHECK(!shmem_realloc(held, 0));
                break;
            case 6:
                made = static_cast<long*>(shmem_calloc(8, 8));
                break;
            case 7:
                made = static_cast<long*>(shmem_align(4096, 64));
                break;
            default:
                made = static_cast<long*>(shmem_malloc_with_hints(64, SHMEM_MALLOC_ATOMICS_REMOTE));
        }
        check_block(static_block, round);
        if (made) {
            shmem_long_p(&made[3], pe + 5, next);
            shmem_barrier_all();
            CHECK_EQ(made[3], previous + 5);
        }
        shmem_sync_all();
        if (round > 5)
            shmem_free(made);
    }
}

// One request that cannot be met is NULL on all PEs and nothing else: the heap is as it was.
void what_does_not_fit_changes_nothing() {
    subject = "memory that there is not";
    auto* held = static_cast<uint64_t*>(shmem_malloc_with_hints(64, SHMEM_MALLOC_SIGNAL_REMOTE));
    held[0] = word(1, pe, 0);
    CHECK(!shmem_realloc(held, size_t{1} << 60) && !shmem_malloc(SIZE_MAX) && !shmem_align(64, SIZE_MAX - 4096));
    CHECK_EQ(held[0], word(1, pe, 0));
    held = static_cast<uint64_t*>(shmem_realloc(held, 128));
    CHECK(held && held[0] == word(1, pe, 0));
    held[15] = 0;
    shmem_barrier_all();
    shmem_signal_set(&held[15], 7, next);  // what was allocated for signals takes them
    CHECK_EQ(shmem_signal_wait_until(&held[15], SHMEM_CMP_NE, 0), 7);
    shmem_barrier_all();
    shmem_free(held);
}

// --- Teams and contexts.

void check_unmade(shmem_team_t parent, int size) {
    shmem_team_t row = SHMEM_TEAM_WORLD, column = SHMEM_TEAM_WORLD;
    CHECK(shmem_team_split_strided(parent, 0, 1, size, nullptr, 0, &row) != 0);
    CHECK(row == SHMEM_TEAM_INVALID);
    row = SHMEM_TEAM_WORLD;
    CHECK(shmem_team_split_2d(parent, parent == SHMEM_TEAM_INVALID ? 1 : 0, nullptr, 0, &row, nullptr, 0, &column) !=
          0);
    CHECK(row == SHMEM_TEAM_INVALID && column == SHMEM_TEAM_INVALID);
}

// A split that fails is nonzero and SHMEM_TEAM_INVALID on all members of the parent, for both teams of a matrix, and
// leaves the parent usable.
void splits_that_fail() {
    subject = "splits that fail";
    check_unmade(SHMEM_TEAM_INVALID, 1);
    check_unmade(SHMEM_TEAM_WORLD, n_pes + 1);
    const shmem_team_config_t wrong = {-1};
    for (int wrong_axis = 0; wrong_axis < 2; ++wrong_axis) {  // one PE's axis cannot be made: none is
        const long mine = pe == last ? SHMEM_TEAM_NUM_CONTEXTS : 0;
        shmem_team_t row = SHMEM_TEAM_WORLD, column = SHMEM_TEAM_WORLD;
        CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, &wrong, wrong_axis == 0 ? mine : 0, &row, &wrong,
                                  wrong_axis == 1 ? mine : 0, &column) != 0);
        CHECK(row == SHMEM_TEAM_INVALID && column == SHMEM_TEAM_INVALID);
    }
    shmem_team_t team = SHMEM_TEAM_INVALID;
    CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, last, -1, n_pes, nullptr, 0, &team), 0);
    shmem_team_t child = SHMEM_TEAM_INVALID;  // both are usable at once, without synchronization
    CHECK_EQ(shmem_team_split_strided(team, 0, 1, n_pes, nullptr, 0, &child), 0);
    CHECK_EQ(shmem_team_sync(child) | shmem_team_sync(team) | shmem_team_sync(SHMEM_TEAM_WORLD), 0);
    CHECK_EQ(shmem_team_my_pe(child), last - pe);
    shmem_team_destroy(child);
    shmem_team_destroy(team);
}

// A context that cannot be made is no error: the next one can. Without options, and on teams not told how many.
void contexts_that_are_refused() {
    subject = "contexts that are refused";
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    CHECK(shmem_ctx_create(1L << 40, &ctx) != 0);
    CHECK(ctx == SHMEM_CTX_INVALID);
    ctx = SHMEM_CTX_DEFAULT;
    CHECK(shmem_team_create_ctx(SHMEM_TEAM_WORLD, 1L << 40, &ctx) != 0);
    CHECK(ctx == SHMEM_CTX_INVALID);
    CHECK_EQ(shmem_ctx_create(0, &ctx), 0);
    shmem_ctx_destroy(ctx);
    shmem_team_t team;  // made for no contexts; there is room for them all the same
    CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, nullptr, 0, &team), 0);
    CHECK_EQ(shmem_team_create_ctx(team, 0, &ctx), 0);
    shmem_ctx_destroy(ctx);
    shmem_team_destroy(team);
}

void destroying_a_context_completes() {
    subject = "shmem_ctx_destroy";
    for (uint64_t round = 1; round <= 5; ++round) {
        shmem_ctx_t ctx;
        CHECK_EQ(shmem_ctx_create(round % 2 ? SHMEM_CTX_PRIVATE : 0, &ctx), 0);
        pe_0_is_late();
        put_block(ctx, heap_block, round);
        shmem_ctx_destroy(ctx);
        shmem_sync_all();
        check_block(heap_block, round);
        shmem_sync_all();
    }
}

// A session stopped twice, or never started, or started twice and stopped once: nothing happens beside.
void sessions_only_hint() {
    subject = "sessions";
    const shmem_ctx_session_config_t config = {3};
    for (shmem_ctx_t ctx : {SHMEM_CTX_DEFAULT, conformance_ctx}) {
        shmem_ctx_session_stop(ctx);
        shmem_ctx_session_start(ctx, 0, nullptr, 0);
        shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, &config, SHMEM_CTX_SESSION_TOTAL_OPS);
        for (uint64_t round = 1; round <= 5; ++round) {  // more than it was told
            put_block(ctx, heap_block, round);
            shmem_ctx_quiet(ctx);
            shmem_sync_all();
            check_block(heap_block, round);
            shmem_sync_all();
        }
        shmem_ctx_session_stop(ctx);
        shmem_ctx_session_stop(ctx);
    }
}

// Atomics on one word through the default context, created ones and a team's are exclusive.
void one_domain_of_atomicity() {
    subject = "one domain of atomicity";
    shmem_team_t reversed;
    CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, last, -1, n_pes, nullptr, 0, &reversed), 0);
    shmem_ctx_t created, of_team;
    CHECK_EQ(shmem_ctx_create(SHMEM_CTX_SERIALIZED, &created) | shmem_team_create_ctx(reversed, 0, &of_team), 0);
    heap_block[0] = 0;
    shmem_barrier_all();
    for (int i = 0; i < 100; ++i) {
        shmem_uint64_atomic_add(heap_block, 1, 0);
        shmem_ctx_uint64_atomic_inc(created, heap_block, 0);
        shmem_ctx_uint64_atomic_fetch_add(of_team, heap_block, 1, last);  // the same PE, by the team's number
    }
    shmem_ctx_destroy(created);
    shmem_ctx_destroy(of_team);
    shmem_barrier_all();
    CHECK_EQ(shmem_uint64_atomic_fetch(heap_block, 0), 300 * n_pes);
    shmem_barrier_all();
    shmem_team_destroy(reversed);
}

}  // namespace

int main() {
    start("sentences");
    next = (pe + 1) % n_pes, previous = (pe + n_pes - 1) % n_pes, last = n_pes - 1;
    heap_block = static_cast<uint64_t*>(shmem_malloc(sizeof static_block));
    CHECK(heap_block);
    handles_compare();
    addresses_within_objects();
    memory_routines_are_barriers();
    what_does_not_fit_changes_nothing();
    splits_that_fail();
    contexts_that_are_refused();
    destroying_a_context_completes();
    sessions_only_hint();
    one_domain_of_atomicity();
    sentences_of_communication();
    sentences_of_threads();
    inner_finalize_is_a_barrier();
    return last_finalize_completes();
}

// Init, finalize and the queries: nested and repeated init, thread levels, what query_initialized says when, PE
// numbers, what is accessible, shmem_ptr for heap and static data, and the library's version and name.
#include "check.h"
#include "tables.h"

#include <shmemx.h>
#include <unistd.h>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

using namespace conformance;

namespace {

int initialised_value = 41;
long zeroed[1000];
int checked_before_init = 7;
long passed_on;

int initialized() {
    int answer = -5;
    shmem_query_initialized(&answer);
    return answer;
}

int provided_level() {
    int provided = -5;
    shmem_query_thread(&provided);
    return provided;
}

void init_by_threads_level(int requested) {
    int provided = -5;
    CHECK_EQ(shmem_init_thread(requested, &provided), 0);
    CHECK_EQ(provided >= requested && provided <= SHMEM_THREAD_MULTIPLE, 1);
    CHECK_EQ(provided_level(), provided);
}

// Four references of different kinds; the library runs until the last is given back.
void nested() {
    subject = "nested init and finalize";
    for (int level : {SHMEM_THREAD_SINGLE, SHMEM_THREAD_FUNNELED, SHMEM_THREAD_SERIALIZED, SHMEM_THREAD_MULTIPLE})
        init_by_threads_level(level);
    shmem_init();
    for (int i = 0; i < 4; ++i) {
        // Each is a barrier: what was put before, by the slowest too, is there behind it.
        if (pe == i % n_pes)
            usleep(20000);
        shmem_long_p(&passed_on, i + 1, (pe + 1) % n_pes);
        shmem_finalize();
        CHECK_EQ(passed_on, i + 1);
        CHECK_EQ(initialized(), 1);
        CHECK_EQ(shmem_my_pe(), pe);
        shmem_barrier_all();
    }
    shmem_finalize();
    CHECK_EQ(initialized(), 1);  // main's own
}

void numbers() {
    subject = "PE numbers";
    CHECK(n_pes >= 1 && pe >= 0 && pe < n_pes);
    const char* told = getenv("HEDDLE_TEST_PES");
    CHECK(!told || atoi(told) == n_pes);
    for (int other = 0; other < n_pes; ++other) CHECK_EQ(shmem_pe_accessible(other), 1);
    for (int other : {-1, n_pes, n_pes + 1, INT_MIN, INT_MAX}) CHECK_EQ(shmem_pe_accessible(other), 0);
    static int seen[64];
    for (int to = 0; to < n_pes; ++to) shmem_int_atomic_inc(&seen[pe], to);
    shmem_barrier_all();
    for (int from = 0; from < 64; ++from) CHECK_EQ(seen[from], from < n_pes);  // each number is had once
    shmem_barrier_all();
    for (int& one : seen) one = 0;
    shmem_barrier_all();
}

void addresses() {
    subject = "shmem_ptr, shmem_addr_accessible";
    auto* heap = static_cast<int*>(shmem_malloc(4000));
    int on_stack = 0;
    int* on_c_heap = new int(0);
    for (int other = 0; other < n_pes; ++other) {
        for (const void* symmetric : {static_cast<const void*>(heap), static_cast<const void*>(heap + 999),
                                      static_cast<const void*>(&initialised_value), static_cast<const void*>(zeroed),
                                      static_cast<const void*>(&zeroed[999])}) {
            CHECK_EQ(shmem_addr_accessible(symmetric, other), 1);
            const bool on_node = shmem_team_translate_pe(SHMEM_TEAM_WORLD, other, SHMEM_TEAM_SHARED) >= 0;
            CHECK_EQ(shmem_ptr(symmetric, other) != nullptr, on_node);
            CHECK(other != pe || shmem_ptr(symmetric, other) == symmetric);
        }
        for (const void* own : {static_cast<const void*>(&on_stack), static_cast<const void*>(on_c_heap),
                                static_cast<const void*>(nullptr), reinterpret_cast<const void*>(&addresses)}) {
            CHECK_EQ(shmem_addr_accessible(own, other), 0);
            CHECK(!shmem_ptr(own, other));
        }
    }
    for (int other : {-1, n_pes, INT_MIN, INT_MAX}) {
        CHECK_EQ(shmem_addr_accessible(heap, other), 0);
        CHECK(!shmem_ptr(heap, other));
    }
    // What is stored through shmem_ptr is there.
    const int next = (pe + 1) % n_pes, previous = (pe + n_pes - 1) % n_pes;
    if (shmem_ptr(heap, next)) {
        *static_cast<int*>(shmem_ptr(&heap[7], next)) = pe + 100;
        *static_cast<long*>(shmem_ptr(&zeroed[7], next)) = pe + 200;
    }
    shmem_barrier_all();
    if (shmem_ptr(heap, previous)) {
        CHECK_EQ(heap[7], previous + 100);
        CHECK_EQ(*const_cast<volatile long*>(&zeroed[7]), previous + 200);
    }
    CHECK(!shmem_ptr(heap, next) || *static_cast<int*>(shmem_ptr(&heap[7], next)) == pe + 100);
    shmem_barrier_all();
    zeroed[7] = 0;
    delete on_c_heap;
    shmem_free(heap);
}

// The number of a counter; -1: there is none of this name.
int counter_of(const char* name) {
    for (int i = 0; i < shmemx_pcntr_num(); ++i)
        if (strcmp(shmemx_pcntr_name(i), name) == 0)
            return i;
    return -1;
}

bool has_other_nodes() {
    for (int other = 0; other < n_pes; ++other)
        if (!shmem_ptr(&passed_on, other))
            return true;
    return false;
}

// Names and descriptions differ; counters grow with what they count: messages to other nodes, and no others.
void counters() {
    subject = "shmemx_pcntr_num, shmemx_pcntr_name, shmemx_pcntr_description, shmemx_pcntr_get";
    std::set<std::string> all_names, descriptions;
    for (int i = 0; i < shmemx_pcntr_num(); ++i) {
        all_names.insert(shmemx_pcntr_name(i));
        descriptions.insert(shmemx_pcntr_description(i));
        CHECK(strstr(shmemx_pcntr_description(i), ": "));
    }
    CHECK_EQ(static_cast<int>(all_names.size()), shmemx_pcntr_num());
    CHECK_EQ(static_cast<int>(descriptions.size()), shmemx_pcntr_num());
    CHECK_EQ(strncmp(shmemx_pcntr_description(counter_of("bytes_sent")), "bytes: ", 7), 0);
    CHECK_EQ(counter_of("none"), -1);
    const int messages = counter_of("messages_sent"), bytes = counter_of("bytes_sent");
    const uint64_t messages_before = shmemx_pcntr_get(messages), bytes_before = shmemx_pcntr_get(bytes);
    for (int other = 0; other < n_pes; ++other) shmem_putmem(zeroed, zeroed + 500, 400 * sizeof(long), other);
    shmem_quiet();
    const bool across = has_other_nodes();
    CHECK_EQ(shmemx_pcntr_get(messages) > messages_before, across);
    CHECK_EQ(shmemx_pcntr_get(bytes) > bytes_before, across);
    const int control = counter_of("control_messages_received");
    const uint64_t control_before = shmemx_pcntr_get(control);
    shmem_barrier_all();
    CHECK(shmemx_pcntr_get(control) >= control_before);
}

void names() {
    subject = "shmem_info_get_version, shmem_info_get_name";
    int major = -1, minor = -1;
    shmem_info_get_version(&major, &minor);
    CHECK_EQ(major, 1);
    CHECK_EQ(minor, 6);
    CHECK_EQ(major == SHMEM_MAJOR_VERSION && minor == SHMEM_MINOR_VERSION, 1);
    char name[SHMEM_MAX_NAME_LEN];
    memset(name, 0x55, sizeof name);
    shmem_info_get_name(name);
    CHECK(strnlen(name, sizeof name) < sizeof name && strcmp(name, SHMEM_VENDOR_STRING) == 0);
}

// Static data keeps its values over init and finalize; the heap works anew each time.
void again(int times) {
    subject = "init after finalize";
    for (int i = 0; i < times; ++i) {
        CHECK_EQ(initialized(), 0);
        checked_before_init += 1;
        if (i % 2)
            shmem_init();
        else
            init_by_threads_level(SHMEM_THREAD_MULTIPLE);
        CHECK_EQ(initialized(), 1);
        CHECK_EQ(shmem_my_pe(), pe);
        CHECK_EQ(shmem_n_pes(), n_pes);
        auto* heap = static_cast<long*>(shmem_calloc(1000, sizeof(long)));
        CHECK(heap);
        shmem_barrier_all();
        shmem_long_atomic_add(&heap[999], 3, (pe + 1) % n_pes);
        shmem_long_atomic_add(&zeroed[500], 1, (pe + 1) % n_pes);
        shmem_barrier_all();
        CHECK_EQ(heap[999], 3);
        CHECK_EQ(shmem_long_g(&zeroed[500], pe), i + 1);
        CHECK_EQ(checked_before_init, 8 + i);
        CHECK_EQ(shmem_int_g(&checked_before_init, (pe + 1) % n_pes), 8 + i);
        shmem_finalize();
    }
    CHECK_EQ(initialized(), 0);
}

}  // namespace

int main() {
    subject = "before init";
    CHECK_EQ(initialized(), 0);
    initialised_value = 42;  // before init, so that init must keep it
    start("setup");
    CHECK_EQ(initialized(), 1);
    CHECK_EQ(initialised_value, 42);
    CHECK_EQ(shmem_int_g(&initialised_value, n_pes - 1), 42);
    numbers();
    nested();
    addresses();
    names();
    counters();
    finish();
    again(6);
    return 0;
}

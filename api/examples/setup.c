/* Examples of the manual pages. What follows a line "== PAGE ==" up to the next one is on that page; the test of the
 * pages compiles all files into one program, and calls each function on each PE. */
#include <assert.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

/* == shmem_init_thread == */
void for_threads(void) {
    int provided;
    if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0)
        exit(1);
    assert(provided == SHMEM_THREAD_MULTIPLE);
    /* any thread may call the library from here on */
    shmem_finalize();
}

/* == shmem_query_initialized == */
/* A part of a program that others may have started the library for. */
void start_a_part(void) {
    int initialized;
    shmem_query_initialized(&initialized);
    if (!initialized)
        shmem_init();
}

/* == shmem_query_thread == */
void say_level(void) {
    int provided;
    shmem_query_thread(&provided);
    assert(provided == SHMEM_THREAD_MULTIPLE);
}

/* == shmem_global_exit == */
void* allocate_or_end(size_t bytes) {
    void* memory = shmem_malloc(bytes);
    if (!memory) {
        fprintf(stderr, "no %zu bytes of symmetric heap\n", bytes);
        shmem_global_exit(3);
    }
    return memory;
}

/* == shmem_my_pe shmem_n_pes == */
void say_who(void) {
    int me = shmem_my_pe(), n = shmem_n_pes();
    int right = (me + 1) % n, left = (me + n - 1) % n;
    assert(right < n && left >= 0);
}

/* == shmem_pe_accessible == */
void is_there(void) {
    assert(shmem_pe_accessible(0) == 1);
    assert(shmem_pe_accessible(shmem_n_pes()) == 0);
}

/* == shmem_addr_accessible == */
void what_is_symmetric(void) {
    static int in_static_data;
    int on_the_stack;
    assert(shmem_addr_accessible(&in_static_data, 0) == 1);
    assert(shmem_addr_accessible(&on_the_stack, 0) == 0);
}

/* == shmem_ptr == */
/* Reads a neighbour's value by a load, where both share a node. */
void load_from_neighbour(void) {
    static long number;
    int right = (shmem_my_pe() + 1) % shmem_n_pes();
    number = shmem_my_pe();
    shmem_barrier_all();
    long* there = shmem_ptr(&number, right);
    long got = there ? *there : shmem_g(&number, right);
    assert(got == right);
}

/* == shmem_info_get_version == */
void say_version(void) {
    int major, minor;
    char name[SHMEM_MAX_NAME_LEN];
    shmem_info_get_version(&major, &minor);
    shmem_info_get_name(name);
    assert(major == 1 && minor == 6);
    if (shmem_my_pe() == 0)
        printf("%s: OpenSHMEM %d.%d\n", name, major, minor);
}

/* == shmem_pcontrol == */
void tell_a_profiler(void) {
    shmem_pcontrol(0); /* what follows is not of interest */
    shmem_barrier_all();
    shmem_pcontrol(1);
}

/* == shmem_malloc shmem_free == */
void memory_of_all_pes(void) {
    double* row = shmem_malloc(1000 * sizeof *row);
    if (!row)
        shmem_global_exit(1);
    row[0] = shmem_my_pe();
    shmem_free(row);
}

/* == shmem_calloc == */
void zeros(void) {
    long* counters = shmem_calloc(8, sizeof *counters);
    assert(counters && counters[7] == 0);
    shmem_free(counters);
}

/* == shmem_align == */
void at_a_page(void) {
    char* page = shmem_align(4096, 10000);
    assert(page && (size_t)page % 4096 == 0);
    shmem_free(page);
}

/* == shmem_malloc_with_hints == */
void memory_for_counters(void) {
    long* counters = shmem_malloc_with_hints(8 * sizeof *counters,
                                             SHMEM_MALLOC_ATOMICS_REMOTE);
    assert(counters);
    shmem_free(counters);
}

/* == shmem_realloc == */
void grow(void) {
    int* table = shmem_malloc(10 * sizeof *table);
    assert(table);
    table[9] = 9;
    int* longer = shmem_realloc(table, 1000 * sizeof *longer);
    if (longer) /* otherwise table is as it was */
        table = longer;
    assert(table[9] == 9);
    shmem_free(table);
}

// clang-format off: each case on one line
/* Goes wrong in the last PE in the way that the argument names, on a line that the test finds by the same name. LIBRARY:
   without main; CALLER: main alone. */
#include <pthread.h>
#include <shmem.h>
#include <shmemx.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

void go(const char* name);

#ifndef CALLER
static long word;
static uint64_t signal_word;
static const char* chosen;
static volatile int zero;

#define when(name) if (strcmp(chosen, name) == 0)

static void own_handler(int number) {
    static const char text[] = "own handler\n";
    if (number == SIGSEGV && write(STDOUT_FILENO, text, sizeof text - 1) > 0)
        _exit(77);
}

static int deeper(int depth) {
    volatile char room[4096]; when("crash_stack") return room[0] = (char)depth, deeper(depth + 1) + room[0];
    return room[0] = 0;
}

static void* crash(void* nothing) {
    when("crash_thread") *(volatile int*)16 = 1;
    return nothing;
}

static void go_wrong(long* heap, int n) {
    long local = 0;
    shmem_ctx_t ctx;
    shmem_team_t team;
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    when("pe") shmem_long_p(&word, 1, n);
    when("stack") shmem_long_put(&local, &word, 1, 0);
    when("get") shmem_getmem(&local, &local, 8, 0);
    when("g") local = shmem_long_g(&local, 0);
    when("nbi") shmem_putmem_nbi(&local, heap, 8, 0);
    when("amo") local = shmem_long_atomic_fetch_add(&local, 1, 0);
    when("set") shmem_long_atomic_set(&word, 1, -1);
    when("strided") shmem_long_iput(heap, &word, 0, 1, 2, 0);
    when("with_signal") shmem_putmem_signal(heap, heap + 8, 8, &signal_word, 1, 9, 0);
    when("wait") shmem_long_wait_until(&word, 77, 0);
    when("test") local = shmem_long_test(&word, 77, 0);
    when("lock") shmem_clear_lock(&word);
    when("team") shmem_team_sync(SHMEM_TEAM_INVALID);
    when("split") local = shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, NULL, NULL, 0, &team);
    when("ctx") shmem_ctx_long_p(SHMEM_CTX_INVALID, &word, 1, 0);
    when("ctx_destroy") shmem_ctx_destroy(SHMEM_CTX_DEFAULT);
    when("ctx_get") local = shmem_ctx_get_team((shmem_ctx_t)heap, &team);
    when("request") local = 0x123456789a00, shmemx_request_wait((shmemx_request_t*)&local);
    when("put_request") shmemx_putmem_nbe(&local, heap, 8, 0, &request);
    when("free") shmem_free(heap + 1);
    when("free_stack") shmem_free(&local);
    when("realloc") heap = shmem_realloc(heap + 1, 8);
    when("reduce") shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &local, &word, 1);
    when("addr") local = shmem_pe_accessible(0) + (shmem_ptr(&word, 0) != NULL), shmem_info_get_name(NULL);
    when("session") shmem_ctx_session_start(SHMEM_CTX_DEFAULT, 0, NULL, 8);
    when("progress") shmemx_request_end(&request);
    when("finalized") shmem_finalize(), shmem_quiet();
    (void)ctx;

    when("crash_alone") *(volatile int*)8 = 1;
    when("crash_null") *(volatile int*)8 = 1;
    when("crash_in_libc") memset((void*)(size_t)(1 << 20), 1, (size_t)getpid());
    when("crash_in_put") shmem_putmem(heap, (void*)64, (size_t)getpid(), 0);
    when("crash_division") exit(5 / zero);
    when("crash_trap") __builtin_trap();
    when("crash_sent") raise(SIGBUS);
    when("crash_nowhere") *(volatile char*)0x8000000000000000ul = 1;
    char* const file = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(tmpfile()), 0);
    when("crash_bus") *(volatile char*)file = 1;
    char* const first = shmem_ptr(heap, 0);
    mprotect(first + 4096 - (size_t)first % 4096, 4096, strncmp(chosen, "crash", 5) ? PROT_WRITE : PROT_NONE);
    when("crash_heap") *(volatile char*)(first + 4096 - (size_t)first % 4096) = 1;
    deeper(0);
    pthread_t thread;
    pthread_create(&thread, NULL, crash, NULL);
    pthread_join(thread, NULL);
    signal(SIGSEGV, own_handler);
    when("crash_own_after") *(volatile int*)8 = 1;
}

static void crash_in_child(void) {
    int status = 0;
    if (fork() == 0)
        when("crash_child") *(volatile int*)8 = 1;
    wait(&status);
    printf("child: signal %d\n", WTERMSIG(status));
}

void go(const char* name) {
    chosen = name;
    when("before") shmem_quiet();
    if (strcmp(name, "crash_own_before") == 0)
        signal(SIGSEGV, own_handler);
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    long* const heap = shmem_malloc(1 << 20);
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    if (me == n - 1 && strcmp(name, "crash_child") == 0)
        crash_in_child();
    else if (me == n - 1 && strcmp(name, "crash_own_before") == 0)
        *(volatile int*)8 = 1;
    else if (me == n - 1 && strcmp(name, "different") && strcmp(name, "posted") && strcmp(name, "warned"))
        go_wrong(heap, n);
    if (me == 0)
        when("different") shmem_team_sync(SHMEM_TEAM_WORLD);
    if (me != 0 && strcmp(name, "different") == 0) shmem_barrier_all();
    when("posted") shmemx_broadcastmem_nbe(SHMEM_TEAM_WORLD, heap, heap, 8, 99, &request), shmemx_request_wait(&request);
    when("warned") shmem_align(3, 64);
    shmem_barrier_all();
    shmem_finalize();
}
#endif

#ifndef LIBRARY
int main(int argc, char** argv) {
    go(argc > 1 ? argv[1] : "");
    return 0;
}
#endif

// global_exit STATUS: the last PE ends the job with STATUS while the others wait for ever; test_jobs.py looks at the
// result. HEDDLE_TEST_FILE: what that PE has not flushed, its exit handlers and the destructors of its static objects
// leave their words there. HEDDLE_TEST_LATE=1: an exit handler asks the library for something, which it may not.
// HEDDLE_TEST_THREADS=N: so many threads of that PE call on meanwhile, while a handler takes HEDDLE_TEST_NAP_MS.
#include "check.h"
#include "tables.h"

#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

FILE* file;

struct AtTheEnd {
    ~AtTheEnd() {
        if (file)
            fprintf(file, "destructor\n");
    }
} at_the_end;

void handler() {
    usleep(static_cast<useconds_t>(conformance::number("HEDDLE_TEST_NAP_MS", 0)) * 1000);
    fprintf(file, "handler\n");
}

void late() {
    shmem_my_pe();
}

[[noreturn]] void call_on() {
    static long lock, counter;
    for (;;) {
        shmem_set_lock(&lock);
        shmem_long_atomic_inc(&counter, 0);
        shmem_quiet();
        shmem_clear_lock(&lock);
    }
}

}  // namespace

int main(int argc, char** argv) {
    static long never;
    conformance::start("global_exit");
    if (conformance::pe == conformance::n_pes - 1) {
        if (const char* name = getenv("HEDDLE_TEST_FILE")) {
            file = fopen(name, "w");
            CHECK(file && fprintf(file, "unflushed\n") > 0);
            CHECK_EQ(atexit(handler), 0);
            CHECK_EQ(atexit(shmem_finalize), 0);  // as wrappers of the library do: no finalize any more
        }
        if (conformance::number("HEDDLE_TEST_LATE", 0))
            CHECK_EQ(atexit(late), 0);
        for (uint64_t i = 0; i < conformance::number("HEDDLE_TEST_THREADS", 0); ++i) std::thread(call_on).detach();
        printf("leaving\n");
        shmem_global_exit(argc > 1 ? atoi(argv[1]) : 0);
    }
    shmem_long_wait_until(&never, SHMEM_CMP_NE, 0);
    return 99;
}

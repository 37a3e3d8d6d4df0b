// Puts of words to another node that a request captures: it is not complete before the target has them. The target makes
// progress in its calls alone (HEDDLE_PROGRESS=manual), and PE 0 says by signals when it makes none. So what the request
// must not say yet, it cannot say.
#include "check.h"

#include <shmemx.h>
#include <unistd.h>
#include <csignal>
#include <cstdint>

using namespace conformance;

namespace {

long never, pid_of_peer;
long* words;                      // in the heap, where inlined code puts
volatile sig_atomic_t asked = 0;  // SIGUSR1s that have come

void on_signal(int) {
    asked = asked + 1;
}

// PE 1: makes progress, stands still, ... from signal to signal, each of which it answers; ends standing still.
void serve(int signals) {
    for (int seen = 0; seen < signals;) {
        if (seen % 2 == 0)
            shmem_long_test(&never, SHMEM_CMP_NE, 0);
        else
            usleep(100);
        if (asked == seen)
            continue;
        ++seen;
        kill(static_cast<pid_t>(pid_of_peer), SIGUSR1);
    }
}

// PE 0: the other one changes between progress and standing still, and has done so when this returns.
void change() {
    const sig_atomic_t before = asked;
    kill(static_cast<pid_t>(pid_of_peer), SIGUSR1);
    while (asked == before) usleep(100);
}

int is_complete(shmemx_request_t* request) {
    for (int i = 0; i < 200; ++i)
        if (shmemx_request_test(request))
            return 1;
    return 0;
}

void post_and_wait(shmem_ctx_t ctx, bool is_last) {
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    long value = 7;
    if (is_last) {
        shmem_ctx_long_put_nbi(ctx, &words[3], &value, 1, 1);
        shmem_ctx_quiet(ctx);
    }
    shmemx_request_begin(&request);
    if (!is_last) {  // finds its way under the capture, and completes
        shmem_ctx_long_put_nbi(ctx, &words[0], &value, 1, 1);
        while (!is_complete(&request)) continue;
    }
    change();  // stands still
    shmem_ctx_long_put_nbi(ctx, &words[1], &value, 1, 1);
    shmemx_request_end(&request);
    CHECK_EQ(is_complete(&request), 0);
    change();  // makes progress
    shmemx_request_wait(&request);
    shmem_ctx_long_put_nbi(ctx, &words[2], &value, 1, 1);  // not captured any more
    CHECK(request == SHMEMX_REQUEST_NULL);
}

}  // namespace

int main() {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    sigaction(SIGUSR1, &action, nullptr);
    start("captured_far");
    subject = "captured puts of words";
    CHECK_EQ(n_pes, 2);
    words = static_cast<long*>(shmem_calloc(4, sizeof *words));
    shmem_ctx_t others[3];
    for (shmem_ctx_t& ctx : others) CHECK_EQ(shmem_ctx_create(0, &ctx), 0);
    shmem_long_p(&pid_of_peer, getpid(), 1 - pe);
    for (const shmem_ctx_t ctx : others) shmem_ctx_long_p(ctx, &words[3], 1, 1 - pe);
    for (const shmem_ctx_t ctx : others) shmem_ctx_quiet(ctx);
    shmem_barrier_all();
    if (pe == 0) {
        for (const shmem_ctx_t ctx : {others[0], others[1], SHMEM_CTX_DEFAULT})
            for (const bool is_last : {false, true}) post_and_wait(ctx, is_last);
    } else {
        serve(12);
    }
    shmem_barrier_all();
    if (pe == 1)
        for (int i = 1; i < 3; ++i) CHECK_EQ(words[i], 7);
    return finish();
}

// What completion.h declares.
#include "completion.h"

#include <sched.h>
#include <cstdlib>
#include <iterator>

shmemx_request_t* conformance_request;

namespace conformance {

namespace {

shmemx_request_t the_request;
bool is_private, is_shared;

shmemx_request_t allocate(long options) {
    shmemx_request_t request;
    CHECK_EQ(shmemx_request_allocate(&request, options), 0);
    CHECK(request != SHMEMX_REQUEST_NULL);
    return request;
}

// A PRIVATE request is made anew, where there is one to be.
void renew() {
    if (is_private && the_request == SHMEMX_REQUEST_NULL)
        the_request = allocate(SHMEMX_REQUEST_PRIVATE);
}

void quiet_all() {
    shmem_ctx_quiet(conformance_ctx), shmem_quiet();
}

bool is_quiet(shmem_ctx_t ctx) {
    const int result = shmemx_ctx_quiet_test(ctx);
    CHECK(result == 0 || result == 1);
    return result == 1;
}

void test_until_complete(shmemx_request_t* request) {
    for (;;) {
        const int result = shmemx_request_test(request);
        CHECK(result == 0 || result == 1);
        if (result == 1)
            return;
        sched_yield();  // other PEs may need the core to come to it
    }
}

// By the functions that look at several: way 0 wait_any, 1 wait_some, 2 test_any.
void complete_among_others(shmemx_request_t* request, size_t way) {
    shmemx_request_t several[3] = {SHMEMX_REQUEST_NULL, SHMEMX_REQUEST_NULL, *request};
    size_t index = SIZE_MAX, indices[3];
    const bool is_null = *request == SHMEMX_REQUEST_NULL;
    if (way == 0) {
        index = shmemx_request_wait_any(3, several);
    } else if (way == 1) {
        CHECK_EQ(shmemx_request_wait_some(3, several, indices), is_null ? 0 : 1);
        index = is_null ? SIZE_MAX : indices[0];
    } else {
        while ((index = shmemx_request_test_any(3, several)) == SIZE_MAX && several[2] != SHMEMX_REQUEST_NULL)
            sched_yield();
    }
    CHECK_EQ(index, is_null ? SIZE_MAX : 2);
    CHECK(several[0] == SHMEMX_REQUEST_NULL && several[1] == SHMEMX_REQUEST_NULL);
    *request = several[2];
}

// It becomes part of another one, alone or twice over, and that one is waited for.
void complete_as_a_part(shmemx_request_t* request, size_t way, bool shared) {
    shmemx_request_t whole = way == 1 ? allocate(SHMEMX_REQUEST_SHARED) : SHMEMX_REQUEST_NULL;
    shmemx_request_t parts[] = {SHMEMX_REQUEST_NULL, *request, SHMEMX_REQUEST_NULL};
    shmemx_request_merge(&whole, 3, parts);
    for (shmemx_request_t part : parts) CHECK(part == SHMEMX_REQUEST_NULL);
    *request = shared ? allocate(SHMEMX_REQUEST_SHARED) : SHMEMX_REQUEST_NULL;
    if (way == 2) {
        shmemx_request_t outer = SHMEMX_REQUEST_NULL;
        shmemx_request_merge(&outer, 1, &whole);
        CHECK(whole == SHMEMX_REQUEST_NULL);
        whole = outer;
    }
    shmemx_request_wait(&whole);
    CHECK_EQ(whole != SHMEMX_REQUEST_NULL, way == 1);
    shmemx_request_free(&whole);
    CHECK(whole == SHMEMX_REQUEST_NULL);
}

// By what completes the operations and leaves the request.
void complete_by_contexts(shmemx_request_t* request, size_t way) {
    switch (way) {
        case 0:
            return quiet_all();
        case 1:
            while (!is_quiet(conformance_ctx) || !is_quiet(SHMEM_CTX_DEFAULT)) continue;
            return;
        case 2:
            shmemx_request_wait_local(request);
            return quiet_all();
        default:
            shmemx_ctx_quiet_local(conformance_ctx);
            shmemx_ctx_quiet_local(SHMEM_CTX_DEFAULT);
            return quiet_all();
    }
}

}  // namespace

void complete_request(shmemx_request_t* request, bool shared, size_t way) {
    const shmemx_request_t before = *request;
    switch (way % kWays) {
        case 0:
        case 1:
            shmemx_request_wait(request);
            break;
        case 2:
            test_until_complete(request);
            break;
        case 3:
            shmemx_request_free(request);
            CHECK(*request == SHMEMX_REQUEST_NULL);
            if (shared)
                *request = allocate(SHMEMX_REQUEST_SHARED);
            return;
        case 4:
        case 5:
        case 6:
            complete_among_others(request, way % kWays - 4);
            break;
        case 7:
        case 8:
        case 9:
            return complete_as_a_part(request, way % kWays - 7, shared);
        default:
            complete_by_contexts(request, way % kWays - 10);
            CHECK(*request == before);
            return;
    }
    CHECK(*request == (shared ? before : SHMEMX_REQUEST_NULL));
}

void start_request() {
    const char* kind = getenv("HEDDLE_TEST_REQUEST");
    is_private = kind && strcmp(kind, "private") == 0;
    is_shared = kind && strcmp(kind, "shared") == 0;
    the_request = is_shared ? allocate(SHMEMX_REQUEST_SHARED) : SHMEMX_REQUEST_NULL;
    renew();
    conformance_request = &the_request;
}

void finish_request() {
    shmemx_request_free(&the_request);
    CHECK(the_request == SHMEMX_REQUEST_NULL);
}

namespace {

void complete_the_request(const function_info& info, size_t ways) {
    static size_t way = 0;
    if (info.completion != COMPLETE_AFTER_REQUEST)
        return;
    complete_request(&the_request, is_shared, way++ % ways);
    renew();
}

}  // namespace

void complete(const function_info& info) {
    if (info.completion == COMPLETE_AFTER_QUIET)
        quiet_all();
    complete_the_request(info, kWays);
}

void complete_collective(const function_info& info) {
    complete_the_request(info, kWaysByRequest);
}

}  // namespace conformance

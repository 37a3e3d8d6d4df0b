// Operations under requests (shmemx.h), as links whose quiet is the wait for the request: the loops of the
// non-blocking operations run over them unchanged.
#pragma once

#include "programs/common/link.hpp"
#include "programs/common/shmemx.hpp"

namespace shmem_mt {

// What completes operations: a quiet, a request for each, one that all operations of a thread are merged into, or one
// that all threads of the PE share.
enum class Requests { kNone, kEach, kMerged, kShared };

constexpr const char* kNoRequests = "the library has no requests (shmemx.h)";

#if SHMEM_MT_HAVE_SHMEMX
inline void put_nbe(const DefaultLink&, void* dest, const void* source, size_t bytes, int pe, shmemx_request_t* req) {
    shmemx_putmem_nbe(dest, source, bytes, pe, req);
}
inline void put_signal_nbe(const DefaultLink&, void* dest, const void* source, size_t bytes, uint64_t* signal,
                           uint64_t value, int pe, shmemx_request_t* req) {
    shmemx_putmem_signal_nbe(dest, source, bytes, signal, value, SHMEM_SIGNAL_SET, pe, req);
}
inline void get_nbe(const DefaultLink&, void* dest, const void* source, size_t bytes, int pe, shmemx_request_t* req) {
    shmemx_getmem_nbe(dest, source, bytes, pe, req);
}
inline void fetch_add_nbe(const DefaultLink&, long* fetch, long* dest, long value, int pe, shmemx_request_t* req) {
    shmemx_long_atomic_fetch_add_nbe(fetch, dest, value, pe, req);
}
inline void fetch_nbe(const DefaultLink&, long* fetch, const long* source, int pe, shmemx_request_t* req) {
    shmemx_long_atomic_fetch_nbe(fetch, source, pe, req);
}
inline void compare_swap_nbe(const DefaultLink&, long* fetch, long* dest, long cond, long value, int pe,
                             shmemx_request_t* req) {
    shmemx_long_atomic_compare_swap_nbe(fetch, dest, cond, value, pe, req);
}
inline void exclusive_or_nbe(const DefaultLink&, uint64_t* dest, uint64_t value, int pe, shmemx_request_t* req) {
    shmemx_uint64_atomic_xor_nbe(dest, value, pe, req);
}
#if SHMEM_MT_HAVE_CTX
inline void put_nbe(const ContextLink& link, void* dest, const void* source, size_t bytes, int pe,
                    shmemx_request_t* req) {
    shmemx_ctx_putmem_nbe(link.ctx, dest, source, bytes, pe, req);
}
inline void put_signal_nbe(const ContextLink& link, void* dest, const void* source, size_t bytes, uint64_t* signal,
                           uint64_t value, int pe, shmemx_request_t* req) {
    shmemx_ctx_putmem_signal_nbe(link.ctx, dest, source, bytes, signal, value, SHMEM_SIGNAL_SET, pe, req);
}
inline void get_nbe(const ContextLink& link, void* dest, const void* source, size_t bytes, int pe,
                    shmemx_request_t* req) {
    shmemx_ctx_getmem_nbe(link.ctx, dest, source, bytes, pe, req);
}
inline void fetch_add_nbe(const ContextLink& link, long* fetch, long* dest, long value, int pe, shmemx_request_t* req) {
    shmemx_ctx_long_atomic_fetch_add_nbe(link.ctx, fetch, dest, value, pe, req);
}
inline void fetch_nbe(const ContextLink& link, long* fetch, const long* source, int pe, shmemx_request_t* req) {
    shmemx_ctx_long_atomic_fetch_nbe(link.ctx, fetch, source, pe, req);
}
inline void compare_swap_nbe(const ContextLink& link, long* fetch, long* dest, long cond, long value, int pe,
                             shmemx_request_t* req) {
    shmemx_ctx_long_atomic_compare_swap_nbe(link.ctx, fetch, dest, cond, value, pe, req);
}
inline void exclusive_or_nbe(const ContextLink& link, uint64_t* dest, uint64_t value, int pe, shmemx_request_t* req) {
    shmemx_ctx_uint64_atomic_xor_nbe(link.ctx, dest, value, pe, req);
}
#endif

template <class Base>
struct RequestLink : Base {
    shmemx_request_t* request;
    bool waits;  // false: another thread waits for the request

    RequestLink(const Base& base, shmemx_request_t* own, bool quiet_waits)
        : Base(base), request(own), waits(quiet_waits) {}

    void put_nbi(void* dest, const void* source, size_t bytes, int pe) const {
        put_nbe(*this, dest, source, bytes, pe, request);
    }
    void get_nbi(void* dest, const void* source, size_t bytes, int pe) const {
        get_nbe(*this, dest, source, bytes, pe, request);
    }
    void fetch_add_nbi(long* fetch, long* dest, long value, int pe) const {
        fetch_add_nbe(*this, fetch, dest, value, pe, request);
    }
    void fetch_nbi(long* fetched, const long* source, int pe) const { fetch_nbe(*this, fetched, source, pe, request); }
    void compare_swap_nbi(long* fetched, long* dest, long cond, long value, int pe) const {
        compare_swap_nbe(*this, fetched, dest, cond, value, pe, request);
    }
    void exclusive_or(uint64_t* dest, uint64_t value, int pe) const {
        exclusive_or_nbe(*this, dest, value, pe, request);
    }
    void put_signal_nbi(void* dest, const void* source, size_t bytes, uint64_t* signal, uint64_t value, int pe) const {
        put_signal_nbe(*this, dest, source, bytes, signal, value, pe, request);
    }
    void fence() const { shmemx_request_fence(request); }
    void quiet() const {
        if (waits)
            shmemx_request_wait(request);
    }
};

// One request for all threads of a PE. wait() is called by one of them, after all have posted.
class SharedRequest {
  public:
    SharedRequest() { ok_ = shmemx_request_allocate(&request_, SHMEMX_REQUEST_SHARED) == 0; }
    ~SharedRequest() { shmemx_request_free(&request_); }
    SharedRequest(const SharedRequest&) = delete;
    SharedRequest& operator=(const SharedRequest&) = delete;

    // False when there was no memory.
    bool ok() const { return ok_; }
    shmemx_request_t* get() { return &request_; }
    void wait() { shmemx_request_wait(&request_); }

  private:
    shmemx_request_t request_ = SHMEMX_REQUEST_NULL;
    bool ok_ = false;
};

// Calls f(link) with a link whose non-blocking operations go through `base` under a request of that kind.
template <class Base, class F>
void with_requests(const Base& base, Requests requests, SharedRequest* shared, F&& f) {
    shmemx_request_t own = SHMEMX_REQUEST_NULL;  // becomes a PRIVATE request with the first operation
    const bool is_shared = requests == Requests::kShared;
    f(RequestLink<Base>(base, is_shared ? shared->get() : &own, !is_shared));
}
#else
class SharedRequest {
  public:
    bool ok() const { return false; }
    void wait() {}
};

template <class Base, class F>
void with_requests(const Base& base, Requests, SharedRequest*, F&& f) {
    f(base);
}
#endif

}  // namespace shmem_mt

/* Of shmem.hpp: misuse, ranges and types, environment, array, request. */
#ifndef HEDDLE_CPP_BASE_HPP
#define HEDDLE_CPP_BASE_HPP

#include <shmemx.h>

#include <algorithm>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <ranges>
#include <source_location>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace shmem {

/* A mistake of the caller. */
class misuse : public std::logic_error {
    using std::logic_error::logic_error;
};

namespace detail {

using place = std::source_location;

inline std::string said(const char* call, const std::string& what, const place& at) {
    return "heddle [pe " + std::to_string(::shmem_my_pe()) + "] shmem::" + call + " (" + at.file_name() + ":" +
           std::to_string(at.line()) + "): " + what;
}

[[noreturn]] inline void refuse(const char* call, const std::string& what, const place& at) {
    throw misuse(said(call, what, at));
}

/* n elements that go from one place to another, and their bytes. */
template <class T>
struct copied {
    T* to;
    const T* from;
    size_t n;
    size_t bytes;
};

/* source as a whole, for which dest has room `times`. */
template <class D, class S, class T = std::ranges::range_value_t<D>>
copied<T> fitting(const char* call, D& dest, const S& source, size_t times, const place& at) {
    const size_t n = std::ranges::size(source), has = std::ranges::size(dest);
    if (n > has / times)
        refuse(call,
               "dest has " + std::to_string(has) + " elements: must have at least " + std::to_string(n * times) +
                   (times == 1 ? ", as source has" : ", those of source for each member"),
               at);
    return {std::ranges::data(dest), std::ranges::data(source), n, n * sizeof(T)};
}

/* The result of a C function that is 0 where all went well. */
inline void require_success(int result, const char* call, const place& at) {
    if (result != 0)
        throw std::runtime_error(said(call, "failed with " + std::to_string(result), at));
}

/* The type of C with the bytes of an element. */
template <class R, class T = std::ranges::range_value_t<R>>
using c_type_t = std::conditional_t<std::is_same_v<T, std::complex<double>>, heddle_complexd,
                                    std::conditional_t<std::is_same_v<T, std::complex<float>>, heddle_complexf, T>>;

/* Whether put, get and the collectives that move data have a function for T; otherwise its bytes are moved. */
template <class T>
concept has_own_function = requires(T* dest, const T* source) { ::shmem_put(dest, source, size_t{}, 0); };

}  // namespace detail

/* Elements beside each other: a vector, a span, an array of C. */
template <class R>
concept data_range = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
                     std::is_trivially_copyable_v<std::ranges::range_value_t<R>>;
template <class R>
concept writable_range = data_range<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;
template <class R, class As>
concept data_range_as = data_range<R> && std::same_as<std::ranges::range_value_t<R>, std::ranges::range_value_t<As>>;

enum class compare {
    equal = SHMEM_CMP_EQ,
    not_equal = SHMEM_CMP_NE,
    greater = SHMEM_CMP_GT,
    greater_equal = SHMEM_CMP_GE,
    less = SHMEM_CMP_LT,
    less_equal = SHMEM_CMP_LE
};
enum class signal_op { set = SHMEM_SIGNAL_SET, add = SHMEM_SIGNAL_ADD };

inline int my_pe() {
    return ::shmem_my_pe();
}
inline int n_pes() {
    return ::shmem_n_pes();
}
/* Waits until the variable of this PE compares so. */
template <class T>
void wait_until(T& variable, compare how, std::type_identity_t<T> value) {
    ::shmem_wait_until(&variable, static_cast<int>(how), value);
}
/* wait_until for a signal. Returns its value. */
inline uint64_t wait_signal(uint64_t& signal, compare how, uint64_t value) {
    return ::shmem_signal_wait_until(&signal, static_cast<int>(how), value);
}

/* The library, from init to finalize; collective over all PEs. */
class environment {
  public:
    explicit environment(int thread_level = SHMEM_THREAD_MULTIPLE, const detail::place& at = detail::place::current()) {
        int provided = -1;
        detail::require_success(::shmem_init_thread(thread_level, &provided), "environment", at);
    }
    ~environment() {
        if (std::uncaught_exceptions() > exceptions_) {
            std::fprintf(stderr, "heddle [pe %d] shmem::environment: an exception leaves its scope: ending the job\n",
                         my_pe());
            ::shmem_global_exit(1);
        }
        ::shmem_finalize();
    }
    environment& operator=(environment&&) = delete;

  private:
    int exceptions_ = std::uncaught_exceptions();
};

/* An array of `size` elements on the symmetric heap, collective over all PEs: each has one at the same offset. Elements
 * begin as T() or as `value`. Throws std::bad_alloc on every PE where the heap has no room. Moves, and does not copy. An
 * array without elements allocates nothing. */
template <class T>
    requires std::is_trivially_copyable_v<T>
class array {
  public:
    using value_type = T;

    array() = default;
    explicit array(size_t size, const T& value = T()) : size_(size), exceptions_(std::uncaught_exceptions()) {
        if (size == 0)
            return;
        if (size > SIZE_MAX / sizeof(T))
            throw std::bad_array_new_length();
        constexpr size_t kAlignment = std::max(alignof(T), size_t{64});
        data_ = static_cast<T*>(::shmem_align(kAlignment, size * sizeof(T)));
        if (!data_)
            throw std::bad_alloc();
        std::uninitialized_fill_n(data_, size, value);
        ::shmem_sync_all(); /* no PE writes into another one's array before that has its values */
    }
    ~array() { release(); }
    array(array&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)),
          exceptions_(other.exceptions_) {}
    array& operator=(array&& other) noexcept {
        if (this != &other) {
            release();
            data_ = std::exchange(other.data_, nullptr);
            size_ = std::exchange(other.size_, 0);
            exceptions_ = other.exceptions_;
        }
        return *this;
    }

    T* data() { return data_; }
    const T* data() const { return data_; }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T* begin() { return data_; }
    T* end() { return data_ + size_; }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + size_; }
    T& operator[](size_t i) { return data_[i]; }
    const T& operator[](size_t i) const { return data_[i]; }
    /* Elements [first, first + count), as the dest or source of an operation. */
    std::span<T> part(size_t first, size_t count, const detail::place& at = detail::place::current()) {
        if (first > size_ || count > size_ - first)
            detail::refuse("array::part",
                           std::to_string(count) + " elements from " + std::to_string(first) + " on: the array has " +
                               std::to_string(size_),
                           at);
        return {data_ + first, count};
    }
    std::span<const T> part(size_t first, size_t count, const detail::place& at = detail::place::current()) const {
        return const_cast<array*>(this)->part(first, count, at);
    }
    /* The array of another PE, for loads and stores; empty where these do not reach it. */
    std::span<T> on(int pe) const {
        T* const there = data_ ? static_cast<T*>(::shmem_ptr(data_, pe)) : nullptr;
        return {there, there ? size_ : 0};
    }

  private:
    void release() {
        if (data_ && std::uncaught_exceptions() <= exceptions_)
            ::shmem_free(data_);
    }

    T* data_ = nullptr;
    size_t size_ = 0;
    int exceptions_ = 0;
};

/* A handle for operations that are posted to it. A default one is PRIVATE, and begins with the first operation. The
 * destructor waits for what is posted. Operations that this class does not know take `handle()`. */
class request {
  public:
    request() = default;
    /* A SHARED one: any number of threads post, test and wait. */
    static request shared(const detail::place& at = detail::place::current()) {
        request made;
        detail::require_success(::shmemx_request_allocate(&made.handle_, SHMEMX_REQUEST_SHARED), "request::shared", at);
        return made;
    }
    ~request() {
        if (handle_ != SHMEMX_REQUEST_NULL) /* one without operations may outlive the library */
            ::shmemx_request_free(&handle_);
    }
    request(request&& other) noexcept : handle_(std::exchange(other.handle_, SHMEMX_REQUEST_NULL)) {}
    request& operator=(request&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }

    void wait() { ::shmemx_request_wait(&handle_); }
    /* The sources may be used again. */
    void wait_local() { ::shmemx_request_wait_local(&handle_); }
    [[nodiscard]] bool test() { return ::shmemx_request_test(&handle_) != 0; }
    void fence() { ::shmemx_request_fence(&handle_); }
    /* This one is complete when the other one would be, which is as new then. */
    void merge(request&& other) { ::shmemx_request_merge(&handle_, 1, &other.handle_); }
    shmemx_request_t* handle() { return &handle_; }

  private:
    shmemx_request_t handle_ = SHMEMX_REQUEST_NULL;
};

/* While it lives, the nbi operations of this thread join the request. May not be nested. */
class capture {
  public:
    explicit capture(request& to) : to_(to) { ::shmemx_request_begin(to.handle()); }
    ~capture() { ::shmemx_request_end(to_.handle()); }
    capture& operator=(capture&&) = delete;

  private:
    request& to_;
};

}  // namespace shmem

#endif

/* Of shmem.hpp: contexts, and the operations on them. dest and source are ranges of one type; dest has at least as many
 * elements as source, all of which are moved. pe counts in the team of the context. */
#ifndef HEDDLE_CPP_CONTEXT_HPP
#define HEDDLE_CPP_CONTEXT_HPP

#include <heddle/cpp/base.hpp>

#include <array>
#include <bit>

namespace shmem {

/* A context that something else owns: by default SHMEM_CTX_DEFAULT. */
class context_ref {
  public:
    using place = detail::place;

    context_ref(shmem_ctx_t ctx = SHMEM_CTX_DEFAULT) : ctx_(ctx) {}
    shmem_ctx_t handle() const { return ctx_; }

    /* dest is symmetric. Without a request source may be used again when it returns; with one, when that is complete. */
    template <writable_range D, data_range_as<D> S>
    void put(D&& dest, const S& source, int pe, request* req = nullptr, const place& at = place::current()) const {
        const auto [to, from, n, bytes] = detail::fitting("put", dest, source, 1, at);
        if constexpr (is_typed<D>)
            req ? ::shmemx_put_nbe(ctx_, to, from, n, pe, req->handle()) : ::shmem_put(ctx_, to, from, n, pe);
        else if (req)
            ::shmemx_ctx_putmem_nbe(ctx_, to, from, bytes, pe, req->handle());
        else
            ::shmem_ctx_putmem(ctx_, to, from, bytes, pe);
    }
    /* source is symmetric. With a request dest has the data when that is complete. */
    template <writable_range D, data_range_as<D> S>
    void get(D&& dest, const S& source, int pe, request* req = nullptr, const place& at = place::current()) const {
        const auto [to, from, n, bytes] = detail::fitting("get", dest, source, 1, at);
        if constexpr (is_typed<D>)
            req ? ::shmemx_get_nbe(ctx_, to, from, n, pe, req->handle()) : ::shmem_get(ctx_, to, from, n, pe);
        else if (req)
            ::shmemx_ctx_getmem_nbe(ctx_, to, from, bytes, pe, req->handle());
        else
            ::shmem_ctx_getmem(ctx_, to, from, bytes, pe);
    }
    /* A put, and behind it an update of the signal on pe. */
    template <writable_range D, data_range_as<D> S>
    void put_signal(D&& dest, const S& source, uint64_t& signal, uint64_t value, signal_op op, int pe,
                    request* req = nullptr, const place& at = place::current()) const {
        const auto [to, from, n, bytes] = detail::fitting("put_signal", dest, source, 1, at);
        const int how = static_cast<int>(op);
        if (req)
            ::shmemx_ctx_putmem_signal_nbe(ctx_, to, from, bytes, &signal, value, how, pe, req->handle());
        else
            ::shmem_ctx_putmem_signal(ctx_, to, from, bytes, &signal, value, how, pe);
    }

    /* One value. */
    template <class T>
        requires std::is_trivially_copyable_v<T>
    void p(T& dest, std::type_identity_t<T> value, int pe) const {
        if constexpr (detail::has_own_function<T>)
            ::shmem_p(ctx_, &dest, value, pe);
        else
            ::shmem_ctx_putmem(ctx_, &dest, &value, sizeof value, pe);
    }
    template <class T>
        requires std::is_trivially_copyable_v<T>
    [[nodiscard]] T g(const T& source, int pe) const {
        if constexpr (detail::has_own_function<T>) {
            return ::shmem_g(ctx_, &source, pe);
        } else {
            std::array<std::byte, sizeof(T)> bytes;
            ::shmem_ctx_getmem(ctx_, bytes.data(), &source, sizeof(T), pe);
            return std::bit_cast<T>(bytes);
        }
    }

    /* Atomics. Those with a result return the old value. */
    template <class T>
    [[nodiscard]] T fetch(const T& source, int pe) const {
        return ::shmem_atomic_fetch(ctx_, &source, pe);
    }
    template <class T>
    void set(T& dest, std::type_identity_t<T> value, int pe) const {
        ::shmem_atomic_set(ctx_, &dest, value, pe);
    }
    template <class T>
    T swap(T& dest, std::type_identity_t<T> value, int pe) const {
        return ::shmem_atomic_swap(ctx_, &dest, value, pe);
    }
    template <class T>
    T compare_swap(T& dest, std::type_identity_t<T> expected, std::type_identity_t<T> value, int pe) const {
        return ::shmem_atomic_compare_swap(ctx_, &dest, expected, value, pe);
    }
    template <class T>
    void add(T& dest, std::type_identity_t<T> value, int pe) const {
        ::shmem_atomic_add(ctx_, &dest, value, pe);
    }
    template <class T>
    T fetch_add(T& dest, std::type_identity_t<T> value, int pe) const {
        return ::shmem_atomic_fetch_add(ctx_, &dest, value, pe);
    }
    template <class T>
    T fetch_and(T& dest, std::type_identity_t<T> value, int pe) const {
        return ::shmem_atomic_fetch_and(ctx_, &dest, value, pe);
    }
    template <class T>
    T fetch_or(T& dest, std::type_identity_t<T> value, int pe) const {
        return ::shmem_atomic_fetch_or(ctx_, &dest, value, pe);
    }
    template <class T>
    T fetch_xor(T& dest, std::type_identity_t<T> value, int pe) const {
        return ::shmem_atomic_fetch_xor(ctx_, &dest, value, pe);
    }

    void fence() const { ::shmem_ctx_fence(ctx_); }
    void quiet() const { ::shmem_ctx_quiet(ctx_); }

  protected:
    template <class D>
    static constexpr bool is_typed = detail::has_own_function<std::ranges::range_value_t<D>>;

    shmem_ctx_t ctx_;
};

/* A context of its own, which the destructor completes and destroys. Moves, and does not copy. */
class context : public context_ref {
  public:
    /* options: SHMEM_CTX_PRIVATE, SHMEM_CTX_SERIALIZED, SHMEM_CTX_NOSTORE, SHMEMX_CTX_ORDERED, ... */
    explicit context(long options = 0, const place& at = place::current()) : context_ref(SHMEM_CTX_INVALID) {
        detail::require_success(::shmem_ctx_create(options, &ctx_), "context", at);
    }
    context(shmem_team_t team, long options, const place& at = place::current()) : context_ref(SHMEM_CTX_INVALID) {
        detail::require_success(::shmem_team_create_ctx(team, options, &ctx_), "context", at);
    }
    ~context() {
        if (ctx_ != SHMEM_CTX_INVALID)
            ::shmem_ctx_destroy(ctx_);
    }
    context(context&& other) noexcept : context_ref(std::exchange(other.ctx_, SHMEM_CTX_INVALID)) {}
    context& operator=(context&& other) noexcept {
        std::swap(ctx_, other.ctx_);
        return *this;
    }
};

}  // namespace shmem

#endif

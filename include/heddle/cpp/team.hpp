/* Of shmem.hpp: teams and their collectives. dest and source are symmetric ranges of one type. All members call with as
 * many elements (but for collect); with a request the collective is posted, and complete when the request is. */
#ifndef HEDDLE_CPP_TEAM_HPP
#define HEDDLE_CPP_TEAM_HPP

#include <heddle/cpp/context.hpp>

namespace shmem {

/* A team that something else owns: by default SHMEM_TEAM_WORLD. */
class team_ref {
  public:
    using place = detail::place;

    team_ref(shmem_team_t team = SHMEM_TEAM_WORLD) : team_(team) {}
    static team_ref world() { return SHMEM_TEAM_WORLD; }
    static team_ref shared() { return SHMEM_TEAM_SHARED; }
    shmem_team_t handle() const { return team_; }
    /* Whether this PE is a member: a split gives those that are not an empty team. */
    explicit operator bool() const { return team_ != SHMEM_TEAM_INVALID; }

    int my_pe() const { return ::shmem_team_my_pe(team_); }
    int n_pes() const { return ::shmem_team_n_pes(team_); }
    /* The number in another team of the member `pe`; -1: not there. */
    int translate(int pe, team_ref to = {}) const { return ::shmem_team_translate_pe(team_, pe, to.team_); }
    context make_context(long options = 0, const place& at = place::current()) const {
        member("make_context", at);
        return {team_, options, at};
    }

    void sync(request* req = nullptr, const place& at = place::current()) const {
        member("sync", at);
        check(req ? ::shmemx_team_sync_nbe(team_, req->handle()) : ::shmem_team_sync(team_), "sync", at);
    }
    /* source of member root, to dest of every member. */
    template <writable_range D, data_range_as<D> S>
    void broadcast(D&& dest, const S& source, int root, request* req = nullptr,
                   const place& at = place::current()) const {
        const auto [to, from, n, bytes] = moved("broadcast", dest, source, 1, at);
        check(req ? ::shmemx_broadcastmem_nbe(team_, to, from, bytes, root, req->handle())
                  : ::shmem_broadcastmem(team_, to, from, bytes, root),
              "broadcast", at);
    }
    /* The sources of all members behind each other, as many elements of each. */
    template <writable_range D, data_range_as<D> S>
    void fcollect(D&& dest, const S& source, request* req = nullptr, const place& at = place::current()) const {
        const auto [to, from, n, bytes] = moved("fcollect", dest, source, members("fcollect", at), at);
        check(req ? ::shmemx_fcollectmem_nbe(team_, to, from, bytes, req->handle())
                  : ::shmem_fcollectmem(team_, to, from, bytes),
              "fcollect", at);
    }
    /* fcollect of any number of elements of each member. That dest has room for all is not checked. */
    template <writable_range D, data_range_as<D> S>
    void collect(D&& dest, const S& source, request* req = nullptr, const place& at = place::current()) const {
        const auto [to, from, n, bytes] = moved("collect", dest, source, 1, at);
        check(req ? ::shmemx_collectmem_nbe(team_, to, from, bytes, req->handle())
                  : ::shmem_collectmem(team_, to, from, bytes),
              "collect", at);
    }
    /* Block i of source to member i: source has as many elements for each. */
    template <writable_range D, data_range_as<D> S>
    void alltoall(D&& dest, const S& source, request* req = nullptr, const place& at = place::current()) const {
        const auto [to, from, n, bytes] = moved("alltoall", dest, source, 1, at);
        const size_t count = members("alltoall", at), block = bytes / count;
        if (n % count != 0)
            detail::refuse("alltoall",
                           "source has " + std::to_string(n) + " elements: must have as many for each of " +
                               std::to_string(count) + " members",
                           at);
        check(req ? ::shmemx_alltoallmem_nbe(team_, to, from, block, req->handle())
                  : ::shmem_alltoallmem(team_, to, from, block),
              "alltoall", at);
    }

    /* Reductions and scans of each element, for the types that the function of C takes. */
#define HEDDLE_CPP_REDUCTION(name, function)                                                                       \
    template <writable_range D, data_range_as<D> S>                                                                \
        requires requires(detail::c_type_t<D>* data) { ::shmem_##function(shmem_team_t{}, data, data, size_t{}); } \
    void name(D&& dest, const S& source, request* req = nullptr, const place& at = place::current()) const {       \
        using T = detail::c_type_t<D>;                                                                             \
        const auto [to, from, n, bytes] = moved(#name, dest, source, 1, at);                                       \
        T* const result = reinterpret_cast<T*>(to);                                                                \
        const T* const given = reinterpret_cast<const T*>(from);                                                   \
        check(req ? ::shmemx_##function##_nbe(team_, result, given, n, req->handle())                              \
                  : ::shmem_##function(team_, result, given, n),                                                   \
              #name, at);                                                                                          \
    }
    HEDDLE_CPP_REDUCTION(sum, sum_reduce)
    HEDDLE_CPP_REDUCTION(prod, prod_reduce)
    HEDDLE_CPP_REDUCTION(min, min_reduce)
    HEDDLE_CPP_REDUCTION(max, max_reduce)
    HEDDLE_CPP_REDUCTION(bit_and, and_reduce)
    HEDDLE_CPP_REDUCTION(bit_or, or_reduce)
    HEDDLE_CPP_REDUCTION(bit_xor, xor_reduce)
    HEDDLE_CPP_REDUCTION(inclusive_sum, sum_inscan)
    HEDDLE_CPP_REDUCTION(exclusive_sum, sum_exscan)
#undef HEDDLE_CPP_REDUCTION

  protected:
    static void check(int result, const char* call, const place& at) { detail::require_success(result, call, at); }
    void member(const char* call, const place& at) const {
        if (team_ == SHMEM_TEAM_INVALID)
            detail::refuse(call, "the team is empty: this PE must be a member", at);
    }
    size_t members(const char* call, const place& at) const {
        member(call, at);
        return static_cast<size_t>(n_pes());
    }
    template <class D, class S>
    auto moved(const char* call, D& dest, const S& source, size_t times, const place& at) const {
        member(call, at);
        return detail::fitting(call, dest, source, times, at);
    }

    shmem_team_t team_;
};

/* A team of its own, which the destructor destroys, collectively over the members. Moves, and does not copy. */
class team : public team_ref {
  public:
    /* Members of the parent; collective over it. Empty on those that are not in it. */
    static team split_strided(team_ref parent, int start, int stride, int size, const place& at = place::current()) {
        team made;
        const int result = ::shmem_team_split_strided(parent.handle(), start, stride, size, nullptr, 0, &made.team_);
        detail::require_success(result, "team::split_strided", at);
        return made;
    }
    /* The row and the column of this PE in a grid with xrange columns. */
    static std::pair<team, team> split_2d(team_ref parent, int xrange, const place& at = place::current()) {
        std::pair<team, team> made;
        const int result = ::shmem_team_split_2d(parent.handle(), xrange, nullptr, 0, &made.first.team_, nullptr, 0,
                                                 &made.second.team_);
        detail::require_success(result, "team::split_2d", at);
        return made;
    }
    team() : team_ref(SHMEM_TEAM_INVALID) {}
    ~team() { release(); }
    team(team&& other) noexcept
        : team_ref(std::exchange(other.team_, SHMEM_TEAM_INVALID)), exceptions_(other.exceptions_) {}
    team& operator=(team&& other) noexcept {
        if (this != &other) {
            release();
            team_ = std::exchange(other.team_, SHMEM_TEAM_INVALID);
            exceptions_ = other.exceptions_;
        }
        return *this;
    }

  private:
    void release() {
        if (team_ != SHMEM_TEAM_INVALID && std::uncaught_exceptions() <= exceptions_)
            ::shmem_team_destroy(team_);
    }

    int exceptions_ = std::uncaught_exceptions();
};

}  // namespace shmem

#endif

// Ranges, contexts, teams, requests and arrays of shmem.hpp. Each operation for types with functions of their own, for
// others, and under a request.
#include "check.hpp"

#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

namespace {

struct point {  // moved as bytes
    float x, y;
    std::int32_t id;
    bool operator==(const point&) const = default;
};
struct made {  // not by itself
    explicit made(long with) : what(with) {}
    long what;
};
enum class colour : unsigned char { red, green };

long in_data[4];  // static data is symmetric
int me, n, left, right;

template <class T>
T value(int i) {
    if constexpr (std::is_same_v<T, point>)
        return {static_cast<float>(i), 1.0f, i};
    else
        return static_cast<T>(i);
}

template <class T>
void check_type() {
    shmem::array<T> dest(6), source(6);
    for (int i = 0; i < 6; ++i) source[static_cast<size_t>(i)] = value<T>(10 * me + i);
    const shmem::context own;
    shmem::request req;
    for (const shmem::context_ref ctx : {shmem::context_ref(), static_cast<shmem::context_ref>(own)}) {
        for (shmem::request* const posted : {static_cast<shmem::request*>(nullptr), &req}) {
            std::fill(dest.begin(), dest.end(), T());
            ::shmem_barrier_all();
            ctx.put(dest.part(1, 4), source.part(0, 3), right, posted);
            req.wait();
            ctx.quiet();
            ::shmem_barrier_all();
            EXPECT(dest[0] == T() && dest[1] == value<T>(10 * left) && dest[3] == value<T>(10 * left + 2) &&
                   dest[4] == T());
            std::vector<T> local(6);
            ctx.get(local, source, right, posted);
            req.wait();
            for (size_t i = 0; i < 6; ++i) EXPECT(local[i] == value<T>(10 * right + static_cast<int>(i)));
            ::shmem_sync_all();
        }
        ctx.p(dest[5], source[4], right);
        ctx.quiet();
        ::shmem_barrier_all();
        EXPECT(dest[5] == value<T>(10 * left + 4));
        EXPECT(ctx.g(source[2], right) == value<T>(10 * right + 2));
        ::shmem_sync_all();
    }
}

void check_signals() {
    static std::uint64_t signal;
    shmem::array<double> box(3);
    const std::array<double, 3> sent = {1.0 * me, 2, 3};
    shmem::request req;
    shmem::context_ref().put_signal(box, sent, signal, 1, shmem::signal_op::set, right);
    EXPECT(shmem::wait_signal(signal, shmem::compare::equal, 1) == 1 && box[0] == left);
    ::shmem_sync_all();
    shmem::context_ref().put_signal(box.part(1, 1), std::span(sent).first(1), signal, 4, shmem::signal_op::add, right,
                                    &req);
    shmem::wait_until(signal, shmem::compare::greater, 4u);
    EXPECT(box[1] == left && box[2] == 3);
    req.wait();
    shmem::context_ref().put(in_data, std::vector<long>{me, 1, 2, 3}, right);
    ::shmem_barrier_all();
    EXPECT(in_data[0] == left && in_data[3] == 3);
}

void check_atomics() {
    const shmem::context_ref ctx;
    shmem::array<std::uint64_t> counters(2, 8);
    ::shmem_sync_all();
    ctx.add(counters[0], 2, right);
    ctx.fence();
    EXPECT(ctx.fetch_add(counters[0], 3, right) == 10 && ctx.fetch(counters[0], right) == 13);
    EXPECT(ctx.fetch_and(counters[0], 12, right) == 13 && ctx.fetch_or(counters[0], 3, right) == 12);
    EXPECT(ctx.fetch_xor(counters[0], 1, right) == 15 && ctx.swap(counters[0], 5, right) == 14);
    EXPECT(ctx.compare_swap(counters[0], 4, 1, right) == 5 && ctx.compare_swap(counters[0], 5, 1, right) == 5);
    ctx.set(counters[1], 77, right);
    ::shmem_barrier_all();
    EXPECT(counters[0] == 1 && counters[1] == 77);
}

template <class T>
void check_collectives(shmem::team_ref team, shmem::request* req) {
    const int mine = team.my_pe(), members = team.n_pes();
    const auto count = static_cast<size_t>(members);
    // On the heap of all PEs, where the members' are at one place.
    static shmem::array<T> dest, source;
    dest = shmem::array<T>(2 * static_cast<size_t>(n));
    source = shmem::array<T>(2 * static_cast<size_t>(n));
    const auto wait = [&] {
        if (req)
            req->wait();
    };
    for (int i = 0; i < 2 * n; ++i) source[static_cast<size_t>(i)] = static_cast<T>(10 * mine + i);
    team.sync();
    team.broadcast(dest, source.part(0, 2), members - 1, req);
    wait();
    EXPECT(dest[0] == static_cast<T>(10 * (members - 1)) && dest[1] == static_cast<T>(10 * (members - 1) + 1));
    team.sync(req);
    wait();
    team.fcollect(dest, source.part(0, 2), req);
    wait();
    for (int i = 0; i < members; ++i) EXPECT(dest[static_cast<size_t>(2 * i) + 1] == static_cast<T>(10 * i + 1));
    team.sync();
    team.collect(dest, source.part(0, mine % 2 == 0 ? 2 : 1), req);
    wait();
    EXPECT(dest[0] == T(0) && dest[1] == T(1) && (members < 2 || dest[2] == T(10)));
    team.sync();
    team.alltoall(dest, source.part(0, 2 * count), req);
    wait();
    for (int i = 0; i < members; ++i) EXPECT(dest[static_cast<size_t>(2 * i)] == static_cast<T>(10 * i + 2 * mine));
    team.sync();
    std::fill(source.begin(), source.end(), static_cast<T>(mine + 1));
    team.sum(dest, source.part(0, 2), req);
    wait();
    EXPECT(dest[1] == static_cast<T>(members * (members + 1) / 2));
    team.inclusive_sum(dest, source.part(0, 2), req);
    wait();
    EXPECT(dest[1] == static_cast<T>((mine + 1) * (mine + 2) / 2));
    team.exclusive_sum(dest, source.part(0, 2), req);
    wait();
    EXPECT(dest[1] == static_cast<T>(mine * (mine + 1) / 2));
    if constexpr (!std::is_same_v<T, std::complex<double>>) {
        team.max(dest, source.part(0, 1), req);
        wait();
        EXPECT(dest[0] == static_cast<T>(members));
        team.min(dest, source.part(0, 1), req);
        wait();
        EXPECT(dest[0] == T(1));
    }
    std::fill(source.begin(), source.end(), T(mine == 0 ? 6 : 1));
    team.prod(dest, source.part(0, 2), req);
    wait();
    EXPECT(dest[0] == T(6));
    if constexpr (std::is_same_v<T, unsigned>) {
        std::fill(source.begin(), source.end(), mine == 0 ? 6u : 3u);
        team.bit_or(dest, source.part(0, 1), req);
        wait();
        EXPECT(dest[0] == (members > 1 ? 7u : 6u));
        team.bit_and(dest, source.part(0, 1), req);
        wait();
        EXPECT(dest[0] == (members > 1 ? 2u : 6u));
        team.bit_xor(dest, source.part(0, 1), req);
        wait();
        EXPECT(dest[0] == (6u ^ (members % 2 == 0 ? 3u : 0u)));
    }
    ::shmem_barrier_all();
    dest = {};
    source = {};
}

void check_teams() {
    for (const bool is_posted : {false, true}) {
        shmem::request req;
        shmem::request* const posted = is_posted ? &req : nullptr;
        check_collectives<double>({}, posted);
        check_collectives<unsigned>(shmem::team_ref::world(), posted);
        check_collectives<std::complex<double>>(shmem::team_ref::shared(), posted);
    }
    shmem::team even = shmem::team::split_strided({}, 0, 2, (n + 1) / 2);
    EXPECT(static_cast<bool>(even) == (me % 2 == 0));
    if (even) {
        EXPECT(even.my_pe() == me / 2 && even.n_pes() == (n + 1) / 2 &&
               even.translate(even.n_pes() - 1) == (n - 1) / 2 * 2);
        const shmem::context ctx = even.make_context();
        ctx.p(in_data[1], 100 + even.my_pe(), (even.my_pe() + 1) % even.n_pes());
        ctx.quiet();
        even.sync();
        EXPECT(in_data[1] == 100 + (even.my_pe() + even.n_pes() - 1) % even.n_pes());
    }
    const auto [row, column] = shmem::team::split_2d({}, 2);
    EXPECT(row.my_pe() == me % 2 && column.my_pe() == me / 2);
    shmem::team moved = std::move(even);
    EXPECT(!even && static_cast<bool>(moved) == (me % 2 == 0));  // NOLINT: what a moved team is
}

void check_requests() {
    shmem::array<int> box(8);
    const std::vector<int> one(4, me), two(4, me + 100);
    shmem::request first, second, common = shmem::request::shared();
    const shmem::context_ref ctx;
    ctx.put(box, one, right, &first);
    ctx.put(box.part(4, 4), two, right, &second);
    first.merge(std::move(second));
    first.wait_local();
    first.wait();
    EXPECT(second.test() && first.test());  // NOLINT: what a merged request is
    ::shmem_barrier_all();
    EXPECT(box[0] == left && box[7] == left + 100);
    ::shmem_sync_all();
    ctx.put(box, two, right, &common);
    common.fence();
    common.wait();
    shmem::request kept = std::move(common);
    ctx.put(box.part(4, 4), one, right, &kept);
    kept = shmem::request();  // waits
    ::shmem_barrier_all();
    EXPECT(box[0] == left + 100 && box[7] == left);
    ::shmem_sync_all();
    {
        const shmem::capture here(first);
        ::shmem_int_put_nbi(box.data(), one.data(), 4, right);
    }
    first.wait();
    ::shmem_barrier_all();
    EXPECT(box[3] == left);
}

void check_arrays() {
    shmem::array<long> a(5, 7), empty;
    EXPECT(a.size() == 5 && a[4] == 7 && empty.empty() && empty.on(me).empty() && shmem::array<long>(0).size() == 0);
    EXPECT(std::accumulate(a.begin(), a.end(), 0L) == 35);
    a[0] = me;
    ::shmem_barrier_all();
    if (::shmem_ptr(a.data(), right))
        EXPECT(a.on(right)[0] == right && a.on(right).size() == 5);
    else
        EXPECT(a.on(right).empty());
    const long* const place = a.data();
    shmem::array<long> b = std::move(a);
    EXPECT(b.data() == place && a.empty());  // NOLINT: what a moved array is
    ::shmem_sync_all();
    const shmem::array<long>& constant = b;
    shmem::context_ref().put(b.part(0, 2), constant.part(3, 2), me);
    EXPECT(b[0] == 7 && b[1] == 7);
    shmem::array<made> others(1, made(me));
    ::shmem_barrier_all();
    EXPECT(shmem::context_ref().g(others[0], right).what == right);
    ::shmem_sync_all();
    b = shmem::array<long>(3);
    EXPECT(b.size() == 3 && b[2] == 0);
    struct alignas(256) line {
        char bytes[256];
    };
    shmem::array<line> lines(2);
    EXPECT(reinterpret_cast<std::uintptr_t>(lines.data()) % 256 == 0);
    bool is_refused = false;
    try {
        const shmem::array<char> large(size_t{1} << 40);
    } catch (const std::bad_alloc&) {
        is_refused = true;
    }
    EXPECT(is_refused);
}

}  // namespace

int main() {
    const shmem::environment library;
    me = shmem::my_pe(), n = shmem::n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
    check_type<char>();
    check_type<long>();
    check_type<float>();
    check_type<long double>();
    check_type<std::complex<double>>();
    check_type<point>();
    check_type<colour>();
    check_signals();
    check_atomics();
    check_teams();
    check_requests();
    check_arrays();
    pass("ranges");
}

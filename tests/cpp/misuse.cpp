// Mistakes that shmem.hpp sees: each throws shmem::misuse before anything is moved, and its text names place and value.
#include "check.hpp"

#include <string>
#include <vector>

namespace {

template <class Function>
void refused(const Function& function, unsigned line, const std::string& what) {
    const std::string wanted = "misuse.cpp:" + std::to_string(line) + "): " + what;
    std::string text = "nothing";
    try {
        function();
    } catch (const shmem::misuse& mistake) {
        text = mistake.what();
    }
    const std::string start = "heddle [pe " + std::to_string(shmem::my_pe()) + "] shmem::";
    if (text.find(wanted) == std::string::npos || text.find(start) != 0) {
        std::fprintf(stderr, "wanted ...%s\nthrown %s\n", wanted.c_str(), text.c_str());
        ::shmem_global_exit(1);
    }
}

#define REFUSED(what, ...) refused([&] { __VA_ARGS__; }, __LINE__, what)

// What the compiler refuses.
struct point {
    int x, y;
};
using ints = std::vector<int>;
using points = std::vector<point>;

template <class D, class S>
concept can_put = requires(shmem::context_ref ctx, D& dest, S& source) { ctx.put(dest, source, 0); };
static_assert(can_put<ints, ints> && can_put<ints, const ints> && can_put<points, points>);
static_assert(!can_put<ints, std::vector<float>> && !can_put<const ints, ints>);
static_assert(!can_put<std::vector<std::string>, std::vector<std::string>> && !can_put<std::vector<bool>, ints>);

template <class T>
concept can_p = requires(shmem::context_ref ctx, T& dest) { ctx.p(dest, dest, 0); };
static_assert(can_p<int> && can_p<point> && !can_p<std::string>);

template <class R>
concept can_sum = requires(shmem::team_ref team, R& dest) { team.sum(dest, dest); };
template <class R>
concept can_and = requires(shmem::team_ref team, R& dest) { team.bit_and(dest, dest); };
static_assert(can_sum<ints> && !can_sum<points> && !can_sum<std::vector<bool>>);
static_assert(can_and<std::vector<unsigned>> && !can_and<std::vector<float>>);

template <class T>
concept can_have_array = requires { typename shmem::array<T>; };
static_assert(can_have_array<point> && !can_have_array<std::string>);
static_assert(!std::is_copy_constructible_v<shmem::array<int>> && !std::is_copy_constructible_v<shmem::request>);
static_assert(!std::is_copy_constructible_v<shmem::team> && !std::is_copy_constructible_v<shmem::context>);

}  // namespace

int main() {
    const shmem::environment library;
    const int n = shmem::n_pes();
    const auto members = static_cast<size_t>(n);
    shmem::array<int> dest(4), source(5);
    const shmem::context_ref ctx;
    const shmem::team_ref world;
    std::uint64_t* const signal = nullptr;
    REFUSED("dest has 4 elements: must have at least 5, as source has", ctx.put(dest, source, 0));
    REFUSED("dest has 4 elements: must have at least 5, as source has", ctx.get(dest, source, 0));
    REFUSED("dest has 4 elements: must have at least 5",
            ctx.put_signal(dest, source, *signal, 1, shmem::signal_op::set, 0));
    REFUSED("3 elements from 2 on: the array has 4", (void)dest.part(2, 3));
    REFUSED("1 elements from 5 on: the array has 4", (void)dest.part(5, 1));
    REFUSED("dest has 4 elements: must have at least 5", world.broadcast(dest, source, 0));
    REFUSED("dest has 4 elements: must have at least " + std::to_string(5 * members) +
                (n == 1 ? ", as source has" : ", those of source for each member"),
            world.fcollect(dest, source));
    REFUSED("dest has 4 elements: must have at least 5", world.sum(dest, source));
    if (n > 2)
        REFUSED("dest has 4 elements: must have at least " + std::to_string(2 * members) + ", those of source for each",
                world.fcollect(dest, source.part(0, 2)));
    if (n > 1) {
        const std::span<char> endless(reinterpret_cast<char*>(dest.data()), SIZE_MAX / members + 1);
        REFUSED("dest has 16 elements: must have at least", world.fcollect(endless.first(16), endless));
        shmem::array<int> uneven(members + 1);
        REFUSED("source has " + std::to_string(n + 1) + " elements: must have as many for each of " + std::to_string(n),
                world.alltoall(uneven, uneven));
    }
    const shmem::team none;
    REFUSED("the team is empty: this PE must be a member", none.sync());
    REFUSED("the team is empty: this PE must be a member", none.sum(dest, dest));
    REFUSED("the team is empty: this PE must be a member", (void)none.make_context());
    const shmem::array<int>& constant = dest;
    REFUSED("3 elements from 2 on: the array has 4", (void)constant.part(2, 3));
    pass("misuse");
}

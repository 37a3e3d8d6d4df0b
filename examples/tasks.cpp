/* shmem.hpp (C++20): a stencil whose halos are fetched by coroutines. Each step a task for either neighbor gets the
 * border cell of that, and computes the cell beside it; a third task computes the inner cells meanwhile. Checked against
 * the same computation by one PE. Argument: steps. */
#include <shmem.hpp>

#include <cmath>
#include <cstdlib>
#include <vector>

namespace {

constexpr size_t kCells = 64; /* of each PE */

struct Ring {
    shmem::array<double> cells[2] = {shmem::array<double>(kCells), shmem::array<double>(kCells)}; /* by step */
};

double next_of(double left, double middle, double right) {
    return middle + 0.25 * (left - 2 * middle + right);
}

double initial(size_t cell) {
    return cell == 0 ? 1000.0 : static_cast<double>(cell % 3);
}

/* side 0: the cell at my left end, whose outer neighbor is the last one of the PE on the left. */
shmem::task compute_end(Ring& ring, int side, uint64_t step) {
    const int me = shmem::my_pe(), n = shmem::n_pes();
    const size_t end = side == 0 ? 0 : kCells - 1, inside = side == 0 ? 1 : kCells - 2, there = kCells - 1 - end;
    shmem::array<double>&now = ring.cells[step % 2], &next = ring.cells[(step + 1) % 2];
    double outside = 0;
    shmem::request fetched;
    shmem::context_ref().get(std::span(&outside, 1), now.part(there, 1), (me + (side == 0 ? n - 1 : 1)) % n, &fetched);
    co_await fetched;
    next[end] = side == 0 ? next_of(outside, now[end], now[inside]) : next_of(now[inside], now[end], outside);
}

shmem::task compute_inside(Ring& ring, uint64_t step) {
    const shmem::array<double>& now = ring.cells[step % 2];
    for (size_t i = 1; i + 1 < kCells; ++i) ring.cells[(step + 1) % 2][i] = next_of(now[i - 1], now[i], now[i + 1]);
    co_return;
}

/* The whole ring by one PE. */
std::vector<double> expected(size_t cells, uint64_t steps) {
    std::vector<double> now(cells), next(cells);
    for (size_t i = 0; i < cells; ++i) now[i] = initial(i);
    for (uint64_t step = 0; step < steps; ++step, now.swap(next))
        for (size_t i = 0; i < cells; ++i)
            next[i] = next_of(now[(i + cells - 1) % cells], now[i], now[(i + 1) % cells]);
    return now;
}

}  // namespace

int main(int argc, char** argv) {
    const shmem::environment library;
    const uint64_t steps = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 50;
    const auto me = static_cast<size_t>(shmem::my_pe()), n = static_cast<size_t>(shmem::n_pes());
    Ring ring;
    for (size_t i = 0; i < kCells; ++i) ring.cells[0][i] = initial(me * kCells + i);
    shmem::team_ref::world().sync();
    for (uint64_t step = 0; step < steps; ++step) {
        shmem::executor tasks;
        tasks.spawn(compute_end(ring, 0, step));
        tasks.spawn(compute_end(ring, 1, step));
        tasks.spawn(compute_inside(ring, step));
        tasks.run();
        shmem::team_ref::world().sync();
    }
    shmem::array<double> wrong(1), most(1);
    const std::vector<double> right = expected(n * kCells, steps);
    for (size_t i = 0; i < kCells; ++i)
        wrong[0] = std::fmax(wrong[0], std::fabs(ring.cells[steps % 2][i] - right[me * kCells + i]));
    shmem::team_ref::world().max(most, wrong);
    if (most[0] > 1e-9)
        ::shmem_global_exit(1);
    if (me == 0)
        std::printf("tasks: pass on %zu PEs\n", n);
}

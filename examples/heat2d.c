/* Heat in a square plate by Jacobi iteration: each PE has a block of rows, and puts its outer rows into the halo of its
 * neighbours with a signal that says for which step they are. Nothing else keeps the PEs in step: a neighbour's signal
 * of a step also says that it has read the halo that the next one overwrites. Now and then the change of a step is a
 * max reduction. Checked against the same iteration on one PE, bit by bit. Arguments: points a side, steps. */
#include <math.h>
#include <string.h>
#include "example.h"

enum { kLook = 20 }; /* steps from one look at the change to the next */

static size_t side;

/* One step on rows [first, last) of a plate; returns the largest change. */
static double relax(double* to, const double* from, size_t first, size_t last) {
    double largest = 0;
    for (size_t row = first; row < last; ++row) {
        for (size_t column = 1; column + 1 < side; ++column) {
            const double* at = from + row * side + column;
            const double value = 0.25 * (at[-1] + at[1] + at[-(ptrdiff_t)side] + at[side]);
            largest = fmax(largest, fabs(value - at[0]));
            to[row * side + column] = value;
        }
    }
    return largest;
}

static double start_value(size_t row, size_t column) {
    return row == 0 ? 100.0 : row + 1 == side ? 10.0 + (double)column : 0.0;
}

int main(int argc, char** argv) {
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    side = example_size(argc, argv, 1, 61);
    REQUIRE(side >= 3, "a plate needs an inside");
    const size_t steps = example_size(argc, argv, 2, 100), inner = side - 2;
    /* Inner rows are dealt out evenly; a PE may have none. Row r of a block is row begin + r of the plate; row 0 and
     * the last one are halos. */
    const size_t begin = inner * (size_t)me / (size_t)n, end = inner * (size_t)(me + 1) / (size_t)n, rows = end - begin;
    const size_t most = inner / (size_t)n + 1;
    double* plates[2];
    for (int i = 0; i < 2; ++i) plates[i] = shmem_calloc((most + 2) * side, sizeof(double));
    uint64_t* arrived = shmem_calloc(2, sizeof(uint64_t)); /* from above, from below: the step of what is in the halo */
    double* change = shmem_calloc(2, sizeof(double));      /* mine, everybody's */
    for (int i = 0; i < 2; ++i)
        for (size_t row = 0; row < rows + 2; ++row)
            for (size_t column = 0; column < side; ++column)
                plates[i][row * side + column] = start_value(begin + row, column);
    shmem_barrier_all();

    /* Neighbours that have rows. */
    int above = me - 1, below = me + 1;
    while (above >= 0 && inner * (size_t)above / (size_t)n == inner * (size_t)(above + 1) / (size_t)n) --above;
    while (below < n && inner * (size_t)below / (size_t)n == inner * (size_t)(below + 1) / (size_t)n) ++below;
    for (size_t step = 1; step <= steps; ++step) {
        double* from = plates[(step + 1) % 2];
        double* to = plates[step % 2];
        change[0] = rows ? relax(to, from, 1, rows + 1) : 0;
        shmem_fence(); /* what is put now may not overtake the rows and the signal of the step before */
        if (rows && above >= 0) {
            const size_t theirs = inner * (size_t)(above + 1) / (size_t)n - inner * (size_t)above / (size_t)n;
            shmem_double_put_signal(to + (theirs + 1) * side, to + side, side, &arrived[1], step, SHMEM_SIGNAL_SET,
                                    above);
        }
        if (rows && below < n)
            shmem_double_put_signal(to, to + rows * side, side, &arrived[0], step, SHMEM_SIGNAL_SET, below);
        if (rows && above >= 0)
            shmem_signal_wait_until(&arrived[0], SHMEM_CMP_GE, step);
        if (rows && below < n)
            shmem_signal_wait_until(&arrived[1], SHMEM_CMP_GE, step);
        if (step % kLook == 0 || step == steps)
            shmem_double_max_reduce(SHMEM_TEAM_WORLD, &change[1], &change[0], 1);
    }

    double* serial[2];
    double serial_change = 0;
    for (int i = 0; i < 2; ++i) {
        serial[i] = malloc(side * side * sizeof(double));
        for (size_t at = 0; at < side * side; ++at) serial[i][at] = start_value(at / side, at % side);
    }
    for (size_t step = 1; step <= steps; ++step)
        serial_change = relax(serial[step % 2], serial[(step + 1) % 2], 1, side - 1);
    REQUIRE(memcmp(plates[steps % 2] + side, serial[steps % 2] + (begin + 1) * side, rows * side * sizeof(double)) == 0,
            "the plate differs from the serial one");
    REQUIRE(change[1] == serial_change, "the last change is %g, serially %g", change[1], serial_change);
    return example_pass("heat2d");
}

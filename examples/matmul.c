/* C = A * B, all matrices in blocks of rows: the blocks of B travel around the ring of PEs, the next one arriving by
 * non-blocking get while this one is used. Checked against the serial product. Argument: rows. */
#include <math.h>
#include "example.h"

static double a_of(size_t i, size_t j) {
    return (double)((i * 7 + j * 3) % 11) - 5;
}
static double b_of(size_t i, size_t j) {
    return (double)((i * 5 + j * 2) % 13) - 6;
}

int main(int argc, char** argv) {
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    const size_t rows = example_size(argc, argv, 1, 53), each = (rows + (size_t)n - 1) / (size_t)n;
    const size_t begin = each * (size_t)me < rows ? each * (size_t)me : rows;
    const size_t end = begin + each < rows ? begin + each : rows;
    double* b = shmem_calloc(each * rows + 1, sizeof(double));
    double* panels[2] = {calloc(each * rows + 1, sizeof(double)), calloc(each * rows + 1, sizeof(double))};
    double* c = calloc(each * rows + 1, sizeof(double));
    for (size_t i = begin; i < end; ++i)
        for (size_t j = 0; j < rows; ++j) b[(i - begin) * rows + j] = b_of(i, j);
    shmem_barrier_all();

    shmem_get(panels[0], b, each * rows, me);
    for (int turn = 0; turn < n; ++turn) {
        const int owner = (me + turn) % n;
        const double* panel = panels[turn % 2];
        if (turn + 1 < n)
            shmem_get_nbi(panels[(turn + 1) % 2], b, each * rows, (me + turn + 1) % n);
        for (size_t k = 0; k < each && (size_t)owner * each + k < rows; ++k)
            for (size_t i = begin; i < end; ++i)
                for (size_t j = 0; j < rows; ++j)
                    c[(i - begin) * rows + j] += a_of(i, (size_t)owner * each + k) * panel[k * rows + j];
        shmem_quiet(); /* the next panel is here */
    }
    for (size_t i = begin; i < end; ++i) {
        for (size_t j = 0; j < rows; ++j) {
            double sum = 0; /* small integers: exact in any order */
            for (size_t k = 0; k < rows; ++k) sum += a_of(i, k) * b_of(k, j);
            REQUIRE(c[(i - begin) * rows + j] == sum, "C[%zu][%zu] is %g, right is %g", i, j, c[(i - begin) * rows + j],
                    sum);
        }
    }
    return example_pass("matmul");
}

/* y = A x on a grid of PEs: the first PE of each column team broadcasts its part of x down the column, every PE
 * multiplies its block, and a sum reduction along the row teams gives y. Then each PE greets its right neighbour by its
 * number in the row. Arguments: columns of the grid, rows and columns of a block. */
#include "example.h"

static long a_of(long i, long j) {
    return (i * 3 + j * 5) % 7 - 3;
}
static long x_of(long j) {
    return j % 9 - 4;
}

int main(int argc, char** argv) {
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    const int width = (int)example_size(argc, argv, 1, 3) < n ? (int)example_size(argc, argv, 1, 3) : n;
    const long block = (long)example_size(argc, argv, 2, 19);
    shmem_team_t row, column;
    REQUIRE(shmem_team_split_2d(SHMEM_TEAM_WORLD, width, NULL, 0, &row, NULL, 0, &column) == 0, "no grid");
    const int x = shmem_team_my_pe(row), y = shmem_team_my_pe(column);
    REQUIRE(x == me % width && y == me / width, "PE %d is at (%d, %d)", me, x, y);
    REQUIRE(shmem_team_translate_pe(row, x, SHMEM_TEAM_WORLD) == me, "the row does not know me");

    const size_t nelems = (size_t)block;
    long* xs = shmem_calloc(nelems, sizeof(long));
    long* part = shmem_calloc(nelems, sizeof(long));
    long* result = shmem_calloc(nelems, sizeof(long));
    if (y == 0)
        for (long j = 0; j < block; ++j) part[j] = x_of(x * block + j);
    shmem_broadcast(column, xs, part, nelems, 0);
    shmem_team_sync(column); /* part may be written again: the first PE's has been read */
    for (long i = 0; i < block; ++i) {
        part[i] = 0;
        for (long j = 0; j < block; ++j) part[i] += a_of(y * block + i, x * block + j) * xs[j];
    }
    shmem_sum_reduce(row, result, part, nelems);
    const long columns = shmem_team_n_pes(row) * block; /* the last row may be shorter */
    for (long i = 0; i < block; ++i) {
        long right = 0;
        for (long j = 0; j < columns; ++j) right += a_of(y * block + i, j) * x_of(j);
        REQUIRE(result[i] == right, "y[%ld] is %ld, right is %ld", y * block + i, result[i], right);
    }

    shmem_ctx_t ctx;
    REQUIRE(shmem_team_create_ctx(row, 0, &ctx) == 0, "no context on the row");
    long* greeting = shmem_calloc(1, sizeof(long));
    const int length = shmem_team_n_pes(row), right_of_me = (x + 1) % length, left_of_me = (x + length - 1) % length;
    shmem_p(ctx, greeting, 1000L + me, right_of_me);
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
    REQUIRE(*greeting == 1000 + shmem_team_translate_pe(row, left_of_me, SHMEM_TEAM_WORLD), "greeted by %ld",
            *greeting);
    REQUIRE(*(long*)shmem_team_ptr(row, greeting, x) == *greeting, "my own copy is another");
    shmem_ctx_destroy(ctx);
    shmem_team_destroy(row);
    shmem_team_destroy(column);
    return example_pass("teams2d");
}

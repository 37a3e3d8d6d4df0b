/* Examples of the manual pages. What follows a line "== PAGE ==" up to the next one is on that page; the test of the
 * pages compiles all files into one program, and calls each function on each PE. */
#include <assert.h>
#include <shmem.h>

/* == shmem_p == */
void number_to_the_right(void) {
    static int left; /* symmetric */
    int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_p(&left, me, (me + 1) % n);
    shmem_barrier_all();
    assert(left == (me + n - 1) % n);
}

/* == shmem_g == */
void number_of_the_right(void) {
    static int mine;
    int right = (shmem_my_pe() + 1) % shmem_n_pes();
    mine = shmem_my_pe();
    shmem_barrier_all();
    assert(shmem_g(&mine, right) == right);
}

/* == shmem_put == */
void row_to_the_right(void) {
    static double halo[100];
    double edge[100];
    int me = shmem_my_pe(), n = shmem_n_pes();
    for (int i = 0; i < 100; ++i) edge[i] = me;
    shmem_put(halo, edge, 100, (me + 1) % n); /* shmem_double_put */
    shmem_barrier_all();
    assert(halo[99] == (me + n - 1) % n);
}

/* == shmem_get == */
void row_of_the_right(void) {
    static double row[100];
    double copy[100];
    int right = (shmem_my_pe() + 1) % shmem_n_pes();
    row[99] = shmem_my_pe();
    shmem_barrier_all();
    shmem_get(copy, row, 100, right);
    assert(copy[99] == right);
}

/* == shmem_put_nbi == */
void put_and_compute(void) {
    static double there[100];
    static double block[100];
    shmem_put_nbi(there, block, 100, 0);
    /* computation that leaves block as it is */
    shmem_quiet();
    block[0] = 1;
}

/* == shmem_get_nbi == */
void get_and_compute(void) {
    static double row[100];
    double copy[100];
    row[0] = 1;
    shmem_barrier_all();
    shmem_get_nbi(copy, row, 100, 0);
    /* computation that does not need copy */
    shmem_quiet();
    assert(copy[0] == 1);
}

/* == shmem_iput == */
/* A row of this PE becomes a column of PE 0. */
void row_to_column(void) {
    static int matrix[10][10];
    int row[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    if (shmem_my_pe() == 0)
        shmem_iput(&matrix[0][3], row, 10, 1, 10, 0);
    shmem_barrier_all();
    assert(shmem_my_pe() != 0 || matrix[9][3] == 9);
}

/* == shmem_iget == */
/* A column of PE 0 becomes a row here. */
void column_to_row(void) {
    static int matrix[10][10];
    int row[10];
    matrix[9][3] = 9;
    shmem_barrier_all();
    shmem_iget(row, &matrix[0][3], 1, 10, 10, 0);
    assert(row[9] == 9);
}

/* == shmem_ibput == */
/* Three columns side by side, of each of ten rows, to PE 0. */
void columns_to_first(void) {
    static int there[10][3];
    int matrix[10][10] = {{0}};
    matrix[9][2] = 7;
    if (shmem_my_pe() == 0)
        shmem_ibput(&there[0][0], &matrix[0][0], 3, 10, 3, 10, 0);
    shmem_barrier_all();
    assert(shmem_my_pe() != 0 || there[9][2] == 7);
}

/* == shmem_ibget == */
/* Three columns side by side, of each of ten rows, of PE 0. */
void columns_of_first(void) {
    static int matrix[10][10];
    int here[10][3];
    matrix[9][2] = 7;
    shmem_barrier_all();
    shmem_ibget(&here[0][0], &matrix[0][0], 3, 10, 3, 10, 0);
    assert(here[9][2] == 7);
}

/* unique_id FILE PE PES [WAY [VALUE]]: a PE of a job that finds itself by the unique id in the file, which PE 0 writes.
 * WAY, beside well and what pmi.c knows: serve: no PE, but the process that makes the id, and lives until its standard
 * input ends; twice: init and finalize two times; threads: by shmemx_init_thread_uniqueid; other: then once more as
 * another PE, which fails; die: PE VALUE is killed after init, and so child, with a child of each PE that stays; fatal: PE VALUE ends by a message; after: PE 0 ends at
 * once, the others a second later. */
#include <shmemx.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long sum;

static void write_id(const char* file) {
    shmemx_uniqueid_t id;
    if (shmemx_get_uniqueid(&id) != 0)
        exit(2);
    char name[4096];
    snprintf(name, sizeof name, "%s.new", file);
    FILE* stream = fopen(name, "w");
    if (!stream || fwrite(&id, sizeof id, 1, stream) != 1 || fclose(stream) != 0 || rename(name, file) != 0)
        exit(2);
}

static shmemx_uniqueid_t read_id(const char* file) {
    shmemx_uniqueid_t id;
    FILE* stream = NULL;
    while (!(stream = fopen(file, "r"))) usleep(10000);
    if (fread(&id, sizeof id, 1, stream) != 1 || fclose(stream) != 0)
        exit(2);
    return id;
}

static void work(int me, int pes) {
    sum = 0;
    shmem_barrier_all();
    for (int pe = 0; pe < pes; ++pe) shmem_long_atomic_add(&sum, me + 1, pe);
    shmem_barrier_all();
    int near = 0;
    for (int pe = 0; pe < pes; ++pe) near += shmem_ptr(&sum, pe) != NULL;
    printf("PE %d of %d: %ld, %d near\n", me, pes, sum, near);
    fflush(stdout);
    shmem_barrier_all(); /* all have written before a PE ends the job */
}

int main(int argc, char** argv) {
    const char* way = argc > 4 ? argv[4] : "well";
    const int pe = atoi(argv[2]), pes = atoi(argv[3]), value = argc > 5 ? atoi(argv[5]) : -1;
    if (strcmp(way, "serve") == 0) {
        char byte;
        write_id(argv[1]);
        while (read(0, &byte, 1) > 0) {
        }
        return 0;
    }
    if (pe == 0 && access(argv[1], F_OK) != 0)
        write_id(argv[1]);
    const shmemx_uniqueid_t id = read_id(argv[1]);
    int provided = -1;
    const int status = strcmp(way, "threads") == 0
                           ? shmemx_init_thread_uniqueid(&id, pe, pes, SHMEM_THREAD_MULTIPLE, &provided)
                           : shmemx_init_uniqueid(&id, pe, pes);
    if (status != 0) {
        printf("PE %d: init returns %d\n", pe, status);
        return 3;
    }
    const int me = shmem_my_pe();
    if (me != pe || shmem_n_pes() != pes || (strcmp(way, "threads") == 0 && provided != SHMEM_THREAD_MULTIPLE))
        return 4;
    work(me, pes);
    if (strcmp(way, "child") == 0) { /* ends with the standard input, which is the test's */
        char byte;
        if (fork() == 0) {
            close(1);
            close(2);
            _exit((int)read(0, &byte, 1));
        }
        shmem_barrier_all();
    }
    if ((strcmp(way, "die") == 0 || strcmp(way, "child") == 0) && me == value)
        raise(SIGKILL);
    if (strcmp(way, "fatal") == 0 && me == value)
        shmem_long_p(&sum, 1, pes);
    if (strcmp(way, "global") == 0 && me == value)
        shmem_global_exit(5);
    if (strcmp(way, "die") == 0 || strcmp(way, "child") == 0 || strcmp(way, "fatal") == 0 || strcmp(way, "global") == 0)
        shmem_long_wait_until(&sum, SHMEM_CMP_LT, 0);
    if (strcmp(way, "other") == 0)
        printf("again %d, another %d\n", shmemx_init_uniqueid(&id, pe, pes),
               shmemx_init_uniqueid(&id, (pe + 1) % pes, pes) != 0);
    if (strcmp(way, "other") == 0)
        shmem_finalize();
    shmem_finalize();
    if (strcmp(way, "twice") == 0) {
        if (shmemx_init_uniqueid(&id, pe, pes) != 0)
            return 5;
        work(me, pes);
        shmem_finalize();
    }
    if (strcmp(way, "after") == 0 && me > 0)
        sleep(1);
    if (strcmp(way, "hurry") == 0)
        _exit(0);
    return 0;
}

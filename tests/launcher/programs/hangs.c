/* Hangs in the way that its first argument names. PE 0 does the one thing, all others do the other. The tests find the
 * lines of calls by the words in their comments. */
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static long never;
static int flag[8] = {0, 0, 0, 2};
static uint64_t signals[2] = {2, 2};
static long lock;
static int rounds;

static void wait_for_ever(void) {
    shmem_long_wait_until(&never, SHMEM_CMP_NE, 0); /* line: never */
}

static void spin(void) {
    for (volatile long i = 0;; ++i) { /* line: spin */
    }
}

static void hang(const char* how, int me) {
    if (!strcmp(how, "barrier")) {
        if (me == 0)
            wait_for_ever();
        shmem_barrier_all(); /* line: barrier */
    } else if (!strcmp(how, "until")) {
        shmem_int_wait_until(&flag[3], SHMEM_CMP_GE, 3); /* line: until */
    } else if (!strcmp(how, "written")) {
        if (me == shmem_n_pes() - 1)
            for (int pe = 0; pe <= me; ++pe) shmem_int_p(&flag[3], 1, pe); /* line: plain */
        shmem_int_wait_until(&flag[3], SHMEM_CMP_GE, 3);                   /* line: written */
    } else if (!strcmp(how, "counted")) {
        if (me == 0)
            for (int pe = 0; pe < shmem_n_pes(); ++pe) shmem_int_atomic_add(&flag[0], 1, pe);
        shmem_barrier_all();
        if (me == shmem_n_pes() - 1)
            for (int pe = 0; pe <= me; ++pe) shmem_int_atomic_add(&flag[0], 1, pe); /* line: last addition */
        shmem_int_wait_until(&flag[0], SHMEM_CMP_EQ, 3);                            /* line: counted */
    } else if (!strcmp(how, "signalled")) {
        if (me == shmem_n_pes() - 1)
            for (int pe = 0; pe <= me; ++pe)
                shmem_int_put_signal(flag, flag + 4, 2, signals, 7, SHMEM_SIGNAL_SET, pe); /* line: put with signal */
        shmem_signal_wait_until(signals, SHMEM_CMP_EQ, 8);                                 /* line: signalled */
    } else if (!strcmp(how, "rounds")) {
        for (int round = 0; round < rounds; ++round) shmem_barrier_all();
        if (me == 0)
            wait_for_ever();
        shmem_barrier_all(); /* line: last round */
    } else if (!strcmp(how, "heap")) {
        int* word = shmem_calloc(64, sizeof *word);
        word[5] = -7;
        shmem_int_wait_until(word + 5, SHMEM_CMP_GT, -1); /* line: heap */
    } else if (!strcmp(how, "any")) {
        shmem_int_wait_until_any(flag, 3, NULL, SHMEM_CMP_NE, 0); /* line: any */
    } else if (!strcmp(how, "signal")) {
        shmem_signal_wait_until(&signals[1], SHMEM_CMP_EQ, 3); /* line: signal */
    } else if (!strcmp(how, "lock")) {
        if (me == 0)
            shmem_set_lock(&lock); /* line: held */
        shmem_sync_all();
        if (me == 0)
            shmem_barrier_all(); /* line: barrier with lock */
        shmem_set_lock(&lock);   /* line: lock */
    } else if (!strcmp(how, "lock twice")) {
        shmem_set_lock(&lock);
        shmem_set_lock(&lock); /* line: second lock */
    } else if (!strcmp(how, "teams")) {
        shmem_team_t first, second;
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0, &first);
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0, &second);
        if (me == 0)
            shmem_team_sync(first); /* line: first team */
        shmem_team_sync(second);    /* line: second team */
    } else if (!strcmp(how, "mismatch")) {
        if (me == 0)
            shmem_int_broadcast(SHMEM_TEAM_WORLD, flag, flag + 4, 1, 1); /* line: broadcast */
        shmem_barrier_all();                                             /* line: mismatched barrier */
    } else if (!strcmp(how, "finalize")) {
        if (me == 0)
            spin();
        shmem_finalize(); /* line: finalize */
    } else if (!strcmp(how, "quiet")) {
        if (me != 0)
            spin();
        while (access("pid.1", F_OK) != 0) /* PE 1 takes nothing any more */
            usleep(1000);
        shmem_long_p(&never, 1, 1);
        shmem_quiet(); /* line: quiet */
    } else if (!strcmp(how, "dies")) {
        shmem_free(shmem_malloc(800));
        shmem_barrier_all();
        if (me == shmem_n_pes() - 1)
            raise(SIGKILL);
        shmem_barrier_all();
    } else if (!strcmp(how, "spin")) {
        spin();
    } else if (!strcmp(how, "barriers")) {
        while (1) shmem_barrier_all();
    } else if (!strcmp(how, "raises")) {
        raise(SIGTERM);
    } else if (!strcmp(how, "forks")) {
        const pid_t child = fork();
        if (child == 0)
            spin();
        int status = 0;
        kill(child, SIGTERM);
        waitpid(child, &status, 0);
        exit(WIFSIGNALED(status) ? WTERMSIG(status) : 97);
    }
}

static void end_well(int number) {
    (void)number;
    _exit(77);
}

int main(int argc, char** argv) {
    char name[64], new_name[64];
    if (argc > 2 && !strcmp(argv[2], "handles"))
        signal(SIGTERM, end_well);
    shmem_init();
    if (argc > 2 && !strcmp(argv[2], "handles later"))
        signal(SIGTERM, end_well);
    snprintf(name, sizeof name, "pid.%d", shmem_my_pe());
    snprintf(new_name, sizeof new_name, "new.%d", shmem_my_pe());
    FILE* file = fopen(new_name, "w");
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
    rename(new_name, name);
    rounds = argc > 2 ? atoi(argv[2]) : 0;
    hang(argc > 1 ? argv[1] : "barrier", shmem_my_pe());
    fprintf(stderr, "PE %d did not hang\n", shmem_my_pe());
    return 98;
}

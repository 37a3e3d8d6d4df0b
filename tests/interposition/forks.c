/* A child of a PE is no PE; the PE goes on. */
#include <shmem.h>
#include <sys/wait.h>
#include <unistd.h>

static long word;

int main(void) {
    int status;
    shmem_init();
    if (fork() == 0) {
        shmem_long_p(&word, 1, 0);
        _exit(0);
    }
    wait(&status);
    shmem_long_p(&word, 2, 0);
    status = status == 0 || word != 2;
    shmem_finalize();
    return status;
}

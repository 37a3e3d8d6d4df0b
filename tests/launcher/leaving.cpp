// Ends of programs that have not called shmem_finalize, and of some that have. Arguments: how the library is started
// (init, start_pes), then what each PE does, the last word for all others; each word is a function below.
#define HEDDLE_SILENCE_DEPRECATED
#include <shmem.h>

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

long arrived, never, taken, psync[SHMEM_REDUCE_SYNC_SIZE];
int in, out, work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
int me, n;
const char* what = "";
volatile sig_atomic_t signalled;

void pass_on() {
    shmem_long_p(&arrived, 1, (me + 1) % n);
}

void say(const char* text) {
    printf("PE %d: %s\n", me, text);
}

// At the end of the program, when all its handlers that were registered later have run.
struct AtTheVeryEnd {
    ~AtTheVeryEnd() {
        if (strcmp(what, "destructor") == 0) {
            pass_on();
            shmem_barrier_all();
            say(arrived == 1 ? "destructed" : "wrong");
        }
        if (strcmp(what, "destructor_finalizes") == 0)
            shmem_finalize();
    }
} at_the_very_end;

void handler() {
    pass_on();
    shmem_barrier_all();
    say(arrived == 1 ? "handled" : "wrong");
}

void leave_by_handler(int) {
    exit(0);
}

// --- What a PE does

void nothing() {}
// The others wait for this one, which still reaches them.
void late() {
    usleep(300000);
    pass_on();
    say("late");
}
void finalize() {
    shmem_finalize();
}
void nested() {
    shmem_init();
    shmem_init();
    shmem_finalize();
}
void register_handler() {
    atexit(handler);
}
void from_another_thread() {
    std::thread([] { exit(0); }).join();
}
// The end of the program is that of what other threads do, too.
void while_another_waits() {
    std::thread([] {
        usleep(100000);
        exit(0);
    }).detach();
    shmem_long_wait_until(&never, SHMEM_CMP_NE, 0);
}
// Others leave long before a thread of this PE ends the wait: to wait for that is right.
void until_own_thread() {
    std::thread other([] {
        usleep(1500000);
        shmem_long_p(&arrived, 1, me);
    });
    shmem_long_wait_until(&arrived, SHMEM_CMP_NE, 0);
    other.join();
    say("served");
}
void children() {
    int sum = 0, status = 0;
    for (int value = 0; value < 6; value += 3)
        if (fork() == 0)
            exit(value);
    while (wait(&status) > 0) sum += WEXITSTATUS(status);
    say(sum == 3 ? "has had children" : "wrong");
}
void half_a_line() {
    printf("half a line of PE %d", me);
}
void abort_later() {
    usleep(1000 * static_cast<useconds_t>(atoi(what + strlen("abort_after_"))));
    abort();
}
void barrier() {
    shmem_barrier_all();
    say("past the barrier");
}
void barrier_beside_a_thread() {
    std::thread([] { pause(); }).detach();
    barrier();
}
void until() {
    shmem_long_wait_until(&never, SHMEM_CMP_NE, 0);
}
void reduce() {
    shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &out, &in, 1);
}
void broadcast() {
    shmem_int_broadcast(SHMEM_TEAM_WORLD, &out, &in, 1, 1);
}
void to_all() {
    shmem_int_sum_to_all(&out, &in, 1, 0, 0, n, work, psync);
}
void lock() {
    shmem_set_lock(&taken);
}
void status_3() {
    exit(3);
}
void past_exit() {
    _exit(0);
}
void quickly() {
    quick_exit(0);
}
// exit is called where a wait in the library is interrupted.
void by_signal() {
    signal(SIGUSR1, leave_by_handler);
    std::thread([main = pthread_self()] {
        usleep(300000);
        pthread_kill(main, SIGUSR1);
    }).detach();
    until();
}
void global_exit() {
    shmem_global_exit(5);
}
void reach_the_first() {
    signal(SIGTERM, SIG_IGN);
    usleep(200000);
    shmem_long_p(&arrived, 1, 0);
    shmem_quiet();
}
// Tells the test its number, and waits for SIGUSR1.
void await_signal() {
    char name[64], new_name[64];
    signal(SIGUSR1, [](int) { signalled = 1; });
    snprintf(name, sizeof name, "pid.%d", me);
    snprintf(new_name, sizeof new_name, "new.%d", me);
    FILE* file = fopen(new_name, "w");
    fprintf(file, "%d\n", getpid());
    fclose(file);
    rename(new_name, name);
    while (signalled == 0) usleep(10000);
    say("signalled");
}
void second_program() {
    shmem_finalize();
    execl("/proc/self/exe", "leaving", "init", "nothing", nullptr);
}
void second_program_unfinalized() {
    execl("/proc/self/exe", "leaving", "init", "nothing", nullptr);
}

const struct {
    const char* name;
    void (*run)();
} kWords[] = {{"nothing", nothing},
              {"destructor", nothing},
              {"destructor_finalizes", nothing},
              {"late", late},
              {"finalize", finalize},
              {"nested", nested},
              {"handler", register_handler},
              {"from_another_thread", from_another_thread},
              {"while_another_waits", while_another_waits},
              {"until_own_thread", until_own_thread},
              {"children", children},
              {"half_a_line", half_a_line},
              {"abort_after_300", abort_later},
              {"abort_after_3000", abort_later},
              {"abort_after_10000", abort_later},
              {"barrier", barrier},
              {"barrier_beside_a_thread", barrier_beside_a_thread},
              {"until", until},
              {"reduce", reduce},
              {"broadcast", broadcast},
              {"to_all", to_all},
              {"lock", lock},
              {"status_3", status_3},
              {"past_exit", past_exit},
              {"quickly", quickly},
              {"by_signal", by_signal},
              {"global_exit", global_exit},
              {"reach_the_first", reach_the_first},
              {"await_signal", await_signal},
              {"second_program", second_program},
              {"second_program_unfinalized", second_program_unfinalized}};

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3)
        return 2;
    if (strcmp(argv[1], "finalize_before_init") == 0)
        atexit(shmem_finalize);
    if (strcmp(argv[1], "start_pes") == 0) {
        start_pes(0);
        start_pes(n);
        shmem_long_p(&never, 0, _my_pe());
        start_pes(1);
    } else {
        shmem_init();
    }
    me = shmem_my_pe();
    n = shmem_n_pes();
    what = argv[me + 2 < argc ? me + 2 : argc - 1];
    for (const auto& word : kWords) {
        if (strcmp(word.name, what) == 0) {
            word.run();
            return 0;
        }
    }
    return 2;
}

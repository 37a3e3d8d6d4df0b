/* The program that `heddle-info --check` starts on each PE: check_pe STEP_S, seconds that a step may take.
 *
 * A PE writes what it knows of itself into static data before shmem_init, so that others may read it by gets at any time
 * afterwards. Of each node the first PE, its leader, then talks to each other node's: no collective comes before that,
 * for one that hangs would not tell which pair it hangs on. A thread of each PE watches the time: it names the step that
 * takes too long, and ends the job.
 *
 * Each failure is a line of its own on stderr; PE 0 ends with status 1 when there was one. Calls are not inlined
 * (CMakeLists.txt): a library that is loaded first may stand in for them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <shmem.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    kNameBytes = 64,
    kSettingsBytes = 16 * 1024,
    kMostLeaders = 4096,
    kMostBlockWords = 8 * 1024, /* 64 KiB: large enough for a path that carries small packets only */
    kAllBlockWords = 2 * 1024 * 1024,
    kMostFailures = 20 /* lines of one PE */
};

struct Process {
    char host[kNameBytes], boot[kNameBytes], version[SHMEM_MAX_NAME_LEN];
    uint64_t library, settings; /* hashes of the library's file, and of the text of the settings */
    long leader;                /* of the PE's node, + 1; 0: not known yet */
};

/* Symmetric. words, counters and blocks: by the number of the leader that writes. */
static struct Process about;
static char settings[kSettingsBytes];
static uint64_t words[kMostLeaders + 1], counters[kMostLeaders + 1], blocks[kAllBlockWords];
static long failures; /* of all PEs, on PE 0 */

static struct Process* all; /* by PE */
static int* leaders;
static int me, n_pes, n_leaders, own_failures;

/* --- The watch over the time */

static double step_s = 30;
static char step_text[2][512];    /* the step under way is in the text that `step` numbers */
static atomic_int step;           /* release in begin_step pairs with acquire in watch */
static atomic_uint_least64_t due; /* when it takes too long, in ns; the same pairing */

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* share: of a step's time. A PE that waits for others has more than those that may hang, which then tell why. */
__attribute__((format(printf, 2, 3))) static void begin_step(double share, const char* format, ...) {
    const int next = 1 - atomic_load_explicit(&step, memory_order_relaxed);
    va_list words_of_it;
    va_start(words_of_it, format);
    vsnprintf(step_text[next], sizeof step_text[next], format, words_of_it);
    va_end(words_of_it);
    atomic_store_explicit(&due, now_ns() + (uint64_t)(share * step_s * 1e9), memory_order_release);
    atomic_store_explicit(&step, next, memory_order_release);
}

static void* watch(void* unused) {
    for (;;) {
        usleep(50000);
        if (now_ns() > atomic_load_explicit(&due, memory_order_acquire)) {
            fprintf(stderr, "heddle-info: FAILED: %s has not ended in time\n",
                    step_text[atomic_load_explicit(&step, memory_order_acquire)]);
            _exit(1);
        }
    }
    return unused;
}

__attribute__((format(printf, 1, 2))) static void fail(const char* format, ...) {
    if (++own_failures > kMostFailures)
        return;
    char text[1024];
    va_list words_of_it;
    va_start(words_of_it, format);
    vsnprintf(text, sizeof text, format, words_of_it);
    va_end(words_of_it);
    fprintf(stderr, "heddle-info: FAILED: %s\n", text);
}

/* --- What a PE knows of itself */

static void add_to_hash(uint64_t* hash, const unsigned char* data, size_t bytes) { /* FNV-1a */
    for (size_t i = 0; i < bytes; ++i) *hash = (*hash ^ data[i]) * 0x100000001b3u;
}

static uint64_t hash_of_library(void) {
    uint64_t hash = 0xcbf29ce484222325u;
    Dl_info info;
    void* const function = dlsym(RTLD_DEFAULT, "shmem_init");
    FILE* const file = function && dladdr(function, &info) ? fopen(info.dli_fname, "rb") : NULL;
    unsigned char piece[4096];
    for (size_t bytes; file && (bytes = fread(piece, 1, sizeof piece, file)) > 0;) add_to_hash(&hash, piece, bytes);
    if (file)
        fclose(file);
    return hash;
}

static int by_text(const void* a, const void* b) {
    return strcmp(*(char* const*)a, *(char* const*)b);
}

/* Not of the settings: what each PE is told of its own. */
static int is_setting(const char* variable) {
    static const char* const kinds[] = {"HEDDLE_", "SHMEM_", "SMA_", "UCX_"};
    static const char* const own[] = {"HEDDLE_PE=", "HEDDLE_JOB", "HEDDLE_LIFELINE_FD=", "HEDDLE_HANDED_OVER",
                                      "HEDDLE_DEADLINE="};
    int is_one = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i)
        is_one |= strncmp(variable, kinds[i], strlen(kinds[i])) == 0;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; ++i) is_one &= strncmp(variable, own[i], strlen(own[i])) != 0;
    return is_one;
}

static void describe_this_process(void) {
    char* sorted[512];
    size_t count = 0, used = 0;
    for (char** variable = environ; *variable && count < sizeof sorted / sizeof sorted[0]; ++variable)
        if (is_setting(*variable))
            sorted[count++] = *variable;
    qsort(sorted, count, sizeof sorted[0], by_text);
    for (size_t i = 0; i < count && used < sizeof settings; ++i)
        used += (size_t)snprintf(settings + used, sizeof settings - used, "%s\n", sorted[i]);
    about.settings = 0xcbf29ce484222325u;
    add_to_hash(&about.settings, (const unsigned char*)settings, strlen(settings));
    about.library = hash_of_library();
    gethostname(about.host, sizeof about.host - 1);
    FILE* const file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file) {
        if (!fgets(about.boot, sizeof about.boot, file))
            about.boot[0] = '\0';
        fclose(file);
    }
}

/* --- What it learns of the others */

static const char* host_of(int pe) {
    return all[pe].leader ? all[pe].host : "?";
}

/* Fetches what each PE knows of itself, once it knows its node. */
static void meet_all(void) {
    all = calloc((size_t)n_pes, sizeof *all);
    leaders = calloc((size_t)n_pes, sizeof *leaders);
    if (!all || !leaders) {
        fprintf(stderr, "heddle-info: no memory for a table of %d PEs\n", n_pes);
        shmem_global_exit(1);
    }
    all[me] = about;
    for (int distance = 0; distance < n_pes; ++distance) {
        const int pe = (me + distance) % n_pes;
        begin_step(1, "a get by PE %d (host %s) from PE %d", me, about.host, pe);
        while (shmem_getmem(&all[pe], &about, sizeof about, pe), all[pe].leader == 0) usleep(1000);
        all[pe].host[kNameBytes - 1] = all[pe].boot[kNameBytes - 1] = all[pe].version[SHMEM_MAX_NAME_LEN - 1] = '\0';
    }
    for (int pe = 0; pe < n_pes && n_leaders < kMostLeaders; ++pe)
        if (all[pe].leader == pe + 1)
            leaders[n_leaders++] = pe;
}

/* --- The operations of a pair */

static uint64_t pattern(int from, int to, size_t at) {
    return ((uint64_t)from + 1) * 0x9e3779b97f4a7c15u ^ ((uint64_t)to + 1) << 20 ^ at;
}

static const char* pair_text(int from, int to) {
    static char text[4 * kNameBytes];
    snprintf(text, sizeof text, "PE %d (host %s) and PE %d (host %s)", from, host_of(from), to, host_of(to));
    return text;
}

/* slot: of this PE in the other's arrays; nothing else writes there. */
static void test_pair(int to, int slot, size_t block_words) {
    static uint64_t sent[kMostBlockWords], back[kMostBlockWords];
    const char* const pair = pair_text(me, to);
    uint64_t word = 0;
    for (size_t i = 0; i < block_words; ++i) sent[i] = pattern(me, to, i + 1);
    begin_step(1, "a put between %s", pair);
    shmem_uint64_put(&words[slot], (const uint64_t[]){pattern(me, to, 0)}, 1, to);
    shmem_uint64_put(&blocks[(size_t)slot * block_words], sent, block_words, to);
    shmem_quiet();
    begin_step(1, "a get between %s", pair);
    shmem_uint64_get(&word, &words[slot], 1, to);
    shmem_uint64_get(back, &blocks[(size_t)slot * block_words], block_words, to);
    if (word != pattern(me, to, 0))
        fail("put and get between %s: 0x%llx was put, a get brought 0x%llx", pair,
             (unsigned long long)pattern(me, to, 0), (unsigned long long)word);
    for (size_t i = 0; i < block_words; ++i)
        if (back[i] != sent[i]) {
            fail("put and get between %s: word %zu of %zu was put as 0x%llx, a get brought 0x%llx", pair, i,
                 block_words, (unsigned long long)sent[i], (unsigned long long)back[i]);
            break;
        }
    begin_step(1, "an atomic operation between %s", pair);
    const uint64_t before = shmem_uint64_atomic_fetch_add(&counters[slot], 7, to);
    const uint64_t after = shmem_uint64_atomic_fetch(&counters[slot], to);
    if (before != 0 || after != 7)
        fail("atomics between %s: adding 7 to 0 found %llu and left %llu", pair, (unsigned long long)before,
             (unsigned long long)after);
}

/* After all have written: what is here. */
static void test_arrivals(int from, int slot) {
    if (words[slot] != pattern(from, me, 0))
        fail("a put between %s: 0x%llx was sent, 0x%llx has arrived", pair_text(from, me),
             (unsigned long long)pattern(from, me, 0), (unsigned long long)words[slot]);
    if (counters[slot] != 7)
        fail("an atomic between %s: 7 was added to 0, %llu is there", pair_text(from, me),
             (unsigned long long)counters[slot]);
}

/* --- The verdicts of PE 0 */

/* The length of a line to be shown: of one that is secret, the name and "=" alone. */
static size_t shown_length(const char* line, size_t length) {
    static const char kSecret[] = "HEDDLE_LAUNCH_TOKEN=";
    return strncmp(line, kSecret, strlen(kSecret)) == 0 ? strlen(kSecret) : length;
}

/* The lines of `mine` that are not in `theirs`, each as a failure. */
static void tell_lines(const char* mine, const char* theirs, int with, int without) {
    for (const char* line = mine; *line;) {
        const size_t length = strcspn(line, "\n");
        int found = 0;
        for (const char* other = theirs; *other && !found;) {
            const size_t other_length = strcspn(other, "\n");
            found = other_length == length && memcmp(line, other, length) == 0;
            other += other_length + (other[other_length] != '\0');
        }
        if (!found)
            fail("the settings differ: %.*s%s on PE %d (host %s), not on PE %d (host %s)",
                 (int)shown_length(line, length), line, shown_length(line, length) < length ? "(not shown)" : "", with,
                 host_of(with), without, host_of(without));
        line += length + (line[length] != '\0');
    }
}

static void compare_all(void) {
    static char theirs[kSettingsBytes];
    int is_told = 0;
    for (int pe = 1; pe < n_pes; ++pe) {
        if (all[pe].library != all[0].library && all[pe].leader == pe + 1)
            fail(
                "PE %d (host %s) has another libheddle.so (%s) than PE 0 (host %s; %s): right would be one "
                "installation",
                pe, host_of(pe), all[pe].version, host_of(0), all[0].version);
        if (all[pe].settings != all[0].settings && !is_told) {
            begin_step(1, "a get by PE 0 (host %s) from PE %d (host %s)", host_of(0), pe, host_of(pe));
            shmem_getmem(theirs, settings, sizeof theirs, pe);
            theirs[sizeof theirs - 1] = '\0';
            tell_lines(settings, theirs, 0, pe);
            tell_lines(theirs, settings, pe, 0);
            is_told = 1; /* the next ones are most likely the same */
        }
        for (int i = 0; i < n_leaders; ++i) {
            const int other = leaders[i];
            if (other < pe && all[pe].leader == pe + 1 && !getenv("HEDDLE_TEST_PES_PER_NODE") &&
                strcmp(all[pe].host, all[other].host) == 0 && strcmp(all[pe].boot, all[other].boot) == 0) {
                fail("PE %d and PE %d are on host %s, but share no memory (containers?)", other, pe, host_of(pe));
                break;
            }
        }
    }
}

static void print_nodes(void) {
    printf("check: %d PE%s on %d node%s\n", n_pes, n_pes == 1 ? "" : "s", n_leaders, n_leaders == 1 ? "" : "s");
    for (int i = 0; i < n_leaders && i < kMostFailures; ++i) {
        int count = 0;
        for (int pe = 0; pe < n_pes; ++pe) count += all[pe].leader == leaders[i] + 1;
        if (count == 1)
            printf("  host %s: PE %d\n", host_of(leaders[i]), leaders[i]);
        else
            printf("  host %s: %d PEs, the first is PE %d\n", host_of(leaders[i]), count, leaders[i]);
    }
    if (n_leaders > kMostFailures)
        printf("  and %d further nodes\n", n_leaders - kMostFailures);
}

/* --- The order of the check */

static void test_pairs(void) {
    const size_t fair = kAllBlockWords / ((size_t)n_leaders + 1);
    const size_t block_words = fair < kMostBlockWords ? fair : kMostBlockWords;
    int mine = 0;
    while (mine < n_leaders && leaders[mine] != me) ++mine;
    for (int distance = 1; distance < n_leaders && mine < n_leaders; ++distance)
        test_pair(leaders[(mine + distance) % n_leaders], mine, block_words);
    int next = me; /* on this node, in a circle; its last slot is for that */
    do {
        next = (next + 1) % n_pes;
    } while (all[next].leader != all[me].leader);
    test_pair(next, n_leaders, block_words);
    begin_step(3, "shmem_barrier_all on PE %d (host %s)", me, about.host);
    shmem_barrier_all();
    for (int i = 0; i < n_leaders && mine < n_leaders; ++i)
        if (i != mine)
            test_arrivals(leaders[i], i);
}

int main(int argc, char** argv) {
    if (argc > 1)
        step_s = atof(argv[1]);
    describe_this_process();
    begin_step(3, "shmem_init on host %s", about.host);
    pthread_t watcher;
    if (pthread_create(&watcher, NULL, watch, NULL) != 0) {
        fprintf(stderr, "heddle-info: no thread can be started on host %s\n", about.host);
        return 1;
    }
    shmem_init();
    me = shmem_my_pe();
    n_pes = shmem_n_pes();
    shmem_info_get_name(about.version);
    int leader = 0;
    while (!shmem_ptr(&about, leader)) ++leader;
    __atomic_store_n(&about.leader, leader + 1, __ATOMIC_RELEASE); /* pairs with the gets of meet_all */
    meet_all();
    if (me == 0)
        print_nodes();
    test_pairs();
    if (me == 0)
        compare_all();
    begin_step(3, "the end of the job on PE %d (host %s)", me, about.host);
    shmem_long_atomic_add(&failures, own_failures, 0);
    shmem_barrier_all();
    const int has_failed = me == 0 && failures > 0;
    if (me == 0 && !has_failed)
        printf("  library and settings are the same everywhere; put, get and atomic are right between all nodes\n");
    shmem_finalize();
    return has_failed;
}

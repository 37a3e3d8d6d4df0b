// What check.h declares. Ends a failing PE with _exit(1), so that no finalize waits for the others: the launcher ends
// them.
#include "check.h"

#include "completion.h"
#include "tables.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <iterator>

shmem_ctx_t conformance_ctx = SHMEM_CTX_DEFAULT;

namespace conformance {

uint64_t seed;
int pe = -1;
int n_pes = 0;
constinit thread_local const char* subject = "";

namespace {

uint64_t shared_seed;                    // static data, so symmetric
const char* (*last_called)() = nullptr;  // of the recorder (coverage.py), when it is loaded

// Whether a variable of the environment, as NAME=VALUE, changes what a run does; the launcher sets the others itself.
bool matters(const char* variable) {
    constexpr const char* kPrefixes[] = {"HEDDLE_", "SHMEM_", "SMA_", "OMP_", "LD_PRELOAD="};
    constexpr const char* kOthers[] = {
        "HEDDLE_PE=",   "HEDDLE_JOB",        "HEDDLE_LIFELINE_FD=", "HEDDLE_HANDED_OVER=", "HEDDLE_JOINED",
        "HEDDLE_BUILD", "HEDDLE_TEST_SEED=", "HEDDLE_WAS_PE=",      "HEDDLE_DEADLINE="};
    const auto begins = [&](const char* prefix) { return strncmp(variable, prefix, strlen(prefix)) == 0; };
    return std::any_of(std::begin(kPrefixes), std::end(kPrefixes), begins) &&
           std::none_of(std::begin(kOthers), std::end(kOthers), begins);
}

// Prints the command line that repeats this run. Allocates nothing: some programs watch that.
void print_command_line() {
    printf("reproduce: HEDDLE_TEST_SEED=%llu", static_cast<unsigned long long>(shared_seed));
    for (char** variable = environ; *variable; ++variable) {
        const char* value = strchr(*variable, '=');
        if (value && matters(*variable))
            printf(" %.*s='%s'", static_cast<int>(value - *variable), *variable, value + 1);
    }
    const char* build = getenv("HEDDLE_BUILD");
    printf(" %s%soshrun -n %d", build ? build : "", build ? "/bin/" : "", n_pes);
    char words[4096];
    const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = file < 0 ? 0 : read(file, words, sizeof words - 1);
    words[bytes < 0 ? 0 : bytes] = '\0';
    for (const char* word = words; word < words + bytes; word += strlen(word) + 1) printf(" %s", word);
    printf("\n");
    if (file >= 0)
        close(file);
}

// Creates conformance_ctx where HEDDLE_TEST_CTX says so.
void create_context() {
    const char* own_context = getenv("HEDDLE_TEST_CTX");
    if (own_context && strcmp(own_context, "1") == 0)
        CHECK_EQ(shmem_ctx_create(0, &conformance_ctx), 0);
}

}  // namespace

long mapped_pages() {
#ifdef __SANITIZE_ADDRESS__
    return 0;
#endif
    FILE* file = fopen("/proc/self/statm", "r");
    long size = 0, resident = 0, shared = 0;
    CHECK(file && fscanf(file, "%ld %ld %ld", &size, &resident, &shared) == 3);
    fclose(file);
    return getenv("HEDDLE_TEST_PES_PER_NODE") ? resident - shared : size;
}

uint64_t number(const char* name, uint64_t otherwise) {
    const char* text = getenv(name);
    return text ? strtoull(text, nullptr, 10) : otherwise;
}

bool is_drawn(size_t row) {
    static const uint64_t one_in = number("HEDDLE_TEST_ROWS", 1);
    return one_in < 2 || random_for(row, one_in).below(one_in) == 0;
}

bool chaos_run() {
    return number("HEDDLE_CHAOS", 0) != 0;
}

bool checked_run() {
    const char* text = getenv("HEDDLE_CHECK");
    return chaos_run() || (text && strcmp(text, "1") == 0);
}

void start(const char* program) {
    const char* level = getenv("HEDDLE_TEST_LEVEL");
    int provided = -1;
    if (!level)
        shmem_init();
    else if (shmem_init_thread(atoi(level), &provided) != 0 || provided < atoi(level))
        fail(__FILE__, __LINE__, "thread level %s: provided %d", level, provided);
    pe = shmem_my_pe();
    n_pes = shmem_n_pes();
    if (pe == 0) {
        const char* text = getenv("HEDDLE_TEST_SEED");
        const auto now = std::chrono::system_clock::now().time_since_epoch().count();
        shared_seed = text ? strtoull(text, nullptr, 0) : static_cast<uint64_t>(now);
        printf("%s: HEDDLE_TEST_SEED=%llu, %d PEs\n", program, static_cast<unsigned long long>(shared_seed), n_pes);
        print_command_line();
        fflush(stdout);
    }
    shmem_barrier_all();
    shmem_getmem(&seed, &shared_seed, sizeof seed, 0);
    last_called = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "conformance_last_called"));
    create_context();
    start_request();
    shmem_barrier_all();
}

void start_again() {
    finish_request();
    shmem_finalize();
    shmem_init();
    create_context();
    start_request();
}

void barrier() {
    if (conformance_ctx != SHMEM_CTX_DEFAULT)
        shmem_ctx_quiet(conformance_ctx);
    shmem_barrier_all();
}

int finish() {
    finish_request();
    if (conformance_ctx != SHMEM_CTX_DEFAULT)
        shmem_ctx_destroy(conformance_ctx);
    shmem_finalize();
    return 0;
}

void fail(const char* file, int line, const char* format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s:%d: PE %d of %d, HEDDLE_TEST_SEED=%llu, %s: %s\n", file, line, pe, n_pes,
            static_cast<unsigned long long>(seed), subject, text);
    fflush(stderr);
    _exit(1);
}

void check_reached(const char* name) {
    const char* last = last_called ? last_called() : nullptr;
    if (last && strcmp(last, name) != 0)
        fail(__FILE__, __LINE__, "reached %s, right would be %s", last, name);
}

void check_bytes(const char* file, int line, const char* what, const void* got, const void* expected, size_t bytes) {
    if (bytes == 0 || memcmp(got, expected, bytes) == 0)
        return;
    const auto *a = static_cast<const unsigned char*>(got), *b = static_cast<const unsigned char*>(expected);
    size_t at = 0;
    while (a[at] == b[at]) ++at;
    fail(file, line, "%s: byte %zu of %zu is %#x, right would be %#x", what, at, bytes, a[at], b[at]);
}

void check_untouched(const char* file, int line, const char* what, const void* got, unsigned char value, size_t bytes) {
    const auto* at = static_cast<const unsigned char*>(got);
    for (size_t i = 0; i < bytes; ++i)
        if (at[i] != value)
            fail(file, line, "%s: byte %zu of %zu is %#x, but nobody may have written there (%#x)", what, i, bytes,
                 at[i], value);
}

}  // namespace conformance

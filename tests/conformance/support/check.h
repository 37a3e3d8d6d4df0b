/* What every conformance program uses: checks that end the PE with file, line, PE, seed and values; a seed that all PEs
 * share; numbers from it. The programs are ordinary OpenSHMEM programs: no test framework runs in a PE. */
#ifndef CONFORMANCE_CHECK_H
#define CONFORMANCE_CHECK_H

#include <shmem.h>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace conformance {

// Initializes the library (at the thread level HEDDLE_TEST_LEVEL, where it is set), agrees on a seed (HEDDLE_TEST_SEED,
// or PE 0's clock) and prints it, and the command line that repeats the run; sets conformance_ctx.
void start(const char* program);
// Finalizes and initializes, and makes conformance_ctx and the rows' request anew: they end with shmem_finalize. Without
// a thread level.
void start_again();
// All PEs come, and what each did before, on conformance_ctx too, is complete.
void barrier();
// Destroys what start made, finalizes; the status for main to return.
int finish();

extern uint64_t seed;
extern int pe;
extern int n_pes;
extern constinit thread_local const char* subject;  // the function under test, shown in failures

// A number of the environment.
uint64_t number(const char* name, uint64_t otherwise);
// Whether a row of a table is one of those that run: one in HEDDLE_TEST_ROWS (all without it), drawn from the seed.
bool is_drawn(size_t row);
// True where operations are as late and as unordered as the standard allows (HEDDLE_CHAOS): what Heddle gives beyond it
// is not there.
bool chaos_run();
// True in a checked run (HEDDLE_CHECK=1, HEDDLE_CHAOS), which is slower and stricter.
bool checked_run();

// Pages that this PE has mapped. Where a network reaches other PEs, of private memory in use instead: its threads have
// arenas of 64 MiB of address space, and its rings, which are shared memory, grow with what fills them. 0 under
// AddressSanitizer, which keeps what is freed.
long mapped_pages();

[[noreturn]] __attribute__((format(printf, 3, 4))) void fail(const char* file, int line, const char* format, ...);

// Under the recorder (coverage.py): ends the PE unless the function called last was `name`.
void check_reached(const char* name);

// splitmix64: small, and the same everywhere.
class Random {
  public:
    explicit Random(uint64_t stream) : state_(seed ^ (stream * 0x9e3779b97f4a7c15u)) {}
    uint64_t next() {
        uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    size_t below(size_t limit) { return next() % limit; }
    void fill(void* to, size_t bytes) {
        auto* at = static_cast<unsigned char*>(to);
        for (; bytes >= 8; bytes -= 8, at += 8) {
            const uint64_t word = next();
            memcpy(at, &word, 8);
        }
        const uint64_t word = next();
        memcpy(at, &word, bytes);
    }

  private:
    uint64_t state_;
};

// A stream of numbers for one (a, b, c): the same in every PE.
inline Random random_for(uint64_t a, uint64_t b = 0, uint64_t c = 0) {
    return Random(((a * 1000003u + b) * 1000003u + c) * 2 + 1);
}

// Ends the PE unless the bytes are equal; shows the first that is not.
void check_bytes(const char* file, int line, const char* what, const void* got, const void* expected, size_t bytes);
// Ends the PE unless all bytes are `value`.
void check_untouched(const char* file, int line, const char* what, const void* got, unsigned char value, size_t bytes);

}  // namespace conformance

#define CHECK(condition)                                                          \
    do {                                                                          \
        if (!(condition))                                                         \
            conformance::fail(__FILE__, __LINE__, "%s", "not true: " #condition); \
    } while (0)
// Integers, shown as signed 64-bit numbers.
#define CHECK_EQ(got, expected)                                                                                  \
    do {                                                                                                         \
        const auto got_ = static_cast<long long>(got);                                                           \
        const auto expected_ = static_cast<long long>(expected);                                                 \
        if (got_ != expected_)                                                                                   \
            conformance::fail(__FILE__, __LINE__, "%s is %lld (%#llx), right would be %lld (%#llx)", #got, got_, \
                              static_cast<unsigned long long>(got_), expected_,                                  \
                              static_cast<unsigned long long>(expected_));                                       \
    } while (0)
#define CHECK_BYTES(what, got, expected, bytes) conformance::check_bytes(__FILE__, __LINE__, what, got, expected, bytes)
#define CHECK_UNTOUCHED(what, got, value, bytes) \
    conformance::check_untouched(__FILE__, __LINE__, what, got, value, bytes)

#endif

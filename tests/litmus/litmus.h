// A litmus test: a few lines for each of two to four PEs (its roles), registers, and which outcomes OpenSHMEM 1.6 allows.
// An outcome is the string of the registers' digits. An outcome that a test does not list is forbidden.
#ifndef LITMUS_LITMUS_H
#define LITMUS_LITMUS_H

#include <shmem.h>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace litmus {

constexpr int kMostRoles = 4;
constexpr int kMostRegisters = 4;

enum class Kind {
    kStrong,     // seen where every operation is complete when its call returns
    kWeak,       // allowed, and seen only where operations are late or overtake each other
    kSilent,     // no sentence of the standard forbids it, and no library with one copy of each object shows it
    kForbidden,  // listed for its reason; what is not listed is forbidden, too
};

struct Outcome {
    const char* registers;  // a digit for each register; ? is 0 or 1, * anything. The first that matches counts.
    Kind kind;
};

// The symmetric variables of a round, each on a cache line of its own. All are 0 when a round begins.
struct Variables {
    alignas(64) long x;
    alignas(64) long y;
    alignas(64) long flag;
    alignas(64) long told;
    alignas(64) uint64_t signal;
    alignas(64) long words[2];
    alignas(64) long root, copy;  // of a broadcast
};

// What one PE has in one round.
struct Round {
    int role;  // roles of a test are 0, 1, ...; PEs with a higher role take part in its collectives alone
    int pes[kMostRoles];
    long *x, *y, *flag, *told, *words, *root, *copy;
    uint64_t* signal;
    long* lock;            // 0, and otherwise what the locking routines have left
    shmem_ctx_t ctx;       // of the world; complete at the end of a round
    shmem_ctx_t team_ctx;  // of `team`, whose PEs have the numbers that they have in the world
    shmem_team_t team;
    signed char* registers;

    int at(int other_role) const { return pes[other_role]; }
    int self() const { return pes[role]; }
    void out(int number, long value) const {
        registers[number] = static_cast<signed char>(value < 0 || value > 9 ? '?' : value);
    }
};

struct Test {
    const char* name;
    int roles;
    const char* program[kMostRoles];  // as the page shows it
    void (*body)(const Round&);       // called by every PE
    void (*after)(const Round&);      // called when all is complete; may look at variables of its own PE; or null
    std::vector<Outcome> outcomes;
    const char* why;  // section of OpenSHMEM 1.6, and the reason
};

std::span<const Test> order_tests();
std::span<const Test> atomic_tests();
std::span<const Test> signal_tests();
std::span<const Test> scope_tests();

// Longest poll of a test that does not wait: such a test has an outcome for what has not arrived.
constexpr int kPolls = 2000;

// A plain load and store of the PE's own memory.
inline long load(const long* at) {
    return *static_cast<const volatile long*>(at);
}
inline void store(long* at, long value) {
    *static_cast<volatile long*>(at) = value;
}

}  // namespace litmus

#endif

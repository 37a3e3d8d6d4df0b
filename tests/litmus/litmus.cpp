// Runs litmus tests (litmus.h) and counts their outcomes.
//
//   litmus --describe           prints the tests as JSON, one a line; needs no job
//   litmus ROUNDS [TEST...]     runs all tests, or those named, ROUNDS times each: a line of JSON for each test.
//                               Status 1: a forbidden outcome was seen, which stderr has, too.
//
// In each round other PEs have a test's roles. A test with more roles than the job has PEs is left out.
// HEDDLE_TEST_SEED draws which PEs, and the pauses ahead of the roles.
#include "litmus.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>

namespace litmus {
namespace {

constexpr signed char kUnset = -1;
constexpr uint64_t kSlotNs = 16384;
constexpr uint64_t kLongestPause = 1000;  // turns of an empty loop

Variables static_variables;
long static_lock;
uint64_t shared_seed;

std::vector<const Test*> all_tests() {
    std::vector<const Test*> all;
    for (const std::span<const Test> tests : {order_tests(), atomic_tests(), signal_tests(), scope_tests()})
        for (const Test& test : tests) all.push_back(&test);
    return all;
}

const char* name_of(Kind kind) {
    switch (kind) {
        case Kind::kStrong:
            return "strong";
        case Kind::kWeak:
            return "weak";
        case Kind::kSilent:
            return "silent";
        default:
            return "forbidden";
    }
}

bool matches(const char* pattern, const std::string& registers) {
    if (strlen(pattern) != registers.size())
        return false;
    for (size_t i = 0; i < registers.size(); ++i) {
        const bool is_bit = registers[i] == '0' || registers[i] == '1';
        if (pattern[i] != '*' && !(pattern[i] == '?' && is_bit) && pattern[i] != registers[i])
            return false;
    }
    return true;
}

Kind kind_of(const Test& test, const std::string& registers) {
    for (const Outcome& outcome : test.outcomes)
        if (matches(outcome.registers, registers))
            return outcome.kind;
    return Kind::kForbidden;
}

void print_text(const char* text) {
    putchar('"');
    for (; *text != 0; ++text) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
    putchar('"');
}

int describe() {
    for (const Test* test : all_tests()) {
        printf("{\"test\": \"%s\", \"program\": [", test->name);
        for (int role = 0; role < test->roles; ++role) {
            printf("%s", role == 0 ? "" : ", ");
            print_text(test->program[role]);
        }
        printf("], \"outcomes\": {");
        for (const Outcome& outcome : test->outcomes)
            printf("%s\"%s\": \"%s\"", &outcome == test->outcomes.data() ? "" : ", ", outcome.registers,
                   name_of(outcome.kind));
        printf("}, \"why\": ");
        print_text(test->why);
        printf("}\n");
    }
    return 0;
}

// splitmix64
uint64_t mixed(uint64_t z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

// PEs that have a core each leave together, at the next slot of the clock, but for a random pause.
void leave_together(uint64_t draw) {
    const uint64_t slot = now_ns() / kSlotNs;
    while (now_ns() / kSlotNs == slot) {
    }
    for (uint64_t i = 0; i < draw % kLongestPause; ++i) asm volatile("");
}

class Job {
  public:
    Job()
        : pe_(shmem_my_pe()),
          n_pes_(shmem_n_pes()),
          heap_variables_(static_cast<Variables*>(shmem_align(alignof(Variables), sizeof(Variables)))),
          heap_lock_(static_cast<long*>(shmem_calloc(1, sizeof(long)))) {
        round_.ctx = SHMEM_CTX_INVALID;
        shmem_ctx_create(0, &round_.ctx);
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes_, nullptr, 0, &round_.team);
        shmem_team_create_ctx(round_.team, 0, &round_.team_ctx);
        if (round_.ctx == SHMEM_CTX_INVALID || round_.team == SHMEM_TEAM_INVALID)
            shmem_global_exit(2);
    }
    ~Job() {
        shmem_ctx_destroy(round_.team_ctx);
        shmem_ctx_destroy(round_.ctx);
        shmem_team_destroy(round_.team);
        shmem_free(heap_variables_);
        shmem_free(heap_lock_);
    }
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    // Whether nothing forbidden was seen; PE 0 knows.
    bool run(const Test& test, size_t rounds) {
        const size_t bytes = rounds * kMostRegisters;
        auto* const registers = static_cast<signed char*>(shmem_malloc(bytes));
        memset(registers, kUnset, bytes);
        for (size_t round = 0; round < rounds; ++round) {
            prepare(round, registers + round * kMostRegisters);
            shmem_barrier_all();
            if (round_.role < test.roles)
                leave_together(mixed(shared_seed + round) ^ mixed(static_cast<uint64_t>(round_.role)));
            test.body(round_);
            shmem_sync_all();  // completes nothing: what is late may be so until every role is at its end
            shmem_ctx_quiet(round_.ctx);
            shmem_ctx_quiet(round_.team_ctx);
            shmem_barrier_all();
            if (test.after != nullptr && round_.role < test.roles)
                test.after(round_);
        }
        shmem_barrier_all();
        const bool is_right = pe_ != 0 || print(test, collected(registers, rounds));
        shmem_barrier_all();
        shmem_free(registers);
        return is_right;
    }

  private:
    void prepare(size_t round, signed char* registers) {
        Variables& own = round % 2 == 0 ? static_variables : *heap_variables_;
        memset(&own, 0, sizeof own);
        const int shift = static_cast<int>(mixed(~(shared_seed + round)) % static_cast<uint64_t>(n_pes_));
        round_.role = (pe_ + n_pes_ - shift) % n_pes_;
        for (int role = 0; role < kMostRoles; ++role) round_.pes[role] = (role + shift) % n_pes_;
        round_.x = &own.x;
        round_.y = &own.y;
        round_.flag = &own.flag;
        round_.told = &own.told;
        round_.words = own.words;
        round_.root = &own.root;
        round_.copy = &own.copy;
        round_.signal = &own.signal;
        round_.lock = round % 2 == 0 ? &static_lock : heap_lock_;
        round_.registers = registers;
    }

    // How often each outcome was seen. Each register of a round is set by one PE.
    std::map<std::string, size_t> collected(const signed char* registers, size_t rounds) const {
        std::vector<signed char> all(rounds * kMostRegisters, kUnset), theirs(all.size());
        for (int from = 0; from < n_pes_; ++from) {
            shmem_getmem(theirs.data(), registers, theirs.size(), from);
            for (size_t i = 0; i < all.size(); ++i)
                if (theirs[i] != kUnset)
                    all[i] = theirs[i];
        }
        std::map<std::string, size_t> seen;
        for (size_t round = 0; round < rounds; ++round) {
            std::string outcome;
            for (size_t i = round * kMostRegisters; i < (round + 1) * kMostRegisters && all[i] != kUnset; ++i)
                outcome += static_cast<char>(all[i] < 10 ? '0' + all[i] : all[i]);
            ++seen[outcome];
        }
        return seen;
    }

    bool print(const Test& test, const std::map<std::string, size_t>& seen) const {
        bool is_right = true;
        printf("{\"test\": \"%s\", \"seen\": {", test.name);
        const char* comma = "";
        for (const auto& [outcome, count] : seen) {
            printf("%s\"%s\": %zu", comma, outcome.c_str(), count);
            comma = ", ";
            if (kind_of(test, outcome) != Kind::kForbidden)
                continue;
            fprintf(stderr, "litmus: %s: %s is forbidden, and was seen %zu times; %d PEs, HEDDLE_TEST_SEED=%llu: %s\n",
                    test.name, outcome.c_str(), count, n_pes_, static_cast<unsigned long long>(shared_seed), test.why);
            is_right = false;
        }
        printf("}}\n");
        fflush(stdout);
        return is_right;
    }

    const int pe_, n_pes_;
    Variables* const heap_variables_;
    long* const heap_lock_;
    Round round_;
};

int run_all(size_t rounds, std::span<char*> names) {
    int provided = 0;
    if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0)
        return 2;
    const char* const seed = getenv("HEDDLE_TEST_SEED");
    if (shmem_my_pe() == 0)
        shared_seed = seed != nullptr ? strtoull(seed, nullptr, 0) : static_cast<uint64_t>(time(nullptr));
    shmem_barrier_all();
    shared_seed = shmem_uint64_g(&shared_seed, 0);
    shmem_barrier_all();
    bool is_right = provided == SHMEM_THREAD_MULTIPLE;
    {
        Job job;
        for (const Test* test : all_tests()) {
            bool is_wanted = names.empty();
            for (const char* name : names) is_wanted |= strcmp(name, test->name) == 0;
            if (is_wanted && test->roles <= shmem_n_pes())
                is_right &= job.run(*test, rounds);
        }
    }
    shmem_finalize();
    return is_right ? 0 : 1;
}

}  // namespace
}  // namespace litmus

int main(int argc, char** argv) {
    if (argc == 2 && strcmp(argv[1], "--describe") == 0)
        return litmus::describe();
    const long rounds = argc > 1 ? strtol(argv[1], nullptr, 10) : 0;
    if (rounds < 1) {
        fprintf(stderr, "usage: litmus --describe | litmus ROUNDS [TEST...]; ROUNDS is at least 1\n");
        return 2;
    }
    return litmus::run_all(static_cast<size_t>(rounds), std::span(argv + 2, argv + argc));
}

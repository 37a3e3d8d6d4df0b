// One collective of all PEs again and again, with nothing in between, so that what the network carries is its alone
// (test_message_counts.py counts). dest of the last one is looked at, on every PE.
//
//     message_counts OPERATION BYTES TIMES [LATE]
//
// BYTES: of a part or a block; a multiple of 8 where numbers are added. LATE: a PE that begins half a second later.
#include "check.h"

#include <shmemx.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

using namespace conformance;

namespace {

// What member `from` has for member `to`, where that matters.
unsigned char byte_of(int from, int to, size_t at) {
    return static_cast<unsigned char>(from * 37 + to * 11 + static_cast<int>(at % 251));
}
// collect: each has a little less than the one before, the last but one has none.
size_t part_of(int member, size_t bytes) {
    return member == n_pes - 2 ? 0 : bytes - std::min<size_t>(bytes, static_cast<size_t>(member));
}

struct Buffers {
    unsigned char *dest, *source;
    size_t bytes, words;

    long* sums() const { return reinterpret_cast<long*>(dest); }
    long* numbers() const { return reinterpret_cast<long*>(source); }
    double* real_sums() const { return reinterpret_cast<double*>(dest); }
    double* reals() const { return reinterpret_cast<double*>(source); }
};

// Into those of even and of odd number.
void split() {
    shmem_team_t half = SHMEM_TEAM_INVALID;
    CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, pe % 2, 2, (n_pes + 1 - pe % 2) / 2, nullptr, 0, &half), 0);
    CHECK(half != SHMEM_TEAM_INVALID);
    shmem_team_destroy(half);
}

shmem_team_t teams[3];  // of all PEs: for "broadcasts"
shmemx_plan_t plan = SHMEMX_PLAN_NULL;

// With the PEs before and behind, in a ring. started: a plan, made by the first.
void exchange(const Buffers& of, bool started) {
    const int neighbors[] = {(pe + n_pes - 1) % n_pes, (pe + 1) % n_pes};
    const size_t count = n_pes > 2 ? 2 : 1;
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    if (!started)
        return (void)shmemx_neighbor_alltoall(SHMEM_TEAM_WORLD, neighbors, count, of.dest, of.source, of.bytes);
    if (plan == SHMEMX_PLAN_NULL) {
        shmemx_plan_begin(&plan);
        shmemx_neighbor_alltoall_nbe(SHMEM_TEAM_WORLD, neighbors, count, of.dest, of.source, of.bytes, &request);
        shmemx_plan_end(&plan);
    }
    shmemx_request_start(plan, &request);
    shmemx_request_wait(&request);
}

void run(const std::string& operation, const Buffers& of) {
    const shmem_team_t all = SHMEM_TEAM_WORLD;
    if (operation == "barrier")
        shmem_barrier_all();
    else if (operation == "broadcast")
        CHECK_EQ(shmem_broadcastmem(all, of.dest, of.source, of.bytes, n_pes - 1), 0);
    else if (operation == "broadcasts")
        for (const shmem_team_t team : teams)
            CHECK_EQ(shmem_broadcastmem(team, of.dest, of.source, of.bytes, n_pes - 1), 0);
    else if (operation == "collect")
        CHECK_EQ(shmem_collectmem(all, of.dest, of.source, part_of(pe, of.bytes)), 0);
    else if (operation == "fcollect")
        CHECK_EQ(shmem_fcollectmem(all, of.dest, of.source, of.bytes), 0);
    else if (operation == "alltoall")
        CHECK_EQ(shmem_alltoallmem(all, of.dest, of.source, of.bytes), 0);
    else if (operation == "alltoalls")
        CHECK_EQ(shmem_long_alltoalls(all, of.sums(), of.numbers(), 2, 1, of.words), 0);
    else if (operation == "reduce")
        CHECK_EQ(shmem_long_sum_reduce(all, of.sums(), of.numbers(), of.words), 0);
    else if (operation == "reduce_double")
        CHECK_EQ(shmem_double_sum_reduce(all, of.real_sums(), of.reals(), of.words), 0);
    else if (operation == "inscan")
        CHECK_EQ(shmem_long_sum_inscan(all, of.sums(), of.numbers(), of.words), 0);
    else if (operation == "exscan")
        CHECK_EQ(shmem_long_sum_exscan(all, of.sums(), of.numbers(), of.words), 0);
    else if (operation == "sync")
        shmem_sync_all();
    else if (operation == "split")
        split();
    else if (operation == "neighbors" || operation == "neighbors_started")
        exchange(of, operation == "neighbors_started");
    else
        fail(__FILE__, __LINE__, "no such operation: %s", operation.c_str());
}

bool is_exchange(const std::string& operation) {
    return operation == "neighbors" || operation == "neighbors_started";
}

bool is_arithmetic(const std::string& operation) {
    return operation == "reduce" || operation == "inscan" || operation == "exscan" || operation == "alltoalls";
}

void fill(const std::string& operation, const Buffers& of) {
    const size_t blocks = static_cast<size_t>(n_pes);
    if (operation == "reduce_double") {
        for (size_t i = 0; i < of.words; ++i) of.reals()[i] = 1000.0 * (pe + 1) + static_cast<double>(i);
        return;
    }
    if (is_arithmetic(operation)) {
        for (size_t i = 0; i < blocks * of.words; ++i) of.numbers()[i] = 1000 * (pe + 1) + static_cast<long>(i);
        return;
    }
    for (size_t to = 0; to < blocks; ++to)
        for (size_t i = 0; i < of.bytes; ++i)
            of.source[to * of.bytes + i] =
                byte_of(pe, operation == "alltoall" || is_exchange(operation) ? static_cast<int>(to) : 0, i);
}

void check_part(const unsigned char* got, int from, int to, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) CHECK_EQ(got[i], byte_of(from, to, i));
}

void check_sums(const std::string& operation, const Buffers& of) {
    const int last = operation == "reduce" ? n_pes : operation == "inscan" ? pe + 1 : pe;
    for (size_t i = 0; i < of.words; ++i)
        CHECK_EQ(of.sums()[i], 500L * last * (last + 1) + last * static_cast<long>(i));
}

void check(const std::string& operation, const Buffers& of) {
    if (operation == "barrier" || operation == "sync" || operation == "split")
        return;
    if (operation == "broadcast" || operation == "broadcasts")
        return check_part(of.dest, n_pes - 1, 0, of.bytes);
    if (operation == "reduce_double") {
        for (size_t i = 0; i < of.words; ++i)
            CHECK_EQ(of.real_sums()[i], 500.0 * n_pes * (n_pes + 1) + n_pes * static_cast<double>(i));
        return;
    }
    if (is_arithmetic(operation) && operation != "alltoalls")
        return check_sums(operation, of);
    if (is_exchange(operation) && n_pes > 2) {  // what is for the PE before is its block 1
        check_part(of.dest, (pe + n_pes - 1) % n_pes, 1, of.bytes);
        return check_part(of.dest + of.bytes, (pe + 1) % n_pes, 0, of.bytes);
    }
    if (is_exchange(operation))
        return check_part(of.dest, (pe + 1) % n_pes, 0, of.bytes);
    const unsigned char* at = of.dest;
    for (int from = 0; from < n_pes; ++from) {
        if (operation == "alltoalls") {
            for (size_t i = 0; i < of.words; ++i) {
                const size_t block = static_cast<size_t>(from) * of.words, mine = static_cast<size_t>(pe) * of.words;
                CHECK_EQ(of.sums()[2 * (block + i)], 1000L * (from + 1) + static_cast<long>(mine + i));
            }
            continue;
        }
        const size_t part = operation == "collect" ? part_of(from, of.bytes) : of.bytes;
        check_part(at, from, operation == "alltoall" ? pe : 0, part);
        at += part;
    }
}

}  // namespace

int main(int argc, char** argv) {
    start("message_counts");
    CHECK(argc == 4 || argc == 5);
    const std::string operation = argv[1];
    const size_t bytes = strtoull(argv[2], nullptr, 10), room = 2 * bytes * static_cast<size_t>(n_pes) + 8;
    const Buffers buffers = {static_cast<unsigned char*>(shmem_calloc(room, 1)),
                             static_cast<unsigned char*>(shmem_malloc(room)), bytes, bytes / sizeof(long)};
    CHECK(buffers.dest && buffers.source);
    fill(operation, buffers);
    for (shmem_team_t& team : teams)
        if (operation == "broadcasts")
            CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, nullptr, 0, &team), 0);
    barrier();
    if (argc == 5 && pe == strtol(argv[4], nullptr, 10)) {
        const timespec late = {0, 500000000};
        nanosleep(&late, nullptr);
    }
    for (long i = strtol(argv[3], nullptr, 10); i > 0; --i) run(operation, buffers);
    barrier();
    check(operation, buffers);
    // A connection that is still being made when its peer ends makes UCX 1.13 abort the PE; this job is that short.
    const timespec pause = {0, 50000000};
    nanosleep(&pause, nullptr);
    return finish();
}

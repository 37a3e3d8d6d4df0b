// Collectives whose data exceed the last-level cache: their copies go past it. Every operation, in place and not, at
// addresses that begin within a cache line and at lengths that end within one; the last bytes and those behind them
// too.
#include "check.h"

#include <cstdio>

using namespace conformance;

namespace {

constexpr size_t kGuard = 192;

unsigned char *dest, *source;
size_t room;  // of each

uint32_t word(uint64_t stream, size_t index) {
    return static_cast<uint32_t>((index + 1) * 2654435761u ^ stream * 0x9e3779b1u);
}

unsigned char* place(unsigned char* buffer, size_t offset, size_t bytes, unsigned char value) {
    CHECK(offset + bytes + 2 * kGuard <= room);
    memset(buffer + offset, value, bytes + 2 * kGuard);
    return buffer + offset + kGuard;
}

// Words at any address.
void fill(unsigned char* to, uint64_t stream, size_t words) {
    for (size_t i = 0; i < words; ++i) {
        const uint32_t value = word(stream, i);
        memcpy(to + i * 4, &value, 4);
    }
}

void check_word(const char* what, const unsigned char* at, size_t index, uint32_t right) {
    uint32_t got;
    memcpy(&got, at + index * 4, 4);
    if (got != right)
        fail(__FILE__, __LINE__, "%s: word %zu is %#x, right would be %#x", what, index, got, right);
}

void check_guards(const unsigned char* data, size_t bytes) {
    CHECK_UNTOUCHED("ahead of dest", data - kGuard, 0x5a, kGuard);
    CHECK_UNTOUCHED("behind dest", data + bytes, 0x5a, kGuard);
}

uint64_t rank(int number) {
    return static_cast<uint64_t>(number);
}

// words: of the whole dest. offset: of dest in its line, in bytes, a multiple of 4 where elements are words.
void broadcast(size_t words, size_t offset, int root) {
    subject = "shmem_broadcastmem";
    unsigned char* const to = place(dest, offset, words * 4, 0x5a);
    unsigned char* const from = place(source, offset / 2, words * 4, 0x11);
    fill(from, rank(pe), words);
    shmem_barrier_all();
    CHECK_EQ(shmem_broadcastmem(SHMEM_TEAM_WORLD, to, from, words * 4, root), 0);
    for (size_t i = 0; i < words; ++i) check_word("dest", to, i, word(rank(root), i));
    check_guards(to, words * 4);
}

void collect(size_t words, size_t offset, bool even) {
    subject = even ? "shmem_fcollectmem" : "shmem_collectmem";
    const auto part = [&](int number) { return words / rank(n_pes) - (even ? 0 : 37 * rank(number)); };
    size_t total = 0;
    for (int i = 0; i < n_pes; ++i) total += part(i);
    unsigned char* const to = place(dest, offset, total * 4, 0x5a);
    unsigned char* const from = place(source, offset / 3, part(pe) * 4, 0x11);
    fill(from, rank(pe), part(pe));
    shmem_barrier_all();
    if (even)
        CHECK_EQ(shmem_fcollectmem(SHMEM_TEAM_WORLD, to, from, part(pe) * 4), 0);
    else
        CHECK_EQ(shmem_collectmem(SHMEM_TEAM_WORLD, to, from, part(pe) * 4), 0);
    const unsigned char* at = to;
    for (int i = 0; i < n_pes; at += part(i) * 4, ++i)
        for (size_t k = 0; k < part(i); ++k) check_word("dest", at, k, word(rank(i), k));
    check_guards(to, total * 4);
}

void alltoall(size_t words, size_t offset) {
    subject = "shmem_alltoallmem";
    const size_t block = words / rank(n_pes), total = block * rank(n_pes);
    unsigned char* const to = place(dest, offset, total * 4, 0x5a);
    unsigned char* const from = place(source, 5, total * 4, 0x11);
    fill(from, rank(pe), total);
    shmem_barrier_all();
    CHECK_EQ(shmem_alltoallmem(SHMEM_TEAM_WORLD, to, from, block * 4), 0);
    for (int i = 0; i < n_pes; ++i)
        for (size_t k = 0; k < block; ++k)
            check_word("dest", to + rank(i) * block * 4, k, word(rank(i), rank(pe) * block + k));
    check_guards(to, total * 4);
}

enum class Kind { kReduce, kInclusive, kExclusive };
void add_up(Kind kind, size_t words, size_t offset, bool in_place) {
    subject = kind == Kind::kReduce      ? "shmem_uint32_sum_reduce"
              : kind == Kind::kInclusive ? "shmem_uint32_sum_inscan"
                                         : "shmem_uint32_sum_exscan";
    offset = offset / 4 * 4;
    unsigned char* const to = place(dest, offset, words * 4, 0x5a);
    unsigned char* const from = in_place ? to : place(source, 8, words * 4, 0x11);
    fill(from, rank(pe), words);
    shmem_barrier_all();
    auto* const sums = reinterpret_cast<uint32_t*>(to);
    const auto* const values = reinterpret_cast<const uint32_t*>(from);
    if (kind == Kind::kReduce)
        CHECK_EQ(shmem_uint32_sum_reduce(SHMEM_TEAM_WORLD, sums, values, words), 0);
    else if (kind == Kind::kInclusive)
        CHECK_EQ(shmem_uint32_sum_inscan(SHMEM_TEAM_WORLD, sums, values, words), 0);
    else
        CHECK_EQ(shmem_uint32_sum_exscan(SHMEM_TEAM_WORLD, sums, values, words), 0);
    const int count = kind == Kind::kReduce ? n_pes : kind == Kind::kInclusive ? pe + 1 : pe;
    for (size_t i = 0; i < words; ++i) {
        uint32_t sum = 0;
        for (int other = 0; other < count; ++other) sum += word(rank(other), i);
        check_word("dest", to, i, sum);
    }
    check_guards(to, words * 4);
}

// The last-level cache, as the kernel tells; 32 MiB where it does not.
size_t cache_bytes() {
    FILE* file = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "re");
    size_t kib = 0;
    if (file && fscanf(file, "%zuK", &kib) != 1)
        kib = 0;
    if (file)
        fclose(file);
    return kib ? kib << 10 : size_t{32} << 20;
}

}  // namespace

int main() {
    start("beyond_cache");
    const size_t cache = cache_bytes();
    if (cache > size_t{512} << 20) {
        if (pe == 0)
            printf("skipped: a last-level cache of %zu bytes is too large to go beyond in a test\n", cache);
        shmem_finalize();
        return 77;
    }
    // All members together then move more than the cache holds, in every operation.
    const size_t words = cache / 4 / static_cast<size_t>(n_pes) * 9 / 8 + 5;
    room = words * 4 + 4096;
    dest = static_cast<unsigned char*>(shmem_align(64, room));
    source = static_cast<unsigned char*>(shmem_align(64, room));
    CHECK(dest && source);
    Random random = random_for(1);  // the same on all
    broadcast(words, 1 + random.below(63), static_cast<int>(random.below(static_cast<size_t>(n_pes))));
    collect(words, random.below(64), true);
    collect(words, random.below(64), false);
    alltoall(words, random.below(64));
    for (bool in_place : {false, true})
        for (Kind kind : {Kind::kReduce, Kind::kInclusive, Kind::kExclusive})
            add_up(kind, words, random.below(64), in_place);
    shmem_barrier_all();
    return finish();
}

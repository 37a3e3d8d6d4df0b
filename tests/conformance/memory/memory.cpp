// The memory collectives: offsets alike on all PEs, alignment, contents kept by realloc and zeroed by calloc, NULL for
// what does not fit, on all PEs alike; freed memory joined again; and random schedules against a model in which every
// allocation holds its own pattern.
#include "check.h"
#include "tables.h"

#include <algorithm>
#include <bit>
#include <vector>

using namespace conformance;

namespace {

constexpr int kMaxPes = 8;
uint64_t offsets[kMaxPes];
char* anchor;  // an allocation that every PE has at the same offset

// All PEs have ptr at the same distance from the anchor, or all have NULL.
void check_alike(const void* ptr) {
    const uint64_t mine = ptr ? static_cast<uint64_t>(static_cast<const char*>(ptr) - anchor) : UINT64_MAX;
    for (int to = 0; to < n_pes; ++to) shmem_uint64_p(&offsets[pe], mine, to);
    shmem_barrier_all();
    for (int from = 0; from < n_pes; ++from) CHECK_EQ(offsets[from], mine);
    shmem_barrier_all();
}

bool aligned(const void* ptr, size_t alignment) {
    return reinterpret_cast<uintptr_t>(ptr) % alignment == 0;
}

void basics() {
    subject = "shmem_malloc and its kin";
    char* a = static_cast<char*>(shmem_malloc(1));
    char* b = static_cast<char*>(shmem_malloc(100003));
    CHECK(a && b && aligned(a, 8) && aligned(b, 8) && a != b);
    memset(b, 0x77, 100003);
    check_alike(a);
    check_alike(b);
    shmem_free(b);
    auto* zeroes = static_cast<unsigned char*>(shmem_calloc(333, 300));  // likely where b was
    CHECK(zeroes);
    CHECK_UNTOUCHED("calloc", zeroes, 0, 333 * 300);
    check_alike(zeroes);
    CHECK(!shmem_calloc(SIZE_MAX / 2, 3));
    CHECK(!shmem_calloc(SIZE_MAX, SIZE_MAX));
    CHECK(!shmem_calloc(0, 5) && !shmem_calloc(5, 0));
    for (long hints : {0L, SHMEM_MALLOC_ATOMICS_REMOTE, SHMEM_MALLOC_SIGNAL_REMOTE,
                       SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE}) {
        auto* hinted = static_cast<uint64_t*>(shmem_malloc_with_hints(sizeof(uint64_t), hints));
        CHECK(hinted && aligned(hinted, 8));
        *hinted = 1;
        check_alike(hinted);
        shmem_uint64_atomic_add(hinted, 4, (pe + 1) % n_pes);
        shmem_barrier_all();
        CHECK_EQ(*hinted, 5);
        shmem_free(hinted);
    }
    CHECK(!shmem_malloc_with_hints(0, 0));
    shmem_free(a);
    shmem_free(zeroes);
    shmem_free(nullptr);
}

void alignments() {
    subject = "shmem_align";
    for (size_t alignment = sizeof(void*); alignment <= (size_t{64} << 10); alignment *= 2) {
        void* odd = shmem_malloc(24);
        void* ptr = shmem_align(alignment, 3);
        CHECK(ptr && aligned(ptr, alignment));
        void* other = shmem_ptr(ptr, (pe + 1) % n_pes);
        CHECK(!other || aligned(other, alignment));  // none on another node
        CHECK(shmem_ptr(ptr, pe) == ptr);
        check_alike(ptr);
        shmem_free(odd);
        shmem_free(ptr);
    }
    CHECK(!shmem_align(64, 0));
}

// Alignments around the size of the heap and beyond: met or NULL, on all PEs alike; those that the heap has room for
// are met, as often as it does.
void large_alignments(size_t heap_bytes) {
    subject = "shmem_align";
    for (size_t alignment = size_t{128} << 10; alignment != 0; alignment *= 2) {
        std::vector<void*> places;
        while (void* ptr = shmem_align(alignment, 100)) {
            CHECK(aligned(ptr, alignment));
            check_alike(ptr);
            memset(ptr, pe + 1, 100);
            places.push_back(ptr);
            if (places.size() == 3)
                break;
        }
        check_alike(nullptr);
        // The anchor has one of the places.
        if (alignment <= heap_bytes / 2)
            CHECK(places.size() >= std::min<size_t>(3, heap_bytes / alignment - 1));
        shmem_barrier_all();
        for (void* ptr : places) CHECK_UNTOUCHED("an aligned place", ptr, static_cast<unsigned char>(pe + 1), 100);
        for (void* ptr : places) shmem_free(ptr);
        CHECK(!shmem_align(alignment, 0));
        CHECK(!shmem_align(alignment, SIZE_MAX));
    }
    void* whole = shmem_align(heap_bytes, 64);  // at the start, where the anchor is
    CHECK(!whole);
}

// In a plain run these do nothing, so one PE may be alone in them.
void zero_is_no_collective() {
    subject = "shmem_malloc(0)";
    const bool alone = !checked_run();
    for (int times = 0; times < (alone ? pe * 3 : 3); ++times) {
        CHECK(!shmem_malloc(0));
        shmem_free(nullptr);
        CHECK(!shmem_realloc(nullptr, 0));
        CHECK(!shmem_align(64, 0));
        CHECK(!shmem_calloc(0, 0));
        CHECK(!shmem_malloc_with_hints(0, SHMEM_MALLOC_SIGNAL_REMOTE));
    }
    shmem_barrier_all();
}

void reallocations() {
    subject = "shmem_realloc";
    unsigned char expected[5000];
    random_for(3, static_cast<uint64_t>(pe)).fill(expected, sizeof expected);
    auto* a = static_cast<unsigned char*>(shmem_realloc(nullptr, 100));
    CHECK(a);
    memcpy(a, expected, 100);
    for (size_t size : {5000, 63, 64, 65, 4096, 1}) {  // grows, shrinks, with and without room behind it
        const size_t kept = std::min<size_t>(size, 63);
        void* blocker = size == 4096 ? shmem_malloc(64) : nullptr;
        a = static_cast<unsigned char*>(shmem_realloc(a, size));
        CHECK(a);
        check_alike(a);
        CHECK_BYTES("what realloc keeps", a, expected, std::min<size_t>(kept, size));
        memset(a, 0, size);
        memcpy(a, expected, size);
        shmem_free(blocker);
    }
    memcpy(a, expected, 1);
    CHECK(!shmem_realloc(a, size_t{1} << 60));  // does not fit: a stays as it is
    CHECK_EQ(*a, expected[0]);
    CHECK(!shmem_realloc(a, 0));  // frees
    shmem_barrier_all();
}

// The largest piece that can be had, by trying.
size_t largest() {
    size_t low = 0, high = size_t{1} << 40;
    while (low + 1 < high) {
        const size_t middle = low + (high - low) / 2;
        void* ptr = shmem_malloc(middle);
        (ptr ? low : high) = middle;
        shmem_free(ptr);
    }
    return low;
}

// Fills the heap with pieces, frees them in a random order, and has all of it again.
void exhaustion() {
    subject = "exhaustion";
    const size_t all = largest();
    std::vector<void*> pieces;
    Random shared = random_for(4);
    const size_t unit = all / 40;
    for (;;) {
        void* ptr = shmem_malloc(unit / 2 + shared.below(unit));
        check_alike(ptr);
        if (!ptr)
            break;
        CHECK(pieces.empty() || ptr != pieces.back());
        pieces.push_back(ptr);
    }
    CHECK(pieces.size() >= 20);
    CHECK(!shmem_malloc(all) && !shmem_calloc(all, 1) && !shmem_align(4096, all) && !shmem_malloc(SIZE_MAX));
    while (!pieces.empty()) {
        std::swap(pieces[shared.below(pieces.size())], pieces.back());
        shmem_free(pieces.back());
        pieces.pop_back();
    }
    CHECK_EQ(largest(), all);
}

// ---- Random schedules.
struct Piece {
    unsigned char* at;
    size_t bytes;
    uint64_t stream;
};

void write_pattern(const Piece& piece) {
    random_for(piece.stream, static_cast<uint64_t>(pe)).fill(piece.at, piece.bytes);
}

void check_pattern(const Piece& piece, size_t bytes) {
    std::vector<unsigned char> expected(piece.bytes);
    random_for(piece.stream, static_cast<uint64_t>(pe)).fill(expected.data(), piece.bytes);
    CHECK_BYTES("an allocation's contents", piece.at, expected.data(), bytes);
}

size_t random_size(Random& random) {
    return 1 + random.below(size_t{1} << (random.below(15)));
}

void add_piece(std::vector<Piece>& pieces, Random& random, uint64_t step) {
    const size_t bytes = random_size(random), alignment = size_t{8} << random.below(10);
    const bool by_align = random.below(3) == 0;
    void* ptr = by_align ? shmem_align(alignment, bytes) : shmem_malloc(bytes);
    if (!ptr)
        return;
    CHECK(aligned(ptr, by_align ? alignment : sizeof(void*)));
    pieces.push_back({static_cast<unsigned char*>(ptr), bytes, step});
    write_pattern(pieces.back());
}

void random_schedule() {
    subject = "a random schedule";
    std::vector<Piece> pieces;
    Random random = random_for(5);  // the same everywhere
    for (uint64_t step = 0; step < 600; ++step) {
        const size_t choice = random.below(10);
        const size_t which = pieces.empty() ? 0 : random.below(pieces.size());
        if (pieces.empty() || choice < 5) {
            add_piece(pieces, random, step);
        } else if (choice < 8) {
            check_pattern(pieces[which], pieces[which].bytes);
            shmem_free(pieces[which].at);
            pieces[which] = pieces.back();
            pieces.pop_back();
        } else {
            Piece& piece = pieces[which];
            const size_t bytes = random_size(random);
            if (void* ptr = shmem_realloc(piece.at, bytes)) {
                piece.at = static_cast<unsigned char*>(ptr);
                check_pattern(piece, std::min(bytes, piece.bytes));
                piece = {piece.at, bytes, step};
                write_pattern(piece);
            }
        }
        if (step % 25 == 0)
            check_alike(pieces.empty() ? nullptr : pieces.back().at);
    }
    for (const Piece& piece : pieces) check_pattern(piece, piece.bytes);
    for (const Piece& piece : pieces) shmem_free(piece.at);
}

}  // namespace

int main() {
    start("memory");
    CHECK(n_pes <= kMaxPes);
    anchor = static_cast<char*>(shmem_malloc(64));
    CHECK(anchor);
    basics();
    alignments();
    large_alignments(std::bit_ceil(largest()));
    zero_is_no_collective();
    reallocations();
    const size_t before = largest();
    random_schedule();
    CHECK_EQ(largest(), before);  // nothing was lost
    exhaustion();
    return finish();
}

// iput, iget, ibput and ibget against a loop over single elements: random strides, block sizes and counts, heap and
// static data, every target; bytes between and beside the elements stay what they were, on both sides.
#include "check.h"
#include "tables.h"

#include <algorithm>
#include <vector>

using namespace conformance;

namespace {

constexpr size_t kRounds = 6;  // per function, region and PE
constexpr size_t kSlotElements = 600;
constexpr size_t kMaxBytes = 16;
constexpr size_t kSlot = kSlotElements * kMaxBytes;
constexpr unsigned char kFresh = 0x5a;
constexpr int kMaxPes = 8;

unsigned char static_area[kMaxPes * kSlot] __attribute__((aligned(64)));
unsigned char* heap_area;

struct Shape {
    ptrdiff_t dst, sst;
    size_t bsize, nblocks;
    size_t to, from;  // elements before the first one
    int target;

    size_t extent(ptrdiff_t stride) const {
        return nblocks == 0 || bsize == 0 ? 0 : (nblocks - 1) * static_cast<size_t>(stride) + bsize;
    }
};

Shape random_shape(Random& random, bool blocked) {
    constexpr size_t kBlocks[] = {0, 1, 2, 3, 7, 16, 17, 50};
    Shape shape;
    shape.bsize = blocked ? random.below(5) : 1;
    shape.nblocks = kBlocks[random.below(std::size(kBlocks))];
    const size_t least = std::max<size_t>(shape.bsize, 1);
    shape.dst = static_cast<ptrdiff_t>(least + random.below(5));
    shape.sst = static_cast<ptrdiff_t>(least + random.below(5));
    shape.to = 1 + random.below(8);
    shape.from = 1 + random.below(8);
    shape.target = static_cast<int>(random.below(static_cast<size_t>(n_pes)));
    return shape;
}

// The model: one element at a time.
void copy_model(unsigned char* to, const unsigned char* from, const Shape& shape, size_t bytes) {
    for (size_t block = 0; block < shape.nblocks; ++block)
        for (size_t i = 0; i < shape.bsize; ++i)
            memcpy(to + (shape.to + block * static_cast<size_t>(shape.dst) + i) * bytes,
                   from + (shape.from + block * static_cast<size_t>(shape.sst) + i) * bytes, bytes);
}

void call(const strided_row& row, unsigned char* to, const unsigned char* from, const Shape& shape) {
    const size_t bytes = row.info.bytes;
    row.call(to + shape.to * bytes, from + shape.from * bytes, shape.dst, shape.sst, shape.bsize, shape.nblocks,
             shape.target);
    check_reached(row.info.name);
}

void test_put(const strided_row& row, size_t index, unsigned char* area) {
    subject = row.info.name;
    memset(area, kFresh, static_cast<size_t>(n_pes) * kSlot);
    barrier();
    std::vector<unsigned char> source(kSlot);
    std::vector<unsigned char> expected(static_cast<size_t>(n_pes) * kSlot, kFresh);
    for (int writer = 0; writer < n_pes; ++writer) {  // all know what all do; each does its own part
        Random random = random_for(index, static_cast<uint64_t>(writer), 1);
        random.fill(source.data(), source.size());
        for (size_t round = 0; round < kRounds; ++round) {
            const Shape shape = random_shape(random, row.blocked);
            if (writer == pe) {
                call(row, area + static_cast<size_t>(pe) * kSlot, source.data(), shape);
                shmem_ctx_fence(conformance_ctx), shmem_fence();  // the next one may write to the same place
            }
            if (shape.target == pe)
                copy_model(&expected[static_cast<size_t>(writer) * kSlot], source.data(), shape, row.info.bytes);
        }
    }
    barrier();
    CHECK_BYTES("all that PEs put", area, expected.data(), expected.size());
    barrier();
}

void test_get(const strided_row& row, size_t index, unsigned char* area) {
    subject = row.info.name;
    random_for(index, static_cast<uint64_t>(pe), 2).fill(area, kSlot);
    barrier();
    Random random = random_for(index, static_cast<uint64_t>(pe), 3);
    std::vector<unsigned char> got(kSlot, kFresh), expected(kSlot, kFresh), remote(kSlot);
    for (size_t round = 0; round < kRounds; ++round) {
        const Shape shape = random_shape(random, row.blocked);
        random_for(index, static_cast<uint64_t>(shape.target), 2).fill(remote.data(), kSlot);
        call(row, got.data(), area, shape);
        copy_model(expected.data(), remote.data(), shape, row.info.bytes);
        CHECK_BYTES("all that was got", got.data(), expected.data(), kSlot);
    }
    barrier();
}

// Many elements: 1000 and 65537, every third one.
void test_long(const strided_row& put, const strided_row& get, size_t count) {
    const size_t bytes = put.info.bytes, bsize = put.blocked ? 2 : 1, elements = 3 * count;
    auto* area = static_cast<unsigned char*>(shmem_malloc(elements * bytes));
    CHECK(area);
    std::vector<unsigned char> source(elements * bytes), expected(elements * bytes, kFresh), got(elements * bytes, 0);
    const int next = (pe + 1) % n_pes, previous = (pe + n_pes - 1) % n_pes;
    const Shape shape = {3, 2, bsize, count, 0, 0, next};
    memset(area, kFresh, elements * bytes);
    barrier();
    random_for(count, static_cast<uint64_t>(pe)).fill(source.data(), source.size());
    subject = put.info.name;
    call(put, area, source.data(), shape);
    barrier();
    random_for(count, static_cast<uint64_t>(previous)).fill(source.data(), source.size());
    copy_model(expected.data(), source.data(), shape, bytes);
    CHECK_BYTES("a long one", area, expected.data(), expected.size());
    barrier();
    subject = get.info.name;
    call(get, got.data(), area, {2, 3, bsize, count, 0, 0, previous});
    std::vector<unsigned char> back(elements * bytes, 0);
    random_for(count, static_cast<uint64_t>((previous + n_pes - 1) % n_pes)).fill(source.data(), source.size());
    copy_model(back.data(), source.data(), {2, 2, bsize, count, 0, 0, next}, bytes);
    CHECK_BYTES("a long one back", got.data(), back.data(), back.size());
    shmem_free(area);
}

}  // namespace

int main() {
    start("strided");
    heap_area = static_cast<unsigned char*>(shmem_malloc(static_cast<size_t>(n_pes) * kSlot));
    CHECK(heap_area && n_pes <= kMaxPes);
    for (unsigned char* area : {heap_area, static_area}) {
        for (size_t i = 0; i < iput_rows_count; ++i)
            if (is_drawn(i))
                test_put(iput_rows[i], i, area);
        for (size_t i = 0; i < ibput_rows_count; ++i)
            if (is_drawn(i))
                test_put(ibput_rows[i], 1000 + i, area);
        for (size_t i = 0; i < iget_rows_count; ++i)
            if (is_drawn(i))
                test_get(iget_rows[i], i, area);
        for (size_t i = 0; i < ibget_rows_count; ++i)
            if (is_drawn(i))
                test_get(ibget_rows[i], 1000 + i, area);
    }
    const size_t some = seed % iput_rows_count;  // another function each run
    for (size_t count : {size_t{1000}, size_t{65537}}) {
        test_long(iput_rows[some], iget_rows[some], count);
        test_long(ibput_rows[some], ibget_rows[some], count);
    }
    return finish();
}

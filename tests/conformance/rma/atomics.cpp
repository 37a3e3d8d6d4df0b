// Every atomic on one PE's variables, alone there, against a sequential model: boundary and random values, heap and
// static data, every target; the bytes beside the datum stay what they were.
#include "check.h"
#include "completion.h"
#include "tables.h"

using namespace conformance;

namespace {

constexpr int kMaxPes = 8;
constexpr size_t kRounds = 12;  // per function, region and target
constexpr unsigned char kFresh = 0xc3;

struct Slot {
    unsigned char before[8], datum[8], behind[8];
};
Slot static_slots[kMaxPes];
Slot* heap_slots;

uint64_t mask(size_t bytes) {
    return bytes == 8 ? ~uint64_t{0} : 0xffffffffu;
}

uint64_t model(amo_kind op, uint64_t old, uint64_t value, uint64_t cond, size_t bytes) {
    switch (op) {
        case AMO_FETCH:
            return old;
        case AMO_SET:
        case AMO_SWAP:
            return value;
        case AMO_COMPARE_SWAP:
            return old == cond ? value : old;
        case AMO_INC:
            return (old + 1) & mask(bytes);
        case AMO_ADD:
            return (old + value) & mask(bytes);
        case AMO_AND:
            return old & value;
        case AMO_OR:
            return old | value;
        case AMO_XOR:
            return old ^ value;
    }
    return 0;
}

// Zero, ones, the smallest and largest signed value, a NaN with a payload, small and random numbers.
uint64_t make_value(const function_info& info, Random& random) {
    const uint64_t bits = info.bytes * 8;
    switch (random.below(7)) {
        case 0:
            return 0;
        case 1:
            return mask(info.bytes);
        case 2:
            return uint64_t{1} << (bits - 1);
        case 3:
            return mask(info.bytes) >> 1;
        case 4:
            if (info.kind == 'f')
                return info.bytes == 4 ? 0x7fc54321u : 0x7ff8000012345678u;
            return random.below(3);
        default:
            return random.next() & mask(info.bytes);
    }
}

void one_operation(const amo_row& row, Slot* slot, int target, Random& random) {
    const size_t bytes = row.info.bytes;
    Slot local;
    const uint64_t old = make_value(row.info, random), value = make_value(row.info, random);
    const uint64_t cond = random.below(2) ? old : make_value(row.info, random);
    memset(&local, kFresh, sizeof local);
    memcpy(local.datum, &old, bytes);
    shmem_putmem(slot, &local, sizeof local, target);
    shmem_quiet();
    uint64_t fetched = 0x1111111111111111u;
    row.call(&fetched, slot->datum, &value, &cond, target);
    check_reached(row.info.name);
    if (row.info.completion == COMPLETE_AT_RETURN)
        shmem_ctx_quiet(conformance_ctx), shmem_quiet();
    complete(row.info);
    Slot expected = local, got;
    const uint64_t now = model(row.op, old, value, cond, bytes);
    memcpy(expected.datum, &now, bytes);
    shmem_getmem(&got, slot, sizeof got, target);
    CHECK_BYTES("the datum and the bytes beside it", &got, &expected, sizeof got);
    if (row.fetches)
        CHECK_BYTES("the old value", &fetched, &old, bytes);
    else
        CHECK_EQ(fetched, 0x1111111111111111u);
}

}  // namespace

int main() {
    start("atomics");
    heap_slots = static_cast<Slot*>(shmem_malloc(sizeof(Slot) * static_cast<size_t>(n_pes)));
    CHECK(heap_slots && n_pes <= kMaxPes);
    Random random = random_for(1, static_cast<uint64_t>(pe));
    for (Slot* slots : {heap_slots, static_slots}) {
        for (size_t i = 0; i < amo_rows_count; ++i) {
            if (!is_drawn(i))
                continue;
            subject = amo_rows[i].info.name;
            for (int target = 0; target < n_pes; ++target)
                for (size_t round = 0; round < kRounds; ++round) one_operation(amo_rows[i], slots + pe, target, random);
        }
    }
    return finish();
}

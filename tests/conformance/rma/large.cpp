// Large transfers beside small ones, to the heap and to static data: what is behind a fence, a signal, a quiet or a
// request finds them complete, and nothing else is touched. A ring: each PE sends to the next and checks what it got.
#include "check.h"
#include "tables.h"

#include <shmemx.h>
#include <algorithm>
#include <vector>

using namespace conformance;

namespace {

constexpr size_t kBytes = 300000, kGuard = 64;
constexpr unsigned char kFresh = 0x3c;
constexpr size_t kSizes[] = {8, 1000, 32767, 32768, 32769, 65536, 200001, kBytes};

unsigned char static_place[kBytes + 2 * kGuard];
unsigned char* heap_place;
uint64_t flag, acknowledged;  // rounds that have come; that the next has checked
uint64_t round_number;
int next, previous;

struct Round {
    unsigned char* place;
    size_t bytes;
    std::vector<unsigned char> mine, other;  // what comes last, and what may come first
    shmem_ctx_t ctx = conformance_ctx;

    void put_nbi(const std::vector<unsigned char>& data) const {
        shmem_ctx_putmem_nbi(ctx, place, data.data(), bytes, next);
    }
    void tell() const { shmem_ctx_uint64_p(ctx, &flag, round_number, next); }
};

void fenced(const Round& round) {
    round.put_nbi(round.mine);
    shmem_ctx_fence(round.ctx);
    round.tell();
}

void large_behind_large(const Round& round) {
    round.put_nbi(round.other);
    shmem_ctx_fence(round.ctx);
    round.put_nbi(round.mine);
    shmem_ctx_fence(round.ctx);
    shmem_ctx_fence(round.ctx);
    round.tell();
}

void large_behind_small(const Round& round) {
    for (size_t at = 0; at + 8 <= round.bytes; at += 4096)
        shmem_ctx_putmem_nbi(round.ctx, round.place + at, round.other.data() + at, 8, next);
    shmem_ctx_fence(round.ctx);
    shmem_ctx_putmem(round.ctx, round.place, round.mine.data(), round.bytes, next);
    shmem_ctx_fence(round.ctx);
    round.tell();
}

void small_behind_large(const Round& round) {
    round.put_nbi(round.other);
    shmem_ctx_fence(round.ctx);
    for (size_t at = 0; at < round.bytes; at += 500)
        shmem_ctx_putmem_nbi(round.ctx, round.place + at, round.mine.data() + at,
                             std::min<size_t>(500, round.bytes - at), next);
    shmem_ctx_fence(round.ctx);
    round.tell();
}

void signalled(const Round& round) {
    shmem_ctx_putmem_signal_nbi(round.ctx, round.place, round.mine.data(), round.bytes, &flag, round_number,
                                SHMEM_SIGNAL_SET, next);
}

void quieted(const Round& round) {
    round.put_nbi(round.mine);
    if (round_number % 2 == 0)
        shmem_ctx_quiet(round.ctx);
    else
        shmem_ctx_pe_quiet(round.ctx, &next, 1);
    uint64_t* const told = &flag;  // by another way, so that no order of a context helps
    shmem_uint64_atomic_set(told, round_number, next);
}

void requested(const Round& round) {
    shmemx_request_t req = SHMEMX_REQUEST_NULL;
    shmemx_ctx_putmem_nbe(round.ctx, round.place, round.mine.data(), round.bytes, next, &req);
    shmemx_request_wait(&req);
    shmem_uint64_atomic_set(&flag, round_number, next);
}

// Behind its own put and a quiet, in parts of every size; and without waiting, beside fetching atomics.
void read_back(const Round& round) {
    round.put_nbi(round.mine);
    shmem_ctx_quiet(round.ctx);
    std::vector<unsigned char> got(round.bytes), again(round.bytes);
    for (size_t at = 0, part = 1; at < round.bytes; at += part, part *= 7)
        shmem_ctx_getmem(round.ctx, got.data() + at, round.place + at, std::min(part, round.bytes - at), next);
    CHECK_BYTES("what a get brings", got.data(), round.mine.data(), round.bytes);
    uint64_t old = 0, last = 0;
    shmem_ctx_uint64_atomic_fetch_nbi(round.ctx, &old, &flag, next);
    shmem_ctx_getmem_nbi(round.ctx, again.data(), round.place, round.bytes, next);
    shmem_ctx_uint64_atomic_fetch_nbi(round.ctx, &last, &flag, next);
    shmem_ctx_quiet(round.ctx);
    CHECK_EQ(old, round_number - 1);
    CHECK_EQ(last, round_number - 1);
    CHECK_BYTES("what a get without waiting brings", again.data(), round.mine.data(), round.bytes);
    round.tell();
}

const struct {
    const char* name;
    void (*send)(const Round& round);
} kForms[] = {{"put_nbi; fence; p", fenced},
              {"put_nbi; fence; put_nbi; fence; p", large_behind_large},
              {"small put_nbi; fence; put; fence; p", large_behind_small},
              {"put_nbi; fence; small put_nbi; fence; p", small_behind_large},
              {"put_signal_nbi", signalled},
              {"put_nbi; quiet", quieted},
              {"put_nbe; request_wait", requested},
              {"put_nbi; quiet; get", read_back}};

void exchange(unsigned char* memory, size_t bytes, void (*send)(const Round&)) {
    ++round_number;
    Round round = {memory + kGuard, bytes, std::vector<unsigned char>(bytes), std::vector<unsigned char>(bytes)};
    std::vector<unsigned char> expected(bytes);
    random_for(round_number, static_cast<uint64_t>(pe)).fill(round.other.data(), 8);
    std::fill(round.other.begin(), round.other.end(), round.other[0]);
    for (std::vector<unsigned char>* data : {&round.mine, &expected}) {
        Random random = random_for(round_number, static_cast<uint64_t>(data == &expected ? previous : pe));
        for (unsigned char& byte : *data) byte = static_cast<unsigned char>(random.next());
    }
    send(round);
    shmem_uint64_wait_until(&flag, SHMEM_CMP_GE, round_number);
    CHECK_EQ(memory[kGuard + bytes - 1], expected[bytes - 1]);  // what would come last
    CHECK_BYTES("what has come", memory + kGuard, expected.data(), bytes);
    CHECK_UNTOUCHED("before the data", memory, kFresh, kGuard);
    CHECK_UNTOUCHED("behind the data", memory + kGuard + bytes, kFresh, kBytes - bytes + kGuard);
    memset(memory, kFresh, kBytes + 2 * kGuard);
    shmem_quiet();
    shmem_ctx_quiet(round.ctx);
    shmem_uint64_atomic_set(&acknowledged, round_number, previous);
    shmem_uint64_wait_until(&acknowledged, SHMEM_CMP_GE, round_number);
}

}  // namespace

int main() {
    start("large");
    next = (pe + 1) % n_pes;
    previous = (pe + n_pes - 1) % n_pes;
    heap_place = static_cast<unsigned char*>(shmem_malloc(kBytes + 2 * kGuard));
    CHECK(heap_place != nullptr);
    for (unsigned char* memory : {static_place, heap_place}) memset(memory, kFresh, kBytes + 2 * kGuard);
    barrier();
    for (unsigned char* memory : {static_place, heap_place})
        for (const auto& form : kForms)
            for (const size_t bytes : kSizes) {
                subject = form.name;
                exchange(memory, bytes, form.send);
            }
    barrier();
    shmem_free(heap_place);
    return finish();
}

// What of the node's memory a PE leaves to a core dump, and what mlockall commits and locks: its own static data and
// what was handed out of its own heap, of which the rest, the heaps of others and the segments of teams are neither read
// nor committed. Counted in the kernel's own books, /proc/self/smaps.
//     node_memory               what would be dumped
//     node_memory now|on-fault  under mlockall(MCL_FUTURE), with MCL_ONFAULT; 77 when it is not allowed
//     node_memory prepared      says what of the heap is resident and may be of huge pages, before it is used
//     node_memory crash         PE 0 aborts, all others wait for it
#include "check.h"
#include "tables.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace conformance;

namespace {

constexpr size_t kMiB = 1 << 20, kHanded = 2 * kMiB;  // the heap is handed out in pieces of 2 MiB
constexpr size_t kBytes = 5 * kMiB;
constexpr long kWord = 0x5eed0f1ea5edc0de;

long words[512] = {1};

// Bytes of [begin, begin + bytes) in mappings of the node's memory that have the flag, or that are resident.
struct Counted {
    size_t dumped = 0, locked = 0, huge = 0, resident = 0;
};

Counted count(const void* from, size_t bytes) {
    Counted counted;
    const auto first = reinterpret_cast<uintptr_t>(from);
    FILE* file = fopen("/proc/self/smaps", "r");
    CHECK(file);
    char line[512];
    size_t size = 0, resident = 0;
    while (fgets(line, sizeof line, file)) {
        unsigned long begin = 0, end = 0;
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2) {
            const uintptr_t low = begin > first ? begin : first;
            const uintptr_t high = end < first + bytes ? end : first + bytes;
            size = strstr(line, "memfd:heddle") && high > low ? high - low : 0;
        } else if (sscanf(line, "Rss: %zu kB", &resident) == 1) {
            resident *= 1024;
        } else if (strncmp(line, "VmFlags:", 8) == 0 && size > 0) {
            counted.dumped += strstr(line, " dd") ? 0 : size;
            counted.locked += strstr(line, " lo") ? size : 0;
            counted.huge += strstr(line, " hg") ? size : 0;
            counted.resident += resident;
        }
    }
    fclose(file);
    return counted;
}

Counted count_all() {
    return count(nullptr, SIZE_MAX);
}

// Bytes of the node's memory that exist.
size_t committed() {
    for (int fd = 3; fd < 64; ++fd) {
        char name[64] = "";
        struct stat status;
        if (readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), name, sizeof name - 1) > 0 &&
            strstr(name, "memfd:heddle") && fstat(fd, &status) == 0)
            return static_cast<size_t>(status.st_blocks) * 512;
    }
    fail(__FILE__, __LINE__, "the node's memory has no descriptor");
}

size_t static_bytes() {
    return count(words, 1).dumped == 1 ? count_all().dumped : SIZE_MAX;
}

void what_is_dumped() {
    subject = "core dump";
    const size_t data = static_bytes();
    CHECK(data < kMiB);  // this program's, without any of the heap
    CHECK_EQ(count(words, sizeof words).dumped, sizeof words);
    auto* heap = static_cast<char*>(shmem_malloc(kBytes));
    CHECK(heap);
    CHECK_EQ(count(heap, kBytes).dumped, kBytes);
    CHECK(count_all().dumped <= data + kBytes + kHanded);
    heap = static_cast<char*>(shmem_realloc(heap, 2 * kBytes));
    CHECK_EQ(count(heap, 2 * kBytes).dumped, 2 * kBytes);
    CHECK(count_all().dumped <= data + 3 * kBytes + kHanded);
    if (n_pes > 1)
        CHECK_EQ(count(shmem_ptr(heap, (pe + 1) % n_pes), kBytes).dumped, 0u);
    shmem_barrier_all();
    CHECK(committed() < static_cast<size_t>(n_pes) * 2 * kMiB);  // nothing was touched but by the library
    shmem_free(heap);
}

void what_is_locked(bool on_fault) {
    subject = "mlockall";
    auto* heap = static_cast<char*>(shmem_malloc(kBytes));
    const Counted mine = count(heap, kBytes);
    CHECK_EQ(mine.locked, kBytes);
    CHECK(on_fault ? mine.resident < kBytes : mine.resident >= kBytes);
    const size_t own = kMiB + kBytes + kHanded;  // static data, the heap
    CHECK(count_all().locked <= own + kMiB);     // the job page
    if (n_pes > 1)
        CHECK_EQ(count(shmem_ptr(heap, (pe + 1) % n_pes), kBytes).locked, 0u);
    shmem_barrier_all();
    CHECK(committed() < static_cast<size_t>(n_pes) * (own + 2 * kMiB));
    shmem_barrier_all();
    shmem_free(heap);
    // After init with MCL_ONFAULT alone: otherwise all of the node's memory would be touched. Finalize copes with it.
    CHECK_EQ(mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT), 0);
    CHECK(committed() < static_cast<size_t>(n_pes) * (own + 2 * kMiB));
}

void prepared() {
    const auto* heap = static_cast<char*>(shmem_malloc(kBytes));
    const Counted mine = count(heap, kBytes);
    printf("of %zu bytes: %d resident, %d for huge pages\n", kBytes, mine.resident >= kBytes, mine.huge == kBytes);
}

void crash() {
    auto* heap = static_cast<long*>(shmem_malloc(kBytes));
    words[7] = kWord + pe;
    heap[kBytes / sizeof(long) - 1] = kWord + pe;
    printf("words %p heap %p word %lx\n", static_cast<void*>(&words[7]),
           static_cast<void*>(&heap[kBytes / sizeof(long) - 1]), static_cast<unsigned long>(kWord));
    shmem_barrier_all();
    if (pe == 0)
        abort();
    shmem_barrier_all();
}

}  // namespace

int main(int argc, char** argv) {
    const std::string mode = argc > 1 ? argv[1] : "";
    const bool on_fault = mode == "on-fault";
    if ((mode == "now" || on_fault) && mlockall(MCL_CURRENT | MCL_FUTURE | (on_fault ? MCL_ONFAULT : 0)) != 0) {
        perror("skipped: mlockall");
        return 77;
    }
    start("node_memory");
    if (mode == "crash")
        crash();
    else if (mode == "prepared")
        prepared();
    else if (mode.empty())
        what_is_dumped();
    else
        what_is_locked(on_fault);
    return finish();
}

// Static data as symmetric memory: the range found, and a process that moves it. Moving is for good, so it happens in
// forked children. The code under test is in a shared library here as in libheddle.so: its own variables must not be
// among those that it moves.
#include "memory/static_data.h"
#include "memory/fork.h"
#include "os/mappings.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

long unit_global = 17;
long unit_zero;
char unit_large_zero[3 << 20];
extern const long unit_const;
const long unit_const = 23;
static int unit_static = 5;
constexpr size_t kMaxPageBytes = 65536;
alignas(kMaxPageBytes) char unit_guarded[5 * kMaxPageBytes];

namespace heddle::memory {
namespace {

bool holds(const StaticRange& range, const void* address) {
    return reinterpret_cast<uintptr_t>(address) >= range.begin && reinterpret_cast<uintptr_t>(address) < range.end;
}

TEST(StaticRange, HoldsVariablesAndNothingElse) {
    const StaticRange range = find_static_data();
    ASSERT_GT(range.bytes(), 0u);
    EXPECT_EQ(range.begin % os::page_bytes(), 0u);
    EXPECT_EQ(range.end % os::page_bytes(), 0u);
    EXPECT_TRUE(holds(range, &unit_global));
    EXPECT_TRUE(holds(range, &unit_zero));
    EXPECT_TRUE(holds(range, &unit_static));
    EXPECT_TRUE(holds(range, unit_large_zero));
    EXPECT_TRUE(holds(range, unit_large_zero + sizeof unit_large_zero - 1));
    EXPECT_FALSE(holds(range, &unit_const));
    EXPECT_FALSE(holds(range, reinterpret_cast<const void*>(&os::create_memory)));
    EXPECT_FALSE(holds(range, &range)) << "the stack";
    void* heap = malloc(16);
    EXPECT_FALSE(holds(range, heap));
    free(heap);
}

// --- Segments as linkers lay them out: the range is one, its parts are what is writable

ElfW(Phdr) segment(uint32_t type, uint32_t flags, uintptr_t address, size_t bytes) {
    ElfW(Phdr) header = {};
    header.p_type = type;
    header.p_flags = flags;
    header.p_vaddr = address;
    header.p_memsz = bytes;
    return header;
}

using Parts = std::vector<std::pair<uintptr_t, uintptr_t>>;
void expect_parts(const std::vector<ElfW(Phdr)>& headers, const Parts& expected) {
    if (os::page_bytes() != 0x1000)
        GTEST_SKIP() << "the addresses are those of pages of 4 KiB";
    for (const uintptr_t base : {uintptr_t{0}, uintptr_t{0x555555554000}}) {
        const StaticRange range = find_static_data(headers.data(), headers.size(), base);
        Parts parts;
        for (const StaticRange::Part& part : range.parts) parts.push_back({part.begin - base, part.end - base});
        EXPECT_EQ(parts, expected);
        if (!expected.empty()) {
            EXPECT_EQ(range.begin, base + expected.front().first);
            EXPECT_EQ(range.end, base + expected.back().second);
        } else {
            EXPECT_EQ(range.bytes(), 0u);
        }
    }
}

constexpr uint32_t kRead = PF_R, kWrite = PF_R | PF_W;

TEST(StaticRange, OneSegmentThatBeginsWithRelro) {  // GNU ld, gold
    expect_parts({segment(PT_LOAD, PF_R | PF_X, 0x1000, 0x500), segment(PT_LOAD, kWrite, 0x3de8, 0x2300),
                  segment(PT_GNU_RELRO, kRead, 0x3de8, 0x218)},
                 {{0x4000, 0x7000}});
}

TEST(StaticRange, NoRelro) {
    expect_parts({segment(PT_LOAD, kRead, 0, 0x500), segment(PT_LOAD, kWrite, 0x3de8, 0x2300)}, {{0x3000, 0x7000}});
    expect_parts({segment(PT_LOAD, kRead, 0, 0x500)}, {});
}

TEST(StaticRange, RelroIsASegmentOfItsOwn) {  // lld
    expect_parts({segment(PT_LOAD, kRead, 0, 0x500), segment(PT_LOAD, kWrite, 0x2e00, 0x200),
                  segment(PT_LOAD, kWrite, 0x3000, 0x1234), segment(PT_GNU_RELRO, kRead, 0x2e00, 0x200)},
                 {{0x3000, 0x5000}});
    // Not padded to a page: the page that both lie in stays writable.
    expect_parts({segment(PT_LOAD, kWrite, 0x2e00, 0x1100), segment(PT_LOAD, kWrite, 0x3f00, 0x200),
                  segment(PT_GNU_RELRO, kRead, 0x2e00, 0x1100)},
                 {{0x3000, 0x5000}});
}

TEST(StaticRange, RelroInTheMiddle) {
    expect_parts({segment(PT_LOAD, kWrite, 0x2000, 0x5000), segment(PT_GNU_RELRO, kRead, 0x4000, 0x1800)},
                 {{0x2000, 0x4000}, {0x5000, 0x7000}});
    expect_parts({segment(PT_LOAD, kWrite, 0x2000, 0x1000), segment(PT_LOAD, kWrite, 0x4000, 0x2000),
                  segment(PT_LOAD, kWrite, 0x6000, 0x10), segment(PT_GNU_RELRO, kRead, 0x4000, 0x2000)},
                 {{0x2000, 0x3000}, {0x6000, 0x7000}});
}

TEST(StaticRange, LargeDataBehindAHole) {  // -mcmodel=medium
    expect_parts({segment(PT_LOAD, kWrite, 0x3de8, 0x2300), segment(PT_LOAD, kWrite, 0x8000, 0x100000),
                  segment(PT_GNU_RELRO, kRead, 0x3de8, 0x218)},
                 {{0x4000, 0x7000}, {0x8000, 0x108000}});
}

// What a child reports when something is wrong; the line is the exit status of the death tests below.
#define CHECK_OR_EXIT(condition)                                   \
    do {                                                           \
        if (!(condition)) {                                        \
            fprintf(stderr, "%d: not %s\n", __LINE__, #condition); \
            _exit(1);                                              \
        }                                                          \
    } while (0)

int fd;
// Moves this process's static data; returns a second view of it.
char* move() {
    static const StaticRange range = find_static_data();
    fd = os::create_memory("heddle-unit", range.bytes() + os::page_bytes());
    auto* view = static_cast<char*>(os::map_shared(fd, os::page_bytes(), range.bytes()));
    CHECK_OR_EXIT(fd >= 0 && view);
    run_in_children([] { unit_zero = -1; });
    CHECK_OR_EXIT(move_static_data(range, fd, os::page_bytes()));
    return view - range.begin;
}

template <class T>
T& at(char* view, T& variable) {
    return *reinterpret_cast<T*>(view + reinterpret_cast<uintptr_t>(&variable));
}

void move_and_check_values() {
    unit_zero = 3;
    unit_large_zero[1 << 20] = 'x';
    char* view = move();
    CHECK_OR_EXIT(unit_global == 17 && unit_zero == 3 && unit_static == 5 && unit_large_zero[1 << 20] == 'x');
    CHECK_OR_EXIT(at(view, unit_global) == 17 && at(view, unit_zero) == 3);
    volatile long* global = &unit_global;
    *global = 18;
    CHECK_OR_EXIT(at(view, unit_global) == 18);
    at(view, unit_global) = 19;
    CHECK_OR_EXIT(*global == 19);
    _exit(0);
}

void move_fork_and_check_privacy() {
    char* view = move();
    volatile long *global = &unit_global, *zero = &unit_zero;
    *global = 100;
    const pid_t child = fork();
    if (child == 0) {
        CHECK_OR_EXIT(*zero == -1);     // after_fork ran
        CHECK_OR_EXIT(*global == 100);  // the copy is of the moment of the fork
        *global = 200;
        CHECK_OR_EXIT(at(view, unit_global) == 100);  // and private
        _exit(42);
    }
    int status = 0;
    CHECK_OR_EXIT(waitpid(child, &status, 0) == child);
    CHECK_OR_EXIT(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    CHECK_OR_EXIT(*global == 100 && *zero == 0);
    *global = 101;
    CHECK_OR_EXIT(at(view, unit_global) == 101);  // the parent still shares
    _exit(0);
}

TEST(MoveStaticDataDeathTest, KeepsValuesAndSharesThem) {
    EXPECT_EXIT(move_and_check_values(), testing::ExitedWithCode(0), "");
}

TEST(MoveStaticDataDeathTest, AForkedChildHasItsOwnCopy) {
    EXPECT_EXIT(move_fork_and_check_privacy(), testing::ExitedWithCode(0), "");
}

TEST(MoveStaticDataDeathTest, FailureChangesNothing) {
    EXPECT_EXIT(
        {
            CHECK_OR_EXIT(!move_static_data(find_static_data(), -1, 0));
            CHECK_OR_EXIT(unit_global == 17);
            _exit(0);
        },
        testing::ExitedWithCode(0), "");
}

// --- Protections

void protect(int page, int protection) {
    CHECK_OR_EXIT(mprotect(unit_guarded + static_cast<size_t>(page) * os::page_bytes(), os::page_bytes(), protection) ==
                  0);
}

// Without changing it: the kernel is asked to read into it, and to write from it.
bool is_writable(const char* page) {
    int channel[2];
    CHECK_OR_EXIT(pipe(channel) == 0);
    const char byte = os::is_readable(reinterpret_cast<uintptr_t>(page)) ? *page : 0;
    const bool writable = write(channel[1], &byte, 1) == 1 && read(channel[0], const_cast<char*>(page), 1) == 1;
    close(channel[0]);
    close(channel[1]);
    return writable;
}

void expect_guards(bool with_read_only) {
    for (int page = 0; page < 5; ++page) {
        const char* const at = unit_guarded + static_cast<size_t>(page) * os::page_bytes();
        CHECK_OR_EXIT(os::is_readable(reinterpret_cast<uintptr_t>(at)) == (page != 1));
        CHECK_OR_EXIT(is_writable(at) == (page != 1 && !(with_read_only && page == 3)));
    }
}

// Page 1 cannot be read, page 3 cannot be written.
void guard() {
    for (int page = 0; page < 5; ++page)
        unit_guarded[static_cast<size_t>(page) * os::page_bytes()] = static_cast<char>('a' + page);
    protect(1, PROT_NONE);
    protect(3, PROT_READ);
}

void move_guarded_data(bool descriptors_left) {
    guard();
    char* view;
    if (descriptors_left) {
        view = move();
    } else {  // for the memory and nothing else: /proc cannot be opened
        int most = open("/dev/null", O_RDONLY);
        close(most);
        const rlimit limit = {static_cast<rlim_t>(most) + 1, static_cast<rlim_t>(most) + 8};
        CHECK_OR_EXIT(setrlimit(RLIMIT_NOFILE, &limit) == 0);
        view = move();
        const rlimit more = {limit.rlim_max, limit.rlim_max};
        CHECK_OR_EXIT(setrlimit(RLIMIT_NOFILE, &more) == 0);
    }
    expect_guards(descriptors_left);
    for (size_t page = 0; page < 5; ++page)
        CHECK_OR_EXIT(at(view, unit_guarded[page * os::page_bytes()]) == static_cast<char>('a' + page));
    const pid_t child = fork();
    if (child == 0) {
        expect_guards(descriptors_left);
        protect(1, PROT_READ | PROT_WRITE);
        CHECK_OR_EXIT(unit_guarded[os::page_bytes()] == 'b');
        unit_guarded[os::page_bytes()] = 'x';
        _exit(42);
    }
    int status = 0;
    CHECK_OR_EXIT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
    expect_guards(descriptors_left);
    protect(1, PROT_READ | PROT_WRITE);
    CHECK_OR_EXIT(unit_guarded[os::page_bytes()] == 'b');
    unit_guarded[os::page_bytes()] = 'B';
    CHECK_OR_EXIT(at(view, unit_guarded[os::page_bytes()]) == 'B');
    _exit(0);
}

TEST(MoveStaticDataDeathTest, KeepsProtections) {
    EXPECT_EXIT(move_guarded_data(true), testing::ExitedWithCode(0), "");
}

// Read-only pages become writable then, as nobody says what they were; pages that cannot be read stay so.
TEST(MoveStaticDataDeathTest, GuardPagesWithoutProc) {
    EXPECT_EXIT(move_guarded_data(false), testing::ExitedWithCode(0), "");
}

// --- Descriptors that the program closes

void fork_with_the_descriptor(bool reused) {
    unit_large_zero[2 << 20] = 'x';
    char* view = move();
    at(view, unit_large_zero[1 << 20]) = 'y';  // as a peer does; this process has not touched the page
    close(fd);
    if (reused)
        CHECK_OR_EXIT(open("/proc/self/exe", O_RDONLY) == fd);
    volatile long* const global = &unit_global;
    *global = 100;
    const pid_t child = fork();
    if (child == 0) {
        CHECK_OR_EXIT(*global == 100 && unit_large_zero[2 << 20] == 'x' && unit_large_zero[1 << 20] == 'y');
        *global = 200;
        _exit(42);
    }
    int status = 0;
    CHECK_OR_EXIT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
    CHECK_OR_EXIT(*global == 100 && at(view, unit_global) == 100);
    _exit(0);
}

TEST(MoveStaticDataDeathTest, ForksWhenTheDescriptorIsClosed) {
    EXPECT_EXIT(fork_with_the_descriptor(false), testing::ExitedWithCode(0), "");
}

TEST(MoveStaticDataDeathTest, ForksWhenTheDescriptorNamesAnotherFile) {
    EXPECT_EXIT(fork_with_the_descriptor(true), testing::ExitedWithCode(0), "");
}

// A fork that cannot have its copy says so, and its child does not run. The parent goes on.
void fork_without_memory() {
    move();
    size_t pages = 0;
    CHECK_OR_EXIT(fscanf(fopen("/proc/self/statm", "r"), "%zu", &pages) == 1);
    const rlimit limit = {pages * os::page_bytes() + (1 << 20), RLIM_INFINITY};
    CHECK_OR_EXIT(setrlimit(RLIMIT_AS, &limit) == 0);
    const pid_t child = fork();
    if (child == 0)
        _exit(42);
    int status = 0;
    CHECK_OR_EXIT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 1);
    _exit(0);
}

TEST(MoveStaticDataDeathTest, AChildWithoutACopyIsEnded) {
    EXPECT_EXIT(fork_without_memory(), testing::ExitedWithCode(0),
                "heddle fork: the child has no copy of its parent's static data \\(no address space for it: Cannot "
                "allocate memory\\), and is ended");
}

}  // namespace
}  // namespace heddle::memory

// Static data as symmetric memory: the range found, and a process that moves it. Moving is for good, so it happens in
// forked children. The code under test is in a shared library here as in libheddle.so: its own variables must not be
// among those that it moves.
#include "memory/static_data.h"
#include "os/memfd.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

long unit_global = 17;
long unit_zero;
char unit_large_zero[3 << 20];
extern const long unit_const;
const long unit_const = 23;
static int unit_static = 5;

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
    EXPECT_FALSE(holds(range, reinterpret_cast<const void*>(&find_static_data)));
    EXPECT_FALSE(holds(range, &range)) << "the stack";
    void* heap = malloc(16);
    EXPECT_FALSE(holds(range, heap));
    free(heap);
}

// What a child reports when something is wrong; the line is the exit status of the death tests below.
#define CHECK_OR_EXIT(condition)                                   \
    do {                                                           \
        if (!(condition)) {                                        \
            fprintf(stderr, "%d: not %s\n", __LINE__, #condition); \
            _exit(1);                                              \
        }                                                          \
    } while (0)

// Moves this process's static data; returns a second view of it.
char* move() {
    static const StaticRange range = find_static_data();
    const int fd = os::create_memory("heddle-unit", range.bytes() + os::page_bytes());
    auto* view = static_cast<char*>(os::map_shared(fd, os::page_bytes(), range.bytes()));
    CHECK_OR_EXIT(fd >= 0 && view);
    CHECK_OR_EXIT(move_static_data(range, fd, os::page_bytes(), [] { unit_zero = -1; }));
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
            CHECK_OR_EXIT(!move_static_data(find_static_data(), -1, 0, [] {}));
            CHECK_OR_EXIT(unit_global == 17);
            _exit(0);
        },
        testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace heddle::memory

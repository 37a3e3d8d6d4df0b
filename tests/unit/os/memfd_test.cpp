// Memory without a name, its mappings, and reservations.
#include "os/memfd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

namespace heddle::os {
namespace {

TEST(Memory, HasItsSizeReadsZeroAndClosesOnExec) {
    const int fd = create_memory("heddle-unit", 3 * page_bytes());
    ASSERT_GE(fd, 0);
    struct stat status;
    ASSERT_EQ(fstat(fd, &status), 0);
    EXPECT_EQ(status.st_size, static_cast<off_t>(3 * page_bytes()));
    EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    const auto* bytes = static_cast<const char*>(map_shared(fd, 0, 3 * page_bytes()));
    ASSERT_NE(bytes, nullptr);
    EXPECT_EQ(bytes[0], 0);
    EXPECT_EQ(bytes[3 * page_bytes() - 1], 0);
    close(fd);
}

TEST(Memory, RefusesWithANegativeErrno) {
    EXPECT_EQ(create_memory("heddle-unit", SIZE_MAX), -EINVAL);
    EXPECT_EQ(map_shared(-1, 0, page_bytes()), nullptr);
}

TEST(Memory, MappingsShareBytesAndHonourOffsetAndAddress) {
    const int fd = create_memory("heddle-unit", 2 * page_bytes());
    ASSERT_GE(fd, 0);
    auto* whole = static_cast<char*>(map_shared(fd, 0, 2 * page_bytes()));
    auto* room = static_cast<char*>(reserve_zeroes(page_bytes()));
    ASSERT_TRUE(whole && room);
    auto* second = static_cast<char*>(map_shared(fd, page_bytes(), page_bytes(), room));
    ASSERT_EQ(second, room);
    whole[page_bytes() + 5] = 'x';
    EXPECT_EQ(second[5], 'x');
    second[6] = 'y';
    EXPECT_EQ(whole[page_bytes() + 6], 'y');
    unmap(whole, 2 * page_bytes());
    unmap(second, page_bytes());
    close(fd);
}

TEST(ReservationDeathTest, ReadsZeroAndIsWritableOnlyWhereMadeSo) {
    auto* room = static_cast<char*>(reserve_zeroes(3 * page_bytes()));
    ASSERT_NE(room, nullptr);
    EXPECT_EQ(room[0] | room[3 * page_bytes() - 1], 0);
    ASSERT_TRUE(make_writable(room + page_bytes(), page_bytes()));
    room[page_bytes()] = 1;
    room[2 * page_bytes() - 1] = 1;
    EXPECT_DEATH(*static_cast<volatile char*>(room + page_bytes() - 1) = 1, "");
    EXPECT_DEATH(*static_cast<volatile char*>(room + 2 * page_bytes()) = 1, "");
}

// RLIMIT_FSIZE is said, without the signal that would end the process; one that was pending stays.
void exceed_limit_of_file_sizes() {
    const rlimit limit = {page_bytes(), page_bytes()};
    const int fd = create_memory("heddle-unit", page_bytes());
    if (fd < 0 || setrlimit(RLIMIT_FSIZE, &limit) != 0)
        _exit(1);
    if (set_memory_size(fd, page_bytes() + 1) != -EFBIG || create_memory("heddle-unit", 2 * page_bytes()) != -EFBIG)
        _exit(2);
    sigset_t blocked, pending;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &blocked, nullptr);
    raise(SIGXFSZ);
    if (set_memory_size(fd, 2 * page_bytes()) != -EFBIG)
        _exit(3);
    sigpending(&pending);
    _exit(sigismember(&pending, SIGXFSZ) == 1 ? 0 : 4);
}

TEST(MemoryDeathTest, LimitOfFileSizesIsAnErrno) {
    EXPECT_EXIT(exceed_limit_of_file_sizes(), testing::ExitedWithCode(0), "");
    EXPECT_NE(std::string(describe_memory_error(EFBIG)).find("ulimit -f"), std::string::npos);
    EXPECT_NE(std::string(describe_memory_error(EAGAIN)).find("ulimit -l"), std::string::npos);
    EXPECT_STREQ(describe_memory_error(ENOENT), strerror(ENOENT));
}

// What mlockall asked for is seen; a reservation of any size and a mapping of memory are none of it, until locked.
// Exits with 77 where mlockall is not allowed.
void reserve_under_mlockall(int flags, Locking locking) {
    if (locking_of_new_memory() != Locking::kNone)
        _exit(1);
    if (mlockall(MCL_FUTURE | flags) != 0)
        _exit(77);
    if (locking_of_new_memory() != locking)
        _exit(2);
    const size_t bytes = 64 * page_bytes();
    auto* room = static_cast<char*>(reserve_zeroes(size_t{128} << 30));
    const int fd = create_memory("heddle-unit", bytes);
    if (!room || room[12345] != 0 || fd < 0)
        _exit(3);
    auto* mapped = static_cast<char*>(map_shared_unlocked(fd, 0, bytes, room));
    struct stat status;
    if (!mapped || fstat(fd, &status) != 0 || status.st_blocks != 0)
        _exit(4);
    mapped[5] = 1;
    if (lock_memory(mapped, bytes / 2, locking) != 0)
        _exit(5);
    fstat(fd, &status);
    const size_t committed = static_cast<size_t>(status.st_blocks) * 512;
    unlock_memory(mapped, bytes);
    _exit(committed == (locking == Locking::kAtOnce ? bytes / 2 : page_bytes()) ? 0 : 6);
}

bool succeeds_or_is_not_allowed(int status) {
    return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77);
}

TEST(LockingDeathTest, ReservationsAreNotTouchedUnderMlockall) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "their runtimes lock nothing";
#endif
    EXPECT_EXIT(reserve_under_mlockall(0, Locking::kAtOnce), succeeds_or_is_not_allowed, "");
    EXPECT_EXIT(reserve_under_mlockall(MCL_ONFAULT, Locking::kOnFault), succeeds_or_is_not_allowed, "");
}

TEST(RoundUp, ToUnits) {
    EXPECT_EQ(round_up(0, page_bytes()), 0u);
    EXPECT_EQ(round_up(1, page_bytes()), page_bytes());
    EXPECT_EQ(round_up(page_bytes(), page_bytes()), page_bytes());
    EXPECT_EQ(round_up(page_bytes() + 1, page_bytes()), 2 * page_bytes());
}

}  // namespace
}  // namespace heddle::os

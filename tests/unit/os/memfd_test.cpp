// Memory without a name, its mappings, and reservations.
#include "os/memfd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstring>

namespace heddle::os {
namespace {

TEST(Memory, HasItsSizeReadsZeroAndClosesOnExec) {
    const int fd = create_memory("heddle-unit", 3 * kPageBytes);
    ASSERT_GE(fd, 0);
    struct stat status;
    ASSERT_EQ(fstat(fd, &status), 0);
    EXPECT_EQ(status.st_size, static_cast<off_t>(3 * kPageBytes));
    EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    const auto* bytes = static_cast<const char*>(map_shared(fd, 0, 3 * kPageBytes));
    ASSERT_NE(bytes, nullptr);
    EXPECT_EQ(bytes[0], 0);
    EXPECT_EQ(bytes[3 * kPageBytes - 1], 0);
    close(fd);
}

TEST(Memory, RefusesWithANegativeErrno) {
    EXPECT_EQ(create_memory("heddle-unit", SIZE_MAX), -EINVAL);
    EXPECT_EQ(map_shared(-1, 0, kPageBytes), nullptr);
}

TEST(Memory, MappingsShareBytesAndHonourOffsetAndAddress) {
    const int fd = create_memory("heddle-unit", 2 * kPageBytes);
    ASSERT_GE(fd, 0);
    auto* whole = static_cast<char*>(map_shared(fd, 0, 2 * kPageBytes));
    auto* room = static_cast<char*>(reserve_zeroes(kPageBytes));
    ASSERT_TRUE(whole && room);
    auto* second = static_cast<char*>(map_shared(fd, kPageBytes, kPageBytes, room));
    ASSERT_EQ(second, room);
    whole[kPageBytes + 5] = 'x';
    EXPECT_EQ(second[5], 'x');
    second[6] = 'y';
    EXPECT_EQ(whole[kPageBytes + 6], 'y');
    unmap(whole, 2 * kPageBytes);
    unmap(second, kPageBytes);
    close(fd);
}

TEST(ReservationDeathTest, ReadsZeroAndIsWritableOnlyWhereMadeSo) {
    auto* room = static_cast<char*>(reserve_zeroes(3 * kPageBytes));
    ASSERT_NE(room, nullptr);
    EXPECT_EQ(room[0] | room[3 * kPageBytes - 1], 0);
    ASSERT_TRUE(make_writable(room + kPageBytes, kPageBytes));
    room[kPageBytes] = 1;
    room[2 * kPageBytes - 1] = 1;
    EXPECT_DEATH(*static_cast<volatile char*>(room + kPageBytes - 1) = 1, "");
    EXPECT_DEATH(*static_cast<volatile char*>(room + 2 * kPageBytes) = 1, "");
}

TEST(RoundUp, ToUnits) {
    EXPECT_EQ(round_up(0, kPageBytes), 0u);
    EXPECT_EQ(round_up(1, kPageBytes), kPageBytes);
    EXPECT_EQ(round_up(kPageBytes, kPageBytes), kPageBytes);
    EXPECT_EQ(round_up(kPageBytes + 1, kPageBytes), 2 * kPageBytes);
}

}  // namespace
}  // namespace heddle::os

// What is mapped where, as /proc tells it and as it is found without; which pages have been touched; private copies.
#include "os/mappings.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cstring>
#include <vector>

namespace heddle::os {
namespace {

const size_t kPageBytes = page_bytes();
constexpr size_t kPages = 3000;  // more than kPagesAtOnce

class MappingsTest : public testing::Test {
  protected:
    void SetUp() override {
        room_ = static_cast<char*>(
            mmap(nullptr, kPages * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        ASSERT_NE(room_, MAP_FAILED);
        madvise(room_, kPages * kPageBytes, MADV_NOHUGEPAGE);
    }
    void TearDown() override { munmap(room_, kPages * kPageBytes); }

    char* page(size_t number) const { return room_ + number * kPageBytes; }
    uintptr_t address(size_t number) const { return reinterpret_cast<uintptr_t>(page(number)); }

    // None can be opened until this object is gone.
    class NoDescriptors {
      public:
        NoDescriptors() {
            getrlimit(RLIMIT_NOFILE, &before_);
            const rlimit none = {0, before_.rlim_max};
            setrlimit(RLIMIT_NOFILE, &none);
        }
        ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

      private:
        rlimit before_;
    };

    char* room_ = nullptr;
};

using Read = size_t (*)(uintptr_t, uintptr_t, Mapping*, size_t);
std::vector<Mapping> all(Read read, uintptr_t begin, uintptr_t end) {
    std::vector<Mapping> mappings(read(begin, end, nullptr, 0));
    EXPECT_EQ(read(begin, end, mappings.data(), mappings.size()), mappings.size());
    return mappings;
}

void expect_mapping(const Mapping& got, uintptr_t begin, uintptr_t end, int protection, bool is_anonymous) {
    EXPECT_EQ(got.begin, begin);
    EXPECT_EQ(got.end, end);
    EXPECT_EQ(got.protection, protection);
    EXPECT_EQ(got.is_anonymous, is_anonymous);
}

TEST_F(MappingsTest, AreClippedAndAscending) {
    constexpr int kPlain = PROT_READ | PROT_WRITE;
    mprotect(page(10), 2 * kPageBytes, PROT_NONE);
    mprotect(page(20), kPageBytes, PROT_READ);
    munmap(page(30), kPageBytes);
    const int fd = create_memory("heddle-unit", kPageBytes);
    ASSERT_TRUE(map_shared(fd, 0, kPageBytes, page(40)));
    ASSERT_NE(mmap(page(41), kPageBytes, kPlain, MAP_PRIVATE | MAP_FIXED, fd, 0), MAP_FAILED);
    const std::vector<Mapping> told = all(read_mappings, address(5), address(50));
    ASSERT_EQ(told.size(), 9u);
    expect_mapping(told[0], address(5), address(10), kPlain, true);
    expect_mapping(told[1], address(10), address(12), PROT_NONE, true);
    expect_mapping(told[2], address(12), address(20), kPlain, true);
    expect_mapping(told[3], address(20), address(21), PROT_READ, true);
    expect_mapping(told[4], address(21), address(30), kPlain, true);
    expect_mapping(told[5], address(31), address(40), kPlain, true);
    expect_mapping(told[6], address(40), address(41), kPlain, false);
    expect_mapping(told[7], address(41), address(42), kPlain, false);
    expect_mapping(told[8], address(42), address(50), kPlain, true);
    const std::vector<Mapping> tried = all(try_mappings, address(5), address(50));
    ASSERT_EQ(tried.size(), 5u);
    expect_mapping(tried[0], address(5), address(10), kPlain, false);
    expect_mapping(tried[1], address(10), address(12), PROT_NONE, false);
    expect_mapping(tried[2], address(12), address(30), kPlain, false);
    expect_mapping(tried[3], address(30), address(31), PROT_NONE, false);
    expect_mapping(tried[4], address(31), address(50), kPlain, false);
    close(fd);
}

TEST_F(MappingsTest, AreUntoldWithoutProc) {
    const NoDescriptors none;
    Mapping mapping;
    EXPECT_EQ(read_mappings(address(0), address(1), &mapping, 1), kNoMaps);
}

TEST_F(MappingsTest, TouchedPagesAreThoseWritten) {
    const std::vector<size_t> touched = {0, 7, 1023, 1024, 2999};
    for (const size_t number : touched) *page(number) = 1;
    mprotect(page(7), kPageBytes, PROT_NONE);
    const TouchedPages pages;
    std::vector<size_t> found;
    for (size_t at = 0; at < kPages; at += kPagesAtOnce) {
        unsigned char flags[kPagesAtOnce];
        const size_t count = std::min(kPages - at, kPagesAtOnce);
        pages.look(address(at), count, flags);
        for (size_t i = 0; i < count; ++i)
            if (flags[i])
                found.push_back(at + i);
    }
    EXPECT_EQ(found, touched);
}

TEST_F(MappingsTest, AllPagesMayBeTouchedWithoutProc) {
    const NoDescriptors none;
    const TouchedPages pages;
    unsigned char flags[2] = {};
    pages.look(address(0), 2, flags);
    EXPECT_TRUE(flags[0] && flags[1]);
}

TEST_F(MappingsTest, DescriptorsAreToldApart) {
    const int a = create_memory("heddle-unit", kPageBytes), b = create_memory("heddle-unit", kPageBytes);
    const FileId of_a = identify(a);
    EXPECT_EQ(identify(a), of_a);
    EXPECT_NE(identify(b), of_a);
    ASSERT_EQ(dup2(b, a), a);
    EXPECT_NE(identify(a), of_a);
    close(a);
    close(b);
    EXPECT_EQ(identify(a), FileId{});
}

TEST_F(MappingsTest, PrivateMemoryKeepsWhatItWrites) {
    const int fd = create_memory("heddle-unit", 2 * kPageBytes);
    char* const shared = static_cast<char*>(map_shared(fd, 0, 2 * kPageBytes));
    char* const other = static_cast<char*>(map_shared(fd, 0, 2 * kPageBytes));
    strcpy(other, "before");
    make_private(shared, 2 * kPageBytes, fd, 0);
    EXPECT_STREQ(shared, "before");
    strcpy(other + kPageBytes, "seen");
    EXPECT_STREQ(shared + kPageBytes, "seen");
    strcpy(shared, "mine");
    EXPECT_STREQ(other, "before");
    make_private(other, 2 * kPageBytes, -1, 0);
    EXPECT_STREQ(other, "before");
    EXPECT_DEATH(other[0] = 'x', "");
    unmap(shared, 2 * kPageBytes);
    unmap(other, 2 * kPageBytes);
    close(fd);
}

}  // namespace
}  // namespace heddle::os

// Descriptors that a forked child does not have.
#include "os/own_descriptor.h"

#include "os/memfd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <memory>

namespace heddle::os {
namespace {

constexpr auto make_file = [] { return create_memory("test", page_bytes()); };

bool is_open(int fd) {
    return fcntl(fd, F_GETFD) >= 0;
}

template <class Check>
bool holds_in_child(Check check) {
    const pid_t child = fork();
    if (child == 0)
        _exit(check() ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    return status == 0;
}

TEST(OwnDescriptor, IsClosedInAChild) {
    OwnDescriptor one, other;
    one.take(make_file);
    other.take(make_file);
    const int numbers[] = {one, other};
    auto gone = std::make_unique<OwnDescriptor>();
    gone->take(make_file);
    gone.reset();
    EXPECT_TRUE(holds_in_child(
        [&] { return !is_open(numbers[0]) && !is_open(numbers[1]) && int{one} == -1 && int{other} == -1; }));
    EXPECT_TRUE(is_open(one) && is_open(other));
    one.close();
    EXPECT_EQ(int{one}, -1);
    EXPECT_FALSE(is_open(numbers[0]));
    one.take(make_file);
    EXPECT_TRUE(holds_in_child([&] { return !is_open(numbers[0]) && !is_open(numbers[1]); }));
}

TEST(OwnDescriptor, IsTakenOver) {
    OwnDescriptor one, other;
    one.take(make_file);
    other.take(make_file);
    const int kept = one, closed = other;
    other.take(one);
    EXPECT_TRUE(one == -1 && other == kept && is_open(kept) && !is_open(closed));
    EXPECT_TRUE(holds_in_child([&] { return !is_open(kept) && int{other} == -1; }));
    one.take(other);
    one.close();
    EXPECT_FALSE(is_open(kept));
}

TEST(OwnDescriptor, LeavesAFileThatHasTheNumberNow) {
    OwnDescriptor one;
    one.take(make_file);
    const int number = one, file = make_file();
    dup2(file, number);  // a program that has closed all descriptors
    EXPECT_TRUE(holds_in_child([&] { return is_open(number); }));
    close(file);
}

}  // namespace
}  // namespace heddle::os

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
    OwnDescriptor one(create_memory("test", page_bytes())), other(create_memory("test", page_bytes()));
    const int numbers[] = {one, other};
    auto gone = std::make_unique<OwnDescriptor>(create_memory("test", page_bytes()));
    gone.reset();
    EXPECT_TRUE(holds_in_child(
        [&] { return !is_open(numbers[0]) && !is_open(numbers[1]) && int{one} == -1 && int{other} == -1; }));
    EXPECT_TRUE(is_open(one) && is_open(other));
    one.close();
    EXPECT_EQ(int{one}, -1);
    EXPECT_FALSE(is_open(numbers[0]));
    one.take(create_memory("test", page_bytes()));
    EXPECT_TRUE(holds_in_child([&] { return !is_open(numbers[0]) && !is_open(numbers[1]); }));
}

TEST(OwnDescriptor, LeavesAFileThatHasTheNumberNow) {
    OwnDescriptor one(create_memory("test", page_bytes()));
    const int number = one, file = create_memory("test", page_bytes());
    dup2(file, number);  // a program that has closed all descriptors
    EXPECT_TRUE(holds_in_child([&] { return is_open(number); }));
    close(file);
}

}  // namespace
}  // namespace heddle::os

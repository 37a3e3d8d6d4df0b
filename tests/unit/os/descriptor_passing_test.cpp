// Files handed over by a socket: to who knows the secret, whatever strangers do.
#include "os/descriptor_passing.h"

#include "os/clock.h"
#include "os/memfd.h"
#include "os/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace heddle::os {
namespace {

constexpr uint64_t kLimitNs = 60000000000;

bool is_same_file(int one, int other) {
    struct stat a, b;
    return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int connect_to(const DescriptorOffer& offer) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "heddle-%016llx",
                                static_cast<unsigned long long>(offer.name));
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), bytes), 0) << strerror(errno);
    return fd;
}

class DescriptorPassing : public testing::Test {
  protected:
    void SetUp() override {
        fd_ = create_memory("test", page_bytes());
        ASSERT_GE(fd_, 0);
        ASSERT_EQ(server_.start(fd_, &offer_), 0);
    }
    void TearDown() override {
        server_.stop();
        close(fd_);
    }
    void check_it_arrives() {
        const int got = fetch_descriptor(offer_, kLimitNs);
        ASSERT_GE(got, 0) << strerror(-got);
        EXPECT_TRUE(is_same_file(got, fd_));
        EXPECT_EQ(fcntl(got, F_GETFD), FD_CLOEXEC);
        close(got);
    }

    int fd_ = -1;
    DescriptorServer server_;
    DescriptorOffer offer_ = {};
};

TEST_F(DescriptorPassing, ManyAskAtOnce) {
    std::vector<std::thread> askers;
    for (int i = 0; i < 3 * DescriptorServer::kMostGuests; ++i) askers.emplace_back([this] { check_it_arrives(); });
    for (std::thread& asker : askers) asker.join();
}

TEST_F(DescriptorPassing, NothingForAWrongSecret) {
    for (const size_t bytes : {size_t{1}, size_t{7}, size_t{8}, size_t{9}, size_t{4096}}) {
        const int stranger = connect_to(offer_);
        std::string text(bytes, 'x');
        if (bytes == 9)
            memcpy(text.data(), &offer_.secret, sizeof offer_.secret - 1);
        ASSERT_EQ(send(stranger, text.data(), bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
        char answer = 0;
        EXPECT_LE(recv(stranger, &answer, 1, 0), 0) << bytes;
        close(stranger);
    }
    DescriptorOffer wrong = offer_;
    wrong.secret ^= 1;
    EXPECT_EQ(fetch_descriptor(wrong, 20 * kMillisecondNs), -ETIMEDOUT);
    check_it_arrives();
}

TEST_F(DescriptorPassing, StrangersWhoSayNothingKeepNobodyOut) {
    std::vector<int> strangers;
    for (int i = 0; i < 4 * DescriptorServer::kMostGuests; ++i) strangers.push_back(connect_to(offer_));
    check_it_arrives();
    for (const int stranger : strangers) close(stranger);
    check_it_arrives();
}

TEST_F(DescriptorPassing, AProcessAtItsLimitIsToldAtOnce) {
    const pid_t child = fork();  // the limit is not the server's
    if (child == 0) {
        const int next = dup(fd_);
        close(next);
        const rlimit limit = {static_cast<rlim_t>(next) + 1, static_cast<rlim_t>(next) + 1};  // for the connection
        const bool is_set = setrlimit(RLIMIT_NOFILE, &limit) == 0;
        _exit(is_set && fetch_descriptor(offer_, 2000 * kMillisecondNs) == -EMFILE ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    check_it_arrives();
}

TEST_F(DescriptorPassing, NobodyIsThereAfterTheStop) {
    const int stranger = connect_to(offer_);
    server_.stop();
    char answer = 0;
    EXPECT_LE(recv(stranger, &answer, 1, 0), 0);
    close(stranger);
    EXPECT_EQ(fetch_descriptor(offer_, kLimitNs), -ECONNREFUSED);
    server_.stop();
    ASSERT_EQ(server_.start(fd_, &offer_), 0);
    check_it_arrives();
}

TEST(DescriptorServer, LeavesNoThreadAndNoDescriptor) {
    std::thread([] {}).join();  // ThreadSanitizer makes a thread of its own with a program's first one
    const uint32_t threads = count_threads();
    const int fd = create_memory("test", page_bytes()), next = dup(fd);
    close(next);
    for (int i = 0; i < 10; ++i) {
        DescriptorServer server;
        DescriptorOffer offer;
        ASSERT_EQ(server.start(fd, &offer), 0);
        const int got = fetch_descriptor(offer, kLimitNs);
        ASSERT_GE(got, 0);
        close(got);
    }
    // The kernel counts a thread for a moment longer than pthread_join waits for it.
    for (const uint64_t end = now_ns() + kLimitNs; count_threads() != threads && now_ns() < end;)
        sleep_ns(kMillisecondNs);
    EXPECT_EQ(count_threads(), threads);
    const int after = dup(fd);
    EXPECT_EQ(after, next);
    close(after);
    close(fd);
}

TEST(DescriptorServer, AChildThatHasTheSocketAnswersNobody) {
    const int fd = create_memory("test", page_bytes());
    DescriptorServer server;
    DescriptorOffer offer;
    ASSERT_EQ(server.start(fd, &offer), 0);
    int lifeline[2];
    ASSERT_EQ(pipe(lifeline), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(lifeline[1]);
        char end;
        _exit(read(lifeline[0], &end, 1) != 0);
    }
    server.stop();
    EXPECT_EQ(fetch_descriptor(offer, kLimitNs), -ECONNREFUSED);
    close(lifeline[1]);
    close(lifeline[0]);
    waitpid(child, nullptr, 0);
    close(fd);
}

}  // namespace
}  // namespace heddle::os

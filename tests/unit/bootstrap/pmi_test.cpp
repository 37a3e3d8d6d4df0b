// Messages of PMI, and exchanges beside a barrier. What a whole PE does is the subject of tests/launcher/test_pmi.py.
#include "bootstrap/pmi/connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cstring>
#include <random>
#include <string>
#include <thread>

namespace heddle::bootstrap::pmi {
namespace {

TEST(PmiMessage, RequestsOfBothVersions) {
    Request first(Version::k1, "get");
    first.add("kvsname", std::string_view("job"));
    first.add("key", 17L);
    EXPECT_EQ(first.finish(), "cmd=get kvsname=job key=17\n");
    Request second(Version::k2, "kvs-get");
    second.add("srcid", -1L);
    EXPECT_EQ(second.finish(), "    21cmd=kvs-get;srcid=-1;");
}

TEST(PmiMessage, ARequestThatDoesNotFitIsEmpty) {
    for (const Version version : {Version::k1, Version::k2}) {
        Request request(version, "put");
        request.add("value", std::string(kMaxMessageBytes, 'x'));
        EXPECT_TRUE(request.finish().empty());
    }
}

TEST(PmiMessage, AnswersAreTakenApart) {
    Answer answer;
    ASSERT_TRUE(answer.parse(Version::k1, "cmd=get_result rc=0 msg= value=a=b"));
    EXPECT_EQ(answer.command(), "get_result");
    EXPECT_EQ(answer.find("value"), "a=b");
    EXPECT_EQ(answer.find("alue"), "");
    EXPECT_EQ(answer.find("msg"), "");
    ASSERT_TRUE(answer.parse(Version::k2, "cmd=fullinit-response;rank=3;size=x;"));
    long number = 0;
    EXPECT_TRUE(answer.find_number("rank", 0, 3, &number) && number == 3);
    EXPECT_FALSE(answer.find_number("rank", 0, 2, &number)) << "out of range";
    EXPECT_FALSE(answer.find_number("size", 0, 3, &number)) << "no number";
    EXPECT_FALSE(answer.find_number("none", 0, 3, &number)) << "no such field";
}

TEST(PmiMessage, WhatIsNoMessageIsRefused) {
    Answer answer;
    for (const std::string_view text : {"", "cmd=", "xcmd=get", "rc=0 cmd=get", "cmd"})
        EXPECT_FALSE(answer.parse(Version::k1, text)) << text;
    EXPECT_FALSE(answer.parse(Version::k1, std::string_view("cmd=get\0 rc=0", 13)));
    EXPECT_FALSE(answer.parse(Version::k2, "cmd=" + std::string(kMaxMessageBytes, 'x')));
}

TEST(PmiMessage, LengthsOfMessages) {
    const auto length_of = [](const char(&text)[kLengthBytes + 1]) {
        char length[kLengthBytes];
        memcpy(length, text, sizeof length);
        return parse_length(length);
    };
    EXPECT_EQ(length_of("    17"), 17u);
    EXPECT_EQ(length_of("17    "), 17u);
    EXPECT_EQ(length_of("  17  "), 17u);
    for (const auto& text : {"      ", "    -1", "1 7   ", "cmd=ge", "999999", "     0", "0x10  "}) {
        char length[kLengthBytes];
        memcpy(length, text, sizeof length);
        EXPECT_EQ(parse_length(length), 0u) << text;
    }
}

TEST(PmiMessage, AnyBytesAreParsed) {
    std::mt19937 random(GTEST_FLAG_GET(random_seed));
    for (int round = 0; round < 20000; ++round) {
        std::string text = "cmd=";
        for (unsigned i = random() % 64; i > 0; --i) text += "=; \ncmdrv0\x80"[random() % 11];
        Answer answer;
        for (const Version version : {Version::k1, Version::k2}) {
            long number = 0;
            if (answer.parse(version, text))
                answer.find_number("cmd", 0, 1, &number);
            EXPECT_LE(answer.find("r").size(), text.size());
        }
    }
}

// The other end of a connection.
class Peer {
  public:
    Peer() {
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0);
        EXPECT_TRUE(connection.open(ends_[0], 30, reason)) << why;
    }
    ~Peer() {
        connection.close();
        close(ends_[1]);
    }
    std::string read_line() {
        std::string line;
        for (char byte = 0; byte != '\n' && read(ends_[1], &byte, 1) == 1;) line += byte;
        return line;
    }
    void say(const std::string& text) {
        EXPECT_EQ(write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }

    char why[256] = "";
    const Reason reason = {why, sizeof why};
    Connection connection;

  private:
    int ends_[2];
};

bool get(Peer& peer) {
    Request request(Version::k1, "get");
    Answer answer;
    return peer.connection.exchange(request, "get_result", &answer, peer.reason) && answer.find("value") == "x";
}

// One thread waits in a barrier that the process manager ends before, after or together with the answer to another
// thread's get.
TEST(PmiConnection, ExchangesOvertakeABarrier) {
    constexpr const char* kGet = "cmd=get_result rc=0 value=x\n";
    constexpr const char* kBarrier = "cmd=barrier_out\n";
    for (int order = 0; order < 3; ++order) {
        Peer peer;
        bool is_passed = false;
        std::thread waits([&] {
            Request request(Version::k1, "barrier_in");
            char why[256];
            is_passed = peer.connection.pass_barrier(request, "barrier_out", false, {why, sizeof why});
        });
        EXPECT_EQ(peer.read_line(), "cmd=barrier_in\n");
        std::thread manager([&] {
            for (int round = 0; round < 3; ++round) {
                EXPECT_EQ(peer.read_line(), "cmd=get\n");
                const bool is_with_barrier = round == 2 && order != 2;
                std::string text = is_with_barrier && order == 0 ? kBarrier : kGet;
                if (is_with_barrier)
                    text += order == 0 ? kGet : kBarrier;
                peer.say(text);
            }
            if (order == 2)
                peer.say(kBarrier);
        });
        for (int round = 0; round < 3; ++round) EXPECT_TRUE(get(peer)) << order << peer.why;
        manager.join();
        waits.join();
        EXPECT_TRUE(is_passed) << order;
    }
}

TEST(PmiConnection, ABarrierThatNobodyWaitsForIsNoAnswer) {
    Peer peer;
    peer.say("cmd=barrier_out\n");
    EXPECT_FALSE(get(peer));
    EXPECT_STREQ(peer.why, "the answer is 'barrier_out': right would be 'get_result'");
}

}  // namespace
}  // namespace heddle::bootstrap::pmi

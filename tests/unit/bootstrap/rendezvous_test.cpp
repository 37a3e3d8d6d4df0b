// Messages of a rendezvous, unique ids, and names of PEs. What whole PEs and the server do with any bytes is the subject
// of tests/launcher/test_rendezvous.py.
#include "bootstrap/rendezvous/message.h"
#include "bootstrap/rendezvous/outbox.h"
#include "bootstrap/rendezvous/server.h"
#include "bootstrap/rendezvous/unique_id.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <map>
#include <random>
#include <string>

namespace {

// Where a server waits when it has accepted a connection: it says so, and gives a fork of the test time to happen.
struct Stop {
    bool is_set = false;
    int accepted[2] = {-1, -1}, forked[2] = {-1, -1};
};
Stop stop_behind_accept;  // set while no server runs

}  // namespace

// Stands before the C library's.
extern "C" int accept4(int fd, sockaddr* address, socklen_t* bytes, int flags) {
    const int connection = static_cast<int>(syscall(SYS_accept4, fd, address, bytes, flags));
    const Stop& stop = stop_behind_accept;
    if (connection < 0 || !stop.is_set)
        return connection;
    const char byte = 'x';
    pollfd is_forked = {stop.forked[0], POLLIN, 0};
    return write(stop.accepted[1], &byte, 1) == 1 && poll(&is_forked, 1, 200) >= 0 ? connection : -1;
}

namespace heddle::bootstrap::rendezvous {
namespace {

int count_sockets() {
    int sockets = 0;
    for (int fd = 0; fd < 1024; ++fd) {
        struct stat file;
        sockets += fstat(fd, &file) == 0 && S_ISSOCK(file.st_mode);
    }
    return sockets;
}

TEST(RendezvousMessage, ComesWholeByTheByte) {
    std::string bytes;
    append_message(&bytes, Kind::kGet, "payload");
    append_message(&bytes, Kind::kLeave);
    Inbox inbox;
    Message message;
    std::vector<Kind> kinds;
    for (const char byte : bytes) {
        inbox.append(&byte, 1);
        while (inbox.next(100, &message) == Inbox::State::kWhole) {
            kinds.push_back(message.kind);
            EXPECT_EQ(message.payload, message.kind == Kind::kGet ? "payload" : "");
        }
    }
    EXPECT_EQ(kinds, (std::vector<Kind>{Kind::kGet, Kind::kLeave}));
    EXPECT_EQ(inbox.next(100, &message), Inbox::State::kIncomplete);
}

TEST(RendezvousMessage, WhatIsNoMessageIsBroken) {
    std::string right;
    append_message(&right, Kind::kGet, "payload");
    const auto state_of = [](const std::string& bytes, size_t max_bytes) {
        Inbox inbox;
        Message message;
        inbox.append(bytes.data(), bytes.size());
        return inbox.next(max_bytes, &message);
    };
    EXPECT_EQ(state_of(right, 7), Inbox::State::kWhole);
    EXPECT_EQ(state_of(right, 6), Inbox::State::kBroken) << "too long";
    EXPECT_EQ(state_of("", 7), Inbox::State::kIncomplete);
    EXPECT_EQ(state_of("G", 7), Inbox::State::kBroken) << "by the first byte";
    for (const char kind : {'\0', '\x63'}) {
        std::string other = right;
        other[offsetof(Header, kind)] = kind;
        EXPECT_EQ(state_of(other, 7), Inbox::State::kBroken);
    }
}

TEST(RendezvousMessage, EntriesAreTakenApart) {
    std::string payload;
    append_entry(&payload, {3, "key", std::string_view("a\0b", 3)});
    append_entry(&payload, {4, "other", {}});
    std::string_view rest = payload;
    Entry entry;
    ASSERT_TRUE(take_entry(&rest, &entry));
    EXPECT_TRUE(entry.pe == 3 && entry.key == "key" && entry.value == std::string_view("a\0b", 3));
    ASSERT_TRUE(take_entry(&rest, &entry));
    EXPECT_TRUE(entry.pe == 4 && entry.key == "other" && entry.value.empty() && rest.empty());
    for (size_t bytes = 0; bytes < 18; ++bytes) {
        rest = std::string_view(payload).substr(0, bytes);
        EXPECT_FALSE(take_entry(&rest, &entry)) << bytes;
    }
}

TEST(RendezvousMessage, AnyBytesAreTaken) {
    std::mt19937 random(static_cast<unsigned>(GTEST_FLAG_GET(random_seed)));
    for (int round = 0; round < 20000; ++round) {
        std::string bytes;
        append_message(&bytes, static_cast<Kind>(random() % 16), std::string(random() % 40, '\1'));
        for (unsigned i = random() % 3; i > 0; --i) bytes[random() % bytes.size()] = static_cast<char>(random());
        Inbox inbox;
        inbox.append(bytes.data(), random() % (bytes.size() + 1));
        Message message;
        if (inbox.next(64, &message) != Inbox::State::kWhole)
            continue;
        Entry entry;
        while (take_entry(&message.payload, &entry)) EXPECT_LE(entry.value.size(), kMaxValueBytes);
    }
}

TEST(RendezvousMessage, TextOfOthersIsPrintable) {
    EXPECT_EQ(printable("a\n\033[31m\xff z", 9), "a??[31m? ");
}

TEST(UniqueId, CarriesTokenAndPlace) {
    IdBytes id;
    char why[256] = "";
    Place place;
    write_id(0x1234567890abcdef, 4455, "", &id);
    ASSERT_TRUE(read_id(id, &place, {why, sizeof why})) << why;
    EXPECT_EQ(place.token, 0x1234567890abcdef);
    ASSERT_FALSE(place.endpoints.empty());
    for (const Endpoint& endpoint : place.endpoints) EXPECT_TRUE(endpoint.text().ends_with(":4455")) << endpoint.text();
}

TEST(UniqueId, AnyChangeIsNoticed) {
    IdBytes id;
    char why[256] = "";
    Place place;
    write_id(17, 4455, "", &id);
    for (size_t i = 0; i < id.size(); ++i) {
        IdBytes other = id;
        other[i] ^= 0x40;
        EXPECT_FALSE(read_id(other, &place, {why, sizeof why})) << i;
    }
}

TEST(UniqueId, APortIsTakenOnce) {
    char why[256] = "";
    os::OwnDescriptor first, second;
    ASSERT_TRUE(listen_on(0, true, &first, {why, sizeof why})) << why;
    const Endpoint endpoint = own_endpoint(first);
    const uint16_t port = ntohs(reinterpret_cast<const sockaddr_in*>(&endpoint.address)->sin_port);
    EXPECT_FALSE(listen_on(port, true, &second, {why, sizeof why}));
    EXPECT_EQ(std::string(why), "cannot listen on port " + std::to_string(port) + ": Address already in use");
}

TEST(Outbox, SharesWhatManyGet) {
    const SharedMessage message = share_message(Kind::kFenceDone, std::string(1 << 20, 'x'));
    std::vector<Outbox> all(100);
    for (Outbox& outbox : all) outbox.add(message);
    EXPECT_EQ(message.use_count(), 101);
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    all[0].add(Kind::kParted);
    Inbox inbox;
    Message got;
    std::vector<size_t> sizes;
    while (sizes.size() < 2) {  // by parts, as the socket takes them
        ASSERT_TRUE(all[0].send_to(ends[0]));
        char bytes[65536];
        inbox.append(bytes, static_cast<size_t>(recv(ends[1], bytes, sizeof bytes, 0)));
        while (inbox.next(kMaxAnswerBytes, &got) == Inbox::State::kWhole) sizes.push_back(got.payload.size());
    }
    EXPECT_EQ(sizes, (std::vector<size_t>{1 << 20, 0}));
    EXPECT_TRUE(all[0].empty());
    EXPECT_EQ(message.use_count(), 100);
    close(ends[1]);
    EXPECT_FALSE(all[1].send_to(ends[0]));
    close(ends[0]);
}

// A server, and sockets that talk to it as PEs do.
class ServedJob : public testing::Test {
  protected:
    static constexpr int kPes = 32;

    void SetUp() override {
        os::OwnDescriptor listener;
        ASSERT_TRUE(listen_on(0, true, &listener, {why_, sizeof why_})) << why_;
        at_ = own_endpoint(listener);
        server_ = Server::start(&listener, 17, kPes, 600, {why_, sizeof why_});
        ASSERT_NE(server_, nullptr) << why_;
    }
    void TearDown() override {
        for (const int fd : pes_) close(fd);
        server_->stop();
    }
    void join_all() {
        for (int pe = 0; pe < kPes; ++pe) {
            pes_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
            const int small = 4096;  // what is not read stays with the server
            setsockopt(pes_.back(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
            ASSERT_EQ(connect(pes_.back(), reinterpret_cast<const sockaddr*>(&at_.address), at_.bytes), 0);
            JoinRequest mine = {};
            mine.token = 17;
            mine.pe = pe;
            mine.n_pes = kPes;
            say(pe, Kind::kJoin, bytes_of(mine));
        }
        for (int pe = 0; pe < kPes; ++pe) hear(pe, Kind::kStart);
    }
    void say(int pe, Kind kind, std::string_view payload) const {
        std::string bytes;
        append_message(&bytes, kind, payload);
        ASSERT_EQ(send(pes_[static_cast<size_t>(pe)], bytes.data(), bytes.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(bytes.size()));
    }
    // Reads up to a message of the kind; its size.
    size_t hear(int pe, Kind kind) {
        Message message;
        char bytes[65536];
        while (true) {
            while (inboxes_[pe].next(kMaxAnswerBytes, &message) == Inbox::State::kWhole)
                if (message.kind == kind)
                    return message.payload.size();
            const ssize_t got = recv(pes_[static_cast<size_t>(pe)], bytes, sizeof bytes, 0);
            if (got <= 0)
                break;
            inboxes_[pe].append(bytes, static_cast<size_t>(got));
        }
        ADD_FAILURE() << "PE " << pe << " has lost its connection";
        return 0;
    }

    char why_[256] = "";
    Endpoint at_;
    Server* server_ = nullptr;
    std::vector<int> pes_;
    std::map<int, Inbox> inboxes_;
};

TEST_F(ServedJob, AFenceTakesTheMemoryOfOneAnswer) {
    join_all();
    const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (int pe = 0; pe < kPes; ++pe) {
        std::string payload;
        append_entry(&payload, {pe, "key", std::string(kMaxValueBytes, 'x')});
        say(pe, Kind::kPublish, payload);
        say(pe, Kind::kFence, bytes_of(uint32_t{1}));
    }
    const size_t answer = hear(0, Kind::kFenceDone);
    EXPECT_GE(answer, kPes * kMaxValueBytes);
    EXPECT_LE(mallinfo2().uordblks + mallinfo2().hblkhd,
              before + 12 * answer);  // a copy for each PE would be 32
}

TEST_F(ServedJob, AChildHasNoneOfItsDescriptors) {
    join_all();
    const int all = count_sockets();  // both ends of each connection, and those that the test was started with
    const pid_t child = fork();
    if (child == 0)
        _exit(all - count_sockets() == kPes ? 0 : 1);  // the server's ends; its port is closed when all have joined
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    say(0, Kind::kGet, {});  // the parent's are there: the answer to what breaks the protocol
    hear(0, Kind::kEnd);
}

// A fork between a server's accept and its entry in the list would leave the connection open when the server closes it.
class StoppedServer : public ServedJob {
  protected:
    void SetUp() override {
        ASSERT_TRUE(pipe(stop_behind_accept.accepted) == 0 && pipe(stop_behind_accept.forked) == 0);
        stop_behind_accept.is_set = true;
        ServedJob::SetUp();
    }
    void TearDown() override {
        ServedJob::TearDown();
        for (const int fd : {stop_behind_accept.accepted[0], stop_behind_accept.accepted[1],
                             stop_behind_accept.forked[0], stop_behind_accept.forked[1]})
            close(fd);
        stop_behind_accept = {};
    }
};

TEST_F(StoppedServer, AChildOfThatMomentHasNoConnection) {
    const int before = count_sockets();  // the port, and those that the test was started with
    pes_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(pes_[0], reinterpret_cast<const sockaddr*>(&at_.address), at_.bytes), 0);
    char byte;
    ASSERT_EQ(read(stop_behind_accept.accepted[0], &byte, 1), 1);
    const pid_t child = fork();
    if (child == 0)
        _exit(count_sockets() == before ? 0 : 1);  // the other end in the place of the port
    ASSERT_EQ(write(stop_behind_accept.forked[1], &byte, 1), 1);
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST_F(ServedJob, AChildDoesNotHoldThePort) {
    int is_there[2], block[2];
    ASSERT_TRUE(pipe(is_there) == 0 && pipe(block) == 0);
    const pid_t child = fork();
    char byte = 'x';
    if (child == 0) {
        close(block[1]);
        _exit(write(is_there[1], &byte, 1) == 1 && read(block[0], &byte, 1) == 0 ? 0 : 1);
    }
    ASSERT_EQ(read(is_there[0], &byte, 1), 1);
    server_->stop();
    const int late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_NE(connect(late, reinterpret_cast<const sockaddr*>(&at_.address), at_.bytes), 0);
    close(late);
    for (const int fd : {is_there[0], is_there[1], block[0], block[1]}) close(fd);
    waitpid(child, nullptr, 0);
}

TEST(Server, NamesPes) {
    EXPECT_EQ(name_pes({1}), "PE 1");
    EXPECT_EQ(name_pes({1, 3}), "PE 1 and 3");
    EXPECT_EQ(name_pes({1, 2}), "PE 1 and 2");
    EXPECT_EQ(name_pes({1, 3, 4, 5, 9}), "PE 1, 3 to 5 and 9");
    std::vector<int> many;
    for (int pe = 0; pe < 100; pe += 2) many.push_back(pe);
    EXPECT_TRUE(name_pes(many).ends_with(", 22 and others"));
}

}  // namespace
}  // namespace heddle::bootstrap::rendezvous

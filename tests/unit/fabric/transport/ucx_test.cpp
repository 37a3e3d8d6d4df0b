// The UCX transport, as networks load it, between transports of this process over TCP; and what it asks of UCX: this
// program's functions with the names of UCX's stand before UCX's own.
#include "fabric/transport/transport.h"

#include <gtest/gtest.h>
#include <ucp/api/ucp.h>

#include <dlfcn.h>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

unsigned initialized = 0;
bool knows_workers = false;
int workers_shared = -1;
bool eager_large = false;  // large messages leave by the eager protocol
size_t left_out = 0;       // bytes that headers are too short by

template <class Function>
Function* of_ucx(Function*, const char* name) {
    return reinterpret_cast<Function*>(dlsym(dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD), name));
}

}  // namespace

extern "C" {

ucs_status_t ucp_init_version(unsigned major, unsigned minor, const ucp_params_t* params, const ucp_config_t* config,
                              ucp_context_h* context) {
    ++initialized;
    knows_workers = (params->field_mask & UCP_PARAM_FIELD_MT_WORKERS_SHARED) != 0;
    workers_shared = knows_workers ? params->mt_workers_shared : 0;
    return of_ucx(ucp_init_version, "ucp_init_version")(major, minor, params, config, context);
}

ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h endpoint, unsigned id, const void* header, size_t header_bytes,
                                 const void* body, size_t bytes, const ucp_request_param_t* param) {
    ucp_request_param_t changed = *param;
    if (eager_large && (changed.flags & UCP_AM_SEND_FLAG_RNDV))
        changed.flags = UCP_AM_SEND_FLAG_EAGER;
    return of_ucx(ucp_am_send_nbx, "ucp_am_send_nbx")(endpoint, id, header, header_bytes - left_out, body, bytes,
                                                      &changed);
}

}  // extern "C"

namespace heddle::fabric {
namespace {

const TransportApi* load() {
    static void* const plugin = dlopen(HEDDLE_UCX_PLUGIN, RTLD_LAZY | RTLD_LOCAL);
    return plugin ? static_cast<const TransportApi*>(dlsym(plugin, "heddle_transport_1")) : nullptr;
}

const TransportApi& api() {
    return *load();
}

struct Message {
    std::string header, body;
};

// One transport, which takes announced bodies at once, or when it is told to, or refuses them.
class Peer {
  public:
    explicit Peer(int channels = 1) {
        Options options = {.devices = "", .transports = "tcp", .channels = channels, .message_bytes = 64 * 1024};
        char error[256] = "";
        const Events events = {this, arrived, announced, failed};
        if (!api().open(options, events, &transport, error, sizeof error))
            ADD_FAILURE() << error;
    }
    ~Peer() { api().close(transport); }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    Endpoint* connect(const Peer& other) {
        char blob[kMaxAddressBlobBytes], error[256] = "";
        const size_t bytes = api().address_blob(other.transport, blob);
        Endpoint* const endpoint = api().connect(transport, 0, 1, blob, bytes, error, sizeof error);
        EXPECT_NE(endpoint, nullptr) << error;
        return endpoint;
    }
    // The header is the text, and zeroes.
    void send(Endpoint* to, std::string header, const std::string& body, bool large) {
        header.resize(kHeaderBytes);
        api().send(
            transport, 0, to, header.data(), body.data(), body.size(), large,
            [](void* count) { ++*static_cast<int*>(count); }, &sent);
    }
    // The body of the first one that is announced.
    void take() {
        const std::unique_ptr<Taken> first = std::move(waiting.front());
        waiting.erase(waiting.begin());
        if (refuses)
            return api().refuse(transport, 0, first->arrival);
        auto* const taken =
            new Taken{this, first->arrival, first->header, std::string(first->bytes, '#'), first->bytes};
        api().receive(
            transport, 0, 1, taken->arrival, taken->body.data(), taken->bytes,
            [](void* argument) {
                const std::unique_ptr<Taken> done(static_cast<Taken*>(argument));
                done->peer->came.push_back({done->header, done->body});
            },
            taken);
    }

    struct Taken {
        Peer* peer;
        Arrival* arrival;
        std::string header, body;
        size_t bytes;
    };
    Transport* transport = nullptr;
    bool at_once = true;
    bool refuses = false;
    int sent = 0;
    std::vector<Message> came;
    std::vector<std::unique_ptr<Taken>> waiting;

  private:
    static std::string text(const void* header) { return std::string(static_cast<const char*>(header)); }
    static void arrived(void* owner, int, const void* header, const char* body, size_t bytes) {
        static_cast<Peer*>(owner)->came.push_back({text(header), std::string(body, bytes)});
    }
    static void announced(void* owner, int, const void* header, size_t bytes, Arrival* arrival) {
        auto* const peer = static_cast<Peer*>(owner);
        peer->waiting.push_back(std::make_unique<Taken>(Taken{peer, arrival, text(header), "", bytes}));
        if (peer->at_once)
            peer->take();
    }
    static void failed(void*, int, int, const char* reason) { ADD_FAILURE() << reason; }
};

// Moves both until done() holds; ctest ends one that hangs.
template <class Done>
void settle(const Peer& one, const Peer& other, Done done) {
    while (!done()) {
        api().progress(one.transport, 0);
        api().progress(other.transport, 0);
    }
}

class Ucx : public testing::Test {
  protected:
    void SetUp() override {
        if (!load())
            GTEST_SKIP() << dlerror();
        initialized = 0;
        eager_large = false;
        left_out = 0;
    }
};

// ucp.h: a context whose workers are used by different threads needs to be safe for threads.
TEST_F(Ucx, KnowsThatSeveralThreadsUseItsWorkers) {
    const Peer several(2);
    EXPECT_EQ(initialized, 1u);
    EXPECT_TRUE(knows_workers);
    EXPECT_EQ(workers_shared, 1);
    const Peer one(1);
    EXPECT_EQ(workers_shared, 0);
}

const std::string kLarge(100'000, 'L'), kSmall = "a small one";

TEST_F(Ucx, BringsMessagesInOrderAndLargeOnesToTheirPlace) {
    Peer from, to;
    Endpoint* const endpoint = from.connect(to);
    from.send(endpoint, "first", kSmall, false);
    from.send(endpoint, "second", "", false);
    from.send(endpoint, "large", kLarge, true);
    settle(from, to, [&] { return to.came.size() == 3 && from.sent == 3; });
    EXPECT_EQ(to.came[0].header, "first");
    EXPECT_EQ(to.came[0].body, kSmall);
    EXPECT_EQ(to.came[1].header, "second");
    EXPECT_EQ(to.came[2].header, "large");
    EXPECT_EQ(to.came[2].body, kLarge);
}

// UCX may bring a body with its header although the sender has asked for the rendezvous.
TEST_F(Ucx, LargeOnesThatComeEagerlyAreAnnouncedAllTheSame) {
    eager_large = true;
    for (const std::string& body : {kLarge, kSmall, std::string()})
        for (const bool at_once : {true, false}) {
            Peer from, to;
            to.at_once = at_once;
            Endpoint* const endpoint = from.connect(to);
            for (const char* name : {"one", "two", "three"}) from.send(endpoint, name, body, true);
            settle(from, to, [&] { return to.came.size() + to.waiting.size() == 3 && from.sent == 3; });
            EXPECT_EQ(to.waiting.size(), at_once ? 0u : 3u);
            while (!to.waiting.empty()) to.take();
            settle(from, to, [&] { return to.came.size() == 3; });
            EXPECT_EQ(to.came[0].header, "one");
            for (const Message& message : to.came) EXPECT_EQ(message.body, body);
        }
}

TEST_F(Ucx, RefusedOnesAreSentForTheirSender) {
    for (const bool eager : {false, true})
        for (const bool at_once : {true, false}) {
            eager_large = eager;
            Peer from, to;
            to.refuses = true;
            to.at_once = at_once;
            Endpoint* const endpoint = from.connect(to);
            from.send(endpoint, "large", kLarge, true);
            settle(from, to, [&] { return at_once ? from.sent == 1 : to.waiting.size() == 1; });
            if (!at_once)
                to.take();
            from.send(endpoint, "behind", kSmall, false);
            settle(from, to, [&] { return from.sent == 2 && to.came.size() == 1; });
            EXPECT_EQ(to.came[0].header, "behind");
        }
}

// The library sees a header without the job's token, and refuses the message.
TEST_F(Ucx, HeadersOfAnotherLengthAreThoseOfStrangers) {
    for (const size_t bytes : {size_t{1}, kHeaderBytes})
        for (const bool large : {false, true}) {
            left_out = bytes;
            Peer from, to;
            to.refuses = true;
            from.send(from.connect(to), "a stranger", kLarge, large);
            to.at_once = false;
            settle(from, to, [&] { return to.came.size() + to.waiting.size() == 1; });
            EXPECT_EQ(large ? to.waiting[0]->header : to.came[0].header, "");
            if (large)
                to.take();
            settle(from, to, [&] { return from.sent == 1; });
        }
}

// What waits when the transport is closed is freed, which a sanitizer sees.
TEST_F(Ucx, ClosesWithBodiesThatNobodyHasTaken) {
    eager_large = true;
    Peer from, to;
    to.at_once = false;
    from.send(from.connect(to), "large", kLarge, true);
    settle(from, to, [&] { return to.waiting.size() == 1 && from.sent == 1; });
}

}  // namespace
}  // namespace heddle::fabric

// forge_step and send_as_stranger: what a PE that breaks the protocol, or a process that is no PE, could send. In a library of its own, with all of
// libheddle.so, whose internals no other library reaches.
#include "forge.h"

#include "bootstrap/bootstrap.h"
#include "collective/internode/internode_step.h"
#include "fabric/protocol/message.h"
#include "fabric/transport/address_blob.h"
#include "operations/remote.h"
#include "os/plugin.h"
#include "team/team.h"

#include <dlfcn.h>
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

using heddle::fabric::ControlKey;

namespace {

constexpr size_t kFull = 16 * 1024;

// Lengths and words that some reader may take for right, or that wrap around, among any others.
std::vector<char> forged(std::mt19937_64& random, bool may_be_full) {
    constexpr uint64_t kWords[] = {
        0, 1, 8, 64, 4096, 8192, 8193, 1 << 20, UINT64_MAX, UINT64_MAX - 7, uint64_t{1} << 63};
    constexpr size_t kLengths[] = {0, 1, 7, 8, 9, 16, 24, 32, 64, kFull - 1, kFull};
    if (random() % 4 == 0) {  // as a leader tells in a collect that its one member has many bytes
        const uint64_t told[] = {sizeof(uint64_t), kWords[random() % std::size(kWords)]};
        return {reinterpret_cast<const char*>(told), reinterpret_cast<const char*>(told) + sizeof told};
    }
    const uint64_t kind = random() % (std::size(kLengths) + 3);
    size_t bytes = kind < std::size(kLengths) ? kLengths[kind] : random() % 600;
    if (!may_be_full)
        bytes = std::min(bytes, kFull - 1);
    std::vector<char> message(bytes);
    const bool any = random() % 4 == 0;
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        const uint64_t word = any ? random() : kWords[random() % std::size(kWords)];
        memcpy(message.data() + at, &word, std::min(sizeof word, bytes - at));
    }
    // As leaders exchange data: the size of what follows.
    if (const uint64_t rest = bytes - sizeof rest; bytes >= 2 * sizeof rest && random() % 2 == 0)
        memcpy(message.data(), &rest, sizeof rest);
    return message;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void forge_step(unsigned seed, unsigned kind, size_t bytes) {
    heddle::team::Team& world = *heddle::team::find(SHMEM_TEAM_WORLD);
    heddle::operations::IssueParams issue = {.call = {"forge_step", nullptr}, .ctx = SHMEM_CTX_DEFAULT};
    const uint64_t step = ++world.span->steps;
    const uint64_t right_call =
        heddle::collective::InternodeStep::call_of(static_cast<heddle::collective::StepKind>(kind), bytes);
    std::mt19937_64 random(seed);
    for (int to = 0; to < world.members.size; ++to) {
        if (world.span->node_of[to] == world.span->node)
            continue;
        for (const uint32_t round : {0, 1, 2, 3, 4, 5, 6, 7, 8, 1000})
            for (const uint16_t piece : {0, 1}) {
                const std::vector<char> message = forged(random, piece == 0);
                const uint64_t call = random() % 64 == 0 ? random() : right_call;
                heddle::operations::remote_control(issue, world.members.pe(to),
                                                   ControlKey{world.span->id, step, round, piece, call}, message.data(),
                                                   message.size());
            }
        heddle::operations::remote_go(issue, world.members.pe(to));
    }
}

// As a process of another job: its own transport, the PE's right address, and every kind of message with another token.
extern "C" __attribute__((visibility("default"))) int send_as_stranger(int pe) {
    using namespace heddle::fabric;
    void* const plugin = heddle::os::load_plugin("libheddle_ucx.so");
    const auto* const api = plugin ? static_cast<const TransportApi*>(dlsym(plugin, "heddle_transport_1")) : nullptr;
    char error[256] = "", blob[kMaxAddressBlobBytes];
    const char* address = blob;
    size_t bytes = heddle::bootstrap::address_blob_of(pe, blob, error, sizeof error);
    const Events events = {nullptr, [](void*, int, const void*, const char*, size_t) {},
                           [](void*, int, const void*, size_t, Arrival*) {}, [](void*, int, int, const char*) {}};
    const Options options = {.devices = "", .transports = "tcp", .channels = 1, .message_bytes = 64 * 1024};
    Transport* transport = nullptr;
    if (!api || bytes == 0 || !find_rail_address(&address, &bytes, 0) ||
        !api->open(options, events, &transport, error, sizeof error))
        return -1;
    Endpoint* const to = api->connect(transport, 0, pe, address, bytes, error, sizeof error);
    static const std::vector<char> body(100'000, 1);
    int sent = 0, done = 0;
    for (uint32_t kind = 0; to && kind <= kMessageKinds; ++kind)
        for (const size_t body_bytes : {size_t{0}, size_t{16}, size_t{4096}, body.size()})
            for (const bool large : {false, true})
                for (const int from : {0, 1, -1}) {
                    Header header;
                    header.kind = static_cast<MessageKind>(kind);
                    header.token = static_cast<uint64_t>(kind) * 0x9e3779b97f4a7c15;
                    header.pe = from;
                    ++sent;
                    api->send(
                        transport, 0, to, &header, body.data(), body_bytes, large,
                        [](void* count) { ++*static_cast<int*>(count); }, &done);
                }
    while (done != sent) api->progress(transport, 0);
    api->close(transport);
    return to ? sent : -1;
}

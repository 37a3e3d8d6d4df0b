// forge_step: what a PE that breaks the protocol could send in a collective. In a library of its own, with all of
// libheddle.so, whose internals no other library reaches.
#include "forge.h"

#include "operations/remote.h"
#include "team/team.h"

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

extern "C" __attribute__((visibility("default"))) void forge_step(unsigned seed) {
    heddle::team::Team& world = *heddle::team::find(SHMEM_TEAM_WORLD);
    heddle::operations::IssueParams issue = {.call = {"forge_step", nullptr}, .ctx = SHMEM_CTX_DEFAULT};
    const uint64_t step = ++world.span->steps;
    std::mt19937_64 random(seed);
    for (int to = 0; to < world.members.size; ++to) {
        if (world.span->node_of[to] == world.span->node)
            continue;
        for (const uint32_t round : {0, 1, 2, 3, 4, 5, 6, 7, 8, 1000})
            for (const uint16_t piece : {0, 1}) {
                const std::vector<char> message = forged(random, piece == 0);
                heddle::operations::remote_control(issue, world.members.pe(to),
                                                   ControlKey{world.span->id, step, round, piece}, message.data(),
                                                   message.size());
            }
        heddle::operations::remote_go(issue, world.members.pe(to));
    }
}

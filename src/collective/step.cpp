#include "collective/step.h"

#include "fabric/network.h"
#include "progress/wait_policy.h"

#include <algorithm>
#include <cstring>

namespace heddle::collective {

void Step::post(int to_rank, uint64_t key, const void* data, size_t bytes) const {
    operations::remote_letter(under(), entered_.pe(to_rank), key, static_cast<uint32_t>(entered_.rank()), data, bytes);
}

size_t Step::take(int from_rank, uint64_t key, void* data, size_t bytes) const {
    size_t length = 0;
    const progress::AtStep here(entered_.team.span->word_of(number_));
    progress::wait_for_stores(entered_.call.function, entered_.team.span, [&] {
        return fabric::network->mailbox().take(key, static_cast<uint32_t>(from_rank), data, bytes, &length);
    });
    return length;
}

void Step::go(int to_rank) const {
    operations::remote_go(under(), entered_.pe(to_rank));
}

void Step::send(int to_rank, uint32_t round, const void* data, size_t bytes) const {
    post(to_rank, key(round, 0), data, bytes);
    go(to_rank);
}

size_t Step::read(int from_rank, uint32_t round, void* data, size_t bytes) const {
    return take(from_rank, key(round, 0), data, bytes);
}

// A letter that is not full is the last.
void Step::send_all(int to_rank, uint32_t round, const std::vector<char>& data) const {
    for (size_t at = 0, piece = 0; at <= data.size(); at += kMostLetter, ++piece)
        post(to_rank, key(round, static_cast<uint32_t>(piece)), data.data() + at,
             std::min(kMostLetter, data.size() - at));
    go(to_rank);
}

std::vector<char> Step::read_all(int from_rank, uint32_t round) const {
    std::vector<char> data;
    size_t length = kMostLetter;
    for (uint32_t piece = 0; length == kMostLetter; ++piece) {
        char letter[kMostLetter];
        length = take(from_rank, key(round, piece), letter, sizeof letter);
        data.insert(data.end(), letter, letter + length);
    }
    return data;
}

void Step::put(int to_rank, void* dest, const void* source, size_t bytes) const {
    if (bytes != 0)
        operations::remote_put(under(), dest, source, bytes, entered_.pe(to_rank));
}

void Step::deliver(int to_rank, uint32_t round, void* dest, const void* source, size_t bytes) const {
    if (bytes == 0)
        return send(to_rank, round, nullptr, 0);
    operations::remote_put_letter(under(), dest, source, bytes, entered_.pe(to_rank), key(round, 0),
                                  static_cast<uint32_t>(entered_.rank()));
    go(to_rank);
}

void Step::done(int to_rank) const {
    operations::remote_put_done(under(), entered_.pe(to_rank));
}

// Dissemination (as in leaders_meet) to three at once: what a leader knows goes to those 1, 2 and 3 times as far behind
// as it knows nodes, and comes from those before.
std::vector<std::vector<char>> tell_leaders(const Entered& entered, const Step& step, std::vector<char> mine) {
    constexpr int kTold = 3;
    const team::Span& span = *entered.team.span;
    const int n_nodes = span.n_nodes;
    const auto node_behind = [&](int distance) { return (span.node + distance) % n_nodes; };
    std::vector<std::vector<char>> told(static_cast<size_t>(n_nodes));
    const auto data_of = [&](int distance) -> std::vector<char>& {
        return told[static_cast<size_t>(node_behind(distance))];
    };
    data_of(0) = std::move(mine);
    uint32_t round = 0;
    for (int known = 1; known < n_nodes; known *= kTold + 1, round += kTold) {
        const auto share = [&](int other) { return std::min(known, n_nodes - other * known); };
        for (int other = 1; other <= kTold && other * known < n_nodes; ++other) {
            std::vector<char> letters;
            for (int i = 0; i < share(other); ++i) {
                const size_t bytes = data_of(i).size();
                append(letters, &bytes, sizeof bytes);
                append(letters, data_of(i).data(), bytes);
            }
            step.send_all(span.leader(node_behind(n_nodes - other * known)), round + static_cast<uint32_t>(other),
                          letters);
        }
        for (int other = 1; other <= kTold && other * known < n_nodes; ++other) {
            const std::vector<char> letters =
                step.read_all(span.leader(node_behind(other * known)), round + static_cast<uint32_t>(other));
            const char* at = letters.data();
            for (int i = 0; i < share(other); ++i) {
                size_t bytes;
                memcpy(&bytes, at, sizeof bytes);
                data_of(other * known + i).assign(at + sizeof bytes, at + sizeof bytes + bytes);
                at += sizeof bytes + bytes;
            }
        }
    }
    return told;
}

}  // namespace heddle::collective

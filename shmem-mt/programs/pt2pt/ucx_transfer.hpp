// The streams and round trips of a pair with bare UCX: one-sided puts and gets, active messages that put or ask for
// one message, and those that do so for as many as some KiB hold, as a library that gathers small messages can send
// them. The places of the messages are in random order.
#pragma once

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <vector>

#include "programs/pt2pt/peer_round_trip.hpp"
#include "programs/pt2pt/peer_transfer.hpp"
#include "programs/pt2pt/ucx_pairs.hpp"

namespace shmem_mt {

enum class UcxWay { kOneSided, kMessage, kPack };

class UcxTransfer final : public PeerTransfer {
  public:
    // `pack_bytes`: of a pack.
    UcxTransfer(Session& session, const UcxPairs& pairs, const PeerSpec& spec, UcxWay way, long pack_bytes)
        : PeerTransfer(session, spec), pairs_(pairs), way_(way), order_(static_cast<size_t>(spec.slots)) {
        std::iota(order_.begin(), order_.end(), 0L);
        std::shuffle(order_.begin(), order_.end(), std::mt19937(1));
        packs_.resize(static_cast<size_t>(session.threads()));
        item_bytes_ = static_cast<long>(sizeof(uint64_t)) + spec.size_bytes;
        pack_bytes_ = pack_bytes / item_bytes_ * item_bytes_;
        memory_.resize(static_cast<size_t>(
            way == UcxWay::kPack ? session.threads() * static_cast<long>(kUcxPacks) * pack_bytes_ : 0));
        for (size_t i = 0; i < packs_.size() * kUcxPacks; ++i)
            packs_[i / kUcxPacks][i % kUcxPacks].data = memory_.data() + static_cast<long>(i) * pack_bytes_;
    }

    // Whether several such messages go into a pack.
    static bool fits(long size_bytes, long pack_bytes) {
        return pack_bytes >= 4 * (static_cast<long>(sizeof(uint64_t)) + size_bytes);
    }

  protected:
    char* window(int thread) override { return pairs_.of(thread).window(); }
    char* local(int thread) override { return pairs_.of(thread).local(); }
    long slot_of(long message) const override { return order_[static_cast<size_t>(message & (spec_.slots - 1))]; }

    void send(int thread, long count, long first, bool issues, const Told& told, Marks& marks) override {
        UcxPort& port = pairs_.of(thread);
        const bool gets = reads() || session_.options().fault == Fault::kGetNamedPut;
        const long messages = issues ? count : 0;
        if (way_ == UcxWay::kOneSided)
            send_each(port, messages, first, gets, marks);
        else if (gets)
            send_fetches(port, messages, first, marks);
        else if (way_ == UcxWay::kMessage)
            send_messages(port, messages, first, marks);
        else
            send_packs(thread, port, messages, first);
        port.drain();
        port.tell({told.offset, told.first, told.last});
        if (!reads())
            port.await_answer();
    }

    bool receive(int thread, long) override {
        UcxPort& port = pairs_.of(thread);
        const UcxPort::Told told = port.await_told();
        const bool ok = looks_right(thread, {told.offset, told.first, told.last});
        if (!reads())
            port.answer();
        return ok;
    }

  private:
    long place_of(long message) const { return slot_of(message) * spec_.stride(); }

    // One-sided, each completed by itself where an epoch is one message.
    void send_each(UcxPort& port, long count, long first, bool gets, Marks& marks) {
        const size_t bytes = static_cast<size_t>(spec_.size_bytes);
        for (long i = 0; i < count; ++i) {
            if (!is_lost(session_, first + i))
                gets ? port.get(place_of(i), bytes) : port.put(place_of(i), bytes);
            if (spec_.every == 1)
                gets ? port.drain() : port.flush();
            marks.mark();
        }
        port.flush();
    }

    // The target answers each where an epoch is one message.
    void send_messages(UcxPort& port, long count, long first, Marks& marks) {
        const size_t bytes = static_cast<size_t>(spec_.size_bytes);
        const UcxId id = spec_.every == 1 ? kUcxAsked : kUcxMessage;
        for (long i = 0; i < count; ++i) {
            if (is_lost(session_, first + i))
                continue;
            port.message(id, static_cast<UcxHeader>(place_of(i)), port.local() + place_of(i), bytes);
            if (spec_.every == 1)
                port.await_answer();
            marks.mark();
        }
    }

    // A message asks for as many as fit into an answer of that size, or for one.
    void send_fetches(UcxPort& port, long count, long first, Marks& marks) {
        const size_t most = way_ == UcxWay::kPack ? static_cast<size_t>(pack_bytes_ / item_bytes_) : 1;
        size_t fetch = 0;
        for (size_t i = 0; i < kUcxPacks; ++i) port.offsets_of(i).clear();
        const auto leave = [&] {
            port.send_fetch(fetch, static_cast<size_t>(spec_.size_bytes));
            if (spec_.every == 1)
                port.await_fetch(fetch);
            fetch = (fetch + 1) % kUcxPacks;
            port.await_fetch(fetch);
            port.offsets_of(fetch).clear();
        };
        for (long i = 0; i < count; ++i) {
            if (is_lost(session_, first + i))
                continue;
            port.offsets_of(fetch).push_back(static_cast<uint64_t>(place_of(i)));
            if (port.offsets_of(fetch).size() == most)
                leave();
            marks.mark();
        }
        if (!port.offsets_of(fetch).empty())
            leave();
        for (size_t i = 0; i < kUcxPacks; ++i) port.await_fetch(i);
    }

    // The packs of a thread are filled in turns; a full one leaves, and is filled again when it is done.
    void send_packs(int thread, UcxPort& port, long count, long first) {
        auto& packs = packs_[static_cast<size_t>(thread)];
        const size_t bytes = static_cast<size_t>(spec_.size_bytes);
        size_t pack = 0;
        long used = 0;
        const auto leave = [&] {
            port.send_pack(packs[pack], bytes, static_cast<size_t>(used));
            pack = (pack + 1) % kUcxPacks;
            used = 0;
            port.await_pack(packs[pack]);
        };
        for (long i = 0; i < count; ++i) {
            if (is_lost(session_, first + i))
                continue;
            const uint64_t at = static_cast<uint64_t>(place_of(i));
            char* const item = packs[pack].data + used;
            std::memcpy(item, &at, sizeof at);
            std::memcpy(item + sizeof at, port.local() + at, bytes);
            used += item_bytes_;
            if (used == pack_bytes_)
                leave();
        }
        if (used > 0)
            leave();
    }

    const UcxPairs& pairs_;
    const UcxWay way_;
    std::vector<long> order_;  // of the slots
    long item_bytes_ = 0, pack_bytes_ = 0;
    std::vector<char> memory_;
    std::vector<std::array<UcxPort::Pack, kUcxPacks>> packs_;  // by thread
};

// There and back by an active message, which carries the data and is its own flag.
class UcxRoundTrip final : public PeerRoundTrip {
  public:
    UcxRoundTrip(Session& session, const UcxPairs& pairs, long size_bytes)
        : PeerRoundTrip(session, size_bytes), pairs_(pairs) {}

  protected:
    char* outbox(int thread) override { return pairs_.of(thread).local(); }
    char* inbox(int thread) override { return pairs_.of(thread).window(); }

    void send(int thread) override {
        pairs_.of(thread).message(kUcxTrip, 0, outbox(thread), static_cast<size_t>(size_));
        pairs_.of(thread).drain();
    }

    void await(int thread) override { pairs_.of(thread).await_trip(); }

  private:
    const UcxPairs& pairs_;
};

}  // namespace shmem_mt

// Two PEs in one process, each with a channel on each rail, some stream sets and symmetric memory, joined by fake
// transports.
#pragma once

#include "fabric/endpoint/channel.h"
#include "fabric/endpoint/control_inbox.h"
#include "fabric/endpoint/stream.h"
#include "fabric/endpoint/stream_set.h"
#include "fabric/liveness/heartbeat.h"
#include "fabric/multirail/rail_watermarks.h"
#include "fabric/multirail/retransmitting_transport.h"
#include "progress/wait_policy.h"
#include "unit/fabric/fake_transport.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace heddle::fabric {

constexpr uint64_t kToken = 0x1234567890abcdef;
constexpr uint32_t kStreamSets = 64;

class Pe {
  public:
    Pe(int number, size_t heap_bytes, const Habits& habits, size_t full_bytes, int n_rails, Spread spread, bool keeps,
       size_t plenty);
    ~Pe();

    StreamSet& stream_set(uint32_t number = 0) { return stream_sets_[number]; }
    // The stream of a stream set to the other PE that is used next.
    Stream& to_other(uint32_t number = 0) { return stream_sets_[number].to(1 - number_); }
    bool is_active() const { return stream_set_list_.is_active(); }
    // Every stream of the set that has something outstanding is active. For its producer.
    bool knows_its_active(uint32_t number) const;
    Producer& producer(uint32_t number) { return stream_sets_[number].producer; }
    char* heap() { return reinterpret_cast<char*>(heap_.data()); }
    uint64_t& word(size_t index) { return heap_[index]; }
    Transport& transport(int rail = 0) { return *rails_[rail].transport; }
    Transport::Channel& cable(int rail = 0) { return *transport(rail).channels[0]; }
    Channel& channel(int rail = 0) { return *channels_[rail]; }
    // How many messages of the kind have been sent so far.
    size_t sent(MessageKind kind, int rail = 0);
    bool poll();
    bool is_empty();
    size_t address_blob(char* address_blob) const;
    // All that the stream set has sent is complete.
    bool is_quiet(uint32_t number);
    // This PE has noticed that the rail is lost; it goes on where messages are kept.
    void lose(int rail) { lost_rails.fetch_or(1u << rail); }
    // A message from the other PE, as if it had arrived now.
    void arrives(Header header, const char* body, size_t bytes);

    RingSlab ring_slab;
    ControlInbox control_inbox;
    AddressBook addresses;
    std::atomic<uint32_t> lost_rails{0};
    std::atomic<int> left{0};  // how often a poll has left something
    bool polls_soon = false;   // another thread does
    bool is_asleep = false;    // the service thread is
    progress::WaitPolicy policy;
    std::atomic<int> notices{0};     // how often threads that wait were told
    std::atomic<int> runs{0};        // how often fibers that are ready were to be run
    Heartbeat* heartbeat = nullptr;  // who hears the heartbeats that come; the other PE is before and behind

  private:
    friend struct PairEvents;
    struct Rail {
        Pe* pe = nullptr;
        Transport* transport = nullptr;  // the fake one
        ChannelConfig config;
        std::unique_ptr<Channel> channel;
    };
    void open_rail(int number, size_t heap_bytes, const Habits& habits, size_t full_bytes, bool keeps);

    const int number_;
    const int n_rails_;
    std::vector<uint64_t> heap_;
    std::unique_ptr<RetransmittingTransport> retransmitting_;  // null: no message is kept
    Rail rails_[kMaxRails];
    Channel* channels_[kMaxRails] = {};
    RailWatermarks watermarks_[kStreamSets];  // what the other PE's stream sets bring
    StreamSet stream_sets_[kStreamSets];
    StreamSetList stream_set_list_;
    std::atomic<Stream*> streams_[kStreamSets][2] = {};
    std::atomic<RailScheduler*> rails_to_[kStreamSets][2] = {};
};

class Pair {
  public:
    explicit Pair(const Habits& habits = {}, size_t heap_bytes = 1024 * 1024, size_t full_bytes = kMessageBytes,
                  int n_rails = 1, Spread spread = Spread::kAnyOrder, bool keeps = false,
                  size_t plenty = RingSlab::kPlenty);
    ~Pair();

    Pe& operator[](int number) { return *pes_[number]; }
    // Polls both until nothing moves any more.
    void settle();
    // Both channels once.
    bool poll();
    // What waits of this thread do in place of polling both.
    std::function<bool()> instead;
    // What a PE that is lost comes to, in place of the end of the process.
    std::function<void(int pe, const std::string& reason)> lost;

  private:
    std::unique_ptr<Pe> pes_[2];
};

// Waits of the calling thread poll by this function, while the object lives.
class Waiting {
  public:
    explicit Waiting(bool (*poll)());
    ~Waiting();

  private:
    progress::WaitPolicy policy_;
    progress::WaitPolicy* const before_;
};

// One record on the stream, written by a function of record.h at the place that it is given.
template <class Write>
void publish(Stream& stream, size_t most, Write write) {
    stream.publish(write(stream.reserve("test", most)));
}
void put(Stream& stream, uint64_t offset, const void* from, size_t bytes);
void put_word(Stream& stream, uint64_t offset, uint64_t value);
void get(Stream& stream, void* to, uint64_t offset, size_t bytes);
void fetch_add(Stream& stream, void* to, uint64_t offset, uint64_t operand);

}  // namespace heddle::fabric

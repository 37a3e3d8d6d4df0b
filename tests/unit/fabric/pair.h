// Two PEs in one process, each with a wire, some lanes and symmetric memory, joined by the fake transport.
#pragma once

#include "fabric/mailbox.h"
#include "fabric/pulse.h"
#include "fabric/stream.h"
#include "fabric/wire.h"
#include "progress/wait_policy.h"
#include "unit/fabric/fake_transport.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace heddle::fabric {

constexpr uint64_t kToken = 0x1234567890abcdef;
constexpr uint32_t kLanes = 2;

class Pe {
  public:
    Pe(int number, size_t heap_bytes, const Habits& habits, size_t full_bytes);
    ~Pe();

    // The stream of a lane to the other PE.
    Stream& to_other(uint32_t lane = 0) { return *streams_[lane]; }
    Producer& producer(uint32_t lane) { return producers_[lane]; }
    char* heap() { return reinterpret_cast<char*>(heap_.data()); }
    uint64_t& word(size_t index) { return heap_[index]; }
    Transport& transport() { return *transport_; }
    Transport::Wire& cable() { return *transport_->wires[0]; }
    // How many messages of the kind have been sent so far.
    size_t sent(MessageKind kind);
    // A message from the other PE, as if it had arrived now.
    void arrives(Header header, const char* body, size_t bytes);

    Mailbox mailbox;
    std::unique_ptr<Wire> wire;
    Pulse* pulse = nullptr;  // who hears the pulses that come; the other PE is before and behind

  private:
    static Stream* stream_of(void* owner, uint32_t lane, int pe);

    const int number_;
    std::vector<uint64_t> heap_;
    Transport* transport_ = nullptr;
    Surroundings surroundings_;
    Producer producers_[kLanes];
    std::vector<std::unique_ptr<Stream>> streams_;
};

class Pair {
  public:
    explicit Pair(const Habits& habits = {}, size_t heap_bytes = 1024 * 1024, size_t full_bytes = kMessageBytes);
    ~Pair();

    Pe& operator[](int number) { return *pes_[number]; }
    // Polls both until nothing moves any more.
    void settle();
    // Both wires once.
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
    stream.publish(write(stream.room("test", most)));
}
void put(Stream& stream, uint64_t offset, const void* from, size_t bytes);
void put_word(Stream& stream, uint64_t offset, uint64_t value);
void get(Stream& stream, void* to, uint64_t offset, size_t bytes);
void fetch_add(Stream& stream, void* to, uint64_t offset, uint64_t operand);

}  // namespace heddle::fabric

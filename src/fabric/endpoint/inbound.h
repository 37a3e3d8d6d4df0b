// Inbound: the stream of one stream set of another PE, as it arrives here. Records are applied in the order in which
// they were published there, whatever order messages arrive in. Large data goes straight into place, and later records
// may be applied before it, until a kOrder record forbids that. An ack covers all that is complete up to one position.
//
// Where the stream set has streams on several rails, a kAfter record makes one stream wait for another. The records
// behind it are held as if something were missing, and are not acknowledged, so the sender's window bounds what is
// kept.
//
//     acked <= complete <= applied      complete: the first position that large data is missing of
//
// No two large data have one position. Replies leave in the order of the records that ask for them.
//
// Threads: under the lock of the channel that the stream comes on.
#pragma once

#include "fabric/endpoint/intrusive_list.h"
#include "fabric/multirail/rail_watermarks.h"
#include "fabric/protocol/message.h"
#include "fabric/protocol/record.h"
#include "fabric/transport/transport.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace heddle::fabric {

class Channel;

class Inbound final : private Applier {
  public:
    // watermarks: of the stream set; null where the network has one rail.
    Inbound(Channel& channel, int pe, uint32_t stream_set, RailWatermarks* watermarks)
        : channel_(channel), pe_(pe), stream_set_(stream_set), watermarks_(watermarks) {}
    ~Inbound();
    Inbound(const Inbound&) = delete;
    Inbound& operator=(const Inbound&) = delete;

    // Records of the stream from the position on have come.
    void on_records(uint64_t position, const char* records, size_t bytes);
    // The data of the kLarge record at the position has been announced.
    void on_large(uint64_t position, size_t bytes, Arrival* arrival);
    // Applies what need not wait any longer, and acknowledges what is complete: at once, or, behind a control message,
    // whose answer may take the ack along, when the channel says so.
    void progress();
    // Something is complete that was not acknowledged.
    bool has_ack() const { return complete() != acked_; }
    // The position of an ack, which the caller sends.
    uint64_t ack_position();

    int pe() const { return pe_; }
    uint32_t stream_set() const { return stream_set_; }

    // The channel's lists: those to go on with, and those whose next record waits for another rail. The peer's: those
    // with something to acknowledge.
    ListLink<Inbound> to_progress, waiting, to_ack;

  private:
    // Large data: its record has been applied, or its announcement has come, or both.
    struct Large {
        Inbound* inbound;
        uint64_t position;
        char* to;  // null: its record has not been applied
        size_t bytes;
        Arrival* arrival;  // null: not announced
    };

    void check_positions() const;
    void take_records(uint64_t position, const char* records, size_t bytes);
    void hold(uint64_t position, const char* records, size_t bytes);
    void apply_held();
    Large& large_at(uint64_t position);
    void start(Large& large);
    void send_replies();
    static void on_large_done(void* large);
    static void on_reply_sent(void* data);
    static void on_large_reply_sent(void* channel);

    void reply(const char* data, size_t bytes) override;
    void expect_large(size_t at, char* to, size_t bytes) override;
    void control(const ControlKey& key, const char* data, size_t bytes) override;
    bool is_complete(size_t at) override;
    bool is_after(unsigned rail, uint64_t position) override;

    // All before it is complete.
    uint64_t complete() const;

    Channel& channel_;
    const int pe_;
    const uint32_t stream_set_;
    RailWatermarks* const watermarks_;
    uint64_t applied_ = 0;            // all records before it have been applied
    uint64_t acked_ = 0;              // acknowledged
    bool delivered_control_ = false;  // the last records had a control message among them
    uint64_t replies_ = 0;            // the number of the next return to send
    uint64_t base_ = 0;               // position of the records that are being applied
    // Records that cannot be applied yet, by position: something before them is missing or not complete.
    std::map<uint64_t, std::vector<char>> held_;
    std::vector<Large*> larges_;  // those that are not complete
    // Replies that are gathered for one message.
    char* replies_data_ = nullptr;
    size_t replies_bytes_ = 0;
    uint32_t replies_count_ = 0;
};

}  // namespace heddle::fabric

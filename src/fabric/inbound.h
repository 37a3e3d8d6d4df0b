// Inbound: the stream of one lane of another PE, as it arrives here. Records are applied in the order in which they
// were published there, whatever order messages arrive in; large data goes straight into place and may be passed by
// others, until a kOrder record says otherwise. What is complete is acknowledged up to one position. Where the lane has
// streams on several rails, a kAfter record makes one wait for another: what comes behind it is held as if something
// were missing, and nothing is acknowledged of it, so the sender's window bounds what is kept.
//
// All under the lock of the wire that it comes on.
#pragma once

#include "fabric/delivered.h"
#include "fabric/message.h"
#include "fabric/record.h"
#include "fabric/transport.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::fabric {

class Wire;

class Inbound final : private Applier {
  public:
    // delivered: of the lane, null where there is one rail.
    Inbound(Wire& wire, int pe, uint32_t lane, Delivered* delivered, Inbound* behind)
        : next(behind), wire_(wire), pe_(pe), lane_(lane), delivered_(delivered) {}
    ~Inbound();
    Inbound(const Inbound&) = delete;
    Inbound& operator=(const Inbound&) = delete;

    void on_records(uint64_t position, const char* records, size_t bytes);
    void on_large(uint64_t position, size_t bytes, Arrival* arrival);
    // The same with the body itself, which is there during the call alone.
    void on_large(uint64_t position, size_t bytes, const char* body);
    // Goes on with what need not wait any longer, and tells the sender what is complete: at once, or, behind a letter,
    // for which an answer may be on its way, when the wire says so.
    void answer();
    void tell();
    // All before it is complete, and the sender is told so by the caller.
    uint64_t told() { return told_ = complete(); }

    int pe() const { return pe_; }
    uint32_t lane() const { return lane_; }

    Inbound* const next;  // of the same PE
    Inbound* next_to_answer = nullptr;
    bool queued = false;
    Inbound* next_to_go_on = nullptr;
    bool waits = false;  // for other rails
    Inbound* next_to_tell = nullptr;
    bool held_back = false;

  private:
    // Records that cannot be applied yet: something before them is missing or not complete.
    struct Held {
        uint64_t position;
        std::vector<char> records;
    };
    // Large data whose record has been applied, or whose announcement has come, or both.
    struct Large {
        Inbound* inbound;
        uint64_t position;
        char* to;  // null: its record has not been applied
        size_t bytes;
        Arrival* arrival;        // null: not announced
        const char* body;        // null: it comes by itself
        std::vector<char> copy;  // of the body, until it has a place
    };
    // A large reply that is on its way.
    struct Answer {
        char* data;
    };

    void take(uint64_t position, const char* records, size_t bytes);
    void go_on();
    Large& large_at(uint64_t position);
    Large& announced(uint64_t position, size_t bytes);
    void start(Large& large);
    void send_replies();
    static void on_large_done(void* large);
    static void on_reply_sent(void* data);

    void reply(const char* data, size_t bytes) override;
    void expect_large(size_t at, char* to, size_t bytes) override;
    void letter(uint64_t key, uint32_t from, const char* data, size_t bytes) override;
    bool is_complete(size_t at) override;
    bool is_after(unsigned rail, uint64_t position) override;

    // All before it is complete.
    uint64_t complete() const;

    Wire& wire_;
    const int pe_;
    const uint32_t lane_;
    Delivered* const delivered_;
    uint64_t applied_ = 0;         // all records before it have been applied
    uint64_t told_ = 0;            // acknowledged
    bool brought_letter_ = false;  // what was applied last
    uint64_t replies_ = 0;         // begun: the number of the next return
    uint64_t base_ = 0;            // position of the records that are being applied
    std::vector<Held> held_;
    std::vector<Large*> larges_;  // not complete
    char* replies_data_ = nullptr;
    size_t replies_bytes_ = 0;
    uint32_t replies_count_ = 0;
};

}  // namespace heddle::fabric

// Control inbox: control messages that other PEs have sent to this one, until they are read. Collectives between nodes
// synchronize by them. A key says what a message is for (ControlKey: team, step, round, piece); the channel says which
// PE has sent it. A reader gets a message only when every field of the key and the PE are equal. Members whose calls
// are right send under one `call` a step, and nothing that is not read. Another message is a stray, of which a waiting
// reader is told.
//
// A control message is applied at its place in the sender's stream. A PE that has read one sees all that was put before
// it on that stream. Only large data needs an order record in between. Messages of one PE with one key are read
// in the order in which they were sent.
//
// Threads: any. One short lock: control messages are rare beside records, and cross a network.
#pragma once

#include "fabric/protocol/record.h"
#include "sync/event_count.h"

#include <pthread.h>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace heddle::fabric {

class ControlInbox {
  public:
    ControlInbox() = default;
    ~ControlInbox();
    ControlInbox(const ControlInbox&) = delete;
    ControlInbox& operator=(const ControlInbox&) = delete;

    // False when more of that PE's waits than may (allow): it is broken.
    [[nodiscard]] bool deliver(const ControlKey& key, int from_pe, const char* data, size_t bytes);

    // A message that no reader takes: of the reader's step but another call, or of an earlier step of the team.
    struct Stray {
        int pe = -1;  // its sender; -1: there is none
        uint64_t step = 0, call = 0;
    };

    // Takes the oldest control message of that PE with the key; false: there is none. *length: its bytes. They are
    // copied to `data` when they are no more than `bytes`; of a longer message nothing is copied, and the caller ends
    // the PE. *stray, where no message is taken: one that shows that members' calls differ. The reader is the only one
    // of its team, and has read all that its earlier steps read.
    bool take(const ControlKey& key, int from_pe, void* data, size_t bytes, size_t* length, Stray* stray = nullptr);

    // From here on the event count advances with each message of that team, which is none of the program's; null: no
    // more. One team.
    void watch(uint64_t team, sync::EventCount* messages);

    // The number of control messages that have come, read or not.
    uint64_t received();
    // The most of them that have waited at once.
    uint64_t most_waiting();
    // Bytes that may wait of one PE, more or less from now on: a team has come or gone (team/team.h). Each message
    // counts as kOverheadBytes more than its data, for what keeps it.
    static constexpr size_t kOverheadBytes = 128;
    void allow(int64_t bytes);

  private:
    struct Source {
        ControlKey key;
        int pe;

        bool operator==(const Source&) const = default;
    };
    struct Hash {  // finds the bucket; Source::operator== decides
        size_t operator()(const Source& source) const;
    };
    using Messages = std::deque<std::vector<char>>;  // one or more, the oldest first
    // The messages of one step of one team that wait: the first one's call and sender, and those of another call.
    struct StepCalls {
        size_t count = 0;
        uint64_t call = 0;
        int pe = -1;
        uint64_t other_call = 0;
        int other_pe = -1;
    };
    using Step = std::pair<uint64_t, uint64_t>;  // a team's id, and the number of the step

    Stray find_stray(const ControlKey& key) const;

    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
    std::unordered_map<Source, Messages, Hash> messages_;
    std::map<Step, StepCalls> waiting_;
    uint64_t received_ = 0;
    uint64_t taken_ = 0;
    uint64_t most_waiting_ = 0;
    uint64_t watched_team_ = 0;
    sync::EventCount* watched_messages_ = nullptr;
    std::unordered_map<int, size_t> waiting_bytes_;  // by PE, where there are some
    // For messages of teams that this PE has not made yet, and their sender has.
    int64_t allowed_ = 64 * 1024 * 1024;
};

}  // namespace heddle::fabric

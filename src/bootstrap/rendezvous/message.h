// Messages of a rendezvous, between a PE and the server that brings the PEs together: a header, and its payload.
//
//   kJoin, kWaiting, kRefused, kStart     a PE asks to join, and hears that it waits, that it may not, or who is there
//   kPublish, kFence, kFenceDone          as in launcher_api.h; a fence that collects brings all new entries
//   kGet, kValue                          one entry, as soon as it is there
//   kAbort, kEnd                          a PE ends the job; the server tells each PE why it has to end
//   kLeave, kParted                       the end of the PE, or of the server, is no failure from now on
//
// Whatever has come is checked: magic, length, shape, numbers. Threads: any, with an Inbox each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::bootstrap::rendezvous {

constexpr uint64_t kMagic = 0x317a64726c646568;  // "hedlrdz1" as bytes; changes with the messages
constexpr uint64_t kSecondNs = 1000000000;
constexpr size_t kMaxTextBytes = 512;
constexpr size_t kMaxKeyBytes = 64;
constexpr size_t kMaxValueBytes = 16384;
constexpr size_t kMaxRequestBytes = kMaxKeyBytes + kMaxValueBytes + 64;  // what a PE sends
constexpr size_t kMaxAnswerBytes = size_t{1} << 28;                      // what a server sends: entries of all PEs

enum class Kind : uint32_t {
    kJoin = 1,   // JoinRequest
    kWaiting,    // no payload
    kRefused,    // text
    kStart,      // for each PE the hash of its host (uint64_t)
    kPublish,    // an entry
    kFence,      // uint32_t: whether it collects
    kFenceDone,  // entries
    kGet,        // an entry without value
    kValue,      // an entry
    kAbort,      // int32_t status, text
    kEnd,        // int32_t status, text
    kLeave,      // no payload
    kParted,     // no payload
};

struct Header {
    uint64_t magic;
    Kind kind;
    uint32_t bytes;  // of the payload
};

struct JoinRequest {
    uint64_t token;
    uint64_t host;  // pmi::identify_host
    int32_t pe;
    int32_t n_pes;
    int32_t pid;
    char host_name[64];  // for messages
    uint64_t process;    // process_word
};

// Its process and host, for messages.
std::string describe(const JoinRequest& who);
// A number that no other process has, whatever namespaces it is in.
uint64_t process_word();

// What a PE has published under a key.
struct Entry {
    int32_t pe = 0;
    std::string_view key, value;
};

// A message that has come; the payload is valid until the next call of its Inbox.
struct Message {
    Kind kind;
    std::string_view payload;
};

// The bytes of a connection, taken apart.
class Inbox {
  public:
    enum class State { kIncomplete, kWhole, kBroken };
    void append(const char* bytes, size_t count);
    // The next message. kBroken: the bytes are no message, or one with more than max_bytes of payload.
    State next(size_t max_bytes, Message* message);

  private:
    std::string bytes_;
    size_t begin_ = 0;
};

void append_message(std::string* out, Kind kind, std::string_view payload = {});
void append_entry(std::string* payload, const Entry& entry);
// Takes the first entry from a payload; false when the bytes are none.
bool take_entry(std::string_view* payload, Entry* entry);

// A payload of one value; false when it has another size.
template <class T>
bool read_value(std::string_view payload, T* value) {
    if (payload.size() != sizeof *value)
        return false;
    memcpy(value, payload.data(), sizeof *value);
    return true;
}
template <class T>
std::string_view bytes_of(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Text that somebody else has sent, for a message: short, and without control characters.
std::string printable(std::string_view text, size_t max_bytes = kMaxTextBytes);

// Numbers of PEs for a message, ascending: "PE 1, 3 to 5 and 9".
std::string name_pes(const std::vector<int>& pes);

}  // namespace heddle::bootstrap::rendezvous

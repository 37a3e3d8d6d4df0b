#include "bootstrap/rendezvous/message.h"

#include "os/process.h"

#include <algorithm>

namespace heddle::bootstrap::rendezvous {

std::string describe(const JoinRequest& who) {
    return "process " + std::to_string(who.pid) + " on host " +
           printable({who.host_name, strnlen(who.host_name, sizeof who.host_name)});
}

uint64_t process_word() {
    static const uint64_t word = os::random_word();
    return word;
}

namespace {

struct EntryHead {
    int32_t pe;
    uint32_t key_bytes;
    uint32_t value_bytes;
};

}  // namespace

void Inbox::append(const char* bytes, size_t count) {
    bytes_.erase(0, begin_);
    begin_ = 0;
    bytes_.append(bytes, count);
}

Inbox::State Inbox::next(size_t max_bytes, Message* message) {
    const std::string_view rest = std::string_view(bytes_).substr(begin_);
    // A stranger is noticed by its first bytes, however few come.
    if (memcmp(rest.data(), &kMagic, std::min(rest.size(), sizeof kMagic)) != 0)
        return State::kBroken;
    Header header;
    if (rest.size() < sizeof header)
        return State::kIncomplete;
    memcpy(&header, rest.data(), sizeof header);
    if (header.kind < Kind::kJoin || header.kind > Kind::kParted || header.bytes > max_bytes)
        return State::kBroken;
    if (rest.size() - sizeof header < header.bytes)
        return State::kIncomplete;
    *message = {header.kind, rest.substr(sizeof header, header.bytes)};
    begin_ += sizeof header + header.bytes;
    return State::kWhole;
}

void append_message(std::string* out, Kind kind, std::string_view payload) {
    const Header header = {kMagic, kind, static_cast<uint32_t>(payload.size())};
    out->append(bytes_of(header));
    out->append(payload);
}

void append_entry(std::string* payload, const Entry& entry) {
    const EntryHead head = {entry.pe, static_cast<uint32_t>(entry.key.size()),
                            static_cast<uint32_t>(entry.value.size())};
    payload->append(bytes_of(head));
    payload->append(entry.key);
    payload->append(entry.value);
}

bool take_entry(std::string_view* payload, Entry* entry) {
    EntryHead head;
    if (payload->size() < sizeof head)
        return false;
    memcpy(&head, payload->data(), sizeof head);
    const std::string_view rest = payload->substr(sizeof head);
    if (head.key_bytes == 0 || head.key_bytes > kMaxKeyBytes || head.value_bytes > kMaxValueBytes ||
        rest.size() < size_t{head.key_bytes} + head.value_bytes)
        return false;
    *entry = {head.pe, rest.substr(0, head.key_bytes), rest.substr(head.key_bytes, head.value_bytes)};
    *payload = rest.substr(size_t{head.key_bytes} + head.value_bytes);
    return true;
}

std::string printable(std::string_view text, size_t max_bytes) {
    std::string shown(text.substr(0, std::min(text.size(), max_bytes)));
    for (char& letter : shown)
        if (letter < ' ' || letter > '~')
            letter = '?';
    return shown;
}

std::string name_pes(const std::vector<int>& pes) {
    constexpr size_t kMaxRanges = 12;
    std::vector<std::string> ranges;
    for (size_t i = 0; i < pes.size();) {
        size_t end = i + 1;
        while (end < pes.size() && pes[end] == pes[end - 1] + 1) ++end;
        ranges.push_back(std::to_string(pes[i]));
        if (end - i == 2)
            ranges.push_back(std::to_string(pes[i + 1]));
        else if (end - i > 2)
            ranges.back() += " to " + std::to_string(pes[end - 1]);
        i = end;
    }
    if (ranges.size() > kMaxRanges) {
        ranges.resize(kMaxRanges);
        ranges.emplace_back("others");
    }
    std::string text = "PE ";
    for (size_t i = 0; i < ranges.size(); ++i)
        text += (i == 0 ? "" : i + 1 == ranges.size() ? " and " : ", ") + ranges[i];
    return text;
}

}  // namespace heddle::bootstrap::rendezvous

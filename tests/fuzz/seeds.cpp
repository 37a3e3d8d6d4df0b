// Writes the seeds of the fuzzer: messages as PEs send them, of records from the writers of fabric/protocol/record.h.
//
//     fuzz_seeds FOLDER
#include "fabric/endpoint/stream.h"
#include "fabric/protocol/gathered.h"
#include "fabric/protocol/message.h"
#include "unit/fabric/records.h"

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace heddle::fabric {
namespace {

constexpr int kOurs = 1, kLarge = 2, kLate = 32, kAsIs = 64, kSecond = 128;
constexpr Address kHeap = {0, RegionName::kHeap}, kData = {0, RegionName::kData};

// An input as tests/fuzz/channel_fuzz.cpp takes it apart.
class Input {
  public:
    explicit Input(int asks) { byte(asks); }
    Input& message(MessageKind kind, int flags, uint64_t position, const std::string& body, int count = 0,
                   int complete = 0) {
        begin(kind, flags, position, count, complete, body.size());
        bytes_ += body;
        return *this;
    }
    Input& records(const Records& records, int flags = kOurs, uint64_t position = 0) {
        return message(MessageKind::kRecords, flags, position, {records.data(), records.size()});
    }
    // Of a channel that keeps its messages: the number, the receipt and the rail.
    Input& kept(MessageKind kind, int flags, int number, int receipt, int rail, const std::string& body) {
        byte(flags | static_cast<int>(kind) << 2);
        bytes_.append("\1\0\0\0\0\0\0\0\0\0\0\0", 12);  // sender, stream set, position, count, complete
        byte(number);
        byte(receipt);
        byte(rail);
        const size_t bytes = body.size();
        bytes_.append(reinterpret_cast<const char*>(&bytes), sizeof(uint16_t));
        bytes_ += body;
        return *this;
    }
    Input& large(MessageKind kind, uint64_t position, size_t bytes, int flags = kOurs) {
        begin(kind, flags | kLarge, position, 0, 0, bytes);
        return *this;
    }
    void write(const std::string& folder, const char* name) const {
        std::ofstream file(folder + "/" + name, std::ios::binary);
        file.write(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
    }

  private:
    void byte(int value) { bytes_ += static_cast<char>(value); }
    void begin(MessageKind kind, int flags, uint64_t position, int count, int complete, size_t bytes) {
        byte(flags | static_cast<int>(kind) << 2);
        byte(1);  // sender
        byte(0);  // stream set
        bytes_.append(reinterpret_cast<const char*>(&position), sizeof position);
        byte(count);
        byte(complete);
        bytes_.append(reinterpret_cast<const char*>(&bytes), sizeof(uint16_t));
    }

    std::string bytes_;
};

Records one_of_each() {
    Records records;
    records.put_word(kHeap, 1).put_word(kData, 2, 3).put({100}, std::string(13, 'p'));
    records.put({200}, std::string(600, 'P')).get({96}, 30).get({0}, kLargeBytes);
    for (int op = HEDDLE_AMO_FETCH; op <= HEDDLE_AMO_XOR; ++op)
        records.atomic({8}, static_cast<heddle_amo_op>(op), 5, 6, op % 2 ? 8 : 4, op % 3 == 0);
    records.signal({24, RegionName::kData}, 7, true).signal({32, RegionName::kData}, 7, false);
    records.control({77, 5, 3, 1}, "letter").control({78, 5, 4, 0}, "").order().put_word({16}, 3);
    return records;
}

// Of two rails; word: a record for the second one.
void write_rails(const std::string& folder, const Records& word) {
    using enum MessageKind;
    Records waits;
    waits.put_word({16}, 1).after(1, 16).put_word({24}, 2).after(1, 32).put_word({32}, 3);
    Input(64).records(waits).records(word, kOurs | kSecond).records(word, kOurs | kSecond).write(folder, "rails");
    const std::string body(word.data(), word.size());
    Input(64 + 128 + 1 + 8)
        .kept(kRecords, kOurs, 1, 1, 0, body)
        .kept(kRecords, kOurs, 3, 1, 0, body)
        .kept(kRecords, kOurs | kSecond, 2, 0, 0, body)
        .kept(kRecords, kOurs, 1, 2, 0, body)
        .kept(kAck, kOurs | kSecond, 3, 2, 0, "")
        .write(folder, "lost_rail");
    Input(64).records(Records().after(0, 0).put_word({16}, 1)).write(folder, "rail_waits_for_itself");
}

// An ack of the program's record, and records of two streams, one of them twice.
void write_gathered(const std::string& folder, const Records& word) {
    const auto bytes_of = [](const auto& section) {
        return std::string(reinterpret_cast<const char*>(&section), sizeof section);
    };
    std::string body = bytes_of(AckSection{.position = 16, .stream_set = 0});
    for (const RecordsSection& section :
         {RecordsSection{0, 0, 16}, RecordsSection{0, 1, 16}, RecordsSection{16, 0, 16}})
        body += bytes_of(section) + std::string(word.data(), word.size());
    Input(1).message(MessageKind::kGathered, kOurs, 0, body, 1, 3).write(folder, "gathered");
    body.resize(body.size() - 8);
    Input(1).message(MessageKind::kGathered, kOurs, 0, body, 1, 3).write(folder, "gathered_short");
}

void write_all(const std::string& folder) {
    using enum MessageKind;
    Input(0).records(one_of_each()).records(one_of_each()).write(folder, "records");
    Records large;
    large.large({64}, 1000).order().put_word({8}, 1).large({0}, kLargeBytes).get({64}, 64);
    Input(0)
        .records(large)
        .large(kLargeData, 0, 1000)
        .large(kLargeData, large.ends()[2], kLargeBytes)
        .write(folder, "large_behind");
    Input(0)
        .large(kLargeData, 0, 1000, kOurs | kLate)
        .large(kLargeData, large.ends()[2], kLargeBytes, kOurs | kLate)
        .records(large)
        .records(one_of_each())
        .write(folder, "large_before");
    Records word;
    word.put_word({8}, 1);
    Input(0)
        .records(word, kOurs | kAsIs, 32)
        .records(word, kOurs | kAsIs, 16)
        .records(word, kOurs | kAsIs, 0)
        .records(word)
        .write(folder, "out_of_order");
    Input(1).message(kAck, kOurs, 16, "").write(folder, "acknowledged");
    // The seven short returns of the program: 1, 2, 4, 7, 8 and 100 bytes, then 3.
    const std::string values(5 * 8 + 104, 'v');
    Input(2 + 16)
        .message(kReply, kOurs, 0, values, 6, 96)
        .message(kReply, kOurs, 6, "12345678", 1, 112)
        .write(folder, "replies");
    Input(2 + 16 + 32)  // a native get is between them, which no reply is for
        .message(kReply, kOurs, 0, values, 6, 96)
        .message(kReply, kOurs, 6, "12345678", 1, 112)
        .write(folder, "replies_beside_native");
    Input(2 + 4 + 16)
        .large(kLargeReply, 6, kLargeBytes, kOurs | kLate)
        .message(kReply, kOurs, 0, values, 6)
        .message(kReply, kOurs, 7, "12345678", 1, 100)
        .write(folder, "large_reply");
    Input(8).message(kAck, kOurs, 16, "").write(folder, "large_put_acknowledged");
    const std::string address_blob("\1\0c\1\0c", 6);  // of two rails
    Input(31)
        .message(kConnect, kOurs, 0, address_blob)
        .message(kConnect, kOurs, 0, address_blob)
        .records(one_of_each())
        .message(kAck, kOurs, 0, "")
        .write(folder, "hello");
    write_gathered(folder, word);
    Input(0).records(one_of_each(), 0).large(kLargeData, 0, 1000, 0).records(word).write(folder, "stranger");
    write_rails(folder, word);
}

}  // namespace
}  // namespace heddle::fabric

int main(int argc, char** argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
        return 1;
    }
    heddle::fabric::write_all(argv[1]);
    return 0;
}

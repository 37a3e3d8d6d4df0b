// Stream: several records that leave together.
#include "unit/fabric/pair.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <string>

namespace heddle::fabric {
namespace {

TEST(PublishAhead, RecordsLeaveWithThoseBehindThem) {
    Pair pair;
    const Waiting waiting{nullptr};
    Stream& stream = pair[0].to_other();
    const auto there = [&](uint64_t offset, size_t bytes) { return std::string(pair[1].heap() + offset, bytes); };
    const auto write = [&](uint64_t offset, const std::string& data) {
        char* const at = stream.reserve("test", record::put_bytes(data.size()));
        return record::put(at, {offset}, data.data(), data.size());
    };
    const std::string junk(kLargeBytes - 1, 'j');
    std::string data(20000, ' ');
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 31 % 251);
    for (int round = 0; round < 20; ++round) {
        const size_t before = pair[0].sent(MessageKind::kRecords);
        stream.begin_together(3 * data.size());
        stream.publish_ahead(write(0, data));
        EXPECT_TRUE(pair[0].is_active());
        stream.publish_ahead(write(data.size(), data));
        if (round == 0) {  // later ones may fill a message that began before
            EXPECT_EQ(pair[0].sent(MessageKind::kRecords), before);
        }
        pair[0].poll();  // of another thread: what it may send is complete records
        stream.publish(write(2 * data.size(), data));
        pair.settle();
        EXPECT_LE(pair[0].sent(MessageKind::kRecords) - before, 2u);
        EXPECT_EQ(there(0, 3 * data.size()), data + data + data);
        std::fill_n(pair[1].heap(), 3 * data.size(), 0);
        EXPECT_TRUE(stream.is_quiet());
    }
    stream.publish_ahead(write(0, junk));
    stream.publish_ahead(write(0, junk));  // fills a message
    pair.settle();
    EXPECT_EQ(there(0, junk.size()), junk);
    stream.publish_ahead(write(0, data));
    stream.flush();
    pair.settle();
    EXPECT_EQ(there(0, data.size()), data) << "a flush is enough";
}

}  // namespace
}  // namespace heddle::fabric

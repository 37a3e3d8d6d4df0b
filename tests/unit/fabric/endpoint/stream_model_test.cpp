// Random operations of six stream sets between two PEs, over a network that is late and out of order, with RDMA or
// without it, on one rail or several, against a model that does them one after the other.
#include "unit/fabric/pair.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <string>

namespace heddle::fabric {
namespace {

constexpr size_t kHalf = 128 * 1024;  // of the heap, for each stream set
constexpr int kOperations = 1000;
constexpr uint32_t kActors = 6;  // stream sets of a PE: more than kMaxBusy

// What one stream set does to its half of the other PE's heap, and how that half should look.
class Actor {
  public:
    Actor(Pair& pair, int pe, uint32_t stream_set, uint64_t seed)
        : pe_(pe),
          stream_set_(pair[pe].stream_set(stream_set)),
          there_(pair[1 - pe]),
          begin_(stream_set * kHalf),
          key_{.team = stream_set},
          random_(seed),
          model_(kHalf, '\0') {}

    void act() {
        switch (random_() % 16) {
            case 0:
            case 1:
            case 2:
            case 3:
                return put_some(random_() % 9 + 1);
            case 4:
                return put_some(random_() % 700 + 1);
            case 5:
                return put_some(random_() % (kLargeBytes - 1) + 1);
            case 6:
                return put_some(kLargeBytes - 2 + random_() % 4);
            case 7:
                return put_some(kLargeBytes + random_() % 70000);
            case 8:
            case 9:
                return get_some(random_() % 20 + 1);
            case 10:
                return get_some(random_() % (2 * kLargeBytes) + 1);
            case 11:
            case 12:
                return act_atomically();
            case 13:
                return set_signal();
            case 14:
                return send_control();
            default:
                if (random_() % 4 == 0)
                    stream_set_.producer.quota.take_back_all();
                if (random_() % 4 == 0)
                    quiet();
                else
                    flush();
        }
    }

    // All is complete: the other PE's half is the model's.
    void quiet() {
        flush();
        wait([](Stream& stream) { return stream.is_quiet() && stream.is_local(); });
        free_.clear();
        ASSERT_EQ(memcmp(there_.heap() + begin_, model_.data(), kHalf), 0);
        for (const Get& get : gets_) ASSERT_TRUE(get.to == get.expected);
        gets_.clear();
        for (const std::string& control : controls_) {
            std::string read(control.size() + 1, '#');
            size_t length = 0;
            ASSERT_TRUE(there_.control_inbox.take(key_, pe_, read.data(), read.size(), &length));
            ASSERT_EQ(read.substr(0, length), control);
        }
        controls_.clear();
    }

  private:
    struct Extent {
        size_t offset, bytes;
        bool meets(const Extent& other) const {
            return offset < other.offset + other.bytes && other.offset < offset + bytes;
        }
    };
    struct Get {
        Extent from;
        const Stream* stream;
        uint64_t number;
        bool large;
        std::string to, expected;
    };

    std::string random_bytes(size_t bytes) {
        std::string data(bytes, '\0');
        for (char& byte : data) byte = static_cast<char>(random_());
        return data;
    }
    // For large data.
    Stream& of_some_rail() { return stream().rails ? stream().rails->fastest("test") : stream(); }
    Extent somewhere(size_t bytes, size_t alignment = 1) {
        // Near one end, where operations meet, or anywhere.
        const size_t room = kHalf - bytes;
        const size_t offset = random_() % 2 == 0 ? random_() % std::min<size_t>(room + 1, 512) : random_() % (room + 1);
        return {offset / alignment * alignment, bytes};
    }
    Stream& stream() { return stream_set_.to(1 - pe_); }
    void flush() {
        stream_set_.all([](Stream& stream) {
            stream.flush();
            return true;
        });
    }
    template <class Ready>
    void wait(Ready ready) {
        stream().channel().wait("test", this, [&] { return stream_set_.all(ready); });
    }
    // Whether what comes behind may pass it: large data; and everything, where there are several rails to take.
    bool is_free(size_t bytes) const {
        return bytes >= kLargeBytes || (stream_set_.n_rails > 1 && stream_set_.spread == Spread::kAnyOrder);
    }
    // What touches the extent comes behind what is on its way there and could be passed.
    void order_behind_free(const Extent& extent) {
        if (std::none_of(free_.begin(), free_.end(), [&](const Extent& one) { return one.meets(extent); }))
            return;
        stream_set_.order("test", 1 - pe_);
        free_.clear();
    }
    void begin(const Extent& extent) {
        order_behind_free(extent);
        if (is_free(extent.bytes))
            free_.push_back(extent);
    }
    // A large reply, or a native get, reads the memory when it moves: what it reads is not to change before it is
    // there.
    void wait_for_large_gets(const Extent& extent) {
        for (const Get& get : gets_) {
            if (!get.large || !get.from.meets(extent) || get.stream->has_returned(get.number))
                continue;
            flush();
            stream().channel().wait("test", this, [&] { return get.stream->has_returned(get.number); });
        }
    }
    void before_writing(const Extent& extent) {
        wait_for_large_gets(extent);
        begin(extent);
    }

    void put_some(size_t bytes) {
        const Extent to = somewhere(bytes);
        before_writing(to);
        const std::string data = random_bytes(bytes);
        model_.replace(to.offset, bytes, data);
        if (bytes >= kLargeBytes) {
            sources_.push_back(data);  // stays as it is until it is local: for ever, here
            put(of_some_rail(), begin_ + to.offset, sources_.back().data(), bytes);
            if (stream_set_.spread == Spread::kInOrder)
                stream_set_.order("test", 1 - pe_);
        } else {
            put(stream(), begin_ + to.offset, data.data(), bytes);
        }
    }
    void get_some(size_t bytes) {
        const Extent from = somewhere(bytes);
        begin(from);
        Stream& stream = bytes >= kLargeBytes ? of_some_rail() : this->stream();
        const bool native = random_() % 2 == 0 && stream.is_native("test");
        gets_.push_back({from, &stream, stream.returns() + 1, native || bytes >= kLargeBytes, std::string(bytes, '#'),
                         model_.substr(from.offset, bytes)});
        if (native)
            return stream.get_native("test", gets_.back().to.data(), {begin_ + from.offset}, bytes);
        get(stream, gets_.back().to.data(), begin_ + from.offset, bytes);
    }
    template <class T>
    void act_atomically_on() {
        const Extent at = somewhere(sizeof(T), sizeof(T));
        before_writing(at);
        T old, operand = static_cast<T>(random_());
        memcpy(&old, model_.data() + at.offset, sizeof old);
        const T compare = random_() % 2 == 0 ? old : static_cast<T>(old + 1);
        const bool swaps = random_() % 2 == 0, fetches = random_() % 2 == 0;
        const T becomes = swaps ? (old == compare ? operand : old) : static_cast<T>(old + operand);
        memcpy(model_.data() + at.offset, &becomes, sizeof becomes);
        if (fetches) {
            gets_.push_back({at, &stream(), stream().returns() + 1, false, std::string(sizeof(T), '#'),
                             std::string(reinterpret_cast<const char*>(&old), sizeof old)});
            stream().expect_return("test", gets_.back().to.data(), sizeof(T));
        }
        publish(stream(), record::kMaxShort, [&](char* place) {
            return record::atomic(place, {begin_ + at.offset}, swaps ? HEDDLE_AMO_COMPARE_SWAP : HEDDLE_AMO_ADD,
                                  operand, compare, sizeof(T), fetches);
        });
    }
    void act_atomically() {
        if (random_() % 2 == 0)
            act_atomically_on<uint32_t>();
        else
            act_atomically_on<uint64_t>();
    }
    void set_signal() {
        const Extent at = somewhere(8, 8);
        before_writing(at);
        const uint64_t value = random_();
        memcpy(model_.data() + at.offset, &value, sizeof value);
        publish(stream(), record::kMaxShort,
                [&](char* place) { return record::signal(place, {begin_ + at.offset}, value, false); });
    }
    void send_control() {
        controls_.push_back(random_bytes(random_() % 3 == 0 ? random_() % 16384 : random_() % 20));
        const std::string& text = controls_.back();
        stream_set_.order("test", 1 - pe_);
        publish(stream(), record::control_bytes(text.size()),
                [&](char* place) { return record::control(place, key_, text.data(), text.size()); });
    }

    const int pe_;
    StreamSet& stream_set_;
    Pe& there_;
    const size_t begin_;
    const ControlKey key_;
    std::mt19937_64 random_;
    std::string model_;
    std::vector<Extent> free_;  // under way and not ordered
    std::deque<std::string> sources_;
    std::deque<Get> gets_;
    std::vector<std::string> controls_;
};

// RailScheduler fail one after the other, but for one: nothing leaves any more, one of the PEs notices, and the other
// one, a while later. Some come back, too late, with what they still had.
class Failures {
  public:
    Failures(Pair& pair, int n_rails, uint64_t seed) : pair_(pair), n_rails_(n_rails), random_(seed) {}
    void happen() {
        if (random_() % (kOperations / 16) != 0)
            return;
        switch (random_() % 3) {
            case 0:
                if (lost_ + 1 >= n_rails_)
                    return;
                hold(lost_, true);
                return pair_[static_cast<int>(random_() % 2)].lose(lost_++);
            case 1:
                return all_notice();
            default:
                if (lost_ > 1)
                    hold(lost_ - 2, false);
        }
    }
    void all_notice() {
        for (int rail = 0; rail < lost_; ++rail)
            for (int pe = 0; pe < 2; ++pe) pair_[pe].lose(rail);
    }
    int lost() const { return lost_; }

  private:
    void hold(int rail, bool holds) {
        for (int pe = 0; pe < 2; ++pe) pair_[pe].cable(rail).holds = holds;
    }

    Pair& pair_;
    const int n_rails_;
    std::mt19937_64 random_;
    int lost_ = 0;
};

void run(const Habits& habits, int n_rails = 1, Spread spread = Spread::kAnyOrder, bool fails = false) {
    printf("seed %llu\n", static_cast<unsigned long long>(habits.seed));
    SCOPED_TRACE("seed " + std::to_string(habits.seed));
    // In every other run memory for rings is short.
    const size_t plenty = habits.seed % 2 == 0 ? RingSlab::kPlenty : 2 * kMaxRing;
    Pair pair(habits, kActors * kHalf, kMessageBytes, n_rails, spread, fails, plenty);
    const Waiting waiting(nullptr);
    std::mt19937_64 random(habits.seed);
    Failures failures(pair, fails ? n_rails : 0, habits.seed);
    if (fails)
        pair.instead = [&] {
            if (random() % 100 == 0)
                failures.all_notice();
            return pair.poll();
        };
    std::deque<Actor> actors;
    for (int pe = 0; pe < 2; ++pe)
        for (uint32_t stream_set = 0; stream_set < kActors; ++stream_set)
            actors.emplace_back(pair, pe, stream_set, random());
    for (int i = 0; i < kOperations && !testing::Test::HasFatalFailure(); ++i) {
        actors[random() % actors.size()].act();
        for (int pe = 0; pe < 2; ++pe)
            for (uint32_t stream_set = 0; stream_set < kActors; ++stream_set)
                ASSERT_TRUE(pair[pe].knows_its_active(stream_set));
        failures.happen();
        if (random() % 16 == 0)
            pair.poll();
    }
    failures.all_notice();
    for (Actor& actor : actors) actor.quiet();
    if (fails)
        printf("%d of %d rails were lost\n", failures.lost(), n_rails);
    else
        pair.settle();
    for (int pe = 0; pe < 2 && !fails; ++pe) EXPECT_FALSE(pair[pe].is_active());
}

uint64_t new_seed() {
    return std::random_device{}();
}

TEST(StreamModel, OnANetworkThatIsQuick) {
    run({.seed = new_seed()});
}

TEST(StreamModel, OnANetworkThatIsLate) {
    for (const unsigned lazy : {2u, 4u, 7u}) run({.seed = new_seed(), .lazy = lazy});
}

TEST(StreamModel, WhereLargeDataHasAnEndpointOfItsOwn) {
    for (const int n_rails : {1, 2})
        for (const unsigned lazy : {0u, 4u, 7u}) run({.seed = new_seed(), .lazy = lazy, .parts_large = true}, n_rails);
}

TEST(StreamModel, WhereMessagesOfRecordsPassEachOther) {
    for (const unsigned lazy : {2u, 4u, 7u}) run({.seed = new_seed(), .lazy = lazy, .shuffles_records = true});
}

TEST(StreamModel, WhereBodiesLieAtAnyAddress) {
    run({.seed = new_seed(), .lazy = 4, .misaligns = true});
}

TEST(StreamModel, WhereLargeDataAndGetsGoStraightIntoPlace) {
    for (const unsigned lazy : {0u, 2u, 4u, 7u}) run({.seed = new_seed(), .lazy = lazy, .native = true});
}

TEST(StreamModel, OverRailsInAnyOrder) {
    for (const int n_rails : {2, 3, kMaxRails})
        for (const unsigned lazy : {0u, 4u, 7u}) run({.seed = new_seed(), .lazy = lazy}, n_rails);
}

TEST(StreamModel, OverRailsInOrder) {
    for (const int n_rails : {2, 3, kMaxRails})
        for (const unsigned lazy : {0u, 4u, 7u}) run({.seed = new_seed(), .lazy = lazy}, n_rails, Spread::kInOrder);
}

TEST(StreamModel, OverRailsThatFail) {
    for (const Spread spread : {Spread::kAnyOrder, Spread::kInOrder, Spread::kOneRail})
        for (const int n_rails : {2, 3, 5})
            for (const unsigned lazy : {0u, 4u}) run({.seed = new_seed(), .lazy = lazy}, n_rails, spread, true);
}

TEST(StreamModel, OverRailsWhereLargeDataAndGetsGoStraightIntoPlace) {
    for (const unsigned lazy : {0u, 4u, 7u}) run({.seed = new_seed(), .lazy = lazy, .native = true}, 2);
}

}  // namespace
}  // namespace heddle::fabric

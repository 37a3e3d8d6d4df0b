// Pending events by time; events of one time come out in the order in which they were put in.
//
// A calendar queue: a ring of buckets of 2^shift picoseconds each, unsorted. The bucket whose turn has come is sorted
// into `today_`; events that are added to it later go to a small heap. Events beyond the ring wait in `far_` until the
// ring has gone round. Buckets are chains of chunks, so a push writes beside the push before it. The width of buckets
// follows the load. A push allocates nothing once the pool has grown to the largest number of pending events.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "large_memory.hpp"

namespace shmem_mt {

using Time = uint64_t;  // picoseconds

// A packet's way is in the event itself: so a step of it touches nothing but the links.
struct Event {
    Time time;
    uint32_t order;  // of the push; decides between equal times
    uint32_t kind;
    uint32_t slot;        // whose event it is: a transfer's or a core's
    uint32_t router, to;  // where the packet is, and where it goes
    float bytes;          // of the packet
};

class EventQueue {
  public:
    EventQueue() : heads_(kBuckets, kNone), occupied_(kBuckets / 64, 0) {}

    size_t size() const { return size_; }

    // `event.time` must not lie before that of the last pop; the queue sets `order`.
    void push(Event event) {
        ++size_;
        event.order = order_++;
        file(event);
    }

    // The earliest event. The queue must not be empty.
    Event pop() {
        if (next_ == today_.size() && late_.empty())
            open_next();
        --size_;
        if (late_.empty() || (next_ < today_.size() && Before()(today_[next_], late_.front())))
            return today_[next_++];
        std::pop_heap(late_.begin(), late_.end(), After());
        const Event event = late_.back();
        late_.pop_back();
        return event;
    }

    // One that will probably be popped `ahead` pops later, null when there is none: what it needs can be fetched.
    const Event* upcoming(size_t ahead) const {
        return next_ + ahead < today_.size() ? &today_[next_ + ahead] : nullptr;
    }

  private:
    static constexpr uint32_t kNone = ~0U;
    static constexpr size_t kBuckets = 1 << 15;
    static constexpr uint32_t kChunk = 15;         // events;
    static constexpr uint64_t kLook = 1 << 16;     // events opened, or filed anew, between two looks at the load
    static constexpr uint64_t kMostInBucket = 64;  // the mean
    static constexpr unsigned kWidest = 40;        // a second

    struct Chunk {
        uint32_t next, count;
        Event events[kChunk];
    };

    // Objects, so that sorting inlines them.
    struct Before {
        bool operator()(const Event& a, const Event& b) const {
            return a.time != b.time ? a.time < b.time : static_cast<int32_t>(a.order - b.order) < 0;
        }
    };
    struct After {
        bool operator()(const Event& a, const Event& b) const { return Before()(b, a); }
    };

    void file(const Event& event) {
        const Time bucket = event.time >> shift_;
        if (bucket < first_) {
            late_.push_back(event);
            std::push_heap(late_.begin(), late_.end(), After());
            return;
        }
        longest_ = std::max(longest_, bucket - first_);
        if (bucket - first_ < kBuckets)
            return add(bucket & (kBuckets - 1), event);
        far_.push_back(event);
        far_first_ = std::min(far_first_, bucket);
    }

    void add(size_t bucket, const Event& event) {
        uint32_t head = heads_[bucket];
        if (head == kNone || chunks_[head].count == kChunk) {
            const uint32_t fresh = take_chunk();
            chunks_[fresh].next = head;
            heads_[bucket] = head = fresh;
            occupied_[bucket / 64] |= uint64_t{1} << (bucket % 64);
        }
        Chunk& chunk = chunks_[head];
        chunk.events[chunk.count++] = event;
        ++in_ring_;
    }

    uint32_t take_chunk() {
        if (free_ == kNone) {
            chunks_.emplace_back();
            return static_cast<uint32_t>(chunks_.size() - 1);
        }
        const uint32_t chunk = free_;
        free_ = chunks_[chunk].next;
        chunks_[chunk].count = 0;
        return chunk;
    }

    void open_next() {
        today_.clear();
        next_ = 0;
        if (std::max(opened_, refiled_) >= kLook)
            follow_load();
        // What lies in `far_` may have come into the ring's reach since, and before what the ring holds.
        if (!far_.empty() && (in_ring_ == 0 || far_first_ <= next_occupied())) {
            first_ = far_first_;
            refile_far();
        }
        const Time bucket = next_occupied();
        first_ = bucket + 1;
        empty_into_today(bucket & (kBuckets - 1));
        ++openings_;
        opened_ += today_.size();
        std::sort(today_.begin(), today_.end(), Before());
    }

    void refile_far() {
        refiled_ += far_.size();
        std::vector<Event> events;
        events.swap(far_);
        far_first_ = ~Time{0};
        for (const Event& event : events) file(event);
    }

    Time next_occupied() const {
        const size_t start = first_ & (kBuckets - 1);
        size_t word = start / 64;
        uint64_t bits = occupied_[word] & (~uint64_t{0} << (start % 64));
        while (bits == 0) {
            word = (word + 1) % (kBuckets / 64);
            bits = occupied_[word];
        }
        const size_t found = word * 64 + static_cast<size_t>(__builtin_ctzll(bits));
        return first_ + ((found - start) & (kBuckets - 1));
    }

    void empty_into_today(size_t bucket) {
        uint32_t chunk = heads_[bucket];
        while (chunk != kNone) {
            const Chunk& full = chunks_[chunk];
            today_.insert(today_.end(), full.events, full.events + full.count);
            in_ring_ -= full.count;
            const uint32_t next = full.next;
            chunks_[chunk].next = free_;
            free_ = chunk;
            chunk = next;
        }
        heads_[bucket] = kNone;
        occupied_[bucket / 64] &= ~(uint64_t{1} << (bucket % 64));
    }

    // Wider buckets when many events fall beyond the ring, narrower ones when they are full and the ring has room.
    void follow_load() {
        if (refiled_ * 16 > opened_ && shift_ + 2 <= kWidest) {
            reshape(shift_ + 2);
        } else if (opened_ > kMostInBucket * openings_ && longest_ < kBuckets / 3 && shift_ > 0) {
            reshape(shift_ - 1);
        }
        openings_ = opened_ = refiled_ = longest_ = 0;
    }

    void reshape(unsigned shift) {
        std::vector<Event> events;
        events.swap(far_);
        far_first_ = ~Time{0};
        for (size_t bucket = 0; bucket < kBuckets; ++bucket)
            if (heads_[bucket] != kNone)
                empty_into_today(bucket);
        events.insert(events.end(), today_.begin(), today_.end());
        today_.clear();
        first_ = (first_ << shift_) >> shift;  // nothing pending lies before
        shift_ = shift;
        for (const Event& event : events) file(event);
    }

    unsigned shift_ = 12;
    Time first_ = 0;            // the bucket that opens next; what lies before is in today_ or late_
    std::vector<Event> today_;  // sorted; those before next_ are gone
    size_t next_ = 0;
    std::vector<Event> late_;  // a heap
    std::vector<uint32_t> heads_;
    std::vector<uint64_t> occupied_;  // a bit for each bucket
    LargeVector<Chunk> chunks_;
    uint32_t free_ = kNone;
    std::vector<Event> far_;
    Time far_first_ = ~Time{0};
    size_t in_ring_ = 0, size_ = 0;
    uint32_t order_ = 0;
    uint64_t openings_ = 0, opened_ = 0, refiled_ = 0, longest_ = 0;  // since the last look at the load
};

}  // namespace shmem_mt

// The simulator's event queue beside std::priority_queue, under random loads: both must pop the same events.
//
//     event_queue SEED...    prints each seed before its load; exit status 1, and a line, at the first difference
#include "simulator/event_queue.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <queue>
#include <random>
#include <vector>

namespace {

using shmem_mt::Event;
using shmem_mt::EventQueue;
using shmem_mt::Time;

constexpr long kSteps = 400000;          // pops and pushes of a load: the queue looks at its load every 65,536 events
constexpr unsigned kWidest = 48;         // events lie up to 2^48 ps ahead, 281 s
constexpr Time kLatest = Time{1} << 62;  // a load ends there

struct Known {
    Time time;
    uint32_t number;  // of the push

    bool operator<(const Known& other) const {  // the top of a priority queue is its largest
        return time != other.time ? time > other.time : number > other.number;
    }
};

// How far ahead of the last pop events are pushed, and how many are pending. It changes within a load.
struct Shape {
    unsigned bits;   // most are less than 2^bits ps ahead
    unsigned far;    // one in so many lies up to 2^kWidest ahead; 0: none
    unsigned equal;  // one in so many is at the time of the last pop; 0: none
    unsigned burst;  // events of one time, pushed together
    bool any_scale;  // all powers of two up to `bits` are equally likely
    size_t pending;  // about
};

class Load {
  public:
    explicit Load(unsigned seed) : random_(seed) {}

    bool run() {
        for (long step = 0; step < kSteps && now_ < kLatest; ++step) {
            if (step % (kSteps / 4) == 0)
                shape_ = next_shape();
            const size_t pending = known_.size();
            const bool grows = pending == 0 || (pending < 2 * shape_.pending && below(2 * shape_.pending) >= pending);
            if (grows)
                push();
            else if (!pop())
                return false;
        }
        while (!known_.empty()) {
            if (!pop())
                return false;
        }
        return queue_.size() == 0;
    }

  private:
    uint64_t below(uint64_t end) { return random_() % end; }
    bool one_in(unsigned count) { return count != 0 && below(count) == 0; }

    Shape next_shape() {
        Shape shape{};
        shape.bits = static_cast<unsigned>(below(kWidest + 1));
        shape.far = below(2) ? 0 : static_cast<unsigned>(1 + below(300));
        shape.equal = below(2) ? 0 : static_cast<unsigned>(1 + below(10));
        shape.burst = below(3) ? 1 : static_cast<unsigned>(1 + below(500));
        shape.any_scale = below(2);
        shape.pending = size_t{1} << below(17);
        return shape;
    }

    void push() {
        unsigned bits = shape_.any_scale ? static_cast<unsigned>(below(shape_.bits + 1)) : shape_.bits;
        if (one_in(shape_.far))
            bits = kWidest;
        const Time time = one_in(shape_.equal) ? now_ : now_ + below(Time{1} << bits);
        for (unsigned i = 0; i < shape_.burst; ++i) {
            Event event{};
            event.time = time;
            event.slot = pushed_;
            queue_.push(event);
            known_.push({time, pushed_++});
        }
    }

    bool pop() {
        const Known right = known_.top();
        known_.pop();
        const size_t size = queue_.size();
        const Event event = queue_.pop();
        const Event* const ahead = queue_.upcoming(below(8));
        if (event.time != right.time || event.slot != right.number || size != known_.size() + 1 ||
            (ahead != nullptr && ahead->time < event.time)) {
            std::printf("popped event %" PRIu32 " of %" PRIu64 " ps with %zu pending; right: %" PRIu32 " of %" PRIu64
                        " ps with %zu\n",
                        event.slot, event.time, size, right.number, right.time, known_.size() + 1);
            return false;
        }
        now_ = event.time;
        return true;
    }

    std::mt19937_64 random_;
    EventQueue queue_;
    std::priority_queue<Known> known_;
    Shape shape_{};
    Time now_ = 0;
    uint32_t pushed_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        std::printf("seed %s\n", argv[i]);
        if (!Load(static_cast<unsigned>(std::strtoul(argv[i], nullptr, 10))).run())
            return 1;
    }
    return argc < 2;
}

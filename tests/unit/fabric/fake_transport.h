// A network in memory, between PEs that are objects of one process: as slow, as late and as much out of order as its
// seed has it, within what fabric/transport/transport.h promises. Bodies are read where they lie until the sender is
// told that they are sent, so that one that is overwritten too early is seen.
//
// Threads: each channel by one at a time, as the library uses it.
#pragma once

#include "fabric/protocol/message.h"
#include "fabric/transport/transport.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

namespace heddle::fabric {

struct Habits {
    uint64_t seed = 1;
    unsigned lazy = 0;              // of 8 chances to move something, so many are not taken
    bool shuffles_records = false;  // more than the promise: messages of records pass each other
    bool misaligns = false;         // bodies arrive at odd addresses
    bool native = false;            // puts and gets reach the other PE
    bool parts_large = false;       // channels send large data over an endpoint of its own (Pair)
};

struct Arrival {
    Header header;
    Transport* from;
    const char* body;
    size_t bytes;
    Done done;  // the sender's
    void* argument;
    char* to = nullptr;  // the receiver's, with those below
    Done received = nullptr;
    void* received_argument = nullptr;
};

struct Endpoint {
    Transport* to;
    int channel;
};

struct Transport {
    struct Out {
        Header header;
        Transport* to;
        const char* body;
        size_t bytes;
        bool large;
        Done done;
        void* argument;
    };
    struct In {
        Header header;
        std::vector<char> body;
    };
    struct Native {
        char *there, *here;
        size_t bytes;
        bool puts;
        Done done;
        void* argument;
    };
    struct Finished {
        Done done;
        void* argument;
    };
    struct Channel {
        std::mt19937_64 random;
        std::deque<Out> out;
        std::deque<std::unique_ptr<Arrival>> receiving;  // announced; the body comes when `to` is known
        std::vector<Header> sent;                        // all that was ever handed over, but hellos
        uint64_t sent_bytes = 0;
        std::vector<std::pair<const Endpoint*, MessageKind>> ways;  // of each message, hellos too
        unsigned refused = 0;
        std::atomic<bool> holds = false;        // nothing leaves
        std::function<void()> on_progress;      // called at every progress, under the channel's lock
        std::function<bool()> on_send;          // at every message, too; true: it is sent and done before send returns
        std::atomic<bool> keeps_large = false;  // what is announced stays so
        bool keeps = false;                     // what has left is not told to be done
        size_t native_moves = SIZE_MAX;         // so many more puts and gets may move
        std::deque<Native> native;              // under way
        std::mutex lock;                        // of what other PEs bring
        std::deque<In> in;
        std::deque<std::unique_ptr<Arrival>> large_in;
        std::deque<Finished> finished;
        std::atomic<unsigned> arms = 0;  // calls of arm
        int descriptor = -1;
    };

    Transport(const Events& its_events, int n_channels, const Habits& its_habits);
    ~Transport();

    bool is_empty();  // nothing is on its way from or to this PE

    const Events events;
    const Habits habits;
    Region regions[kRegions];
    bool is_native = false;
    std::vector<std::unique_ptr<Channel>> channels;
    std::vector<std::unique_ptr<Endpoint>> endpoints;
};

// What is opened from now on by fake_api.open behaves like this.
extern Habits fake_habits;
extern const TransportApi fake_api;

}  // namespace heddle::fabric

// What a network must provide: messages between PEs, small and large, on several channels; where it has RDMA, puts and
// gets too. Everything else (streams of records, order, acknowledgements, requests) is Heddle's own and stands on this
// interface. Nothing of any network's library is seen outside the folder that implements this page.
//
//   channel       one path of a PE to the network. Channel c of a PE talks to channel c of the others. All calls on one
//                 channel come from one thread at a time (fabric/endpoint/channel.h holds its lock); channels are
//                 independent of each other.
//   address blob  the bytes that tell others how to reach this PE, with all its channels and regions; at most
//                 kMaxAddressBlobBytes.
//   endpoint      a connection of one channel to one PE, made on first use: one for large messages, one for others
//                 (docs/decisions/0054). It is taken down with the transport.
//   message       a header of kHeaderBytes and a body. The messages of an endpoint arrive in the order in which they
//                 were sent; other messages may overtake large ones.
//   large         a message whose body goes straight to the address that the receiver names when the header arrives.
//   region        memory of a PE that others put to and get from without its CPU, where `is_native` says so. Puts and
//                 gets have no order among each other and with messages: a caller that needs one waits for `done`.
//
// A plugin exports `const heddle::fabric::TransportApi heddle_transport_1`. For heddle-info it exports `size_t
// heddle_transport_devices(char* text, size_t bytes)`, too. That function writes a line for each device and transport
// which the network's library sees: device, kind, transport, with tabs between. It returns the length of the text.
//
// Errors that a program cannot mend (no device, a peer that is gone) are reported once, through Events::failed.
#pragma once

#include "base/choices.h"

#include <cstddef>
#include <cstdint>

namespace heddle::fabric {

constexpr size_t kHeaderBytes = 64;
constexpr size_t kMaxAddressBlobBytes = 4096;
constexpr int kRegions = 2;

struct Transport;  // one PE's, of the plugin's own making
struct Endpoint;
struct Arrival;  // a large message whose body has not come

using Done = void (*)(void* argument);

// What the transport tells the library. Messages come from within progress() alone.
struct Events {
    void* owner;
    // A message. The body is there during the call alone.
    void (*arrived)(void* owner, int channel, const void* header, const char* body, size_t bytes);
    // The header of a large one: the callee, now or later but from a call on the same channel, calls receive or refuse
    // once.
    void (*announced)(void* owner, int channel, const void* header, size_t bytes, Arrival* arrival);
    // pe does not answer any more: called once for a channel, from within progress() or a call on the same channel.
    // Operations to and from the PE that are under way are never done.
    void (*failed)(void* owner, int channel, int pe, const char* reason);
};

using base::Protocol;

struct Region {
    char* base = nullptr;
    size_t bytes = 0;  // 0: there is none
};

struct Options {
    const char* devices;     // names of network interfaces, with commas; empty: all
    const char* transports;  // as the network's library names them; empty: its own choice
    int channels;
    size_t message_bytes;  // the usual size of a message under load: what segments should be made for
    // Whether the regions can be put to and got from. kRma: even where that takes the target's CPU; kAuto: only where
    // it does not; kAm: no.
    Protocol protocol = Protocol::kAm;
    Region regions[kRegions] = {};
};

struct TransportApi {
    const char* name;
    // Opens the transport and its channels. False with the reason in error.
    bool (*open)(const Options& options, const Events& events, Transport** transport, char* error, size_t error_bytes);
    void (*close)(Transport* transport);

    // Whether put and get reach the PE behind `to`; null: whether they reach any.
    bool (*is_native)(const Transport* transport, const Endpoint* to);

    // Writes the address blob of this PE's transport; returns its size.
    size_t (*address_blob)(const Transport* transport, char* address_blob);
    // Makes the endpoint of a channel to the PE with the address blob. Null with the reason in error when the address
    // blob is none. pe: the number that Events::failed is called with.
    Endpoint* (*connect)(Transport* transport, int channel, int pe, const char* address_blob, size_t address_blob_bytes,
                         char* error, size_t error_bytes);

    // Sends header and body. The body stays as it is until done(argument), which may come before send returns; the
    // header is copied. `large`: the receiver is asked for a place.
    void (*send)(Transport* transport, int channel, Endpoint* to, const void* header, const char* body, size_t bytes,
                 bool large, Done done, void* argument);
    // The body of a message that pe has announced goes to `to`; done(argument) when all of it is there.
    void (*receive)(Transport* transport, int channel, int pe, Arrival* arrival, char* to, size_t bytes, Done done,
                    void* argument);
    void (*refuse)(Transport* transport, int channel, Arrival* arrival);

    // Copies between memory here, which stays as it is until done(argument), and a region there. done: the data is in
    // place, there or here; it may come before the call returns.
    void (*put)(Transport* transport, int channel, Endpoint* to, int region, uint64_t offset, const char* from,
                size_t bytes, Done done, void* argument);
    void (*get)(Transport* transport, int channel, Endpoint* from, int region, uint64_t offset, char* to, size_t bytes,
                Done done, void* argument);

    // Moves what can be moved on the channel; true when anything was.
    bool (*progress)(Transport* transport, int channel);
    // A descriptor that becomes readable when there is something to progress on the channel, once arm has returned
    // true. False: there is something already, or what waits in the transport has no event. What is handed over or
    // moved later may have none either: the channel is then armed again.
    int (*descriptor)(const Transport* transport, int channel);
    bool (*arm)(Transport* transport, int channel);
};

}  // namespace heddle::fabric

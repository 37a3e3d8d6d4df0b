// The UCX transport's own objects, for the files of this folder: a PE's transport, its channels, endpoints and
// operations.
//
// Threads: a channel and its endpoints and operations belong to one thread at a time (the holder of the channel's
// lock); the rest does not change between open and close.
#pragma once

#include "fabric/transport/transport.h"

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace heddle::fabric {

namespace ucx {

struct Channel;

// A message on its way out, the body of a large one on its way in, a put or a get.
struct Operation {
    Channel* channel = nullptr;
    int pe = 0;
    Endpoint* to = nullptr;  // of a put
    Done done = nullptr;
    void* argument = nullptr;
    Operation* next = nullptr;  // in the list of those that are free, or that wait for a flush
    alignas(8) char header[kHeaderBytes];
};

struct Channel {
    Transport* transport = nullptr;
    int number = 0;
    ucp_worker_h worker = nullptr;
    ucp_address_t* address = nullptr;
    size_t address_bytes = 0;
    int descriptor = -1;
    std::vector<Endpoint*> endpoints;
    Endpoint* to_flush = nullptr;  // a list
    Operation* free = nullptr;
    bool moved = false;  // an operation has ended since progress began
    // Of large messages that UCX has brought whole, and that wait for receive or refuse: each is its Arrival.
    std::vector<std::unique_ptr<std::vector<char>>> bodies;

    // Copies the body of a large message; returns it as an Arrival.
    void* keep_body(const char* body, size_t bytes) {
        bodies.push_back(std::make_unique<std::vector<char>>(body, body + bytes));
        return bodies.back().get();
    }
    // The body behind the Arrival; null: UCX has it.
    std::unique_ptr<std::vector<char>> take_body(const void* arrival) {
        for (std::unique_ptr<std::vector<char>>& body : bodies)
            if (body.get() == arrival) {
                std::swap(body, bodies.back());
                std::unique_ptr<std::vector<char>> taken = std::move(bodies.back());
                bodies.pop_back();
                return taken;
            }
        return nullptr;
    }

    Operation* take(int pe, Done done, void* argument) {
        Operation* operation = free;
        if (operation)
            free = operation->next;
        else
            operation = new Operation;
        operation->channel = this;
        operation->pe = pe;
        operation->done = done;
        operation->argument = argument;
        return operation;
    }
    void give(Operation* operation) {
        operation->next = free;
        free = operation;
    }
    void finish(Operation* operation) {
        moved = true;
        const Done done = operation->done;
        void* const argument = operation->argument;
        give(operation);
        if (done)
            done(argument);
    }
};

}  // namespace ucx

struct Endpoint {
    ucx::Channel* channel;
    int pe;
    ucp_ep_h endpoint = nullptr;
    bool failed = false;
    bool is_native = false;
    ucp_rkey_h keys[kRegions] = {};
    uint64_t bases[kRegions] = {};      // of the regions, in the other PE's address space
    ucx::Operation* ended = nullptr;    // puts that have ended here, but perhaps not there
    ucx::Operation* flushed = nullptr;  // puts that the flush under way is for
    bool queued = false;                // in the channel's list to_flush
    Endpoint* next_to_flush = nullptr;
};

struct Transport {
    Events events;
    ucp_context_h context = nullptr;
    bool sees_failures = true;  // shared memory, for tests on one machine, does not tell when a peer is gone
    bool is_native = false;
    bool closing = false;
    struct Memory {
        uint64_t base = 0;
        ucp_mem_h handle = nullptr;
    } memories[kRegions];
    std::vector<ucx::Channel> channels;
};

namespace ucx {

// Writes what and why to error; false.
bool explain(char* error, size_t error_bytes, const char* what, ucs_status_t status);

// Loads UCX's libraries, which the plugin is not linked with. False with the reason in error.
bool load(char* error, size_t error_bytes);

// --- Events

// Tells the library that pe does not answer on the channel.
void fail(const Channel& channel, int pe, ucs_status_t status);
// Ends the operation, which may be used again.
void end(Operation* operation, ucs_status_t status);
// Begins the operation. request: what UCX has returned for it; a pointer means that its callback is still to come.
void begin(Operation* operation, ucs_status_ptr_t request);
void on_sent(void* request, ucs_status_t status, void* argument);

// --- Address blobs (address_blob.cpp)

size_t address_blob(const Transport* transport, char* address_blob);
// The address of a channel, or null.
const char* address_in(const char* address_blob, size_t address_blob_bytes, int channel);
// Takes the keys of the regions of the PE behind the endpoint; without keys the PE is reached by messages alone.
void take_keys(Endpoint* endpoint, const char* address_blob, size_t address_blob_bytes);

// --- Puts and gets (native.cpp)

// Whether the context has a transport whose puts and gets take no CPU of the target.
bool has_rdma(ucp_context_h context);
// Pins the regions, all of their pages, where the network works on them. Memory that may not be pinned (ulimit -l) is
// left to batches, unless native was asked for: false then, with the reason in error.
bool open_memories(Transport* transport, const Options& options, char* error, size_t error_bytes);
void close_memories(Transport* transport);
void put(Transport* transport, int channel, Endpoint* to, int region, uint64_t offset, const char* from, size_t bytes,
         Done done, void* argument);
void get(Transport* transport, int channel, Endpoint* from, int region, uint64_t offset, char* to, size_t bytes,
         Done done, void* argument);
// Begins a flush for the puts that have ended here: they are done when it ends.
void flush(Channel& channel);

}  // namespace ucx

}  // namespace heddle::fabric

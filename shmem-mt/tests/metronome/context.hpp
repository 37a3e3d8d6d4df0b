// What contexts and requests are.
#pragma once

#include <functional>

#include "shmemx.h"
#include "world.hpp"

struct metronome_context {
    metronome::Picoseconds complete;  // when all that it has sent is at its target
    long options;
    metronome::Task* creator;
    long moves;  // operations of as many bytes as METRONOME_COUNT says
};

// The caller's clock goes on by an operation that moves data through that context. No other thread may use a private one.
void move(shmem_ctx_t ctx, const metronome::Cost& cost, size_t bytes);

// Of operations: when all are complete. Of a collective: who does it.
struct metronome_request {
    metronome_context operations;
    metronome::Helper* collective;
    bool stays;
};

// The caller's clock goes on until all that the context has sent is at its target.
inline void complete(shmem_ctx_t ctx) {
    metronome::reach(ctx->complete);
}

// A non-blocking atomic operation: the word becomes change(old), and *fetch old; null: nothing is fetched.
void update_in_flight(shmem_ctx_t ctx, long* fetch, long* dest, int pe, const std::function<long(long)>& change);

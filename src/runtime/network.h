// The network of a job that spans nodes, as its settings want it, and what a PE comes to that loses a peer or a rail.
// From init to finalize; once per process.
#pragma once

#include <cstddef>

namespace heddle::runtime {

// Opens it, or takes up again what an earlier init opened. False with the reason in error.
bool open_network(char* error, size_t error_bytes);
// Behind a barrier of the world, when all can be reached: this PE answers others. False with the reason in error.
bool serve_network(char* error, size_t error_bytes);
// This PE has all its answers until it starts again: others may be gone from here on, and nothing is lost by it.
void part_from_network();

}  // namespace heddle::runtime

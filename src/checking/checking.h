// The tools that find mistakes of the program's own, as observers of its operations (operations/observer.h). Threads:
// one of the PE, in init, finalize and the child of a fork.
#pragma once

#include <cstdint>

namespace heddle::checking {

// The most PEs of a job that looks for races: a clock has a word for each PE and flow.
constexpr int kMostPes = 256;

// Starts the tool that the settings ask for, if any, before the hot path is opened. pe: in the world.
void start(int pe);

// Ends it, while all PEs can still be reached: all operations are carried out.
void stop(const char* function);

// Behind the last meeting of all PEs, none of which has a tool any more.
void stop_serving();

// True while a thread of this PE waits for a tool, in a wait that ends by itself.
bool is_answer_awaited();

// In the child of a fork, which is no PE.
void forget();

// The library's threads that the tool, and the signals of src/checking/status/, have started.
uint32_t threads();

}  // namespace heddle::checking

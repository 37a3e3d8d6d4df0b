// What libheddle_forging.so has beside all of libheddle.so.
#pragma once

#include <stddef.h>

// In place of the next step of the world team's collectives: control messages of any length and content, from the
// seed, to all members on other nodes. kind, bytes: the call that most of them name (InternodeStep::call_of).
extern "C" void forge_step(unsigned seed, unsigned kind, size_t bytes);
// Sends messages of all kinds, with tokens of other jobs, to the PE: how many; -1: there is no network.
extern "C" int send_as_stranger(int pe);

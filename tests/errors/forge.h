// What libheddle_forging.so has beside all of libheddle.so.
#pragma once

// In place of the next step of the world team's collectives: control messages of any length and content, from the
// seed, to all members on other nodes.
extern "C" void forge_step(unsigned seed);
// Sends messages of all kinds, with tokens of other jobs, to the PE: how many; -1: there is no network.
extern "C" int send_as_stranger(int pe);

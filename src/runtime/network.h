// The network of a job that spans nodes: its options from the settings, and what happens when a peer or a rail is lost.
// From init to finalize; opened once per process.
#pragma once

#include <cstddef>

namespace heddle::runtime {

// Opens the network, or continues with the one of an earlier init. False with the reason in error.
bool open_network(char* error, size_t error_bytes);
// Behind open_network, and where the program has asked for a thread level: which channels contexts take from now on.
// Does nothing where there is no network.
void spread_over_channels();
// Where this PE looks for races, PE 0 does, too, and PE 0 finds that all do: each would wait for the other. False with
// the reason in error. Behind a barrier of the world, once a process.
bool agree_on_races(char* error, size_t error_bytes);
// Whether the next PE has the profile and the counters of this one, too: where some have and some have not, one finds
// out.
bool agree_on_tools(char* error, size_t error_bytes);
// Starts to answer other PEs; called after a barrier of the world, when all can be reached. False with the reason in
// error.
bool serve_network(char* error, size_t error_bytes);
// From here on the service thread answers other PEs under every policy of progress: this PE has nothing left to do but
// to wait, and a wait for the launcher polls nothing.
void serve_until_parted();
// Where there is a network: brings the counters of control messages up to date. Threads: any.
void count_control_messages();
// Ends what serve_network has begun; called after a barrier of the world, when all PEs have their answers. From here
// on, until the next init, the loss of a peer is no error.
void part_from_network();

}  // namespace heddle::runtime

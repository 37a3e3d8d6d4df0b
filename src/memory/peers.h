// PE to base address: the table behind every context (heddle/abi.h says why it answers for every int).
// Built by runtime, one thread; read by all.
#pragma once

#include <heddle/abi.h>

namespace heddle::memory {

// A table for n_pes PEs whose entries are zero, readable from peers[INT_MIN] to peers[INT_MAX]; null when the address
// space (64 GiB, of which only the entries used are ever memory) is refused. Not freed: it lives as long as the
// process.
heddle_peer* make_peer_table(int n_pes);

}  // namespace heddle::memory

// PE to base address: the table behind every context (heddle/abi.h says why it answers for every int).
// Built by runtime, one thread; read by all.
#pragma once

#include <heddle/abi.h>

namespace heddle::memory {

// A table of n_pes (0 or more) writable entries that begin zeroed, amid a reservation that reads as zero: from
// peers[INT_MIN] to peers[INT_MAX], 128 GiB of address space of which only the entries used are ever memory. Where the
// system refuses that much (ulimit -v), a smaller reservation; then a PE number further out than it reaches is a
// segmentation fault instead of a message. Null when even 256 KiB are refused. Not freed: it lives as long as the
// process. bits: the numbers from -2^bits to 2^bits - 1 are answered for, so fewer than kEveryInt take less address
// space.
constexpr int kEveryInt = 31;
heddle_peer* make_peer_table(int n_pes, int bits = kEveryInt);

}  // namespace heddle::memory

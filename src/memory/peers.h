// The tables of peers: PE to base address, one table behind every context (heddle/abi.h says why it has an entry for
// every int). Threads: built by runtime's, read by all.
#pragma once

#include <heddle/abi.h>
#include <cstdint>

namespace heddle::memory {

// The bases before init: any address of a program minus this value exceeds the size of every region. Bit 63 is 0 in
// every user address of x86-64, with 4 or 5 levels of tables and with address masking. Bit 55 is 0 in every one of
// aarch64, with up to 52 bits and any tag in the top byte. The 2^55 addresses from here on have both bits
// (docs/decisions/0006).
constexpr uintptr_t kNoBase = uintptr_t{1} << 63 | uintptr_t{1} << 55;

// A table of n_pes (0 or more) writable entries that begin zeroed, in the middle of a reservation that reads as zero:
// from peers[INT_MIN] to peers[INT_MAX], 128 GiB of address space. Only used entries take memory.
//
// bits: the table has entries for -2^bits to 2^bits - 1. Where the system refuses that much (ulimit -v), and under
// Valgrind, kFewerBits or fewer; a PE number outside is then a segmentation fault instead of a message. Null when even
// 256 KiB are refused. Never freed.
constexpr int kEveryInt = 31;
constexpr int kFewerBits = 20;
heddle_peer* make_peer_table(int n_pes, int bits = kEveryInt);

// The table without any PE, one for the process. Reserved when the library is loaded, so that contexts point to it
// before init; null when refused. Until nobody() is called it has entries for -2^kPlausibleBits to 2^kPlausibleBits -
// 1, as many PEs as a job page can name: a program may call mlockall before init, which touches all that is readable. A
// number outside is a segmentation fault.
constexpr int kPlausibleBits = 24;
const heddle_peer* reserve_nobody();

// Gives the table without any PE an entry for every int, within the limits of make_peer_table. Null when it was
// refused.
const heddle_peer* nobody();

}  // namespace heddle::memory

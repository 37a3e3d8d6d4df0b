// PE to base address: the table behind every context (heddle/abi.h says why it answers for every int).
// Built by runtime, one thread; read by all.
#pragma once

#include <heddle/abi.h>
#include <cstdint>

namespace heddle::memory {

// What bases are before init: no address of a program, less this, is below the size of any region. Bit 63 is 0 in every
// user address of x86-64, with 4 or 5 levels of tables and with address masking; bit 55 in every one of aarch64, with
// up to 52 bits and any tag in the top byte. The 2^55 addresses from here on have both (docs/decisions/0006).
constexpr uintptr_t kNoBase = uintptr_t{1} << 63 | uintptr_t{1} << 55;

// A table of n_pes (0 or more) writable entries that begin zeroed, amid a reservation that reads as zero: from
// peers[INT_MIN] to peers[INT_MAX], 128 GiB of address space of which only the entries used are ever memory. Where the
// system refuses that much (ulimit -v), and under Valgrind, which keeps books of all of it, one for kFewerBits; then a
// PE number further out than it reaches is a segmentation fault instead of a message. Null when even 256 KiB are
// refused. Not freed: it lives as long as the process. bits: the numbers from -2^bits to 2^bits - 1 are answered for,
// so fewer than kEveryInt take less address space.
constexpr int kEveryInt = 31;
constexpr int kFewerBits = 20;
heddle_peer* make_peer_table(int n_pes, int bits = kEveryInt);

// The table without any PE, one for the process. It is reserved when the library is loaded, so that contexts point to
// it before init; null when refused. Until nobody() it answers for -2^kPlausibleBits to 2^kPlausibleBits - 1, as many
// PEs as a job page can name, and a number further out is a segmentation fault: a program may call mlockall before
// init, which touches all that can be read.
constexpr int kPlausibleBits = 24;
const heddle_peer* reserve_nobody();

// From now on it answers for every int (within what make_peer_table says). Null when it was refused.
const heddle_peer* nobody();

}  // namespace heddle::memory

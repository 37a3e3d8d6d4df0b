/* What the programs of collectives share: who takes part, buffers with canaries around them, what each member
 * contributes (a number stream names it, so that every PE can say what the others have), and a serial model of the
 * result: for data movement by definition, for reductions by combining in the order of the members' numbers, one after
 * the other or, short floating-point ones of more than HEDDLE_TEST_SERIAL_MEMBERS, as the tree of docs/decisions/0032. */
#ifndef CONFORMANCE_COLLECTIVES_H
#define CONFORMANCE_COLLECTIVES_H

#include "check.h"
#include "tables.h"

#include <vector>

namespace conformance {

// PEs of the world start, start + stride, ...; the team has their handle where this PE is one of them.
struct Group {
    shmem_team_t team;
    int start, stride, size;
    int rank;  // of this PE; -1: not a member

    bool member() const { return rank >= 0; }
};
Group world_group();

// World, shared, and teams of all kinds made by splits: reversed, every second PE, all but the first, one PE each, a
// split of a split. Collective over the world. The same on every PE, but for team and rank.
std::vector<Group> make_groups();
// Those of one of several threads that call collectives at once, by its number in the PE: each has teams of its own.
std::vector<Group> make_groups_of_thread(uint64_t thread);
void destroy_groups(std::vector<Group>& groups);  // those of a make

// A symmetric buffer, in heap or static data, `capacity` bytes, the same on all PEs. Around what is used lie canaries.
class Buffer {
  public:
    static constexpr unsigned char kFresh = 0xa7;
    static constexpr size_t kGuard = 64;

    Buffer() = default;
    Buffer(unsigned char* memory, size_t capacity) : memory_(memory), capacity_(capacity) {}

    // Takes `bytes` at an offset in elements (0 to 16) from an aligned place; all of it becomes fresh.
    void take(size_t offset_bytes, size_t bytes);
    unsigned char* data() const { return memory_ + kGuard + offset_; }
    size_t bytes() const { return bytes_; }
    size_t capacity() const { return capacity_ - 2 * kGuard - 16 * 16; }
    // Nobody wrote beside the data.
    void check_guards(const char* what) const;

  private:
    unsigned char* memory_ = nullptr;
    size_t capacity_ = 0, offset_ = 0, bytes_ = 0;
};

// --- Data movement.

struct Move {
    move_op op;
    size_t element_bytes;
    size_t nelems;  // of one member; collect: the most
    ptrdiff_t dst = 1, sst = 1;
    int root = 0;
    uint64_t stream;           // of the contributions
    bool spares_root = false;  // an active set's broadcast leaves the root's dest alone

    size_t nelems_of(int rank) const;  // collect: each its own, some none
    size_t source_bytes(int rank, int size) const;
    size_t dest_bytes(int size) const;
    void fill_source(int rank, int size, void* to) const;
    // dest as it is behind the operation, from what it was before.
    void expect(int rank, int size, unsigned char* dest) const;
};
// As many elements as reach the algorithms in turn, small ones more often; the same for the same random stream.
Move random_move(move_op op, size_t element_bytes, int size, size_t capacity, Random& random, bool large);

// --- Reductions.

// Bytes of an element that are its value: a long double has padding.
size_t value_bytes(const function_info& info);
// nelems values: boundaries, and for floats NaN, infinities, zeros of both signs, huge and tiny ones in places that
// every PE knows, so that no sum meets two different NaNs.
void fill_values(const function_info& info, uint64_t stream, int rank, int size, size_t nelems, void* to);
// to = the result on member `rank`.
void expect_reduction(const function_info& info, reduce_op op, uint64_t stream, int rank, int size, size_t nelems,
                      unsigned char* to);
// Ends the PE unless the values are the same, bit by bit (NaNs of complex numbers: both NaN).
void check_values(const char* file, int line, const function_info& info, const char* what, const void* got,
                  const void* expected, size_t nelems);
size_t random_reduce_count(size_t element_bytes, size_t capacity, Random& random, bool large);

}  // namespace conformance

#define CHECK_VALUES(info, what, got, expected, nelems) \
    conformance::check_values(__FILE__, __LINE__, info, what, got, expected, nelems)

#endif

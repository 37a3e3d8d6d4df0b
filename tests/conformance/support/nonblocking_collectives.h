/* Collectives that are posted (the nbe forms), as programs of tests draw them: a table of those that stand for all, one
 * of them with everything that its members know of it, and symmetric memory for what many at once write and read. */
#ifndef CONFORMANCE_NONBLOCKING_COLLECTIVES_H
#define CONFORMANCE_NONBLOCKING_COLLECTIVES_H

#include "collectives.h"

#include <shmemx.h>
#include <utility>
#include <vector>

namespace conformance {

// The arguments, where a collective has them.
struct Call {
    shmem_team_t team;
    void* dest;
    const void* source;
    ptrdiff_t dst, sst;
    size_t nelems;
    int root;
};

struct Collective {
    enum Kind { kMove, kReduce, kMeet };  // kMeet: sync and barrier
    function_info info;                   // of the nbe form
    Kind kind;
    move_op move;      // kMove
    reduce_op reduce;  // kReduce
    int (*post)(const Call& call, shmemx_request_t* req);
    int (*perform)(const Call& call);  // the blocking form

    bool may_be_in_place() const { return kind == kReduce || (kind == kMove && move == MOVE_BROADCAST); }
    // No member is done before all have come.
    bool waits_for_all() const {
        return kind == kMeet || (kind == kReduce && reduce != REDUCE_INSCAN && reduce != REDUCE_EXSCAN);
    }
};
// Every operation: by bytes at any address, by elements of several types, and those without data.
extern const std::vector<Collective> kCollectives;

// Symmetric memory, taken piece by piece and alike on all PEs; between the pieces lie canaries.
class Arena {
  public:
    Arena(unsigned char* memory, size_t bytes) : memory_(memory), bytes_(bytes) {}

    void clear() { taken_.clear(), used_ = 0; }
    bool has_room(size_t bytes) const { return used_ + bytes + 512 <= bytes_; }
    // A fresh piece, offset_bytes (at most 256) from an aligned place. Nobody uses it before all have taken it.
    unsigned char* take(size_t bytes, size_t offset_bytes);
    // Nobody wrote beside the pieces.
    void check_gaps() const;

  private:
    unsigned char* memory_;
    size_t bytes_, used_ = 0;
    std::vector<std::pair<size_t, size_t>> taken_;  // where, bytes
};

// One collective of a group. Its members draw the same, but for `own` calls they make.
struct Post {
    const Collective* what = nullptr;
    const Group* group = nullptr;
    Move move = {};  // of a reduction: nelems and stream
    bool in_place = false;
    unsigned char *dest = nullptr, *source = nullptr;

    // Takes memory for it, where there is room for it.
    bool take_memory(Arena& arena, Random& shared);
    // What this member puts in, before it calls. In place: before any member does.
    void fill() const;
    Call call() const;
    void post(shmemx_request_t* req) const;
    void perform() const;
    // dest is what it has to be behind it; source is what this member has put in.
    void check(const char* when) const;
    void check_source() const;

    size_t dest_bytes() const;
    size_t source_bytes() const;  // of the member that has most
};
// A collective with about `bytes` of data in all. Collect: members differ, and some have none.
Post make_post(const Collective& what, const Group& group, size_t bytes, Random& shared);
// One of any kind and size; large ones, and more than one algorithm takes in one piece, are rare.
Post draw_post(const Group& group, size_t most_bytes, Random& shared);

// `count` posts of the group, with memory that is ready on all PEs: all of them call.
std::vector<Post> draw_posts(const Group& group, size_t count, Arena& arena, Random& shared);
// All PEs come; nobody wrote beside the arena's pieces, which are taken back.
void end_round(Arena& arena);

// What HEDDLE_PROGRESS says.
bool progress_is(const char* policy);

void nap_ms(long ms);
// So long without a call of the library.
void compute_ms(long ms);

}  // namespace conformance

#endif

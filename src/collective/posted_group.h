// Posted group: a collective that the threads of a PE post together, each under a SHARED request (docs/decisions/0080).
// The first of them to post takes the collective's place in the order of the team. It begins when all have posted: then
// each post counts as an operation of its request. Before, a wait for the request covers it for the threads that have
// posted it, and for no other. So a thread may wait while others are ahead of it by a collective.
//
// Its data is divided in shares. The sequence of the instance carries out the first share, and ends when all have
// ended. The others have sequences of their own (team::Helper). So any thread that makes progress carries out any
// share. Threads that wait work side by side; one that waits alone carries out all, in turns.
//
// Threads: those that post hold one lock of the PE, in which nobody waits. A thread's calls for a team belong to the
// collectives of that team in the order in which these were first posted. Cost: two small objects are reused.
#pragma once

#include "collective/collective_call.h"
#include "collective/nonblocking.h"

#include <heddle/request.h>
#include <cstddef>

namespace heddle::collective {

// What one thread posts: the call of work, for a group that has the team and the number of the thread.
struct GroupPost {
    static constexpr size_t kWorkBytes = 64;

    const Call& call;
    const Group& group;
    size_t bytes;  // of this PE's part
    const Shape& shape;
    void (*run)(const void* work, const Call& call, const Group& group) = nullptr;
    progress::InlinePayload<kWorkBytes> work = {};
};

// Posts to *req, behind before(call).
void post_together(const GroupPost& mine, shmemx_request_t* req, BeforePosting before);

// What the calling thread has posted under the request together with others, some of which have not posted it yet.
bool have_others_posted(const context::Request& request);
void await_others_posts(const Call& call, const context::Request& request);
// Acquire, both: pair with Request::post_announced; what is not announced any more is counted.
inline bool are_posts_of_this_thread_whole(const context::Request& request) {
    return request.announced.load(std::memory_order_acquire) == 0 || have_others_posted(request);
}
inline void await_posts_of_this_thread(const Call& call, const context::Request& request) {
    if (request.announced.load(std::memory_order_acquire) != 0)
        await_others_posts(call, request);
}

struct PostedGroups;
extern HEDDLE_PE_LOCAL base::PePointer<PostedGroups> posted_groups;  // this PE's

// Sets up this PE's posted groups. Those of an earlier init are gone.
void start_posted_groups();

// Ends the PE when some thread has posted a collective of the team that others have not; null: of any team.
void require_all_posted(const Call& call, const team::Team* team);

// Posts work(call, group), a collective of the group's team in which the calling thread has the group's number. shape:
// the arguments that all threads of the PE must pass alike. Returns 0.
template <class Work>
int post_together(const Call& call, const Group& group, shmemx_request_t* req, size_t bytes, const Shape& shape,
                  Work work, BeforePosting before = nullptr) {
    GroupPost mine = {call, group, bytes, shape};
    mine.run = [](const void* held, const Call& here, const Group& shares) {
        (*static_cast<const Work*>(held))(here, shares);
    };
    mine.work.hold(work);
    post_together(mine, req, before);
    return 0;
}

inline int post_sync_together(const Call& call, const Group& group, shmemx_request_t* req) {
    return post_together(call, group, req, 0, {}, [](const Call& here, const Group& all) { sync(here, all); });
}

// The quiet covers at least what was posted on the default context before the call of each thread.
inline int post_barrier_together(const Call& call, const Group& group, shmemx_request_t* req) {
    return post_together(
        call, group, req, 0, {}, [](const Call& here, const Group& all) { barrier(here, all); }, before_barrier);
}

// The bytes of the blocks of an alltoall for all members of the group's team.
inline size_t bytes_of_blocks(const Call& call, const Group& group, size_t block_bytes) {
    return block_bytes * static_cast<size_t>(team_of(call, group).members.size);
}

}  // namespace heddle::collective

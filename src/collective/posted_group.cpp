#include "collective/posted_group.h"

#include "base/counters.h"
#include "base/error.h"
#include "collective/algorithm_table.h"
#include "fabric/network.h"
#include "operations/request_fence.h"
#include "os/locked.h"

#include <pthread.h>
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

namespace heddle::collective {

using base::describe;
using base::fatal;

// A collective that some threads have posted.
struct PostedGroup {
    struct Posted {
        int thread;
        pthread_t poster;
        const void* caller;
        context::Request* request;
        uint32_t side;
    };

    const char* function = nullptr;
    team::Team* team = nullptr;
    team::Team* instance = nullptr;
    int threads = 0;
    int shares = 0;
    size_t bytes = 0;
    Shape shape;
    void (*run)(const void* work, const Call& call, const Group& group) = nullptr;
    progress::InlinePayload<GroupPost::kWorkBytes> work;
    std::vector<Posted> posted;
    // How often this object was opened, above 32 bits with the number of threads that have not posted.
    std::atomic<uint64_t> state{0};
    std::atomic<int> shares_left{0};  // of the helpers

    static constexpr int kNumberShift = 32;
    // Acquire: pairs with collective::post_together, which then has counted all posts.
    uint32_t missing() const { return static_cast<uint32_t>(state.load(std::memory_order_acquire)); }
    Call call() const { return {function, posted.front().caller}; }
    const Posted* of_thread(int thread) const {
        const auto found =
            std::find_if(posted.begin(), posted.end(), [&](const Posted& one) { return one.thread == thread; });
        return found == posted.end() ? nullptr : &*found;
    }
};

struct PostedGroups {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    std::vector<PostedGroup*> open;  // that miss some thread, in the order of their first posts
    std::vector<PostedGroup*> idle;
    std::vector<std::unique_ptr<PostedGroup>> all;
};

HEDDLE_PE_LOCAL base::PePointer<PostedGroups> posted_groups;

namespace {

context::Request& require_shared(const Call& call, const shmemx_request_t* req) {
    context::Request* const request = context::find_request(call, *req);
    if (!request || !request->shared)
        fatal(call.function,
              "req is %s, in %s: right would be a SHARED request (shmemx_request_allocate), to which several threads "
              "may post",
              *req == SHMEMX_REQUEST_NULL ? "SHMEMX_REQUEST_NULL" : "a PRIVATE request", describe(call).data());
    return *request;
}

// Ends the PE unless the thread posts what the group is.
void compare(const PostedGroup& group, const GroupPost& mine) {
    const Call &call = mine.call, theirs = group.call();
    if (strcmp(group.function, call.function) != 0)
        fatal(call.function, "thread %d is in %s, but another one in %s: right would be the same in all",
              mine.group.thread, describe(call).data(), describe(theirs).data());
    if (group.threads != mine.group.threads)
        fatal(call.function,
              "nthreads is %d in %s, but %d in another thread, in %s: right would be the same in all of a PE",
              mine.group.threads, describe(call).data(), group.threads, describe(theirs).data());
    for (size_t i = 0; i < std::size(mine.shape.arguments); ++i) {
        const Shape::Argument &here = mine.shape.arguments[i], &there = group.shape.arguments[i];
        if (here.value != there.value)
            fatal(call.function,
                  "%s is %lld in %s, but %lld in another thread, in %s: right would be the same in all of a PE",
                  here.name, static_cast<long long>(here.value), describe(call).data(),
                  static_cast<long long>(there.value), describe(theirs).data());
    }
    const auto same = [&](const char* name, const void* here, const void* there) {
        if (here != there)
            fatal(call.function,
                  "%s is %p in %s, but %p in another thread, in %s: right would be the same in all of "
                  "a PE",
                  name, here, describe(call).data(), there, describe(theirs).data());
    };
    same("dest", mine.shape.dest, group.shape.dest);
    same("source", mine.shape.source, group.shape.source);
}

// In a checked run: ends the PE when two threads post as one number.
void require_own_number(const PostedGroup& group, const GroupPost& mine) {
    const PostedGroup::Posted* const posted = group.of_thread(mine.group.thread);
    if (base::settings.check && posted && !pthread_equal(posted->poster, pthread_self()))
        fatal(mine.call.function,
              "two threads are number %d, in %s and in %s: right would be a number of its own for each of the %d",
              mine.group.thread, describe({group.function, posted->caller}).data(), describe(mine.call).data(),
              mine.group.threads);
}

void run_share(PostedGroup& group, const Call& call, int share) {
    tsan::acquire(&group);
    group.run(group.work.object(), call, Group(*group.instance, share, group.shares));
    tsan::release(&group);
}

// The helper of a share, 1 or more, with a stream set where the team spans nodes. In the instance's sequence.
team::Helper& helper_of(const Call& call, team::Team& instance, int share) {
    team::Helper** place = &instance.helpers;
    for (int i = 1; i < share; ++i) place = &(*place)->next;
    if (!*place) {
        // Kept as long as the instance's object: until the process ends.
        *place = new team::Helper(*progress::engine);
        progress::engine->add((*place)->sequence);
    }
    team::Helper& helper = **place;
    if (instance.span && !helper.stream_sets.first.load(std::memory_order_relaxed) &&
        !fabric::network->make_stream_set(helper.stream_sets, nullptr))
        fatal(call.function, "no memory for a stream set");
    return helper;
}

// Its requests are complete; the object is free. Out of line, as all that looks for this PE's groups in a fiber: the
// address of a thread-local object does not outlive a wait.
__attribute__((noinline)) void complete(PostedGroup& group) {
    tsan::acquire(&group);
    for (const PostedGroup::Posted& posted : group.posted) posted.request->complete(posted.side);
    const os::Locked locked(posted_groups->lock);
    posted_groups->idle.push_back(&group);
}

// Posts the shares of the helpers.
void post_shares(PostedGroup& group, const Call& call) {
    for (int share = 1; share < group.shares; ++share) {
        team::Helper& helper = helper_of(call, *group.instance, share);
        const auto work = [&group, share] {
            run_share(group, group.call(), share);
            group.shares_left.fetch_sub(1, std::memory_order_release);  // pairs with collective::carry_out
        };
        if (!helper.sequence.post(work, call.caller, progress::Sequence::Begin::kLater))
            fatal(call.function, "no memory for a share");
    }
}

// The operation in the instance's sequence.
void carry_out(PostedGroup& group) {
    progress::Engine& engine = *progress::engine;
    engine.wait_until(group.function, [&] { return group.missing() == 0; });
    const Call call = group.call();
    group.shares_left.store(group.shares - 1, std::memory_order_relaxed);
    if (group.shares > 1) {
        post_shares(group, call);
        engine.wake_waiters();
    }
    run_share(group, call, 0);
    // Acquire: pairs with collective::post_shares.
    engine.wait_until(group.function, [&] { return group.shares_left.load(std::memory_order_acquire) == 0; });
    complete(group);
}

// A group as it was seen while it missed some thread.
struct Seen {
    const PostedGroup* group;
    uint64_t number;

    // Any thread. Acquire: pairs with collective::post_together.
    bool is_whole() const {
        const uint64_t now = group->state.load(std::memory_order_acquire);
        return now >> PostedGroup::kNumberShift != number || static_cast<uint32_t>(now) == 0;
    }
};

// The open groups that the calling thread has posted under the request.
std::vector<Seen> posts_of_this_thread(const context::Request& request) {
    std::vector<Seen> some;
    const pthread_t self = pthread_self();
    const os::Locked locked(posted_groups->lock);
    for (const PostedGroup* const group : posted_groups->open)
        if (std::any_of(group->posted.begin(), group->posted.end(), [&](const PostedGroup::Posted& posted) {
                return posted.request == &request && pthread_equal(posted.poster, self);
            }))
            some.push_back({group, group->state.load(std::memory_order_relaxed) >> PostedGroup::kNumberShift});
    return some;
}

// Under the lock, as the next.
PostedGroup& open(const GroupPost& mine, team::Team& team) {
    if (posted_groups->idle.empty()) {
        posted_groups->all.push_back(std::make_unique<PostedGroup>());
        posted_groups->idle.push_back(posted_groups->all.back().get());
    }
    PostedGroup& group = *posted_groups->idle.back();
    posted_groups->idle.pop_back();
    group.function = mine.call.function;
    group.team = &team;
    group.instance = &team::next_instance(mine.call.function, team);
    group.threads = mine.group.threads;
    group.shares = select_shares(mine.bytes, mine.group.threads);
    group.bytes = mine.bytes;
    group.shape = mine.shape;
    group.run = mine.run;
    group.work = mine.work;
    group.posted.clear();
    const uint64_t number = (group.state.load(std::memory_order_relaxed) >> PostedGroup::kNumberShift) + 1;
    group.state.store(number << PostedGroup::kNumberShift | static_cast<uint64_t>(group.threads),
                      std::memory_order_relaxed);
    base::counters->posted_collectives.add();
    posted_groups->open.push_back(&group);
    return group;
}

// The first group of the team that misses the thread; opened where there is none.
PostedGroup& group_of(const GroupPost& mine, team::Team& team) {
    for (PostedGroup* const group : posted_groups->open) {
        if (group->team != &team)
            continue;
        if (group->of_thread(mine.group.thread)) {
            require_own_number(*group, mine);
            continue;
        }
        compare(*group, mine);
        return *group;
    }
    return open(mine, team);
}

// The last thread has posted.
void begin(team::Team& instance, size_t bytes) {
    if (begins_in_background(instance, bytes)) {
        progress::engine->wake_waiters();  // in await_others_posts
        return progress::engine->begin_in_background();
    }
    progress::engine->drive_once(*instance.sequence);
    if (!instance.sequence->is_empty())
        progress::engine->request_background(!instance.span);
}

}  // namespace

bool have_others_posted(const context::Request& request) {
    return posts_of_this_thread(request).empty();
}

void await_others_posts(const Call& call, const context::Request& request) {
    const std::vector<Seen> some = posts_of_this_thread(request);
    const auto are_over = [&] {
        return std::all_of(some.begin(), some.end(), [](const Seen& seen) { return seen.is_whole(); });
    };
    progress::engine->wait_until(call.function, are_over);
}

void start_posted_groups() {
    delete posted_groups;
    posted_groups = new PostedGroups;
}

void require_all_posted(const Call& call, const team::Team* team) {
    const os::Locked locked(posted_groups->lock);
    for (const PostedGroup* const group : posted_groups->open)
        if (!team || group->team == team)
            fatal(call.function,
                  "%d of %d threads have posted %s: right would be all of them, and a wait for it, before %s",
                  static_cast<int>(group->posted.size()), group->threads, describe(group->call()).data(),
                  describe(call).data());
}

void post_together(const GroupPost& mine, shmemx_request_t* req, BeforePosting before) {
    const Call& call = mine.call;
    operations::require_running(call.function);
    operations::require_pointer(call.function, "req", req);
    if (__builtin_expect(recording != nullptr, 0))
        fatal(call.function,
              "in %s this thread records a plan, since %s: right would be shmemx_plan_end before; a plan has "
              "collectives that one thread posts",
              describe(call).data(), describe(recording->recorded).data());
    ThreadGroup::require_number(call, mine.group.thread, mine.group.threads);
    team::Team& team = team_of(call, mine.group);
    context::Request& request = require_shared(call, req);
    if (before)
        before(call);
    if (operations::Observer* const told = operations::find_observer())
        told->post_collective(call);
    operations::await_request_fence(call, *req);  // members talk through other stream sets
    team::Team* instance;
    bool is_last;
    {
        // As in a collective of all threads, the first one is in the team for all (CollectiveCall::is_of_one_thread).
        std::optional<PostingThread> thread;
        if (mine.group.thread == 0)
            thread.emplace(call, team);
        const os::Locked locked(posted_groups->lock);
        PostedGroup& group = group_of(mine, team);
        const bool is_first = group.posted.empty();
        group.posted.push_back({mine.group.thread, pthread_self(), call.caller, &request, 0});
        request.announce();
        tsan::release(&group);
        instance = group.instance;
        if (is_first && !sequence_of(*instance).post([it = &group] { carry_out(*it); }, call.caller,
                                                     progress::Sequence::Begin::kLater))
            fatal(call.function, "no memory for a collective of several threads");
        is_last = group.missing() == 1;
        if (is_last) {
            for (PostedGroup::Posted& posted : group.posted) posted.side = posted.request->post_announced();
            posted_groups->open.erase(std::find(posted_groups->open.begin(), posted_groups->open.end(), &group));
        }
        // Release: what this thread wrote before is seen by all shares, as what those before it wrote is, behind the
        // lock. Pairs with PostedGroup::missing and Seen::is_whole.
        group.state.fetch_sub(1, std::memory_order_release);
    }
    if (is_last)
        begin(*instance, mine.bytes);
}

}  // namespace heddle::collective

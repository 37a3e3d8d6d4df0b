// Random schedules of collectives, on teams of all kinds: all PEs draw the same sequence of teams, collectives, sizes
// and whether to block; each draws for itself which request to post to, and when to wait, test, merge or free. What
// dest becomes is compared with a serial model when its request is complete, and again at the round's end.
//
// HEDDLE_TEST_THREADS=N: N threads of each PE run schedules of their own at the same time, on teams of their own.
// HEDDLE_TEST_STEPS=N: how many collectives a thread runs (default 10000 in all).
#include "check.h"
#include "nonblocking_collectives.h"

#include <sched.h>
#include <algorithm>
#include <thread>
#include <utility>

using namespace conformance;

namespace {

constexpr size_t kArenaBytes = 3 << 20, kPrivate = 6, kShared = 2;

class Schedule {
  public:
    Schedule(std::vector<Group> groups, unsigned char* memory, uint64_t number)
        : groups_(std::move(groups)),
          arena_(memory, kArenaBytes),
          shared_(random_for(number, 1, 51)),
          own_(random_for(number, static_cast<uint64_t>(pe), 52)) {
        // All PEs draw alike, so all know the same groups: not that of the own node where there are several.
        std::erase_if(groups_,
                      [](const Group& group) { return group.team == SHMEM_TEAM_SHARED && group.size != n_pes; });
        for (size_t i = 0; i < kShared; ++i)
            CHECK_EQ(shmemx_request_allocate(&requests_[kPrivate + i].handle, SHMEMX_REQUEST_SHARED), 0);
    }

    void run(uint64_t steps) {
        for (uint64_t step = 0; step < steps;) step += round(steps - step);
        for (Request& request : requests_) shmemx_request_free(&request.handle);
    }
    std::vector<Group>& groups() { return groups_; }

  private:
    struct Request {
        shmemx_request_t handle = SHMEMX_REQUEST_NULL;
        std::vector<Post> posts;  // what is outstanding on it
    };

    // Collectives until the memory is used up; how many.
    uint64_t round(uint64_t most) {
        std::vector<Post> all;
        uint64_t steps = 0;
        for (; steps < most; ++steps) {
            const Group& group = groups_[shared_.below(groups_.size())];
            Post post = draw_post(group, shared_.below(16) ? 5000 : 300000, shared_);
            const bool blocks = shared_.below(3) == 0;
            if (!post.take_memory(arena_, shared_))
                break;
            drawn_.push_back({post, blocks});
        }
        CHECK_EQ(shmem_team_sync(groups_[0].team), 0);  // memory is ready on all PEs
        for (const auto& [post, blocks] : drawn_) {
            if (!post.group->member())
                continue;
            step(post, blocks);
            all.push_back(post);
        }
        drawn_.clear();
        for (size_t i = 0; i < requests_.size(); ++i) finish(i, 0);
        CHECK_EQ(shmem_team_sync(groups_[0].team), 0);  // nobody is in an operation any more
        for (const Post& post : all) post.check("dest at the end"), post.check_source();
        arena_.check_gaps();
        arena_.clear();
        return steps;
    }

    void step(const Post& post, bool blocks) {
        dawdle();
        post.fill();
        if (blocks) {
            post.perform();
            post.check("dest behind the blocking form");
        } else {
            Request& request = requests_[own_.below(requests_.size())];
            post.post(&request.handle);
            request.posts.push_back(post);
        }
        switch (own_.below(12)) {
            case 0:
                return finish(own_.below(requests_.size()), 0);
            case 1:
            case 2:
                return finish(own_.below(requests_.size()), 1);
            case 3:
                return finish(own_.below(kPrivate), 2);
            case 4:
                return finish_any();
            case 5:
                return merge();
            case 6:
                return shmemx_progress();
            case 7:
                return shmemx_request_wait_local(&requests_[own_.below(requests_.size())].handle);
            default:
                return;
        }
    }

    void dawdle() {
        const size_t choice = own_.below(200);
        if (choice == 0)
            nap_ms(1);
        else if (choice < 10)
            sched_yield();
    }

    // way 0 wait, 1 test, 2 free
    void finish(size_t index, size_t way) {
        Request& request = requests_[index];
        bool done = true;
        if (way == 0)
            shmemx_request_wait(&request.handle);
        else if (way == 1)
            done = shmemx_request_test(&request.handle);
        else
            shmemx_request_free(&request.handle);
        CHECK_EQ(request.handle == SHMEMX_REQUEST_NULL, index < kPrivate && done);
        if (done)
            look_at(request);
    }

    void finish_any() {
        shmemx_request_t handles[kPrivate];
        for (size_t i = 0; i < kPrivate; ++i) handles[i] = requests_[i].handle;
        const bool waits = own_.below(2);
        const size_t index = (waits ? shmemx_request_wait_any : shmemx_request_test_any)(kPrivate, handles);
        const bool all_null = std::all_of(requests_.begin(), requests_.begin() + kPrivate,
                                          [](const Request& request) { return request.handle == SHMEMX_REQUEST_NULL; });
        if (waits || index != SIZE_MAX)
            CHECK_EQ(index == SIZE_MAX, all_null);
        if (index == SIZE_MAX)
            return;
        CHECK(index < kPrivate && handles[index] == SHMEMX_REQUEST_NULL);
        requests_[index].handle = SHMEMX_REQUEST_NULL;
        look_at(requests_[index]);
    }

    void merge() {
        const size_t into = own_.below(requests_.size());
        shmemx_request_t parts[2] = {};
        for (shmemx_request_t& part : parts) {
            const size_t i = own_.below(kPrivate);
            if (i == into)
                continue;
            part = std::exchange(requests_[i].handle, SHMEMX_REQUEST_NULL);
            std::move(requests_[i].posts.begin(), requests_[i].posts.end(), std::back_inserter(requests_[into].posts));
            requests_[i].posts.clear();
        }
        shmemx_request_merge(&requests_[into].handle, 2, parts);
        for (shmemx_request_t part : parts) CHECK(part == SHMEMX_REQUEST_NULL);
    }

    void look_at(Request& request) {
        for (const Post& post : request.posts) {
            if (own_.below(2))
                post.check("dest, when its request is complete");
        }
        request.posts.clear();
    }

    std::vector<Group> groups_;
    Arena arena_;
    Random shared_, own_;
    std::vector<std::pair<Post, bool>> drawn_;
    std::vector<Request> requests_ = std::vector<Request>(kPrivate + kShared);
};

}  // namespace

int main() {
    start("nonblocking_schedules");
    const uint64_t n_threads = number("HEDDLE_TEST_THREADS", 1);
    const uint64_t steps = number("HEDDLE_TEST_STEPS", 10000 / n_threads);
    std::vector<Schedule> schedules;
    for (uint64_t i = 0; i < n_threads; ++i) {
        auto* memory = static_cast<unsigned char*>(shmem_malloc(kArenaBytes));
        CHECK(memory);
        schedules.emplace_back(make_groups_of_thread(i), memory, i);
    }
    std::vector<std::thread> threads;
    for (uint64_t i = 1; i < n_threads; ++i) threads.emplace_back([&, i] { schedules[i].run(steps); });
    schedules[0].run(steps);
    for (std::thread& thread : threads) thread.join();
    shmem_barrier_all();
    for (Schedule& schedule : schedules) destroy_groups(schedule.groups());
    return finish();
}

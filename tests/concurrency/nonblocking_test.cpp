// Collectives that are posted, by several threads of several PEs at once, each with a team of its own, under every
// policy of progress: whoever polls drives those of all teams. dest and source are plain memory, so ThreadSanitizer
// reports whoever reads or writes before a request is complete.
#include "job.h"
#include "team/team.h"

#include <shmemx.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>

namespace heddle::test {
namespace {

constexpr size_t kMax = 5001;  // longs of a source: in slices, of no round size
constexpr size_t kCounts[] = {1, 30, 257, kMax};
constexpr int kRounds = 3;

class NonblockingTest : public testing::TestWithParam<std::tuple<Shape, const char*>> {
  protected:
    void SetUp() override {
        setenv("SHMEM_SYMMETRIC_SIZE", "48M", 1);
        setenv("HEDDLE_PROGRESS", std::get<1>(GetParam()), 1);
    }
    void TearDown() override { unsetenv("HEDDLE_PROGRESS"); }
    int n_pes() const { return std::get<0>(GetParam()).n_pes; }
    int n_threads() const { return std::get<0>(GetParam()).n_threads; }

    // Runs body(thread, team, memory) on every thread of every PE; team: all PEs, of this thread alone; memory:
    // symmetric, kLongs longs of this thread.
    static constexpr size_t kLongs = 64 * kMax;
    template <class Body>
    void run_job(Body body) {
        run_pes(n_pes(), [&](int pe) {
            shmem_init();
            const auto count = static_cast<size_t>(n_threads());
            std::vector<shmem_team_t> teams(count);
            for (shmem_team_t& team : teams)
                ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes(), nullptr, 0, &team), 0);
            long* memory = symmetric<long>(kLongs * count);
            if (pe == 0)
                shared_.assign(static_cast<size_t>(n_pes()), SHMEMX_REQUEST_NULL);
            shmem_barrier_all();
            shmemx_request_t* shared = &shared_[static_cast<size_t>(pe)];
            ASSERT_EQ(shmemx_request_allocate(shared, SHMEMX_REQUEST_SHARED), 0);
            std::vector<std::thread> others;
            for (size_t i = 1; i < count; ++i)
                others.push_back(thread_of_pe([&, i] { body(static_cast<int>(i), teams[i], memory + kLongs * i); }));
            body(0, teams[0], memory);
            for (std::thread& other : others) other.join();
            shmemx_request_free(shared);
            shmem_barrier_all();
            for (shmem_team_t team : teams) shmem_team_destroy(team);
            shmem_free(memory);
            shmem_finalize();
        });
    }
    shmemx_request_t* shared() { return &shared_[static_cast<size_t>(shmem_my_pe())]; }

    std::vector<shmemx_request_t> shared_;  // one of each PE
};

long value(int member, long round, size_t i) {
    return round * 100000 + member * 1000 + static_cast<long>(i % 500);
}

// One collective of a team, posted with source and dest of its own.
class Posted {
  public:
    enum Kind { kSum, kBroadcast, kFcollect, kAlltoall, kScan, kCollect, kExchange, kStarted, kKinds };

    // Takes longs from memory, at *used.
    Posted(shmem_team_t team, Kind kind, size_t nelems, long round, long* memory, size_t* used)
        : team_(team), kind_(kind), round_(round), size_(shmem_team_n_pes(team)), me_(shmem_team_my_pe(team)) {
        const auto members = static_cast<size_t>(size_);
        nelems_ = kind == kSum || kind == kScan || kind == kBroadcast ? nelems : std::max<size_t>(1, nelems / members);
        source_ = memory + *used;
        dest_ = source_ + nelems_ * members + 1;
        *used += 2 * (nelems_ * members + 1);
    }

    void post(shmemx_request_t* request) {
        const size_t blocks = is_alltoall() ? static_cast<size_t>(size_) : 1;
        for (size_t i = 0; i < nelems_ * blocks; ++i) source_[i] = value(me_, round_, i);
        switch (kind_) {
            case kSum:
                ASSERT_EQ(shmemx_long_sum_reduce_nbe(team_, dest_, source_, nelems_, request), 0);
                break;
            case kBroadcast:
                ASSERT_EQ(shmemx_long_broadcast_nbe(team_, dest_, source_, nelems_, root(), request), 0);
                break;
            case kFcollect:
                ASSERT_EQ(shmemx_long_fcollect_nbe(team_, dest_, source_, nelems_, request), 0);
                break;
            case kAlltoall:
                ASSERT_EQ(shmemx_long_alltoall_nbe(team_, dest_, source_, nelems_, request), 0);
                break;
            case kScan:
                ASSERT_EQ(shmemx_long_sum_inscan_nbe(team_, dest_, source_, nelems_, request), 0);
                break;
            case kExchange:
                exchange(request);
                break;
            case kStarted: {  // for the second time
                shmemx_plan_begin(&plan_);
                exchange(request);
                shmemx_plan_end(&plan_);
                shmemx_request_t first = SHMEMX_REQUEST_NULL;
                ASSERT_EQ(shmemx_request_start(plan_, &first), 0);
                shmemx_request_wait(&first);
                for (size_t i = 0; i < nelems_ * blocks; ++i) source_[i] = value(me_, round_, i);
                std::fill_n(dest_, nelems_ * blocks, -3);
                ASSERT_EQ(shmemx_request_start(plan_, request), 0);
                break;
            }
            default:
                ASSERT_EQ(shmemx_long_collect_nbe(team_, dest_, source_, nelems_ - odd(me_), request), 0);
        }
    }

    // Looks at dest, and uses source and dest again at once.
    void check_and_reuse() {
        if (kind_ == kStarted)
            shmemx_plan_free(&plan_);
        size_t at = 0;
        for (int member = 0; member < size_; ++member) {
            if (kind_ != kFcollect && !is_alltoall() && kind_ != kCollect)
                continue;
            const size_t block = is_alltoall() ? static_cast<size_t>(me_) * nelems_ : 0;
            for (size_t i = 0; i < nelems_ - (kind_ == kCollect ? odd(member) : 0); ++i)
                ASSERT_EQ(dest_[at++], value(member, round_, block + i));
        }
        for (size_t i = 0; i < nelems_; ++i) {
            long right = value(root(), round_, i);
            if (kind_ == kSum || kind_ == kScan) {
                right = 0;
                for (int member = 0; member < (kind_ == kSum ? size_ : me_ + 1); ++member)
                    right += value(member, round_, i);
            } else if (kind_ != kBroadcast) {
                break;
            }
            ASSERT_EQ(dest_[i], right);
        }
        std::fill_n(source_, nelems_ * static_cast<size_t>(size_), -1);
        std::fill_n(dest_, nelems_ * static_cast<size_t>(size_), -2);
    }

  private:
    int root() const { return static_cast<int>(round_) % size_; }
    bool is_alltoall() const { return kind_ == kAlltoall || kind_ == kExchange || kind_ == kStarted; }
    // As kAlltoall does, by lists.
    void exchange(shmemx_request_t* request) {
        const auto members = static_cast<size_t>(size_);
        std::vector<int> neighbors(members);
        std::vector<size_t> counts(members, nelems_), offsets(members);
        for (size_t i = 0; i < members; ++i) {
            neighbors[i] = static_cast<int>(members - 1 - i);
            offsets[i] = (members - 1 - i) * nelems_;
        }
        ASSERT_EQ(shmemx_neighbor_alltoallv_nbe(team_, neighbors.data(), members, dest_, counts.data(), offsets.data(),
                                                source_, counts.data(), offsets.data(), sizeof(long), request),
                  0);
    }
    static size_t odd(int member) { return static_cast<size_t>(member) % 2; }

    shmem_team_t team_;
    Kind kind_;
    long round_;
    int size_, me_;
    size_t nelems_;
    long *source_, *dest_;
    shmemx_plan_t plan_ = SHMEMX_PLAN_NULL;
};

// All kinds in all sizes, in memory that is ready on all members.
std::vector<Posted> all_kinds(shmem_team_t team, long round, long* memory) {
    std::vector<Posted> posts;
    size_t used = 0;
    for (size_t count : kCounts)
        for (int kind = 0; kind < Posted::kKinds; ++kind)
            posts.emplace_back(team, static_cast<Posted::Kind>(kind),
                               count == kMax && kind % 3 != round % 3 ? 40 : count, round, memory, &used);
    shmem_team_sync(team);
    return posts;
}

TEST_P(NonblockingTest, AreCompleteWhenWaitedForInAnyOrder) {
    run_job([&](int thread, shmem_team_t team, long* memory) {
        for (long round = 0; round < kRounds; ++round) {
            std::vector<Posted> posts = all_kinds(team, round, memory);
            std::vector<shmemx_request_t> requests(posts.size(), SHMEMX_REQUEST_NULL);
            for (size_t i = 0; i < posts.size(); ++i) posts[i].post(&requests[i]);
            std::mt19937 random(static_cast<unsigned>(round * 100 + thread * 10 + shmem_my_pe()));
            std::vector<size_t> order(posts.size());
            for (size_t i = 0; i < order.size(); ++i) order[i] = i;
            std::shuffle(order.begin(), order.end(), random);
            for (size_t i : order) {
                if (i % 3 == 0) {
                    while (!shmemx_request_test(&requests[i])) {
                    }
                } else {
                    shmemx_request_wait(&requests[i]);
                }
                posts[i].check_and_reuse();
            }
        }
    });
}

// Threads post to one request; each finds at least its own complete.
TEST_P(NonblockingTest, MayShareARequestWithOtherThreads) {
    run_job([&](int, shmem_team_t team, long* memory) {
        // One round: a wait covers what other threads have posted, which they would have to finish on other PEs.
        std::vector<Posted> posts = all_kinds(team, 1, memory);
        for (Posted& post : posts) post.post(shared());
        shmemx_request_wait(shared());
        for (Posted& post : posts) post.check_and_reuse();
    });
}

// The thread that posted ends; another one of the same PE waits.
TEST_P(NonblockingTest, MayBeHandedOver) {
    run_job([&](int, shmem_team_t team, long* memory) {
        for (long round = 0; round < kRounds; ++round) {
            std::vector<Posted> posts = all_kinds(team, round, memory);
            shmemx_request_t request = SHMEMX_REQUEST_NULL;
            thread_of_pe([&] {
                for (Posted& post : posts) post.post(&request);
            }).join();
            if (round % 2 == 0) {
                shmemx_request_wait(&request);
            } else {
                thread_of_pe([&] { shmemx_request_wait(&request); }).join();
            }
            for (Posted& post : posts) post.check_and_reuse();
        }
    });
}

// Blocking ones of the same team go behind what was posted; of another team they go beside it.
TEST_P(NonblockingTest, GoBeforeBlockingOnesOfTheirTeam) {
    run_job([&](int, shmem_team_t team, long* memory) {
        shmem_team_t other;
        shmem_team_split_strided(team, 0, 1, n_pes(), nullptr, 0, &other);
        for (long round = 0; round < kRounds; ++round) {
            std::vector<Posted> posts = all_kinds(team, round, memory);
            long* word = memory + kLongs - 4;
            shmemx_request_t request = SHMEMX_REQUEST_NULL;
            for (size_t i = 0; i < posts.size(); ++i) {
                posts[i].post(&request);
                if (i % 5 != 4)
                    continue;
                word[0] = static_cast<long>(i) + shmem_my_pe();
                shmem_long_max_reduce(i % 2 ? team : other, word + 1, word, 1);
                ASSERT_EQ(word[1], static_cast<long>(i) + n_pes() - 1);
            }
            shmemx_request_wait(&request);
            for (Posted& post : posts) post.check_and_reuse();
        }
        shmem_team_destroy(other);
    });
}

// A put before a barrier that is posted is seen by its target when the barrier is complete there.
TEST_P(NonblockingTest, OrderWhatABarrierOrders) {
    run_job([&](int, shmem_team_t team, long* memory) {
        const int next = (shmem_my_pe() + 1) % n_pes(), before = (shmem_my_pe() + n_pes() - 1) % n_pes();
        std::vector<long> source(kMax);
        for (long round = 1; round <= 2 * kRounds; ++round) {
            std::fill(source.begin(), source.end(), round * 100 + shmem_my_pe());
            shmem_long_put_nbi(memory, source.data(), kMax, next);
            shmemx_request_t request = SHMEMX_REQUEST_NULL;
            ASSERT_EQ(shmemx_team_barrier_nbe(team, &request), 0);
            shmemx_request_wait(&request);
            for (size_t i = 0; i < kMax; ++i) ASSERT_EQ(memory[i], round * 100 + before);
            ASSERT_EQ(shmemx_team_sync_nbe(team, &request), 0);  // it may be written again
            while (!shmemx_request_test(&request)) shmemx_progress();
        }
    });
}

// Each thread changes the policy of its PE now and then.
TEST_P(NonblockingTest, OutliveAChangeOfPolicy) {
    run_job([&](int thread, shmem_team_t team, long* memory) {
        for (long round = 0; round < kRounds; ++round) {
            std::vector<Posted> posts = all_kinds(team, round, memory);
            shmemx_request_t request = SHMEMX_REQUEST_NULL;
            for (size_t i = 0; i < posts.size(); ++i) {
                posts[i].post(&request);
                const char* const policies[] = {"manual", "thread:block", "thread", "auto"};
                if (i % 4 == static_cast<size_t>(thread)) {
                    ASSERT_EQ(shmemx_progress_policy(policies[(i / 4 + static_cast<size_t>(round)) % 4]), 0);
                }
            }
            shmemx_request_wait(&request);
            for (Posted& post : posts) post.check_and_reuse();
        }
    });
}

// Steps are numbered modulo 2^32: one of them is 0. Each start has to wait for the sources of others in that one, too.
TEST(PlanTest, StartsWaitForSourcesWhereStepsWrap) {
    constexpr int kPes = 2;
    setenv("HEDDLE_BARRIER", "flat", 1);  // the other barriers count steps elsewhere
    setenv("SHMEM_SYMMETRIC_SIZE", "4M", 1);
    std::atomic<long> started{0};  // by PE 0
    run_pes(kPes, [&](int pe) {
        shmem_init();
        long* const memory = symmetric<long>(2);
        const int other = 1 - pe;
        shmem_team_t team = SHMEM_TEAM_INVALID;
        shmemx_plan_t plan = SHMEMX_PLAN_NULL;
        for (long number = 0; number < 360; ++number) {
            if (number % 180 == 0) {
                shmemx_request_t unused = SHMEMX_REQUEST_NULL;
                ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, kPes, nullptr, 0, &team), 0);
                shmemx_plan_begin(&plan);
                shmemx_neighbor_alltoall_nbe(team, &other, 1, memory, memory + 1, sizeof(long), &unused);
                shmemx_plan_end(&plan);
            }
            shmemx_request_t request = SHMEMX_REQUEST_NULL;
            while (pe == 1 && started.load(std::memory_order_acquire) == number) sched_yield();  // pairs with below
            memory[1] = number * 10 + pe;
            ASSERT_EQ(shmemx_request_start(plan, &request), 0);
            if (pe == 0)
                started.store(number + 1, std::memory_order_release);  // pairs with above
            shmemx_request_wait(&request);
            EXPECT_EQ(memory[0], number * 10 + other) << "start " << number << " of PE " << pe;
            if (number % 180 == 119) {  // no inline slot holds a number of the steps to come
                shmem_barrier_all();
                team::Team* const first = team::find(team);
                for (team::Team* const instance : {first, first->instances[0]})
                    instance->state.count = instance->state.all_done = 0u - 20 - (number > 180 ? 1 : 0);
                shmem_barrier_all();
            }
            if (number % 180 == 179) {
                shmemx_plan_free(&plan);
                shmem_team_destroy(team);
            }
        }
        shmem_free(memory);
        shmem_finalize();
    });
    unsetenv("HEDDLE_BARRIER");
}

std::string name_of(const testing::TestParamInfo<std::tuple<Shape, const char*>>& of_test) {
    const Shape& shape = std::get<0>(of_test.param);
    std::string name =
        std::to_string(shape.n_pes) + "pes" + std::to_string(shape.n_threads) + "threads_" + std::get<1>(of_test.param);
    std::replace(name.begin(), name.end(), ':', '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Shapes, NonblockingTest,
                         testing::Combine(testing::ValuesIn(std::vector<Shape>{{1, 3}, {3, 1}, {4, 2}, {8, 1}}),
                                          testing::Values("manual", "thread:block")),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Policies, NonblockingTest,
                         testing::Combine(testing::Values(Shape{2, 3}),
                                          testing::Values("manual", "thread", "thread:block", "thread:spin", "auto")),
                         name_of);

}  // namespace
}  // namespace heddle::test

// The report of where PEs are, from pages that the test fills: groups, values, cycles, and pages that are damaged.
#include "bootstrap/status_report.h"

#include "bootstrap/wait_graph.h"
#include "os/memfd.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace heddle::bootstrap {
namespace {

constexpr uint64_t kS = 1000000000, kNow = 1000 * kS;

class StatusReport : public testing::Test {
  protected:
    void make(int n_pes) {
        page_ = create_job_page(n_pes, &fd_);
        ASSERT_TRUE(page_);
        source_.page = page_;
        source_.memory_fd = fd_;
        source_.now_ns = kNow;
        source_.lines_ns = 0;
        for (int pe = 0; pe < n_pes; ++pe) {
            source_.processes.push_back({100 + pe, false});
            page_->records()[pe].state.store(static_cast<uint32_t>(PeState::kRunning));
        }
    }
    ~StatusReport() override {
        if (page_)
            os::unmap(page_, job_page_bytes(static_cast<int>(page_->n_pes)));
        close(fd_);
    }
    // A wait of a thread of a PE. Waits of the same PE begin one second apart.
    WaitState& wait(int pe, const char* function, uint64_t since_s = 10) {
        WaitState& state = states_.emplace_back();
        state.since_ns = kNow - since_s * kS;
        state.thread = 7000 + pe;
        snprintf(state.function, sizeof state.function, "%s", function);
        return state;
    }
    void publish(int pe, const WaitState& state) {
        PeStatus& status = page_->statuses()[pe];
        const int entry = status.claim();
        ASSERT_GE(entry, 0);
        status.waits[entry].write(state);
    }
    std::vector<std::string> report() const { return describe_pes(source_); }

    StatusSource source_;
    JobPage* page_ = nullptr;
    int fd_ = -1;
    std::vector<WaitState> states_;
};

TEST_F(StatusReport, PesWithOneAnswerAreALine) {
    make(7);
    states_.reserve(10);
    for (const int pe : {0, 1, 2, 4, 6}) publish(pe, wait(pe, "shmem_barrier_all", 10 + static_cast<uint64_t>(pe)));
    source_.processes[3].ended = true;
    page_->records()[5].state.store(static_cast<uint32_t>(PeState::kAbsent));
    EXPECT_EQ(report(),
              (std::vector<std::string>{
                  "5 PEs (0-2, 4, 6; pids 100, 101, 102, 104, ...): in shmem_barrier_all since 10.0 to 16.0 s",
                  "PE 3: has ended",
                  "PE 5 (pid 105): has not called shmem_init",
              }));
}

TEST_F(StatusReport, ThreadsOfAPeAreTold) {
    make(2);
    states_.reserve(10);
    publish(0, wait(0, "shmem_quiet", 12));
    publish(0, wait(9, "shmem_fence", 11));
    EXPECT_EQ(report(), (std::vector<std::string>{"PE 0 (pid 100, thread 7000): in shmem_quiet since 12.0 s",
                                                  "PE 0 (pid 100, thread 7009): in shmem_fence since 11.0 s",
                                                  "PE 1 (pid 101): running, not waiting in Heddle"}));
    publish(1, wait(1, "shmem_quiet", 12));
    publish(1, wait(2, "shmem_quiet", 12));
    EXPECT_EQ(report()[0], "3 threads of 2 PEs (0-1; pids 100, 101): in shmem_quiet since 12.0 s");
    const std::vector<std::string> one = describe_pe(source_, 0);
    EXPECT_EQ(one, (std::vector<std::string>{"thread 7000: in shmem_quiet since 12.0 s",
                                             "thread 7009: in shmem_fence since 11.0 s"}));
}

TEST_F(StatusReport, ThereAreEntriesForEightThreads) {
    make(1);
    PeStatus& status = page_->statuses()[0];
    for (uint32_t i = 0; i < PeStatus::kThreads; ++i) EXPECT_EQ(status.claim(), static_cast<int>(i));
    EXPECT_EQ(status.claim(), -1);
    status.release(3);
    EXPECT_EQ(status.claim(), 3);
}

TEST_F(StatusReport, ValuesHaveTheirSize) {
    make(1);
    const int64_t value = -2;
    const off_t offset = sizeof(JobPage) + 8;  // some place of the page that the report does not read
    ASSERT_EQ(pwrite(fd_, &value, sizeof value, offset + 64), 8);
    for (const auto& [bytes, is_signed, text] :
         {std::tuple{4, true, "heap+0x40 >= -5, is -2"},
          {2, false, "heap+0x40 >= 65531, is 65534"},
          {8, true, "heap+0x40 >= -5, is -2"},
          {8, false, "heap+0x40 >= 18446744073709551611, is 18446744073709551614"}}) {
        WaitState state;
        state.since_ns = kNow - kS;
        state.awaits = WaitState::Awaits::kValue;
        state.region = WaitState::Region::kHeap;
        state.offset = 64;
        state.file_offset = static_cast<uint64_t>(offset + 64);
        state.value = static_cast<uint64_t>(-5);
        state.value_bytes = static_cast<uint8_t>(bytes);
        state.is_signed = is_signed;
        strcpy(state.comparison, ">=");
        strcpy(state.function, "wait");
        publish(0, state);
        EXPECT_EQ(report()[0], std::string("PE 0 (pid 100): in wait(") + text + ") since 1.0 s");
        page_->statuses()[0].release(0);
    }
}

TEST_F(StatusReport, CollectivesHaveTheirNumbers) {
    make(4);
    states_.reserve(10);
    for (const int pe : {0, 1, 2, 3}) {
        WaitState& state = wait(pe, "shmem_barrier_all");
        state.number = pe == 3 ? 0 : 1042;  // PE 3 has not yet looked
        strcpy(state.place, "prog+0x12bc");
        publish(pe, state);
    }
    EXPECT_EQ(report()[0],
              "4 PEs (0-3; pids 100, 101, 102, 103): in shmem_barrier_all #1042 (called at prog+0x12bc) since 10.0 s");
    EXPECT_EQ(describe_pe(source_, 1)[0], "in shmem_barrier_all #1042 (called at prog+0x12bc) since 10.0 s");
    states_[1].number = 1043;
    page_->statuses()[1].waits[0].write(states_[1]);
    EXPECT_EQ(report()[0],
              "4 PEs (0-3; pids 100, 101, 102, 103): in shmem_barrier_all #1042-1043 (called at prog+0x12bc) since "
              "10.0 s");
}

TEST_F(StatusReport, TheLastWriterIsNamedWhileItsValueIsThere) {
    make(2);
    int64_t value = 7;
    const off_t offset = sizeof(JobPage) + 72;
    ASSERT_EQ(pwrite(fd_, &value, sizeof value, offset), 8);
    WaitState state;
    state.since_ns = kNow - kS;
    state.awaits = WaitState::Awaits::kValue;
    state.region = WaitState::Region::kHeap;
    state.file_offset = static_cast<uint64_t>(offset);
    state.value = 8;
    state.value_bytes = 8;
    strcpy(state.comparison, "==");
    strcpy(state.function, "wait");
    state.seen = 7;
    state.writer = 1;
    strcpy(state.writer_call, "shmem_long_p (called at prog+0x12bc)");
    publish(0, state);
    EXPECT_EQ(report()[0],
              "PE 0 (pid 100): in wait(heap+0 == 8, is 7, last written by PE 1: shmem_long_p called at prog+0x12bc) "
              "since 1.0 s");
    value = 6;
    ASSERT_EQ(pwrite(fd_, &value, sizeof value, offset), 8);
    EXPECT_EQ(report()[0], "PE 0 (pid 100): in wait(heap+0 == 8, is 6) since 1.0 s");
}

TEST_F(StatusReport, CyclesThroughLocksAndCollectivesAreNamed) {
    make(4);
    states_.reserve(10);
    WaitState lock = wait(1, "shmem_set_lock");
    lock.awaits = WaitState::Awaits::kLock;
    lock.holder = 0;
    publish(1, lock);
    const WaitState barrier = wait(0, "shmem_barrier_all", 9);
    publish(0, barrier);
    publish(2, wait(2, "shmem_barrier_all", 8));
    Waiters waiters;  // of PE 1: PEs 0 and 2 are in a barrier that it has not begun
    waiters.since_ns = lock.since_ns;
    waiters.number = 2;
    waiters.waiters[0] = {0, barrier.since_ns};
    waiters.waiters[1] = {2, kNow - 8 * kS};
    page_->statuses()[1].waiters.write(waiters);
    EXPECT_EQ(describe_relations(*page_, 4),
              (std::vector<std::string>{
                  "PE 0 (in shmem_barrier_all) waits for PE 1 (in shmem_set_lock), which waits for PE 0",
                  "PE 2 waits for PE 1"}));
    waiters.waiters[0].since_ns += 1;  // PE 0 is in another wait now
    page_->statuses()[1].waiters.write(waiters);
    EXPECT_EQ(describe_relations(*page_, 4), (std::vector<std::string>{"PE 1 waits for PE 0", "PE 2 waits for PE 1"}));
}

TEST_F(StatusReport, MoreWaitersThanFitAreOthers) {
    make(3);
    publish(0, wait(0, "shmem_barrier_all"));
    const WaitState mine = wait(2, "shmem_quiet");
    publish(2, mine);
    Waiters waiters;
    waiters.since_ns = mine.since_ns;
    waiters.number = Waiters::kMost + 1;
    waiters.waiters[0] = {0, states_[0].since_ns};
    page_->statuses()[2].waiters.write(waiters);
    EXPECT_EQ(describe_relations(*page_, 3), (std::vector<std::string>{"PE 0 and others wait for PE 2"}));
}

TEST_F(StatusReport, DifferentCollectivesAtOneStepAreNamed) {
    make(2);
    states_.reserve(4);
    WaitState& first = wait(0, "shmem_barrier_all");
    WaitState& second = wait(1, "shmem_long_broadcast");
    first.step = second.step = uint64_t{1} << 62 | 5;
    publish(0, first);
    publish(1, second);
    ASSERT_EQ(describe_relations(*page_, 2).size(), 1u);
    EXPECT_EQ(
        describe_relations(*page_, 2)[0].find("PE 0 is in shmem_barrier_all where PE 1 is in shmem_long_broadcast:"),
        0u);
    second.node = 1;  // the step of another node's segment
    page_->statuses()[1].waits[0].write(second);
    EXPECT_TRUE(describe_relations(*page_, 2).empty());
}

TEST_F(StatusReport, AllWait) {
    make(3);
    states_.reserve(10);
    EXPECT_FALSE(all_wait(source_, kNow)) << "all run";
    publish(0, wait(0, "a", 100));
    publish(1, wait(1, "b", 90));
    EXPECT_FALSE(all_wait(source_, kNow)) << "one runs";
    EXPECT_TRUE(any_waits(source_, kNow - 95 * kS));
    EXPECT_FALSE(any_waits(source_, kNow - 101 * kS));
    source_.processes[2].ended = true;
    EXPECT_TRUE(all_wait(source_, kNow));
    EXPECT_FALSE(all_wait(source_, kNow - 95 * kS)) << "one waits for less long";
    publish(0, wait(0, "c", 1));
    EXPECT_FALSE(all_wait(source_, kNow - 50 * kS)) << "another thread of PE 0 came forward";
}

TEST_F(StatusReport, TheLastCallsAreThoseOfARing) {
    make(1);
    PeStatus& status = page_->statuses()[0];
    const auto record = [&](CallRecord::Kind kind, uint32_t number) {
        CallRecord call;
        call.at_ns = kNow - kS * (100 - number);
        call.kind = kind;
        snprintf(call.text, sizeof call.text, "call %u", number);
        status.calls[status.n_calls.fetch_add(1) % PeStatus::kCalls].write(call);
    };
    EXPECT_EQ(describe_last_calls(source_, 0), "");
    for (uint32_t i = 0; i < 3; ++i) record(CallRecord::Kind::kWait, i);
    EXPECT_EQ(describe_last_calls(source_, 0), "") << "no checked run";
    for (uint32_t i = 3; i < 50; ++i) record(CallRecord::Kind::kCollective, i);
    EXPECT_EQ(describe_last_calls(source_, 0).find("call 49 51.0 s ago, call 48 52.0 s ago, call 47 53.0 s ago"), 0u);
}

// Any bytes make some lines without control characters, and no crash.
TEST_F(StatusReport, SurvivesADamagedPage) {
    const unsigned seed = std::random_device{}();
    printf("seed %u\n", seed);
    std::mt19937_64 random(seed);
    make(4);
    for (int round = 0; round < 300; ++round) {
        for (int pe = 0; pe < 4; ++pe) {
            PeStatus& status = page_->statuses()[pe];
            const auto fill = [&](void* object, size_t bytes) {
                for (size_t i = 0; i < bytes; ++i)
                    if (random() % 3 == 0)
                        static_cast<char*>(object)[i] = static_cast<char>(random());
            };
            status.entries.store(static_cast<uint32_t>(random()));
            status.n_calls.store(static_cast<uint32_t>(random()));
            for (auto& entry : status.waits) {
                WaitState state;
                fill(&state, sizeof state);
                entry.write(state);
            }
            Waiters waiters;
            fill(&waiters, sizeof waiters);
            status.waiters.write(waiters);
            for (auto& entry : status.calls) {
                CallRecord call;
                fill(&call, sizeof call);
                entry.write(call);
            }
            page_->records()[pe].state.store(random() % 6);
            page_->records()[pe].pe.store(static_cast<uint32_t>(random()));
        }
        std::vector<std::string> lines = report();
        for (int pe = 0; pe < 4; ++pe) lines.push_back(describe_last_calls(source_, pe));
        for (const std::string& line : lines)
            for (const char letter : line)
                ASSERT_TRUE(static_cast<unsigned char>(letter) >= ' ' && letter != 127) << line;
    }
}

TEST(WaitGraph, NumbersAreRanges) {
    EXPECT_EQ(describe_numbers({}), "");
    EXPECT_EQ(describe_numbers({3}), "3");
    EXPECT_EQ(describe_numbers({0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
}

}  // namespace
}  // namespace heddle::bootstrap

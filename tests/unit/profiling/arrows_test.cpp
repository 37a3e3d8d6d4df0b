// What ended a wait, of made-up traces: an arrow only where nothing that is not in the trace may have done so.
#include "profiling/job_trace.h"

#include <gtest/gtest.h>

namespace heddle::profiling {
namespace {

TimedEvent event(int pe, Kind kind, int64_t begin_ns, int64_t end_ns, uint64_t word, int target = -1) {
    TimedEvent made;
    made.of_pe = pe;
    made.what = static_cast<uint32_t>(kind);
    made.begin_ns = begin_ns;
    made.end_ns = end_ns;
    made.word = word;
    made.pe = target;
    made.bytes = 8;
    return made;
}

JobTrace of_pes(size_t n) {
    JobTrace trace;
    trace.pes.resize(n);
    for (size_t pe = 0; pe < n; ++pe) trace.pes[pe].pe = static_cast<int>(pe);
    return trace;
}

// PE 0 stores to a word of PE 1, which waits for it from 100 to 200.
struct Waiting {
    JobTrace trace = of_pes(2);
    Waiting() { trace.pes[1].events.push_back(event(1, Kind::kWait, 100, 200, 4097)); }
    void store(int64_t begin_ns, uint64_t word = 4097, int target = 1, Kind kind = Kind::kPut) {
        trace.pes[0].events.push_back(event(0, kind, begin_ns, begin_ns + 5, word, target));
    }
    // When the store has begun that the arrow comes from; -1: no arrow.
    int64_t ended_by() const {
        const std::vector<Arrow> arrows = find_arrows(trace);
        EXPECT_LE(arrows.size(), 1u);
        return arrows.empty() ? -1 : arrows[0].from->begin_ns;
    }
};

TEST(Arrows, TheLastStoreToTheWord) {
    Waiting job;
    EXPECT_EQ(job.ended_by(), -1);
    job.store(150);
    job.store(160);
    job.store(170, 4105);                    // the next word
    job.store(180, 4097, 0);                 // of another PE
    job.store(190, 4090, 1, Kind::kAtomic);  // covers no bytes beyond its own
    job.store(201);                          // too late
    EXPECT_EQ(job.ended_by(), 160);
    job.store(165, 4093);  // 8 bytes from 4 below the word
    EXPECT_EQ(job.ended_by(), 165);
}

// 8 bytes from a word: a store of before the wait has not ended it, unless it comes from another node.
TEST(Arrows, ClocksDifferBetweenNodesAlone) {
    Waiting job;
    job.trace.clock_error_ns = 20;
    job.store(210);
    EXPECT_EQ(job.ended_by(), -1);
    job.trace.pes[1].node = 1;
    EXPECT_EQ(job.ended_by(), 210);
    job.store(230);
    EXPECT_EQ(job.ended_by(), 210);
    job.store(150);
    EXPECT_EQ(job.ended_by(), 150);
}

TEST(Arrows, AStoreOfLongBeforeHasNotEndedTheWait) {
    Waiting job;
    job.store(-5000);
    EXPECT_EQ(job.ended_by(), -1);
    job.trace.pes[1].node = 1;  // its data may have been under way
    EXPECT_EQ(job.ended_by(), -5000);
}

TEST(Arrows, NoneWhereStoresMayBeMissing) {
    Waiting job;
    job.store(150);
    EXPECT_EQ(job.ended_by(), 150);
    for (const Span gap : {Span{140, 160}, Span{0, INT64_MAX}, Span{195, 300}}) {
        job.trace.pes[0].gaps = {gap};
        EXPECT_EQ(job.ended_by(), -1) << gap.begin_ns;
    }
    job.trace.pes[0].gaps = {{0, 150}, {10, 20}, {200, 300}};
    EXPECT_EQ(job.ended_by(), 150);
    job.trace.pes[0].first_lost_ns = 180;
    EXPECT_EQ(job.ended_by(), -1);
    job.trace.pes[0].first_lost_ns = 220;
    EXPECT_EQ(job.ended_by(), 150);
}

TEST(Arrows, CollectivesOfAllMembersAlone) {
    JobTrace trace = of_pes(3);
    for (int pe = 0; pe < 3; ++pe) {
        TimedEvent made = event(pe, Kind::kCollective, 10 * pe, 40, 77, 3);
        made.number = 1;
        trace.pes[static_cast<size_t>(pe)].events.push_back(made);
    }
    const std::vector<Arrow> arrows = find_arrows(trace);
    ASSERT_EQ(arrows.size(), 2u);
    for (const Arrow& arrow : arrows) {
        EXPECT_EQ(arrow.from->of_pe, 2);
        EXPECT_NE(arrow.to->of_pe, 2);
    }
    trace.pes[0].events[0].number = 2;  // of another collective
    EXPECT_TRUE(find_arrows(trace).empty());
}

TEST(Arrows, ALockComesFromAnotherPe) {
    JobTrace trace = of_pes(3);
    trace.pes[0].events.push_back(event(0, Kind::kLock, 100, 200, 9));
    const auto give = [&](int pe, int64_t at_ns) {
        TimedEvent made = event(pe, Kind::kLock, at_ns, at_ns, 9);
        made.what = kGiveLock;
        trace.pes[static_cast<size_t>(pe)].events.push_back(made);
    };
    give(1, 50);   // before the wait
    give(0, 150);  // of the thread that waits
    EXPECT_TRUE(find_arrows(trace).empty());
    give(2, 160);
    ASSERT_EQ(find_arrows(trace).size(), 1u);
    EXPECT_EQ(find_arrows(trace)[0].from->of_pe, 2);
    give(0, 170);
    trace.pes[0].events.back().thread = 1;  // another thread of the PE
    ASSERT_EQ(find_arrows(trace).size(), 1u);
    EXPECT_EQ(find_arrows(trace)[0].from->begin_ns, 170);
    trace.pes[1].gaps.push_back({175, 180});  // a pause
    EXPECT_TRUE(find_arrows(trace).empty());
}

// The runs of a thread: what comes behind a call that begins one may be missing, up to the thread's next wait.
TEST(Arrows, RunsHideCalls) {
    auto head = std::make_unique<TraceHead>();
    auto chunks = std::make_unique<TraceChunk[]>(1);
    head->end = {1000, 1000};
    uint32_t n = 0;
    const auto add = [&](Kind kind, uint64_t begin, uint32_t place, uint32_t number, bool begins_run) {
        TraceEvent& one = chunks[0].events[n++];
        one = {.begin = begin, .end = begin + 1, .word = 9, .bytes = 8, .what = static_cast<uint32_t>(kind)};
        one.place = place;
        one.number = number;
        one.begins_run = begins_run;
        chunks[0].n = n;
    };
    const auto gaps = [&] { return read_trace(0, *head, chunks.get(), 1, {}, {}, 0).gaps; };
    add(Kind::kPut, 100, 0, 1, false);
    EXPECT_TRUE(gaps().empty());
    add(Kind::kPut, 200, 0, 2, true);
    ASSERT_EQ(gaps().size(), 1u);
    EXPECT_EQ(gaps()[0].begin_ns, 200);
    EXPECT_EQ(gaps()[0].end_ns, INT64_MAX);
    add(Kind::kQuiet, 300, 1, 1, false);
    EXPECT_EQ(gaps()[0].end_ns, 300);
    add(Kind::kPut, 400, 0, 3, true);  // the next one: none was in between
    add(Kind::kPut, 500, 0, 250, false);
    ASSERT_EQ(gaps().size(), 1u);
    EXPECT_EQ(gaps()[0].begin_ns, 400);
    EXPECT_EQ(gaps()[0].end_ns, 500);
    head->paused_from = 600;
    head->paused_until = 0;
    EXPECT_EQ(gaps().size(), 2u);
}

// What a program has written over its trace is no event, and nothing is read beyond the arrays.
TEST(Arrows, ForeignBytesAreNoEvents) {
    auto head = std::make_unique<TraceHead>();
    auto chunks = std::make_unique<TraceChunk[]>(2);
    head->n_places = UINT32_MAX;
    chunks[0].thread = UINT32_MAX;
    chunks[0].n = 5;
    chunks[1].n = UINT32_MAX;
    for (TraceEvent& one : chunks[1].events) one.what = 1000;
    chunks[1].events[3].what = static_cast<uint32_t>(Kind::kQuiet);
    const PeTrace read = read_trace(0, *head, chunks.get(), 2, {}, {}, 0);
    EXPECT_EQ(read.places.size(), TraceHead::kPlaces);
    ASSERT_EQ(read.events.size(), 1u);
}

}  // namespace
}  // namespace heddle::profiling

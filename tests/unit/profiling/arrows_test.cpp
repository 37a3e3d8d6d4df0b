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
    made.is_followed = true;
    return made;
}

// PE 0 stores to a word of PE 1, which waits for it from 100 to 200.
struct Waiting {
    JobTrace trace;
    Waiting() {
        trace.pes.resize(2);
        trace.pes[1].pe = 1;
        trace.pes[1].events.push_back(event(1, Kind::kWait, 100, 200, 4097));
    }
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
    job.trace.clock_error_ns = 2;
    EXPECT_EQ(job.ended_by(), 201);
}

TEST(Arrows, NoneWhereStoresMayBeMissing) {
    Waiting job;
    job.store(150);
    job.trace.pes[0].events[0].is_followed = false;
    EXPECT_EQ(job.ended_by(), -1);
    job.trace.pes[0].events[0].is_followed = true;
    EXPECT_EQ(job.ended_by(), 150);
    job.trace.pes[0].lost = 1;  // behind 155
    EXPECT_EQ(job.ended_by(), -1);
    job.store(230);
    EXPECT_EQ(job.ended_by(), 150);
}

TEST(Arrows, APausedTraceHasNoStoresOfBefore) {
    Waiting job;
    job.store(50);
    EXPECT_EQ(job.ended_by(), 50);
    job.trace.pes[0].was_paused = true;
    EXPECT_EQ(job.ended_by(), -1);
    job.store(120);
    EXPECT_EQ(job.ended_by(), 120);
}

TEST(Arrows, CollectivesOfAllMembersAlone) {
    JobTrace trace;
    trace.pes.resize(3);
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
    JobTrace trace;
    trace.pes.resize(3);
    trace.pes[0].events.push_back(event(0, Kind::kLock, 100, 200, 9));
    const auto give = [&](int pe, int64_t at_ns) {
        TimedEvent made = event(pe, Kind::kLock, at_ns, at_ns, 9);
        made.what = kGiveLock;
        trace.pes[static_cast<size_t>(pe)].events.push_back(made);
    };
    give(1, 50);   // before the wait
    give(0, 150);  // of the PE that waits
    EXPECT_TRUE(find_arrows(trace).empty());
    give(2, 160);
    ASSERT_EQ(find_arrows(trace).size(), 1u);
    EXPECT_EQ(find_arrows(trace)[0].from->of_pe, 2);
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

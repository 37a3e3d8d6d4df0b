// How long the service thread naps while large data comes: against a link and a kernel in virtual time.
#include "fabric/interrupt_moderation.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>

namespace heddle::fabric {
namespace {

constexpr double kGigabit = 0.125;  // bytes a nanosecond
constexpr size_t kMiB = 1 << 20;

// Segments come one after the other while the kernel has room for them. The thread takes all that is there at once.
struct Link {
    double bytes_per_ns = kGigabit;
    double buffer_bytes = 6 << 20;
    double segment_bytes = 16 << 10;
    double now_ns = 0, asked = 0, arrived = 0;  // arrived: whole bodies
    int wake_ups = 0, naps = 0;
    double longest_nap_ns = 0;
    bool someone_waits = false;
    InterruptModeration moderation;

    uint64_t nap() {
        return moderation.nap_ns(static_cast<uint64_t>(now_ns), static_cast<uint64_t>(asked),
                                 static_cast<uint64_t>(arrived), !someone_waits);
    }

    // Brings one body; returns the nanoseconds that took. begins_ns: the sender lets wait for so long.
    double bring(size_t bytes, double begins_ns = 0) {
        const double start_ns = now_ns, size = static_cast<double>(bytes);
        double taken = 0, waits_ns = begins_ns;
        asked += size;
        wake_ups = naps = 0;
        while (taken < size) {
            const auto nap_ns = static_cast<double>(nap());
            const double event_ns = std::min(segment_bytes, size - taken) / bytes_per_ns;
            const double slept_ns = nap_ns != 0 ? nap_ns : waits_ns + event_ns;
            const double comes_ns = std::max(0.0, slept_ns - waits_ns);
            waits_ns = std::max(0.0, waits_ns - slept_ns);
            now_ns += slept_ns;
            taken += std::min(comes_ns * bytes_per_ns, buffer_bytes);
            ++wake_ups;
            naps += nap_ns != 0;
            longest_nap_ns = std::max(longest_nap_ns, nap_ns);
        }
        arrived += size;
        nap();
        return now_ns - start_ns;
    }
    double least_ns(size_t bytes) const { return static_cast<double>(bytes) / bytes_per_ns; }
};

TEST(InterruptModeration, TheFirstBodyIsMeasuredWithoutNaps) {
    Link link;
    link.bring(kMiB);
    EXPECT_EQ(link.naps, 0);
    EXPECT_EQ(link.wake_ups, 64);
    link.bring(kMiB);
    EXPECT_GT(link.naps, 0);
}

TEST(InterruptModeration, AtAGigabitWakeUpsAreFewAndTheEndIsNotMissed) {
    const struct {
        size_t bytes;
        int most_wake_ups;
    } cases[] = {{kMiB / 4, 10}, {kMiB, 20}, {4 * kMiB, 45}};  // with one for each segment: 16, 64, 256
    for (const auto& [bytes, most_wake_ups] : cases) {
        Link link;
        for (int i = 0; i < 20; ++i) {
            const double ns = link.bring(bytes);
            if (i == 0)
                continue;
            EXPECT_LE(link.wake_ups, most_wake_ups) << bytes;
            EXPECT_LE(ns, 1.01 * link.least_ns(bytes)) << bytes;
        }
        EXPECT_LE(link.longest_nap_ns, InterruptModeration::kMaxNapNs);
    }
}

// Slow: segments are rarer than naps could be. Fast: the kernel has the budget in less than the shortest nap.
TEST(InterruptModeration, NoNapsWhereTheyWouldSaveNothing) {
    for (const double bytes_per_ns : {kGigabit / 10, 5.0}) {
        Link link;
        link.bytes_per_ns = bytes_per_ns;
        for (int i = 0; i < 20; ++i) {
            link.bring(4 * kMiB);
            EXPECT_EQ(link.naps, 0) << bytes_per_ns;
        }
    }
}

// Buffers that are far too small for the naps, and some that are a little too small: that makes bodies slower, and may
// not make naps longer and longer.
TEST(InterruptModeration, FullBuffersShortenTheNaps) {
    const struct {
        double bytes_per_ns, buffer_bytes;
    } cases[] = {{0.6, 48 << 10}, {0.2, 120 << 10}};
    for (const auto& [bytes_per_ns, buffer_bytes] : cases) {
        Link link;
        link.bytes_per_ns = bytes_per_ns;
        link.buffer_bytes = buffer_bytes;
        double all_ns = 0;
        constexpr int kBodies = 200;
        for (int i = 0; i < kBodies; ++i) all_ns += link.bring(kMiB);
        EXPECT_LT(all_ns, 1.15 * kBodies * link.least_ns(kMiB)) << bytes_per_ns;
    }
}

// Where a thread waits there is no nap, so that what is slow meanwhile is not so for naps.
TEST(InterruptModeration, NobodyNapsWhileAThreadWaits) {
    Link link;
    for (int i = 0; i < 3; ++i) link.bring(kMiB);
    link.someone_waits = true;
    link.bytes_per_ns = kGigabit / 2;
    link.bring(kMiB);
    EXPECT_EQ(link.naps, 0);
    EXPECT_EQ(link.moderation.budget(), InterruptModeration::kMaxBytes);
}

TEST(InterruptModeration, TheRateOfTheLinkMayChange) {
    Link link;
    for (const double factor : {1.0, 2.0, 0.05, 8.0, 1.0}) {
        link.bytes_per_ns = factor * kGigabit;
        double late_ns = 0;
        for (int i = 0; i < 40; ++i) late_ns = link.bring(kMiB) / link.least_ns(kMiB);
        EXPECT_LT(late_ns, 1.1) << factor;
        EXPECT_LE(link.wake_ups, 66) << factor;  // segments: 64
    }
}

TEST(InterruptModeration, ASilentSenderIsWaitedForByItsEvent) {
    Link link;
    link.bring(kMiB);
    link.bring(kMiB, 1e9);
    EXPECT_LT(link.naps, 30);
}

TEST(InterruptModeration, BodiesBehindEachOtherAreOneStream) {
    Link link;
    link.bring(kMiB);
    link.asked += 8 * kMiB;
    int naps = 0;
    for (int i = 0; i < 100 && link.arrived < link.asked; ++i) {
        const auto nap_ns = static_cast<double>(link.nap());
        naps += nap_ns != 0;
        link.now_ns += nap_ns != 0 ? nap_ns : link.segment_bytes / kGigabit;
        link.arrived = kMiB + std::min(8.0, std::floor(link.now_ns * kGigabit / kMiB - 1)) * kMiB;
    }
    EXPECT_GT(naps, 60);
    EXPECT_EQ(link.arrived, link.asked);
}

}  // namespace
}  // namespace heddle::fabric

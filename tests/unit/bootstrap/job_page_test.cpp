// The job page: what launcher and library agree on without a common release, so its places are pinned.
#include "bootstrap/job_page.h"

#include <gtest/gtest.h>
#include <climits>
#include <cstddef>
#include <cstring>
#include <memory>

namespace heddle::bootstrap {
namespace {

TEST(Exit, SurvivesPacking) {
    for (ExitRequest request : {ExitRequest::kNone, ExitRequest::kGlobalExit, ExitRequest::kFatal}) {
        for (int pe : {0, 1, kMaxPes - 1, (1 << 24) - 1}) {
            for (int status : {0, 1, 255, 256, -1, INT_MIN, INT_MAX}) {
                const Exit read = Exit::unpack(Exit{request, pe, status}.pack());
                EXPECT_EQ(read.request, request);
                EXPECT_EQ(read.pe, pe);
                EXPECT_EQ(read.status, status);
            }
        }
    }
}

TEST(Exit, NoRequestIsZeroAndEveryOtherIsNot) {
    EXPECT_EQ(Exit{}.pack(), 0u);
    EXPECT_NE((Exit{ExitRequest::kGlobalExit, 0, 0}.pack()), 0u);
}

// A change here is a change of layout: kJobPageMagic must change with it.
TEST(JobPage, Layout) {
    EXPECT_EQ(offsetof(JobPage, magic), 0u);
    EXPECT_EQ(offsetof(JobPage, n_pes), 8u);
    EXPECT_EQ(offsetof(JobPage, cores), 12u);
    EXPECT_EQ(offsetof(JobPage, cpus), 16u);
    EXPECT_EQ(offsetof(JobPage, threads), 144u);
    EXPECT_EQ(offsetof(JobPage, sleepers), 148u);
    EXPECT_EQ(offsetof(JobPage, exit), 152u);
    EXPECT_EQ(offsetof(JobPage, token), 160u);
    EXPECT_EQ(offsetof(JobPage, lost_rails), 168u);
    EXPECT_EQ(offsetof(JobPage, leaving), 172u);
    EXPECT_EQ(offsetof(JobPage, told), 176u);
    EXPECT_EQ(offsetof(JobPage, hang_told), 180u);
    EXPECT_EQ(offsetof(JobPage, races), 184u);
    EXPECT_EQ(offsetof(JobPage, end_told), 188u);
    EXPECT_EQ(offsetof(JobPage, central_barrier), 256u);
    EXPECT_EQ(sizeof(JobPage), 512u);
    EXPECT_EQ(offsetof(PeRecord, state), 0u);
    EXPECT_EQ(offsetof(PeRecord, pid), 4u);
    EXPECT_EQ(offsetof(PeRecord, post), 8u);
    EXPECT_EQ(offsetof(PeRecord, wait_since_ns), 40u);
    EXPECT_EQ(offsetof(PeRecord, wait_address), 48u);
    EXPECT_EQ(offsetof(PeRecord, wait_name), 56u);
    EXPECT_EQ(offsetof(PeRecord, looks), 104u);
    EXPECT_EQ(offsetof(PeRecord, process_namespace), 108u);
    EXPECT_EQ(offsetof(PeRecord, wait_step), 112u);
    EXPECT_EQ(offsetof(PeRecord, left), 120u);
    EXPECT_EQ(offsetof(PeRecord, counters), 128u);
    EXPECT_EQ(offsetof(PeRecord, pe), 320u);
    EXPECT_EQ(offsetof(PeRecord, end), 324u);
    EXPECT_EQ(sizeof(PeRecord), 384u);
    EXPECT_EQ(offsetof(PeAddress, data), 8u);
    EXPECT_EQ(sizeof(PeAddress), 2048u);
    EXPECT_EQ(offsetof(PeStatus, entries), 0u);
    EXPECT_EQ(offsetof(PeStatus, n_calls), 4u);
    EXPECT_EQ(offsetof(PeStatus, waits), 8u);
    EXPECT_EQ(sizeof(WaitState), 512u);
    EXPECT_EQ(sizeof(Waiters), 528u);
    EXPECT_EQ(sizeof(CallRecord), 128u);
    EXPECT_EQ(sizeof(Unacked), 272u);
    EXPECT_EQ(sizeof(PeStatus), 14144u);
    EXPECT_EQ(kJobPageMagic, 0x39656c6464656800u);
    EXPECT_EQ(memcmp(reinterpret_cast<const char*>(&kJobPageMagic) + 1, "heddle9", 7), 0);
}

TEST(JobPage, RecordsAndAddressBlobsFollowThePageAndHaveLinesOfTheirOwn) {
    auto page = std::make_unique<JobPage>();
    page->n_pes = 3;
    EXPECT_EQ(reinterpret_cast<char*>(page->records()) - reinterpret_cast<char*>(page.get()), 512);
    EXPECT_EQ(reinterpret_cast<char*>(page->address_blobs()) - reinterpret_cast<char*>(page.get()), 512 + 3 * 384);
    EXPECT_EQ(reinterpret_cast<char*>(page->statuses()) - reinterpret_cast<char*>(page.get()), 512 + 3 * (384 + 2048));
    EXPECT_EQ(alignof(PeRecord), 64u);
    EXPECT_EQ(alignof(PeAddress), 64u);
}

TEST(JobPage, BytesAreWholePagesThatHoldAllRecords) {
    constexpr size_t kPage = 4096;
    EXPECT_EQ(job_page_bytes(1, kPage), 5 * kPage);
    EXPECT_EQ(job_page_bytes(2, kPage), 9 * kPage);
    EXPECT_EQ(job_page_bytes(2, 16 * kPage), 16 * kPage);
    for (const size_t page : {os::page_bytes(), kPage, 4 * kPage, 16 * kPage})
        for (int n_pes = 1; n_pes <= kMaxPes; ++n_pes) {
            EXPECT_EQ(job_page_bytes(n_pes, page) % page, 0u);
            EXPECT_GE(job_page_bytes(n_pes, page),
                      sizeof(JobPage) +
                          static_cast<size_t>(n_pes) * (sizeof(PeRecord) + sizeof(PeAddress) + sizeof(PeStatus)));
        }
}

TEST(JobPage, NamesOfTheStandardFit) {
    constexpr size_t kLongest = sizeof "shmemx_ctx_ulonglong_atomic_compare_swap_nbe" - 1;
    EXPECT_LT(kLongest, PeRecord::kNameWords * sizeof(uint64_t));
}

}  // namespace
}  // namespace heddle::bootstrap

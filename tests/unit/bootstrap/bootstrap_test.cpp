// How PEs find each other: alone and as threads of this process. The launcher's way is the subject of tests/launcher.
#include "bootstrap/bootstrap.h"
#include "support/pes_as_threads.h"

#include <gtest/gtest.h>
#include <cstring>
#include <string>
#include <thread>

namespace heddle::bootstrap {
namespace {

TEST(Bootstrap, AloneIsAJobOfOne) {
    std::thread([] {
        char error[256] = "";
        ASSERT_TRUE(join(error, sizeof error)) << error;
        EXPECT_EQ(job.pe, 0);
        EXPECT_EQ(job.n_pes, 1);
        EXPECT_FALSE(job.has_launcher);
        EXPECT_EQ(job.page->magic, kJobPageMagic);
        EXPECT_GE(job.page->cores, 1u);
        const JobPage* page = job.page;
        ASSERT_TRUE(join(error, sizeof error));
        EXPECT_EQ(job.page, page) << "a second join does nothing";
        barrier("unit");
        exchange("unit", {1, 2, 3, 4});
        EXPECT_EQ(posted(0), (Post{1, 2, 3, 4}));
    }).join();
}

TEST(Bootstrap, RefusesADescriptorThatIsNotTheLaunchers) {
    setenv(kEnvJobFd, "0", 1);
    setenv(kEnvPe, "0", 1);
    std::thread([] {
        char error[256] = "";
        EXPECT_FALSE(join(error, sizeof error));
        EXPECT_NE(std::string(error).find("HEDDLE_JOB_FD=0"), std::string::npos) << error;
    }).join();
    unsetenv(kEnvJobFd);
    unsetenv(kEnvPe);
}

TEST(Bootstrap, RefusesAPageOfAnotherVersionAndAPeOutOfRange) {
    const int fd = os::create_memory("heddle-unit", job_page_bytes(2));
    auto* page = static_cast<JobPage*>(os::map_shared(fd, 0, job_page_bytes(2)));
    page->magic = kJobPageMagic + 1;
    page->n_pes = 2;
    setenv(kEnvJobFd, std::to_string(fd).c_str(), 1);
    setenv(kEnvPe, "2", 1);
    std::thread([&] {
        char error[256] = "";
        EXPECT_FALSE(join(error, sizeof error));
        EXPECT_NE(std::string(error).find("another version"), std::string::npos) << error;
        page->magic = kJobPageMagic;
        EXPECT_FALSE(join(error, sizeof error));
        EXPECT_NE(std::string(error).find("PEs 0 to 1"), std::string::npos) << error;
        setenv(kEnvPe, "1", 1);
        page->records()[1].pid.store(1);
        EXPECT_FALSE(join(error, sizeof error));
        EXPECT_NE(std::string(error).find("process 1 is PE 1 already"), std::string::npos) << error;
    }).join();
    unsetenv(kEnvJobFd);
    unsetenv(kEnvPe);
}

TEST(Bootstrap, ExchangeGivesAllPostsToAll) {
    test::run_pes(5, [](int pe) {
        for (uint64_t round = 0; round < 200; ++round) {
            exchange("unit", {static_cast<uint64_t>(pe), round, round * 7, ~round});
            for (int other = 0; other < 5; ++other)
                ASSERT_EQ(posted(other), (Post{static_cast<uint64_t>(other), round, round * 7, ~round}));
        }
    });
}

TEST(Bootstrap, TheFirstExitRequestWins) {
    test::run_pes(1, [](int) {
        request_exit(ExitRequest::kGlobalExit, 3);
        request_exit(ExitRequest::kFatal, 1);
        const Exit exit = Exit::unpack(job.page->exit.load());
        EXPECT_EQ(exit.request, ExitRequest::kGlobalExit);
        EXPECT_EQ(exit.status, 3);
    });
}

TEST(Bootstrap, ShowsWhereItWaitsAndThatItNoLongerDoes) {
    test::run_pes(1, [](int) {
        const PeRecord& record = job.record(0);
        const auto name = [&] {
            char text[PeRecord::kNameWords * 8 + 1] = {};
            for (size_t i = 0; i < PeRecord::kNameWords; ++i) {
                const uint64_t word = record.wait_name[i].load();
                memcpy(text + 8 * i, &word, 8);
            }
            return std::string(text);
        };
        show_wait("shmem_barrier_all", &record);
        EXPECT_EQ(name(), "shmem_barrier_all");
        EXPECT_EQ(record.wait_address.load(), reinterpret_cast<uint64_t>(&record));
        EXPECT_NE(record.wait_since_ns.load(), 0u);
        show_wait(std::string(100, 'x').c_str(), nullptr);
        EXPECT_EQ(name(), std::string(47, 'x')) << "long names are cut and end in a zero";
        show_wait(nullptr, nullptr);
        EXPECT_EQ(name(), "");
        EXPECT_EQ(record.wait_since_ns.load(), 0u);
    });
}

}  // namespace
}  // namespace heddle::bootstrap

// A profiled job: threads of all PEs count at once, and what they have counted is what they did.
#include "job.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace heddle::test {
namespace {

class ProfileTest : public JobTest {};

std::string text_of(const std::string& file) {
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

// The sum of all calls of a function, of all its sites.
uint64_t calls_of(const std::string& text, const std::string& function) {
    uint64_t sum = 0;
    const std::string name = "\"function\": \"" + function + "\"", calls = "\"calls\": {\"sum\": ";
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1))
        sum += static_cast<uint64_t>(std::stod(text.substr(text.find(calls, at) + calls.size(), 20)));
    return sum;
}

TEST_P(ProfileTest, CountsWhatAllThreadsDo) {
    const std::string file = testing::TempDir() + "profile_" + std::to_string(getpid()) + ".json";
    setenv("HEDDLE_PROFILE", file.c_str(), 1);
    for (int round = 0; round < 2; ++round) {  // an ended profile is known to nobody
        run_job([&](int pe) {
            // A part for each thread of the job to write, then words that all read and one that all add to.
            const auto threads = static_cast<size_t>(n_pes() * n_threads());
            long* const words = symmetric<long>(500 * threads + 301);
            long* const read = words + 500 * threads;
            run_threads([&](int thread) {
                const int other = (pe + 1 + thread) % n_pes();
                long* const mine = words + 500 * static_cast<size_t>(pe * n_threads() + thread);
                for (int i = 0; i < 500; ++i) shmem_long_p(mine + i, i, other);
                long sum = 0;
                for (int i = 0; i < 300; ++i) sum += shmem_long_g(read + i, other);
                for (int i = 0; i < 50; ++i) shmem_long_atomic_inc(read + 300, other);
                shmem_quiet();
                ASSERT_GE(sum, 0);
            });
            shmem_barrier_all();
        });
        const std::string text = text_of(file);
        const auto threads = static_cast<uint64_t>(n_pes() * n_threads());
        EXPECT_EQ(calls_of(text, "shmem_long_p"), 500 * threads);
        EXPECT_EQ(calls_of(text, "shmem_long_g"), 300 * threads);
        EXPECT_EQ(calls_of(text, "shmem_long_atomic_inc"), 50 * threads);
        EXPECT_EQ(calls_of(text, "shmem_quiet"), threads);
        std::filesystem::remove(file);
    }
    unsetenv("HEDDLE_PROFILE");
}

// Events of a traced job with that name.
uint64_t events_of(const std::string& text, const std::string& function) {
    uint64_t sum = 0;
    const std::string name = "{\"name\": \"" + function + "\"";
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) ++sum;
    return sum;
}

TEST_P(ProfileTest, TracesWhatAllThreadsDo) {
    const std::string file = testing::TempDir() + "trace_" + std::to_string(getpid()) + ".json";
    setenv("HEDDLE_TRACE", file.c_str(), 1);
    for (int round = 0; round < 2; ++round) {
        run_job([&](int pe) {
            auto* const words = symmetric<uint64_t>(static_cast<size_t>(n_threads()));
            long* const lock = symmetric<long>(1);
            run_threads([&](int thread) {
                const int other = (pe + 1) % n_pes();
                for (uint64_t i = 1; i <= 400; ++i) {
                    shmem_uint64_put_signal(words, words, 0, words + thread, i, SHMEM_SIGNAL_SET, other);
                    shmem_signal_wait_until(words + thread, SHMEM_CMP_GE, i);
                    shmem_quiet();
                }
            });
            for (int i = 0; i < 20; ++i) {
                shmem_set_lock(lock);
                shmem_clear_lock(lock);
            }
            shmem_barrier_all();
        });
        const std::string text = text_of(file);
        const auto threads = static_cast<uint64_t>(n_pes() * n_threads());
        EXPECT_EQ(events_of(text, "shmem_uint64_put_signal"), 400 * threads);
        EXPECT_EQ(events_of(text, "shmem_quiet"), 400 * threads);
        EXPECT_EQ(events_of(text, "gives a lock back"), 20 * static_cast<uint64_t>(n_pes()));
        EXPECT_NE(text.find("\"lost_events\": 0"), std::string::npos);
        std::filesystem::remove(file);
    }
    unsetenv("HEDDLE_TRACE");
}
HEDDLE_FOR_ALL_SHAPES(ProfileTest);

}  // namespace
}  // namespace heddle::test

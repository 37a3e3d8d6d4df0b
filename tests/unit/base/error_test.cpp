// Messages: their form, their length, and what ends with them.
#include "base/error.h"
#include "base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <string>

namespace heddle::base {
namespace {

TEST(Complain, NamesThePeOnceThereIsOne) {
    testing::internal::CaptureStderr();
    complain("shmem_init", "no %s", "luck");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "heddle shmem_init: no luck\n");

    message_pe = 3;
    testing::internal::CaptureStderr();
    complain("shmem_long_put", "dest %d", 7);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "heddle [pe 3] shmem_long_put: dest 7\n");
    message_pe = -1;
}

TEST(Complain, CutsAtEveryLengthAndStillEndsTheLine) {
    for (size_t length : {2020u, 2028u, 2029u, 2030u, 2031u, 2040u, 2047u, 2048u, 5000u}) {
        testing::internal::CaptureStderr();
        complain("f", "%s", std::string(length, 'x').c_str());
        const std::string text = testing::internal::GetCapturedStderr();
        EXPECT_LE(text.size(), 2048u);
        EXPECT_GT(text.size(), 2000u);
        EXPECT_EQ(text.find('\0'), std::string::npos) << length;
        EXPECT_EQ(text.find('\n'), text.size() - 1) << length;
    }
}

TEST(Complain, SurvivesAFunctionNameLongerThanTheMessage) {
    testing::internal::CaptureStderr();
    complain(std::string(4000, 'n').c_str(), "lost");
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_LE(text.size(), 2048u);
    EXPECT_EQ(text.back(), '\n');
}

void say_ending() {
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, "ending\n", 7);
}

TEST(FatalDeathTest, PrintsRunsTheHookAndExitsWithOne) {
    EXPECT_EXIT(
        {
            message_pe = 2;
            on_fatal = say_ending;
            fatal("shmem_p", "pe %d is out of range", 9);
        },
        testing::ExitedWithCode(1), "heddle \\[pe 2\\] shmem_p: pe 9 is out of range\nending\n");
}

TEST(Debug, EvaluatesNothingUnlessEnabled) {
    int evaluated = 0;
    HEDDLE_DEBUG("f", "%d", ++evaluated);
    EXPECT_EQ(evaluated, 0);
    debug_enabled = true;
    testing::internal::CaptureStderr();
    HEDDLE_DEBUG("f", "%d", ++evaluated);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "heddle f: 1\n");
    debug_enabled = false;
}

}  // namespace
}  // namespace heddle::base

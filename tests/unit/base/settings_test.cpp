// The settings: sizes as text, choices, flags, old names, and where each value came from.
#include "base/settings.h"
#include "base/spelling.h"

#include <gtest/gtest.h>
#include <cstdlib>
#include <string>
#include <utility>

namespace heddle::base {
namespace {

struct SizeCase {
    const char* text;
    bool right;
    size_t bytes;
};

constexpr size_t kKiB = 1024, kMiB = kKiB * 1024, kGiB = kMiB * 1024, kTiB = kGiB * 1024;

const SizeCase kSizes[] = {
    {"0", true, 0},
    {"1", true, 1},
    {"64", true, 64},
    {"007", true, 7},
    {"12k", true, 12 * kKiB},
    {"12K", true, 12 * kKiB},
    {"12m", true, 12 * kMiB},
    {"12M", true, 12 * kMiB},
    {"2g", true, 2 * kGiB},
    {"2G", true, 2 * kGiB},
    {"3t", true, 3 * kTiB},
    {"3T", true, 3 * kTiB},
    {"1.5G", true, kGiB + kGiB / 2},
    {".5m", true, kMiB / 2},
    {"5.", true, 5},
    {"3.1M", true, 3250586},  // 3250585.6, rounded up as the specification says
    {"0.1", true, 1},
    {"0.0", true, 0},
    {"1.0000001k", true, 1025},
    {"65536T", true, size_t{1} << 56},
    {"1KiB", true, kKiB},  // what follows the control message is ignored
    {"1Megabyte", true, kMiB},
    {"1k!", true, kKiB},
    {"1e3", true, 1000},
    {"12Q", false, 0},
    {"12 M", false, 0},
    {"12b", false, 0},
    {"1e30", false, 0},
    {"65537T", false, 0},
    {"99999999999999999999999999", false, 0},
    {"nan", false, 0},
    {"inf", false, 0},
    {"infinity", false, 0},
    {"", false, 0},
    {" 1", false, 0},
    {"-1", false, 0},
    {"+1", false, 0},
    {"0x10", false, 0},
    {"0X10", false, 0},
    {"M", false, 0},
    {".", false, 0},
    {".M", false, 0},
    {"..5", false, 0},
    {"-.5", false, 0},
};

TEST(ParseBytes, Table) {
    for (const SizeCase& size : kSizes) {
        size_t bytes = 12345;
        EXPECT_EQ(parse_bytes(size.text, &bytes), size.right) << '"' << size.text << '"';
        EXPECT_EQ(bytes, size.right ? size.bytes : 12345) << '"' << size.text << '"';
    }
}

// Each test of this fixture starts without any of the variables of the table.
class SettingsTest : public testing::Test {
  protected:
    void SetUp() override {
#define SETTING(type, field, name, old_name, fallback, help) \
    unsetenv(name);                                          \
    if (const char* old = old_name)                          \
        unsetenv(old);
#include "base/settings.def"
    }

    bool read() {
        error_[0] = '\0';
        return read_settings(&settings_, error_, sizeof error_);
    }

    // What is wrong with one variable of that value; empty when nothing is.
    std::string complaint(const char* name, const char* value) {
        setenv(name, value, 1);
        const bool right = read();
        unsetenv(name);
        return right ? "" : error_;
    }

    static SettingRow row(const std::string& name) {
        SettingRow rows[64];
        const size_t count = setting_rows(rows, 64);
        for (size_t i = 0; i < count; ++i)
            if (name == rows[i].name)
                return rows[i];
        ADD_FAILURE() << "no row " << name;
        return {};
    }

    Settings settings_;
    char error_[256];
};

TEST_F(SettingsTest, Defaults) {
    ASSERT_TRUE(read()) << error_;
    EXPECT_EQ(settings_.symmetric_size, kGiB);
    EXPECT_FALSE(settings_.version);
    EXPECT_FALSE(settings_.info);
    EXPECT_FALSE(settings_.debug);
    EXPECT_FALSE(settings_.check);
    EXPECT_FALSE(settings_.huge_pages);
    EXPECT_FALSE(settings_.first_touch);
    EXPECT_EQ(settings_.barrier, BarrierAlgorithm::kAuto);
    EXPECT_EQ(settings_.monitor, MonitorChoice::kAuto);
    EXPECT_EQ(settings_.spin_us, 50u);
    EXPECT_EQ(settings_.yield_us, 1000u);
}

TEST_F(SettingsTest, OldNameWorksAndNewNameWins) {
    setenv("SMA_SYMMETRIC_SIZE", "2M", 1);
    ASSERT_TRUE(read()) << error_;
    EXPECT_EQ(settings_.symmetric_size, 2 * kMiB);
    EXPECT_STREQ(row("SHMEM_SYMMETRIC_SIZE").origin, "SMA_SYMMETRIC_SIZE");
    EXPECT_STREQ(row("SHMEM_SYMMETRIC_SIZE").value, "2M");

    setenv("SHMEM_SYMMETRIC_SIZE", "3M", 1);
    ASSERT_TRUE(read()) << error_;
    EXPECT_EQ(settings_.symmetric_size, 3 * kMiB);
    EXPECT_STREQ(row("SHMEM_SYMMETRIC_SIZE").origin, "SHMEM_SYMMETRIC_SIZE");
}

TEST_F(SettingsTest, OriginOfADefault) {
    EXPECT_STREQ(row("SHMEM_SYMMETRIC_SIZE").origin, "default");
    EXPECT_STREQ(row("SHMEM_SYMMETRIC_SIZE").value, "1G");
    EXPECT_STREQ(row("SHMEM_SYMMETRIC_SIZE").old_name, "SMA_SYMMETRIC_SIZE");
    EXPECT_EQ(row("HEDDLE_CHECK").old_name, nullptr);
    EXPECT_NE(row("HEDDLE_CHECK").help[0], '\0');
}

TEST_F(SettingsTest, RowsStopAtTheRoomGiven) {
    SettingRow rows[2] = {};
    EXPECT_EQ(setting_rows(rows, 1), 1u);
    EXPECT_EQ(rows[1].name, nullptr);
}

TEST_F(SettingsTest, MalformedSizeNamesVariableValueAndRemedy) {
    const std::string text = complaint("SHMEM_SYMMETRIC_SIZE", "12Q");
    EXPECT_NE(text.find("SHMEM_SYMMETRIC_SIZE=12Q"), std::string::npos) << text;
    EXPECT_NE(text.find("right would be a size"), std::string::npos) << text;
    EXPECT_NE(complaint("SMA_SYMMETRIC_SIZE", "1e30").find("SMA_SYMMETRIC_SIZE=1e30"), std::string::npos);
    EXPECT_NE(complaint("SHMEM_SYMMETRIC_SIZE", ""), "");
}

TEST_F(SettingsTest, ErrorIsCutToItsRoom) {
    setenv("SHMEM_SYMMETRIC_SIZE", std::string(2000, 'x').c_str(), 1);
    char error[32];
    EXPECT_FALSE(read_settings(&settings_, error, sizeof error));
    EXPECT_EQ(std::string(error).size(), sizeof error - 1);
}

TEST_F(SettingsTest, Choices) {
    const char* const words[] = {"auto", "central", "dissemination"};
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(complaint("HEDDLE_BARRIER", words[i]), "");
        EXPECT_EQ(settings_.barrier, static_cast<BarrierAlgorithm>(i));
    }
    for (const char* wrong : {"", "Central", "centra", "centrall", "auto ", "1"}) {
        const std::string text = complaint("HEDDLE_BARRIER", wrong);
        EXPECT_NE(text.find("auto|central|dissemination"), std::string::npos) << '"' << wrong << "\": " << text;
    }
    EXPECT_EQ(complaint("HEDDLE_MONITOR", "fake"), "");
    EXPECT_EQ(settings_.monitor, MonitorChoice::kFake);
}

TEST_F(SettingsTest, Flags) {
    for (const char* off : {"0", "", "no", "NO", "off", "false", "False"}) {
        EXPECT_EQ(complaint("HEDDLE_CHECK", off), "");
        EXPECT_FALSE(settings_.check) << off;
    }
    for (const char* on : {"1", "yes", "YES", "true", "True", "on"}) {
        EXPECT_EQ(complaint("HEDDLE_CHECK", on), "");
        EXPECT_TRUE(settings_.check) << on;
    }
    for (const char* neither : {"y", "n", "disable", "enabled", "00", "2", " ", "yes "}) {
        const std::string text = complaint("HEDDLE_CHECK", neither);
        EXPECT_NE(text.find("is malformed: right would be yes or no"), std::string::npos) << '"' << neither << '"';
    }
    EXPECT_EQ(complaint("SHMEM_DEBUG", "anything"), "") << "as the specification has it";
    EXPECT_TRUE(settings_.debug);
}

TEST_F(SettingsTest, AFlagIsReadAtAnyTime) {
    const std::pair<const char*, bool> words[] = {
        {"1", true}, {"on", true}, {"no", false}, {"", false}, {"maybe", false}};
    for (const auto& [word, is_on] : words) {
        setenv("HEDDLE_ABORT", word, 1);
        EXPECT_EQ(is_set("HEDDLE_ABORT"), is_on) << word;
    }
    unsetenv("HEDDLE_ABORT");
    EXPECT_FALSE(is_set("HEDDLE_ABORT"));
}

TEST_F(SettingsTest, AMisspeltWordIsGuessed) {
    EXPECT_NE(complaint("HEDDLE_BARRIER", "centrall").find("; did you mean central?"), std::string::npos);
    EXPECT_NE(complaint("HEDDLE_BARRIER", "Dissemniation").find("; did you mean dissemination?"), std::string::npos);
    EXPECT_NE(complaint("HEDDLE_PROGRESS", "thread:spni").find("; did you mean thread:spin?"), std::string::npos);
    EXPECT_EQ(complaint("HEDDLE_BARRIER", "tree").find("did you mean"), std::string::npos);
    EXPECT_EQ(complaint("HEDDLE_BARRIER", "").find("did you mean"), std::string::npos);
}

TEST_F(SettingsTest, AMisspeltNameIsRefused) {
    const std::pair<const char*, const char*> names[] = {{"HEDDLE_CHEK", "HEDDLE_CHECK"},
                                                         {"HEDDLE_CHECKS", "HEDDLE_CHECK"},
                                                         {"HEDDLE_chekc", "HEDDLE_CHECK"},
                                                         {"HEDDLE_SYMMETRIC_SIZE", "SHMEM_SYMMETRIC_SIZE"},
                                                         {"HEDDLE_NET_DEVICE", "HEDDLE_NET_DEVICES"},
                                                         {"HEDDLE_DEBUG", "SHMEM_DEBUG"},
                                                         {"SHMEM_SYMETRIC_SIZE", "SHMEM_SYMMETRIC_SIZE"},
                                                         {"SHMEM_SYMMETRICSIZE", "SHMEM_SYMMETRIC_SIZE"},
                                                         {"SHMEM_DEBGU", "SHMEM_DEBUG"},
                                                         {"SMA_SYMMETRIC_SIZ", "SMA_SYMMETRIC_SIZE"}};
    for (const auto& [name, meant] : names)
        EXPECT_EQ(complaint(name, "1"), std::string(name) + " is no setting of Heddle: did you mean " + meant + "?");
    EXPECT_EQ(complaint("HEDDLE_BANANA_TREE", "1"),
              "HEDDLE_BANANA_TREE is no setting of Heddle: heddle-info lists those that are");
    EXPECT_NE(complaint(("HEDDLE_" + std::string(300, 'X')).c_str(), "1").find("is no setting"), std::string::npos);
}

TEST_F(SettingsTest, NamesOfOthersAreLeftAlone) {
    for (const char* name : {"SHMEM_HOME", "SHMEM_INC", "SHMEM_SYMMETRIC_HEAP_SIZE", "SHMEM_BARRIER_ALGORITHM",
                             "SMA_FOO", "SHMEM_ENABLE_NBI", "NVSHMEM_DEBGU", "HEDDLE_PE", "HEDDLE_TEST_ANYTHING",
                             "HEDDLE_ROOT", "HEDDLEX", "SHMEM_", "_", "MY_HEDDLE_CHEK"})
        EXPECT_EQ(complaint(name, "1"), "") << name;
}

// What SETTING has, and what is read beside it, fits the room that callers have.
TEST_F(SettingsTest, ThereIsRoomForAllRows) {
    SettingRow rows[kMaxSettings + 1];
    EXPECT_LT(setting_rows(rows, kMaxSettings + 1), kMaxSettings);
}

TEST(Spelling, Distances) {
    const struct {
        const char *a, *b;
        size_t distance;
    } cases[] = {{"", "", 0},         {"a", "", 1},       {"", "abc", 3},           {"check", "chek", 1},
                 {"ab", "ba", 1},     {"abc", "CBA", 2},  {"kitten", "sitting", 3}, {"debug", "DEBGU", 1},
                 {"abcd", "badc", 2}, {"flat", "fast", 2}};
    for (const auto& one : cases) {
        EXPECT_EQ(spelling_distance(one.a, one.b), one.distance) << one.a << ' ' << one.b;
        EXPECT_EQ(spelling_distance(one.b, one.a), one.distance) << one.b << ' ' << one.a;
    }
    EXPECT_EQ(spelling_distance(std::string(200, 'x').c_str(), "x"), 62u);
}

TEST_F(SettingsTest, Numbers) {
    EXPECT_EQ(complaint("HEDDLE_SPIN_US", "0"), "");
    EXPECT_EQ(settings_.spin_us, 0u);
    EXPECT_EQ(complaint("HEDDLE_SPIN_US", "1000000000"), "");
    EXPECT_EQ(settings_.spin_us, 1000000000u);
    for (const char* wrong : {"", "-1", "+1", " 1", "1 ", "1.5", "1k", "0x1", "1000000001", "99999999999999999999999"})
        EXPECT_NE(complaint("HEDDLE_SPIN_US", wrong).find("a whole number"), std::string::npos) << wrong;
}

// As a program gives one while it runs: the environment has no part in it.
TEST_F(SettingsTest, AChoiceIsFoundByItsWord) {
    setenv("HEDDLE_PROGRESS", "thread", 1);
    const std::string all = "auto|manual|thread|thread:spin|thread:monitor|thread:block";
    int place = 0;
    const auto none = static_cast<Progress>(-1);
    for (const char* word : {"auto", "manual", "thread", "thread:spin", "thread:monitor", "thread:block"}) {
        Progress choice = none;
        const char* words = nullptr;
        EXPECT_TRUE(find_choice("HEDDLE_PROGRESS", word, &choice, &words)) << word;
        EXPECT_EQ(choice, static_cast<Progress>(place++)) << word;
        EXPECT_EQ(words, all);
    }
    for (const char* wrong : {"", "Auto", "auto ", "thread:", "thread:spi", "auto|manual", "|", "0", "block"}) {
        Progress choice = none;
        const char* words = nullptr;
        EXPECT_FALSE(find_choice("HEDDLE_PROGRESS", wrong, &choice, &words)) << '"' << wrong << '"';
        EXPECT_EQ(choice, none) << '"' << wrong << '"';
        ASSERT_NE(words, nullptr) << '"' << wrong << '"';
        EXPECT_EQ(words, all) << "what would be right";
    }
    Progress choice = none;
    const char* words = "";
    EXPECT_FALSE(find_choice("HEDDLE_NO_SUCH_SETTING", "auto", &choice, &words));
    EXPECT_EQ(choice, none);
    unsetenv("HEDDLE_PROGRESS");
}

// What settings.cpp asserts of each row of the table: that a word without an enumerator cannot be compiled, nor a
// default other than the first enumerator. The other words may come in any order.
static_assert(are_words_of<BarrierAlgorithm>("auto|central|dissemination|flat"));
static_assert(are_words_of<BarrierAlgorithm>("auto|flat|central"));
static_assert(!are_words_of<BarrierAlgorithm>("auto|centrall|flat"));
static_assert(!are_words_of<BarrierAlgorithm>("auto|central|fla"));
static_assert(!are_words_of<BarrierAlgorithm>("auto||flat"));
static_assert(!are_words_of<BarrierAlgorithm>("central|auto|flat"));
static_assert(!are_words_of<BarrierAlgorithm>(""));
static_assert(are_words_of<Progress>("auto|thread:spin"));
static_assert(!are_words_of<Progress>("auto|thread:"));
static_assert(enumerator_at("kA, kB", 1) == "kB" && enumerator_at("kA, kB", 2).empty());
static_assert(find_enumerator(enumerators_of(VectorUnit{}), "avx512") == static_cast<int>(VectorUnit::kAvx512));

TEST_F(SettingsTest, AWordMeansTheEnumeratorThatIsSpelledLikeIt) {
    EXPECT_EQ(complaint("HEDDLE_BARRIER", "dissemination"), "");
    EXPECT_EQ(settings_.barrier, BarrierAlgorithm::kDissemination);
    EXPECT_EQ(complaint("HEDDLE_BROADCAST", "pull"), "");
    EXPECT_EQ(settings_.broadcast, CollectiveAlgorithm::kPull);
    EXPECT_EQ(complaint("HEDDLE_COLLECT", "push"), "");
    EXPECT_EQ(settings_.collect, CollectiveAlgorithm::kPush);
    EXPECT_EQ(complaint("HEDDLE_PROGRESS", "thread:block"), "");
    EXPECT_EQ(settings_.progress, Progress::kBlock);
    EXPECT_EQ(complaint("HEDDLE_MONITOR", "fake"), "");
    EXPECT_EQ(settings_.monitor, MonitorChoice::kFake);
    EXPECT_EQ(complaint("HEDDLE_RAIL_LOSS", "continue"), "");
    EXPECT_EQ(settings_.rail_loss, RailLoss::kContinue);
    EXPECT_EQ(word_of(settings_.rail_loss), "continue");
    EXPECT_EQ(word_of(NetTransport::kUcx), "ucx");
    EXPECT_NE(complaint("HEDDLE_COLLECT", "inline"), "") << "an enumerator, but none of its words";
}

}  // namespace
}  // namespace heddle::base

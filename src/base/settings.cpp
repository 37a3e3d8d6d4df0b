#include "base/settings.h"

#include "base/spelling.h"

#include <strings.h>
#include <unistd.h>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>

namespace heddle::base {

HEDDLE_PE_LOCAL Settings settings;

namespace {

struct Found {
    const char* text;
    const char* origin;
    const char* name;
};

// The value in the environment. The new name wins when both are set.
Found find(const char* name, const char* old_name, const char* fallback) {
    if (const char* text = getenv(name))
        return {text, name, name};
    if (const char* text = old_name ? getenv(old_name) : nullptr)
        return {text, old_name, name};
    return {fallback, "default", name};
}

bool parse(const char* text, const char*, size_t* value, const char** right) {
    *right = "a size such as 64M or 1.5G";
    return parse_bytes(text, value);
}

// True when the text is one of the words.
template <size_t kCount>
bool is_one_of(const char* text, const char* const (&words)[kCount]) {
    return std::any_of(std::begin(words), std::end(words), [&](const char* word) { return !strcasecmp(text, word); });
}

// The specification says "any value" for its own flags. For them, only words that clearly mean no switch a flag off.
bool parse_flag(const char* text, const char* name, bool* value, const char** right) {
    *right = "yes or no (on or off, true or false, 1 or 0)";
    const bool is_no = is_one_of(text, {"no", "off", "false", "0", ""});
    *value = !is_no;
    return is_no || !std::string_view(name).starts_with("HEDDLE_") || is_one_of(text, {"yes", "on", "true", "1"});
}

// The enumerator that text, one of `words` ("a|b|c"), means; the default is the list itself, and means its first word.
bool parse_choice(const char* text, const char* words, const char* enumerators, int* number, const char** right) {
    *right = words;
    const std::string_view word = text == words ? first_word(words) : std::string_view(text);
    if (!is_word_of(words, word))
        return false;
    const int found = find_enumerator(enumerators, word);
    *number = found < 0 ? *number : found;
    return found >= 0;
}

template <class T>
bool parse_choice(const char* text, const char* words, T* value, const char** right) {
    int number = 0;
    const bool is_right = parse_choice(text, words, enumerators_of(T{}), &number, right);
    *value = is_right ? static_cast<T>(number) : *value;
    return is_right;
}

// A word without its enumerator, and a default that is not the first enumerator, do not compile.
#define SETTING(type, field, name, old_name, fallback, help)
#define CHOICE(type, field, name, words, help) \
    static_assert(are_words_of<type>(words),   \
                  name ": a word has no enumerator, or the first word is not the first one (base/choices.h)");
#include "base/settings.def"

bool parse(const char* text, const char*, const char** value, const char**) {
    *value = text;
    return true;
}

bool parse_number(const char* text, uint64_t* value, const char** right) {
    *right = "a whole number from 0 to 1000000000";
    char* end = nullptr;
    errno = 0;
    if (!isdigit(static_cast<unsigned char>(text[0])))
        return false;
    *value = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && *value <= 1000000000;
}

// Names of Heddle that are no settings: between launcher and PE, of tools, builds and tests. Also names that a
// cluster's environment modules set for loaded packages.
constexpr const char* kOtherNames[] = {
    "HEDDLE_PE",        "HEDDLE_JOB_FD", "HEDDLE_LIFELINE_FD", "HEDDLE_HANDED_OVER",
    "HEDDLE_JOINED",    "HEDDLE_JOB",    "HEDDLE_WAS_PE",      "HEDDLE_ALL_TESTS",
    "HEDDLE_CC",        "HEDDLE_CXX",    "HEDDLE_BUILD",       "HEDDLE_BUILD_TESTS",
    "HEDDLE_SANITIZER", "HEDDLE_SOURCE", "HEDDLE_DIR",         "HEDDLE_BUILD_FUZZERS",
    "HEDDLE_HOME",      "HEDDLE_ROOT",   "HEDDLE_PREFIX",      "HEDDLE_VERSION",
    "HEDDLE_LIB",       "HEDDLE_INC",    "HEDDLE_DEADLINE",
};
// Settings, and words of settings, that had another name before 0.1. They are refused with the new name.
struct Renamed {
    const char *before, *now;
};
constexpr Renamed kRenamedSettings[] = {
    {"HEDDLE_OVERLAP", "HEDDLE_ASYNC_COPY"},         {"HEDDLE_NET_WIRES", "HEDDLE_NET_CHANNELS"},
    {"HEDDLE_NET_BATCH", "HEDDLE_NET_COALESCE"},     {"HEDDLE_NET_SILENCE_S", "HEDDLE_NET_HEARTBEAT_TIMEOUT_S"},
    {"HEDDLE_NODE_PES", "HEDDLE_TEST_PES_PER_NODE"},
};
constexpr Renamed kRenamedWords[] = {
    {"note", "inline"}, {"mail", "bounce"}, {"slices", "sliced"}, {"batch", "am"}, {"native", "rma"},
};

const char* new_name(const Renamed* begin, const Renamed* end, const char* name) {
    const Renamed* const found =
        std::find_if(begin, end, [&](const Renamed& one) { return strcmp(one.before, name) == 0; });
    return found == end ? nullptr : found->now;
}

constexpr const char* kPrefixOfTests = "HEDDLE_TEST_";

// The part of a name behind "HEDDLE_", "SHMEM_" or "SMA_".
const char* stem(const char* name) {
    return strchr(name, '_') + 1;
}

// The setting that the variable was probably meant to be; null when it is none of Heddle's. Names of other libraries
// begin with SHMEM_ and SMA_, too: these must be nearly equal to a setting's name.
const char* meant_by(const char* name, bool* is_ours) {
    const bool own_prefix = std::string_view(name).starts_with("HEDDLE_");
    *is_ours = own_prefix;
    const size_t letters = strlen(stem(name));
    constexpr size_t kLong = 8;
    Nearest nearest(stem(name), own_prefix ? 1 + letters / 4 : letters < kLong ? 1 : 2);
    SettingRow rows[kMaxSettings];
    const size_t count = setting_rows(rows, kMaxSettings);
    for (size_t i = 0; i < count; ++i)
        for (const char* row : {rows[i].name, rows[i].old_name})
            if (row && (own_prefix || strncmp(row, name, static_cast<size_t>(stem(name) - name)) == 0))
                nearest.offer(stem(row), row);
    *is_ours |= nearest.full() != nullptr;
    return nearest.full();
}

bool is_known(const char* name) {
    SettingRow rows[kMaxSettings];
    const size_t count = setting_rows(rows, kMaxSettings);
    return std::string_view(name).starts_with(kPrefixOfTests) ||
           std::any_of(std::begin(kOtherNames), std::end(kOtherNames),
                       [&](const char* other) { return strcmp(name, other) == 0; }) ||
           std::any_of(rows, rows + count, [&](const SettingRow& row) {
               return strcmp(name, row.name) == 0 || (row.old_name && strcmp(name, row.old_name) == 0);
           });
}

// False, with the reason in error, when a variable was meant for Heddle and has no setting's name.
bool check_names(char* error, size_t error_bytes) {
    for (char** variable = environ; variable && *variable; ++variable) {
        const std::string_view entry = *variable;
        if (!entry.starts_with("HEDDLE_") && !entry.starts_with("SHMEM_") && !entry.starts_with("SMA_"))
            continue;
        char name[64];
        const size_t length = strcspn(*variable, "=");
        snprintf(name, sizeof name, "%.*s", static_cast<int>(std::min(length, sizeof name)), *variable);
        bool is_ours = false;
        if (is_known(name))
            continue;
        const char* const now = new_name(std::begin(kRenamedSettings), std::end(kRenamedSettings), name);
        const char* const meant = now ? now : meant_by(name, &is_ours);
        if (now)
            snprintf(error, error_bytes, "%s has another name now: %s", name, now);
        else if (!is_ours)
            continue;
        else if (meant)
            snprintf(error, error_bytes, "%s is no setting of Heddle: did you mean %s?", name, meant);
        else
            snprintf(error, error_bytes, "%s is no setting of Heddle: heddle-info lists those that are", name);
        return false;
    }
    return true;
}

// "; did you mean push?" when one of the words "a|b|c" is near; otherwise empty.
void suggest(const char* text, const char* words, char* suggestion, size_t bytes) {
    char all[256], *rest = all;
    const size_t letters = strlen(text);
    constexpr size_t kLong = 6;
    Nearest nearest(text, letters < kLong ? 1 : 2);
    const char* const now = new_name(std::begin(kRenamedWords), std::end(kRenamedWords), text);
    bool is_renamed = false;
    snprintf(all, sizeof all, "%s", words);
    while (const char* const word = strtok_r(rest, "|", &rest)) {
        nearest.offer(word, word);
        is_renamed |= now && strcmp(word, now) == 0;
    }
    suggestion[0] = '\0';
    if (is_renamed)
        snprintf(suggestion, bytes, "; %s is called %s now", text, now);
    else if (nearest.full())
        snprintf(suggestion, bytes, "; did you mean %s?", nearest.full());
}

}  // namespace

bool parse_bytes(const char* text, size_t* bytes) {
    // strtod alone would accept "inf", "nan", hexadecimal numbers and signs.
    if (!isdigit(static_cast<unsigned char>(text[0])) &&
        !(text[0] == '.' && isdigit(static_cast<unsigned char>(text[1]))))
        return false;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        return false;
    // In the C locale, because the program's locale may have another decimal point.
    const locale_t c_locale = newlocale(LC_ALL_MASK, "C", locale_t{});
    char* end = nullptr;
    const double number = strtod_l(text, &end, c_locale);
    freelocale(c_locale);
    int shift = 0;
    if (*end != '\0') {
        const char* letters = "kmgt";
        const char* letter = strchr(letters, tolower(static_cast<unsigned char>(*end)));
        if (!letter)
            return false;
        shift = 10 * static_cast<int>(letter - letters + 1);  // what follows the letter is ignored, as specified
    }
    const double product = number * static_cast<double>(uint64_t{1} << shift);
    if (!(product <= static_cast<double>(uint64_t{1} << 56)))
        return false;
    *bytes = static_cast<size_t>(product);
    *bytes += static_cast<double>(*bytes) < product;  // rounded up, as specified
    return true;
}

// A setting that names a file, or says yes to one of a common name, or no.
static void name_file(const char* setting, const char* common, const char** value) {
    bool is_wanted = true;
    if (const char* unused; parse_flag(*value, setting, &is_wanted, &unused))
        *value = is_wanted ? common : "";
}

bool read_settings(Settings* into, char* error, size_t error_bytes) {
    const char* right = "";
    char suggestion[64] = "";
    Found found;
    if (!check_names(error, error_bytes))
        return false;
#define HEDDLE_PARSE_Bytes(words, value) parse(found.text, words, value, &right)
#define HEDDLE_PARSE_Flag(words, value) parse_flag(found.text, found.name, value, &right)
#define HEDDLE_PARSE_Text(words, value) parse(found.text, words, value, &right)
#define HEDDLE_PARSE_Number(words, value) parse_number(found.text, value, &right)
#define HEDDLE_READ(name, old_name, fallback, parsed)                                                            \
    found = find(name, old_name, fallback);                                                                      \
    if (!(parsed)) {                                                                                             \
        if (strchr(fallback, '|'))                                                                               \
            suggest(found.text, fallback, suggestion, sizeof suggestion);                                        \
        snprintf(error, error_bytes, "%s=%s is malformed: right would be %s%s", found.origin, found.text, right, \
                 suggestion);                                                                                    \
        return false;                                                                                            \
    }
#define SETTING(type, field, name, old_name, fallback, help) \
    HEDDLE_READ(name, old_name, fallback, HEDDLE_PARSE_##type(fallback, &into->field))
#define CHOICE(type, field, name, words, help) \
    HEDDLE_READ(name, nullptr, words, parse_choice(found.text, words, &into->field, &right))
#include "base/settings.def"
    into->check |= into->chaos != 0 || into->races;
    name_file("HEDDLE_PROFILE", "heddle-profile.json", &into->profile);
    name_file("HEDDLE_TRACE", "heddle-trace.json", &into->trace);
    into->observed = into->check || into->is_timed();
    return true;
}

bool is_set(const char* name) {
    const char* const text = getenv(name);
    const char* right;
    bool value = false;
    return text && parse_flag(text, name, &value, &right) && value;
}

bool find_choice(const char* name, const char* text, const char* enumerators, int* number, const char** words) {
    SettingRow rows[kMaxSettings];
    const size_t count = setting_rows(rows, kMaxSettings);
    for (size_t i = 0; i < count; ++i)
        if (strcmp(rows[i].name, name) == 0)
            return parse_choice(text, *words = rows[i].fallback, enumerators, number, words);
    return false;
}

size_t setting_rows(SettingRow* rows, size_t max) {
    size_t count = 0;
    Found found;
#define SETTING(type, field, name, old_name, fallback, help) \
    found = find(name, old_name, fallback);                  \
    if (count < max)                                         \
        rows[count++] = {name, old_name, fallback, help, found.text, found.origin};
#include "base/settings.def"
    return count;
}

}  // namespace heddle::base

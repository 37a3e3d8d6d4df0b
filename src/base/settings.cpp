#include "base/settings.h"

#include <strings.h>
#include <cctype>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heddle::base {

HEDDLE_PE_LOCAL Settings settings;

namespace {

struct Found {
    const char* text;
    const char* origin;
};

// The new name wins when both are set.
Found find(const char* name, const char* old_name, const char* fallback) {
    if (const char* text = getenv(name))
        return {text, name};
    if (const char* text = old_name ? getenv(old_name) : nullptr)
        return {text, old_name};
    return {fallback, "default"};
}

bool parse(const char* text, const char*, size_t* value, const char** right) {
    *right = "a size such as 64M or 1.5G";
    return parse_bytes(text, value);
}

// The specification says "any value" for its flags; only words that clearly mean no switch one off.
bool parse(const char* text, const char*, bool* value, const char**) {
    *value = strcasecmp(text, "no") != 0 && strcasecmp(text, "off") != 0 && strcasecmp(text, "false") != 0 &&
             strcmp(text, "0") != 0 && text[0] != '\0';
    return true;
}

// The place of text in `words` ("a|b|c"); the default is the list itself, and means its first word.
bool parse(const char* text, const char* words, int* value, const char** right) {
    *right = words;
    const size_t length = text == words ? strcspn(text, "|") : strlen(text);
    int place = 0;
    for (const char* word = words; *word; ++place) {
        const size_t word_length = strcspn(word, "|");
        if (word_length == length && strncmp(word, text, length) == 0) {
            *value = place;
            return true;
        }
        word += word_length;
        word += *word == '|';
    }
    return false;
}

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

}  // namespace

bool parse_bytes(const char* text, size_t* bytes) {
    // strtod alone would take "inf", "nan", hexadecimal and signs.
    if (!isdigit(static_cast<unsigned char>(text[0])) &&
        !(text[0] == '.' && isdigit(static_cast<unsigned char>(text[1]))))
        return false;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        return false;
    // In the C locale: a program's own may have another decimal point.
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

bool read_settings(Settings* into, char* error, size_t error_bytes) {
    const char* right = "";
    Found found;
#define HEDDLE_PARSE_Bytes(words, value) parse(found.text, words, value, &right)
#define HEDDLE_PARSE_Flag(words, value) parse(found.text, words, value, &right)
#define HEDDLE_PARSE_Text(words, value) parse(found.text, words, value, &right)
#define HEDDLE_PARSE_Choice(words, value) parse(found.text, words, value, &right)
#define HEDDLE_PARSE_Number(words, value) parse_number(found.text, value, &right)
#define SETTING(type, field, name, old_name, fallback, help)                                                    \
    found = find(name, old_name, fallback);                                                                     \
    if (!HEDDLE_PARSE_##type(fallback, &into->field)) {                                                         \
        snprintf(error, error_bytes, "%s=%s is malformed: right would be %s", found.origin, found.text, right); \
        return false;                                                                                           \
    }
#include "base/settings.def"
#undef SETTING
    return true;
}

bool find_choice(const char* name, const char* text, int* choice, const char** words) {
    SettingRow rows[64];
    const size_t count = setting_rows(rows, 64);
    for (size_t i = 0; i < count; ++i)
        if (strcmp(rows[i].name, name) == 0)
            return parse(text, *words = rows[i].fallback, choice, words);
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
#undef SETTING
    return count;
}

}  // namespace heddle::base

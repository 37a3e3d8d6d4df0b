// The settings of a job, read from the environment once, at init. Their table: settings.def.
#pragma once

#include "base/choices.h"
#include "base/pe_local.h"

#include <cstddef>
#include <cstdint>

namespace heddle::base {

struct Settings {
    using Bytes = size_t;
    using Flag = bool;
    using Number = uint64_t;
    using Text = const char*;  // points into the environment, which programs must not change
#define SETTING(type, field, name, old_name, fallback, help) type field;
#include "base/settings.def"

    // The program's operations take the slow path, where an observer may be told of them (operations/observer.h): in
    // checked runs, where the run is profiled or traced, and where operations are called out of line
    // (operations/out_of_line.h).
    bool observed;
    bool is_profiled() const { return profile[0] != '\0'; }
    bool is_traced() const { return trace[0] != '\0'; }
    bool is_timed() const { return is_profiled() || is_traced(); }
};

// Of this PE; set by init.
extern HEDDLE_PE_LOCAL Settings settings;

constexpr size_t kMaxSettings = 64;

// A row of the table with its present value.
struct SettingRow {
    const char* name;
    const char* old_name;  // a deprecated name that still works; or null
    const char* fallback;  // the default as text; for a choice all words, the default first
    const char* help;
    const char* value;   // in effect; for a choice left at its default, the list of words
    const char* origin;  // "default", or the name of the variable that set it
};

// Reads the environment. False when a value is malformed, or a variable looks like a setting of Heddle but is none.
// error then names the variable, and what would be right. Not thread-safe: the environment must not change meanwhile.
bool read_settings(Settings* into, char* error, size_t error_bytes);

// The value of a flag of the table, at any time, also before init. False when its value is malformed.
bool is_set(const char* name);

// The rows with their present values, for heddle-info and SHMEM_INFO. Returns the number of rows; at most max are
// written. rows[i] is valid until the environment changes.
size_t setting_rows(SettingRow* rows, size_t max);

// What a choice, the setting of that name, is when its text is this: false when it is none, and then *words are those
// that are right. enumerators: those of its enum. *number: the enumerator's.
bool find_choice(const char* name, const char* text, const char* enumerators, int* number, const char** words);
template <class T>
bool find_choice(const char* name, const char* text, T* choice, const char** words) {
    int number = 0;
    if (!find_choice(name, text, enumerators_of(T{}), &number, words))
        return false;
    *choice = static_cast<T>(number);
    return true;
}

// Parses a size in the form of SHMEM_SYMMETRIC_SIZE ("1.5g"), rounded up to whole bytes. False when malformed or beyond
// 2^56.
bool parse_bytes(const char* text, size_t* bytes);

}  // namespace heddle::base

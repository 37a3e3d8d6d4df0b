// Reason: why a step of joining a job has failed, as text for the PE's message. Threads: those of its owner.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdio>

namespace heddle::bootstrap {

// Where to write why something has failed.
struct Reason {
    char* text;
    size_t bytes;
    // Writes the text, and returns false.
    __attribute__((format(printf, 2, 3))) bool fail(const char* format, ...) const {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, bytes, format, arguments);
        va_end(arguments);
        return false;
    }
};

}  // namespace heddle::bootstrap

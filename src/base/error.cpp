#include "base/error.h"

#include <unistd.h>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace heddle::base {

HEDDLE_PE_LOCAL int message_pe = -1;
HEDDLE_PE_LOCAL void (*on_fatal)() = nullptr;

namespace {

constexpr int kMessageBytes = 2048;  // longer messages are cut

void print(const char* function, const char* format, va_list arguments) {
    char text[kMessageBytes];
    int used = message_pe >= 0 ? snprintf(text, sizeof text, "heddle [pe %d] %s: ", message_pe, function)
                               : snprintf(text, sizeof text, "heddle %s: ", function);
    if (used < kMessageBytes - 1)
        used += vsnprintf(text + used, static_cast<size_t>(kMessageBytes - used - 1), format, arguments);
    if (used > kMessageBytes - 2)
        used = kMessageBytes - 2;
    text[used] = '\n';
    // A closed or full stderr must not keep a failing PE alive.
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text, static_cast<size_t>(used) + 1);
}

}  // namespace

void complain(const char* function, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print(function, format, arguments);
    va_end(arguments);
}

void fatal(const char* function, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print(function, format, arguments);
    va_end(arguments);
    if (on_fatal)
        on_fatal();
    _exit(1);
}

}  // namespace heddle::base

#include "base/error.h"

#include "base/place.h"
#include "base/settings.h"
#include "base/source_line.h"

#include <unistd.h>
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heddle::base {

HEDDLE_PE_LOCAL int message_pe = -1;
HEDDLE_PE_LOCAL void (*on_fatal)() = nullptr;

namespace {

constexpr size_t kMessageBytes = 2048;  // longer messages are cut

struct Message {
    char text[kMessageBytes];  // followed by room for the end of the line
    size_t used = 0;

    void add(const char* format, va_list arguments) {
        const int length = vsnprintf(text + used, kMessageBytes - used, format, arguments);
        used = std::min(used + static_cast<size_t>(std::max(length, 0)), kMessageBytes - 2);
        text[used] = '\0';
    }
    __attribute__((format(printf, 2, 3))) void add(const char* format, ...) {
        va_list arguments;
        va_start(arguments, format);
        add(format, arguments);
        va_end(arguments);
    }
    void begin(const char* function, const char* format, va_list arguments) {
        if (message_pe >= 0)
            add("heddle [pe %d] %s: ", message_pe, function);
        else
            add("heddle %s: ", function);
        add(format, arguments);
    }
    // Unless the message names the place itself.
    void add_caller() {
        const PlaceText place = describe(find_caller());
        if (place[0] != '\0' && !strstr(text, place.data()))
            add(" (called at %s)", place.data());
    }
    void print() {
        text[used] = '\n';
        // A closed or full stderr must not keep a failing PE alive.
        [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text, used + 1);
    }
};

}  // namespace

void complain(const char* function, const char* format, ...) {
    Message message;
    va_list arguments;
    va_start(arguments, format);
    message.begin(function, format, arguments);
    va_end(arguments);
    message.add_caller();
    message.print();
}

void report(const char* subject, const char* format, ...) {
    Message message;
    va_list arguments;
    va_start(arguments, format);
    message.begin(subject, format, arguments);
    va_end(arguments);
    message.print();
}

void fatal(const char* function, const char* format, ...) {
    Message message, with_lines;
    va_list arguments;
    va_start(arguments, format);
    message.begin(function, format, arguments);
    va_end(arguments);
    message.add_caller();
    if (settings.chaos != 0)
        message.add(" (HEDDLE_CHAOS=%llu)", static_cast<unsigned long long>(settings.chaos));
    add_source_lines(message.text, with_lines.text, kMessageBytes - 1);
    with_lines.used = strlen(with_lines.text);
    with_lines.print();
    if (is_set("HEDDLE_ABORT"))
        abort();
    if (on_fatal)
        on_fatal();
    _exit(1);
}

}  // namespace heddle::base

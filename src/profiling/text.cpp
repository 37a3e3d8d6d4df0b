#include "profiling/text.h"

#include <cstdarg>
#include <cstdio>

namespace heddle::profiling {

std::string print(const char* format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    std::string text(static_cast<size_t>(vsnprintf(nullptr, 0, format, arguments)), '\0');
    vsnprintf(text.data(), text.size() + 1, format, again);
    va_end(again);
    va_end(arguments);
    return text;
}

}  // namespace heddle::profiling

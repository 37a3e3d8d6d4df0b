#include "profiling/text.h"

#include "base/error.h"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace heddle::profiling {

namespace {

// The bytes of the letter that begins there in UTF-8; 0: none does.
size_t letter_bytes(const std::string& value, size_t at) {
    const auto first = static_cast<unsigned char>(value[at]);
    const size_t n = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : 4;
    if (n == 4 && (first < 0xf0 || first > 0xf4))
        return 0;
    // Neither longer than needed, nor a surrogate, nor beyond the last letter.
    const auto second = static_cast<unsigned char>(at + 1 < value.size() ? value[at + 1] : '\0');
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) || (first == 0xf0 && second < 0x90) ||
        (first == 0xf4 && second > 0x8f))
        return 0;
    for (size_t i = 1; i < n; ++i)
        if (at + i >= value.size() || (static_cast<unsigned char>(value[at + i]) & 0xc0) != 0x80)
            return 0;
    return n;
}

}  // namespace

std::string quoted(const std::string& value) {
    std::string text = "\"";
    for (size_t i = 0; i < value.size();) {
        const size_t n = letter_bytes(value, i);
        const char c = value[i];
        if (n == 0)
            text += "\\ufffd";
        else if (n == 1 && static_cast<unsigned char>(c) < 0x20)
            text += print("\\u%04x", c);
        else
            text.append(c == '"' || c == '\\' ? "\\" : "").append(value, i, n);
        i += std::max<size_t>(n, 1);
    }
    return text + '"';
}

bool write_file(const char* setting, const char* name, const std::function<bool(FILE*)>& write) {
    FILE* const file = fopen(name, "w");
    bool is_written = file && write(file);
    const int error = errno;
    is_written = (!file || fclose(file) == 0) && is_written;
    if (!is_written)
        base::report(setting, "%s cannot be written: %s", name, strerror(error));
    return is_written;
}

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

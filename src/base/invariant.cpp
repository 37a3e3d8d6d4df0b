#include "base/invariant.h"

#include "base/error.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace heddle::base {

namespace {

// The file as it is named in the source tree, whatever folder that is in.
const char* name_in_tree(const char* file) {
    const char* name = file;
    for (const char* at = file; (at = strstr(at, "/src/")) != nullptr; ++at) name = at + 1;
    return name;
}

}  // namespace

void invariant_failed(const char* function, const char* file, int line, const char* condition, const char* format,
                      ...) {
    char values[512] = "";
    if (format) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(values, sizeof values, format, arguments);
        va_end(arguments);
    }
    fatal(function, "%s:%d: an invariant of Heddle does not hold: %s%s%s", name_in_tree(file), line, condition,
          values[0] == '\0' ? "" : ": ", values);
}

}  // namespace heddle::base

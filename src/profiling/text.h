// Text by printf's formats, for pages and messages.
#pragma once

#include <string>

namespace heddle::profiling {

__attribute__((format(printf, 1, 2))) std::string print(const char* format, ...);

}  // namespace heddle::profiling

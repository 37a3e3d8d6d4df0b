// Text by printf's formats, for pages and messages.
#pragma once

#include <string>

namespace heddle::profiling {

__attribute__((format(printf, 1, 2))) std::string print(const char* format, ...);

// As a string of JSON, with its quotes. Of what is no UTF-8, each byte is shown as the replacement character.
std::string quoted(const std::string& value);

}  // namespace heddle::profiling

// Text by printf's formats, for pages and messages.
#pragma once

#include <clocale>
#include <cstdio>
#include <functional>
#include <string>

namespace heddle::profiling {

__attribute__((format(printf, 1, 2))) std::string print(const char* format, ...);

// The calling thread writes numbers as C does, while it lives: the program's locale may have another decimal point.
class NumberFormat {
  public:
    NumberFormat() : own_(newlocale(LC_ALL_MASK, "C", locale_t{})), before_(uselocale(own_)) {}
    ~NumberFormat() {
        uselocale(before_);
        freelocale(own_);
    }
    NumberFormat(const NumberFormat&) = delete;
    NumberFormat& operator=(const NumberFormat&) = delete;

  private:
    const locale_t own_, before_;
};

// Writes a file that a setting names. False, behind a message, where that cannot be.
bool write_file(const char* setting, const char* name, const std::function<bool(FILE*)>& write);

// As a string of JSON, with its quotes. Of what is no UTF-8, each byte is shown as the replacement character.
std::string quoted(const std::string& value);

}  // namespace heddle::profiling

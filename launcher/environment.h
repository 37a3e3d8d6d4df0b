// The environment of a program that is to be started, apart from the launcher's own. Threads: one.
#pragma once

#include <string>
#include <vector>

#include "options.h"

namespace heddle::launcher {

class Environment {
  public:
    // This process's environment, and the program's variables (-x).
    explicit Environment(const Program& program);

    void set(const std::string& name, const std::string& value);
    const char* get(const std::string& name) const;  // null: not set

    // NAME=VALUE each, null last, as exec takes them. Valid until the next set().
    char** words();

  private:
    std::vector<std::string> variables_;
    std::vector<char*> words_;
};

}  // namespace heddle::launcher

#include "environment.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace heddle::launcher {

Environment::Environment(const Program& program) {
    for (char** variable = environ; variable && *variable; ++variable) variables_.push_back(*variable);
    for (const auto& [name, value] : program.environment) set(name, value);
}

void Environment::set(const std::string& name, const std::string& value) {
    const std::string begin = name + "=";
    const auto is_it = [&](const std::string& variable) { return variable.compare(0, begin.size(), begin) == 0; };
    variables_.erase(std::remove_if(variables_.begin(), variables_.end(), is_it), variables_.end());
    variables_.push_back(begin + value);
}

const char* Environment::get(const std::string& name) const {
    const std::string begin = name + "=";
    for (const std::string& variable : variables_)
        if (variable.compare(0, begin.size(), begin) == 0)
            return variable.c_str() + begin.size();
    return nullptr;
}

char** Environment::words() {
    words_.clear();
    for (std::string& variable : variables_) words_.push_back(variable.data());
    words_.push_back(nullptr);
    return words_.data();
}

}  // namespace heddle::launcher

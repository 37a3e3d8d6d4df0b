// Which class of a NAS Parallel Benchmark a program solves: as --class says, else --size.
#pragma once

#include <cstddef>
#include <string>

#include "apps/common/problem_size.hpp"

namespace shmem_mt {

// `classes` begin with S, W and A. Ends the program when none of them is asked for.
template <class Class, size_t N>
const Class& class_of(const char* program, const Options& options, const Class (&classes)[N]) {
    static_assert(N >= 3);
    if (options.problem.empty() && !is_size_name(options.size))
        usage_error(program, "--size " + options.size + ": there are tiny (class S), small (W), medium and large (A)");
    if (options.problem.empty())
        return classes[size_of(options, {0, 1, 2, 2})];
    std::string names;
    for (const Class& entry : classes) {
        if (options.problem == entry.name)
            return entry;
        names += (names.empty() ? "" : ", ") + std::string(entry.name);
    }
    usage_error(program, "--class: there is no class " + options.problem + "; there are " + names);
}

}  // namespace shmem_mt

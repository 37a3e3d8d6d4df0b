// Which class of a NAS Parallel Benchmark a program solves: as --class says, else --size.
#pragma once

#include <cstddef>
#include <string>

#include "apps/common/problem_size.hpp"

namespace shmem_mt {

// Whether a problem that grows with PEs and threads is asked for, and so skipped: classes have one size.
inline bool skips_weak(const Job& job, const char* benchmark) {
    if (is_weak(job.options()))
        job.skip(benchmark, "--scale weak", "the classes of the NAS Parallel Benchmarks have sizes of their own");
    return is_weak(job.options());
}

// `classes` begin with S, W, A, B and C. Ends the program when none of them is asked for.
template <class Class, size_t N>
const Class& class_of(const char* program, const Options& options, const Class (&classes)[N]) {
    static_assert(N >= 5);
    if (options.problem.empty() && !is_size_name(options.size))
        usage_error(program,
                    "--size " + options.size + ": there are tiny (class S), small (W), medium (A) and large (C)");
    if (options.problem.empty())
        return classes[size_of(options, {0, 1, 2, 4})];
    std::string names;
    for (const Class& entry : classes) {
        if (options.problem == entry.name)
            return entry;
        names += (names.empty() ? "" : ", ") + std::string(entry.name);
    }
    usage_error(program, "--class: there is no class " + options.problem + "; there are " + names);
}

}  // namespace shmem_mt

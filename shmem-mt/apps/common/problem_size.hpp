// How large a problem is, as --size says: by name, from a fraction of a second (tiny, for tests) over about a second
// (small) and ten (medium) to minutes (large), or as a number of what the mini-app counts: an edge, keys, particles.
#pragma once

#include <cstdlib>
#include <string>

#include "programs/common/options.hpp"

namespace shmem_mt {

// What the names stand for in one mini-app.
struct Sizes {
    long tiny, small, medium, large;
};

inline long size_of(const Options& options, const Sizes& sizes) {
    const long named[] = {sizes.tiny, sizes.small, sizes.medium, sizes.large};
    for (size_t i = 0; i < std::size(named); ++i) {
        if (options.size == kSizeNames[i])
            return named[i];
    }
    return static_cast<long>(std::strtod(options.size.c_str(), nullptr));  // parse_options has seen to it
}

}  // namespace shmem_mt

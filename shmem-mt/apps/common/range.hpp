// Half-open ranges of whole numbers (rows, keys, slices), and how threads or PEs share one.
#pragma once

namespace shmem_mt {

struct Range {
    long begin, end;

    long length() const { return end - begin; }

    // The part of one of `sharers`; they take all of it, and none has more than one piece more than another.
    Range share(int index, int sharers) const {
        return {begin + length() * index / sharers, begin + length() * (index + 1) / sharers};
    }
};

}  // namespace shmem_mt

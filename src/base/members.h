// The members of a team, and of its contexts, as PEs of the world.
#pragma once

namespace heddle::base {

// The PEs of a team by rank: start, start + stride, ... of the world. With a list: list[start], list[start + stride],
// ..., because the members on one node need not be evenly spaced.
struct Members {
    int start = 0;
    int stride = 1;
    int size = 0;
    const int* list = nullptr;

    int pe(int rank) const {
        const int at = start + rank * stride;
        return list ? list[at] : at;
    }
    // The rank of a PE of the world, or -1.
    int rank(int pe) const {
        for (int rank = 0; list && rank < size; ++rank)
            if (this->pe(rank) == pe)
                return rank;
        if (list)
            return -1;
        if (stride == 0)
            return pe == start ? 0 : -1;
        const int rank = (pe - start) / stride;
        return rank >= 0 && rank < size && this->pe(rank) == pe ? rank : -1;
    }
};

}  // namespace heddle::base

// A table that is spread evenly over all PEs, and where in it a random number points.
#pragma once

#include <cstdint>

#include "apps/common/untouched.hpp"
#include "programs/common/job.hpp"

namespace shmem_mt {

struct TablePlace {
    int pe;
    long word;  // of that PE's part
};

class GupsTable {
  public:
    // `words` on each PE. Collective.
    GupsTable(Job& job, long words)
        : pes_(job.n_pes()), words_(words), part_(shared_symmetric_alloc(job, 8 * static_cast<size_t>(words))) {}

    long words() const { return words_; }  // of each PE
    long all_words() const { return words_ * pes_; }
    uint64_t* bits() const { return static_cast<uint64_t*>(part_); }
    long* longs() const { return static_cast<long*>(part_); }

    // The highest bits decide, whatever the number of PEs and words: all places are as likely.
    TablePlace place(uint64_t random) const {
        const Wide scaled = static_cast<Wide>(random) * static_cast<uint64_t>(pes_);
        const Wide rest = static_cast<Wide>(static_cast<uint64_t>(scaled)) * static_cast<uint64_t>(words_);
        return {static_cast<int>(scaled >> 64), static_cast<long>(rest >> 64)};
    }

  private:
    __extension__ using Wide = unsigned __int128;

    const int pes_;
    const long words_;
    void* const part_;
};

}  // namespace shmem_mt

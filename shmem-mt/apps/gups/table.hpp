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
    // `asked`: the words of all PEs; rounded up, so that each PE has as many. Collective.
    GupsTable(Job& job, long asked)
        : pes_(job.n_pes()),
          asked_(asked),
          words_((asked + pes_ - 1) / pes_),
          part_(shared_symmetric_alloc(job, sizeof(uint64_t) * static_cast<size_t>(words_))) {}

    long asked() const { return asked_; }
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
    const long asked_, words_;
    void* const part_;
};

}  // namespace shmem_mt

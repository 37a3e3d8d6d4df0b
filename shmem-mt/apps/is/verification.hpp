// The check of an integer sort. The tested keys have the published ranks in every iteration. And the ranks sort: behind
// the last iteration every PE puts the keys that it has ranked where their ranks say. Then no place is empty, the keys
// rise from place to place and from PE to PE, and their number and sum are those of the start.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "apps/is/sort.hpp"
#include "programs/common/validation.hpp"

namespace shmem_mt {

class IsVerification {
  public:
    // Collective.
    explicit IsVerification(Job& job)
        : job_(job), parts_(static_cast<Part*>(symmetric_alloc(sizeof(Part) * static_cast<size_t>(job.n_pes())))) {}

    // Collective; a barrier.
    void check(const IsSort& sort, const IsClass& problem, Checker& checker) {
        Part mine = sorted(sort);
        for (int iteration = 1; iteration <= kIsIterations; ++iteration) {
            for (int i = 0; i < kIsTested; ++i) {
                const long found = sort.found(iteration, i);
                if (found < 0)
                    continue;
                checker.compare_word(found, right_rank(problem.tested[i], iteration));
                ++mine.tested;
            }
        }
        mine.given = std::accumulate(sort.keys().begin(), sort.keys().end(), 0L);
        for (int pe = 0; pe < job_.n_pes(); ++pe) shmem_putmem(parts_ + job_.me(), &mine, sizeof mine, pe);
        shmem_barrier_all();
        const Part whole = joined_parts();
        checker.compare_word(whole.tested, kIsIterations * kIsTested);
        checker.compare_word(whole.count, problem.keys());
        checker.compare_word(whole.sum, whole.given);
        checker.compare_word(whole.rises, 1);
    }

  private:
    // What a PE has ranked.
    struct Part {
        long count;              // of keys
        long sum;                // of keys
        long rises;              // whether they do, without an empty place
        long smallest, largest;  // where there are any
        long given;              // the sum of the keys that were this PE's to be sorted
        long tested;             // how many ranks were compared
    };

    static Part sorted(const IsSort& sort) {
        const Range ranks = sort.ranks(), range = sort.ranked();
        constexpr int32_t kEmpty = -1;
        std::vector<int32_t> places(static_cast<size_t>(ranks.length()), kEmpty);
        std::vector<long> same(static_cast<size_t>(range.length()), 0);  // how often a key has come
        Part part{0, 0, 1, 0, 0, 0, 0};
        sort.for_ranked([&](int32_t key) {
            ++part.count;
            part.sum += key;
            const bool known = key >= range.begin && key < range.end;
            const long rank = known ? sort.rank(key) + same[static_cast<size_t>(key - range.begin)]++ : ranks.end;
            if (rank >= ranks.begin && rank < ranks.end)
                places[static_cast<size_t>(rank - ranks.begin)] = key;
        });
        if (places.empty())
            return part;
        part.rises = places.front() != kEmpty && std::is_sorted(places.begin(), places.end());
        part.smallest = places.front();
        part.largest = places.back();
        return part;
    }

    Part joined_parts() const {
        Part whole{0, 0, 1, 0, 0, 0, 0};
        for (int pe = 0; pe < job_.n_pes(); ++pe) {
            const Part& part = parts_[pe];
            whole.given += part.given;
            whole.tested += part.tested;
            if (part.count == 0)
                continue;
            whole.rises = whole.rises && part.rises && part.smallest >= whole.largest;
            whole.count += part.count;
            whole.sum += part.sum;
            whole.largest = part.largest;
        }
        return whole;
    }

    Job& job_;
    Part* const parts_;  // one a PE
};

}  // namespace shmem_mt

// What elements of one PE add to rows of other PEs. The matrix entries are announced once; then only values travel into
// the owner's inbox, each thread's share of a block through its own context with a signal. The owner adds the blocks up
// in the order of the PEs, whichever comes first, so sums do not depend on time or threads.
//
// There is one inbox: a barrier of all PEs must lie between two gatherings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "apps/common/largest.hpp"
#include "apps/common/range.hpp"
#include "apps/common/signals.hpp"
#include "programs/common/job.hpp"

namespace shmem_mt {

class FeContributions {
  public:
    // An entry of the matrix, by numbers.
    struct Entry {
        int32_t row, column;
    };
    static_assert(sizeof(Entry) == sizeof(double), "entries are told through the inbox of the values");

    // `sends`: what this PE adds to, by row; `firsts`: the first row of each PE, and the end. Collective.
    FeContributions(Job& job, const std::vector<Entry>& sends, const std::vector<long>& firsts)
        : job_(job), route_(job.own_route()) {
        find_blocks(sends, firsts);
        find_places();
        for (size_t i = 0; i < sent_.size(); ++i)
            shmem_putmem(inbox_ + places_[i].first, &sends[static_cast<size_t>(sent_[i].entries.begin)],
                         sizeof(Entry) * static_cast<size_t>(sent_[i].entries.length()), sent_[i].pe);
        shmem_barrier_all();
        const auto* const told = reinterpret_cast<const Entry*>(inbox_);
        received_.assign(told, told + (from_.empty() ? 0 : from_.back().entries.end));
        shmem_barrier_all();
    }

    FeContributions(const FeContributions&) = delete;
    FeContributions& operator=(const FeContributions&) = delete;

    // What others add to this PE's rows. An entry may be there once from each of them.
    const std::vector<Entry>& received() const { return received_; }

    // `values` of the entries that are sent, which all threads have written, before a barrier. Adds those that come:
    // add(which of received(), value). All threads; what is added is there, and `values` may change, behind a barrier.
    template <class Add>
    void gather(int thread, const double* values, Add&& add) {
        const uint64_t round = ++rounds_[static_cast<size_t>(thread)].count;
        job_.with_link(route_, thread, [&](const auto& link) {
            for (size_t i = 0; i < sent_.size(); ++i) {
                const Range part = sent_[i].entries.share(thread, job_.threads());
                if (part.length() == 0 || job_.options().fault == Fault::kSkippedOperation)
                    continue;
                double* const dest = inbox_ + places_[i].first + part.begin - sent_[i].entries.begin;
                put_and_signal_nbi(link, dest, values + part.begin, sizeof(double) * static_cast<size_t>(part.length()),
                                   signal(places_[i].sender, thread), round, sent_[i].pe);
            }
        });
        for (size_t i = 0; i < from_.size(); ++i) {
            const Range part = from_[i].entries.share(thread, job_.threads());
            if (part.length() > 0 && job_.options().fault != Fault::kSkippedOperation) {
                await_signal(signal(static_cast<long>(i), thread), round);
                for (long k = part.begin; k < part.end; ++k) add(static_cast<size_t>(k), inbox_[k]);
            }
            job_.team().barrier();  // another thread may add to the same entry from the next one
        }
        job_.with_link(route_, thread, [](const auto& link) { link.quiet(); });  // `values` may change
    }

  private:
    struct Block {
        int pe;
        Range entries;
    };
    // Where an owner has this PE's block in its inbox, and this PE among those that send to it.
    struct Place {
        long first, sender;
    };
    struct alignas(64) Round {
        uint64_t count = 0;
    };

    void find_blocks(const std::vector<Entry>& sends, const std::vector<long>& firsts) {
        for (long i = 0; i < static_cast<long>(sends.size()); ++i) {
            const auto behind = std::upper_bound(firsts.begin(), firsts.end(), sends[static_cast<size_t>(i)].row);
            const int pe = static_cast<int>(behind - firsts.begin()) - 1;
            if (sent_.empty() || sent_.back().pe != pe)
                sent_.push_back({pe, {i, i}});
            sent_.back().entries.end = i + 1;
        }
    }

    // Senders say how much they have, owners where to put it. Collective.
    void find_places() {
        const size_t pes = static_cast<size_t>(job_.n_pes());
        auto* const lengths = static_cast<long*>(symmetric_alloc(pes * sizeof(long)));
        auto* const places = static_cast<Place*>(symmetric_alloc(pes * sizeof(Place)));
        for (const Block& block : sent_) shmem_long_p(lengths + job_.me(), block.entries.length(), block.pe);
        shmem_barrier_all();
        long all = 0;
        for (int pe = 0; pe < job_.n_pes(); ++pe) {
            if (lengths[pe] == 0)
                continue;
            const Place place{all, static_cast<long>(from_.size())};
            shmem_putmem(places + job_.me(), &place, sizeof place, pe);
            from_.push_back({pe, {all, all + lengths[pe]}});
            all += lengths[pe];
        }
        shmem_barrier_all();
        for (const Block& block : sent_) places_.push_back(places[block.pe]);
        shmem_free(places);
        shmem_free(lengths);
        inbox_ = static_cast<double*>(symmetric_alloc(sizeof(double) * static_cast<size_t>(most_of(job_, all) + 1)));
        const long signals = most_of(job_, static_cast<long>(from_.size())) * job_.threads();
        signals_ = static_cast<Signal*>(symmetric_alloc(sizeof(Signal) * static_cast<size_t>(signals + 1)));
        rounds_.resize(static_cast<size_t>(job_.threads()));
    }

    Signal* signal(long sender, int thread) const { return signals_ + sender * job_.threads() + thread; }

    Job& job_;
    const Route route_;
    std::vector<Block> sent_, from_;  // by PE
    std::vector<Place> places_;       // by block that is sent
    std::vector<Entry> received_;
    double* inbox_ = nullptr;    // symmetric
    Signal* signals_ = nullptr;  // by sender and thread; symmetric
    std::vector<Round> rounds_;  // by thread: gatherings so far; the same for all
};

}  // namespace shmem_mt

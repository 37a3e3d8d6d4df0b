// The exchange that brings the ghosts of a vector (system.hpp). Each thread packs its parts of the neighbours' lists
// (halo_parts.hpp) and puts each, with a signal, through its own context into that neighbour's inbox, where one of the
// threads waits for it.
//
// Exchanges use two inboxes with signals of their own in turns. A PE may begin exchange k + 2 only when all its
// neighbours have taken out exchange k. A PE that has received exchange k + 1 from all of them knows that: between the
// end of an exchange and the begin of the next one the threads of a PE pass a barrier.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "apps/common/largest.hpp"
#include "apps/common/signals.hpp"
#include "apps/krylov/halo_parts.hpp"
#include "apps/krylov/system.hpp"
#include "programs/common/job.hpp"

namespace shmem_mt {

class KrylovHalo {
  public:
    // Collective.
    KrylovHalo(Job& job, const KrylovSystem& system)
        : job_(job),
          route_(job.own_route()),
          system_(system),
          inbox_(most_of(job, system.ghosts())),
          sent_(lengths_of(system, [](const Neighbour& to) { return sends_of(to).length(); }), job.threads()),
          received_(lengths_of(system, [](const Neighbour& from) { return from.ghosts.length(); }), job.threads()),
          rounds_(static_cast<size_t>(job.threads())) {
        inboxes_ = static_cast<double*>(symmetric_alloc(2 * sizeof(double) * static_cast<size_t>(inbox_ + 1)));
        signal_count_ = most_of(job, static_cast<long>(system.neighbours().size())) * job.threads();
        signals_ = static_cast<Signal*>(symmetric_alloc(sizeof(Signal) * static_cast<size_t>(2 * signal_count_ + 1)));
        find_places();
    }

    KrylovHalo(const KrylovHalo&) = delete;
    KrylovHalo& operator=(const KrylovHalo&) = delete;

    // That this PE sends in an exchange.
    long messages() const { return sent_.messages(); }

    // Begins the next exchange: of `x`, whose own rows all threads have written, before a barrier.
    void send(int thread, const double* x) {
        const long round = ++rounds_[static_cast<size_t>(thread)].count;
        if (left_out(round))
            return;
        job_.with_link(route_, thread, [&](const auto& link) {
            link.quiet();  // the outbox is free: of an exchange that the neighbours have, only the word of it is
                           // missing
            for (const HaloPart& part : sent_.of(thread)) put_part(link, part, round, x);
        });
    }

    // Ends it: the thread's part of the ghosts is in `x`. A barrier of the threads must follow before anyone reads
    // them.
    void receive(int thread, double* x) {
        const long round = rounds_[static_cast<size_t>(thread)].count;
        if (left_out(round))
            return;
        double* const ghosts = x + system_.rows();
        for (const HaloPart& part : received_.of(thread)) {
            await_signal(signal(round, static_cast<long>(part.list), part.number), static_cast<uint64_t>(round));
            const long first = system_.neighbours()[part.list].ghosts.begin + part.elements.begin;
            std::copy_n(inbox(round) + first, part.elements.length(), ghosts + first);
        }
    }

  private:
    // Where a neighbour keeps what comes from this PE: among its ghosts, and among its neighbours.
    struct Place {
        long first_ghost;
        long neighbour;
    };
    struct alignas(64) Round {
        long count = 0;
    };

    template <class LengthOf>
    static std::vector<long> lengths_of(const KrylovSystem& system, LengthOf&& length_of) {
        std::vector<long> lengths;
        for (const Neighbour& neighbour : system.neighbours()) lengths.push_back(length_of(neighbour));
        return lengths;
    }

    template <class Link>
    void put_part(const Link& link, const HaloPart& part, long round, const double* x) {
        const Neighbour& to = system_.neighbours()[part.list];
        const Place& place = places_[part.list];
        double* const packed = &outbox_[static_cast<size_t>(outboxes_[part.list])];
        for (long k = part.elements.begin; k < part.elements.end; ++k) packed[k] = x[to.sends[static_cast<size_t>(k)]];
        put_and_signal_nbi(
            link, inbox(round) + place.first_ghost + part.elements.begin, packed + part.elements.begin,
            sizeof(double) * static_cast<size_t>(part.elements.length() - missing(part.elements.length())),
            signal(round, place.neighbour, part.number), static_cast<uint64_t>(round), to.pe);
    }

    // Each PE tells its neighbours. Collective.
    void find_places() {
        const int me = job_.me();
        auto* const told =
            static_cast<Place*>(symmetric_alloc(sizeof(Place) * static_cast<size_t>(job_.n_pes())));  // by PE
        const std::vector<Neighbour>& neighbours = system_.neighbours();
        long packed = 0;
        for (size_t i = 0; i < neighbours.size(); ++i) {
            const Place place{neighbours[i].ghosts.begin, static_cast<long>(i)};
            shmem_putmem(told + me, &place, sizeof place, neighbours[i].pe);
            outboxes_.push_back(packed);
            packed += sends_of(neighbours[i]).length();
        }
        outbox_.resize(static_cast<size_t>(packed));
        shmem_barrier_all();
        for (const Neighbour& neighbour : neighbours) places_.push_back(told[neighbour.pe]);
        shmem_free(told);
    }

    // How many of so many elements are not sent. Differs with a planted fault only: the last half of them, as the very
    // last of a list lies in minife where a temperature is given, and nobody needs it.
    long missing(long elements) const {
        return job_.options().fault == Fault::kLastElementMissing ? (elements + 1) / 2 : 0;
    }

    // Differs with planted faults only.
    bool left_out(long round) const {
        const Fault fault = job_.options().fault;
        return fault == Fault::kSkippedOperation || (fault == Fault::kStaleResult && round > 1);
    }

    static Range sends_of(const Neighbour& neighbour) { return {0, static_cast<long>(neighbour.sends.size())}; }
    double* inbox(long round) const { return inboxes_ + round % 2 * inbox_; }
    Signal* signal(long round, long neighbour, long part) const {
        return signals_ + round % 2 * signal_count_ + neighbour * job_.threads() + part;
    }

    Job& job_;
    const Route route_;
    const KrylovSystem& system_;
    const long inbox_;  // elements of one
    const HaloParts sent_, received_;
    double* inboxes_ = nullptr;   // two, symmetric
    long signal_count_ = 0;       // of one inbox
    Signal* signals_ = nullptr;   // by inbox, neighbour and part; symmetric
    std::vector<Place> places_;   // by neighbour
    std::vector<long> outboxes_;  // by neighbour: its first element in outbox_
    std::vector<double> outbox_;
    std::vector<Round> rounds_;  // by thread: exchanges so far; the same for all
};

}  // namespace shmem_mt

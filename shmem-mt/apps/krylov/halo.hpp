// The exchange that brings the ghosts of a vector (system.hpp). Each thread packs its parts of the neighbours' lists
// (halo_parts.hpp) and puts each, with a signal, through its own context into that neighbour's inbox, where one of the
// threads waits for it. Other ways to end an exchange (apps/common/syncs.hpp) differ in nothing else: lists, parts and
// inboxes are the same.
//
// Exchanges use two inboxes with signals of their own in turns. A PE may begin exchange k + 2 only when all its
// neighbours have taken out exchange k. A PE that has received exchange k + 1 from all of them knows that: between the
// end of an exchange and the begin of the next one the threads of a PE pass a barrier.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "apps/common/largest.hpp"
#include "apps/common/signals.hpp"
#include "apps/common/syncs.hpp"
#include "apps/krylov/halo_parts.hpp"
#include "apps/krylov/neighbour_exchange.hpp"
#include "apps/krylov/system.hpp"
#include "programs/common/job.hpp"

namespace shmem_mt {

class KrylovHalo {
  public:
    // `syncs` are those that set_sync() may be called with. Collective.
    KrylovHalo(Job& job, const KrylovSystem& system, const std::vector<Sync>& syncs)
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
#if SHMEM_MT_HAVE_PLANS
        if (std::any_of(syncs.begin(), syncs.end(), is_collective))
            make_exchange();
#endif
    }

    KrylovHalo(const KrylovHalo&) = delete;
    KrylovHalo& operator=(const KrylovHalo&) = delete;

    // That this PE sends in an exchange.
    long messages() const { return sent_.messages(); }

    // Of the exchanges from here on. Thread 0 of all PEs, no other thread at work, none under way.
    void set_sync(Sync sync) {
        if (sync == sync_)
            return;
        job_.team().run(
            [&](int thread) { job_.with_link(route_, thread, [&](const auto& link) { free_outbox(thread, link); }); });
        sync_ = sync;
    }

    // Begins the next exchange: of `x`, whose own rows all threads have written, before a barrier.
    void send(int thread, const double* x) {
        const long round = ++rounds_[static_cast<size_t>(thread)].count;
        if (left_out(round))
            return;
        job_.with_link(route_, thread, [&](const auto& link) {
            free_outbox(thread, link);
            for (const HaloPart& part : sent_.of(thread)) {
                pack(part, x);
                if (!is_collective(sync_))
                    put_part(link, thread, part, round);
            }
        });
        if (!is_collective(sync_))
            return;
        job_.team().barrier();
        if (thread == 0)
            begin_collective(round);
    }

    // Ends it: the thread's part of the ghosts is in `x`. A barrier of the threads must follow before anyone reads
    // them.
    void receive(int thread, double* x) {
        const long round = rounds_[static_cast<size_t>(thread)].count;
        if (left_out(round))
            return;
        if (sync_ == Sync::kBarrier) {
            job_.with_link(route_, thread, [](const auto& link) { link.quiet(); });
            job_.meet(thread);
        } else if (is_collective(sync_)) {
            if (thread == 0)
                end_collective();
            job_.team().barrier();
        }
        double* const ghosts = x + system_.rows();
        for (const HaloPart& part : received_.of(thread)) {
            if (has_signals(sync_))
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
#if SHMEM_MT_HAVE_SHMEMX
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
#endif
    };

    static bool has_signals(Sync sync) { return sync == Sync::kSignal || sync == Sync::kRequest; }

    template <class LengthOf>
    static std::vector<long> lengths_of(const KrylovSystem& system, LengthOf&& length_of) {
        std::vector<long> lengths;
        for (const Neighbour& neighbour : system.neighbours()) lengths.push_back(length_of(neighbour));
        return lengths;
    }

    // The thread's parts of the outbox may be packed: of an exchange that the neighbours have, only the word of it is
    // missing. A barrier or a collective has told already.
    template <class Link>
    void free_outbox(int thread, const Link& link) {
        if (sync_ == Sync::kSignal)
            link.quiet();
#if SHMEM_MT_HAVE_SHMEMX
        if (sync_ == Sync::kRequest)
            shmemx_request_wait(&rounds_[static_cast<size_t>(thread)].request);
#else
        (void)thread;
#endif
    }

    // Where the elements of a list are packed.
    double* packed(size_t list) {
        double* const all = is_collective(sync_) ? symmetric_outbox_ : outbox_.data();
        return all + outboxes_[list];
    }

    void pack(const HaloPart& part, const double* x) {
        const std::vector<int32_t>& sends = system_.neighbours()[part.list].sends;
        double* const into = packed(part.list);
        for (long k = part.elements.begin; k < part.elements.end; ++k) into[k] = x[sends[static_cast<size_t>(k)]];
    }

    template <class Link>
    void put_part(const Link& link, int thread, const HaloPart& part, long round) {
        const int pe = system_.neighbours()[part.list].pe;
        const Place& place = places_[part.list];
        double* const dest = inbox(round) + place.first_ghost + part.elements.begin;
        const double* const source = packed(part.list) + part.elements.begin;
        const size_t bytes =
            sizeof(double) * static_cast<size_t>(part.elements.length() - missing(part.elements.length()));
        Signal* const told = signal(round, place.neighbour, part.number);
        if (sync_ == Sync::kBarrier)
            return link.put_nbi(dest, source, bytes, pe);
#if SHMEM_MT_HAVE_SHMEMX
        if (sync_ == Sync::kRequest)
            return put_signal_nbe(link, dest, source, bytes, &told->word, static_cast<uint64_t>(round), pe,
                                  &rounds_[static_cast<size_t>(thread)].request);
#else
        (void)thread;
#endif
        put_and_signal_nbi(link, dest, source, bytes, told, static_cast<uint64_t>(round), pe);
    }

#if SHMEM_MT_HAVE_PLANS
    void make_exchange() {
        symmetric_outbox_ = static_cast<double*>(symmetric_alloc(
            sizeof(double) * static_cast<size_t>(most_of(job_, static_cast<long>(outbox_.size())) + 1)));
        exchange_ = std::make_unique<NeighbourExchange>(system_, inboxes_, inbox_, symmetric_outbox_,
                                                        [this](long elements) { return missing(elements); });
        exchange_->record();
    }
    void begin_collective(long round) { exchange_->begin(sync_, round); }
    void end_collective() { exchange_->end(); }

    std::unique_ptr<NeighbourExchange> exchange_;  // null: not wanted
#else
    void begin_collective(long) {}
    void end_collective() {}
#endif

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
    double* symmetric_outbox_ = nullptr;  // of collectives, likewise
    Sync sync_ = Sync::kSignal;
    std::vector<Round> rounds_;  // by thread: exchanges so far; the same for all
};

}  // namespace shmem_mt

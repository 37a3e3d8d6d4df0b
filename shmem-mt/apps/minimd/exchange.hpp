// What PEs send each other: atoms that have moved into another PE's part, the ghosts that partners see (both when lists
// are built anew), and the new positions of these ghosts in every other step. All go by put with signal; a partner gets
// a signal in every exchange, also without data. No call waits for the network but the quiet before a buffer is packed
// anew.
//
// Threads share the atoms and the messages. Positions for a partner are cut into pieces when there are fewer partners
// than threads; they arrive where the forces read them. A PE puts positions of step k + 2 into the set of step k after
// it has received those of step k + 1, which a partner sends when it is done with the forces of step k. So two steps
// may be under way: their positions have two sets, and their signals two words. A migration, or a description of
// ghosts, comes after the partner's positions that followed the one before: one word is enough. Positions can end in
// other ways, too (apps/common/syncs.hpp); a barrier of all PEs is more than the two steps need.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "apps/common/signals.hpp"
#include "apps/common/syncs.hpp"
#include "apps/minimd/atoms.hpp"
#include "apps/minimd/cells.hpp"

namespace shmem_mt {

class MdExchange {
  public:
    // Collective.
    MdExchange(Job& job, const MdLayout& layout, MdAtoms& atoms, const MdCellGrid& grid)
        : job_(job),
          layout_(layout),
          atoms_(atoms),
          grid_(grid),
          pieces_(layout.remote() == 0 ? 1 : (job.threads() + layout.remote() - 1) / layout.remote()),
          migrants_(remote_array<Atom>()),
          descriptions_(remote_array<Ghost>()),
          migrant_signals_(signals(layout.remote())),
          description_signals_(signals(layout.remote())),
          position_signals_(signals(2 * layout.remote() * pieces_)),
          leaving_(static_cast<size_t>(layout.remote_capacity())),
          described_(leaving_.size()),
          packed_(3 * leaving_.size()),
          arrived_(static_cast<size_t>(layout.own_capacity())),
          sent_(static_cast<size_t>(layout.nowhere() - layout.own_capacity())),
          sends_(layout.partners().size()),
          schedule_(arrived_.size()),
          scratch_(static_cast<size_t>(job.threads())) {
        for (Scratch& scratch : scratch_) {
            scratch.leaving.resize(layout.partners().size());
            scratch.chosen.resize(layout.partners().size());
        }
    }

    // Exchanges have numbers that grow with every one, from run to run, and are the same on all PEs.

    // Wraps the atoms of this PE into the box and sends each to where it is now; arrived() are those here then. One
    // that has moved out of everybody's reach is lost. All threads, behind a barrier; ends with one.
    template <class Link>
    void migrate(const Link& link, int thread, long step, uint64_t number) {
        link.quiet();  // no message is read any more where the next ones are packed, behind the barrier
        Scratch& mine = scratch_[static_cast<size_t>(thread)];
        sort_out(thread, step, mine);
        job_.team().barrier();
        for (size_t k = 0; k < remote(); ++k)
            collect(thread, k, leaving_, [](Scratch& s, size_t p) -> auto& { return s.leaving[p]; });
        long begin = 0, staying = 0;
        for (int t = 0; t < job_.threads(); ++t) {
            begin = t == thread ? staying : begin;
            staying += static_cast<long>(scratch_[static_cast<size_t>(t)].staying.size());
        }
        std::copy(mine.staying.begin(), mine.staying.end(), arrived_.begin() + begin);
        job_.team().barrier();
        for_own_partners(thread, [&](size_t k) {
            const long count = total(k, [](Scratch& s, size_t p) -> auto& { return s.leaving[p]; });
            send(link, migrants_, leaving_, migrant_signals_, k, number, count);
        });
        long at = staying;
        for (size_t k = 0; k < remote(); ++k) {
            const long count = await_count(migrant_signals_[k], number);
            require_room("own atoms", at + count, layout_.own_capacity());
            const Range share = Range{0, count}.share(thread, job_.threads());
            std::copy(migrants_ + slot(k) + share.begin, migrants_ + slot(k) + share.end,
                      arrived_.begin() + at + share.begin);
            at += count;
        }
        if (thread == 0)
            arrivals_ = at;
        job_.team().barrier();
    }

    std::vector<Atom>& arrived() { return arrived_; }
    long arrivals() const { return arrivals_; }

    // Finds which PEs must see which atoms of this PE, tells them, and places the ghosts that this PE sees. All
    // threads, behind a barrier; ends with one.
    template <class Link>
    void describe(const Link& link, int thread, long step, uint64_t number) {
        choose(thread, step);
        job_.team().barrier();
        for (size_t k = 0; k < layout_.partners().size(); ++k) {
            const Range mine = collect(thread, k, sent_, [](Scratch& s, size_t p) -> auto& { return s.chosen[p]; });
            for (long i = mine.begin; i < mine.end; ++i) describe_one(k, step, i);
            if (thread == 0)
                sends_[k] = total(k, [](Scratch& s, size_t p) -> auto& { return s.chosen[p]; });
        }
        set_schedule(thread);
        job_.team().barrier();
        for_own_partners(thread, [&](size_t k) {
            send(link, descriptions_, described_, description_signals_, k, number, sends_[k]);
        });
        for (size_t k = 0; k < remote(); ++k) {
            const long count = await_count(description_signals_[k], number);
            const Range share = Range{slot(k), slot(k) + count}.share(thread, job_.threads());
            for (long i = share.begin; i < share.end; ++i) place(step, i, descriptions_[i]);
            if (thread == 0)
                atoms_.set_ghosts(k, count);
        }
        if (thread == 0 && remote() < sends_.size())
            atoms_.set_ghosts(remote(), sends_.back());
        job_.team().barrier();
    }

    // Of positions from here on: put_signal, quiet_barrier or request_merged. Thread 0 of all PEs, behind finish() of
    // all threads.
    void set_sync(Sync sync) { sync_ = sync; }

    // Puts the positions of that step where partners see them; this PE's own images, too. All threads, behind a
    // barrier.
    template <class Link>
    void send_positions(const Link& link, int thread, long step, uint64_t number) {
        const double* const positions = atoms_.positions(step);
        finish(link, thread);  // the thread's pieces of the step before have left packed_
        for_own_pieces(thread, number, [&](size_t k, int piece, Signal* signal) {
            const Range all = to_send(k).share(piece, pieces_);
            const Range told{all.begin, all.begin + this->told(all.length())};
            double* const outbox = packed_.data() + 3 * all.begin;
            if (job_.options().fault != Fault::kStaleResult || step % kListSteps == 1)
                pack(positions, told, outbox);
            put_positions(link, thread, atoms_.positions(step) + 3 * (layout_.own_capacity() + all.begin), outbox,
                          3 * sizeof(double) * static_cast<size_t>(told.length()), signal, number,
                          layout_.partners()[k].to);
        });
        if (remote() == sends_.size())
            return;
        const Range own = to_send(remote()).share(thread, job_.threads());
        if (job_.options().fault != Fault::kStaleResult)
            pack(positions, {own.begin, own.begin + told(own.length())},
                 atoms_.positions(step) + 3 * (layout_.own_capacity() + own.begin));
    }

    // Until the thread's share of what partners send has come; all of it has when all threads are past a barrier.
    template <class Link>
    void await_positions(const Link& link, int thread, uint64_t number) {
        if (sync_ != Sync::kBarrier)
            return for_own_pieces(thread, number, [&](size_t, int, Signal* signal) { await_signal(signal, number); });
        link.quiet();
        job_.meet(thread);
    }

    // What the thread has packed has left.
    template <class Link>
    void finish(const Link& link, int thread) {
#if SHMEM_MT_HAVE_SHMEMX
        if (sync_ == Sync::kRequest)
            return shmemx_request_wait(&scratch_[static_cast<size_t>(thread)].request);
#endif
        (void)thread;
        link.quiet();
    }

    // Own atoms; first those that are ghosts elsewhere. Only they have ghosts among their neighbours.
    const int32_t* schedule() const { return schedule_.data(); }
    long seen() const { return seen_; }

  private:
    struct Ghost {
        Vector at;  // of the atom, in the box
        int32_t id;
        int8_t edges[4];  // how many the ghost is away from it; the last is 0
    };

    struct Sent {
        int32_t atom, image;
    };

    struct alignas(64) Scratch {
        std::vector<Atom> staying;
        std::vector<std::vector<Atom>> leaving;
        std::vector<std::vector<Sent>> chosen;
        std::vector<int32_t> seen, unseen;
#if SHMEM_MT_HAVE_SHMEMX
        shmemx_request_t request = SHMEMX_REQUEST_NULL;  // of positions
#endif
    };

    size_t remote() const { return static_cast<size_t>(layout_.remote()); }

    // Where a partner's stretch begins in arrays of ghosts.
    long slot(size_t k) const { return layout_.partners()[k].begin - layout_.own_capacity(); }

    Range to_send(size_t k) const { return {slot(k), slot(k) + sends_[k]}; }

    template <class T>
    T* remote_array() const {
        return static_cast<T*>(symmetric_alloc(sizeof(T) * static_cast<size_t>(layout_.remote_capacity() + 1)));
    }

    static Signal* signals(int count) {
        return static_cast<Signal*>(symmetric_alloc(sizeof(Signal) * static_cast<size_t>(count + 1)));
    }

    static void require_room(const char* what, long needed, long there) {
        if (needed > there)
            fail("minimd: room for " + std::to_string(there) + " " + what + ", but there are " +
                 std::to_string(needed) + ": the atoms are packed too densely for a liquid of this density");
    }

    void sort_out(int thread, long step, Scratch& mine) {
        mine.staying.clear();
        for (auto& atoms : mine.leaving) atoms.clear();
        const Range own = atoms_.own().share(thread, job_.threads());
        for (long i = own.begin; i < own.end; ++i) {
            Atom atom = atoms_.get(step, i);
            for (double& x : atom.at) x = layout_.wrapped(x);
            const int owner = layout_.owner(atom.at);
            if (owner == MdLayout::kStays)
                mine.staying.push_back(atom);
            else if (owner != MdLayout::kLost)
                mine.leaving[static_cast<size_t>(owner)].push_back(atom);
        }
    }

    void choose(int thread, long step) {
        Scratch& mine = scratch_[static_cast<size_t>(thread)];
        mine.seen.clear();
        mine.unseen.clear();
        for (auto& sent : mine.chosen) sent.clear();
        const Range own = atoms_.own().share(thread, job_.threads());
        for (long i = own.begin; i < own.end; ++i) {
            const int32_t atom = static_cast<int32_t>(i);
            const bool seen = layout_.for_images(MdAtoms::vector_at(atoms_.positions(step), i), [&](int image) {
                mine.chosen[static_cast<size_t>(layout_.image(image).partner)].push_back({atom, image});
            });
            (seen ? mine.seen : mine.unseen).push_back(atom);
        }
    }

    // How many all threads have found for a partner.
    template <class ListOf>
    long total(size_t k, ListOf&& list_of) {
        long count = 0;
        for (Scratch& scratch : scratch_) count += static_cast<long>(list_of(scratch, k).size());
        return count;
    }

    // Copies what this thread has found for a partner behind what those before it have, and says where that is.
    template <class T, class ListOf>
    Range collect(int thread, size_t k, std::vector<T>& all, ListOf&& list_of) {
        require_room("ghosts of one PE", total(k, list_of), layout_.partners()[k].capacity);
        long begin = slot(k);
        for (int t = 0; t < thread; ++t)
            begin += static_cast<long>(list_of(scratch_[static_cast<size_t>(t)], k).size());
        const auto& mine = list_of(scratch_[static_cast<size_t>(thread)], k);
        std::copy(mine.begin(), mine.end(), all.begin() + begin);
        return {begin, begin + static_cast<long>(mine.size())};
    }

    void describe_one(size_t k, long step, long i) {
        const Sent& sent = sent_[static_cast<size_t>(i)];
        Ghost ghost{};
        ghost.at = MdAtoms::vector_at(atoms_.positions(step), sent.atom);
        ghost.id = atoms_.id(sent.atom);
        for (size_t a = 0; a < 3; ++a) ghost.edges[a] = static_cast<int8_t>(layout_.image(sent.image).edges[a]);
        if (k == remote())
            place(step, i, ghost);
        else
            described_[static_cast<size_t>(i)] = ghost;
    }

    // The arithmetic of pack.
    void place(long step, long i, const Ghost& ghost) {
        const long index = layout_.own_capacity() + i;
        Vector at{};
        for (size_t a = 0; a < 3; ++a) at[a] = ghost.at[a] + layout_.shift(ghost.edges[a]);
        atoms_.set_at(step, index, at);
        atoms_.id(index) = ghost.id;
        atoms_.cell(index) = grid_.cell(ghost.at, {ghost.edges[0], ghost.edges[1], ghost.edges[2]});
    }

    void pack(const double* positions, const Range& sent, double* into) const {
        for (long i = sent.begin; i < sent.end; ++i, into += 3) {
            const Sent& one = sent_[static_cast<size_t>(i)];
            const Vector& shift = layout_.image(one.image).shift;
            const double* const at = positions + 3L * one.atom;
            for (size_t a = 0; a < 3; ++a) into[a] = at[a] + shift[a];
        }
    }

    void set_schedule(int thread) {
        size_t seen = 0, before_seen = 0, before_unseen = 0;
        for (int t = 0; t < job_.threads(); ++t) {
            const Scratch& other = scratch_[static_cast<size_t>(t)];
            seen += other.seen.size();
            before_seen += t < thread ? other.seen.size() : 0;
            before_unseen += t < thread ? other.unseen.size() : 0;
        }
        const Scratch& mine = scratch_[static_cast<size_t>(thread)];
        std::copy(mine.seen.begin(), mine.seen.end(), schedule_.begin() + static_cast<long>(before_seen));
        std::copy(mine.unseen.begin(), mine.unseen.end(), schedule_.begin() + static_cast<long>(seen + before_unseen));
        if (thread == 0)
            seen_ = static_cast<long>(seen);
    }

    // f(k) for the other PEs that fall to the thread.
    template <class F>
    void for_own_partners(int thread, F&& f) const {
        for (size_t k = static_cast<size_t>(thread); k < remote(); k += static_cast<size_t>(job_.threads())) f(k);
    }

    // f(k, piece, its signal in that exchange) for the pieces of positions that fall to the thread.
    template <class F>
    void for_own_pieces(int thread, uint64_t number, F&& f) const {
        for (int i = thread; i < layout_.remote() * pieces_; i += job_.threads())
            f(static_cast<size_t>(i / pieces_), i % pieces_, alternate(position_signals_, i, number));
    }

    template <class Link, class T>
    void send(const Link& link, T* inbox, const std::vector<T>& outbox, Signal* signals, size_t k, uint64_t number,
              long count) {
        put_and_signal_nbi(link, inbox + slot(k), outbox.data() + slot(k), sizeof(T) * static_cast<size_t>(count),
                           signals + k, number << kCountBits | static_cast<uint64_t>(count), layout_.partners()[k].to);
    }

    template <class Link>
    void put_positions(const Link& link, int thread, double* dest, const double* source, size_t bytes, Signal* signal,
                       uint64_t number, int pe) {
        if (sync_ == Sync::kBarrier)
            return link.put_nbi(dest, source, bytes, pe);
#if SHMEM_MT_HAVE_SHMEMX
        if (sync_ == Sync::kRequest)
            return put_signal_nbe(link, dest, source, bytes, &signal->word, number, pe,
                                  &scratch_[static_cast<size_t>(thread)].request);
#endif
        (void)thread;
        put_and_signal_nbi(link, dest, source, bytes, signal, number, pe);
    }

    // What came with the signal of that number.
    static long await_count(Signal& signal, uint64_t number) {
        const uint64_t word = await_signal(&signal, number << kCountBits);
        return static_cast<long>(word & ((uint64_t{1} << kCountBits) - 1));
    }

    // How many of so many positions are sent. Differs with planted faults only.
    long told(long count) const {
        const Fault fault = job_.options().fault;
        if (fault == Fault::kSkippedOperation)
            return 0;
        return count - (fault == Fault::kLastElementMissing && count > 0);
    }

    static constexpr int kCountBits = 32;

    Job& job_;
    const MdLayout& layout_;
    MdAtoms& atoms_;
    const MdCellGrid& grid_;
    const int pieces_;                                            // of the positions for a partner
    Atom* const migrants_;                                        // symmetric, by partner; written by partners
    Ghost* const descriptions_;                                   // the same
    Signal *const migrant_signals_, *const description_signals_;  // one a partner: number of the exchange, and how many
    Signal* const position_signals_;                              // two a piece: number of the exchange
    std::vector<Atom> leaving_;                                   // by partner
    std::vector<Ghost> described_;                                // by partner
    std::vector<double> packed_;                                  // by partner
    std::vector<Atom> arrived_;
    std::vector<Sent> sent_;   // by partner, this PE included
    std::vector<long> sends_;  // how many of them
    std::vector<int32_t> schedule_;
    std::vector<Scratch> scratch_;  // one a thread
    long arrivals_ = 0, seen_ = 0;
    Sync sync_ = Sync::kSignal;
};

}  // namespace shmem_mt

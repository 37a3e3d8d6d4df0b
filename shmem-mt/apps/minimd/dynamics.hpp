// Molecular dynamics by all PEs and threads: velocity Verlet, step by step, as the forms share it.
//
// Each atom adds up its forces in an order that depends on the atoms alone, and a ghost has the bits that the atom's
// image has on one PE. So positions and velocities have the same bits for every number of PEs and threads.
#pragma once

#include <vector>

#include "apps/common/blocking_collectives.hpp"
#include "apps/minimd/exchange.hpp"
#include "apps/minimd/neighbours.hpp"

namespace shmem_mt {

class MdDynamics {
  public:
    // Collective.
    MdDynamics(Job& job, const MdModel& model, int steps)
        : job_(job),
          model_(model),
          steps_(steps),
          layout_(model.cells(), job.n_pes(), job.me()),
          grid_(model, layout_),
          atoms_(job, layout_),
          exchange_(job, layout_, atoms_, grid_),
          neighbours_(job.team(), layout_, atoms_, grid_),
          sums_(static_cast<size_t>(job.threads())) {
        layout_.for_cells(model.cells(), [&](long cell) {
            for (long id = 4 * cell; id < 4 * cell + 4; ++id) {
                const Vector at = model.lattice_site(id);
                if (layout_.owns(at))
                    first_.push_back({at, model.first_velocity(id), id});
            }
        });
    }

    // Bytes on this PE, about: of each atom and ghost, of own atoms, of ghosts that travel.
    static double memory_need(const MdLayout& layout) {
        return 100.0 * static_cast<double>(layout.nowhere()) + 900.0 * static_cast<double>(layout.own_capacity()) +
               210.0 * static_cast<double>(layout.remote_capacity());
    }

    // Puts all atoms where they are at first; `sync` ends the exchanges of positions.
    void prepare(Sync sync) {
        exchange_.set_sync(sync);
        atoms_.set_own(static_cast<long>(first_.size()));
        for (size_t i = 0; i < first_.size(); ++i) atoms_.set(0, static_cast<long>(i), first_[i]);
        thermo_.clear();
        pairs_ = 0;
        found_atoms_ = model_.atoms();
        first_number_ += static_cast<uint64_t>(steps_) + 1;
    }

    // The fewest atoms that there were at any of these times.
    long found_atoms() const { return found_atoms_; }

    // Nearer than the cutoff, each counted once: the mean of the last run's lines of thermodynamics.
    double mean_pairs() const { return pairs_ / static_cast<double>(thermo_.size()); }

    // Of the last run. Collective; thread 0.
    MdHistory history() {
        uint64_t own = 0;
        for (long i = atoms_.own().begin; i < atoms_.own().end; ++i) own += state_of(atoms_.get(steps_, i));
        // Exact: sums of up to 2^13 numbers of 40 bits fit into a double.
        const double all = collectives_.sum(static_cast<double>(own & kStateMask));
        return {thermo_, static_cast<uint64_t>(all) & kStateMask};
    }

    // The lists of a step that begins an interval, as many calls as there are parts to take time of. All threads,
    // behind a barrier; each part ends with one.
    template <class Link>
    void migrate(const Link& link, int thread, int step) {
        exchange_.migrate(link, thread, step, number(step));
    }
    void take_arrivals(int thread, int step) {
        neighbours_.take(thread, step, exchange_.arrived(), exchange_.arrivals());
    }
    template <class Link>
    void describe(const Link& link, int thread, int step) {
        exchange_.describe(link, thread, step, number(step));
    }
    void build_lists(int thread, int step) { neighbours_.build(thread, step); }

    template <class Link>
    void send_positions(const Link& link, int thread, int step) {
        exchange_.send_positions(link, thread, step, number(step));
    }
    template <class Link>
    void await_positions(const Link& link, int thread, int step) {
        exchange_.await_positions(link, thread, number(step));
    }
    template <class Link>
    void finish(const Link& link, int thread) {
        exchange_.finish(link, thread);
    }

    // The thread's share of the forces of a step, and of the motion into the next. Of all atoms; of those that other
    // PEs see; of the others, which can do without what is new of other PEs.
    void move(int thread, int step) {
        begin_sums(thread);
        const Range mine = atoms_.own().share(thread, job_.threads());
        for (long i = mine.begin; i < mine.end; ++i) move_atom(thread, step, i);
    }
    void move_seen(int thread, int step) {
        begin_sums(thread);
        move_scheduled(thread, step, {0, exchange_.seen()});
    }
    void move_unseen(int thread, int step) { move_scheduled(thread, step, {exchange_.seen(), atoms_.own().end}); }

    // Sums up a step of kThermoSteps. Collective; thread 0, behind a barrier.
    void reduce() {
        MdSums own;
        for (const ThreadSums& part : sums_) {
            own.squares += part.squares;
            own.potential += part.potential;
            own.virial += part.virial;
            own.pairs += part.pairs;
        }
        own.atoms = static_cast<double>(atoms_.own().end);
        MdSums all;
        for (double MdSums::* const field :
             {&MdSums::squares, &MdSums::potential, &MdSums::virial, &MdSums::pairs, &MdSums::atoms})
            all.*field = collectives_.sum(own.*field);
        thermo_.push_back(model_.thermo(all));
        pairs_ += all.pairs;
        found_atoms_ = std::min(found_atoms_, static_cast<long>(all.atoms));
    }

  private:
    struct alignas(64) ThreadSums : MdSums {};

    uint64_t number(int step) const { return first_number_ + static_cast<uint64_t>(step); }

    void begin_sums(int thread) { sums_[static_cast<size_t>(thread)] = {}; }

    void move_scheduled(int thread, int step, const Range& part) {
        const Range mine = part.share(thread, job_.threads());
        for (long i = mine.begin; i < mine.end; ++i) move_atom(thread, step, exchange_.schedule()[i]);
    }

    // Both halves of the kick are there, that of this step and that of the next, each rounded. Not inlined, so that a
    // compiler that contracts a * b + c does it in all forms or in none.
    [[gnu::noinline]] void move_atom(int thread, int step, long i) {
        const double* const positions = atoms_.positions(step);
        const double* const at = positions + 3 * i;
        double* const velocity = atoms_.velocities() + 3 * i;
        double* const next = atoms_.positions(step + 1) + 3 * i;
        MdPull pull{};
        if (job_.options().fault != Fault::kSkippedComputation)
            md_force(positions, at, neighbours_.of(i), &pull);
        if (step > 0)
            kick(velocity, pull.force);
        if (step % kThermoSteps == 0)
            add_sums(sums_[static_cast<size_t>(thread)], positions, at, velocity, neighbours_.of(i));
        if (step == steps_)
            return;
        kick(velocity, pull.force);
        for (long axis = 0; axis < 3; ++axis) next[axis] = at[axis] + kTimeStep * velocity[axis];
    }

    static void kick(double* velocity, const Vector& force) {
        for (size_t axis = 0; axis < 3; ++axis) velocity[axis] += kTimeStep / 2 * force[axis];
    }

    static void add_sums(MdSums& sums, const double* positions, const double* at, const double* velocity,
                         const MdList& list) {
        MdPull pull{};
        md_pairs(positions, at, list, &pull);
        sums.squares += velocity[0] * velocity[0] + velocity[1] * velocity[1] + velocity[2] * velocity[2];
        sums.potential += pull.potential / 2;
        sums.virial += pull.virial / 2;
        sums.pairs += pull.pairs / 2;
    }

    Job& job_;
    const MdModel& model_;
    const int steps_;
    const MdLayout layout_;
    const MdCellGrid grid_;
    MdAtoms atoms_;
    MdExchange exchange_;
    MdNeighbours neighbours_;
    BlockingCollectives collectives_;
    std::vector<ThreadSums> sums_;  // one a thread
    std::vector<Atom> first_;       // this PE's
    std::vector<MdThermo> thermo_;
    double pairs_ = 0;  // at all lines of thermodynamics
    long found_atoms_ = 0;
    uint64_t first_number_ = 0;  // of the exchanges of a run
};

}  // namespace shmem_mt

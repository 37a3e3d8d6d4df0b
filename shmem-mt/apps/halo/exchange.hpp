// The exchange of the six faces of a box with its neighbours in a grid of PEs. Each PE has a box of edge^3 cells of 8
// bytes with a layer of ghost cells around it, in private memory. The PE packs a face, puts it into the neighbour's
// inbox, and unpacks its own inboxes into its ghost cells. Every PE has six neighbours; where the grid is one PE wide,
// the PE is its own neighbour.
//
// Face f lies on axis f / 2, on the far side when f is odd. Face f belongs to thread f % threads on both PEs, so the
// thread that unpacks a face also answers it. Exchanges use two sets of inboxes in turns. A PE puts into the set of
// exchange k again in exchange k + 2, after it has received exchange k + 1 from the neighbour, which sent that after it
// had unpacked exchange k.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "programs/common/grid.hpp"
#include "programs/common/job.hpp"
#include "programs/common/measure.hpp"
#include "programs/common/requests.hpp"
#include "programs/common/run_together.hpp"

namespace shmem_mt {

constexpr int kFaces = 6;

// kSignal: a put with signal a face, and the thread waits for its own faces' signals. kBarrier: puts, quiet by each
// thread, one barrier of all PEs. kRequest: kSignal, a thread's faces under one request, which it waits for before it
// packs the next ones. kNeighbors: all faces in one shmemx_neighbor_alltoallv_nbe, which one thread posts and
// waits for; kPlan: the same, recorded once and started each time.
enum class HaloSync { kSignal, kBarrier, kRequest, kNeighbors, kPlan };

inline bool is_collective(HaloSync sync) {
    return sync == HaloSync::kNeighbors || sync == HaloSync::kPlan;
}

// For the largest face of a program: inboxes and their signals, symmetric; the cells of the box and what is packed,
// private. Only the box that is being measured needs its cells.
class HaloMemory {
  public:
    // Collective.
    explicit HaloMemory(long edge)
        : cells(static_cast<size_t>((edge + 2) * (edge + 2) * (edge + 2))),
          outboxes(static_cast<size_t>(kFaces * edge * edge)),
          symmetric_outboxes(
              static_cast<uint64_t*>(symmetric_alloc(static_cast<size_t>(kFaces * edge * edge) * sizeof(uint64_t)))),
          stride_((8 * edge * edge + 4095) / 4096 * 4096),
          inboxes_(static_cast<char*>(symmetric_alloc(static_cast<size_t>(2 * kFaces * stride_)))),
          signals_(static_cast<Signal*>(symmetric_alloc(2 * kFaces * sizeof(Signal)))) {}

    uint64_t* inbox(int face, long exchange) {
        return reinterpret_cast<uint64_t*>(inboxes_ + index(face, exchange) * stride_);
    }
    uint64_t* signal(int face, long exchange) { return &signals_[index(face, exchange)].word; }

    std::vector<uint64_t> cells;
    std::vector<uint64_t> outboxes;
    uint64_t* const symmetric_outboxes;  // of collective exchanges

    // The number of the next exchange of this program; the same on all PEs.
    long next = 1;

  private:
    struct alignas(64) Signal {
        uint64_t word;
    };

    static long index(int face, long exchange) { return exchange % 2 * kFaces + face; }

    const long stride_;
    char* const inboxes_;
    Signal* const signals_;
};

// All faces of an exchange as one collective. The inboxes of even and of odd exchanges take turns.
class HaloNeighbors {
  public:
    HaloNeighbors(Job& job, HaloMemory& memory, HaloSync sync, long edge) : memory_(memory), sync_(sync) {
        const Place grid = grid_of(job.n_pes());
        const auto neighbour_of = [&](int pe, int face) {
            return neighbour(grid, place_of(grid, pe), face / 2, face % 2 ? 1 : -1);
        };
        const Fault fault = job.options().fault;
        const long cells = fault == Fault::kGetNamedPut ? 0 : edge * edge - (fault == Fault::kLastElementMissing);
        const auto of_face = [&](int face) { return static_cast<size_t>(face * edge * edge) * sizeof(uint64_t); };
        for (int face = 0; face < kFaces; ++face) {
            const int pe = neighbour_of(job.me(), face);
            neighbours_[face] = pe;
            bytes_[face] = static_cast<size_t>(cells) * sizeof(uint64_t);
            from_[face] = of_face(job.real_pe(pe) == pe ? face : face ^ 1);
            // Where the neighbour is one for several faces, its k-th is for this PE's k-th.
            int place = 0, there = 0;
            for (int before = 0; before < face; ++before) place += neighbour_of(job.me(), before) == pe;
            while (neighbour_of(pe, there) != job.me() || place-- > 0) ++there;
            to_[face] = static_cast<size_t>(reinterpret_cast<char*>(memory.inbox(there ^ 1, 0)) -
                                            reinterpret_cast<char*>(memory.inbox(0, 0)));
        }
#if SHMEM_MT_HAVE_PLANS
        for (long number = 0; sync == HaloSync::kPlan && number < 2; ++number) {
            shmemx_request_t unused = SHMEMX_REQUEST_NULL;
            shmemx_plan_begin(&plans_[number]);
            post(number, &unused);
            shmemx_plan_end(&plans_[number]);
        }
#endif
    }
#if SHMEM_MT_HAVE_PLANS
    ~HaloNeighbors() {
        for (shmemx_plan_t& plan : plans_) shmemx_plan_free(&plan);
    }
    void exchange(long number) {
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
        if (sync_ == HaloSync::kPlan)
            shmemx_request_start(plans_[number % 2], &request);
        else
            post(number, &request);
        shmemx_request_wait(&request);
    }
#else
    void exchange(long) {}
#endif
    HaloNeighbors(const HaloNeighbors&) = delete;
    HaloNeighbors& operator=(const HaloNeighbors&) = delete;

  private:
#if SHMEM_MT_HAVE_PLANS
    void post(long number, shmemx_request_t* request) {
        shmemx_neighbor_alltoallv_nbe(SHMEM_TEAM_WORLD, neighbours_, kFaces, memory_.inbox(0, number), bytes_, to_,
                                      memory_.symmetric_outboxes, bytes_, from_, 1, request);
    }

    shmemx_plan_t plans_[2] = {};
#endif
    HaloMemory& memory_;
    const HaloSync sync_;
    int neighbours_[kFaces];
    size_t bytes_[kFaces], to_[kFaces], from_[kFaces];
};

class Halo {
  public:
    Halo(Job& job, HaloMemory& memory, HaloSync sync, Route route, long edge)
        : job_(job),
          memory_(memory),
          sync_(sync),
          route_(route),
          edge_(edge),
          grid_(grid_of(job.n_pes())),
          place_(place_of(grid_, job.me())),
          cells_(memory.cells),
          outboxes_(is_collective(sync) ? memory.symmetric_outboxes : memory.outboxes.data()),
          neighbors_(is_collective(sync) ? std::make_unique<HaloNeighbors>(job, memory, sync, edge) : nullptr) {}

    const Place& grid() const { return grid_; }

    // Faces of this PE whose neighbour is another PE.
    int remote_faces() const {
        int count = 0;
        for (int face = 0; face < kFaces; ++face) count += neighbour_at(face) != job_.me();
        return count;
    }

    // `count` exchanges. Both ends of each face have values that only this pass brings, looked at ahead of the barrier
    // that ends it. Collective.
    Report sample(long count) {
        const long token = job_.next_token();
        mark(token);
        const bool idle = job_.options().fault == Fault::kIdleTimedPass;
        return run(idle ? 0 : count, [this, token] { return marked(token); });
    }

    // Every round has other cells; afterwards each ghost cell of a face must be the cell that the whole grid has there,
    // found without looking at neighbours, and no other cell may have changed. The exchanges of a round must all bring
    // the same; each has its own salt, so that what an earlier one left in an inbox is wrong. Collective.
    Agreed validate() {
        Checker checker(job_.options().fault);
        validating_ = true;
        for (round_ = 0; round_ < 3; ++round_) {
            const long token = job_.next_token();
            fill(token);
            changed_.assign(static_cast<size_t>(job_.threads()), 0);
            run(1 + 2 * round_, [] { return true; });
            check(checker, token);
            for (const long changed : changed_) checker.compare_word(changed, 0);
        }
        validating_ = false;
        return agree_verdict(job_, checker);
    }

  private:
    static constexpr uint64_t kPoison = 0xa5a5a5a5a5a5a5a5u;

    template <class Look>
    Report run(long count, Look&& look) {
        const long first = memory_.next;
        memory_.next += count;
        return run_together(
            job_,
            [&](int thread) {
                job_.with_link(route_, thread, [&](const auto& link) {
                    if (sync_ == HaloSync::kRequest)
                        return with_requests(link, Requests::kMerged, nullptr, [&](const auto& requested) {
                            exchanges(requested, thread, first, count);
                        });
                    exchanges(link, thread, first, count);
                });
            },
            [&] {
                const bool ok = look();
                shmem_barrier_all();
                return ok;
            });
    }

    static uint64_t mark_of(int pe, long token) { return pattern_word(token, pe, 0); }

    // f(cell) for both ends of a layer (for_layer).
    template <class F>
    void for_ends(int face, long depth, F&& f) const {
        f(place_in(face, depth, 1, 1));
        f(place_in(face, depth, edge_, edge_));
    }

    void mark(long token) {
        for (int face = 0; face < kFaces; ++face) {
            for_ends(face, face % 2 ? edge_ : 1, [&](size_t place) { cells_[place] = mark_of(job_.me(), token); });
            for_ends(face, ghosts_of(face), [&](size_t place) { cells_[place] = kPoison; });
        }
    }

    bool marked(long token) const {
        bool ok = true;
        for (int face = 0; face < kFaces; ++face)
            for_ends(face, ghosts_of(face),
                     [&](size_t place) { ok = ok && cells_[place] == mark_of(neighbour_at(face), token); });
        return ok;
    }

    int neighbour_at(int face) const { return neighbour(grid_, place_, face / 2, face % 2 ? 1 : -1); }

    size_t cell(long x, long y, long z) const {
        const long row = edge_ + 2;
        return static_cast<size_t>((z * row + y) * row + x);
    }

    size_t place_in(int face, long depth, long u, long v) const {
        const int axis = face / 2;
        return axis == 0 ? cell(depth, u, v) : axis == 1 ? cell(u, depth, v) : cell(u, v, depth);
    }

    // f(cell, number) for the cells of a layer: at `depth` along the axis of `face`, in rows along the lower axis.
    template <class F>
    void for_layer(int face, long depth, F&& f) const {
        size_t number = 0;
        for (long v = 1; v <= edge_; ++v) {
            for (long u = 1; u <= edge_; ++u) f(place_in(face, depth, u, v), number++);
        }
    }

    template <class Link>
    void exchanges(const Link& link, int thread, long first, long count) {
        for (long i = first; i < first + count; ++i) exchange(link, thread, i, i > first);
        if (sync_ == HaloSync::kRequest)
            link.quiet();
    }

    template <class Link>
    void exchange(const Link& link, int thread, long number, bool again) {
        if (sync_ == HaloSync::kRequest)
            link.quiet();  // the outboxes are free
        for (int face = thread; face < kFaces; face += job_.threads()) send(link, face, number);
        if (neighbors_) {
            job_.team().barrier();
            if (thread == 0)
                neighbors_->exchange(number);
            job_.team().barrier();
        }
        if (sync_ == HaloSync::kBarrier) {
            link.quiet();
            job_.meet(thread);
        }
        for (int face = thread; face < kFaces; face += job_.threads()) {
            await(face, number);
            if (validating_ && again)
                changed_[static_cast<size_t>(thread)] += count_changed(face, number);
            if (job_.options().fault != Fault::kSkippedOperation)
                unpack(face, number);
        }
    }

    // The neighbour's inbox is that of its opposite face.
    template <class Link>
    void send(const Link& link, int face, long number) {
        const Fault fault = job_.options().fault;
        uint64_t* const outbox = outboxes_ + face * edge_ * edge_;
        if (fault != Fault::kStaleResult || round_ == 0) {
            const uint64_t salt = salt_of(number);
            for_layer(face, face % 2 ? edge_ : 1, [&](size_t from, size_t to) { outbox[to] = cells_[from] ^ salt; });
        }
        if (neighbors_)
            return;
        const long cells = edge_ * edge_ - (fault == Fault::kLastElementMissing);
        const size_t bytes = 8 * static_cast<size_t>(cells);
        uint64_t* const inbox = memory_.inbox(face ^ 1, number);
        const int pe = job_.real_pe(neighbour_at(face));
        const bool gets = fault == Fault::kGetNamedPut;  // and the signal comes: without it the exchange would not end
        if (gets)
            link.get(outbox, inbox, bytes, pe);
#if SHMEM_MT_HAVE_PUT_SIGNAL
        if (sync_ == HaloSync::kSignal)
            return link.put_signal(inbox, outbox, gets ? 0 : bytes, memory_.signal(face ^ 1, number),
                                   static_cast<uint64_t>(number), pe);
        if (sync_ == HaloSync::kRequest)
            return link.put_signal_nbi(inbox, outbox, gets ? 0 : bytes, memory_.signal(face ^ 1, number),
                                       static_cast<uint64_t>(number), pe);
#endif
        if (!gets)
            link.put(inbox, outbox, bytes, pe);
    }

    void await(int face, long number) {
#if SHMEM_MT_HAVE_PUT_SIGNAL
        if (sync_ == HaloSync::kSignal || sync_ == HaloSync::kRequest)
            shmem_signal_wait_until(memory_.signal(face, number), SHMEM_CMP_GE, static_cast<uint64_t>(number));
#endif
        (void)face;
        (void)number;
    }

    void unpack(int face, long number) {
        const uint64_t* const inbox = memory_.inbox(face, number);
        const uint64_t salt = salt_of(number);
        for_layer(face, ghosts_of(face), [&](size_t to, size_t from) { cells_[to] = inbox[from] ^ salt; });
    }

    long count_changed(int face, long number) {
        const uint64_t* const inbox = memory_.inbox(face, number);
        const uint64_t salt = salt_of(number);
        long changed = 0;
        for_layer(face, ghosts_of(face),
                  [&](size_t to, size_t from) { changed += cells_[to] != (inbox[from] ^ salt); });
        return changed;
    }

    long ghosts_of(int face) const { return face % 2 ? edge_ + 1 : 0; }

    // The cells that travel in an exchange bear its number.
    static uint64_t salt_of(long number) { return static_cast<uint64_t>(number) * 0x9e3779b97f4a7c15u; }

    // The cell at a place of the whole grid.
    uint64_t value(long token, long x, long y, long z) const {
        const long cells[3] = {grid_[0] * edge_, grid_[1] * edge_, grid_[2] * edge_};
        const long at[3] = {(x + cells[0]) % cells[0], (y + cells[1]) % cells[1], (z + cells[2]) % cells[2]};
        return pattern_word(token, at[0] << 20 | at[1], at[2]);
    }

    // What the cell of this PE's box at (x, y, z), ghost cells included, is to be.
    uint64_t expected(long token, long x, long y, long z) const {
        const int ghosts = (x == 0 || x > edge_) + (y == 0 || y > edge_) + (z == 0 || z > edge_);
        if (ghosts > 1)
            return kPoison;  // edges and corners are not exchanged
        return value(token, place_[0] * edge_ + x - 1, place_[1] * edge_ + y - 1, place_[2] * edge_ + z - 1);
    }

    template <class F>
    void for_all_cells(F&& f) {
        for (long z = 0; z < edge_ + 2; ++z) {
            for (long y = 0; y < edge_ + 2; ++y) {
                for (long x = 0; x < edge_ + 2; ++x) f(x, y, z, cells_[cell(x, y, z)]);
            }
        }
    }

    void fill(long token) {
        std::fill(cells_.begin(), cells_.end(), kPoison);
        for_all_cells([&](long x, long y, long z, uint64_t& word) {
            if (x % (edge_ + 1) && y % (edge_ + 1) && z % (edge_ + 1))
                word = expected(token, x, y, z);
        });
    }

    void check(Checker& checker, long token) {
        for_all_cells([&](long x, long y, long z, const uint64_t& word) {
            const uint64_t right = expected(token, x, y, z);
            checker.compare(&word, &right, 8);
        });
    }

    Job& job_;
    HaloMemory& memory_;
    const HaloSync sync_;
    const Route route_;
    const long edge_;
    const Place grid_;
    const Place place_;
    std::vector<uint64_t>& cells_;
    uint64_t* const outboxes_;
    const std::unique_ptr<HaloNeighbors> neighbors_;  // null: puts
    bool validating_ = false;
    int round_ = 0;              // of a validating pass
    std::vector<long> changed_;  // by thread: ghost cells in which an exchange of a round differed from the one before
};

}  // namespace shmem_mt

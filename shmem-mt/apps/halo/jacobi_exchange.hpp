// The faces that one worker sends, and those that it takes out of its mailboxes (jacobi_mailbox.hpp).
#pragma once

#include <atomic>
#include <vector>

#include "apps/halo/jacobi_box.hpp"
#include "apps/halo/jacobi_mailbox.hpp"
#include "programs/common/job.hpp"

namespace shmem_mt {

class JacobiExchange {
  public:
    // What the phases of an exchange take.
    struct Seconds {
        double exchange = 0, pack = 0;
    };

    JacobiExchange(const Job& job, const JacobiGrid& grid, const JacobiMailboxes& mailboxes, JacobiBox& box, int thread)
        : fault_(job.options().fault), mailboxes_(mailboxes), box_(box), thread_(thread) {
        const Place place = grid.place({job.me(), thread});
        for (int face = 0; face < kBoxFaces; ++face) {
            sides_[face].neighbour = grid.beyond(place, face);
            sides_[face].outbox.resize(static_cast<size_t>(mailboxes.box_cells()));
        }
    }

    // All neighbours do, and all get what the others had before. Axes at once where only faces are needed, else one
    // after the other, so that edges and corners come round.
    template <class Link>
    void exchange(const Link& link, Stencil stencil) {
        const int step = stencil == Stencil::k27 ? 2 : kBoxFaces;
        for (int first = 0; first < kBoxFaces; first += step) {
            send_faces(link, first, first + step);
            receive_faces(first, first + step);
        }
    }

    // Both halves of an exchange, of these faces at once.
    template <class Link>
    void send_faces(const Link& link, int first = 0, int end = kBoxFaces) {
        for_sides(first, end, [&](int face, Side& side) { send(link, face, side); });
    }
    void receive_faces(int first = 0, int end = kBoxFaces) {
        for_sides(first, end, [&](int face, Side& side) {
            timed(&Seconds::exchange, [&] { await_face(face, side); });
            take_out(face, side);
        });
    }

    bool has_neighbour(int face) const { return sides_[face].neighbour.pe >= 0; }

    // Behind a barrier of all PEs that follows their last sending: nothing is under way, all boxes become empty.
    void drain() {
        for_sides(0, kBoxFaces, [&](int face, Side& side) {
            while (has_face(face, side)) take_out(face, side);
        });
    }

    // To be called when all faces that were sent have been taken out, though no neighbour has said so.
    void all_is_taken() {
        for (Side& side : sides_) side.known_taken = side.sent;
    }

    // Takes out what has come, and says so. Whether there was something.
    template <class Link>
    bool receive_news(const Link& link) {
        bool news = false;
        for_sides(0, kBoxFaces, [&](int face, Side& side) {
            while (has_face(face, side)) {
                take_out(face, side);
                news = true;
                // Release: this thread has read the box; pairs with the neighbour's has_flag in send_if_empty.
                std::atomic_thread_fence(std::memory_order_release);
                timed(&Seconds::exchange, [&] {
                    set_flag(link, mailboxes_.taken(side.neighbour.thread, face ^ 1, side.received),
                             static_cast<long>(side.received), side.neighbour.pe);
                });
            }
        });
        return news;
    }

    // Sends the faces whose box is empty.
    template <class Link>
    void send_if_empty(const Link& link) {
        for_sides(0, kBoxFaces, [&](int face, Side& side) {
            // The box of face `sent + 1` had face `sent - 1` before.
            const uint64_t before = side.sent - 1;
            if (side.sent <= side.known_taken + 1 ||
                has_flag(mailboxes_.taken(thread_, face, before), static_cast<long>(before)))
                send(link, face, side);
        });
    }

    Seconds take_seconds() {
        const Seconds seconds = seconds_;
        seconds_ = {};
        return seconds;
    }

  private:
    struct Side {
        JacobiWorker neighbour{-1, 0};
        uint64_t sent = 0, received = 0, known_taken = 0;
        long cells = 0;  // of a face
        std::vector<double> outbox;
    };

    template <class F>
    void for_sides(int first, int end, F&& f) {
        for (int face = first; face < end; ++face) {
            if (sides_[face].neighbour.pe >= 0)
                f(face, sides_[face]);
        }
    }

    template <class Link>
    void send(const Link& link, int face, Side& side) {
        double* const outbox = side.outbox.data();
        if (fault_ != Fault::kStaleResult || side.sent == 0)
            timed(&Seconds::pack, [&] { side.cells = box_.pack(face, outbox); });
        // Corners of the whole grid are zero and would not be missed.
        const long missing = fault_ == Fault::kLastElementMissing ? 1 + box_.ghosts_behind(face) : 0;
        const long cells = side.cells - missing;
        ++side.sent;
        timed(&Seconds::exchange, [&] {
            put_and_signal(link, mailboxes_.box(side.neighbour.thread, face ^ 1, side.sent), outbox,
                           sizeof(double) * static_cast<size_t>(cells),
                           mailboxes_.arrived(side.neighbour.thread, face ^ 1, side.sent), side.sent,
                           side.neighbour.pe);
        });
    }

    void take_out(int face, Side& side) {
        ++side.received;
        if (fault_ == Fault::kSkippedOperation)
            return;
        timed(&Seconds::pack, [&] { box_.unpack(face, mailboxes_.box(thread_, face, side.received)); });
    }

    // Of the next face.
    void await_face(int face, const Side& side) const {
        await_signal(mailboxes_.arrived(thread_, face, side.received + 1), side.received + 1);
    }
    bool has_face(int face, const Side& side) const {
        return has_signal(mailboxes_.arrived(thread_, face, side.received + 1), side.received + 1);
    }

    // Thread 0 alone looks at the clock.
    template <class F>
    void timed(double Seconds::* phase, F&& f) {
        clocked(thread_ == 0 ? &(seconds_.*phase) : nullptr, f);
    }

    const Fault fault_;
    const JacobiMailboxes& mailboxes_;
    JacobiBox& box_;
    const int thread_;
    Side sides_[kBoxFaces];
    Seconds seconds_;
};

}  // namespace shmem_mt

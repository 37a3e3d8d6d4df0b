// Which piece a thread computes next: one of its own PE's block while there are some, then of the next PE's block, and
// so on round all PEs. A piece is taken by a fetch-add at the block's PE. The result is less than the block's length
// exactly once for each piece; once it is not, the block stays empty.
#pragma once

#include "apps/mandelbrot/image.hpp"

namespace shmem_mt {

// One thread's.
class PieceTaker {
  public:
    PieceTaker(const MandelbrotImage& image, int me, int n_pes) : image_(image), me_(me), n_pes_(n_pes) {}

    // A piece that no other thread gets; -1: all are taken.
    template <class Link>
    long take(const Link& link) {
        while (exhausted_ < n_pes_) {
            const long piece = piece_of(victim(), link.fetch_add(image_.taken(), 1, victim()));
            if (piece >= 0)
                return piece;
            ++exhausted_;
        }
        return -1;
    }

    // A piece that is asked for before it is needed.
    struct Ticket {
        int victim = -1;  // -1: not asked for
        long count = 0;
    };

    // Asks; the answer is there when `link` is quiet.
    template <class Link>
    void ask(const Link& link, Ticket& ticket) const {
        ticket.victim = exhausted_ < n_pes_ ? victim() : -1;
        if (ticket.victim >= 0)
            link.fetch_add_nbi(&ticket.count, image_.taken(), 1, ticket.victim);
    }

    // The piece that was asked for, or another where that PE had none left; -1: all are taken.
    template <class Link>
    long take(const Link& link, const Ticket& ticket) {
        const long piece = ticket.victim < 0 ? -1 : piece_of(ticket.victim, ticket.count);
        if (piece >= 0)
            return piece;
        if (ticket.victim >= 0 && exhausted_ < n_pes_ && ticket.victim == victim())
            ++exhausted_;
        return take(link);
    }

  private:
    int victim() const { return (me_ + exhausted_) % n_pes_; }

    // From both ends of the block in turns: the middle of the picture takes long, its margins are soon computed and as
    // long to send; so both keep step.
    long piece_of(int pe, long count) const {
        const Range block = image_.block(pe);
        if (count >= block.length())
            return -1;
        return count % 2 == 0 ? block.begin + count / 2 : block.end - 1 - count / 2;
    }

    const MandelbrotImage& image_;
    const int me_, n_pes_;
    int exhausted_ = 0;  // PEs, from this one on, whose block has none left
};

}  // namespace shmem_mt

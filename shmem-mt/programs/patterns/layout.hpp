// Who sends what to whom in a pattern: the items of each PE. An item is what one thread sends to one PE, or gets from it,
// in a turn: the messages of a window, a piece of a face, a piece of a block. An item and the one of its peer belong
// together: what one sends the other receives. Both are owned by the thread (number % callers) of their PE, so the
// thread that receives an item is also the one that sends it: two sets of inboxes in turns need no further message.
//
// `callers` are the threads that send: all of the PE, or one (SHMEM_THREAD_FUNNELED).
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "programs/common/grid.hpp"
#include "programs/common/validation.hpp"
#include "programs/patterns/ways.hpp"

namespace shmem_mt {

struct Item {
    int peer;     // a PE; of random nobody: each message draws its own
    int number;   // among the items of this PE: where it lies in outbox and inbox, and its flag
    int at_peer;  // the number of the peer's item that belongs to this one
    long bytes;   // of a message
    bool sends;
    bool receives;
    bool answers = false;  // of latency: receives first
};

// What all PEs know of a pattern.
struct Layout {
    Pattern pattern;
    int n_pes;
    int threads;
    int callers;
    long size_bytes;
    long messages;    // of an item
    long pieces = 1;  // of a face or a block, an item each

    Layout(Pattern which, int pes, int all_threads, int calling, long size, long asked)
        : pattern(which), n_pes(pes), threads(all_threads), callers(calling), size_bytes(size) {
        const long units = is_exchange(which) ? faces() : 1;
        if (is_exchange(which)) {
            const long needed = std::max(asked, (calling + units - 1) / units);
            pieces = std::clamp(needed, 1L, std::max(1L, size / 8));
            messages = 1;
        } else if (which == Pattern::kLatency) {
            messages = 1;
        } else {
            messages = asked > 0 ? asked : std::clamp((256L << 10) / size, 4L, 64L);
        }
    }

    // Of a PE; of an exchange of blocks one for each PE.
    int faces() const { return pattern == Pattern::kHalo2d ? 4 : pattern == Pattern::kHalo3d ? 6 : n_pes; }

    // What a point calls its messages: those of a window, or the parts of a face or block.
    long shown_messages() const { return is_exchange(pattern) ? pieces : messages; }

    // The most items that a PE has.
    long most_items() const {
        const bool one_for_all = pattern == Pattern::kIncast || pattern == Pattern::kFanOut;
        if (is_exchange(pattern))
            return faces() * pieces;
        return static_cast<long>(threads) * (one_for_all ? std::max(1, n_pes - 1) : 1);
    }

    // How many inboxes of items a PE has.
    long inboxes() const { return pattern == Pattern::kRandom ? static_cast<long>(threads) * n_pes : most_items(); }

    // Room for an item.
    long stride() const {
        const long largest = pieces > 1 ? piece_bytes(0) + 8 : size_bytes;  // the last has what is no word
        return (std::max(8L, largest) * messages + 63) / 64 * 64;
    }

    // From a message of an item to the next.
    long message_stride() const { return std::max(8L, size_bytes); }

    // The first pieces are a word longer where the words do not divide.
    long piece_bytes(long piece) const {
        const long words = size_bytes / 8;
        if (pieces == 1)
            return size_bytes;
        const long own = words / pieces + (piece < words % pieces);
        return 8 * own + (piece == pieces - 1 ? size_bytes % 8 : 0);
    }

    // The sides of the grid of PEs, largest first; a plane of halo2d.
    Place grid() const { return pattern == Pattern::kHalo2d ? plane_of(n_pes) : grid_of(n_pes); }

    // Where message `message` of item `number` of PE `from` goes in turn `turn` of random.
    int drawn_pe(long turn, int from, int number, long message) const {
        const long sender = static_cast<long>(from) * threads + number;
        return static_cast<int>(pattern_word(turn, sender, message) % static_cast<uint64_t>(n_pes));
    }

    // All items of that PE.
    std::vector<Item> items_of(int pe) const {
        std::vector<Item> items;
        switch (pattern) {
            case Pattern::kHalo2d:
            case Pattern::kHalo3d:
                for (int face = 0; face < faces(); ++face)
                    add_pieces(items, face, neighbour(grid(), place_of(grid(), pe), face / 2, face % 2 ? 1 : -1),
                               face ^ 1);
                break;
            case Pattern::kAlltoall:
                for (int step = 0; step < n_pes; ++step)
                    add_pieces(items, step, (pe + step) % n_pes, (n_pes - step) % n_pes);
                break;
            case Pattern::kIncast:
            case Pattern::kFanOut:
                add_star(items, pe);
                break;
            case Pattern::kRandom:
                for (int thread = 0; thread < threads; ++thread)
                    items.push_back({-1, thread, thread, size_bytes, true, false});
                break;
            default:
                add_pairs(items, pe);
        }
        return items;
    }

  private:
    // The sides of a plane that lie closest together.
    static Place plane_of(int n) {
        int side = 1;
        for (int y = 1; y <= n / y; ++y) side = n % y == 0 ? y : side;
        return {n / side, side, 1};
    }

    void add_pieces(std::vector<Item>& items, int face, int peer, int face_of_peer) const {
        const int count = static_cast<int>(pieces);
        for (int piece = 0; piece < count; ++piece)
            items.push_back({peer, face * count + piece, face_of_peer * count + piece, piece_bytes(piece), true, true});
    }

    // PE 0 against all others; alone, against itself.
    void add_star(std::vector<Item>& items, int pe) const {
        const bool gathers = pattern == Pattern::kIncast, alone = n_pes == 1;
        for (int other = 1; other < std::max(2, n_pes); ++other) {
            if (pe != 0 && pe != other)
                continue;
            for (int thread = 0; thread < threads; ++thread) {
                const int at_centre = alone ? thread : (other - 1) * threads + thread;
                const bool is_centre = pe == 0;
                items.push_back({alone       ? 0
                                 : is_centre ? other
                                             : 0,
                                 is_centre ? at_centre : thread, is_centre ? thread : at_centre, size_bytes,
                                 alone || is_centre != gathers, alone || is_centre == gathers});
            }
        }
    }

    // A thread with the same one of the partner; one PE alone: the lower half of its threads with the upper half, one
    // thread with itself, and the last of an odd number with nobody.
    void add_pairs(std::vector<Item>& items, int pe) const {
        const bool alone = n_pes == 1, both_ways = pattern != Pattern::kStream;
        const int count = pattern == Pattern::kLatency ? callers : threads;
        for (int thread = 0; thread < count; ++thread) {
            Item item{0, thread, thread, size_bytes, true, true};
            const int half = alone ? count / 2 : n_pes / 2;
            const bool upper = alone ? thread >= half : pe >= half;
            if (alone && thread == 2 * half && count > 1)
                continue;
            item.peer = alone ? 0 : upper ? pe - half : pe + half;
            const bool itself = alone && count == 1;
            if (alone && !itself)
                item.at_peer = upper ? thread - half : thread + half;
            item.sends = both_ways || itself || !upper;
            item.receives = both_ways || itself || upper;
            item.answers = pattern == Pattern::kLatency && upper && !itself;
            items.push_back(item);
        }
    }
};

}  // namespace shmem_mt

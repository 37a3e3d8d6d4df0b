// Shadow: the last accesses to the symmetric memory of one PE, its owner, by any PE. In shared memory, which begins
// zeroed. Threads: of any PE; a lock for each block.
//
// A position is a byte of the owner's symmetric memory, heap and static data as one range. Positions come in blocks of
// 512, a block in 64 granules of 8. A block keeps four accesses that cover it whole, so that long transfers are cheap.
// The granules have four each, in a chunk, which a block takes at its first access to a part of it.
//
// Bounded: a granule forgets an older access for a fifth, and a block loses its chunk when all chunks are taken. Races
// with what was forgotten are missed. A lost write may have been a flag: whoever sees it then counts as knowing all
// that has happened (Seen::is_lost), so that nothing false is reported.
#pragma once

#include "checking/races/block_bytes.h"
#include "checking/races/knowledge.h"
#include "checking/races/mark.h"
#include "checking/races/shared_lock.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::checking::races {

// Rounded up to whole cache lines.
constexpr size_t whole_lines(size_t bytes) {
    constexpr size_t kLine = 64;
    return (bytes + kLine - 1) / kLine * kLine;
}

// Two accesses that nothing orders, and the first position that both have.
struct Conflict {
    Mark earlier = {};
    size_t position = 0;
};

// Conflicts of one access, up to `most`, one with each earlier call.
class Conflicts {
  public:
    explicit Conflicts(size_t most) : most_(most) {}
    void add(const Mark& earlier, size_t position) {
        const auto is_there = [&](const Conflict& one) {
            return one.earlier.pe == earlier.pe && one.earlier.place == earlier.place;
        };
        if (found_.size() < most_ && std::none_of(found_.begin(), found_.end(), is_there))
            found_.push_back({earlier, position});
    }
    auto begin() const { return found_.begin(); }
    auto end() const { return found_.end(); }

  private:
    size_t most_;
    std::vector<Conflict> found_;
};

// The plain writes that a wait may have seen.
struct Seen {
    static constexpr size_t kMost = 16;
    std::array<Mark, kMost> writes = {};
    size_t n = 0;
    bool is_lost = false;

    void add(const Mark& write) {
        if (n < kMost)
            writes[n++] = write;
        else
            is_lost = true;
    }
};

class Shadow {
  public:
    static constexpr size_t kBlockBytes = races::kBlockBytes, kGranuleBytes = 8;
    static constexpr size_t kGranules = kBlockBytes / kGranuleBytes;

    Shadow(char* memory, size_t positions, int owner);
    static size_t bytes(size_t positions);

    // Checks the access to `bytes` positions against earlier ones, and keeps it. Cost: a lock and some 5 ns for each
    // granule; for whole blocks, for each block.
    void access(size_t position, size_t bytes, const Mark& access, const Knowledge& known, Conflicts* conflicts);
    // access, of some bytes of the block that begins at the position.
    void access_block(size_t position, const BlockBytes& bytes, const Mark& access, const Knowledge& known,
                      Conflicts* conflicts);

    // The writes that a wait on these positions, at most 16, may have seen. They are over from now on.
    void see(size_t position, size_t bytes, Seen* seen);

    // The newest write to any of these positions, which lie in one granule. False where it is not known, and when
    // another PE keeps an access meanwhile.
    bool try_last_write(size_t position, size_t bytes, Mark* write);

  private:
    static constexpr size_t kKept = 4;
    using Marks = std::array<Mark, kKept>;
    struct Chunk {
        Marks of[kGranules];
    };
    struct Block {
        SharedLock lock;
        uint32_t chunk;    // its number plus one; 0: none
        uint32_t is_lost;  // a write: kOlderLost, kAnyLost
        uint32_t writes;   // to any part of the block
        Marks whole;

        // How many writes to the block came behind the mark; modulo 2^20.
        uint32_t age(const Mark& mark) const { return (writes - mark.stamp) % kStamps; }
    };
    struct Pool {
        SharedLock lock;
        uint32_t taken;   // chunks that have been taken from the start
        uint32_t victim;  // where the search for a chunk to take away begins
        uint32_t n_free;
    };
    // Of a granule or the block, older than those that are kept; and any.
    static constexpr uint32_t kOlderLost = 1, kAnyLost = 2;
    static constexpr uint32_t kStamps = 1 << 20;  // Mark::stamp
    static constexpr uint32_t kChunks = 1 << 14;  // 64 MiB, for 8 MiB of memory that is accessed in parts

    // One access, as a granule or a block looks at it.
    struct Look {
        const Mark& access;
        const Knowledge& known;
        int owner;
        Conflicts* conflicts;

        // is_part: of what the marks are of.
        void check(Marks& marks, uint8_t bytes, size_t position, bool is_part = false) const;
        bool renews(const Marks& marks, const Mark& mark) const;
    };

    Block& block(size_t number) const { return blocks_[number]; }
    Chunk* chunk_of(Block& block, size_t number);
    uint32_t take_chunk(size_t number);
    void give_chunk(Block& block);
    void spread(Block& block, Chunk& chunk);
    void access_whole(size_t number, const Look& look);
    template <class ForEachGranule>
    void access_part(size_t number, size_t first, const Look& look, ForEachGranule for_each_granule);
    static Mark stamped(Block& block, const Mark& access);
    static void keep(Block& block, Marks& marks, const Mark& mark);

    Pool* pool_;
    uint32_t* free_;   // numbers of chunks that were given back
    uint64_t* users_;  // by chunk: the number of its block
    Chunk* chunks_;
    Block* blocks_;
    size_t n_blocks_;
    int owner_;
};

}  // namespace heddle::checking::races

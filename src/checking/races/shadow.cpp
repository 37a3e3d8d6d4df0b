#include "checking/races/shadow.h"

#include <algorithm>
#include <bit>
#include <mutex>

namespace heddle::checking::races {

namespace {

// The bits of the granule's bytes [begin, end).
uint8_t bits(size_t begin, size_t end) {
    return static_cast<uint8_t>((0xffu << begin) & (0xffu >> (Shadow::kGranuleBytes - end)));
}

size_t first_of(const BlockBytes& bytes) {
    size_t word = 0;
    while (bytes[word] == 0) ++word;
    return word * 64 + static_cast<size_t>(std::countr_zero(bytes[word]));
}

bool is_same_kind(const Mark& one, const Mark& other) {
    return one.pe == other.pe && one.writes == other.writes && one.is_atomic == other.is_atomic &&
           one.completion == other.completion && one.flow == other.flow;
}

}  // namespace

Shadow::Shadow(char* memory, size_t positions, int owner)
    : n_blocks_((positions + kBlockBytes - 1) / kBlockBytes), owner_(owner) {
    pool_ = reinterpret_cast<Pool*>(memory);
    memory += whole_lines(sizeof(Pool));
    free_ = reinterpret_cast<uint32_t*>(memory);
    memory += whole_lines(kChunks * sizeof *free_);
    users_ = reinterpret_cast<uint64_t*>(memory);
    memory += whole_lines(kChunks * sizeof *users_);
    chunks_ = reinterpret_cast<Chunk*>(memory);
    memory += kChunks * sizeof *chunks_;
    blocks_ = reinterpret_cast<Block*>(memory);
}

size_t Shadow::bytes(size_t positions) {
    return whole_lines(sizeof(Pool)) + whole_lines(kChunks * sizeof(uint32_t)) +
           whole_lines(kChunks * sizeof(uint64_t)) + kChunks * sizeof(Chunk) +
           whole_lines((positions + kBlockBytes - 1) / kBlockBytes * sizeof(Block));
}

// Forgets what the access makes needless: an earlier one that is over, whose every conflict the access has, too.
void Shadow::Look::check(Marks& marks, uint8_t bytes, size_t position, bool is_part) const {
    for (Mark& earlier : marks) {
        const uint8_t both = earlier.bytes & bytes;
        if (both == 0)
            continue;
        if (known.is_before(earlier, access, owner)) {
            const bool covered = !is_part && both == earlier.bytes && (access.writes || !earlier.writes) &&
                                 (!access.is_atomic || earlier.is_atomic);
            if (covered)
                earlier = {};
        } else if (conflict(earlier, access)) {
            conflicts->add(earlier, position + static_cast<size_t>(__builtin_ctz(both)));
        }
    }
}

// The PE does again what it has done there, and nothing else is kept: check and keep would replace the mark, too. What
// is not over before this access is no conflict where both are atomic.
bool Shadow::Look::renews(const Marks& marks, const Mark& mark) const {
    return (mark.completion == Completion::kAtReturn || mark.is_atomic) && marks[0].bytes == mark.bytes &&
           is_same_kind(marks[0], mark) && static_cast<int>(mark.pe) == known.pe && marks[1].is_empty() &&
           marks[2].is_empty() && marks[3].is_empty();
}

void Shadow::keep(Block& block, Marks& marks, const Mark& mark) {
    Mark* place = nullptr;
    for (Mark& earlier : marks) {
        if (is_same_kind(earlier, mark) && (earlier.bytes & ~mark.bytes) == 0) {
            if (block.age(earlier) < block.age(mark))
                return;        // handed on by spread, and older
            place = &earlier;  // what is before the new one is before this one
            break;
        }
        if (!place && earlier.is_empty())
            place = &earlier;
    }
    if (!place) {
        const auto older = [&](const Mark& one, const Mark& other) {
            return one.writes != other.writes ? !one.writes : block.age(one) > block.age(other);
        };
        place = std::min_element(marks.begin(), marks.end(), older);
        if (place->writes)
            block.is_lost |= kOlderLost;
    }
    *place = mark;
}

void Shadow::access(size_t position, size_t bytes, const Mark& access, const Knowledge& known, Conflicts* conflicts) {
    const Look look = {access, known, owner_, conflicts};
    for (size_t end = position + bytes; position < end;) {
        const size_t number = position / kBlockBytes, begin = position % kBlockBytes;
        const size_t here = std::min(kBlockBytes - begin, end - position);
        if (number >= n_blocks_)
            return;
        if (here == kBlockBytes)
            access_whole(number, look);
        else
            access_part(number, begin, look, [&](auto use) {
                for (size_t at = begin, last = begin + here; at < last;) {
                    const size_t granule = at / kGranuleBytes, start = granule * kGranuleBytes;
                    use(granule, bits(at - start, std::min(last - start, kGranuleBytes)));
                    at = start + kGranuleBytes;
                }
            });
        position += here;
    }
}

void Shadow::access_block(size_t position, const BlockBytes& bytes, const Mark& access, const Knowledge& known,
                          Conflicts* conflicts) {
    const Look look = {access, known, owner_, conflicts};
    const size_t number = position / kBlockBytes;
    if (number >= n_blocks_ || is_none(bytes))
        return;
    if (is_whole(bytes))
        return access_whole(number, look);
    access_part(number, first_of(bytes), look, [&](auto use) {
        for (size_t word = 0; word < bytes.size(); ++word)
            for (uint64_t rest = bytes[word]; rest != 0;) {
                const size_t in_word = static_cast<size_t>(std::countr_zero(rest)) / kGranuleBytes;
                use(word * 64 / kGranuleBytes + in_word, static_cast<uint8_t>(rest >> in_word * kGranuleBytes));
                rest &= ~(uint64_t{0xff} << in_word * kGranuleBytes);
            }
    });
}

// The access as the block keeps it.
Mark Shadow::stamped(Block& block, const Mark& access) {
    Mark mark = access;
    block.writes += mark.writes;
    mark.stamp = block.writes % kStamps;
    return mark;
}

void Shadow::access_whole(size_t number, const Look& look) {
    Block& at = block(number);
    const std::lock_guard locked(at.lock);
    look.check(at.whole, 0xff, number * kBlockBytes);
    Mark mark = stamped(at, look.access);
    mark.bytes = 0xff;
    if (at.chunk != 0) {
        Chunk& chunk = chunks_[at.chunk - 1];
        bool is_empty = true;
        for (size_t i = 0; i < kGranules; ++i) {
            look.check(chunk.of[i], 0xff, number * kBlockBytes + i * kGranuleBytes);
            for (const Mark& kept : chunk.of[i]) is_empty &= kept.is_empty();
        }
        if (is_empty)
            give_chunk(at);
    }
    keep(at, at.whole, mark);
}

// for_each_granule: calls its argument with each granule and the bits of its bytes. first: of all bytes.
template <class ForEachGranule>
void Shadow::access_part(size_t number, size_t first, const Look& look, ForEachGranule for_each_granule) {
    Block& at = block(number);
    const std::lock_guard locked(at.lock);
    look.check(at.whole, 0xff, number * kBlockBytes + first, true);
    Mark mark = stamped(at, look.access);
    Chunk* const chunk = chunk_of(at, number);
    if (!chunk) {
        at.is_lost |= mark.writes ? kAnyLost : 0;
        return;
    }
    for_each_granule([&](size_t granule, uint8_t bytes) {
        mark.bytes = bytes;
        Marks& marks = chunk->of[granule];
        if (look.renews(marks, mark)) {
            marks[0] = mark;
            return;
        }
        look.check(marks, bytes, number * kBlockBytes + granule * kGranuleBytes);
        keep(at, marks, mark);
    });
}

void Shadow::see(size_t position, size_t bytes, Seen* seen) {
    const size_t end = position + bytes;
    for (size_t granule = position / kGranuleBytes; granule * kGranuleBytes < end; ++granule) {
        const size_t number = granule / kGranules, start = granule * kGranuleBytes;
        if (number >= n_blocks_)
            return;
        const uint8_t wanted = bits(std::max(position, start) - start, std::min(end - start, kGranuleBytes));
        Block& at = block(number);
        const std::lock_guard locked(at.lock);
        seen->is_lost |= at.is_lost != 0;
        const bool has_whole =
            std::any_of(at.whole.begin(), at.whole.end(), [](const Mark& mark) { return mark.writes != 0; });
        if (at.chunk == 0 && !has_whole)
            continue;
        Chunk* const chunk = chunk_of(at, number);
        if (!chunk) {
            seen->is_lost = true;
            continue;
        }
        if (has_whole)
            spread(at, *chunk);
        for (Mark& mark : chunk->of[granule % kGranules])
            if (mark.writes && (mark.bytes & wanted) != 0) {
                if (!mark.is_atomic)
                    seen->add(mark);
                mark.completion = Completion::kAtReturn;
            }
    }
}

bool Shadow::try_last_write(size_t position, size_t bytes, Mark* write) {
    const size_t number = position / kBlockBytes, granule = position / kGranuleBytes;
    if (number >= n_blocks_ || bytes == 0 || (position + bytes - 1) / kGranuleBytes != granule)
        return false;
    Block& at = block(number);
    const std::unique_lock locked(at.lock, std::try_to_lock);
    if (!locked)
        return false;
    const size_t begin = position % kGranuleBytes;
    const Mark* newest = nullptr;
    bool is_whole = false;
    const auto look = [&](const Marks& marks, bool whole) {
        for (const Mark& mark : marks) {
            if (!mark.writes || (mark.bytes & bits(begin, begin + bytes)) == 0 ||
                (newest && at.age(*newest) <= at.age(mark)))
                continue;
            newest = &mark;
            is_whole = whole;
        }
    };
    look(at.whole, true);
    if (at.chunk != 0)
        look(chunks_[at.chunk - 1].of[granule % kGranules], false);
    // A chunk that was lost may have had a newer one than those of the whole block.
    if (!newest || (is_whole && (at.is_lost & kAnyLost) != 0))
        return false;
    *write = *newest;
    return true;
}

// Hands the marks of the whole block on to its granules.
void Shadow::spread(Block& block, Chunk& chunk) {
    for (Mark& mark : block.whole) {
        if (mark.is_empty())
            continue;
        for (Marks& marks : chunk.of) keep(block, marks, mark);
        mark = {};
    }
}

// The block's chunk, taken if it has none; null when there is none. The block's lock is held.
Shadow::Chunk* Shadow::chunk_of(Block& block, size_t number) {
    if (block.chunk == 0)
        block.chunk = take_chunk(number);
    return block.chunk == 0 ? nullptr : &chunks_[block.chunk - 1];
}

uint32_t Shadow::take_chunk(size_t number) {
    const std::lock_guard locked(pool_->lock);
    uint32_t chunk = 0;
    if (pool_->n_free > 0) {
        chunk = free_[--pool_->n_free] + 1;
    } else if (pool_->taken < kChunks) {
        chunk = ++pool_->taken;
    } else {
        // From another block, whose lock is only tried: its holder may wait for this lock.
        constexpr int kTries = 64;
        for (int i = 0; i < kTries && chunk == 0; ++i) {
            const uint32_t victim = pool_->victim;
            pool_->victim = (victim + 1) % kChunks;
            Block& from = block(users_[victim]);
            if (!from.lock.try_lock())
                continue;
            if (from.chunk == victim + 1) {
                from.chunk = 0;
                from.is_lost |= kAnyLost;
                chunk = victim + 1;
            }
            from.lock.unlock();
        }
        if (chunk == 0)
            return 0;
    }
    users_[chunk - 1] = number;
    chunks_[chunk - 1] = {};
    return chunk;
}

// Gives the block's empty chunk back.
void Shadow::give_chunk(Block& block) {
    const std::lock_guard locked(pool_->lock);
    free_[pool_->n_free++] = block.chunk - 1;
    block.chunk = 0;
}

}  // namespace heddle::checking::races

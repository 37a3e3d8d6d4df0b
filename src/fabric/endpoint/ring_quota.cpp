#include "fabric/endpoint/ring_quota.h"

#include "base/invariant.h"
#include "fabric/endpoint/stream.h"

#include <algorithm>

namespace heddle::fabric {

void RingQuota::add(Stream& stream) {
    if (newest_) {
        stream.next_with_ring = newest_->next_with_ring;
        newest_->next_with_ring = &stream;
    } else {
        stream.next_with_ring = &stream;
    }
    newest_ = &stream;
    ++count_;
}

// Takes back the ring that was lent first. False where it is in use: it then counts as lent last.
bool RingQuota::take_back_oldest() {
    Stream& oldest = *newest_->next_with_ring;
    if (!oldest.give_back()) {
        newest_ = &oldest;
        return false;
    }
    if (newest_ == &oldest)
        newest_ = nullptr;
    else
        newest_->next_with_ring = oldest.next_with_ring;
    oldest.next_with_ring = nullptr;
    --count_;
    return true;
}

bool RingQuota::allow(size_t bytes) {
    const auto fits = [&] { return slab->lent() + bytes <= slab->plenty() || lent() + bytes <= slab->plenty() / 512; };
    for (unsigned looks = 0; !fits(); ++looks) {
        if (looks == kLooks || !newest_)
            return false;
        take_back_oldest();
    }
    return true;
}

void RingQuota::lend(Stream& stream, SendRing& ring, size_t bytes) {
    HEDDLE_INVARIANT(ring.is_free());
    const size_t least = RingSlab::size_for(bytes), now = ring.size();
    const size_t first = slab->lent() < slab->plenty() / 4 ? kEasyRing : kMinRing;
    size_t size =
        now == 0 ? std::max({least, first, ring.last_size()}) : RingSlab::size_for(std::max(2 * bytes, 4 * now));
    if (size == 0 || (size > now && !allow(size - now)))  // which may have taken this ring back
        size = least;
    if (size <= ring.size())
        return;
    char* memory = slab->take(size);
    if (!memory && least < size && least > ring.size())
        memory = slab->take(size = least);
    if (!memory)
        return;
    if (ring.size() == 0)
        add(stream);
    else
        take_back(ring);
    ring.set_memory(memory, size);
    bytes_.store(lent() + size, std::memory_order_relaxed);
}

void RingQuota::take_back(SendRing& ring) {
    const size_t size = ring.size();
    HEDDLE_INVARIANT(size != 0 && size <= lent());
    bytes_.store(lent() - size, std::memory_order_relaxed);
    slab->give(ring.set_memory(nullptr, 0), size);
}

void RingQuota::take_back_all() {
    for (size_t i = count_; i != 0; --i) take_back_oldest();
}

}  // namespace heddle::fabric

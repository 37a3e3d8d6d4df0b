#include "fabric/endpoint/return_ring.h"

#include "fabric/protocol/record.h"
#include "fabric/protocol/untorn.h"

namespace heddle::fabric {

// The entry of the next return, which publish makes valid.
ReturnRing::Return& ReturnRing::next() {
    // A ring entry is used again when its return is done.
    HEDDLE_INVARIANT(head_ - returned_.load(std::memory_order_relaxed) < size_);
    HEDDLE_INVARIANT(head_ == published_.load(std::memory_order_relaxed));
    Return& entry = at(head_);
    entry.coming = false;
    entry.done.store(false, std::memory_order_relaxed);
    return entry;
}

void ReturnRing::grow() {
    HEDDLE_INVARIANT(size_ < kMaxReturns && has_returned(head_));
    delete[] ring_;
    size_ = size_ == 0 ? kMinReturns : 4 * size_;
    static_assert(kMaxReturns % kMinReturns == 0 && (kMinReturns & (kMinReturns - 1)) == 0);
    ring_ = new Return[size_];
}

void ReturnRing::shrink() {
    if (size_ == 0 || !has_returned(head_))
        return;
    delete[] ring_;
    ring_ = nullptr;
    size_ = 0;
}

void ReturnRing::publish(size_t bytes) {
    bytes_ += bytes;
    ++head_;
    published_.store(head_, std::memory_order_release);  // pairs with ReturnRing::published; ahead of the record
}

void ReturnRing::take(char* to, size_t bytes) {
    Return& entry = next();
    entry.to = to;
    entry.bytes = bytes;
    entry.native = false;
    entry.large = bytes >= kLargeBytes;
    publish(bytes);
}

void ReturnRing::take_native(Stream* stream) {
    Return& entry = next();
    entry.stream = stream;
    entry.bytes = 0;
    entry.native = true;
    entry.large = false;
    has_natives_.store(true, std::memory_order_relaxed);  // seen by who sees the return published
    publish(0);
}

bool ReturnRing::on_reply(uint64_t first, uint32_t count, const char* body, size_t bytes) {
    const uint64_t known = published();
    uint64_t number = number_of(first, known);
    if (number < returned_.load(std::memory_order_relaxed) || number > known || known - number < count)
        return false;
    for (; count != 0; ++number) {
        if (number == known)
            return false;
        Return& entry = at(number);
        if (entry.native)
            continue;
        --count;
        const size_t padded = record::padded(entry.bytes);
        if (entry.large || entry.done.load(std::memory_order_relaxed) || padded > bytes)
            return false;
        store_untorn(entry.to, body, entry.bytes);
        entry.done.store(true, std::memory_order_relaxed);
        body += padded;
        bytes -= padded;
    }
    advance();
    return bytes == 0;
}

// The number in the ring of the return that the reply is for. A number before returned_, or not before `published`,
// means that there is none.
uint64_t ReturnRing::number_of(uint64_t reply, uint64_t published) const {
    if (!has_natives_.load(std::memory_order_relaxed))  // seen where one is before `published`
        return reply;
    uint64_t number = returned_.load(std::memory_order_relaxed);
    HEDDLE_INVARIANT(natives_returned_ <= number);
    uint64_t counted = number - natives_returned_;
    if (reply < counted)
        return UINT64_MAX;
    for (; number != published; ++number) {
        const bool native = at(number).native;
        if (!native && counted == reply)
            break;
        counted += !native;
    }
    return number;
}

char* ReturnRing::place_of_large(uint64_t* number, size_t bytes) {
    const uint64_t known = published();
    *number = number_of(*number, known);
    if (*number < returned_.load(std::memory_order_relaxed) || *number >= known)
        return nullptr;
    Return& entry = at(*number);
    if (!entry.large || entry.bytes != bytes || entry.coming)
        return nullptr;
    entry.coming = true;
    return entry.to;
}

void ReturnRing::finish(uint64_t number) {
    HEDDLE_INVARIANT(number >= returned_.load(std::memory_order_relaxed) && number < published());
    finish(at(number));
}

void ReturnRing::finish(Return& entry) {
    // A value comes once: a reply that comes again was refused by `coming` or `done`.
    HEDDLE_INVARIANT(entry.coming && !entry.done.load(std::memory_order_relaxed));
    entry.done.store(true, std::memory_order_relaxed);
    advance();
}

ReturnRing::Return& ReturnRing::begin_native(uint64_t number) {
    HEDDLE_INVARIANT(number >= returned_.load(std::memory_order_relaxed) && number < published());
    Return& entry = at(number);
    HEDDLE_INVARIANT(entry.native && !entry.coming);  // begun once
    entry.coming = true;
    return entry;
}

void ReturnRing::advance() {
    const uint64_t known = published();
    uint64_t returned = returned_.load(std::memory_order_relaxed),
             bytes = returned_bytes_.load(std::memory_order_relaxed);
    HEDDLE_INVARIANT(returned <= known && known - returned <= size_);
    for (; returned != known; ++returned) {
        const Return& entry = at(returned);
        if (!entry.done.load(std::memory_order_relaxed))
            break;
        bytes += entry.bytes;
        natives_returned_ += entry.native;
    }
    HEDDLE_INVARIANT(natives_returned_ <= returned);
    returned_bytes_.store(bytes, std::memory_order_release);  // pairs with ReturnRing::has_space
    // Pairs with ReturnRing::has_returned and ReturnRing::has_space: the values are there.
    returned_.store(returned, std::memory_order_release);
}

}  // namespace heddle::fabric

#include "progress/sequence.h"

#include "base/error.h"
#include "progress/engine.h"

namespace heddle::progress {

Sequence::Operation& Sequence::next(const char* function) {
    if (under_way() == kMost)
        engine_.wait_until(function, [&] { return under_way() < kMost; });
    // Acquire: pairs with carry_on, which has read what lay here.
    const uint32_t posted = posted_.load(std::memory_order_relaxed);
    (void)done_.load(std::memory_order_acquire);
    return operations_[posted % kMost];
}

void Sequence::begin() {
    engine_.count_posted();
    posted_.fetch_add(1, std::memory_order_seq_cst);  // pairs with carry_on, and with drive
    engine_.drive();
}

void Sequence::wait_until_empty(const char* function) {
    engine_.wait_until(function, [&] { return is_empty(); });
}

bool Sequence::drive() {
    bool moved = false;
    uint32_t posted;
    do {
        posted = posted_.load(std::memory_order_seq_cst);
        if (is_empty())
            return moved;
        // seq_cst, with the store below and the loads behind it, here and in Engine::drive: a thread that is turned
        // away here has posted, or heard the bell, before this one looks at them again.
        if (driven_.exchange(true, std::memory_order_seq_cst))
            return moved;
        moved |= carry_on();
        driven_.store(false, std::memory_order_seq_cst);
    } while (posted_.load(std::memory_order_seq_cst) != posted);
    return moved;
}

bool Sequence::carry_on() {
    bool moved = false;
    for (;;) {
        const uint32_t done = done_.load(std::memory_order_relaxed);
        if (fiber_.is_over()) {
            if (posted_.load(std::memory_order_acquire) == done)  // pairs with begin
                return moved;
            if (!fiber_.start(run, &operations_[done % kMost]))
                base::fatal("collective", "no memory for the stack of a non-blocking collective");
        } else if (!fiber_.is_ready()) {
            return moved;
        }
        moved = true;
        fiber_.resume();
        if (!fiber_.is_over())
            continue;
        done_.store(done + 1, std::memory_order_release);  // pairs with is_empty and next
        engine_.count_done();
    }
}

void Sequence::run(void* operation) {
    const auto* it = static_cast<const Operation*>(operation);
    it->run(it->payload);
}

}  // namespace heddle::progress

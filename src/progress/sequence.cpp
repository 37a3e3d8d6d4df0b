#include "progress/sequence.h"

#include "base/error.h"
#include "base/invariant.h"
#include "base/place.h"
#include "progress/engine.h"

namespace heddle::progress {

Sequence::Sequence(Engine& of_engine) : engine_(of_engine), last_(pool_.take()), over_(last_) {
    if (!last_)
        base::fatal("collective", "no memory for non-blocking collectives");
}

void Sequence::begin(Operation* operation, Begin how) {
    HEDDLE_INVARIANT(operation != last_ && operation->run);
    operation->behind.store(nullptr, std::memory_order_relaxed);
    operation->modes = arithmetic_modes();
    engine_.count_posted();
    tsan::release(this);
    last_->behind.store(operation, std::memory_order_release);  // pairs with Sequence::carry_on
    last_ = operation;
    posted_.fetch_add(1, std::memory_order_seq_cst);  // see Sequence::drive
    if (how == Begin::kInBackground)
        engine_.begin_in_background();
    else if (how == Begin::kByPoster)
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
        // seq_cst, with the store below and the loads behind it, here and in Engine::drive. A thread that is turned
        // away here has posted, or seen the wake-up advance, before the driving thread checks posted_ and the wake-up
        // again.
        if (driven_.exchange(true, std::memory_order_seq_cst))
            return moved;
        tsan::acquire(this);
        moved |= carry_on();
        tsan::release(this);
        driven_.store(false, std::memory_order_seq_cst);
    } while (posted_.load(std::memory_order_seq_cst) != posted);
    return moved;
}

bool Sequence::carry_on() {
    bool moved = false;
    for (;;) {
        Operation* const next = over_->behind.load(std::memory_order_acquire);  // pairs with Sequence::begin
        if (!next)
            return moved;
        if (fiber_.is_over()) {
            if (!fiber_.start([](void* it) { run(static_cast<Operation*>(it)); }, next, next->modes))
                base::fatal("collective", "no memory for the stack of a non-blocking collective");
        } else if (!fiber_.is_ready()) {
            return moved;
        }
        HEDDLE_INVARIANT(driven_.load(std::memory_order_relaxed));  // one thread at a time
        moved = true;
        const void* const before = base::set_posted_at(next->caller);
        fiber_.resume();
        base::set_posted_at(before);
        if (!fiber_.is_over())
            continue;
        // One operation at most is linked and not counted yet: that of the thread in Sequence::begin.
        HEDDLE_INVARIANT(static_cast<int32_t>(under_way()) >= 0);
        pool_.give(over_);
        over_ = next;
        done_.fetch_add(1, std::memory_order_release);  // pairs with Sequence::is_empty
        engine_.count_done();
    }
}

void Sequence::run(const Operation* operation) {
    operation->run(operation->payload.object());
}

}  // namespace heddle::progress

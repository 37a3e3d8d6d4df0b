#include "checking/chaos/late_operations.h"

#include "base/invariant.h"

#include <algorithm>
#include <utility>

namespace heddle::checking {

using operations::Operation;

const LateOperations::Target* LateOperations::find(shmem_ctx_t ctx, int pe) const {
    const auto found = std::find_if(targets_.begin(), targets_.end(),
                                    [&](const Target& target) { return target.ctx == ctx && target.pe == pe; });
    return found == targets_.end() ? nullptr : &*found;
}

LateOperations::Target* LateOperations::find(shmem_ctx_t ctx, int pe) {
    return const_cast<Target*>(std::as_const(*this).find(ctx, pe));
}

uint64_t LateOperations::epoch_of(shmem_ctx_t ctx) const {
    const auto found =
        std::find_if(epochs_.begin(), epochs_.end(), [&](const Epoch& epoch) { return epoch.ctx == ctx; });
    return found == epochs_.end() ? 0 : found->number;
}

void LateOperations::fence(shmem_ctx_t ctx) {
    if (std::none_of(targets_.begin(), targets_.end(), [&](const Target& target) { return target.ctx == ctx; }))
        return;  // nothing to order
    for (Epoch& epoch : epochs_)
        if (epoch.ctx == ctx) {
            ++epoch.number;
            return;
        }
    epochs_.push_back({ctx, 1});
}

void LateOperations::add(LateOperation&& late) {
    const Operation& operation = late.operation;
    Target* target = find(operation.ctx, operation.pe);
    if (!target) {
        targets_.push_back({operation.ctx, operation.pe, 0, {}});
        target = &targets_.back();
    }
    late.epoch = epoch_of(operation.ctx);
    if (target->ready == target->operations.size() &&
        (target->ready == 0 || target->operations.front().epoch == late.epoch))
        ++target->ready;
    ++n_;
    bytes_ += late.bytes;
    target->operations.push_back(std::move(late));
}

bool LateOperations::has_earlier(const Operation& operation) const {
    const Target* const target = find(operation.ctx, operation.pe);
    return target && target->operations.front().epoch < epoch_of(operation.ctx);
}

bool LateOperations::selects(const Selection& selection, const Target& target) {
    if (selection.ctx && selection.ctx != target.ctx)
        return false;
    return !selection.pes ||
           std::find(selection.pes, selection.pes + selection.npes, target.pe) != selection.pes + selection.npes;
}

bool LateOperations::has(const Selection& selection) const {
    return std::any_of(targets_.begin(), targets_.end(),
                       [&](const Target& target) { return selects(selection, target); });
}

// Removes the i-th operation of the target, one of those that may leave. The target goes with its last one.
void LateOperations::remove(Target& target, size_t i, LateOperation* late) {
    std::vector<LateOperation>& operations = target.operations;
    HEDDLE_INVARIANT(i < target.ready);
    std::swap(operations[i], operations[target.ready - 1]);  // their order says nothing
    *late = std::move(operations[target.ready - 1]);
    operations.erase(operations.begin() + static_cast<ptrdiff_t>(target.ready - 1));
    late->fenced = late->epoch < epoch_of(target.ctx);
    --n_;
    bytes_ -= late->bytes;
    if (operations.empty()) {
        const shmem_ctx_t ctx = target.ctx;
        std::swap(target, targets_.back());
        targets_.pop_back();
        if (!has({.ctx = ctx}))
            std::erase_if(epochs_, [&](const Epoch& epoch) { return epoch.ctx == ctx; });
        return;
    }
    if (--target.ready > 0)
        return;
    const uint64_t epoch = operations.front().epoch;
    const auto end = std::find_if(operations.begin(), operations.end(),
                                  [&](const LateOperation& each) { return each.epoch != epoch; });
    target.ready = static_cast<size_t>(end - operations.begin());
}

bool LateOperations::take(Random& random, const Selection& selection, LateOperation* late) {
    if (targets_.empty())
        return false;
    // From a target that is drawn on; in it from an operation that is drawn on.
    const size_t first = random.below(targets_.size());
    for (size_t k = 0; k < targets_.size(); ++k) {
        Target& target = targets_[(first + k) % targets_.size()];
        if (!selects(selection, target))
            continue;
        const size_t begin = random.below(target.ready);
        for (size_t j = 0; j < target.ready; ++j) {
            const size_t i = (begin + j) % target.ready;
            if (target.operations[i].due_ns > selection.due_ns)
                continue;
            remove(target, i, late);
            return true;
        }
    }
    return false;
}

bool LateOperations::take_earlier(Random& random, const Operation& operation, LateOperation* late) {
    if (!has_earlier(operation))
        return false;
    Target& target = *find(operation.ctx, operation.pe);
    remove(target, random.below(target.ready), late);
    return true;
}

}  // namespace heddle::checking

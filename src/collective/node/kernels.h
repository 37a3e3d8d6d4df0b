// The arithmetic of reductions, and copies: dest[i] = a[i] op b[i] over arrays, for each type and operation. Compiled
// once for each kind of vector unit from one source (kernels_body.h). No state; any thread.
//
// dest may equal a or b, but not overlap them otherwise. Integers wrap around. Every kernel gives the same bits on
// every vector unit: an element is computed by the same single operation, and multiplications and additions are not
// contracted.
#pragma once

#include "base/choices.h"

#include <heddle/abi.h>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace heddle::collective {

enum class Op : int { kAnd, kOr, kXor, kMax, kMin, kSum, kProd };
constexpr int kOps = 7;

// The arithmetic type of an interface type.
enum class Kind : int {
    kI8,
    kI16,
    kI32,
    kI64,
    kU8,
    kU16,
    kU32,
    kU64,
    kFloat,
    kDouble,
    kLongDouble,
    kComplexFloat,
    kComplexDouble,
};
constexpr int kKinds = 13;

template <class T>
constexpr Kind kind_of() {
    if constexpr (std::is_same_v<T, float>)
        return Kind::kFloat;
    else if constexpr (std::is_same_v<T, double>)
        return Kind::kDouble;
    else if constexpr (std::is_same_v<T, long double>)
        return Kind::kLongDouble;
    else if constexpr (std::is_same_v<T, heddle_complexf>)
        return Kind::kComplexFloat;
    else if constexpr (std::is_same_v<T, heddle_complexd>)
        return Kind::kComplexDouble;
    else
        return static_cast<Kind>((std::is_signed_v<T> ? 0 : 4) + (sizeof(T) == 1   ? 0
                                                                  : sizeof(T) == 2 ? 1
                                                                  : sizeof(T) == 4 ? 2
                                                                                   : 3));
}

using Kernel = void (*)(void* dest, const void* a, const void* b, size_t count);

struct KernelTable {
    Kernel of[kOps][kKinds];  // null where the operation does not exist for the kind
    // Copies past the caches, for data that would only evict other data. When it returns, its stores are ordered like
    // other stores.
    void (*stream)(void* dest, const void* source, size_t bytes);
};

using base::VectorUnit;  // baseline is NEON on aarch64

// The table for a vector unit, or for the best one (kAuto). The best one, too, when the CPU lacks the unit.
const KernelTable& kernels_for(VectorUnit unit);

}  // namespace heddle::collective

// The kernels, once: each file kernels_UNIT.cpp includes this file with HEDDLE_VECTOR_UNIT naming its table, and is
// compiled for that unit. No code may be shared between the units: an inline function compiled for AVX-512 must not
// serve a CPU without. Therefore everything is in an unnamed namespace, and only the compiler's own headers contain
// code.
#include "collective/node/kernels.h"

#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace heddle::collective {

namespace {

// The type in which a sum or product of T is computed: unsigned, so that it wraps around; short types are not promoted
// to int.
template <class T>
struct Wrapping {
    using type = T;
};
template <>
struct Wrapping<int8_t> {
    using type = uint32_t;
};
template <>
struct Wrapping<int16_t> {
    using type = uint32_t;
};
template <>
struct Wrapping<int32_t> {
    using type = uint32_t;
};
template <>
struct Wrapping<int64_t> {
    using type = uint64_t;
};
template <>
struct Wrapping<uint8_t> {
    using type = uint32_t;
};
template <>
struct Wrapping<uint16_t> {
    using type = uint32_t;
};

template <class T, Op kOp>
void combine(void* dest, const void* a, const void* b, size_t count) {
    using W = typename Wrapping<T>::type;
    T* const to = static_cast<T*>(dest);
    const T* const left = static_cast<const T*>(a);
    const T* const right = static_cast<const T*>(b);
// dest is a or b exactly, or disjoint from both: element i depends on elements i alone.
#ifdef __clang__
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
    for (size_t i = 0; i < count; ++i) {
        const T x = left[i], y = right[i];
        if constexpr (kOp == Op::kAnd)
            to[i] = static_cast<T>(x & y);
        else if constexpr (kOp == Op::kOr)
            to[i] = static_cast<T>(x | y);
        else if constexpr (kOp == Op::kXor)
            to[i] = static_cast<T>(x ^ y);
        else if constexpr (kOp == Op::kMax)
            to[i] = x < y ? y : x;
        else if constexpr (kOp == Op::kMin)
            to[i] = y < x ? y : x;
        else if constexpr (kOp == Op::kSum)
            to[i] = static_cast<T>(static_cast<W>(x) + static_cast<W>(y));
        else
            to[i] = static_cast<T>(static_cast<W>(x) * static_cast<W>(y));
    }
}

constexpr bool exists(Op op, Kind kind) {
    if (op <= Op::kXor)
        return kind <= Kind::kU64;
    return op == Op::kSum || op == Op::kProd || kind < Kind::kComplexFloat;
}

template <class T, int kOp>
constexpr Kernel entry() {
    if constexpr (exists(static_cast<Op>(kOp), kind_of<T>()))
        return combine<T, static_cast<Op>(kOp)>;
    else
        return nullptr;
}

#ifdef __x86_64__
#if defined(__AVX512F__)
using Wide = __m512i;
void store_wide(char* to, const char* from) {
    _mm512_stream_si512(reinterpret_cast<Wide*>(to), _mm512_loadu_si512(from));
}
#elif defined(__AVX2__)
using Wide = __m256i;
void store_wide(char* to, const char* from) {
    _mm256_stream_si256(reinterpret_cast<Wide*>(to), _mm256_loadu_si256(reinterpret_cast<const Wide*>(from)));
}
#else
using Wide = __m128i;
void store_wide(char* to, const char* from) {
    _mm_stream_si128(reinterpret_cast<Wide*>(to), _mm_loadu_si128(reinterpret_cast<const Wide*>(from)));
}
#endif

void stream(void* dest, const void* source, size_t bytes) {
    char* to = static_cast<char*>(dest);
    const char* from = static_cast<const char*>(source);
    constexpr size_t kLine = 64;
    const size_t head = (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine;
    if (bytes < head + kLine) {
        memcpy(to, from, bytes);
        return;
    }
    memcpy(to, from, head);
    to += head;
    from += head;
    bytes -= head;
    for (; bytes >= kLine; bytes -= kLine, to += kLine, from += kLine)
        for (size_t at = 0; at < kLine; at += sizeof(Wide)) store_wide(to + at, from + at);
    memcpy(to, from, bytes);
    _mm_sfence();  // streaming stores are weakly ordered: the caller's next release store must come behind them
}
#else
void stream(void* dest, const void* source, size_t bytes) {
    memcpy(dest, source, bytes);
}
#endif

#define HEDDLE_ROW(op)                                                                                               \
    {                                                                                                                \
        entry<int8_t, op>(),          entry<int16_t, op>(),  entry<int32_t, op>(),     entry<int64_t, op>(),         \
        entry<uint8_t, op>(),         entry<uint16_t, op>(), entry<uint32_t, op>(),    entry<uint64_t, op>(),        \
        entry<float, op>(),           entry<double, op>(),   entry<long double, op>(), entry<heddle_complexf, op>(), \
        entry<heddle_complexd, op>(),                                                                                \
    }

}  // namespace

extern const KernelTable HEDDLE_VECTOR_UNIT;
const KernelTable HEDDLE_VECTOR_UNIT = {  // NOLINT(misc-definitions-in-headers): one unit includes it for each name
    {HEDDLE_ROW(0), HEDDLE_ROW(1), HEDDLE_ROW(2), HEDDLE_ROW(3), HEDDLE_ROW(4), HEDDLE_ROW(5), HEDDLE_ROW(6)},
    stream};

}  // namespace heddle::collective

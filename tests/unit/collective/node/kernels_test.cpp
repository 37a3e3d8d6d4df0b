// The arithmetic of reductions against a plain reference, for every operation, kind and vector unit of this CPU: all
// lengths from 0 to some vectors, all places within a vector, in place, special values, and the same bits from all
// units.
#include "collective/node/kernels.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <vector>

namespace heddle::collective {
namespace {

constexpr VectorUnit kUnits[] = {VectorUnit::kBaseline, VectorUnit::kAvx2, VectorUnit::kAvx512, VectorUnit::kAuto};
constexpr size_t kMax = 70;     // elements: several of the widest vectors and a rest, of any type but the smallest
constexpr size_t kPlaces = 17;  // offsets in elements
constexpr unsigned kSeed = 20260;

// The bytes of a value that mean something: the rest of a long double is padding.
template <class T>
constexpr size_t kValueBytes =
    std::is_same_v<T, long double> && std::numeric_limits<long double>::digits == 64 ? 10 : sizeof(T);

template <class T>
constexpr bool kIsComplex = std::is_same_v<T, heddle_complexf> || std::is_same_v<T, heddle_complexd>;

template <class T>
constexpr bool kIsFloating = std::is_floating_point_v<T> || kIsComplex<T>;

// One element, as the language has it. Each operation is the one that the kernel's contract names.
template <class T>
T reference(Op op, T x, T y) {
    if constexpr (kIsComplex<T>) {
        return op == Op::kSum ? x + y : x * y;
    } else if constexpr (std::is_floating_point_v<T>) {
        return op == Op::kSum ? x + y : op == Op::kProd ? x * y : op == Op::kMax ? (x < y ? y : x) : (y < x ? y : x);
    } else {
        const auto ux = static_cast<uint64_t>(x), uy = static_cast<uint64_t>(y);
        switch (op) {
            case Op::kAnd:
                return static_cast<T>(ux & uy);
            case Op::kOr:
                return static_cast<T>(ux | uy);
            case Op::kXor:
                return static_cast<T>(ux ^ uy);
            case Op::kSum:
                return static_cast<T>(ux + uy);
            case Op::kProd:
                return static_cast<T>(ux * uy);
            case Op::kMax:
                return x < y ? y : x;
            default:
                return y < x ? y : x;
        }
    }
}

template <class T>
bool exists(Op op) {
    return op <= Op::kXor ? !kIsFloating<T> : !kIsComplex<T> || op == Op::kSum || op == Op::kProd;
}

template <class T>
Kernel kernel_of(VectorUnit unit, Op op) {
    return kernels_for(unit).of[static_cast<int>(op)][static_cast<int>(kind_of<T>())];
}

// Parts of values: what they are made of, one part or, of a complex, two.
template <class T>
struct PartOf {
    using type = T;
};
template <>
struct PartOf<heddle_complexf> {
    using type = float;
};
template <>
struct PartOf<heddle_complexd> {
    using type = double;
};

// The values of a type at which arithmetic differs from the usual.
template <class Part>
std::vector<Part> special_parts() {
    using Limits = std::numeric_limits<Part>;
    std::vector<Part> special = {Limits::max(), Limits::lowest(), Part{0}, Part{1}, static_cast<Part>(-1)};
    if constexpr (std::is_floating_point_v<Part>)
        special.insert(special.end(), {-Part{0}, Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                                       -Limits::quiet_NaN(), Limits::denorm_min(), Limits::min()});
    return special;
}

// Numbers that add, multiply and compare in every way, special ones among them.
template <class Part>
std::vector<Part> parts(unsigned seed, size_t count) {
    std::mt19937_64 random(kSeed + seed);
    const std::vector<Part> special = special_parts<Part>();
    std::vector<Part> some(count);
    for (Part& value : some) {
        if (random() % 4 == 0)
            value = special[random() % special.size()];
        else if constexpr (std::is_integral_v<Part>)
            value = static_cast<Part>(random());
        else
            value = static_cast<Part>(static_cast<double>(static_cast<int64_t>(random())) * 1e-17);
    }
    return some;
}

// The special values of a type; of a complex, all pairs of those of its parts.
template <class T>
std::vector<T> special_values() {
    if constexpr (!kIsComplex<T>) {
        return special_parts<T>();
    } else {
        std::vector<T> all;
        for (auto real : special_parts<typename PartOf<T>::type>()) {
            for (auto imaginary : special_parts<typename PartOf<T>::type>()) {
                const decltype(real) both[] = {real, imaginary};
                memcpy(&all.emplace_back(), both, sizeof both);
            }
        }
        return all;
    }
}

template <class T>
std::vector<T> values(unsigned seed) {
    using Part = typename PartOf<T>::type;
    std::vector<T> some(kMax + kPlaces);
    memset(static_cast<void*>(some.data()), 0, some.size() * sizeof(T));
    const std::vector<Part> from = parts<Part>(seed, some.size() * (sizeof(T) / sizeof(Part)));
    memcpy(static_cast<void*>(some.data()), from.data(), some.size() * sizeof(T));
    return some;
}

// The same bits; where `any_nan`, one NaN is as good as another.
template <class T>
bool same(const T& left, const T& right, bool any_nan = false) {
    using Part = typename PartOf<T>::type;
    if (memcmp(&left, &right, kValueBytes<T>) == 0)
        return true;
    if constexpr (kIsFloating<T>) {
        if (!any_nan)
            return false;
        Part left_parts[sizeof(T) / sizeof(Part)], right_parts[sizeof(T) / sizeof(Part)];
        memcpy(left_parts, &left, sizeof(T));
        memcpy(right_parts, &right, sizeof(T));
        for (size_t i = 0; i < sizeof(T) / sizeof(Part); ++i) {
            const Part l = left_parts[i], r = right_parts[i];
            if (memcmp(&l, &r, kValueBytes<Part>) != 0 && !(l != l && r != r))
                return false;
        }
        return true;
    }
    return false;
}

// Where two NaNs meet, the compiler chooses which of them comes out: it may swap the operands of + and *. That, and
// only that, may differ between vector units and places. A product of complexes adds what it has multiplied.
template <class T>
bool two_nans_meet(Op op, const T& x, const T& y) {
    if constexpr (kIsFloating<T>) {
        using Part = typename PartOf<T>::type;
        Part left[sizeof(T) / sizeof(Part)], right[sizeof(T) / sizeof(Part)];
        memcpy(left, &x, sizeof(T));
        memcpy(right, &y, sizeof(T));
        if (kIsComplex<T> && op == Op::kProd)
            return true;
        for (size_t i = 0; i < sizeof(T) / sizeof(Part); ++i)
            if (left[i] != left[i] && right[i] != right[i])
                return op == Op::kSum || op == Op::kProd;
    }
    return false;
}

template <class T>
class KernelsTest : public testing::Test {
  protected:
    template <class Body>
    void for_all_kernels(Body body) {
        for (VectorUnit unit : kUnits) {
            for (int op = 0; op < kOps; ++op) {
                SCOPED_TRACE(testing::Message() << "unit " << static_cast<int>(unit) << " op " << op);
                if (const Kernel kernel = kernel_of<T>(unit, static_cast<Op>(op)))
                    body(static_cast<Op>(op), kernel);
            }
        }
    }

    const std::vector<T> a_ = values<T>(1), b_ = values<T>(2);
};

using Types = testing::Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, float, double,
                             long double, heddle_complexf, heddle_complexd>;
TYPED_TEST_SUITE(KernelsTest, Types);

TYPED_TEST(KernelsTest, ExistWhereTheOperationDoes) {
    for (VectorUnit unit : kUnits)
        for (int op = 0; op < kOps; ++op)
            EXPECT_EQ(kernel_of<TypeParam>(unit, static_cast<Op>(op)) != nullptr,
                      exists<TypeParam>(static_cast<Op>(op)))
                << "unit " << static_cast<int>(unit) << " op " << op;
}

TYPED_TEST(KernelsTest, AreRightAtEveryLengthAndPlace) {
    using T = TypeParam;
    this->for_all_kernels([&](Op op, Kernel kernel) {
        for (size_t count = 0; count <= kMax; ++count) {
            for (size_t state = 0; state < kPlaces; ++state) {
                // Three different places within a vector.
                const size_t at_a = state, at_b = state * 5 % kPlaces, at_dest = state * 11 % kPlaces;
                const T filler = this->a_[0];
                std::vector<T> dest(count + kPlaces + 1, filler);
                kernel(dest.data() + at_dest, this->a_.data() + at_a, this->b_.data() + at_b, count);
                for (size_t i = 0; i < count; ++i)
                    ASSERT_TRUE(same(dest[at_dest + i], reference<T>(op, this->a_[at_a + i], this->b_[at_b + i]), true))
                        << "count " << count << " place " << state << " i " << i << " seed " << kSeed;
                ASSERT_TRUE(same(dest[at_dest + count], filler)) << "wrote behind the end";
                ASSERT_TRUE(at_dest == 0 || same(dest[at_dest - 1], filler)) << "wrote ahead of the start";
            }
        }
    });
}

TYPED_TEST(KernelsTest, AreRightInPlace) {
    using T = TypeParam;
    this->for_all_kernels([&](Op op, Kernel kernel) {
        for (size_t count = 0; count <= kMax; ++count) {
            const size_t at_a = count % kPlaces, at_b = count * 5 % kPlaces;
            std::vector<T> in_a = this->a_, in_b = this->b_, squared = this->a_;
            kernel(in_a.data() + at_a, in_a.data() + at_a, this->b_.data() + at_b, count);
            kernel(in_b.data() + at_b, this->a_.data() + at_a, in_b.data() + at_b, count);
            kernel(squared.data(), squared.data(), squared.data(), count);
            for (size_t i = 0; i < count; ++i) {
                const T right = reference<T>(op, this->a_[at_a + i], this->b_[at_b + i]);
                ASSERT_TRUE(same(in_a[at_a + i], right, true)) << "dest is a, count " << count << " i " << i;
                ASSERT_TRUE(same(in_b[at_b + i], right, true)) << "dest is b, count " << count << " i " << i;
                ASSERT_TRUE(same(squared[i], reference<T>(op, this->a_[i], this->a_[i]), true)) << "dest is a and b";
            }
        }
    });
}

// Each special value with each: zeros of both signs, NaNs of both, the ends of the range.
TYPED_TEST(KernelsTest, AreRightForSpecialValues) {
    using T = TypeParam;
    const std::vector<T> special = special_values<T>();
    std::vector<T> a, b;
    for (const T& x : special) {
        for (const T& y : special) {
            a.push_back(x);
            b.push_back(y);
        }
    }
    this->for_all_kernels([&](Op op, Kernel kernel) {
        std::vector<T> dest(a.size()), baseline(a.size());
        kernel(dest.data(), a.data(), b.data(), a.size());
        kernel_of<T>(VectorUnit::kBaseline, op)(baseline.data(), a.data(), b.data(), a.size());
        for (size_t i = 0; i < a.size(); ++i) {
            ASSERT_TRUE(same(dest[i], reference<T>(op, a[i], b[i]), true)) << "pair " << i;
            ASSERT_TRUE(same(dest[i], baseline[i], two_nans_meet(op, a[i], b[i])))
                << "other bits than the baseline's, pair " << i;
        }
    });
}

// To the bit, NaNs and signs of zero too: the result must not depend on the CPU, nor on where in a vector or in the
// rest behind the last one an element lies.
TYPED_TEST(KernelsTest, GiveTheSameBitsFromAllUnits) {
    using T = TypeParam;
    for (int i = 0; i < kOps; ++i) {
        const Op op = static_cast<Op>(i);
        const Kernel first = kernel_of<T>(VectorUnit::kBaseline, op);
        for (size_t count = 1; first && count <= kMax; ++count) {
            std::vector<T> one_by_one(count);
            for (size_t at = 0; at < count; ++at) first(&one_by_one[at], &this->a_[at], &this->b_[at], 1);
            for (VectorUnit unit : kUnits) {
                std::vector<T> dest(count);
                kernel_of<T>(unit, op)(dest.data(), this->a_.data(), this->b_.data(), count);
                for (size_t at = 0; at < count; ++at)
                    ASSERT_TRUE(same(dest[at], one_by_one[at], two_nans_meet(op, this->a_[at], this->b_[at])))
                        << "unit " << static_cast<int>(unit) << " op " << i << " count " << count << " at " << at;
            }
        }
    }
}

TEST(Kernels, AreThoseOfTheUnitAskedFor) {
    const KernelTable& baseline = kernels_for(VectorUnit::kBaseline);
    std::set<const KernelTable*> distinct = {&baseline};
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        EXPECT_TRUE(distinct.insert(&kernels_for(VectorUnit::kAvx2)).second);
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
            EXPECT_TRUE(distinct.insert(&kernels_for(VectorUnit::kAvx512)).second);
        }
    }
#endif
    EXPECT_FALSE(distinct.insert(&kernels_for(VectorUnit::kAvx512)).second) << "what the CPU lacks gives its best";
    EXPECT_EQ(&kernels_for(VectorUnit::kAuto), &kernels_for(VectorUnit::kAvx512));
}

TEST(Kernels, KindsAreThoseOfTheTypes) {
    EXPECT_EQ(kind_of<signed char>(), Kind::kI8);
    EXPECT_EQ(kind_of<short>(), Kind::kI16);
    EXPECT_EQ(kind_of<int>(), Kind::kI32);
    EXPECT_EQ(kind_of<long>(), Kind::kI64);
    EXPECT_EQ(kind_of<long long>(), Kind::kI64);
    EXPECT_EQ(kind_of<unsigned char>(), Kind::kU8);
    EXPECT_EQ(kind_of<unsigned short>(), Kind::kU16);
    EXPECT_EQ(kind_of<unsigned>(), Kind::kU32);
    EXPECT_EQ(kind_of<unsigned long>(), Kind::kU64);
    EXPECT_EQ(kind_of<size_t>(), Kind::kU64);
    EXPECT_EQ(kind_of<ptrdiff_t>(), Kind::kI64);
    EXPECT_EQ(kind_of<char>(), std::is_signed_v<char> ? Kind::kI8 : Kind::kU8);
    EXPECT_EQ(kind_of<float>(), Kind::kFloat);
    EXPECT_EQ(kind_of<double>(), Kind::kDouble);
    EXPECT_EQ(kind_of<long double>(), Kind::kLongDouble);
    EXPECT_EQ(kind_of<heddle_complexf>(), Kind::kComplexFloat);
    EXPECT_EQ(kind_of<heddle_complexd>(), Kind::kComplexDouble);
}

TEST(Stream, CopiesEveryLengthFromEveryPlace) {
    std::vector<unsigned char> from(5000), to(5000);
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 7 + i / 251);
    std::vector<size_t> lengths(200);
    for (size_t i = 0; i < lengths.size(); ++i) lengths[i] = i;
    lengths.insert(lengths.end(), {1000, 4096, 4711});
    for (VectorUnit unit : kUnits) {
        for (size_t bytes : lengths) {
            for (size_t shift = 0; shift < 66; shift += 1 + shift / 8) {
                std::fill(to.begin(), to.end(), 0xee);
                const unsigned char* source = from.data() + shift * 13 % 64;
                kernels_for(unit).stream(to.data() + shift, source, bytes);
                ASSERT_EQ(memcmp(to.data() + shift, source, bytes), 0) << bytes << " at " << shift;
                ASSERT_EQ(to[shift + bytes], 0xee);
                ASSERT_TRUE(shift == 0 || to[shift - 1] == 0xee);
            }
        }
    }
}

}  // namespace
}  // namespace heddle::collective

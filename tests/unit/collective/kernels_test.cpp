// The arithmetic of reductions against a reference, on every vector unit of this CPU: values, odd lengths, odd places,
// in place, and the same bits from all.
#include "collective/kernels.h"

#include <gtest/gtest.h>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace heddle::collective {
namespace {

constexpr VectorUnit kUnits[] = {VectorUnit::kBaseline, VectorUnit::kAvx2, VectorUnit::kAvx512, VectorUnit::kAuto};
constexpr size_t kMost = 70;

template <class T>
class KernelsTest : public testing::Test {};
using Types = testing::Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, float, double,
                             long double>;
TYPED_TEST_SUITE(KernelsTest, Types);

template <class T>
T reference(Op op, T x, T y) {
    if constexpr (std::is_integral_v<T>) {
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
            default:
                break;
        }
    } else if (op == Op::kSum) {
        return x + y;
    } else if (op == Op::kProd) {
        return x * y;
    }
    return op == Op::kMax ? (x < y ? y : x) : (y < x ? y : x);
}

template <class T>
std::vector<T> values(unsigned seed) {
    std::mt19937_64 random(seed);
    std::vector<T> some(kMost + 8);
    for (T& value : some) {
        if constexpr (std::is_integral_v<T>)
            value = static_cast<T>(random());
        else
            value = static_cast<T>(static_cast<double>(static_cast<int64_t>(random())) * 1e-7);
    }
    some[3] = std::numeric_limits<T>::max();
    some[4] = std::numeric_limits<T>::lowest();
    if constexpr (std::is_floating_point_v<T>) {
        some[5] = -T{0};
        some[6] = std::numeric_limits<T>::infinity();
    }
    return some;
}

template <class T>
void expect_same(const T* got, const T* right, size_t count, int op) {
    for (size_t i = 0; i < count; ++i) {
        if constexpr (std::is_floating_point_v<T>) {
            EXPECT_TRUE(got[i] == right[i] || (std::isnan(got[i]) && std::isnan(right[i])))
                << "op " << op << " i " << i;
            EXPECT_EQ(std::signbit(got[i]), std::signbit(right[i])) << "op " << op << " i " << i;
        } else {
            EXPECT_EQ(got[i], right[i]) << "op " << op << " i " << i;
        }
    }
}

TYPED_TEST(KernelsTest, AreRightEverywhere) {
    using T = TypeParam;
    const std::vector<T> a = values<T>(1), b = values<T>(2);
    for (VectorUnit unit : kUnits) {
        for (int op = 0; op < kOps; ++op) {
            const Kernel kernel = kernels_for(unit).of[op][static_cast<int>(kind_of<T>())];
            const bool bitwise = op <= static_cast<int>(Op::kXor);
            ASSERT_EQ(kernel == nullptr, bitwise && !std::is_integral_v<T>);
            for (size_t count = 0; kernel && count <= kMost; ++count) {
                const size_t shift = count % 5;
                std::vector<T> right(count), dest(count + shift + 1, T{42});
                for (size_t i = 0; i < count; ++i) right[i] = reference<T>(static_cast<Op>(op), a[i], b[i + shift]);
                kernel(dest.data() + shift, a.data(), b.data() + shift, count);
                expect_same(dest.data() + shift, right.data(), count, op);
                EXPECT_EQ(dest[count + shift], T{42}) << "wrote behind the end";
                std::vector<T> in_a(a.begin(), a.begin() + static_cast<long>(count));
                kernel(in_a.data(), in_a.data(), b.data() + shift, count);
                expect_same(in_a.data(), right.data(), count, op);
                std::vector<T> in_b(b.begin() + static_cast<long>(shift), b.begin() + static_cast<long>(shift + count));
                kernel(in_b.data(), a.data(), in_b.data(), count);
                expect_same(in_b.data(), right.data(), count, op);
            }
        }
    }
}

// Complex numbers, by bytes: whatever the unit, the same products and sums.
template <class T, class Part>
void same_bits_from_all_units() {
    const std::vector<Part> a = values<Part>(3), b = values<Part>(4);
    for (Op op : {Op::kSum, Op::kProd}) {
        for (size_t count = 1; count <= kMost / 2; ++count) {
            std::vector<Part> first(2 * count), next(2 * count);
            const int kind = static_cast<int>(kind_of<T>());
            kernels_for(VectorUnit::kBaseline).of[static_cast<int>(op)][kind](first.data(), a.data(), b.data(), count);
            for (VectorUnit unit : kUnits) {
                kernels_for(unit).of[static_cast<int>(op)][kind](next.data(), a.data(), b.data(), count);
                EXPECT_EQ(memcmp(first.data(), next.data(), count * sizeof(T)), 0)
                    << "unit " << static_cast<int>(unit) << " count " << count;
            }
        }
    }
    EXPECT_EQ(kernels_for(VectorUnit::kAuto).of[static_cast<int>(Op::kMax)][static_cast<int>(kind_of<T>())], nullptr);
}

TEST(ComplexKernels, GiveTheSameBitsFromAllUnits) {
    same_bits_from_all_units<heddle_complexd, double>();
    same_bits_from_all_units<heddle_complexf, float>();
}

TEST(Stream, CopiesEveryLengthFromEveryPlace) {
    std::vector<unsigned char> from(5000), to(5000);
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 7 + 1);
    for (VectorUnit unit : kUnits) {
        for (size_t bytes : {0u, 1u, 63u, 64u, 65u, 127u, 128u, 129u, 1000u, 4096u, 4711u}) {
            for (size_t shift : {0u, 1u, 17u, 63u}) {
                std::fill(to.begin(), to.end(), 0xee);
                kernels_for(unit).stream(to.data() + shift, from.data() + 5, bytes);
                EXPECT_EQ(memcmp(to.data() + shift, from.data() + 5, bytes), 0) << bytes << " at " << shift;
                EXPECT_EQ(to[shift + bytes], 0xee);
                EXPECT_TRUE(shift == 0 || to[shift - 1] == 0xee);
            }
        }
    }
}

}  // namespace
}  // namespace heddle::collective

#include "collective/node/kernels.h"

#include "collective/node/copy.h"

#include <features.h>

// The loader tells since glibc 2.33, which the headers alone do not say: theirs may be newer than the C library that is
// linked.
#if __GLIBC_PREREQ(2, 33) && __has_include(<sys/platform/x86.h>)
#define _Bool bool  // the header (glibc 2.36) is C
#include <sys/platform/x86.h>
#undef _Bool
#endif

namespace heddle::collective {

HEDDLE_PE_LOCAL Machine machine;

extern const KernelTable kBaselineKernels, kAvx2Kernels, kAvx512Kernels;

#if defined(__x86_64__)
// What the C library's loader has asked the CPU, where it tells: the compiler's own test asks again in each process, by
// eleven CPUID, 4 us each in a virtual machine.
#ifdef CPU_FEATURE_ACTIVE
#define HEDDLE_CPU_HAS(name, library_name) CPU_FEATURE_ACTIVE(library_name)
#else
#define HEDDLE_CPU_HAS(name, library_name) __builtin_cpu_supports(name)
#endif

const KernelTable& kernels_for(VectorUnit unit) {
    const bool avx2 = HEDDLE_CPU_HAS("avx2", AVX2);
    const bool avx512 = avx2 && HEDDLE_CPU_HAS("avx512f", AVX512F) && HEDDLE_CPU_HAS("avx512bw", AVX512BW) &&
                        HEDDLE_CPU_HAS("avx512dq", AVX512DQ) && HEDDLE_CPU_HAS("avx512vl", AVX512VL);
    if (unit == VectorUnit::kBaseline || !avx2)
        return kBaselineKernels;
    return unit == VectorUnit::kAvx2 || !avx512 ? kAvx2Kernels : kAvx512Kernels;
}
#else
const KernelTable& kernels_for(VectorUnit) {
    return kBaselineKernels;
}
#endif

}  // namespace heddle::collective

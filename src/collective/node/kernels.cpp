#include "collective/node/kernels.h"

#include "collective/node/copy.h"

namespace heddle::collective {

HEDDLE_PE_LOCAL Machine machine;

extern const KernelTable kBaselineKernels, kAvx2Kernels, kAvx512Kernels;

#if defined(__x86_64__)
const KernelTable& kernels_for(VectorUnit unit) {
    const bool avx2 = __builtin_cpu_supports("avx2");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
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

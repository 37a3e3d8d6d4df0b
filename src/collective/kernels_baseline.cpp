// The kernels for any CPU of the architecture; flags: src/CMakeLists.txt.
#define HEDDLE_VECTOR_UNIT kBaselineKernels
#include "collective/kernels_body.h"

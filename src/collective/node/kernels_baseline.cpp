// The kernels for any CPU of the architecture; flags: src/CMakeLists.txt.
#define HEDDLE_VECTOR_UNIT kBaselineKernels
#include "collective/node/kernels_body.h"

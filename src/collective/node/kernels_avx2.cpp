// The kernels for CPUs with AVX2; flags: src/CMakeLists.txt.
#define HEDDLE_VECTOR_UNIT kAvx2Kernels
#include "collective/node/kernels_body.h"

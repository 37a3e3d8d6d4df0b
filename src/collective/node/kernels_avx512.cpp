// The kernels for CPUs with AVX-512 (F, BW, DQ, VL); flags: src/CMakeLists.txt.
#define HEDDLE_VECTOR_UNIT kAvx512Kernels
#include "collective/node/kernels_body.h"

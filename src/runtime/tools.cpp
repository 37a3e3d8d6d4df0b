#include "runtime/tools.h"

#include "base/settings.h"

#include <cstdio>

namespace heddle::runtime {

uint8_t own_tools() {
    const base::Settings& settings = base::settings;
    return static_cast<uint8_t>((settings.races ? kRaces : 0) | (settings.is_profiled() ? kProfile : 0) |
                                (settings.stats ? kStats : 0) | (settings.is_traced() ? kTrace : 0));
}

void describe_unlike(Tool tool, int with, int without, char* error, size_t error_bytes) {
    if (tool == kProfile)
        snprintf(error, error_bytes,
                 "PE %d is profiled (HEDDLE_PROFILE), and PE %d is not: right would be the same on all PEs (mpirun -x "
                 "HEDDLE_PROFILE)",
                 with, without);
    else if (tool == kTrace)
        snprintf(error, error_bytes,
                 "PE %d is traced (HEDDLE_TRACE), and PE %d is not: right would be the same on all PEs (mpirun -x "
                 "HEDDLE_TRACE)",
                 with, without);
    else
        snprintf(error, error_bytes,
                 "PE %d has its counters printed (HEDDLE_STATS), and PE %d has not: right would be the same on all PEs "
                 "(mpirun -x HEDDLE_STATS)",
                 with, without);
}

}  // namespace heddle::runtime

#include "runtime/tools.h"

#include "base/settings.h"
#include "bootstrap/bootstrap.h"

#include <cstdio>

namespace heddle::runtime {

uint8_t own_tools() {
    const base::Settings& settings = base::settings;
    return static_cast<uint8_t>((settings.races ? kRaces : 0) | (settings.is_profiled() ? kProfile : 0) |
                                (settings.stats ? kStats : 0) | (settings.is_traced() ? kTrace : 0));
}

bool are_alike(uint8_t among, int pe, uint8_t theirs, char* error, size_t error_bytes) {
    struct Words {
        Tool tool;
        const char *setting, *has, *has_not;
    };
    constexpr Words kWords[] = {
        {kRaces, "HEDDLE_RACES", "looks for races", "does not"},
        {kProfile, "HEDDLE_PROFILE", "is profiled", "is not"},
        {kStats, "HEDDLE_STATS", "has its counters printed", "has not"},
        {kTrace, "HEDDLE_TRACE", "is traced", "is not"},
    };
    const int unlike = (own_tools() ^ theirs) & among;
    for (const Words& words : kWords) {
        if ((unlike & words.tool) == 0)
            continue;
        const bool is_here = own_tools() & words.tool;
        snprintf(error, error_bytes, "PE %d %s (%s), and PE %d %s: right would be the same on all PEs (mpirun -x %s)",
                 is_here ? bootstrap::job.pe : pe, words.has, words.setting, is_here ? pe : bootstrap::job.pe,
                 words.has_not, words.setting);
        return false;
    }
    return true;
}

}  // namespace heddle::runtime

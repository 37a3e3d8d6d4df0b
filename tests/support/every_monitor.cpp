// Instead of os/monitor_support.cpp, where monitors are emulated: this machine has them all. HEDDLE_TEST_NO_WFET=1
// leaves WFE to be found.
#include "os/monitor_support.h"

#include "support/monitor_emulation.h"

#include <cstdlib>

namespace heddle::os {

MonitorSupport monitor_support() {
    MonitorSupport support;
    support.umwait = support.mwaitx = support.wfe = true;
    support.wfet = !getenv("HEDDLE_TEST_NO_WFET");
    support.umwait_cap_ticks = test::kKernelsCapTicks;
    return support;
}

}  // namespace heddle::os

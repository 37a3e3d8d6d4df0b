// Which monitor instructions (os/monitor_wait.h) this CPU has and the kernel lets programs use, and the kernel's
// limits. Costs a few CPUIDs, which a hypervisor may take 50 us each for. Any thread.
#pragma once

#include <cstdint>

namespace heddle::os {

struct MonitorSupport {
    bool umwait = false, mwaitx = false;  // x86-64
    bool wfe = false, wfet = false;       // aarch64
    // Of UMWAIT, as the kernel tells: it ends after so many ticks of the time stamp counter (0: never), and may use
    // C0.2.
    uint32_t umwait_cap_ticks = 0;
    bool umwait_c02 = true;
};

MonitorSupport monitor_support();

#if defined(__x86_64__)
// Whether this process may read the time stamp counter; where not (prctl, sandboxes), UMWAIT faults too.
bool counter_is_allowed();
#endif

// The two of UMWAIT from the files of that folder; untouched where they cannot be read: kernels before 5.4 set no
// limits.
void read_umwait_control(const char* folder, MonitorSupport* support);

}  // namespace heddle::os

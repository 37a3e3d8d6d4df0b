#include "os/monitor_support.h"

#include <cstdio>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/prctl.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace heddle::os {

namespace {

bool read_number(const char* folder, const char* name, unsigned* number) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE* file = fopen(path, "re");
    if (!file)
        return false;
    const bool known = fscanf(file, "%u", number) == 1;
    fclose(file);
    return known;
}

#if defined(__x86_64__)

bool cpuid_ecx_bit(unsigned leaf, int bit) {
    unsigned a, b, c, d;
    return __get_cpuid_count(leaf, 0, &a, &b, &c, &d) && (c >> bit & 1);
}

#endif

}  // namespace

#if defined(__x86_64__)
bool counter_is_allowed() {
    int state = PR_TSC_ENABLE;
    return prctl(PR_GET_TSC, &state) != 0 || state == PR_TSC_ENABLE;
}
#endif

void read_umwait_control(const char* folder, MonitorSupport* support) {
    unsigned number;
    if (read_number(folder, "max_time", &number))
        support->umwait_cap_ticks = number;
    if (read_number(folder, "enable_c02", &number))
        support->umwait_c02 = number != 0;
}

MonitorSupport monitor_support() {
    MonitorSupport support;
#if defined(__x86_64__)
    if (!counter_is_allowed())
        return support;
    support.umwait = cpuid_ecx_bit(7, 5);            // WAITPKG
    support.mwaitx = cpuid_ecx_bit(0x80000001, 29);  // MONITORX
    if (support.umwait)
        read_umwait_control("/sys/devices/system/cpu/umwait_control", &support);
#elif defined(__aarch64__)
    constexpr unsigned long kEventStream = 1ul << 2, kWfxt = 1ul << 31;  // HWCAP_EVTSTRM, HWCAP2_WFXT
    support.wfe = getauxval(AT_HWCAP) & kEventStream;  // without the event stream, only an interrupt would end a WFE
    support.wfet = getauxval(AT_HWCAP2) & kWfxt;
#endif
    return support;
}

}  // namespace heddle::os

// libheddle.so on a machine that has UMWAIT and MWAITX: their instructions are carried out by
// tests/support/monitor_emulation.h. Preloaded, it takes the place of the library that a program was linked with. A PE
// that has watched no line with them when it ends has failed, for then the test says nothing.
#include "base/lifecycle.h"
#include "os/monitor_wait.h"
#include "os/topology.h"
#include "support/monitor_emulation.h"

#include <unistd.h>
#include <cstdio>

namespace {

using namespace heddle;

__attribute__((constructor)) void begin() {
    for (os::MonitorChoice choice : {os::MonitorChoice::kUmwait, os::MonitorChoice::kMwaitx})
        test::emulate(*os::find_monitor(choice));
    test::cap_ticks.store(test::kKernelsCapTicks, std::memory_order_relaxed);  // no other thread runs yet
}

__attribute__((destructor)) void end() {
    if (base::lifecycle != base::Lifecycle::kFinalized)  // the launcher, say
        return;
    const auto waits = static_cast<unsigned long long>(test::armed_waits_of_process.load(std::memory_order_relaxed));
    fprintf(stderr, "%llu waits watched a line\n", waits);
    if (waits == 0 && os::usable_cores() > 1)  // with one, nobody watches
        _exit(1);
}

}  // namespace

#include "runtime/report.h"

#include "base/settings.h"
#include "bootstrap/bootstrap.h"

#include <heddle/constants.h>
#include <cstdio>

namespace heddle::runtime {

void report_start() {
    if (bootstrap::job.pe != 0)
        return;
    if (base::settings.version)
        fprintf(stderr, "%s, OpenSHMEM %d.%d\n", SHMEM_VENDOR_STRING, SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION);
    if (!base::settings.info)
        return;
    base::SettingRow rows[base::kMaxSettings];
    const size_t count = base::setting_rows(rows, sizeof rows / sizeof rows[0]);
    for (size_t i = 0; i < count; ++i)
        fprintf(stderr, "%s=%s (%s)\n    %s\n", rows[i].name, rows[i].value, rows[i].origin, rows[i].help);
}

}  // namespace heddle::runtime

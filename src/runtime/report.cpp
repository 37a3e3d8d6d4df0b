#include "runtime/report.h"

#include "base/counters.h"
#include "base/error.h"
#include "base/settings.h"
#include "bootstrap/bootstrap.h"

#include <dlfcn.h>
#include <heddle/constants.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace heddle::runtime {

namespace {

// oshrun is no launcher of MPI. The name is found wherever a library of MPI is loaded for all to see.
void report_mpi() {
    const bootstrap::Job& this_job = bootstrap::job;
    static bool is_told = false;  // written by PE 0 alone, in its inits
    if (is_told || !base::settings.mpi_warning || this_job.launcher_pid == 0 || this_job.n_pes == 1 ||
        !dlsym(RTLD_DEFAULT, "MPI_Init"))
        return;
    is_told = true;
    base::report("shmem_init",
                 "the program has MPI, too, which oshrun does not start: each PE is an MPI job of one process; right "
                 "would be mpirun -n %d, for both (HEDDLE_MPI_WARNING=no silences this)",
                 this_job.n_pes);
}

// Open MPI's name for the heap's size, which it reads beside the standard's, is no misspelt setting. The line is for a
// program whose heap has another size than its environment asks for.
void report_heap_size_unread() {
    static bool is_told = false;  // written by PE 0 alone, in its inits
    const char* const elsewhere = getenv("SHMEM_SYMMETRIC_HEAP_SIZE");
    if (is_told || !elsewhere || getenv("SHMEM_SYMMETRIC_SIZE") || getenv("SMA_SYMMETRIC_SIZE"))
        return;
    is_told = true;
    base::report("shmem_init",
                 "SHMEM_SYMMETRIC_HEAP_SIZE=%s has no effect, it is Open MPI's: the heap has %zu bytes; right would be "
                 "SHMEM_SYMMETRIC_SIZE=%s",
                 elsewhere, base::settings.symmetric_size, elsewhere);
}

}  // namespace

void report_start() {
    if (bootstrap::job.pe != 0)
        return;
    report_mpi();
    report_heap_size_unread();
    if (base::settings.version)
        fprintf(stderr, "%s, OpenSHMEM %d.%d\n", SHMEM_VENDOR_STRING, SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION);
    if (!base::settings.info)
        return;
    base::SettingRow rows[base::kMaxSettings];
    const size_t count = base::setting_rows(rows, sizeof rows / sizeof rows[0]);
    for (size_t i = 0; i < count; ++i)
        fprintf(stderr, "%s=%s (%s)\n    %s\n", rows[i].name, rows[i].value, rows[i].origin, rows[i].help);
}

namespace {

constexpr int kFewPes = 32;

// "control_messages_received            12          0          6  [6 0 6 0]"
std::string line_of(const base::CounterRow& row) {
    uint64_t sum = 0, least = UINT64_MAX, most = 0;
    std::string each;
    for (int slot = 0; slot < bootstrap::job.n_slots; ++slot) {
        const uint64_t value = (bootstrap::job.record(slot).counters.*row.counter).read();
        sum += value;
        least = std::min(least, value);
        most = std::max(most, value);
        each.append(slot == 0 ? "" : " ").append(std::to_string(value));
    }
    char line[128];
    snprintf(line, sizeof line, "  %-28s %12llu %12llu %12llu", row.name, static_cast<unsigned long long>(sum),
             static_cast<unsigned long long>(least), static_cast<unsigned long long>(most));
    std::string text = line;
    if (bootstrap::job.n_slots <= kFewPes)
        text.append("  [").append(each).append("]");
    return text + "\n";
}

}  // namespace

void report_end() {
    const auto all = static_cast<uint32_t>(bootstrap::job.n_slots);
    // acq_rel: pairs with runtime::report_end in other PEs; the last PE sees what all have counted.
    const uint32_t counted = bootstrap::job.page->counted.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (!base::settings.stats || counted % all != 0)
        return;
    std::string table = "heddle: counters of " + std::to_string(all) + (all == 1 ? " PE" : " PEs") +
                        (bootstrap::job.n_slots < bootstrap::job.n_pes ? " of this host" : "") +
                        ": sum, least, most, each\n";
    for (const base::CounterRow& row : base::kCounterRows) table += line_of(row);
    fputs(table.c_str(), stderr);
}

}  // namespace heddle::runtime

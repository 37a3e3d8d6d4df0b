#include "runtime/report.h"

#include "base/error.h"
#include "base/settings.h"
#include "bootstrap/bootstrap.h"
#include "fabric/network.h"
#include "memory/node_memory.h"
#include "memory/symmetric.h"
#include "operations/order.h"
#include "profiling/gather.h"
#include "runtime/network.h"

#include <dlfcn.h>
#include <heddle/constants.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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
                 elsewhere, memory::symmetric->program_bytes(), elsewhere);
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

void JobCounters::add(const JobCounters& other) {
    for (size_t i = 0; i < rows.size(); ++i) {
        rows[i].of_all.add(other.rows[i].of_all);
        for (size_t pe = 0; pe < rows[i].each.size(); ++pe) rows[i].each[pe] += other.rows[i].each[pe];
    }
}

namespace {

void count_own(JobCounters* into) {
    *into = {};
    for (size_t i = 0; i < into->rows.size(); ++i) {
        const uint64_t value = (base::counters->*base::kCounterRows[i].counter).read();
        into->rows[i].of_all.add(value, bootstrap::job.pe);
        if (bootstrap::job.n_pes <= JobCounters::kFewPes)
            into->rows[i].each[static_cast<size_t>(bootstrap::job.pe)] = value;
    }
}

// "  control_messages_received              12            0      1            6      0  messages   [6 0 6 0]"
std::string line_of(const base::CounterRow& counter, const JobCounters::Row& row) {
    using Long = unsigned long long;
    char line[160];
    snprintf(line, sizeof line, "  %-28s %12llu %12llu %6d %12llu %6d  %s", counter.name,
             static_cast<Long>(row.of_all.sum), static_cast<Long>(row.of_all.least),
             static_cast<int>(row.of_all.least_pe), static_cast<Long>(row.of_all.most),
             static_cast<int>(row.of_all.most_pe), counter.unit);
    std::string text = line;
    if (bootstrap::job.n_pes <= JobCounters::kFewPes) {
        text.append(strlen(counter.unit) < 10 ? 10 - strlen(counter.unit) : 1, ' ').append("[");
        for (int pe = 0; pe < bootstrap::job.n_pes; ++pe)
            text.append(pe == 0 ? "" : " ").append(std::to_string(row.each[static_cast<size_t>(pe)]));
        text.append("]");
    }
    return text + "\n";
}

void print(const JobCounters& counters) {
    const bool few = bootstrap::job.n_pes <= JobCounters::kFewPes;
    char heading[256];
    snprintf(heading, sizeof heading, "heddle: counters of %d PE%s\n  %-28s %12s %12s %6s %12s %6s  %s\n",
             bootstrap::job.n_pes, bootstrap::job.n_pes == 1 ? "" : "s", "counter", "sum", "least", "PE", "most", "PE",
             few ? "unit      each" : "unit");
    std::string table = heading;
    for (size_t i = 0; i < counters.rows.size(); ++i) table += line_of(base::kCounterRows[i], counters.rows[i]);
    fputs(table.c_str(), stderr);
}

}  // namespace

// What this itself sends is not counted.
void report_counters(const char* function) {
    if (!base::settings.stats)
        return;
    if (fabric::network) {
        operations::settle_all(function);
        count_control_messages();
    }
    const size_t offset = memory::symmetric->own_bytes - kCountersBytes;
    memory::hand_out_heap(bootstrap::job.slot, memory::symmetric->own_bytes);
    auto& mine = *reinterpret_cast<JobCounters*>(memory::symmetric->heap.base + offset);
    count_own(&mine);
    profiling::gather(function, &mine);
    if (bootstrap::job.pe == 0)
        print(mine);
}

}  // namespace heddle::runtime

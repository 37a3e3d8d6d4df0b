#include "operations/out_of_line.h"

#include "base/log.h"
#include "base/settings.h"
#include "operations/generated/inlined_hashes.h"
#include "os/interposition.h"
#include "os/plugin.h"

#include <dlfcn.h>
#include <algorithm>
#include <cstdio>
#include <cstring>

namespace heddle::operations {

HEDDLE_PE_LOCAL const OutOfLineTable* out_of_line = nullptr;
constinit thread_local const void* called_out_of_line_from = nullptr;

namespace {

constexpr const char* kPlugin = "libheddle_out_of_line.so";

// Whether operations are to be out of line, and because of what.
bool is_wanted(char (&reason)[256]) {
    os::Definition found;
    switch (base::settings.out_of_line) {
        case base::OutOfLine::k0:
            return false;
        case base::OutOfLine::k1:
            snprintf(reason, sizeof reason, "HEDDLE_OUT_OF_LINE=1");
            return true;
        case base::OutOfLine::kAuto:
            break;
    }
    if (!os::find_interposition(kInlinedHashes, "shmem", &found))
        return false;
    snprintf(reason, sizeof reason, "%.160s defines %.64s", found.module[0] ? found.module : "the program", found.name);
    return true;
}

}  // namespace

bool start_out_of_line(char* error, size_t error_bytes) {
    char reason[256] = "";
    if (!is_wanted(reason))
        return true;
    void* const library = os::load_plugin(kPlugin);
    const void* const table = library ? dlsym(library, "heddle_out_of_line_1") : nullptr;
    if (!table) {
        snprintf(error, error_bytes,
                 "%s, so operations are to be called out of line, which cannot be: %s; right would be an installation "
                 "with %s, or HEDDLE_OUT_OF_LINE=0",
                 reason, library ? "its table is of another version of Heddle" : dlerror(), kPlugin);
        return false;
    }
    HEDDLE_DEBUG("init", "operations are called out of line: %s", reason);
    out_of_line = static_cast<const OutOfLineTable*>(table);
    base::settings.observed = true;
    return true;
}

void stop_out_of_line() {
    out_of_line = nullptr;
}

bool call_out_of_line(const char* function, const OutOfLineCall& call, const void* caller) {
    if (called_out_of_line_from)
        return false;
    const OutOfLineFunction* const end = out_of_line->functions + out_of_line->n;
    const OutOfLineFunction* const found =
        std::lower_bound(out_of_line->functions, end, function,
                         [](const OutOfLineFunction& one, const char* name) { return strcmp(one.name, name) < 0; });
    if (found == end || strcmp(found->name, function) != 0)
        return false;
    called_out_of_line_from = caller;
    found->call(call);
    called_out_of_line_from = nullptr;
    return true;
}

}  // namespace heddle::operations

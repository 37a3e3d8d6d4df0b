// Plugin for launchers that speak PMIx (mpirun, prterun, srun): a client of the launcher's PMIx server. Contract and
// threads: bootstrap/launcher_api.h; PMIx itself may be called by any thread.
#include "bootstrap/launcher_api.h"

#include <pmix.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using heddle::bootstrap::LauncherApi;
using heddle::bootstrap::LauncherJob;
using heddle::bootstrap::Reach;

pmix_proc_t me;
std::vector<int> peers;
void (*on_lost)() = nullptr;

pmix_proc_t process(pmix_rank_t rank) {
    pmix_proc_t it = {};
    memcpy(it.nspace, me.nspace, sizeof it.nspace);
    it.rank = rank;
    return it;
}

bool holds(pmix_status_t status, const char* what, char* error, size_t error_bytes) {
    if (status == PMIX_SUCCESS)
        return true;
    snprintf(error, error_bytes, "%s: %s", what, PMIx_Error_string(status));
    return false;
}

// The launcher's value of a key of the whole job; null when it has none.
pmix_value_t* of_job(const char* key) {
    const pmix_proc_t job = process(PMIX_RANK_WILDCARD);
    pmix_value_t* value = nullptr;
    return PMIx_Get(&job, key, nullptr, 0, &value) == PMIX_SUCCESS ? value : nullptr;
}

void release(pmix_value_t* value) {
    PMIX_VALUE_RELEASE(value);
}

// Reads a comma-separated list of numbers.
void read_peers(const char* text) {
    peers.clear();
    for (char* end = nullptr; *text; text = *end ? end + 1 : end) {
        const long peer = strtol(text, &end, 10);
        if (end == text)
            return;
        peers.push_back(static_cast<int>(peer));
    }
}

void connection_lost(size_t, pmix_status_t, const pmix_proc_t*, pmix_info_t*, size_t, pmix_info_t*, size_t,
                     pmix_event_notification_cbfunc_fn_t done, void* argument) {
    on_lost();
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, nullptr, 0, nullptr, nullptr, argument);
}

bool init(LauncherJob* job, void (*lost)(), char* error, size_t error_bytes) {
    if (!holds(PMIx_Init(&me, nullptr, 0), "PMIx_Init", error, error_bytes))
        return false;
    pmix_value_t* const size = of_job(PMIX_JOB_SIZE);
    if (!size || size->type != PMIX_UINT32) {
        snprintf(error, error_bytes, "the launcher does not tell the number of PEs (%s)", PMIX_JOB_SIZE);
        return false;
    }
    job->pe = static_cast<int>(me.rank);
    job->n_pes = static_cast<int>(size->data.uint32);
    release(size);
    peers = {job->pe};
    if (pmix_value_t* const local = of_job(PMIX_LOCAL_PEERS)) {
        if (local->type == PMIX_STRING && local->data.string)
            read_peers(local->data.string);
        release(local);
    }
    job->peers = peers.data();
    job->n_peers = static_cast<int>(peers.size());
    on_lost = lost;
    pmix_status_t events[] = {PMIX_ERR_LOST_CONNECTION};
    PMIx_Register_event_handler(events, 1, nullptr, 0, connection_lost, nullptr, nullptr);
    return true;
}

bool publish(const char* key, const void* bytes, size_t size, Reach reach, char* error, size_t error_bytes) {
    pmix_value_t value;
    PMIX_VALUE_CONSTRUCT(&value);
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = static_cast<char*>(const_cast<void*>(bytes));  // PMIx copies
    value.data.bo.size = size;
    return holds(PMIx_Put(reach == Reach::kHost ? PMIX_LOCAL : PMIX_GLOBAL, key, &value), "PMIx_Put", error,
                 error_bytes) &&
           holds(PMIx_Commit(), "PMIx_Commit", error, error_bytes);
}

bool fence(bool collect, char* error, size_t error_bytes) {
    const pmix_proc_t all = process(PMIX_RANK_WILDCARD);
    pmix_info_t info;
    PMIX_INFO_CONSTRUCT(&info);
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    const pmix_status_t status = PMIx_Fence(&all, 1, &info, 1);
    PMIX_INFO_DESTRUCT(&info);
    return holds(status, "PMIx_Fence", error, error_bytes);
}

size_t get(int pe, const char* key, void* bytes, size_t max_bytes, char* error, size_t error_bytes) {
    const pmix_proc_t it = process(static_cast<pmix_rank_t>(pe));
    pmix_value_t* value = nullptr;
    if (!holds(PMIx_Get(&it, key, nullptr, 0, &value), "PMIx_Get", error, error_bytes))
        return 0;
    size_t size = value->type == PMIX_BYTE_OBJECT ? value->data.bo.size : 0;
    if (size == 0 || size > max_bytes) {
        snprintf(error, error_bytes, "PMIx_Get: %s of PE %d has %zu bytes: right would be 1 to %zu", key, pe, size,
                 max_bytes);
        size = 0;
    } else {
        memcpy(bytes, value->data.bo.bytes, size);
    }
    release(value);
    return size;
}

void abort_job(int status, const char* message) {
    PMIx_Abort(status, message, nullptr, 0);
}

void finalize() {
    PMIx_Finalize(nullptr, 0);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const LauncherApi heddle_launcher_3;
const LauncherApi heddle_launcher_3 = {"pmix", init, publish, fence, get, abort_job, finalize, true};

// Plugin for launchers that speak PMIx (mpirun, prterun, srun): a client of the launcher's PMIx server. Contract and
// threads: bootstrap/launcher_api.h; PMIx itself may be called by any thread. At init, where PMIx (4.2) waits for its
// server for ever, a thread of the plugin's own watches it.
#include "bootstrap/launcher_api.h"
#include "os/clock.h"
#include "os/own_thread.h"
#include "os/thread_id.h"

#include <pmix.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using heddle::bootstrap::LauncherApi;
using heddle::bootstrap::LauncherJob;
using heddle::bootstrap::Reach;
namespace os = heddle::os;

pmix_proc_t me;
int n_pes = 0;
std::vector<int> peers;
uint64_t longest_wait_s = 0;
void (*on_lost)(const char* how) = nullptr;
bool is_server_of_slurm = false;

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

constexpr uint64_t kForEver = UINT64_MAX;

// What PMIx is asked, and its answer, which a thread of PMIx gives, or none when another PE does not come. The later of
// both sides to leave it deletes it.
struct Request {
    pmix_proc_t of = {};
    std::string key;
    pmix_info_t info = {};
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // of what follows
    pthread_cond_t answered;
    bool is_answered = false, is_left = false;
    pmix_status_t status = PMIX_SUCCESS;
    std::string value;

    Request() {
        pthread_condattr_t by_monotonic;
        pthread_condattr_init(&by_monotonic);
        pthread_condattr_setclock(&by_monotonic, CLOCK_MONOTONIC);
        pthread_cond_init(&answered, &by_monotonic);
    }
};

void answer(pmix_status_t status, const pmix_value_t* value, void* request) {
    auto* const it = static_cast<Request*>(request);
    pthread_mutex_lock(&it->lock);
    it->status = status;
    it->is_answered = true;
    if (status == PMIX_SUCCESS && value && value->type == PMIX_BYTE_OBJECT)
        it->value.assign(value->data.bo.bytes, value->data.bo.size);
    const bool is_last = it->is_left;
    pthread_cond_signal(&it->answered);
    pthread_mutex_unlock(&it->lock);
    if (is_last)
        delete it;
}

void answer_fence(pmix_status_t status, void* request) {
    answer(status, nullptr, request);
}

void answer_get(pmix_status_t status, pmix_value_t* value, void* request) {
    answer(status, value, request);
}

// The end of a wait for other PEs that begins now.
uint64_t end_of_wait() {
    constexpr uint64_t kMostS = 1000000000;  // 30 years, so that the sum fits
    return os::now_ns() + std::min(longest_wait_s, kMostS) * 1000 * os::kMillisecondNs;
}

// Waits for the answer until end_ns, and leaves the request. asked: what PMIx has returned to it. Returns
// PMIX_ERR_TIMEOUT when none has come.
pmix_status_t wait_for_answer(Request* it, pmix_status_t asked, uint64_t end_ns, std::string* value) {
    if (asked != PMIX_SUCCESS) {  // no answer follows
        delete it;
        return asked == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : asked;
    }
    const timespec end = os::to_timespec(end_ns);
    int late = 0;
    pthread_mutex_lock(&it->lock);
    while (!it->is_answered && late != ETIMEDOUT)
        late = end_ns == kForEver ? pthread_cond_wait(&it->answered, &it->lock)
                                  : pthread_cond_timedwait(&it->answered, &it->lock, &end);
    const bool is_answered = it->is_answered;
    const pmix_status_t status = is_answered ? it->status : PMIX_ERR_TIMEOUT;
    if (value)
        value->swap(it->value);
    it->is_left = true;
    pthread_mutex_unlock(&it->lock);
    if (is_answered)
        delete it;
    return status;
}

// As holds. awaited: the PEs that do not come, for the message.
bool holds_in_time(pmix_status_t status, const char* what, const char* awaited, char* error, size_t error_bytes) {
    if (status != PMIX_ERR_TIMEOUT)
        return holds(status, what, error, error_bytes);
    char host[64] = "?";
    gethostname(host, sizeof host - 1);
    snprintf(error, error_bytes,
             "%s: PE %u of %d on host %s has waited for %s for %llu s (HEDDLE_LAUNCH_TIMEOUT_S): has each process of "
             "the job called shmem_init?",
             what, me.rank, n_pes, host, awaited, static_cast<unsigned long long>(longest_wait_s));
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
    on_lost("the launcher has died");
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, nullptr, 0, nullptr, nullptr, argument);
}

std::atomic<pid_t> watchdog_id{0};  // relaxed: read behind the thread's end, which its join orders

// Ends this PE with a word, unless the request is answered before the longest wait has passed.
void* end_when_late(void* request) {
    watchdog_id.store(os::thread_id(), std::memory_order_relaxed);
    if (wait_for_answer(static_cast<Request*>(request), PMIX_SUCCESS, end_of_wait(), nullptr) != PMIX_ERR_TIMEOUT)
        return nullptr;
    const char* const rank = getenv("PMIX_RANK");
    char host[64] = "?", how[256];
    gethostname(host, sizeof host - 1);
    snprintf(
        how, sizeof how,
        "the launcher's PMIx server has not answered PE %s on host %s within %llu s (HEDDLE_LAUNCH_TIMEOUT_S): has "
        "the launcher stopped?",
        rank ? rank : "?", host, static_cast<unsigned long long>(longest_wait_s));
    on_lost(how);
    return nullptr;
}

// Joins the job, as the server tells it.
bool ask_server(LauncherJob* job, char* error, size_t error_bytes) {
    if (!holds(PMIx_Init(&me, nullptr, 0), "PMIx_Init", error, error_bytes))
        return false;
    pmix_value_t* const size = of_job(PMIX_JOB_SIZE);
    if (!size || size->type != PMIX_UINT32) {
        snprintf(error, error_bytes, "the launcher does not tell the number of PEs (%s)", PMIX_JOB_SIZE);
        return false;
    }
    job->pe = static_cast<int>(me.rank);
    job->n_pes = n_pes = static_cast<int>(size->data.uint32);
    release(size);
    peers = {job->pe};
    if (pmix_value_t* const local = of_job(PMIX_LOCAL_PEERS)) {
        if (local->type == PMIX_STRING && local->data.string)
            read_peers(local->data.string);
        release(local);
    }
    job->peers = peers.data();
    job->n_peers = static_cast<int>(peers.size());
    is_server_of_slurm = strncmp(me.nspace, "slurm.", 6) == 0;
    // Slurm's server (22.05) has what a fence has collected. It fetches another host's other values in 5 s, or fails.
    job->get_waits = !is_server_of_slurm || job->n_peers == n_pes;
    pmix_status_t events[] = {PMIX_ERR_LOST_CONNECTION};
    PMIx_Register_event_handler(events, 1, nullptr, 0, connection_lost, nullptr, nullptr);
    return true;
}

bool init(LauncherJob* job, uint64_t timeout_s, void (*lost)(const char*), char* error, size_t error_bytes) {
    longest_wait_s = timeout_s;
    on_lost = lost;
    auto* const asked = new Request;
    pthread_t watchdog;
    if (const int cause = os::start_own_thread(&watchdog, end_when_late, asked); cause != 0) {
        delete asked;
        snprintf(error, error_bytes, "no thread to watch PMIx_Init: %s", strerror(cause));
        return false;
    }
    const bool is_well = ask_server(job, error, error_bytes);
    answer(PMIX_SUCCESS, nullptr, asked);
    pthread_join(watchdog, nullptr);
    // A thread that is joined is one of the process for a moment yet, and must not be counted as the launcher's.
    constexpr int kLooks = 1000;
    const pid_t process_id = getpid();
    for (int i = 0; i < kLooks && os::has_thread(process_id, watchdog_id.load(std::memory_order_relaxed)); ++i)
        os::sleep_ns(os::kMillisecondNs / 10);
    return is_well;
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
    const uint64_t end_ns = collect ? end_of_wait() : kForEver;
    const bool collects = collect || is_server_of_slurm;  // whose other fences (22.05) let PEs pass
    auto* const it = new Request;
    it->of = process(PMIX_RANK_WILDCARD);
    PMIX_INFO_CONSTRUCT(&it->info);
    PMIX_INFO_LOAD(&it->info, PMIX_COLLECT_DATA, &collects, PMIX_BOOL);
    const pmix_status_t asked = PMIx_Fence_nb(&it->of, 1, &it->info, 1, answer_fence, it);
    const pmix_status_t status = wait_for_answer(it, asked, end_ns, nullptr);
    return holds_in_time(status, "PMIx_Fence", "the other PEs", error, error_bytes);
}

size_t get(int pe, const char* key, void* bytes, size_t max_bytes, char* error, size_t error_bytes) {
    const uint64_t end_ns = end_of_wait();
    pmix_status_t status = PMIX_SUCCESS;
    std::string value;
    do {  // the server gives up after a time of its own, of 2 s by default, which a busy host may need
        auto* const it = new Request;
        it->of = process(static_cast<pmix_rank_t>(pe));
        it->key = key;
        const pmix_status_t asked = PMIx_Get_nb(&it->of, it->key.c_str(), nullptr, 0, answer_get, it);
        status = wait_for_answer(it, asked, end_ns, &value);
    } while (status == PMIX_ERR_TIMEOUT && os::now_ns() < end_ns);
    const std::string awaited = std::string(key) + " of PE " + std::to_string(pe);
    if (!holds_in_time(status, "PMIx_Get", awaited.c_str(), error, error_bytes))
        return 0;
    if (value.empty() || value.size() > max_bytes) {
        snprintf(error, error_bytes, "PMIx_Get: %s has %zu bytes: right would be 1 to %zu", awaited.c_str(),
                 value.size(), max_bytes);
        return 0;
    }
    memcpy(bytes, value.data(), value.size());
    return value.size();
}

void abort_job(int status, const char* message) {
    PMIx_Abort(status, message, nullptr, 0);
}

constexpr uint64_t kAnsweredNs = 1000 * os::kMillisecondNs;  // certainly less than PMIx_Finalize waits

// True when the server has answered, or nobody can be asked again.
bool has_finalized() {
    const uint64_t asked_ns = os::now_ns();
    PMIx_Finalize(nullptr, 0);
    return os::now_ns() - asked_ns < kAnsweredNs || PMIx_Initialized();
}

void* finalize_again(void* request) {
    const uint64_t end_ns = end_of_wait();
    while (PMIx_Init(&me, nullptr, 0) == PMIX_SUCCESS && !has_finalized() && os::now_ns() < end_ns) {
    }
    answer(PMIX_SUCCESS, nullptr, request);
    return nullptr;
}

// PMIx_Finalize waits for the server's answer for 2 s (4.2), and returns without it. mpirun takes a process for failed
// whose exit it sees before its own thread has the message. A client that connects again can ask again: in a thread of
// its own, since a server that is stopped lets PMIx_Init wait for ever.
void finalize() {
    if (has_finalized())
        return;
    auto* const asked = new Request;
    pthread_t thread;
    if (os::start_own_thread(&thread, finalize_again, asked) != 0) {
        delete asked;
        return;
    }
    pthread_detach(thread);
    wait_for_answer(asked, PMIX_SUCCESS, end_of_wait(), nullptr);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const LauncherApi heddle_launcher_5;
const LauncherApi heddle_launcher_5 = {"pmix", init, publish, fence, get, abort_job, finalize};

// The PMIx plugin, as launched.cpp loads it, and a server that this program plays: its functions with the names of
// PMIx's stand before PMIx's own. The library with a server that never answers: tests/errors/test_launch.py.
#include "bootstrap/launcher_api.h"
#include "os/clock.h"

#include <gtest/gtest.h>
#include <pmix.h>

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

namespace {

namespace os = heddle::os;

struct Server {
    const char* job = "prterun-node-17@1";
    const char* peers = "0,1";  // of three PEs
    bool hangs_in_init = false, hangs_in_get = false;
    bool collected = false;    // by the last fence
    int silent_finalizes = 0;  // so many are not answered
    int init_takes_ms = 0;
    bool knows_end = false;  // it has answered a finalize
};
Server server;
bool is_client = false;

std::atomic<uint64_t> ahead_ns{0};  // how far the plugin's clock is ahead of the kernel's
constexpr uint64_t kShorter = 100;  // are waits with a deadline

uint64_t to_ns(const timespec& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1000 * os::kMillisecondNs + static_cast<uint64_t>(time.tv_nsec);
}

[[noreturn]] void hang() {
    for (;;) pause();
}

}  // namespace

extern "C" {

// The plugin's time: a wait that reaches its deadline takes a hundredth of the time by which it moves the clock.

int clock_gettime(clockid_t clock, timespec* time) noexcept {
    const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
    if (clock == CLOCK_MONOTONIC)
        *time = os::to_timespec(to_ns(*time) + ahead_ns);
    return result;
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* end) {
    const uint64_t now_ns = os::now_ns(), end_ns = std::max(to_ns(*end), now_ns);
    const timespec real_end = os::to_timespec(now_ns - ahead_ns + (end_ns - now_ns) / kShorter);
    const int result = pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, &real_end);
    if (result == ETIMEDOUT)
        ahead_ns += end_ns - now_ns;
    return result;
}

pmix_status_t PMIx_Init(pmix_proc_t* process, pmix_info_t*, size_t) {
    if (server.hangs_in_init)
        hang();
    os::sleep_ns(static_cast<uint64_t>(server.init_takes_ms) * os::kMillisecondNs);
    is_client = true;
    snprintf(process->nspace, sizeof process->nspace, "%s", server.job);
    process->rank = 1;
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Get(const pmix_proc_t*, const char* key, const pmix_info_t*, size_t, pmix_value_t** value) {
    if (server.hangs_in_get)
        hang();
    *value = static_cast<pmix_value_t*>(calloc(1, sizeof **value));
    if (strcmp(key, PMIX_JOB_SIZE) == 0) {
        (*value)->type = PMIX_UINT32;
        (*value)->data.uint32 = 3;
    } else {
        (*value)->type = PMIX_STRING;
        (*value)->data.string = strdup(server.peers);
    }
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Register_event_handler(pmix_status_t*, size_t, pmix_info_t*, size_t, pmix_notification_fn_t,
                                          pmix_hdlr_reg_cbfunc_t, void*) {
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Fence_nb(const pmix_proc_t*, size_t, const pmix_info_t* info, size_t n, pmix_op_cbfunc_t, void*) {
    server.collected = n == 1 && info->value.data.flag;
    return PMIX_OPERATION_SUCCEEDED;
}

// As PMIx's own, it returns also without an answer of the server: when 1 s has gone by.
pmix_status_t PMIx_Finalize(const pmix_info_t*, size_t) {
    is_client = false;
    if (server.silent_finalizes == 0) {
        server.knows_end = true;
    } else {
        --server.silent_finalizes;
        ahead_ns += 1000 * os::kMillisecondNs;
    }
    return PMIX_SUCCESS;
}

int PMIx_Initialized() {
    return is_client;
}

}  // extern "C"

namespace heddle::bootstrap {
namespace {

const LauncherApi* load() {
    static void* const plugin = dlopen(HEDDLE_PMIX_PLUGIN, RTLD_LAZY | RTLD_LOCAL);
    return plugin ? static_cast<const LauncherApi*>(dlsym(plugin, "heddle_launcher_5")) : nullptr;
}

class Pmix : public testing::Test {
  protected:
    void SetUp() override {
        server = {};
        api = load();
        ASSERT_NE(api, nullptr) << dlerror();
    }
    [[noreturn]] static void lost(const char* how) {
        fprintf(stderr, "%s\n", how);
        _exit(3);
    }
    bool init(uint64_t timeout_s = 600, void (*on_lost)(const char*) = lost) {
        return api->init(&job, timeout_s, on_lost, error, sizeof error);
    }
    // For a process of its own, which SIGALRM ends when finalize has not returned.
    [[noreturn]] void finalize_within(unsigned seconds) {
        alarm(seconds);
        api->finalize();
        _exit(server.knows_end ? kKnown : kUnknown);
    }
    static constexpr int kKnown = 4, kUnknown = 5;
    bool fence_collects() {
        EXPECT_TRUE(api->fence(false, error, sizeof error)) << error;
        return server.collected;
    }

    const LauncherApi* api = nullptr;
    LauncherJob job = {};
    char error[512] = "";
};

TEST_F(Pmix, TellsTheJob) {
    ASSERT_TRUE(init()) << error;
    EXPECT_TRUE(job.pe == 1 && job.n_pes == 3 && job.n_peers == 2 && job.peers[0] == 0 && job.peers[1] == 1);
    EXPECT_TRUE(job.get_waits);
    setenv("PMIX_NAMESPACE", "slurm.7.0", 1);  // by the program
    EXPECT_FALSE(fence_collects());
}

TEST_F(Pmix, FencesOfSlurmCollectWhateverBecomesOfTheEnvironment) {
    server.job = "slurm.7.0";
    setenv("PMIX_NAMESPACE", server.job, 1);
    ASSERT_TRUE(init()) << error;
    EXPECT_FALSE(job.get_waits);
    EXPECT_TRUE(fence_collects());
    unsetenv("PMIX_NAMESPACE");
    EXPECT_TRUE(fence_collects());
}

TEST_F(Pmix, GetsOnOneHostOfSlurmWait) {
    server.job = "slurm.7.0";
    server.peers = "0,1,2";
    ASSERT_TRUE(init()) << error;
    EXPECT_TRUE(job.get_waits);
}

TEST_F(Pmix, AServerThatNeverAnswersEndsThePe) {
    setenv("PMIX_RANK", "1", 1);
    for (bool* const hangs : {&server.hangs_in_init, &server.hangs_in_get}) {
        server = {};
        *hangs = true;
        EXPECT_EXIT(init(1), testing::ExitedWithCode(3),
                    "the launcher's PMIx server has not answered PE 1 on host .* within 1 s "
                    "\\(HEDDLE_LAUNCH_TIMEOUT_S\\): has the launcher stopped\\?");
    }
}

// What init tells when these 8 s are over is not heard: the time in which a busy machine ends it has no bound.
TEST_F(Pmix, AServerThatIsStoppedLetsFinalizeReturn) {
    ASSERT_TRUE(init(8, [](const char*) {})) << error;
    server.silent_finalizes = 1;
    server.hangs_in_init = true;
    EXPECT_EXIT(finalize_within(10), testing::ExitedWithCode(kUnknown), "");
}

TEST_F(Pmix, FinalizeWaitsForAServerThatAnswersLate) {
    ASSERT_TRUE(init()) << error;
    server.silent_finalizes = 1;
    server.init_takes_ms = 50;
    EXPECT_EXIT(finalize_within(10), testing::ExitedWithCode(kKnown), "");
}

}  // namespace
}  // namespace heddle::bootstrap

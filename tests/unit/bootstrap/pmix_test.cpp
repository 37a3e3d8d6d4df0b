// The PMIx plugin, as launched.cpp loads it, and a server that this program plays: its functions with the names of
// PMIx's stand before PMIx's own. The library with a server that never answers: tests/errors/test_launch.py.
#include "bootstrap/launcher_api.h"

#include <gtest/gtest.h>
#include <pmix.h>

#include <dlfcn.h>
#include <unistd.h>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

struct Server {
    const char* job = "prterun-node-17@1";
    const char* peers = "0,1";  // of three PEs
    bool hangs_in_init = false, hangs_in_get = false;
    bool collected = false;  // by the last fence
};
Server server;

[[noreturn]] void hang() {
    for (;;) pause();
}

}  // namespace

extern "C" {

pmix_status_t PMIx_Init(pmix_proc_t* process, pmix_info_t*, size_t) {
    if (server.hangs_in_init)
        hang();
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
    bool init(uint64_t timeout_s = 600) {
        const auto lost = [](const char* how) {
            fprintf(stderr, "%s\n", how);
            _exit(3);
        };
        return api->init(&job, timeout_s, lost, error, sizeof error);
    }
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

}  // namespace
}  // namespace heddle::bootstrap

// What another launcher than oshrun must provide: who a PE is, words that PEs leave for each other, a fence, the end of
// the job. A plugin implements this page over the launcher's own library, of which nothing is seen outside its folder.
//
//   key     a name for some bytes that a PE publishes once. get may wait until they are there.
//   fence   all PEs of the job come before any leaves. What each has published before is seen behind it; `collect`: is
//           already here then, so that get costs no message. Otherwise get fetches it when it is called.
//
// A plugin exports `const heddle::bootstrap::LauncherApi heddle_launcher_1`. Threads: get and abort may be called by
// any, the rest by the one that calls init or finalize.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::bootstrap {

// As the launcher numbers the PEs. The peers are those that it started on this host, this PE among them, ascending.
struct LauncherJob {
    int pe;
    int n_pes;
    const int* peers;  // the plugin's
    int n_peers;
};

enum class Reach : int { kHost, kJob };  // who may get a key: the peers, or all

struct LauncherApi {
    const char* name;
    // False with the reason in error, as in all that follows. lost() is called, by a thread of the plugin, when the
    // launcher has died. A second init, after finalize, is an error.
    bool (*init)(LauncherJob* job, void (*lost)(), char* error, size_t error_bytes);
    bool (*publish)(const char* key, const void* value, size_t bytes, Reach reach, char* error, size_t error_bytes);
    bool (*fence)(bool collect, char* error, size_t error_bytes);
    // The bytes that pe published, at most max_bytes of them; 0 with the reason in error.
    size_t (*get)(int pe, const char* key, void* value, size_t max_bytes, char* error, size_t error_bytes);
    // The launcher ends all PEs, and returns this status.
    void (*abort)(int status, const char* message);
    // This PE needs the launcher no more: its end is a good one now. Waits for nobody.
    void (*finalize)();
};

}  // namespace heddle::bootstrap

// Launcher API: what a launcher other than oshrun must provide: a PE's number, key-value exchange, a fence, the end of
// the job. A plugin implements it over the launcher's own library, which is not visible outside the plugin's folder.
//
//   key     a name for bytes that a PE publishes once. get waits until they are there if LauncherJob::get_waits;
//           otherwise a fence that collects must lie between.
//   fence   returns when all PEs of the job have called. What each has published before is then available. With
//           `collect` it is already here, and get costs no message. Otherwise get fetches it when called.
//
// pmi/ implements it without a library, inside this one. A plugin exports `const heddle::bootstrap::LauncherApi
// heddle_launcher_5`. Threads: any may call get and abort; the one that calls init and finalize calls the rest.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::bootstrap {

struct PeRecord;

// The PEs as the launcher numbers them. The peers are those that it started on this host, including this PE, ascending.
struct LauncherJob {
    int pe;
    int n_pes;
    const int* peers;  // owned by the plugin
    int n_peers;
    bool get_waits;
};

enum class Reach : int { kHost, kJob };  // which PEs may get a key: the peers, or all

struct LauncherApi {
    const char* name;
    // init, publish and fence return false with the reason in error. The plugin calls lost(how), which ends this PE, on
    // a thread of its own when the launcher has died, or does not answer in init. timeout_s (HEDDLE_LAUNCH_TIMEOUT_S):
    // the longest wait for the launcher in init, and for another PE in a get and in a fence that collects. A second
    // init, after finalize, is an error.
    bool (*init)(LauncherJob* job, uint64_t timeout_s, void (*lost)(const char* how), char* error, size_t error_bytes);
    bool (*publish)(const char* key, const void* value, size_t bytes, Reach reach, char* error, size_t error_bytes);
    bool (*fence)(bool collect, char* error, size_t error_bytes);
    // The bytes that pe published, at most max_bytes of them; 0 with the reason in error.
    size_t (*get)(int pe, const char* key, void* value, size_t max_bytes, char* error, size_t error_bytes);
    // Makes the launcher end all PEs, and return this status.
    void (*abort)(int status, const char* message);
    // Tells the launcher that this PE's exit is no failure from now on. Waits for no other PE.
    void (*finalize)();
    // Null: not needed. This PE has joined, and its record has its state: from now on the end of another PE ends it.
    // Called by each init. False with the reason in error when the job is over.
    bool (*watch)(const PeRecord* record, char* error, size_t error_bytes) = nullptr;
    // Null: not needed. Joining has failed behind init: the other PEs hear why, and nothing is left of it.
    void (*abandon)(const char* why) = nullptr;
};

}  // namespace heddle::bootstrap

// The ways of a point of the benchmark patterns: what moves (Pattern), what says that it is complete (Sync), through
// which contexts (Context), and which combinations make no sense, with the reason.
#pragma once

#include <string>
#include <vector>

#include "programs/common/requests.hpp"

namespace shmem_mt {

enum class Pattern {
    kLatency,
    kStream,
    kBidirectional,
    kIncast,
    kFanOut,
    kHalo2d,
    kHalo3d,
    kAlltoall,
    kRandom,
    kCollective
};

constexpr struct {
    const char* name;
    Pattern pattern;
} kPatterns[] = {
    {"latency", Pattern::kLatency},      {"stream", Pattern::kStream},     {"bidirectional", Pattern::kBidirectional},
    {"incast", Pattern::kIncast},        {"fan-out", Pattern::kFanOut},    {"halo2d", Pattern::kHalo2d},
    {"halo3d", Pattern::kHalo3d},        {"alltoall", Pattern::kAlltoall}, {"random", Pattern::kRandom},
    {"collective", Pattern::kCollective}};

inline std::string name_of(Pattern pattern) {
    return kPatterns[static_cast<size_t>(pattern)].name;
}

// All PEs send and receive in each turn, and go on when they have received; what they have received they read.
inline bool is_exchange(Pattern pattern) {
    return pattern == Pattern::kHalo2d || pattern == Pattern::kHalo3d || pattern == Pattern::kAlltoall;
}

// The lower half of the PEs, or of one PE's threads, has its partners in the upper half.
inline bool is_in_pairs(Pattern pattern) {
    return pattern == Pattern::kLatency || pattern == Pattern::kStream || pattern == Pattern::kBidirectional;
}

enum class Sync {
    kQuiet,        // by each thread
    kThreadQuiet,  // all threads of the PE meet, then one thread quiets for all
    kPeQuiet,      // by each thread, of the PEs that it sends to
    kMerged,       // a request of each thread
    kShared,       // a request of all threads of the PE
    kBarrierAll,   // shmem_barrier_all by one thread, and nothing else
    kFenceFlag,    // the target waits for a flag
    kPutSignal,    // the target waits for the signal of each message
    kBlocking,     // of collectives: one thread calls for all
    kRequestWait,  // one thread posts for all and waits
    kAllThreads    // all threads call
};

constexpr struct {
    const char* name;
    Sync sync;
} kSyncs[] = {{"quiet", Sync::kQuiet},           {"thread_quiet", Sync::kThreadQuiet},
              {"pe_quiet", Sync::kPeQuiet},      {"request_merged", Sync::kMerged},
              {"request_shared", Sync::kShared}, {"barrier_all", Sync::kBarrierAll},
              {"fence_flag", Sync::kFenceFlag},  {"put_signal", Sync::kPutSignal},
              {"blocking", Sync::kBlocking},     {"request_wait", Sync::kRequestWait},
              {"all_threads", Sync::kAllThreads}};

inline std::string name_of(Sync sync) {
    return kSyncs[static_cast<size_t>(sync)].name;
}

inline bool is_request(Sync sync) {
    return sync == Sync::kMerged || sync == Sync::kShared;
}

// The target learns that data is there. Otherwise the origin does, and PEs that must know synchronize behind that.
inline bool tells_target(Sync sync) {
    return sync == Sync::kFenceFlag || sync == Sync::kPutSignal;
}

// One thread completes what all threads of its PE have sent.
inline bool is_for_all(Sync sync) {
    return sync == Sync::kThreadQuiet || sync == Sync::kShared;
}

inline bool is_of_collectives(Sync sync) {
    return sync == Sync::kBlocking || sync == Sync::kRequestWait || sync == Sync::kAllThreads;
}

enum class ContextKind { kDefault, kShared, kSerialized, kPrivate, kPool };

struct Context {
    std::string name;
    ContextKind kind = ContextKind::kDefault;
    int pool = 0;  // of kPool: how many contexts
};

inline Context context_named(const std::string& name) {
    const int pool = pool_of(name);
    const ContextKind kind = pool > 0               ? ContextKind::kPool
                             : name == "private"    ? ContextKind::kPrivate
                             : name == "shared"     ? ContextKind::kShared
                             : name == "serialized" ? ContextKind::kSerialized
                                                    : ContextKind::kDefault;
    return {name, kind, pool};
}

// Why there is nothing to be measured: words; empty where there is.
struct Why {
    std::string what;  // is left out
    std::string reason;

    explicit operator bool() const { return !reason.empty(); }
};

// What the library lacks for a synchronization.
inline std::string why_library_has_no(Sync sync) {
    if (sync == Sync::kPutSignal && !SHMEM_MT_HAVE_PUT_SIGNAL)
        return "the library has no shmem_putmem_signal (OpenSHMEM 1.5)";
    if (sync == Sync::kPeQuiet && !SHMEM_MT_HAVE_PE_QUIET)
        return "the library has no shmem_pe_quiet (OpenSHMEM 1.6)";
    if (is_request(sync) && !SHMEM_MT_HAVE_SHMEMX)
        return kNoRequests;
    if (sync == Sync::kRequestWait && !SHMEM_MT_HAVE_PROGRESS)
        return "the library has no non-blocking collectives (shmemx.h)";
    if (sync == Sync::kAllThreads && !SHMEM_MT_HAVE_SHMEMX)
        return "the library has no collectives by all threads (shmemx.h)";
    if (is_of_collectives(sync) && !SHMEM_MT_HAVE_TEAM_COLLECTIVES)
        return "the library has no collectives of teams (OpenSHMEM 1.5)";
    return "";
}

// Of a synchronization that is one of the pattern's, whatever the context.
inline Why why_no_sync(Pattern pattern, Sync sync, int threads, const std::string& level) {
    const std::string name = name_of(sync), both = name_of(pattern) + " with " + name;
    if (const std::string lacks = why_library_has_no(sync); !lacks.empty())
        return {name, lacks};
    if (is_for_all(sync) && threads == 1)
        return {name, "a PE with one thread has none to complete for"};
    if (is_for_all(sync) && level == "funneled")
        return {name, "under SHMEM_THREAD_FUNNELED one thread sends all, and completes its own"};
    if (sync == Sync::kAllThreads && level != "multiple" && threads > 1)
        return {name, "all threads call at once, which needs SHMEM_THREAD_MULTIPLE"};
    if (level == "serialized" && threads > 1 && (tells_target(sync) || is_request(sync)))
        return {name, "threads that wait for each other would hold the program's lock (SHMEM_THREAD_SERIALIZED)"};
    if (pattern == Pattern::kLatency && (is_for_all(sync) || sync == Sync::kBarrierAll))
        return {both, "a round trip is between two threads, not between all"};
    if (pattern == Pattern::kLatency && level == "serialized" && threads > 1)
        return {name_of(pattern), "threads that wait for their partners would hold the program's lock"};
    if (pattern == Pattern::kRandom && tells_target(sync))
        return {both, "a target does not know what comes"};
    if (pattern == Pattern::kRandom && sync == Sync::kPeQuiet)
        return {both, "it sends to all PEs, of which a quiet knows, too"};
    return {};
}

// The same, of one that makes sense by itself, with that context.
inline Why why_no_context(Sync sync, const Context& context, int threads, const std::string& level) {
    const std::string both = name_of(sync) + " with context=" + context.name;
    if (context.kind == ContextKind::kPool && context.pool >= threads)
        return {"context=" + context.name, "a pool has fewer contexts than the PE has threads"};
    if (sync == Sync::kBarrierAll && context.kind != ContextKind::kDefault)
        return {both, "shmem_barrier_all completes what is on the default context alone"};
    if (sync == Sync::kThreadQuiet && context.kind == ContextKind::kPrivate)
        return {both, "no thread may quiet the private context of another"};
    if (is_request(sync) && context.kind == ContextKind::kSerialized)
        return {both, "the library completes requests without the program's lock"};
    if (level != "multiple" && threads > 1 && context.kind != ContextKind::kDefault)
        return {"context=" + context.name, "under its thread level one thread at a time calls the library"};
    return {};
}

}  // namespace shmem_mt

// One SHMEM-MT program run: init and finalize, who sends to whom, the team of threads with their contexts,
// and the agreement among PEs. All PEs run in lockstep: every decision (how often to repeat, when to stop) is
// taken from agreed numbers, so that all take the same one.
#pragma once

#include <shmem.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "clock.hpp"
#include "link.hpp"
#include "options.hpp"
#include "output.hpp"
#include "thread_team.hpp"

namespace shmem_mt {

static_assert(sizeof(long) == 8, "the programs move long as 8-byte messages");

constexpr int kMaxThreads = 62;

// What one PE contributes to an agreement.
struct Report {
    double seconds = 0;
    double first_start = std::numeric_limits<double>::infinity();  // over its threads; infinity: it started none
    double last_start = -std::numeric_limits<double>::infinity();
    long ok = 1;
    long checked_bytes = 0;
    long expected_bytes = 0;
};

// What all PEs know after an agreement.
struct Agreed {
    double max_seconds = 0;
    double mean_seconds = 0;  // over all PEs
    double start_spread_s = 0;
    long ok = 1;
    long checked_bytes = 0;
    long expected_bytes = 0;
};

// Words that PEs write into each other to say "sent" and "seen"; a cache line each.
struct Control {
    alignas(64) long flag;
    alignas(64) long ack;
    struct LastWord {
        long offset;  // bytes into the window; -1: nothing to look at
        long value;
    };
    alignas(64) LastWord last[kMaxThreads];
};

// The program stops with one line on stderr; the launcher ends the other PEs.
[[noreturn]] inline void fail(const std::string& what) {
    std::fprintf(stderr, "shmem-mt: PE %d: %s\n", shmem_my_pe(), what.c_str());
    std::fflush(stderr);
    shmem_global_exit(1);
    std::abort();
}

// Symmetric memory aligned to a page, zeroed. Collective. Fails (ends the program) when the heap is too
// small.
inline void* symmetric_alloc(size_t bytes) {
    void* memory = shmem_align(4096, bytes);
    if (memory == nullptr) {
        fail("shmem_align of " + std::to_string(bytes) + " bytes failed: raise SHMEM_SYMMETRIC_SIZE or ask for " +
             "smaller sizes or fewer threads");
    }
    std::memset(memory, 0, bytes);
    shmem_barrier_all();
    return memory;
}

class Job {
  public:
    Job(const char* benchmark, const Options& options) : options_(options) {
        const int wanted = options.threads == 1 ? SHMEM_THREAD_SINGLE : SHMEM_THREAD_MULTIPLE;
        shmem_init_thread(wanted, &provided_);
        team_ = std::make_unique<ThreadTeam>(options.threads);  // after init: the library may move static data then
        me_ = shmem_my_pe();
        n_pes_ = shmem_n_pes();
        thread_level_ok_ = options.threads == 1 || provided_ >= SHMEM_THREAD_MULTIPLE;
        print_start(benchmark, wanted);
        if (n_pes_ < 2 || n_pes_ % 2 != 0)
            fail("the number of PEs must be even, not " + std::to_string(n_pes_));
        reports_ = static_cast<Report*>(symmetric_alloc(sizeof(Report) * static_cast<size_t>(n_pes_)));
        agreed_ = static_cast<Agreed*>(symmetric_alloc(sizeof(Agreed)));
        control_ = static_cast<Control*>(symmetric_alloc(sizeof(Control)));
        find_hosts();
        check_agreement();
        create_contexts();
    }

    // Ends the program normally: `done` is the last line that a driver waits for.
    void finish() {
        destroy_contexts();
        team_.reset();
        if (me_ == 0)
            Json().text("event", "done").integer("points", points_).print();
        shmem_barrier_all();
        shmem_finalize();
    }

    const Options& options() const { return options_; }
    int me() const { return me_; }
    int n_pes() const { return n_pes_; }
    int threads() const { return options_.threads; }
    ThreadTeam& team() { return *team_; }
    Control* control() { return control_; }
    bool one_host() const { return one_host_; }
    bool arithmetic_ok() const { return arithmetic_ok_; }
    bool thread_level_ok() const { return thread_level_ok_; }

    // Lower half sends to upper half: PE i to PE i + n/2.
    bool is_sender() const { return me_ < n_pes_ / 2; }
    int partner() const { return is_sender() ? me_ + n_pes_ / 2 : me_ - n_pes_ / 2; }

    // Where messages really go: the partner, unless a fault is planted.
    int message_pe() const {
        if (options_.fault == Fault::kRankAsSize)
            return (me_ + me_ / 2) % n_pes_;
        if (options_.fault == Fault::kPeerListIgnored)
            return (me_ + 1) % n_pes_;
        return partner();
    }

    // A number that no earlier sample used; the same on all PEs.
    long next_token() { return ++token_; }

    bool has_private_contexts() const { return private_contexts_; }
    const std::string& why_no_private_contexts() const { return why_no_private_; }

    // Calls f(link) with the link of that kind for `thread`.
    template <class F>
    void with_link(bool private_context, int thread, F&& f) const {
#if SHMEM_MT_HAVE_CTX
        if (private_context)
            return f(PrivateLink{contexts_[static_cast<size_t>(thread)]});
#endif
        (void)private_context;
        (void)thread;
        f(DefaultLink{});
    }

    // Every PE gives its report, all get the same result. Collective; two barriers.
    Agreed agree(const Report& mine) {
        shmem_putmem(reports_ + me_, &mine, sizeof mine, 0);
        shmem_barrier_all();
        if (me_ == 0) {
            const Agreed result = reduce();
            for (int pe = 0; pe < n_pes_; ++pe) shmem_putmem(agreed_, &result, sizeof result, pe);
        }
        shmem_barrier_all();
        return *agreed_;
    }

    // Fields that every point has.
    Json params(const std::string& op) const {
        Json json;
        json.integer("pes", n_pes_).integer("threads", options_.threads).text("op", op);
        const long cores = sysconf(_SC_NPROCESSORS_ONLN);
        json.boolean("oversubscribed", one_host_ && static_cast<long>(n_pes_) * options_.threads > cores);
        return json;
    }

    void print_point(const Json& point) {
        ++points_;
        if (me_ == 0)
            point.print();
    }

    void skip(const char* benchmark, const std::string& what, const std::string& reason) const {
        if (me_ != 0)
            return;
        Json().text("event", "skip").text("benchmark", benchmark).text("what", what).text("reason", reason).print();
    }

  private:
    void print_start(const char* benchmark, int wanted) const {
        if (me_ != 0)
            return;
        char name[SHMEM_MAX_NAME_LEN + 1] = "";
        int major = 0, minor = 0;
        shmem_info_get_name(name);
        shmem_info_get_version(&major, &minor);
        Json start;
        start.text("event", "start").text("benchmark", benchmark).text("library", name);
        start.text("specification", std::to_string(major) + "." + std::to_string(minor));
        start.integer("pes", n_pes_).integer("threads", options_.threads);
        start.text("thread_level", wanted == SHMEM_THREAD_SINGLE ? "SHMEM_THREAD_SINGLE" : "SHMEM_THREAD_MULTIPLE");
        start.boolean("thread_level_provided", thread_level_ok_).print();
    }

    // Clocks are comparable when all PEs booted together, that is, run on one kernel.
    void find_hosts() {
        static long boot_hash;  // symmetric
        if (FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
            for (int c; (c = std::fgetc(file)) != EOF;) boot_hash = boot_hash * 131 + c;
            std::fclose(file);
        }
        shmem_barrier_all();
        Report mine;
        mine.ok = boot_hash != 0 && shmem_long_g(&boot_hash, 0) == boot_hash;
        one_host_ = agree(mine).ok != 0;
    }

    // The reduction itself is checked against known answers before anything is measured with it.
    void check_agreement() {
        Report mine;
        mine.seconds = me_ + 1;
        mine.checked_bytes = me_ + 1;
        const Agreed all = agree(mine);
        const double n = n_pes_;
        arithmetic_ok_ = all.max_seconds == n && all.mean_seconds == (n + 1) / 2 &&
                         all.checked_bytes == static_cast<long>(n_pes_) * (n_pes_ + 1) / 2;
    }

    Agreed reduce() const {
        Agreed result;
        double first = std::numeric_limits<double>::infinity();
        double last = -first;
        double sum = 0;
        for (int pe = 0; pe < n_pes_; ++pe) {
            const Report& report = reports_[pe];
            if (report.seconds > result.max_seconds)
                result.max_seconds = report.seconds;
            if (options_.fault != Fault::kOnePeReduction || pe == 0)
                sum += report.seconds;
            if (report.last_start >= report.first_start) {
                const double spread = report.last_start - report.first_start;
                if (spread > result.start_spread_s)
                    result.start_spread_s = spread;
                if (report.first_start < first)
                    first = report.first_start;
                if (report.last_start > last)
                    last = report.last_start;
            }
            result.ok = result.ok && report.ok;
            result.checked_bytes += report.checked_bytes;
            result.expected_bytes += report.expected_bytes;
        }
        result.mean_seconds = sum / n_pes_;
        if (one_host_ && last >= first)
            result.start_spread_s = last - first;
        return result;
    }

    void create_contexts() {
#if SHMEM_MT_HAVE_CTX
        if (!thread_level_ok_)
            return;
        contexts_.resize(static_cast<size_t>(threads()));
        std::vector<int> created(static_cast<size_t>(threads()), 0);
        team_->run([&](int thread) {
            const size_t index = static_cast<size_t>(thread);
            created[index] = shmem_ctx_create(SHMEM_CTX_PRIVATE, &contexts_[index]) == 0;
        });
        Report mine;
        for (const int ok : created) mine.ok = mine.ok && ok;
        private_contexts_ = agree(mine).ok != 0;
        why_no_private_ = "shmem_ctx_create(SHMEM_CTX_PRIVATE) failed";
        if (!private_contexts_)
            contexts_.clear();
#endif
    }

    void destroy_contexts() {
#if SHMEM_MT_HAVE_CTX
        if (!private_contexts_)
            return;
        team_->run([&](int thread) { shmem_ctx_destroy(contexts_[static_cast<size_t>(thread)]); });
#endif
    }

    const Options options_;
    std::unique_ptr<ThreadTeam> team_;
    int provided_ = 0;
    int me_ = 0;
    int n_pes_ = 0;
    bool thread_level_ok_ = true;
    bool one_host_ = false;
    bool arithmetic_ok_ = false;
    bool private_contexts_ = false;
    std::string why_no_private_ = "the library has no shmem_ctx_create";
#if SHMEM_MT_HAVE_CTX
    std::vector<shmem_ctx_t> contexts_;
#endif
    Report* reports_ = nullptr;
    Agreed* agreed_ = nullptr;
    Control* control_ = nullptr;
    long token_ = 0;
    long points_ = 0;
};

}  // namespace shmem_mt

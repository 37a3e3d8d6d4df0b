// The collectives, as programs for OpenSHMEM (called by one thread of a PE, or by all) and for MPI share them: their
// list, and how those of one size are validated (common/collective_data.hpp) and timed beside a plain copy.
//
// A figure is seconds an operation, by scheme:
//   back-to-back  `count` operations between two barriers, from the first PE's start until all have finished. The second
//                 barrier is included: one for `count` operations
//   window        each from a common start to the last PE's return (common/windows.hpp); a sample is the median of many
// Ahead of the end each thread that called takes three words of each block of its dest; behind it they are compared with
// what this sample alone can bring. Barriers of OpenSHMEM are checked by a number that each PE puts to its right neighbour
// ahead of the last one, as in common/barriers.hpp.
// size_bytes is what one PE contributes; of the all-to-all exchanges, one block. The root of a broadcast is the first PE
// of the team. Every PE of collect contributes equally much. Sums and scans are of doubles, maxima of longs.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "programs/collectives/timed_check.hpp"
#include "programs/common/collective_data.hpp"
#include "programs/common/measure.hpp"
#include "programs/common/run_together.hpp"
#include "programs/common/session.hpp"
#include "programs/common/windows.hpp"

namespace shmem_mt {

constexpr const char* kCollectivesName = "collectives";
constexpr const char* kThreadedCollectivesName = "collectives-mt";

// The name on the command line and in results, and the synchronization it is reported with.
struct CollectiveName {
    const char* name;
    Collective op;
    const char* sync;

    bool sized() const { return op >= Collective::kBroadcast; }
};

using CollectiveTable = std::vector<CollectiveName>;

const CollectiveTable kCollectives = {
    {"barrier_all", Collective::kBarrierAll, "barrier_all"},
    {"sync_all", Collective::kSyncAll, "sync_all"},
    {"broadcast", Collective::kBroadcast, "blocking"},
    {"collect", Collective::kCollect, "blocking"},
    {"fcollect", Collective::kFcollect, "blocking"},
    {"alltoall", Collective::kAlltoall, "blocking"},
    {"alltoalls", Collective::kAlltoalls, "blocking"},
    {"sum_reduce", Collective::kSumReduce, "blocking"},
    {"max_reduce", Collective::kMaxReduce, "blocking"},
    {"sum_inscan", Collective::kSumInscan, "blocking"},
    {"copy", Collective::kCopy, "blocking"},
};

// Those that all threads of a PE call together.
const CollectiveTable kThreadedCollectives = {
    {"team_sync", Collective::kTeamSync, "team_sync"},
    {"team_barrier", Collective::kTeamBarrier, "team_barrier"},
    {"broadcast", Collective::kBroadcast, "blocking"},
    {"collect", Collective::kCollect, "blocking"},
    {"fcollect", Collective::kFcollect, "blocking"},
    {"alltoall", Collective::kAlltoall, "blocking"},
    {"sum_reduce", Collective::kSumReduce, "blocking"},
    {"max_reduce", Collective::kMaxReduce, "blocking"},
    {"copy", Collective::kCopy, "blocking"},
};

// What a library offers.
class CollectiveLibrary {
  public:
    virtual ~CollectiveLibrary() = default;

    // Empty, or the reason why the library cannot do it.
    virtual std::string why_not(Collective op) const = 0;

    // `count` operations back to back, by `thread`; false when one of them reports a failure. For members of the team.
    virtual bool run(const Call& call, long count, int thread) = 0;

    // Whether a broadcast also writes the root's dest.
    virtual bool broadcast_fills_root() const = 0;

    // Ahead of barrier `op`: puts `token` to the right neighbour. A library without puts leaves it out.
    virtual void tell_right(Collective, long /*token*/) {}

    // Behind that barrier: whether the left neighbour's token is there.
    virtual bool is_told(long /*token*/) const { return true; }
};

// Calls operation(0), operation(1), ...; false when one returns something else than 0.
template <class F>
inline bool repeat(long count, F&& operation) {
    int bad = 0;
    for (long i = 0; i < count; ++i) bad |= operation(i);
    return bad == 0;
}

// Measures what the options ask for and prints the points. All members are collective over all PEs.
class Collectives {
  public:
    // source and dest (symmetric) have at least needed_bytes(). `benchmark` and `table` are those of the blocking
    // collectives, which thread 0 calls, or of those that all threads call.
    Collectives(Session& session, CollectiveLibrary& library, const char* benchmark, const CollectiveTable& table,
                void* source, void* dest)
        : session_(session),
          library_(library),
          benchmark_(benchmark),
          table_(table),
          callers_(benchmark == kThreadedCollectivesName ? session.threads() : 1),
          source_(static_cast<uint64_t*>(source)),
          dest_(static_cast<uint64_t*>(dest)) {}

    // What the options need of each buffer, with room for the word behind the end that is checked, too.
    static long needed_bytes(const Session& session) {
        long bytes = 0;
        for (const auto& name : kCollectives) {
            for (const long size : session.options().sizes) {
                for (const auto& team : session.options().teams) {
                    const long needed = buffer_bytes(name.op, team_of(session, team).size, size);
                    bytes = needed <= session.options().buffer_bytes ? std::max(bytes, needed) : bytes;
                }
            }
        }
        return bytes + 64;
    }

    void run_all() {
        for (const auto& name : session_.options().teams) {
            const Team team = team_of(session_, name);
            if (team.size < 2) {
                session_.skip(benchmark_, "team=" + name, "fewer than 2 PEs are no team");
                continue;
            }
            run_group(team, 0);
            for (const long size : session_.options().sizes) run_group(team, size);
        }
    }

  private:
    // Rounds of a validating pass. The first three have one operation, two, and three without a pause; the further
    // ones, of short collectives, have one each, so that of so many each one that does nothing is seen.
    static constexpr int kRounds = 3, kShortRounds = 8;
    static constexpr long kShortBytes = 64L << 10;

    static Team team_of(const Session& session, const std::string& name) {
        const int n = session.n_pes(), me = session.me();
        if (name == "world")
            return {name, n, me};
        return {name, (n + 1) / 2, me % 2 == 0 ? me / 2 : -1};
    }

    // An operation of one size.
    struct Item {
        CollectiveName name;
        Call call;
        long size;
        double bytes;  // that a thread copies, at least
        std::optional<Agreed> verdict;
    };

    bool wants_scheme(const char* scheme) const {
        const std::vector<std::string>& schemes = session_.options().schemes;
        return std::find(schemes.begin(), schemes.end(), scheme) != schemes.end();
    }

    // The operations of one size, interleaved; size 0: those that have none.
    void run_group(const Team& team, long size) {
        std::vector<Item> group;
        std::vector<Body> bodies;
        std::vector<double> bytes;
        for (const auto& name : table_) {
            if (!wanted(name, team, size) || !possible(name, team, size))
                continue;
            const Call call = {name.op, team, source_, dest_, static_cast<size_t>(size / 8)};
            bytes.push_back(static_cast<double>(shape_of(name.op, team.size).dest_blocks * size) / callers_);
            group.push_back({name, call, size, bytes.back(), name.sized() ? validate(call) : validate_barrier(call)});
            bodies.push_back([this, call](long count) { return sample(call, count); });
        }
        if (group.empty())
            return;
        fill_for_timing(team, size);
        const std::vector<Samples> samples = measure(session_, bodies, TimeOf::kSlowestPe, bytes);
        for (size_t i = 0; i < group.size() && wants_scheme("back-to-back"); ++i)
            print(group[i], samples[i], "back-to-back");
        if (!wants_scheme("window"))
            return;
        if (session_.oversubscribed())
            return skip_once("scheme=window", "cores are fewer than threads, so that not all can begin at once");
        run_windows_of(group, samples);
    }

    // The operations of a group in windows, interleaved, for as long as `before`, their samples back to back, were to take.
    void run_windows_of(const std::vector<Item>& group, const std::vector<Samples>& before) {
        std::vector<Samples> apart(group.size());
        double spent = 0;
        for (int sample = 0; sample < session_.options().samples; ++sample) {
            if (sample >= 3 && spent > session_.options().point_s * static_cast<double>(group.size()))
                break;
            for (size_t i = 0; i < group.size(); ++i) {
                if (group[i].name.op == Collective::kCopy)
                    continue;
                const double each_s = median_of(before[i].seconds) / static_cast<double>(before[i].count);
                const Windows windows = windows_for(each_s);
                spent += static_cast<double>(windows.count) * windows.length_s;
                sample_windows(group[i], windows, apart[i]);
            }
        }
        for (size_t i = 0; i < group.size(); ++i) {
            if (group[i].name.op == Collective::kCopy)
                continue;
            if (session_.me() == 0 && apart[i].seconds.empty())
                skip_once("scheme=window, " + std::string(group[i].name.name), "some PE began late in every window");
            else
                print(group[i], apart[i], "window");
        }
    }

    // Operations that take `each_s` back to back take longer one by one.
    Windows windows_for(double each_s) const {
        constexpr double kFactor = 4, kPause = 10e-6, kLate = 0.05, kLeastLate = 100e-9;
        Windows windows;
        windows.length_s = kFactor * each_s + kPause;
        windows.latest_s = std::max(kLate * each_s, kLeastLate);
        const double wanted = session_.options().sample_s / windows.length_s;
        windows.count = static_cast<long>(std::clamp(wanted, 3.0, static_cast<double>(kMostWindows)));
        return windows;
    }

    // Adds a sample to `samples` at PE 0, unless all its windows were late. Collective.
    void sample_windows(const Item& item, const Windows& windows, Samples& samples) {
        const long token = session_.next_token();
        TimedCheck check(session_, item.call, token, callers_);
        std::vector<char> ok(static_cast<size_t>(callers_), 1);
        const auto operate = [&](int thread, bool is_last) {
            if (!item.call.team.member())
                return;
            char& fine = ok[static_cast<size_t>(thread)];
            fine = (is_last ? run_timed(item.call, 1, thread, token) : idle() || run(item.call, 1, thread)) && fine;
            if (is_last)
                check.look(thread);
        };
        std::vector<double> kept = run_windows(session_, callers_, windows, operate);
        Report mine;
        mine.ok = std::count(ok.begin(), ok.end(), 0) == 0 && check.is_right(library_.broadcast_fills_root());
        mine.clock_error_s = session_.clock_error_s();
        const Agreed agreed = session_.agree(mine);
        samples.wrong = samples.wrong || !agreed.ok;
        samples.clock_error_s = std::max(samples.clock_error_s, agreed.clock_error_s);
        const size_t all = kept.size();
        kept.erase(std::remove_if(kept.begin(), kept.end(), [](double s) { return !std::isfinite(s); }), kept.end());
        samples.windows += static_cast<long>(kept.size());
        samples.late += static_cast<long>(all - kept.size());
        for (const double seconds : kept) samples.durations.add(seconds);
        if (kept.empty())
            return;
        samples.seconds.push_back(median_of(kept));
        samples.too_fast = samples.too_fast || samples.seconds.back() < session_.limit().least_s(item.bytes);
    }

    // Barriers are those of all PEs.
    bool wanted(const CollectiveName& name, const Team& team, long size) const {
        const Options& options = session_.options();
        return name.sized() == (size > 0) && (name.sized() || team.name == "world") && options.wants_sync(name.sync) &&
               options.wants_op(name.name);
    }

    // Says by name, once, what is left out.
    bool possible(const CollectiveName& name, const Team& team, long size) {
        std::string what = name.name;
        std::string reason = library_.why_not(name.op);
        if (reason.empty() && size % 8 != 0) {
            what = std::to_string(size) + " bytes";
            reason = "collectives are measured with elements of 8 bytes";
        }
        if (reason.empty() && buffer_bytes(name.op, team.size, size) > session_.options().buffer_bytes) {
            what = std::to_string(size) + " bytes, " + std::to_string(team.size) + " PEs, in part";
            reason = "some collectives would need buffers larger than --buffer-bytes";
        }
        if (!reason.empty())
            skip_once(what, reason);
        return reason.empty();
    }

    void skip_once(const std::string& what, const std::string& reason) {
        if (std::find(skipped_.begin(), skipped_.end(), what) != skipped_.end())
            return;
        session_.skip(benchmark_, what, reason);
        skipped_.push_back(what);
    }

    bool run(const Call& call, long count, int thread) {
        if (call.op != Collective::kCopy)
            return library_.run(call, count, thread);
        const size_t begin = call.nelems * static_cast<size_t>(thread) / static_cast<size_t>(callers_);
        const size_t end = call.nelems * static_cast<size_t>(thread + 1) / static_cast<size_t>(callers_);
        uint64_t* const dest = static_cast<uint64_t*>(call.dest) + begin;
        const uint64_t* const source = static_cast<const uint64_t*>(call.source) + begin;
        const bool ok = repeat(count, [&](long) {
            std::memcpy(dest, source, 8 * (end - begin));
            asm volatile("" : : "r"(dest) : "memory");  // the next copy may not replace this one
            return 0;
        });
        if (callers_ > 1)
            session_.team().barrier();  // as after a collective, all of dest is there
        return ok;
    }

    // f(thread) on all that call the collectives; false when one of them returns false.
    template <class F>
    bool on_callers(F&& f) {
        std::vector<char> ok(static_cast<size_t>(session_.threads()), 1);
        session_.team().run([&](int thread) {
            if (thread < callers_)
                ok[static_cast<size_t>(thread)] = f(thread);
        });
        return std::count(ok.begin(), ok.end(), 0) == 0;
    }

    bool idle() const { return session_.options().fault == Fault::kIdleTimedPass; }

    // `count` operations of a timed pass. Ahead of the last barrier thread 0 tells its neighbour, behind it thread 0 looks.
    bool run_timed(const Call& call, long count, int thread, long token) {
        if (call.op >= Collective::kBroadcast)
            return idle() || run(call, count, thread);
        bool ok = idle() || count == 1 || run(call, count - 1, thread);
        if (thread == 0 && !idle())
            library_.tell_right(call.op, token);
        ok = (idle() || run(call, 1, thread)) && ok;
        return ok && (thread != 0 || library_.is_told(token));
    }

    Report sample(const Call& call, long count) {
        const long token = session_.next_token();
        TimedCheck check(session_, call, token, callers_);
        std::vector<char> ok(static_cast<size_t>(callers_), 1);
        Report report = run_together(
            session_,
            [&](int thread) {
                if (!call.team.member() || thread >= callers_)
                    return;
                ok[static_cast<size_t>(thread)] = run_timed(call, count, thread, token);
                check.look(thread);
            },
            [&] {
                session_.barrier();
                return true;
            });
        report.ok = std::count(ok.begin(), ok.end(), 0) == 0 && check.is_right(library_.broadcast_fills_root());
        return call.team.member() ? report : Report{};
    }

    // Every round has other values, so what an earlier one left in dest is wrong. Each thread that called looks, as
    // soon as its own call has returned, at all of dest, at the elements that a stride leaves out, and at the word
    // behind the end.
    std::optional<Agreed> validate(const Call& call) {
        if (!session_.options().validate)
            return {};
        const Checker nothing(session_.options().fault);
        std::vector<Checker> checkers(static_cast<size_t>(callers_), nothing);
        poison_dest(call);
        const bool is_short = buffer_bytes(call.op, call.team.size, 8 * static_cast<long>(call.nelems)) <= kShortBytes;
        for (int round = 0; round < (is_short ? kShortRounds : kRounds); ++round) {
            const long token = session_.next_token();
            fill_source(call, token);
            session_.barrier();  // all dests are ready
            if (!call.team.member())
                continue;
            on_callers([&](int thread) {
                Checker& checker = checkers[static_cast<size_t>(thread)];
                checker.compare_word(run_checked(call, round, thread), 1);
                check_dest(checker, call, token, library_.broadcast_fills_root());
                return true;
            });
        }
        Checker all = nothing;
        for (const Checker& one : checkers) all.add(one);
        return agree_verdict(session_, all);
    }

    bool run_checked(Call call, int round, int thread) {
        const Fault fault = session_.options().fault;
        if (fault == Fault::kSkippedOperation || (fault == Fault::kStaleResult && round > 0))
            return true;
        if (fault == Fault::kLastElementMissing && call.nelems > 0)
            --call.nelems;
        return run(call, round < kRounds ? round + 1 : 1, thread);
    }

    // The last thread of one PE after the other comes late; no thread may leave before it has come.
    std::optional<Agreed> validate_barrier(const Call& call) {
        if (!session_.options().validate)
            return {};
        Checker checker(session_.options().fault);
        for (int round = 0; round < kShortRounds; ++round) {
            const int late = round % session_.n_pes();
            std::vector<double> came(static_cast<size_t>(callers_)), left(came);
            session_.synchronize();
            session_.barrier();
            const bool ok = on_callers([&](int thread) {
                if (session_.me() == late && thread == callers_ - 1)
                    usleep(2000);
                came[static_cast<size_t>(thread)] = session_.now();
                const bool fine = run_checked(call, round, thread);
                left[static_cast<size_t>(thread)] = session_.now();
                return fine;
            });
            Report last;
            last.seconds = *std::max_element(came.begin(), came.end());
            last.clock_error_s = session_.clock_error_s();
            const Agreed agreed = session_.agree(last);
            const double first_left = *std::min_element(left.begin(), left.end()) + 2 * agreed.clock_error_s;
            checker.compare_word(ok && first_left >= agreed.max_seconds, 1);
        }
        return agree_verdict(session_, checker);
    }

    // Doubles that are no denormals, whatever the operation makes of them.
    void fill_for_timing(const Team& team, long size) {
        const long words = std::min(needed_bytes(session_) / 8, 2 * team.size * size / 8);
        for (long i = 0; i < words; ++i) source_[i] = source_word(Collective::kSumReduce, session_.me(), 0, 0, i);
    }

    void print(const Item& item, const Samples& samples, const char* scheme) {
        const Team& team = item.call.team;
        Json params = session_.params(item.name.name);
        params.integer("size_bytes", item.size).text("placement", "heap").text("context", "default");
        params.text("sync", item.name.sync).text("team", team.name).text("scheme", scheme);
        params.integer("copied_bytes", shape_of(item.name.op, team.size).dest_blocks * item.size);
        const bool is_copy = item.name.op == Collective::kCopy;
        std::vector<double> values;
        for (const double seconds : samples.seconds) {
            const double each = seconds / static_cast<double>(samples.count);
            values.push_back(is_copy ? static_cast<double>(item.size) / each : each);
        }
        print_point(session_, benchmark_, params, is_copy ? "bandwidth" : "latency", is_copy ? "bytes/s" : "s", values,
                    samples, item.verdict ? &*item.verdict : nullptr);
    }

    Session& session_;
    CollectiveLibrary& library_;
    const char* const benchmark_;
    const CollectiveTable& table_;
    const int callers_;  // threads
    uint64_t* source_;
    uint64_t* dest_;
    std::vector<std::string> skipped_;
};

// What all these programs know of the command line.
inline Options parse_collectives_options(int argc, char** argv, const CollectiveTable& table) {
    Options defaults;
    defaults.sizes = {8, 1024, 16384, 262144, 8388608};
    defaults.placements = {"heap"};
    defaults.contexts = {"default"};
    defaults.teams = {"world", "strided"};
    defaults.schemes = {"back-to-back", "window"};
    std::vector<std::string> known;
    for (const auto& name : table) known.push_back(name.name);
    return parse_options(argc, argv, defaults, known);
}

}  // namespace shmem_mt

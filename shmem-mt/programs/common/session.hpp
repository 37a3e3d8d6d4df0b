// One program run, whatever library the PEs talk through: their numbers, the agreement among them, and the output. All
// PEs run in lockstep: every decision (how often to repeat, when to stop) is taken from agreed numbers, so all PEs take
// the same one. Job (OpenSHMEM) and MpiJob are the sessions.
#pragma once

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "programs/common/binding.hpp"
#include "programs/common/clock.hpp"
#include "programs/common/cores.hpp"
#include "programs/common/machine_limit.hpp"
#include "programs/common/options.hpp"
#include "programs/common/output.hpp"
#include "programs/common/partners.hpp"
#include "programs/common/thread_team.hpp"

namespace shmem_mt {

// What one PE contributes to an agreement.
struct Report {
    double seconds = 0;
    double first_start = std::numeric_limits<double>::infinity();  // over its threads; infinity: it started none
    double last_start = -std::numeric_limits<double>::infinity();
    double end = -std::numeric_limits<double>::infinity();  // by Session::now, as the starts; -infinity: not timed so
    double clock_error_s = 0;                               // of the stamps
    long ok = 1;
    long checked_bytes = 0;
    long expected_bytes = 0;
    long preempted = 0;  // times: its threads that could have gone on
    double cores = 0;    // that its threads kept busy, those of the library counted
    long cpus = 0;       // that it may use; 0: not said
    long cpu = -1;       // the first of them
};

// What all PEs know after an agreement.
struct Agreed {
    double max_seconds = 0;
    double mean_seconds = 0;    // over all PEs
    double window_seconds = 0;  // from the first start of a PE that times to the last end
    double start_spread_s = 0;
    double clock_error_s = 0;  // of the stamps of the PE whose clock is known worst
    long ok = 1;
    long checked_bytes = 0;
    long expected_bytes = 0;
    long preempted = 0;
    double origin_cores = 0, target_cores = 0;  // busy for a PE of the lower half, which sends, and of the upper; means
    long fewest_cpus = 0, most_cpus = 0;        // of a PE
    long single_cpus = 0;                       // different ones to which PEs are bound alone
};

class Session {
  public:
    virtual ~Session() = default;

    // No PE leaves before the last one has come.
    virtual void barrier() = 0;

    // Every PE gives its report, all get the same result. Collective.
    virtual Agreed agree(const Report& mine) = 0;

    // PE 0 gets so many bytes of each PE, in their order; at most kMostGathered. Collective.
    virtual void gather(const void* mine, size_t bytes, void* all) = 0;

    // The opposite: each PE gets its part of what PE 0 has. Collective.
    virtual void scatter(const void* all, size_t bytes, void* mine) = 0;
    static constexpr size_t kMostGathered = 8192;

    const Options& options() const { return options_; }
    int me() const { return me_; }
    int n_pes() const { return n_pes_; }
    int threads() const { return options_.threads; }
    ThreadTeam& team() { return *team_; }
    bool one_host() const { return one_host_; }
    bool oversubscribed() const { return oversubscribed_; }  // more threads than cores, as far as that is known
    bool arithmetic_ok() const { return arithmetic_ok_; }
    const MachineLimit& limit() const { return limit_; }
    const std::string& binding() const { return binding_; }
    bool thread_level_ok() const { return thread_level_ok_; }

    // Half of the PEs, PE 0 among them, send to the other half (partners.hpp). One PE alone sends to itself.
    bool is_sender() const { return partner_.sends; }
    int partner() const { return partner_.pe; }
    bool is_in_first_pair() const { return me_ == 0 || partner() == 0; }
    int message_pe() const { return real_pe(partner()); }

    // Where messages for `pe` really go: there, unless a fault is planted.
    int real_pe(int pe) const {
        if (options_.fault == Fault::kRankAsSize)
            return (me_ + me_ / 2) % n_pes_;
        if (options_.fault == Fault::kPeerListIgnored)
            return (me_ + 1) % n_pes_;
        return pe;
    }

    // Whether a planted fault has this thread do nothing in timed passes.
    bool idles(int thread) const {
        return options_.fault == Fault::kIdleTimedPass ||
               (options_.fault == Fault::kIdleThread && thread == options_.threads - 1);
    }

    // Seconds on a clock that all PEs share: that of the host or, where there are several, PE 0's as synchronize() found.
    double now() const { return now_seconds() + planted_s_ + shift_s_; }

    // Several hosts: finds how far this PE's clock is from PE 0's. Of kAsks round trips the shortest counts, for its
    // middle can be off by no more than half of it. Collective.
    void synchronize() {
        constexpr int kAsks = 8;
        if (one_host_)
            return;
        const long token = next_token();
        double shortest = std::numeric_limits<double>::infinity();
        for (int ask = 0; ask < kAsks * (n_pes_ - 1); ++ask) {
            const int pe = 1 + ask / kAsks;
            if (me_ == 0)
                answer_time(pe, token * kAsks + ask % kAsks);
            if (me_ != pe)
                continue;
            const double asked = now_seconds() + planted_s_;
            const double there = 1e-9 * static_cast<double>(ask_time(token * kAsks + ask % kAsks));
            synchronized_ = now_seconds() + planted_s_;
            if (synchronized_ - asked < shortest) {
                shortest = synchronized_ - asked;
                shift_s_ = there - 0.5 * (asked + synchronized_);
            }
        }
        round_trip_s_ = me_ == 0 ? 0 : shortest;
    }

    // How far now() may be from PE 0's: half of the round trip, and what clocks drift apart since then.
    double clock_error_s() const {
        constexpr double kDrift = 1e-4;  // quartz crystals and the slewing of time daemons
        if (one_host_ || me_ == 0)
            return 0;
        return 0.5 * round_trip_s_ + kDrift * (now_seconds() + planted_s_ - synchronized_);
    }

    // Called by all threads of all PEs: none leaves before the last has come.
    void meet(int thread) {
        team().barrier();
        if (thread == 0)
            barrier();
        team().barrier();
    }

    // A number that no earlier sample used; the same on all PEs.
    long next_token() { return ++token_; }

    // Fields that every point has.
    Json params(const std::string& op) const {
        Json json;
        json.integer("pes", n_pes_).integer("threads", options_.threads).text("op", op);
        json.boolean("oversubscribed", oversubscribed());
        if (hosts_ > 1)
            json.integer("hosts", hosts_);
        if (hosts_ > 1 && has_pairs_)
            json.text("partner", nearness_);
        return json;
    }

    // Of what each PE has, what the PEs of one host have together, where that is most. Collective.
    double most_of_a_host(double mine) {
        const HostPart part{cores_.host, mine};
        std::vector<HostPart> parts(me_ == 0 ? static_cast<size_t>(n_pes_) : 0);
        gather(&part, sizeof part, parts.data());
        Report report;
        report.seconds = me_ == 0 ? shmem_mt::most_of_a_host(parts) : 0;
        return agree(report).max_seconds;
    }

    bool threads_are_bound() const { return threads_are_bound_; }

    // Binds each thread to a CPU of its own where there are enough, on all PEs or none. Once; collective; thread 0, no
    // other thread at work.
    void bind_threads() {
        std::vector<Cores> all(me_ == 0 ? static_cast<size_t>(n_pes_) : 0);
        gather(&cores_, sizeof cores_, all.data());
        const std::vector<Seat> seats = seats_of(all);
        Seat seat;
        scatter(seats.data(), sizeof seat, &seat);
        const std::vector<int> cpus = cpus_for(places_of(cores_.cpus), seat, threads());
        Report mine;
        mine.ok = !cpus.empty();
        if (!agree(mine).ok)
            return;
        team().run([&](int thread) { Unbound::bind(cpus[static_cast<size_t>(thread)]); });
        threads_are_bound_ = true;
        mine.cpus = CPU_COUNT(&cores_.cpus);
        if (agree(mine).most_cpus > 1)
            binding_ += ", each thread to one";
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

  protected:
    explicit Session(const Options& options) : options_(options) {}

    // One side of a round trip with PE 0: PE 0's clock in nanoseconds while it held the message. The other side is
    // answer_time of that PE and number. Numbers grow.
    virtual long ask_time(long number) = 0;
    virtual void answer_time(int pe, long number) = 0;
    long time_ns() const { return static_cast<long>(1e9 * (now_seconds() + planted_s_)); }

    void start_threads(int count) { team_ = std::make_unique<ThreadTeam>(count); }
    void end_threads() { team_.reset(); }

    void print_start(const char* benchmark, const std::string& library, int major, int minor, const char* level) const {
        if (me_ != 0)
            return;
        Json start;
        start.text("event", "start").text("benchmark", benchmark).text("library", library);
        start.text("specification", std::to_string(major) + "." + std::to_string(minor));
        start.integer("pes", n_pes_).integer("threads", options_.threads);
        start.text("thread_level", level).boolean("thread_level_provided", thread_level_ok_).print();
    }

    // The last line that a driver waits for.
    void print_done() const {
        if (me_ == 0)
            Json().text("event", "done").integer("points", points_).print();
    }

    // Before anything is measured, once agree() works. Collective.
    void prepare() {
        const std::vector<long> hosts = find_hosts();
        find_partner(hosts);
        check_agreement();
        find_binding();
        settle_threads();
        limit_ = machine_limit();
    }

    // The agreement that the reports of all PEs make.
    Agreed reduce(const Report* reports) const {
        Agreed result;
        double first = std::numeric_limits<double>::infinity();
        double last = -first;
        double sum = 0;
        double opened = first, closed = last;  // of the PEs that time
        std::set<long> alone;                  // CPUs
        const int n_senders = (n_pes_ + 1) / 2;
        for (int pe = 0; pe < n_pes_; ++pe) {
            const Report& report = reports[pe];
            if (report.seconds > result.max_seconds)
                result.max_seconds = report.seconds;
            if (report.seconds > 0 && report.end > report.first_start) {
                opened = std::min(opened, report.first_start);
                closed = std::max(closed, report.end);
            }
            if (options_.fault != Fault::kOnePeReduction || pe == 0)
                sum += report.seconds;
            if (report.last_start >= report.first_start) {
                if (report.first_start < first)
                    first = report.first_start;
                if (report.last_start > last)
                    last = report.last_start;
            }
            result.clock_error_s = std::max(result.clock_error_s, report.clock_error_s);
            result.ok = result.ok && report.ok;
            result.preempted += report.preempted;
            if (pe < n_senders)
                result.origin_cores += report.cores / n_senders;
            else
                result.target_cores += report.cores / (n_pes_ - n_senders);
            result.fewest_cpus = pe == 0 ? report.cpus : std::min(result.fewest_cpus, report.cpus);
            result.most_cpus = std::max(result.most_cpus, report.cpus);
            if (report.cpus == 1)
                alone.insert(report.cpu);
            result.checked_bytes += report.checked_bytes;
            result.expected_bytes += report.expected_bytes;
        }
        result.mean_seconds = sum / n_pes_;
        result.single_cpus = static_cast<long>(alone.size());
        if (last >= first)
            result.start_spread_s = last - first;
        result.window_seconds = closed > opened ? closed - opened : result.max_seconds;
        return result;
    }

    const Options options_;
    int me_ = 0;
    int n_pes_ = 0;
    bool thread_level_ok_ = true;  // the library lets all threads call it at once, or there is only one
    bool has_pairs_ = false;       // the program's PEs talk in pairs

    // Ends a program whose PEs have no partners as asked for, without a point. Collective.
    bool lacks_partners(const char* benchmark) const {
        if (partner_.pe < 0)
            skip(benchmark, "all", "not every PE has a partner that is " + options_.partner + ", where they run");
        return partner_.pe < 0;
    }

  private:
    // All PEs have one clock when they run on one kernel. PE 0 gets the host of each.
    std::vector<long> find_hosts() {
        const bool foreign = options_.fault == Fault::kForeignClocks;
        planted_s_ = foreign ? 1000.0 * me_ : 0;
        cores_ = cores_of(me_);
        if (foreign)
            cores_.host = -1 - me_;
        one_host_ = most_of_a_host(1) == n_pes_;
        std::vector<Cores> all(me_ == 0 ? static_cast<size_t>(n_pes_) : 0);
        gather(&cores_, sizeof cores_, all.data());
        Report enough;
        enough.ok = !too_few_cores(all, options_.threads);
        oversubscribed_ = !agree(enough).ok;
        std::vector<long> hosts;
        for (const Cores& one : all) hosts.push_back(one.host);
        return hosts;
    }

    // PE 0 finds the partners of all, for it alone knows where they run. On one host everybody knows.
    void find_partner(const std::vector<long>& hosts) {
        partner_ = half_partner(me_, n_pes_);
        hosts_ = static_cast<long>(pes_by_host(hosts).size());
        if (!has_pairs_ || n_pes_ == 1 || (one_host_ && options_.partner.empty()))
            return;
        std::vector<Partner> all;
        if (me_ == 0) {
            all = partners_of(hosts, options_.partner);
            nearness_ = all.empty() ? "" : nearness(hosts, all);
            all.resize(hosts.size());
        }
        scatter(all.data(), sizeof partner_, &partner_);
    }

    // Where the threads of a PE may run, as the kernel has it: `1 CPU a PE`, `1 CPU a PE, shared`, `2 CPUs a PE`.
    void find_binding() {
        Report mine;
        mine.cpus = CPU_COUNT(&cores_.cpus);
        for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu) {
            if (CPU_ISSET(cpu, &cores_.cpus))
                mine.cpu = cpu;
        }
        const Agreed all = agree(mine);
        const std::string most = std::to_string(all.most_cpus);
        binding_ = all.fewest_cpus == 0              ? "unknown"
                   : all.fewest_cpus < all.most_cpus ? std::to_string(all.fewest_cpus) + " to " + most + " CPUs a PE"
                                                     : most + (all.most_cpus == 1 ? " CPU a PE" : " CPUs a PE");
        if (one_host_ && all.most_cpus == 1 && all.single_cpus < n_pes_)
            binding_ += ", shared";
    }

    // The kernel shares out cores among threads only while they run: until it has, one of two cores may have three of four
    // threads, for hundreds of milliseconds where they mostly wait. So all run first, for so long.
    void settle_threads() {
        constexpr double kSettleSeconds = 0.3;
        if (!oversubscribed())
            return;
        team_->run([](int) {
            const double start = seconds_on(CLOCK_MONOTONIC_RAW);
            while (seconds_on(CLOCK_MONOTONIC_RAW) - start < kSettleSeconds) {
            }
        });
        barrier();
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

    std::unique_ptr<ThreadTeam> team_;
    Cores cores_;
    bool one_host_ = false;
    bool oversubscribed_ = false;
    bool threads_are_bound_ = false;
    bool arithmetic_ok_ = false;
    double planted_s_ = 0;     // a fault: what this PE's clock is ahead
    double shift_s_ = 0;       // from this PE's clock to PE 0's
    double round_trip_s_ = 0;  // of the exchange that found it
    double synchronized_ = 0;  // by this PE's clock
    MachineLimit limit_;
    std::string binding_;
    Partner partner_;
    long hosts_ = 0;        // of the PEs, on PE 0
    std::string nearness_;  // of all partners, on PE 0
    long token_ = 0;
    long points_ = 0;
};

}  // namespace shmem_mt

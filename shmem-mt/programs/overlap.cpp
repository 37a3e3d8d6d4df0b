// SHMEM-MT overlap: how much of the time of a large non-blocking transfer disappears behind a computation of about
// the same length, while the target PE waits in a barrier. One PE alone puts to itself.
//   communication   post, complete (quiet, or wait for the request)
//   compute         the computation alone
//   total           post, compute, complete
//   post            how long the posting call took, in total
//   overlap         100 * max(0, 1 - (total - compute) / communication) percent
//   slowdown        the computation in total, over the computation alone
// The first three are measured in turns, by the same loop between the same barriers; after the last barrier the target
// has looked at the data. Looking at the clock in the middle takes time, so `post` and `slowdown` come from samples of
// their own.
#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "computation.hpp"
#include "transfer_points.hpp"

namespace shmem_mt {
namespace {

constexpr const char* kName = "overlap";

struct Way {
    const char* op;
    bool reads;
    const char* sync;
    Requests requests;
};

constexpr Way kWays[] = {
    {"put", false, "quiet", Requests::kNone},
    {"put", false, "request_each", Requests::kEach},
    {"get", true, "quiet", Requests::kNone},
    {"get", true, "request_each", Requests::kEach},
};

class Overlap {
  public:
    Overlap(Job& job, TransferMemory& memory, const Way& way, long size)
        : job_(job), way_(way), size_(size), window_(memory.window(true)), local_(memory.local()) {}

    const Way& way() const { return way_; }
    long size() const { return size_; }

    // Collective.
    Agreed validate() {
        Checker checker(job_.options().fault);
        units_ = 1000;
        const long pattern_bytes = size_;
        for (int round = 0; round < 3; ++round) {
            const long token = job_.next_token();
            char* const source = way_.reads ? window_ : local_;
            char* const dest = way_.reads ? local_ : window_;
            fill_slot(source, make_base(job_.me(), 0, token), 0, pattern_bytes);
            std::fill(dest, dest + size_ + 8, static_cast<char>(0xa5));
            shmem_barrier_all();
            const uint64_t seed = static_cast<uint64_t>(token);
            if (job_.is_sender())
                checker.compare_word(static_cast<long>(transfer(round, seed)),
                                     static_cast<long>(computed(seed, units_)));
            shmem_barrier_all();
            if (!checks())
                continue;
            checker.compare_slot(dest, make_base(job_.partner(), 0, token), 0, pattern_bytes);
            const uint64_t untouched = 0xa5a5a5a5a5a5a5a5u;
            checker.compare(dest + size_, &untouched, 8);
        }
        return agree_verdict(job_, checker);
    }

    // Makes the computation `ratio` times as long as the communication. Collective.
    void calibrate_computation(double ratio) {
        const Body body = [this](long count) { return sample(kCommunicates, count); };
        const long count = warm_up(job_, body, TimeOf::kSlowestPe);
        double seconds = timed(job_, body, count, TimeOf::kSlowestPe);
        for (int i = 0; i < 2; ++i) seconds = std::min(seconds, timed(job_, body, count, TimeOf::kSlowestPe));
        Report unit;
        unit.seconds = seconds_per_unit();
        const double wanted = ratio * seconds / static_cast<double>(count) / job_.agree(unit).max_seconds;
        units_ = std::max(1L, static_cast<long>(wanted));
    }

    // `count` times post, compute and complete, or parts of it (kCommunicates, ...). Collective.
    Report sample(unsigned parts, long count) {
        const long token = job_.next_token();
        const long mark = ~make_base(0, 0, token);
        std::memcpy((way_.reads ? window_ : local_) + size_ - 8, &mark, 8);
        double posting = 0, computing = 0;
        Report report = run_together(
            job_,
            [&](int) {
                if (!job_.is_sender())
                    return;
                if (parts & kStamps)
                    stamped_loop(count, &posting, &computing);
                else
                    loop(parts, count);
            },
            [&] {
                shmem_barrier_all();
                const char* const last = (way_.reads ? local_ : window_) + size_ - 8;
                return !(parts & kCommunicates) || !checks() || std::memcmp(last, &mark, 8) == 0;
            });
        if (!job_.is_sender())
            report.seconds = 0;
        if (parts & kStamps) {
            posts_.push_back(agreed_each(posting, count));
            insides_.push_back(agreed_each(computing, count));
        }
        return report;
    }

    static constexpr unsigned kCommunicates = 1, kComputes = 2, kStamps = 4;

    // Seconds of the posting call, and of the computation beside the communication, in the last `count` samples
    // with stamps.
    std::vector<double> last_posts(size_t count) const {
        return {posts_.end() - static_cast<long>(count), posts_.end()};
    }
    std::vector<double> last_insides(size_t count) const {
        return {insides_.end() - static_cast<long>(count), insides_.end()};
    }

  private:
    bool checks() const { return way_.reads || job_.n_pes() == 1 ? job_.is_sender() : !job_.is_sender(); }

    // Posts through `link`; a planted fault may do something else.
    template <class Link>
    void post(const Link& link, size_t bytes) const {
        const bool reads = way_.reads || job_.options().fault == Fault::kGetNamedPut;
        if (reads)
            link.get_nbi(local_, window_, bytes, job_.message_pe());
        else
            link.put_nbi(window_, local_, bytes, job_.message_pe());
    }

    template <class F>
    void with_way(F&& f) const {
        if (way_.requests == Requests::kNone)
            f(DefaultLink{});
        else
            with_requests(DefaultLink{}, way_.requests, nullptr, f);
    }

    // One checked transfer and computation; returns the result of the latter.
    uint64_t transfer(int round, uint64_t seed) const {
        const Fault fault = job_.options().fault;
        uint64_t result = seed;
        with_way([&](const auto& link) {
            const long bytes = fault == Fault::kLastElementMissing ? size_ - 8 : size_;
            if (fault != Fault::kSkippedOperation && (fault != Fault::kStaleResult || round == 0))
                post(link, static_cast<size_t>(bytes));
            if (fault != Fault::kSkippedComputation)
                result = compute(seed, units_);
            link.quiet();
        });
        return result;
    }

    void loop(unsigned parts, long count) {
        const long units = parts & kComputes ? units_ : 0;
        with_way([&](const auto& link) {
            for (long i = 0; i < count; ++i) {
                if (parts & kCommunicates)
                    post(link, static_cast<size_t>(size_));
                result_ = compute(result_, units);
                if (parts & kCommunicates)
                    link.quiet();
            }
        });
    }

    void stamped_loop(long count, double* posting, double* computing) {
        with_way([&](const auto& link) {
            for (long i = 0; i < count; ++i) {
                const double start = now_seconds();
                post(link, static_cast<size_t>(size_));
                const double posted = now_seconds();
                result_ = compute(result_, units_);
                *computing += now_seconds() - posted;
                link.quiet();
                *posting += posted - start;
            }
        });
    }

    // Seconds an operation, without the look at the clock, of the PE that took longest.
    double agreed_each(double seconds, long count) {
        Report mine;
        mine.seconds = std::max(0.0, seconds / static_cast<double>(count) - clock_cost_);
        return job_.agree(mine).max_seconds;
    }

    Job& job_;
    const Way way_;
    const long size_;
    char* const window_;
    char* const local_;
    long units_ = 1;
    uint64_t result_ = 1;
    const double clock_cost_ = clock_cost();
    std::vector<double> posts_, insides_;  // one a sample with stamps
};

std::vector<double> each(const Samples& samples) {
    std::vector<double> values;
    for (const double seconds : samples.seconds) values.push_back(seconds / static_cast<double>(samples.count));
    return values;
}

// Prints what one way's four samples say.
void print_way(Job& job, const Overlap& overlap, const Samples* samples, const Agreed& verdict) {
    const std::vector<double> communication = each(samples[0]), alone = each(samples[1]), total = each(samples[2]);
    const std::vector<double> inside = overlap.last_insides(total.size());
    std::vector<double> percent, slowdown;
    for (size_t i = 0; i < total.size(); ++i) {
        percent.push_back(100 * std::max(0.0, 1 - (total[i] - alone[i]) / communication[i]));
        slowdown.push_back(inside[i] / alone[i]);
    }
    Samples all = samples[2];
    all.ok = samples[0].ok && samples[2].ok && samples[3].ok;
    const Agreed* const shown = job.options().validate ? &verdict : nullptr;
    const auto params = [&](const char* part) {
        Json json = job.params(overlap.way().op);
        json.integer("size_bytes", overlap.size()).text("placement", "heap").text("context", "default");
        json.text("sync", overlap.way().sync).number("compute_ratio", job.options().compute_ratio);
        return json.text("part", part);
    };
    print_point(job, kName, params("overlap"), "overlap", "%", percent, all, shown);
    print_point(job, kName, params("compute"), "slowdown", "x", slowdown, all, shown);
    print_point(job, kName, params("communication"), "time", "s", communication, all, shown);
    print_point(job, kName, params("compute"), "time", "s", alone, all, shown);
    print_point(job, kName, params("total"), "time", "s", total, all, shown);
    print_point(job, kName, params("post"), "time", "s", overlap.last_posts(total.size()), all, shown);
}

// All ways of one operation, interleaved.
void run_group(Job& job, TransferMemory& memory, const std::vector<Way>& ways, long size) {
    constexpr unsigned kBoth = Overlap::kCommunicates | Overlap::kComputes;
    constexpr unsigned kParts[] = {Overlap::kCommunicates, Overlap::kComputes, kBoth, kBoth | Overlap::kStamps};
    std::vector<std::unique_ptr<Overlap>> overlaps;
    std::vector<Agreed> verdicts;
    std::vector<Body> bodies;
    for (const Way& way : ways) {
        overlaps.push_back(std::make_unique<Overlap>(job, memory, way, size));
        Overlap* const overlap = overlaps.back().get();
        verdicts.push_back(job.options().validate ? overlap->validate() : Agreed{});
        overlap->calibrate_computation(job.options().compute_ratio);
        for (const unsigned parts : kParts)
            bodies.push_back([overlap, parts](long count) { return overlap->sample(parts, count); });
    }
    const std::vector<Samples> samples = measure(job, bodies);
    for (size_t i = 0; i < ways.size(); ++i) print_way(job, *overlaps[i], &samples[std::size(kParts) * i], verdicts[i]);
}

// The ways of `op` that are asked for and that the library has; says by name what is skipped.
std::vector<Way> wanted_ways(Job& job, const std::string& op) {
    std::vector<Way> ways;
    for (const Way& way : kWays) {
        if (op != way.op || !job.options().wants_sync(way.sync))
            continue;
        if (way.requests == Requests::kNone || SHMEM_MT_HAVE_SHMEMX)
            ways.push_back(way);
        else
            job.skip(kName, op + " with " + way.sync, kNoRequests);
    }
    return ways;
}

void run_all(Job& job) {
    const Options& options = job.options();
    long largest = 4096;
    for (const long size : options.sizes) largest = std::max(largest, (size + 8 + 4095) / 4096 * 4096);
    TransferMemory memory(job, largest);
    std::vector<long> sizes;
    for (const long size : options.sizes) {
        if (size % 8 == 0)
            sizes.push_back(size);
        else
            job.skip(kName, std::to_string(size) + " bytes", "overlap is measured with multiples of 8 bytes");
    }
    for (const auto& op : options.ops) {
        const std::vector<Way> ways = wanted_ways(job, op);
        for (const long size : sizes) {
            if (!ways.empty())
                run_group(job, memory, ways, size);
        }
    }
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    Options defaults;
    defaults.sizes = {65536, 262144, 1048576, 4194304};
    defaults.placements = {"heap"};
    defaults.contexts = {"default"};
    Job job(kName, parse_options(argc, argv, defaults, {"put", "get"}), Pes::kPairsOrOne);
    if (job.threads() > 1)
        job.skip(kName, "threads=" + std::to_string(job.threads()), "one thread of each PE communicates");
    else
        run_all(job);
    job.finish();
    return 0;
}

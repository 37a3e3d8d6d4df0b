// SHMEM-MT completion: how long a thread waits until it knows that one put of its own has arrived, while the other
// threads of its PE put blocks to the same target without end: windows of non-blocking puts of `size_bytes`, a quiet
// behind each. Thread 0 of a sender puts 8 bytes and then knows in one of these ways:
//   quiet    a quiet of its context. On the default context, which all threads use, that waits for their blocks, too
//   request  a request of its own (shmemx.h), whatever the context
//   signal   put with signal; the target answers with a word when it has seen the signal
// Points:
//   time              of a put and the knowledge
//   stream_bandwidth  of the other threads meanwhile, all senders together; with one thread there is none
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "programs/common/requests.hpp"
#include "programs/common/transfer_points.hpp"

namespace shmem_mt {
namespace {

constexpr const char* kName = "completion";

enum class Way { kQuiet, kRequest, kSignal };

struct WayName {
    Way way;
    const char* sync;
    bool have;
    const char* why_not;
};

constexpr WayName kWays[] = {
    {Way::kQuiet, "quiet", true, ""},
    {Way::kRequest, "request", SHMEM_MT_HAVE_SHMEMX, kNoRequests},
    {Way::kSignal, "signal", SHMEM_MT_HAVE_PUT_SIGNAL, "the library has no shmem_putmem_signal (OpenSHMEM 1.5)"},
};

// Symmetric. Each word has a cache line of its own.
struct Words {
    alignas(64) long known;  // at the target
    alignas(64) uint64_t signal;
    alignas(64) long answer;  // at the sender
};

// The windows of all threads but the first, at the sender and at the target.
struct Blocks {
    char* source;
    char* dest;
    long size;

    long puts() const { return std::max(1L, std::min(1024L, (1L << 20) / size)); }  // of a window
    long offset(int thread) const { return (thread - 1) * puts() * size; }
};

// One way to know, beside blocks of one size. All public members are collective.
class Knowledge {
  public:
    Knowledge(Job& job, Words* words, const Blocks& blocks, Way way, Route route)
        : job_(job), words_(words), blocks_(blocks), way_(way), route_(route) {}

    // `count` puts that are known one by one; then the last one is there.
    Report sample(long count) { return run(count, job_.options().fault == Fault::kIdleTimedPass, nullptr); }

    // What each of the last samples streamed, in bytes a second of this PE.
    std::vector<double> streamed(size_t samples) const {
        return {streamed_.end() - static_cast<std::ptrdiff_t>(samples), streamed_.end()};
    }

    // Each round has other bytes. The thread that knows gets its put back; all blocks are compared in the end. In the
    // last round each is put once, so that none makes good for another that did not come.
    Agreed validate() {
        Checker checker(job_.options().fault);
        const int me = job_.me();
        for (int round = 0; round < kRounds; ++round) {
            const long token = job_.next_token();
            each_block([&](int thread, long slot, long at) {
                fill_slot(blocks_.source + at, make_base(me, thread, token), slot, blocks_.size);
                std::fill_n(blocks_.dest + at, blocks_.size, static_cast<char>(0xa5));
            });
            shmem_barrier_all();
            one_window_ = round == kRounds - 1;
            run(kChecked, job_.options().fault == Fault::kStaleResult && round > 0, &checker);
            if (!job_.is_sender())
                each_block([&](int thread, long slot, long at) {
                    checker.compare_slot(blocks_.dest + at, make_base(job_.partner(), thread, token), slot,
                                         blocks_.size);
                });
            one_window_ = false;
            shmem_barrier_all();
        }
        return agree_verdict(job_, checker);
    }

  private:
    static constexpr int kRounds = 3;
    static constexpr long kChecked = 20;  // puts of a round of a validating pass

    // f(thread, slot, offset) of every block.
    template <class F>
    void each_block(F&& f) const {
        for (int thread = 1; thread < job_.threads(); ++thread) {
            for (long slot = 0; slot < blocks_.puts(); ++slot)
                f(thread, slot, blocks_.offset(thread) + slot * blocks_.size);
        }
    }

    // checker: looks at every put; null in a timed pass.
    Report run(long count, bool idle, Checker* checker) {
        idle = idle || job_.options().fault == Fault::kSkippedOperation;
        Report mine;
        begun_.store(0, std::memory_order_relaxed);
        stop_.store(false, std::memory_order_relaxed);
        rates_.assign(static_cast<size_t>(job_.threads()), 0);
        if (job_.is_sender()) {
            job_.team().run([&](int thread) {
                job_.with_link(route_, thread, [&](const auto& link) {
                    if (thread > 0)
                        stream(link, thread);
                    else
                        know_all(link, idle ? 0 : count, checker, mine);
                });
            });
            streamed_.push_back(std::accumulate(rates_.begin(), rates_.end(), 0.0));
        } else if (way_ == Way::kSignal && !idle) {
            for (long i = 1; i <= count; ++i) answer(known_ + i, checker);
        }
        known_ += count;
        shmem_barrier_all();
        const long there = __atomic_load_n(&words_->known, __ATOMIC_ACQUIRE);
        mine.ok = job_.is_sender() || there == known_;
        if (checker && !job_.is_sender())
            checker->compare_word(there, known_);
        return mine;
    }

    // Windows of blocks until thread 0 has done, one at least.
    template <class Link>
    void stream(const Link& link, int thread) {
        const bool short_ones = job_.options().fault == Fault::kLastElementMissing;
        const size_t bytes = static_cast<size_t>(blocks_.size) - (short_ones ? 1 : 0);
        const double start = now_seconds();
        long windows = 0;
        do {
            for (long slot = 0; slot < blocks_.puts(); ++slot) {
                const long at = blocks_.offset(thread) + slot * blocks_.size;
                link.put_nbi(blocks_.dest + at, blocks_.source + at, bytes, job_.message_pe());
            }
            if (windows++ == 0)
                begun_.fetch_add(1, std::memory_order_relaxed);
            link.quiet();
        } while (!one_window_ && !stop_.load(std::memory_order_relaxed));
        const double streamed = static_cast<double>(windows * blocks_.puts() * blocks_.size);
        rates_[static_cast<size_t>(thread)] = streamed / (now_seconds() - start);
    }

    template <class Link>
    void know_all(const Link& link, long count, Checker* checker, Report& mine) {
        while (begun_.load(std::memory_order_relaxed) != job_.threads() - 1) sched_yield();
        const double start = now_seconds();
        for (long i = 1; i <= count; ++i) {
            know(link, known_ + i);
            if (checker)
                checker->compare_word(shmem_long_g(&words_->known, job_.partner()), known_ + i);
        }
        mine.seconds = now_seconds() - start;
        stop_.store(true, std::memory_order_relaxed);
    }

    template <class Link>
    void know(const Link& link, const long value) {
        const int pe = job_.message_pe();
        if (way_ == Way::kQuiet) {
            link.put_nbi(&words_->known, &value, sizeof value, pe);
            link.quiet();
        }
#if SHMEM_MT_HAVE_SHMEMX
        if (way_ == Way::kRequest) {
            shmemx_request_t request = SHMEMX_REQUEST_NULL;
            put_nbe(link, &words_->known, &value, sizeof value, pe, &request);
            shmemx_request_wait(&request);
        }
#endif
#if SHMEM_MT_HAVE_PUT_SIGNAL
        if (way_ == Way::kSignal) {
            // A planted fault has the word, but not its signal, go elsewhere, or the target would wait for ever.
            const bool elsewhere = pe != job_.partner();
            if (elsewhere)
                link.put(&words_->known, &value, sizeof value, pe);
            link.put_signal(&words_->known, &value, elsewhere ? 0 : sizeof value, &words_->signal,
                            static_cast<uint64_t>(value), job_.partner());
            shmem_long_wait_until(&words_->answer, SHMEM_CMP_EQ, value);
        }
#endif
    }

    // The target's part of a put with signal.
    void answer(long value, Checker* checker) {
#if SHMEM_MT_HAVE_PUT_SIGNAL
        shmem_signal_wait_until(&words_->signal, SHMEM_CMP_EQ, static_cast<uint64_t>(value));
        if (checker)
            checker->compare_word(__atomic_load_n(&words_->known, __ATOMIC_ACQUIRE), value);
        shmem_long_p(&words_->answer, value, job_.partner());
        shmem_quiet();
#else
        (void)value;
        (void)checker;
#endif
    }

    Job& job_;
    Words* const words_;
    const Blocks blocks_;
    const Way way_;
    const Route route_;
    bool one_window_ = false;       // of each thread, however long the first one needs
    long known_ = 0;                // what the last put has brought
    std::vector<double> streamed_;  // at a sender, of each run so far
    std::atomic<int> begun_{0};     // threads that have put their first window
    std::vector<double> rates_;     // by thread: bytes a second of its windows, from its first put to its last quiet
    std::atomic<bool> stop_{false};
};

// A way to know, the context that all threads put on, and its words.
struct Variant {
    const WayName* name;
    Route route;
};

void print_variant(Job& job, const Variant& variant, long size, const Knowledge& knowledge, const Samples& samples,
                   const Agreed& verdict) {
    Json params = job.params("put");
    params.integer("size_bytes", size).text("placement", "heap").text("context", context_name(variant.route));
    params.text("sync", variant.name->sync);
    const Agreed* const shown = job.options().validate ? &verdict : nullptr;
    std::vector<double> times, streams;
    for (const double seconds : samples.seconds) times.push_back(seconds / static_cast<double>(samples.count));
    print_point(job, kName, params, "time", "s", times, samples, shown);
    if (job.threads() == 1)
        return;
    std::vector<double> mine(samples.seconds.size());
    if (job.is_sender())
        mine = knowledge.streamed(mine.size());
    for (const double bytes_a_second : mine) {
        Report report;
        report.seconds = bytes_a_second;
        streams.push_back(job.agree(report).mean_seconds * job.n_pes());
    }
    print_point(job, kName, params, "stream_bandwidth", "bytes/s", streams, samples, shown);
}

// All variants beside blocks of that size, interleaved.
void run_group(Job& job, const Blocks& blocks, const std::vector<Variant>& variants) {
    std::vector<std::unique_ptr<Knowledge>> knowledges;
    std::vector<Agreed> verdicts;
    std::vector<Body> bodies;
    for (const Variant& variant : variants) {
        auto* const words = static_cast<Words*>(symmetric_alloc(sizeof(Words)));
        knowledges.push_back(std::make_unique<Knowledge>(job, words, blocks, variant.name->way, variant.route));
        Knowledge* const knowledge = knowledges.back().get();
        verdicts.push_back(job.options().validate ? knowledge->validate() : Agreed{});
        bodies.push_back([knowledge](long count) { return knowledge->sample(count); });
    }
    const std::vector<Samples> samples = measure(job, bodies);
    for (size_t i = 0; i < variants.size(); ++i)
        print_variant(job, variants[i], blocks.size, *knowledges[i], samples[i], verdicts[i]);
}

void run_all(Job& job) {
    const Options& options = job.options();
    std::vector<Variant> variants;
    for (const Route route : wanted_routes(job, kName)) {
        for (const WayName& name : kWays) {
            if (options.wants_sync(name.sync) && name.have)
                variants.push_back({&name, route});
        }
    }
    for (const WayName& name : kWays) {
        if (options.wants_sync(name.sync) && !name.have)
            job.skip(kName, name.sync, name.why_not);
    }
    Blocks blocks{};
    size_t bytes = 8;
    for (const long size : options.sizes) {
        blocks.size = size;
        bytes = std::max(bytes, static_cast<size_t>(blocks.offset(job.threads())));
    }
    blocks.source = static_cast<char*>(symmetric_alloc(bytes));
    blocks.dest = static_cast<char*>(symmetric_alloc(bytes));
    for (const long size : options.sizes) {
        blocks.size = size;
        run_group(job, blocks, variants);
    }
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    Options defaults;
    defaults.sizes = {64, 65536};
    defaults.placements = {"heap"};
    defaults.contexts = {"default", "private"};
    Job job(kName, parse_options(argc, argv, defaults, {"put"}));
    if (threads_available(job, kName) && job.options().wants_op("put"))
        run_all(job);
    job.finish();
    return 0;
}

// SHMEM-MT idle-waiters: what threads that wait cost a thread that works. PE 0 and its partner send a word to and fro,
// by one thread each, while so many further threads of both (each of --waiters) sit in shmem_long_wait_until for words
// that nobody writes before the sample is over.
//   round_trip  time      of a round trip
//               cpu_time  of both processes during a round trip, the library's threads included
// The waiters are started for a sample, and have kSettleSeconds to fall asleep. A sample of each number in turn. How many
// round trips a sample has is found beside the same waiters: where those poll, one can take as long as thousands alone.
// A number of waiters is skipped whose round trip, judged by the number before it, would be longer than --point-ms.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "programs/common/job.hpp"
#include "programs/common/measure.hpp"

namespace shmem_mt {
namespace {

constexpr const char* kName = "idle-waiters";
constexpr double kSettleSeconds = 0.05;

// Symmetric; each has a cache line of its own.
struct alignas(64) Word {
    long value;
};

// The round trips of PE 0 and its partner. All members are collective.
class Ball {
  public:
    Ball(Job& job, Word* word) : job_(job), word_(word) {}

    bool plays() const { return job_.is_in_first_pair(); }

    // The time of `count` round trips, on PE 0; *cpu: of both players' processes.
    Report play(long count, double* cpu = nullptr) {
        const bool skipped = job_.options().fault == Fault::kSkippedOperation ||
                             (job_.options().fault == Fault::kStaleResult && sequence_ > 0);
        Report mine;
        const double cpu_start = cpu_seconds(), start = now_seconds();
        for (const long end = sequence_ + count; plays() && !skipped && sequence_ < end;) {
            ++sequence_;
            if (job_.is_sender())
                shmem_long_p(&word_->value, sequence_, job_.partner());
            shmem_long_wait_until(&word_->value, SHMEM_CMP_EQ, sequence_);
            if (!job_.is_sender())
                shmem_long_p(&word_->value, sequence_, job_.partner());
        }
        if (job_.me() == 0)
            mine.seconds = now_seconds() - start;
        if (plays() && cpu)
            *cpu = cpu_seconds() - cpu_start;
        played_ += count;
        shmem_quiet();
        return mine;
    }

    // The word is that of the last round trip.
    void check(Checker& checker) const {
        if (plays())
            checker.compare_word(__atomic_load_n(&word_->value, __ATOMIC_ACQUIRE), played_);
    }

  private:
    Job& job_;
    Word* const word_;
    long sequence_ = 0;  // of the last round trip that was done
    long played_ = 0;    // of the last one that was asked for
};

// Threads of this PE that wait, a word each, from construction until release.
class Waiters {
  public:
    Waiters(Word* words, long count, long token) : words_(words), token_(token) {
        for (long i = 0; i < count; ++i) threads_.emplace_back([this, i] { wait(i); });
        while (begun_.load(std::memory_order_relaxed) != count) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::duration<double>(kSettleSeconds));
    }
    Waiters(const Waiters&) = delete;
    Waiters& operator=(const Waiters&) = delete;

    // Writes the words, and ends the threads. None has returned before, and each has its word.
    void release(int me, Checker& checker) {
        checker.compare_word(returned_.load(std::memory_order_acquire), 0);  // pairs with wait
        for (size_t i = 0; i < threads_.size(); ++i) shmem_long_p(&words_[i].value, token_, me);
        shmem_quiet();
        for (size_t i = 0; i < threads_.size(); ++i) {
            threads_[i].join();
            checker.compare_word(words_[i].value, token_);
        }
    }

  private:
    void wait(long i) {
        begun_.fetch_add(1, std::memory_order_relaxed);
        shmem_long_wait_until(&words_[i].value, SHMEM_CMP_EQ, token_);
        returned_.fetch_add(1, std::memory_order_release);  // pairs with release
    }

    Word* const words_;
    const long token_;
    std::atomic<long> begun_{0}, returned_{0};
    std::vector<std::thread> threads_;
};

// The samples of one number of waiters.
struct Series {
    long waiters;
    Checker checker;
    Samples samples;
    std::vector<double> times, cpu_times;

    Series(long count, Fault fault) : waiters(count), checker(fault) {}
};

// body(), which plays with the ball, beside the waiters of the series.
template <class Body>
void beside_waiters(Job& job, const Ball& ball, Word* words, Series& series, Body&& body) {
    Waiters waiters(words, ball.plays() ? series.waiters : 0, job.next_token());
    shmem_barrier_all();
    body();
    ball.check(series.checker);
    waiters.release(job.me(), series.checker);
}

// How many round trips a sample has; the time of one, the same at all PEs.
double calibrate_round_trips(Job& job, Ball& ball, Word* words, Series& series) {
    const auto play = [&](long count) { return ball.play(count); };
    double seconds = 0;
    beside_waiters(job, ball, words, series, [&] {
        series.samples.count = warm_up(job, play, TimeOf::kSlowestPe);
        seconds = timed(job, play, series.samples.count, TimeOf::kSlowestPe);
    });
    return seconds / static_cast<double>(series.samples.count);
}

void sample(Job& job, Ball& ball, Word* words, Series& series) {
    const long count = series.samples.count;
    double cpu = 0;
    Report mine, burned;
    beside_waiters(job, ball, words, series, [&] { mine = ball.play(count, &cpu); });
    burned.seconds = cpu;
    series.times.push_back(job.agree(mine).max_seconds / static_cast<double>(count));
    series.cpu_times.push_back(job.agree(burned).mean_seconds * job.n_pes() / static_cast<double>(count));
}

void print(Job& job, const Series& series) {
    Agreed verdict;
    if (job.options().validate)
        verdict = agree_verdict(job, series.checker);
    const Agreed* const shown = job.options().validate ? &verdict : nullptr;
    Json params = job.params("round_trip");
    params.integer("size_bytes", 8).text("placement", "heap").text("context", "default").text("sync", "last_word");
    params.integer("waiters", series.waiters);
    print_point(job, kName, params, "time", "s", series.times, series.samples, shown);
    print_point(job, kName, params, "cpu_time", "s", series.cpu_times, series.samples, shown);
}

void run_all(Job& job) {
    const Options& options = job.options();
    if (!job.thread_level_ok())
        return job.skip(kName, "waiters", "the library does not give SHMEM_THREAD_MULTIPLE");
    if (!options.wants_op("round_trip") || !options.wants_sync("last_word"))
        return;
    std::vector<Series> all;
    Ball ball(job, static_cast<Word*>(symmetric_alloc(sizeof(Word))));
    auto* const words = static_cast<Word*>(symmetric_alloc(sizeof(Word) * kMaxWaiters));
    double seconds_a_waiter = 0;
    for (const long waiters : options.waiters) {
        const double expected = seconds_a_waiter * static_cast<double>(waiters);
        if (expected > options.point_s) {
            job.skip(kName, "waiters=" + std::to_string(waiters),
                     "a round trip beside them would take " + std::to_string(expected) + " s");
            continue;
        }
        Series& series = all.emplace_back(waiters, options.fault);
        const double seconds = calibrate_round_trips(job, ball, words, series);
        if (waiters > 0)
            seconds_a_waiter = seconds / static_cast<double>(waiters);
    }
    for (int i = 0; i < options.samples; ++i)
        for (Series& series : all) sample(job, ball, words, series);
    for (const Series& series : all) print(job, series);
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    Options defaults;
    defaults.waiters = {0, 8, 64, 256};
    Job job(kName, parse_options(argc, argv, defaults, {"round_trip"}), Pes::kPairs, SHMEM_THREAD_MULTIPLE);
    run_all(job);
    job.finish();
    return 0;
}

// Random updates: table[place of x] ^= x for four times as many numbers x as the table has words. The threads of all
// PEs share the numbers. Updates are atomic, so none may be lost: behind a run each PE compares its part of the table
// with what all updates of it, which it has made alone, come to.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "apps/common/mini_app.hpp"
#include "apps/common/range.hpp"
#include "apps/gups/in_flight.hpp"
#include "apps/gups/stream.hpp"
#include "apps/gups/table.hpp"

namespace shmem_mt {

// Four times as many as words.
inline long update_count(const GupsTable& table) {
    return 4 * table.all_words();
}

inline uint64_t first_word(const Job& job, const GupsTable& table, long word) {
    return static_cast<uint64_t>(job.me() * table.words() + word);
}

// What a PE's part of the table must be behind all updates. It is found once, for each PE walks through the updates of
// all of them.
class GupsResult {
  public:
    GupsResult(Job& job, const GupsTable& table) : table_(table), words_(static_cast<size_t>(table.words())) {
        for (long word = 0; word < table.words(); ++word)
            words_[static_cast<size_t>(word)] = first_word(job, table, word);
        job.team().run([&](int thread) { update(thread, job.threads(), job.me()); });
    }

    uint64_t word(long place) const { return words_[static_cast<size_t>(place)]; }

  private:
    // A thread's share of all updates, as far as they are of this PE's part.
    void update(int thread, int threads, int me) {
        const Range numbers = Range{0, update_count(table_)}.share(thread, threads);
        GupsStream stream(GupsStream::value_of(numbers.begin));
        for (long i = numbers.begin; i < numbers.end; ++i) {
            const uint64_t x = stream.next();
            const TablePlace place = table_.place(x);
            if (place.pe == me)  // relaxed: the end of the team's run orders it before the comparison
                __atomic_fetch_xor(&words_[static_cast<size_t>(place.word)], x, __ATOMIC_RELAXED);
        }
    }

    const GupsTable& table_;
    std::vector<uint64_t> words_;
};

class GupsUpdates final : public MiniApp {
  public:
    GupsUpdates(Job& job, const std::string& op, Route route, InFlight in_flight, const GupsTable& table,
                std::shared_ptr<GupsResult> result)
        : MiniApp(job, op, {{"update", true}}),
          route_(route),
          in_flight_(in_flight),
          table_(table),
          result_(std::move(result)) {
        for (int thread = 0; thread < job.threads(); ++thread)
            starts_.push_back(GupsStream::value_of(share_of(thread).begin));
    }

    void describe(Json& params) const override { params.integer("words", table_.asked()); }
    void explain(Json& verdict) const override { verdict.integer("wrong_words", wrong_words_); }
    double work() const override { return static_cast<double>(updates()); }
    const char* unit() const override { return "updates"; }

    // RandomAccess bounds what is in flight.
    std::vector<Figure> figures() const override {
        const char* const name = in_flight_ == InFlight::kSingly ? "atomic updates" : "atomic RandomAccess";
        return {{name, "GUP/s", "all updates, and the barrier behind them", 1e-9 * work(), {}}};
    }

    double working_set() const override { return sizeof(uint64_t) * static_cast<double>(table_.words()); }

    void prepare() override {
        for (long word = 0; word < table_.words(); ++word) table_.bits()[word] = first_word(job_, table_, word);
        ++runs_;
    }

    void run(int thread) override {
        Range mine = share_of(thread);
        const Fault fault = job_.options().fault;
        if (fault == Fault::kSkippedOperation || (fault == Fault::kStaleResult && runs_ > 1))
            mine.end = mine.begin;
        else if (fault == Fault::kLastElementMissing)
            --mine.end;
        spend(thread, 0, [&] {
            job_.with_link(route_, thread, [&](const auto& link) {
                with_completion(link, in_flight_,
                                [&](const auto& own_link) { update(own_link, thread, mine.length()); });
            });
            job_.meet(thread);
        });
    }

    void check(Checker& checker) override {
        wrong_words_ = 0;
        for (long word = 0; word < table_.words(); ++word) {
            const uint64_t right = result_->word(word);
            checker.compare(&table_.bits()[word], &right, 8);
            wrong_words_ += table_.bits()[word] != right;
        }
    }

  private:
    long updates() const { return update_count(table_); }
    Range share_of(int thread) const {
        return Range{0, updates()}.share(job_.me(), job_.n_pes()).share(thread, job_.threads());
    }

    template <class Link>
    void update(const Link& link, int thread, long count) const {
        const long window = in_flight_ == InFlight::kSingly ? count : kLookAhead;
        GupsStream stream(starts_[static_cast<size_t>(thread)]);
        for (long done = 0; done < count;) {
            for (const long end = std::min(done + window, count); done < end; ++done) {
                const uint64_t x = stream.next();
                const TablePlace place = table_.place(x);
                link.exclusive_or(table_.bits() + place.word, x, place.pe);
            }
            link.quiet();
        }
    }

    const Route route_;
    const InFlight in_flight_;
    const GupsTable& table_;
    const std::shared_ptr<GupsResult> result_;
    std::vector<uint64_t> starts_;  // of the numbers of each thread
    long runs_ = 0;
    long wrong_words_ = 0;
};

}  // namespace shmem_mt

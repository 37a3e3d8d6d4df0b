// Random updates: table[place of x] ^= x for four times as many numbers x as the table has words. The threads of all
// PEs share the numbers. Updates are atomic, so none may be lost: behind a run each PE repeats all updates of its part
// alone, and must find the table of the start.
#pragma once

#include <string>
#include <vector>

#include "apps/common/mini_app.hpp"
#include "apps/common/range.hpp"
#include "apps/gups/stream.hpp"
#include "apps/gups/table.hpp"
#include "programs/common/requests.hpp"

namespace shmem_mt {

constexpr long kLookAhead = 1024;  // updates that a thread may have in flight, as RandomAccess has it

class GupsUpdates final : public MiniApp {
  public:
    GupsUpdates(Job& job, const std::string& op, Route route, bool batched, const GupsTable& table)
        : MiniApp(job, op, {{"update", true}}), route_(route), batched_(batched), table_(table) {
        for (int thread = 0; thread < job.threads(); ++thread)
            starts_.push_back(GupsStream::value_of(share_of(thread).begin));
    }

    void describe(Json& params) const override { params.integer("words", table_.words()); }
    void explain(Json& verdict) const override { verdict.integer("wrong_words", wrong_words_); }
    double work() const override { return static_cast<double>(updates()); }
    const char* unit() const override { return "updates"; }

    void prepare() override {
        for (long word = 0; word < table_.words(); ++word) table_.bits()[word] = initial(word);
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
                if (batched_)
                    update_batched(link, thread, mine.length());
                else
                    update(link, thread, mine.length());
            });
            job_.meet(thread);
        });
    }

    void check(Checker& checker) override {
        job_.team().run([&](int thread) { update_again(thread); });
        wrong_words_ = 0;
        for (long word = 0; word < table_.words(); ++word) {
            const uint64_t right = initial(word);
            checker.compare(&table_.bits()[word], &right, 8);
            wrong_words_ += table_.bits()[word] != right;
        }
    }

  private:
    long updates() const { return 4 * table_.all_words(); }
    Range share_of(int thread) const {
        return Range{0, updates()}.share(job_.me(), job_.n_pes()).share(thread, job_.threads());
    }
    uint64_t initial(long word) const { return static_cast<uint64_t>(job_.me() * table_.words() + word); }

    template <class Link>
    void update(const Link& link, int thread, long count) const {
        GupsStream stream(starts_[static_cast<size_t>(thread)]);
        for (long i = 0; i < count; ++i) {
            const uint64_t x = stream.next();
            const TablePlace place = table_.place(x);
            link.exclusive_or(table_.bits() + place.word, x, place.pe);
        }
        link.quiet();
    }

    template <class Link>
    void update_batched(const Link& link, int thread, long count) const {
#if SHMEM_MT_HAVE_SHMEMX
        GupsStream stream(starts_[static_cast<size_t>(thread)]);
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
        for (long i = 0; i < count; ++i) {
            const uint64_t x = stream.next();
            const TablePlace place = table_.place(x);
            exclusive_or_nbe(link, table_.bits() + place.word, x, place.pe, &request);
            if (i % kLookAhead == kLookAhead - 1)
                shmemx_request_wait(&request);
        }
        shmemx_request_wait(&request);
#else
        update(link, thread, count);  // never called: the form is skipped
#endif
    }

    // A share of the updates of all PEs, as far as they are of this PE's part.
    void update_again(int thread) const {
        const Range numbers = Range{0, updates()}.share(thread, job_.threads());
        GupsStream stream(GupsStream::value_of(numbers.begin));
        for (long i = numbers.begin; i < numbers.end; ++i) {
            const uint64_t x = stream.next();
            const TablePlace place = table_.place(x);
            if (place.pe == job_.me())  // relaxed: the end of the team's run orders it before the comparison
                __atomic_fetch_xor(table_.bits() + place.word, x, __ATOMIC_RELAXED);
        }
    }

    const Route route_;
    const bool batched_;
    const GupsTable& table_;
    std::vector<uint64_t> starts_;  // of the numbers of each thread
    long runs_ = 0;
    long wrong_words_ = 0;
};

}  // namespace shmem_mt

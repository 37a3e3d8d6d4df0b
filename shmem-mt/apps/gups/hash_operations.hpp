// A distributed hash table with linear probing inside the part of the PE that a key's hash names. All keys are inserted
// by compare-and-swap; then every key is looked up by fetch. The threads of all PEs share both; with several PEs a key
// is looked up by another PE than the one that inserted it. A run is right when every key is found with its value and
// the table has no more entries than keys.
#pragma once

#include <string>
#include <vector>

#include "apps/common/mini_app.hpp"
#include "apps/common/range.hpp"
#include "apps/common/sums.hpp"
#include "apps/gups/hash_keys.hpp"
#include "apps/gups/in_flight.hpp"

namespace shmem_mt {

class HashOperations final : public MiniApp {
  public:
    static constexpr long kLeastWords = 256;  // of a part, so that chance does not fill it

    // Collective.
    HashOperations(Job& job, const std::string& op, Route route, InFlight in_flight, const GupsTable& table)
        : MiniApp(job, op, {{"insert", true}, {"lookup", true}}),
          route_(route),
          in_flight_(in_flight),
          table_(table),
          keys_(table, job.options().seed),
          sums_(1),
          threads_(static_cast<size_t>(job.threads())) {
        for (Thread& each : threads_) {
            each.searches.resize(in_flight == InFlight::kSingly ? 0 : static_cast<size_t>(kLookAhead));
            each.seen.resize(each.searches.size());
        }
    }

    void describe(Json& params) const override { params.integer("words", table_.asked()); }
    void explain(Json& verdict) const override {
        verdict.integer("keys", keys_.different()).integer("entries", entries_).integer("seed", job_.options().seed);
    }
    double work() const override { return static_cast<double>(keys_.insertions() + keys_.different()); }
    const char* unit() const override { return "operations"; }

    double working_set() const override { return sizeof(uint64_t) * static_cast<double>(table_.words()); }

    void prepare() override {
        std::fill(table_.longs(), table_.longs() + table_.words(), kFree);
        ++runs_;
    }

    void run(int thread) override {
        job_.with_link(route_, thread, [&](const auto& link) {
            spend(thread, 0, [&] {
                search(link, thread, insertions(thread), kInsert, [&](long i) { return keys_.entry(keys_.key_of(i)); });
                job_.meet(thread);
            });
            spend(thread, 1, [&] {
                threads_[static_cast<size_t>(thread)].found =
                    search(link, thread, lookups(thread), kLookUp, [&](long i) { return keys_.entry(i); });
                job_.meet(thread);
            });
        });
    }

    void check(Checker& checker) override {
        for (int thread = 0; thread < job_.threads(); ++thread)
            checker.compare_word(threads_[static_cast<size_t>(thread)].found, share_of_lookups(thread).length());
        *sums_.source() = table_.words() - std::count(table_.longs(), table_.longs() + table_.words(), kFree);
        entries_ = *sums_.sum();
        checker.compare_word(entries_, keys_.different());
    }

  private:
    static constexpr long kFree = 0;
    enum Aim { kInsert, kLookUp };

    struct Search {
        HashKeys::Entry entry;  // its place moves on from word to word
        long probes;
    };

    struct alignas(64) Thread {
        long found = 0;  // keys, with their values
        std::vector<Search> searches;
        std::vector<long> seen;  // by each of them
    };

    Range insertions(int thread) const {
        Range mine = Range{0, keys_.insertions()}.share(job_.me(), job_.n_pes()).share(thread, job_.threads());
        const Fault fault = job_.options().fault;
        if (fault == Fault::kSkippedOperation || (fault == Fault::kStaleResult && runs_ > 1))
            mine.end = mine.begin;
        else if (fault == Fault::kLastElementMissing)
            mine.end -= 3;  // two keys that may come nowhere else
        return mine;
    }
    Range share_of_lookups(int thread) const {
        const int shifted = (job_.me() + 1) % job_.n_pes();
        return Range{0, keys_.different()}.share(shifted, job_.n_pes()).share(thread, job_.threads());
    }
    Range lookups(int thread) const {
        return job_.options().fault == Fault::kSkippedComputation ? Range{0, 0} : share_of_lookups(thread);
    }

    // Looks for the entries make(i) of the range, and has them inserted where they are not; returns how many are there.
    template <class Link, class Make>
    long search(const Link& link, int thread, const Range& range, Aim aim, Make&& make) {
        long found = 0;
        if (in_flight_ != InFlight::kSingly) {
            with_completion(link, in_flight_, [&](const auto& own_link) {
                found = search_batched(own_link, threads_[static_cast<size_t>(thread)], range, aim, make);
            });
            return found;
        }
        for (long i = range.begin; i < range.end; ++i) {
            Search one{make(i), 0};
            for (bool ended = false; !ended;) {
                long* const dest = table_.longs() + one.entry.place.word;
                const long seen = aim == kInsert ? link.compare_swap(dest, kFree, one.entry.word, one.entry.place.pe)
                                                 : link.fetch(dest, one.entry.place.pe);
                ended = ends(one, seen);
                found += ended && is_there(one, seen, aim);
            }
        }
        return found;
    }

    // Searches that must go on stay in the batch, new ones take the places of the others.
    template <class Link, class Make>
    long search_batched(const Link& link, Thread& mine, const Range& range, Aim aim, Make&& make) const {
        long found = 0;
        size_t live = 0;
        for (long next = range.begin; next < range.end || live > 0;) {
            for (; live < mine.searches.size() && next < range.end; ++next) mine.searches[live++] = {make(next), 0};
            for (size_t i = 0; i < live; ++i) {
                const HashKeys::Entry& entry = mine.searches[i].entry;
                long* const dest = table_.longs() + entry.place.word;
                if (aim == kInsert)
                    link.compare_swap_nbi(&mine.seen[i], dest, kFree, entry.word, entry.place.pe);
                else
                    link.fetch_nbi(&mine.seen[i], dest, entry.place.pe);
            }
            link.quiet();
            size_t kept = 0;
            for (size_t i = 0; i < live; ++i) {
                if (ends(mine.searches[i], mine.seen[i]))
                    found += is_there(mine.searches[i], mine.seen[i], aim);
                else
                    mine.searches[kept++] = mine.searches[i];
            }
            live = kept;
        }
        return found;
    }

    // Whether the search is over with what was seen; otherwise it moves on to the next word.
    bool ends(Search& search, long seen) const {
        if (seen == kFree || seen == search.entry.word)
            return true;
        if (++search.probes == table_.words()) {
            fail("the hash table's part on PE " + std::to_string(search.entry.place.pe) + " is full: all its " +
                 std::to_string(table_.words()) + " words are taken; use a larger --size");
        }
        long& word = search.entry.place.word;
        word = word + 1 < table_.words() ? word + 1 : 0;
        return false;
    }

    static bool is_there(const Search& search, long seen, Aim aim) {
        return aim == kInsert || seen == search.entry.word;
    }

    const Route route_;
    const InFlight in_flight_;
    const GupsTable& table_;
    const HashKeys keys_;
    Sums<long> sums_;
    std::vector<Thread> threads_;
    long runs_ = 0;
    long entries_ = 0;  // of the last run, on all PEs
};

}  // namespace shmem_mt

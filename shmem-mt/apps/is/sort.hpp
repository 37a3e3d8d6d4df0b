// Integer sort, step by step, on one PE: what every form calls, in this order, in each iteration.
//
//     all threads   change, count
//     thread 0      deal
//     all threads   for each piece: pack; send block(...) to every other PE
//     all threads   begin_ranks; add_block of all pieces of all threads of all PEs; end_ranks
//
// A barrier of the PE's threads stands between any two lines. Among PEs none is needed: a PE that has the sums of an
// iteration's buckets knows that every PE has asked for them, and so is done with the blocks of the iteration before.
#pragma once

#include <algorithm>
#include <vector>

#include "apps/common/signals.hpp"
#include "apps/common/sums.hpp"
#include "apps/common/untouched.hpp"
#include "apps/is/kernels.hpp"
#include "apps/is/layout.hpp"
#include "programs/common/job.hpp"

namespace shmem_mt {

class IsSort {
  public:
    // A block as it is to be sent: to the same place of `dest` on its PE.
    struct Block {
        int32_t* dest;
        const int32_t* source;
        size_t bytes;
    };

    // Bytes of a PE, about: room for all keys (layout.hpp), its own and what it packs, and ranks.
    static double memory_need(const IsClass& problem, int pes) {
        const double keys = static_cast<double>(problem.keys());
        return 4 * (keys + 2 * keys / pes + static_cast<double>(problem.range()));
    }

    // For up to that many pieces; prepare() says how many. Collective.
    IsSort(Job& job, const IsClass& problem, int most_pieces)
        : job_(job),
          problem_(problem),
          log2_buckets_(log2_buckets(job.n_pes() * job.threads(), problem.log2_range)),
          shift_(problem.log2_range - log2_buckets_),
          layout_(layout_of(most_pieces)),
          deal_(layout_.workers(), log2_buckets_),
          sums_(static_cast<size_t>(buckets())),
          keys_(static_cast<size_t>(own_keys().length())),
          ranks_(static_cast<size_t>(problem.range())),
          threads_(static_cast<size_t>(job.threads())) {
        received_ = static_cast<int32_t*>(shared_symmetric_alloc(job, 4 * static_cast<size_t>(layout_.words())));
        signals_ = static_cast<Signal*>(symmetric_alloc(sizeof(Signal) * static_cast<size_t>(layout_.workers())));
        job.team().run([&](int thread) {
            Thread& mine = threads_[static_cast<size_t>(thread)];
            const Range numbers = layout_.of_thread(job.me(), thread);
            draw_keys(problem, numbers, keys_.data() + numbers.begin - own_keys().begin);
            mine.packed.resize(static_cast<size_t>(layout_.packed_words(job.me(), thread)));
            mine.sizes.resize(static_cast<size_t>(buckets() * most_pieces));
            mine.ends.resize(static_cast<size_t>(buckets()));
            mine.starts.resize(static_cast<size_t>(most_pieces * job.n_pes()) + 1);
        });
        for (int i = 0; i < kIsTested; ++i) {
            const long number = problem.tested[i].index;
            draw_keys(problem, {number, number + 1}, &tested_[i]);
        }
    }

    // Before a run in so many pieces: the keys are again as they were drawn. Thread 0 of all PEs.
    void prepare(int pieces) {
        pieces_ = pieces;
        layout_ = layout_of(pieces);
        for (long number = 1; number <= 2 * kIsIterations; ++number) {
            int32_t key = 0;
            draw_keys(problem_, {number, number + 1}, &key);
            set_key(own_keys(), number, key);
        }
        std::fill(&found_[0][0], &found_[0][0] + kIsIterations * kIsTested, -1L);
        first_round_ = kIsIterations * runs_++;
    }

    // What the signals of that iteration are set to. They rise from run to run.
    uint64_t round(int iteration) const { return first_round_ + static_cast<uint64_t>(iteration); }

    void change(int thread, int iteration) {
        change_keys(problem_, iteration,
                    [&](long number, int32_t key) { set_key(layout_.of_thread(job_.me(), thread), number, key); });
    }

    void count(int thread) {
        std::vector<uint32_t>& sizes = threads_[static_cast<size_t>(thread)].sizes;
        std::fill(sizes.begin(), sizes.end(), 0);
        for (int piece = 0; piece < pieces_; ++piece) {
            const Range numbers = layout_.of_piece(job_.me(), thread, piece);
            count_buckets(key(numbers.begin), numbers.length(), shift_, &sizes[static_cast<size_t>(piece * buckets())]);
        }
    }

    // What all threads have counted, of the thread's share of the buckets.
    void add_sizes(int thread) {
        long* const sums = sums_.source();
        const Range mine = Range{0, buckets()}.share(thread, job_.threads());
        std::fill(sums + mine.begin, sums + mine.end, 0L);
        for (const Thread& each : threads_) {
            for (int piece = 0; piece < pieces_; ++piece) {
                const uint32_t* const sizes = &each.sizes[static_cast<size_t>(piece * buckets())];
                for (long bucket = mine.begin; bucket < mine.end; ++bucket) sums[bucket] += sizes[bucket];
            }
        }
    }

    void deal() { deal_.deal(sums_.sum(), problem_.keys()); }

    long buckets() const { return 1L << log2_buckets_; }
    double imbalance() const { return deal_.imbalance(); }

    // The blocks of that piece for all PEs; the own one is read where it is packed.
    void pack(int thread, int piece) {
        Thread& mine = threads_[static_cast<size_t>(thread)];
        const uint32_t* const sizes = &mine.sizes[static_cast<size_t>(piece * buckets())];
        const uint16_t* const streams = deal_.streams();
        uint32_t* const starts = &mine.starts[static_cast<size_t>(piece * job_.n_pes())];
        const Range numbers = layout_.of_piece(job_.me(), thread, piece);
        uint32_t end = piece == 0 ? 0 : starts[0];
        for (int pe = 0; pe < job_.n_pes(); ++pe) {
            starts[pe] = end;
            int32_t* const counts = &mine.packed[end];
            end += static_cast<uint32_t>(job_.threads());
            for (int to = 0; to < job_.threads(); ++to) {
                const Range range = deal_.buckets(layout_.worker(pe, to));
                const uint32_t begin = end;
                for (long bucket = range.begin; bucket < range.end; ++bucket) {
                    if (bucket == range.begin || streams[bucket] != streams[bucket - 1])
                        mine.ends[streams[bucket]] = end;
                    end += sizes[bucket];
                }
                counts[to] = static_cast<int32_t>(end - begin);
            }
        }
        starts[job_.n_pes()] = end;
        if (deal_.has_streams())
            pack_streams(key(numbers.begin), numbers.length(), shift_, streams, mine.ends.data(), mine.packed.data());
        else
            pack_keys(key(numbers.begin), numbers.length(), shift_, mine.ends.data(), mine.packed.data());
        if (job_.options().fault == Fault::kLastElementMissing)
            forget_last_keys(thread, piece);
    }

    // What was packed of that piece for that other PE; nothing with planted faults only.
    Block block(int thread, int piece, int iteration, int pe) const {
        const Fault fault = job_.options().fault;
        const bool sent = fault != Fault::kSkippedOperation && (fault != Fault::kStaleResult || iteration == 1);
        const int32_t* const begin = packed(thread, piece, pe);
        const size_t bytes = 4 * static_cast<size_t>(packed(thread, piece, pe + 1) - begin);
        return {received_ + layout_.place(job_.me(), thread, piece), begin, sent ? bytes : 0};
    }

    // At the PE where that thread's blocks go.
    Signal* signal(int pe, int thread) const { return signals_ + layout_.worker(pe, thread); }

    void begin_ranks(int thread) {
        const Range keys = ranked_by(thread);
        std::fill(&ranks_[0] + keys.begin, &ranks_[0] + keys.end, 0);
    }

    // What is for `thread` in the block that thread `from` of that PE has sent, or packed.
    void add_block(int thread, int pe, int from, int piece) {
        if (job_.options().fault == Fault::kSkippedComputation)
            return;
        const Part part = part_of(thread, pe, from, piece);
        count_keys(part.keys, part.count, ranks_.data());
    }

    void end_ranks(int thread, int iteration) {
        const Range keys = ranked_by(thread);
        rank_keys(keys, deal_.below(worker(thread)), ranks_.data());
        for (int i = 0; i < kIsTested; ++i) {
            if (tested_[i] >= keys.begin && tested_[i] < keys.end)
                found_[iteration - 1][i] = ranks_[static_cast<size_t>(tested_[i])];
        }
    }

    // The rest is what a run has led to.

    // Of a tested key, where this PE has ranked it; -1 elsewhere.
    long found(int iteration, int tested) const { return found_[iteration - 1][tested]; }

    const Untouched<int32_t>& keys() const { return keys_; }

    // Calls f(key) for all keys that this PE has ranked.
    template <class F>
    void for_ranked(F&& f) const {
        for (int thread = 0; thread < job_.threads(); ++thread) {
            for (int worker = 0; worker < layout_.workers(); ++worker) {
                for (int piece = 0; piece < pieces_; ++piece) {
                    const Part part = part_of(thread, worker / job_.threads(), worker % job_.threads(), piece);
                    for (long i = 0; i < part.count; ++i) f(part.keys[i]);
                }
            }
        }
    }

    // The ranks that this PE's keys must have, and theirs.
    Range ranks() const { return {deal_.below(worker(0)), deal_.below(worker(job_.threads()))}; }
    Range ranked() const { return {ranked_by(0).begin, ranked_by(job_.threads() - 1).end}; }
    long rank(int32_t key) const { return ranks_[static_cast<size_t>(key)]; }

  private:
    struct alignas(64) Thread {
        std::vector<int32_t> packed;   // its blocks, in the order of pieces and PEs
        std::vector<uint32_t> starts;  // where they begin; one more: the end
        std::vector<uint32_t> sizes;   // of buckets, by piece
        std::vector<uint32_t> ends;    // how far packing has come, by stream
    };

    struct Part {
        const int32_t* keys;
        long count;
    };

    IsLayout layout_of(int pieces) const { return {problem_.keys(), job_.n_pes(), job_.threads(), pieces}; }
    Range own_keys() const { return layout_.of_pe(job_.me()); }
    int worker(int thread) const { return layout_.worker(job_.me(), thread); }
    const int32_t* key(long number) const { return keys_.data() + number - own_keys().begin; }
    const int32_t* packed(int thread, int piece, int pe) const {
        const Thread& its = threads_[static_cast<size_t>(thread)];
        return its.packed.data() + its.starts[static_cast<size_t>(piece * job_.n_pes() + pe)];
    }

    void set_key(const Range& numbers, long number, int32_t key) {
        if (number >= numbers.begin && number < numbers.end)
            keys_[static_cast<size_t>(number - own_keys().begin)] = key;
    }

    // Of each block that has one.
    void forget_last_keys(int thread, int piece) {
        Thread& mine = threads_[static_cast<size_t>(thread)];
        for (int pe = 0; pe < job_.n_pes(); ++pe) {
            int32_t* const counts = &mine.packed[mine.starts[static_cast<size_t>(piece * job_.n_pes() + pe)]];
            int32_t* const last = std::find_if(counts, counts + job_.threads(), [](int32_t n) { return n > 0; });
            if (pe != job_.me() && last != counts + job_.threads())
                --*last;
        }
    }

    Range ranked_by(int thread) const {
        const Range range = deal_.buckets(worker(thread));
        return {range.begin << shift_, range.end << shift_};
    }

    Part part_of(int thread, int pe, int from, int piece) const {
        const int32_t* const block =
            pe == job_.me() ? packed(from, piece, pe) : received_ + layout_.place(pe, from, piece);
        long before = 0;
        for (int other = 0; other < thread; ++other) before += block[other];
        return {block + job_.threads() + before, block[thread]};
    }

    Job& job_;
    const IsClass& problem_;
    const int log2_buckets_;
    const int shift_;  // from a key to its bucket
    int pieces_ = 1;
    IsLayout layout_;
    IsDeal deal_;
    Sums<long> sums_;
    Untouched<int32_t> keys_;    // in the order of their numbers
    Untouched<uint32_t> ranks_;  // by key; only those of own keys are ever touched
    std::vector<Thread> threads_;
    int32_t* received_ = nullptr;
    Signal* signals_ = nullptr;
    int32_t tested_[kIsTested] = {};  // the keys
    long found_[kIsIterations][kIsTested] = {};
    uint64_t first_round_ = 0, runs_ = 0;
};

}  // namespace shmem_mt

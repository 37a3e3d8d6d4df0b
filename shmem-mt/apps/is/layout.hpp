// Which thread has which keys, and where they go. The keys are dealt out evenly, in the order of their numbers, to PEs,
// to the threads of a PE, and in pieces, which are sent one by one. Keys of like size make a bucket; a worker, which is
// one thread of one PE, ranks those of neighbouring buckets.
//
// A block is what a thread sends of one piece to one PE: how many keys each of that PE's threads gets, then the keys of
// the first of them, of the second, and so on. Every PE has room for whole pieces of all threads of all PEs, at places
// that all PEs know, so no PE asks where a block belongs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "apps/common/range.hpp"
#include "apps/is/problem.hpp"

namespace shmem_mt {

// Keys are packed into about so many streams: twice as many cost a third more time.
constexpr int kLog2Streams = 9;

// The densest of B buckets has 8 / (3 B) of all keys, which are sums of four random numbers, and a worker has whole
// buckets. So many of them for each worker bring the fullest worker at most 1/24 of the mean above it.
constexpr long kBucketsOfWorker = 64;
constexpr int kMostLog2Buckets = 15;  // a stream's number has 16 bits

// Keys lie below 2^log2_range; a bucket has two or more of them.
inline int log2_buckets(int workers, int log2_range) {
    int log2 = kLog2Streams;
    while (log2 < std::min(kMostLog2Buckets, log2_range - 1) && (1L << log2) < kBucketsOfWorker * workers) ++log2;
    return log2;
}

class IsLayout {
  public:
    IsLayout(long keys, int pes, int threads, int pieces)
        : keys_(keys), pes_(pes), threads_(threads), pieces_(pieces) {}

    int workers() const { return pes_ * threads_; }
    int worker(int pe, int thread) const { return pe * threads_ + thread; }

    // Numbers of keys.
    Range of_pe(int pe) const { return Range{0, keys_}.share(pe, pes_); }
    Range of_thread(int pe, int thread) const { return of_pe(pe).share(thread, threads_); }
    Range of_piece(int pe, int thread, int piece) const { return of_thread(pe, thread).share(piece, pieces_); }

    // Where blocks of that piece lie at a receiver, and how large all of a receiver's are: in words of 4 bytes.
    long place(int pe, int thread, int piece) const {
        const long before = static_cast<long>(worker(pe, thread)) * pieces_ + piece;
        return of_piece(pe, thread, piece).begin + before * threads_;
    }
    long words() const { return keys_ + static_cast<long>(workers()) * pieces_ * threads_; }

    // At a sender, of one thread: its blocks of all pieces to all PEs.
    long packed_words(int pe, int thread) const {
        return of_thread(pe, thread).length() + static_cast<long>(pieces_) * workers();
    }

  private:
    long keys_;
    int pes_, threads_, pieces_;
};

// Which buckets are whose: as nearly equally many keys for each worker as whole buckets allow. Where there are more
// buckets than streams, neighbouring buckets of a worker share one.
class IsDeal {
  public:
    IsDeal(int workers, int log2_buckets)
        : buckets_(1L << log2_buckets),
          per_stream_(buckets_ >> kLog2Streams),
          starts_(static_cast<size_t>(workers) + 1),
          below_(static_cast<size_t>(workers) + 1),
          streams_(static_cast<size_t>(buckets_)) {}

    // `sizes` of all buckets, `keys` together.
    void deal(const long* sizes, long keys) {
        const long workers = static_cast<long>(starts_.size()) - 1;
        long next = 0, below = 0;
        const auto begin_until = [&](long worker, long bucket) {
            for (; next <= worker; ++next) {
                starts_[static_cast<size_t>(next)] = bucket;
                below_[static_cast<size_t>(next)] = below;
            }
        };
        for (long bucket = 0; bucket < buckets_; ++bucket) {
            const long owner = std::min(workers - 1, (below + sizes[bucket] / 2) * workers / keys);  // of its middle
            begin_until(owner, bucket);
            below += sizes[bucket];
        }
        begin_until(workers, buckets_);
        deal_streams(workers);
    }

    long all_buckets() const { return buckets_; }
    bool has_streams() const { return per_stream_ > 1; }  // otherwise a bucket is one

    // By bucket; they rise.
    const uint16_t* streams() const { return streams_.data(); }

    // The largest share that a worker has of all keys, over the mean of them: 1 is even.
    double imbalance() const {
        const size_t workers = starts_.size() - 1;
        long most = 0;
        for (size_t i = 0; i < workers; ++i) most = std::max(most, below_[i + 1] - below_[i]);
        return static_cast<double>(most) * static_cast<double>(workers) / static_cast<double>(below_[workers]);
    }

    Range buckets(int worker) const {
        return {starts_[static_cast<size_t>(worker)], starts_[static_cast<size_t>(worker) + 1]};
    }
    // How many keys lie below those of the worker; of the one behind the last: all.
    long below(int worker) const { return below_[static_cast<size_t>(worker)]; }

  private:
    void deal_streams(long workers) {
        uint16_t stream = 0;
        for (long worker = 0; worker < workers; ++worker) {
            const Range own = buckets(static_cast<int>(worker));
            for (long bucket = own.begin; bucket < own.end; ++bucket) {
                stream = static_cast<uint16_t>(stream + (bucket > 0 && (bucket - own.begin) % per_stream_ == 0));
                streams_[static_cast<size_t>(bucket)] = stream;
            }
        }
    }

    const long buckets_, per_stream_;
    std::vector<long> starts_, below_;
    std::vector<uint16_t> streams_;
};

}  // namespace shmem_mt

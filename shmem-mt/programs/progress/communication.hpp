// The communication that the benchmark overlap puts behind a computation: a one-sided transfer from each sending PE to
// its partner, or a non-blocking collective of all PEs. One is posted and completed at a time, by one thread.
#pragma once

#include <cstring>
#include <string>

#include "programs/common/collective_data.hpp"
#include "programs/common/job.hpp"
#include "programs/common/requests.hpp"
#include "programs/common/validation.hpp"

namespace shmem_mt {

// An operation, and what completes it.
struct Variant {
    const char* op;
    const char* sync;
    bool reads = false;
    Collective collective = Collective::kCopy;  // none

    // What a get or a collective brings is there as soon as it is complete, and is looked at before any barrier.
    bool ends_here() const { return reads || !one_sided(); }
    bool one_sided() const { return collective == Collective::kCopy; }
    bool with_request() const { return std::string("quiet") != sync; }
    const char* why_not() const {
        if (!one_sided() && !SHMEM_MT_HAVE_PROGRESS)
            return kNoProgress;
        return with_request() && !SHMEM_MT_HAVE_SHMEMX ? kNoRequests : "";
    }
};

class Communication {
  public:
    virtual ~Communication() = default;

    // Whether this PE posts, computes and completes; those that do not are waited for in a barrier.
    virtual bool active() const = 0;

    // `bytes`: its size; less when a fault is planted.
    virtual void post(long bytes) = 0;
    virtual void complete() = 0;

    // What this PE gives becomes what belongs to `token`, and where it finds what it gets is overwritten; then it looks
    // at all that it got. Between the two: a barrier, post, complete, a barrier.
    virtual void fill(long token) = 0;
    virtual void check(Checker& checker, long token) const = 0;

    // fill and check for the last word alone, which a sample can afford.
    virtual void mark(long token) = 0;
    virtual bool marked(long token) const = 0;
};

class OneSided final : public Communication {
  public:
    // window (symmetric) and local have the size and a word. `with_request`: a request completes it, else a quiet.
    OneSided(Job& job, char* window, char* local, bool reads, bool with_request, long size)
        : job_(job), window_(window), local_(local), reads_(reads), with_request_(with_request), size_(size) {}

    bool active() const override { return job_.is_sender(); }

    void post(long bytes) override {
        const bool gets = reads_ || job_.options().fault == Fault::kGetNamedPut;
        const size_t count = static_cast<size_t>(bytes);
        const int pe = job_.message_pe();
#if SHMEM_MT_HAVE_SHMEMX
        if (with_request_ && gets)
            return shmemx_getmem_nbe(local_, window_, count, pe, &request_);
        if (with_request_)
            return shmemx_putmem_nbe(window_, local_, count, pe, &request_);
#endif
        if (gets)
            shmem_getmem_nbi(local_, window_, count, pe);
        else
            shmem_putmem_nbi(window_, local_, count, pe);
    }

    void complete() override {
#if SHMEM_MT_HAVE_SHMEMX
        if (with_request_)
            return shmemx_request_wait(&request_);
#endif
        shmem_quiet();
    }

    void fill(long token) override {
        fill_slot(source(), make_base(job_.me(), 0, token), 0, size_);
        std::memset(dest(), kUntouchedByte, static_cast<size_t>(size_ + 8));
    }

    void check(Checker& checker, long token) const override {
        if (!gets_data())
            return;
        checker.compare_slot(dest(), make_base(job_.partner(), 0, token), 0, size_);
        uint64_t untouched;
        std::memset(&untouched, kUntouchedByte, sizeof untouched);
        checker.compare(dest() + size_, &untouched, 8);
    }

    void mark(long token) override {
        const long value = mark_of(token);
        std::memcpy(source() + size_ - 8, &value, 8);
    }

    bool marked(long token) const override {
        const long value = mark_of(token);
        return !gets_data() || std::memcmp(dest() + size_ - 8, &value, 8) == 0;
    }

  private:
    static constexpr int kUntouchedByte = 0xa5;

    static long mark_of(long token) { return ~make_base(0, 0, token); }

    char* source() const { return reads_ ? window_ : local_; }
    char* dest() const { return reads_ ? local_ : window_; }
    bool gets_data() const { return reads_ || job_.n_pes() == 1 ? job_.is_sender() : !job_.is_sender(); }

    Job& job_;
    char* const window_;
    char* const local_;
    const bool reads_;
    const bool with_request_;
    const long size_;
#if SHMEM_MT_HAVE_SHMEMX
    shmemx_request_t request_ = SHMEMX_REQUEST_NULL;
#endif
};

#if SHMEM_MT_HAVE_PROGRESS
// Broadcast, fcollect, alltoall or sum of all PEs.
class NonBlockingCollective final : public Communication {
  public:
    explicit NonBlockingCollective(const Call& call) : call_(call) {}

    bool active() const override { return true; }

    void post(long bytes) override {
        const size_t nelems = static_cast<size_t>(bytes / 8);
        auto* dest = static_cast<long*>(call_.dest);
        const auto* source = static_cast<const long*>(call_.source);
        switch (call_.op) {
            case Collective::kBroadcast:
                shmemx_long_broadcast_nbe(SHMEM_TEAM_WORLD, dest, source, nelems, 0, &request_);
                break;
            case Collective::kFcollect:
                shmemx_long_fcollect_nbe(SHMEM_TEAM_WORLD, dest, source, nelems, &request_);
                break;
            case Collective::kAlltoall:
                shmemx_long_alltoall_nbe(SHMEM_TEAM_WORLD, dest, source, nelems, &request_);
                break;
            default:
                shmemx_double_sum_reduce_nbe(SHMEM_TEAM_WORLD, static_cast<double*>(call_.dest),
                                             static_cast<const double*>(call_.source), nelems, &request_);
        }
    }

    void complete() override { shmemx_request_wait(&request_); }

    void fill(long token) override {
        fill_source(call_, token);
        poison_dest(call_);
    }

    void check(Checker& checker, long token) const override { check_dest(checker, call_, token, true); }

    void mark(long token) override {
        for (long block = 0; block < shape().source_blocks; ++block)
            source_words()[(block + 1) * nelems() - 1] =
                source_word(call_.op, call_.team.me, token, block, nelems() - 1);
    }

    bool marked(long token) const override {
        const long last = shape().dest_blocks - 1;
        return static_cast<const uint64_t*>(call_.dest)[(last + 1) * nelems() - 1] ==
               expected_word(call_, token, last, nelems() - 1, true);
    }

  private:
    Shape shape() const { return shape_of(call_.op, call_.team.size); }
    long nelems() const { return static_cast<long>(call_.nelems); }
    uint64_t* source_words() const { return static_cast<uint64_t*>(call_.source); }

    const Call call_;
    shmemx_request_t request_ = SHMEMX_REQUEST_NULL;
};
#endif

}  // namespace shmem_mt

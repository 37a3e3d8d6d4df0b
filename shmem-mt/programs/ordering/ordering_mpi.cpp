// The reference to the one-sided rules of ordering.cpp: MPI's two-sided messages, which are matched in order, and its
// puts, which have no order. A window of two-sided messages is complete when its empty answer is there, so
// `outstanding` means what it means for puts and quiet. The receives of a window are posted before the answer to the
// window before leaves, so no message comes unexpected.
#include "programs/common/mpi_job.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "programs/common/run_together.hpp"
#include "programs/ordering/rules.hpp"

namespace shmem_mt {
namespace {

// What each thread has of its own: a communicator, a part of the memory, and that part open to puts.
class ThreadEndpoints {
  public:
    // Collective. `bytes`: of a thread's window.
    ThreadEndpoints(const MpiJob& job, long bytes) : memory_(static_cast<size_t>(2 * bytes * job.threads())) {
        for (int t = 0; t < job.threads(); ++t) {
            endpoints_.push_back({memory_.data() + 2 * t * bytes, memory_.data() + (2 * t + 1) * bytes, {}, {}});
            Endpoint& endpoint = endpoints_.back();
            MPI_Comm_dup(MPI_COMM_WORLD, &endpoint.comm);
            MPI_Win_create(endpoint.window, bytes, 1, MPI_INFO_NULL, endpoint.comm, &endpoint.open);
            MPI_Win_lock_all(MPI_MODE_NOCHECK, endpoint.open);
        }
    }

    ~ThreadEndpoints() {
        for (Endpoint& endpoint : endpoints_) {
            MPI_Win_unlock_all(endpoint.open);
            MPI_Win_free(&endpoint.open);
            MPI_Comm_free(&endpoint.comm);
        }
    }

    ThreadEndpoints(const ThreadEndpoints&) = delete;
    ThreadEndpoints& operator=(const ThreadEndpoints&) = delete;

    struct Endpoint {
        char* window;
        char* local;
        MPI_Comm comm;
        MPI_Win open;
    };

    const Endpoint& of(int thread) const { return endpoints_[static_cast<size_t>(thread)]; }

  private:
    std::vector<char> memory_;
    std::vector<Endpoint> endpoints_;
};

// Tags of a thread's communicator beyond those of messages, which are their slots.
enum { kAnswerTag = kMostOutstanding, kLastTag, kSeenTag };

class MpiStream final : public Stream {
  public:
    MpiStream(MpiJob& job, const ThreadEndpoints& endpoints, Rule rule, long size, long outstanding)
        : job_(job),
          endpoints_(endpoints),
          rule_(rule),
          size_(static_cast<int>(size)),
          stride_(std::max(8L, size)),
          outstanding_(outstanding) {
        fill_sources(job.next_token());
    }

    Report sample(long windows) override { return run(windows, nullptr); }

    Agreed validate() override {
        const long token = job_.next_token();
        fill_sources(token);
        for (int t = 0; t < job_.threads(); ++t)
            std::memset(endpoints_.of(t).window, 0xee, static_cast<size_t>(outstanding_ * stride_));
        std::vector<Checker> checkers(static_cast<size_t>(job_.threads()), Checker(job_.options().fault));
        const Report report = run(2, &checkers);
        job_.barrier();
        Checker checker(job_.options().fault);
        for (int t = 0; t < job_.threads(); ++t) {
            if (!job_.is_sender())
                check(checkers[static_cast<size_t>(t)], t, token);
            checker.add(checkers[static_cast<size_t>(t)]);
        }
        if (!report.ok)
            checker.compare_word(0, 1);
        return agree_verdict(job_, checker);
    }

  private:
    bool two_sided() const { return rule_ == Rule::kTwoSided || rule_ == Rule::kTwoSidedAny; }
    bool faulty(Fault fault) const { return job_.options().fault == fault; }

    void fill_sources(long token) {
        for (int t = 0; t < job_.threads(); ++t) {
            for (long slot = 0; slot < outstanding_; ++slot)
                fill_slot(endpoints_.of(t).local + slot * stride_, make_base(job_.me(), t, token), slot, size_);
        }
    }

    void check(Checker& checker, int thread, long token) const {
        for (long slot = 0; slot < outstanding_; ++slot)
            checker.compare_slot(endpoints_.of(thread).window + slot * stride_,
                                 make_base(job_.partner(), thread, token), slot, size_);
    }

    // Both sides run it; the sender's clock stops when each of its threads has been told that the last message was
    // seen.
    Report run(long windows, std::vector<Checker>* checkers) {
        const long token = job_.next_token();
        std::vector<int> ok(static_cast<size_t>(job_.threads()), 1);
        Report report = run_together(
            job_,
            [&](int thread) {
                const size_t i = static_cast<size_t>(thread);
                if (job_.is_sender())
                    send(thread, windows, token, checkers ? &(*checkers)[i] : nullptr);
                else
                    ok[i] = receive(thread, windows);
            },
            [] { return true; });
        if (!job_.is_sender())
            report = Report{};
        report.ok = std::count(ok.begin(), ok.end(), 1) == static_cast<long>(ok.size());
        return report;
    }

    void send(int thread, long windows, long token, Checker* checker) {
        const ThreadEndpoints::Endpoint& endpoint = endpoints_.of(thread);
        char* const end = endpoint.local + (outstanding_ - 1) * stride_ + size_;
        const long mark = ~make_base(job_.me(), thread, token);
        if (checker == nullptr && size_ % 8 == 0)
            std::memcpy(end - 8, &mark, 8);
        const long waits = two_sided() ? send_messages(endpoint, windows) : put_messages(endpoint, windows);
        if (checker)
            checker->compare_word(waits, windows);
        const long last[2] = {checker == nullptr && size_ % 8 == 0, mark};
        MPI_Send(last, 2, MPI_LONG, job_.partner(), kLastTag, endpoint.comm);
        MPI_Recv(nullptr, 0, MPI_BYTE, job_.partner(), kSeenTag, endpoint.comm, MPI_STATUS_IGNORE);
    }

    // Goes on to the next window when this one is complete, unless a fault is planted.
    bool leaves_incomplete(long window, long windows) const {
        return faulty(Fault::kWindowIgnored) && window < windows - 1;
    }

    // Returns how often it has waited for all that was under way.
    long send_messages(const ThreadEndpoints::Endpoint& endpoint, long windows) {
        std::vector<MPI_Request> requests(static_cast<size_t>(outstanding_));
        const int pe = job_.partner();  // no other one receives
        long waits = 0;
        for (long window = 0, answers = 0; window < windows; ++window) {
            for (long slot = 0; slot < outstanding_; ++slot)
                MPI_Isend(endpoint.local + slot * stride_, size_, MPI_BYTE, pe, static_cast<int>(slot), endpoint.comm,
                          &requests[static_cast<size_t>(slot)]);
            MPI_Waitall(static_cast<int>(outstanding_), requests.data(), MPI_STATUSES_IGNORE);
            if (leaves_incomplete(window, windows))
                continue;
            for (; answers <= window; ++answers)
                MPI_Recv(nullptr, 0, MPI_BYTE, pe, kAnswerTag, endpoint.comm, MPI_STATUS_IGNORE);
            ++waits;
        }
        return waits;
    }

    // send_messages with puts.
    long put_messages(const ThreadEndpoints::Endpoint& endpoint, long windows) {
        const int pe = job_.message_pe();
        long waits = 0;
        for (long window = 0; window < windows; ++window) {
            for (long slot = 0; slot < outstanding_; ++slot) {
                char* const local = endpoint.local + slot * stride_;
                if (faulty(Fault::kGetNamedPut))
                    MPI_Get(local, size_, MPI_BYTE, pe, slot * stride_, size_, MPI_BYTE, endpoint.open);
                else
                    MPI_Put(local, size_, MPI_BYTE, pe, slot * stride_, size_, MPI_BYTE, endpoint.open);
            }
            if (leaves_incomplete(window, windows))
                continue;
            MPI_Win_flush(pe, endpoint.open);
            ++waits;
        }
        return waits;
    }

    // Whether the last word was the one that the sender tells of.
    bool receive(int thread, long windows) {
        const ThreadEndpoints::Endpoint& endpoint = endpoints_.of(thread);
        if (two_sided())
            receive_messages(endpoint, windows);
        long last[2] = {};
        MPI_Recv(last, 2, MPI_LONG, job_.partner(), kLastTag, endpoint.comm, MPI_STATUS_IGNORE);
        MPI_Win_sync(endpoint.open);
        const char* const end = endpoint.window + (outstanding_ - 1) * stride_ + size_;
        const bool ok = !last[0] || std::memcmp(end - 8, &last[1], 8) == 0;
        MPI_Send(nullptr, 0, MPI_BYTE, job_.partner(), kSeenTag, endpoint.comm);
        return ok;
    }

    void receive_messages(const ThreadEndpoints::Endpoint& endpoint, long windows) {
        std::vector<MPI_Request> requests(static_cast<size_t>(outstanding_));
        const bool any = rule_ == Rule::kTwoSidedAny;
        const int pe = any ? MPI_ANY_SOURCE : job_.partner();
        const auto post = [&] {
            for (long slot = 0; slot < outstanding_; ++slot)
                MPI_Irecv(endpoint.window + slot * stride_, size_, MPI_BYTE, pe,
                          any ? MPI_ANY_TAG : static_cast<int>(slot), endpoint.comm,
                          &requests[static_cast<size_t>(slot)]);
        };
        post();
        for (long window = 0; window < windows; ++window) {
            MPI_Waitall(static_cast<int>(outstanding_), requests.data(), MPI_STATUSES_IGNORE);
            if (window < windows - 1)
                post();
            MPI_Send(nullptr, 0, MPI_BYTE, job_.partner(), kAnswerTag, endpoint.comm);
        }
    }

    MpiJob& job_;
    const ThreadEndpoints& endpoints_;
    const Rule rule_;
    const int size_;
    const long stride_;
    const long outstanding_;
};

void run_all(MpiJob& job) {
    const ThreadEndpoints endpoints(job, largest_window(job.options()));
    Ordering(job, 1).run_all([&](const RuleName& rule, long size, long outstanding) {
        std::vector<RuleStream> streams;
        if (rule.mpi) {
            streams.push_back({rule.name, "library", "communicator",
                               std::make_unique<MpiStream>(job, endpoints, rule.rule, size, outstanding), 0});
        }
        return streams;
    });
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    MpiJob job(kOrderingName, parse_ordering_options(argc, argv), true);
    if (job.n_pes() % 2 != 0)
        job.skip(kOrderingName, "pes=" + std::to_string(job.n_pes()), "the number of PEs must be even");
    else if (job.thread_level_ok())
        run_all(job);
    else
        job.skip(kOrderingName, "threads=" + std::to_string(job.threads()), "MPI does not give MPI_THREAD_MULTIPLE");
    job.finish();
    return 0;
}

// SHMEM-MT is: the NAS Parallel Benchmark IS (Bailey and others, The NAS Parallel Benchmarks, 1991 and 1994), integer
// sort by buckets, classes S to C. One run is the whole benchmark, ten iterations that each rank all keys
// (sort.hpp); it is right when five keys have the published ranks in each and the ranks sort all keys
// (verification.hpp). Each thread of each PE counts, packs and sends keys of its own, and ranks those of its share
// of the buckets. Rates count keys ranked; a million a second is an Mop/s of the report. The phase `exchange` is what
// thread 0 spends in puts and in waits for the keys of other PEs.
#include <memory>
#include <string>
#include <vector>

#include "apps/common/memory_need.hpp"
#include "apps/common/mini_app.hpp"
#include "apps/common/npb_class.hpp"
#include "apps/is/problem.hpp"
#include "apps/is/sort.hpp"
#include "apps/is/verification.hpp"
#include "programs/common/requests.hpp"

namespace shmem_mt {
namespace {

constexpr const char* kName = "is";
constexpr int kPieces = 4;  // of the keys that are sent while others are packed, unless --pieces says

struct IsForm {
    const char* name;
    Route route;
    Requests requests;
    bool in_pieces;  // each piece is sent while the next one is packed
};

constexpr IsForm kIsForms[] = {
    {"default", Route::kDefaultContext, Requests::kNone, false},
    {"private", Route::kPrivateContext, Requests::kNone, false},
    {"pieces", Route::kPrivateContext, Requests::kNone, true},
    {"requests", Route::kPrivateContext, Requests::kMerged, true},
};

// How blocks leave a thread, and the signal behind the last of them for a PE. Nothing waits for the network before
// wait(), behind which blocks may be packed anew.
template <class Link>
class NonblockingSender {
  public:
    explicit NonblockingSender(const Link& link) : link_(link) {}

    void put(const IsSort::Block& block, int pe) { link_.put_nbi(block.dest, block.source, block.bytes, pe); }
    void order() { link_.fence(); }
    void put_and_signal(const IsSort::Block& block, Signal* signal, uint64_t value, int pe) {
        put_and_signal_nbi(link_, block.dest, block.source, block.bytes, signal, value, pe);
    }
    void wait() { link_.quiet(); }

  private:
    const Link& link_;
};

#if SHMEM_MT_HAVE_SHMEMX
template <class Link>
class RequestSender {
  public:
    explicit RequestSender(const Link& link) : link_(link) {}

    void put(const IsSort::Block& block, int pe) {
        put_nbe(link_, block.dest, block.source, block.bytes, pe, &request_);
    }
    void order() { shmemx_request_fence(&request_); }
    void put_and_signal(const IsSort::Block& block, Signal* signal, uint64_t value, int pe) {
        put_signal_nbe(link_, block.dest, block.source, block.bytes, &signal->word, value, pe, &request_);
    }
    void wait() { shmemx_request_wait(&request_); }

  private:
    const Link& link_;
    shmemx_request_t request_ = SHMEMX_REQUEST_NULL;
};
#endif

class Is final : public MiniApp {
  public:
    Is(Job& job, const IsClass& problem, const IsForm& form, int pieces, IsSort& sort, IsVerification& verification)
        : MiniApp(job, form.name,
                  {{"count", false}, {"reduce", true}, {"pack", false}, {"exchange", true}, {"rank", false}}),
          problem_(problem),
          form_(form),
          pieces_(pieces),
          sort_(sort),
          verification_(verification) {}

    void describe(Json& params) const override { params.text("class", problem_.name); }

    void explain(Json& verdict) const override {
        verdict.integer("keys", problem_.keys()).integer("tested_ranks", kIsIterations * kIsTested);
        verdict.integer("pieces", pieces_)
            .integer("buckets", sort_.buckets())
            .number("deal_imbalance", sort_.imbalance());
    }

    double work() const override { return static_cast<double>(problem_.keys()) * kIsIterations; }
    const char* unit() const override { return "keys"; }

    std::vector<Figure> figures() const override {
        return {{"total", "Mop/s", "the ten iterations", 1e-6 * work(), {}}};
    }

    // Keys, the same packed and received, and ranks of its share.
    double working_set() const override {
        return 4 * static_cast<double>(3 * problem_.keys() + problem_.range()) / job_.n_pes();
    }

    void prepare() override { sort_.prepare(pieces_); }

    void run(int thread) override {
        job_.with_link(form_.route, thread, [&](const auto& link) {
            using Link = std::decay_t<decltype(link)>;
#if SHMEM_MT_HAVE_SHMEMX
            if (form_.requests == Requests::kMerged)
                return iterate(thread, RequestSender<Link>(link));
#endif
            iterate(thread, NonblockingSender<Link>(link));
        });
    }

    void check(Checker& checker) override { verification_.check(sort_, problem_, checker); }

  private:
    enum { kCount, kReduce, kPack, kExchange, kRank };

    template <class Sender>
    void iterate(int thread, Sender sender) {
        for (int iteration = 1; iteration <= kIsIterations; ++iteration) {
            sort_.change(thread, iteration);
            spend(thread, kCount, [&] { sort_.count(thread); });
            job_.team().barrier();
            spend(thread, kCount, [&] { sort_.add_sizes(thread); });
            job_.team().barrier();
            if (thread == 0)
                spend(thread, kReduce, [&] { sort_.deal(); });
            job_.team().barrier();
            for (int piece = 0; piece < pieces_; ++piece) {
                spend(thread, kPack, [&] { sort_.pack(thread, piece); });
                spend(thread, kExchange, [&] { send(thread, piece, iteration, sender); });
            }
            job_.team().barrier();
            spend(thread, kRank, [&] { sort_.begin_ranks(thread); });
            for (int from = 0; from < job_.threads(); ++from) rank(thread, job_.me(), from);
            spend(thread, kExchange, [&] { sender.wait(); });
            rank_others(thread, iteration);
            spend(thread, kRank, [&] { sort_.end_ranks(thread, iteration); });
        }
    }

    // Threads begin with different peers.
    template <class Sender>
    void send(int thread, int piece, int iteration, Sender& sender) {
        const bool last = piece == pieces_ - 1;
        if (last && pieces_ > 1)
            sender.order();
        for (int step = 0; step < job_.n_pes() - 1; ++step) {
            const int to = (job_.me() + 1 + (step + thread) % (job_.n_pes() - 1)) % job_.n_pes();
            const IsSort::Block block = sort_.block(thread, piece, iteration, to);
            if (last)
                sender.put_and_signal(block, sort_.signal(job_.me(), thread), sort_.round(iteration), to);
            else
                sender.put(block, to);
        }
    }

    void rank_others(int thread, int iteration) {
        for (int step = 1; step < job_.n_pes(); ++step) {
            const int pe = (job_.me() - step + job_.n_pes()) % job_.n_pes();
            for (int from = 0; from < job_.threads(); ++from) {
                spend(thread, kExchange, [&] { await_signal(sort_.signal(pe, from), sort_.round(iteration)); });
                rank(thread, pe, from);
            }
        }
    }

    void rank(int thread, int pe, int from) {
        spend(thread, kRank, [&] {
            for (int piece = 0; piece < pieces_; ++piece) sort_.add_block(thread, pe, from, piece);
        });
    }

    const IsClass& problem_;
    const IsForm form_;
    const int pieces_;
    IsSort& sort_;
    IsVerification& verification_;
};

// Empty, or why the form is not there.
std::string why_not(const Job& job, const IsForm& form) {
    if (form.requests != Requests::kNone && !SHMEM_MT_HAVE_SHMEMX)
        return kNoRequests;
    return job.why_no_context(form.route);
}

void run_all(Job& job, const IsClass& problem) {
    const int most_pieces = job.options().pieces > 0 ? static_cast<int>(job.options().pieces) : kPieces;
    check_memory(job, IsSort::memory_need(problem, job.n_pes()), "--class");
    IsSort sort(job, problem, most_pieces);
    IsVerification verification(job);
    std::vector<std::unique_ptr<MiniApp>> forms;
    for (const IsForm& form : kIsForms) {
        if (!job.options().wants_op(form.name))
            continue;
        const int pieces = form.in_pieces ? most_pieces : 1;
        const std::string reason = why_not(job, form);
        if (reason.empty())
            forms.push_back(std::make_unique<Is>(job, problem, form, pieces, sort, verification));
        else
            job.skip(kName, form.name, reason);
    }
    run_forms(job, kName, forms);
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    std::vector<std::string> names;
    for (const IsForm& form : kIsForms) names.push_back(form.name);
    Options options = parse_options(argc, argv, Options(), names);
    const IsClass& problem = class_of(argv[0], options, kIsClasses);
    options.size = problem.name;  // what is said to be too large for the machine
    return run_program(kName, options, [&](Job& job) {
        if (!skips_weak(job, kName))
            run_all(job, problem);
    });
}

// SHMEM-MT alltoallv: every PE puts a block of its own size to every PE, itself included. The threads of a PE share the
// peers; each thread puts through its link and quiets; one barrier ends the exchange. Beside that, where the library has
// them, a call of one thread alone:
//   alltoallv      shmemx_alltoallv
//   alltoallv_nbe  the same, posted and waited for
//   plan           the same, recorded once and started each time
// These need no barrier: dest has to be ready when its PE calls.
//
// A block has from none to twice `size_bytes`, in steps of 8, by a rule that is drawn with --seed. All PEs know the
// rule and so the place of each block. Blocks lie in the order of the receivers at the source and of the senders at the
// target. The bandwidth is that of all blocks of all PEs together.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "programs/common/requests.hpp"
#include "programs/common/transfer_points.hpp"

namespace shmem_mt {
namespace {

constexpr const char* kName = "alltoallv";
constexpr const char* kSync = "quiet_barrier";

// The blocks of one point, in bytes.
class Blocks {
  public:
    Blocks(long seed, long mean, int n_pes) : seed_(seed), choices_(2 * (mean / 8) + 1), n_pes_(n_pes) {}

    long bytes(int from, int to) const {
        return 8 * static_cast<long>(pattern_word(seed_, from, to) % static_cast<uint64_t>(choices_));
    }

    // Where the block lies in the source of `from`, and in the dest of `to`.
    long source_offset(int from, int to) const {
        long offset = 0;
        for (int pe = 0; pe < to; ++pe) offset += bytes(from, pe);
        return offset;
    }
    long dest_offset(int from, int to) const {
        long offset = 0;
        for (int pe = 0; pe < from; ++pe) offset += bytes(pe, to);
        return offset;
    }

    long total() const {
        long sum = 0;
        for (int from = 0; from < n_pes_; ++from) sum += source_offset(from, n_pes_);
        return sum;
    }

    // What any source or dest has room for, and the word behind its end.
    static long buffer_bytes(long mean, int n_pes) { return 2 * mean * n_pes + 8; }

  private:
    const long seed_;
    const long choices_;
    const int n_pes_;
};

enum class Op { kPut, kPutNbi, kCollective, kPosted, kPlan };

constexpr struct {
    const char* name;
    Op op;
    const char* sync;
} kOps[] = {{"put", Op::kPut, kSync},
            {"put_nbi", Op::kPutNbi, kSync},
            {"alltoallv", Op::kCollective, "blocking"},
            {"alltoallv_nbe", Op::kPosted, "request_wait"},
            {"plan", Op::kPlan, "request_wait"}};

bool is_collective(Op op) {
    return op != Op::kPut && op != Op::kPutNbi;
}

// One exchange by shmemx_alltoallv. By one thread at a time.
class CollectiveExchange {
  public:
    CollectiveExchange(Job& job, char* source, char* dest, Op op, const Blocks& blocks)
        : source_(source), dest_(dest), op_(op) {
        const int me = job.me();
        const Fault fault = job.options().fault;
        const auto count = [&](int from, int to) {
            const long bytes = blocks.bytes(from, to);
            return static_cast<size_t>(bytes - (fault == Fault::kLastElementMissing && bytes > 0 ? 8 : 0));
        };
        for (int pe = 0; pe < job.n_pes(); ++pe) {
            dest_bytes_.push_back(count(pe, me));
            dest_offsets_.push_back(static_cast<size_t>(blocks.dest_offset(pe, me)));
            source_bytes_.push_back(count(me, pe));
            source_offsets_.push_back(static_cast<size_t>(blocks.source_offset(me, job.real_pe(pe))));
        }
#if SHMEM_MT_HAVE_PLANS
        if (op == Op::kPlan) {
            shmemx_request_t unused = SHMEMX_REQUEST_NULL;
            shmemx_plan_begin(&plan_);
            post(&unused);
            shmemx_plan_end(&plan_);
        }
#endif
    }
#if SHMEM_MT_HAVE_PLANS
    ~CollectiveExchange() { shmemx_plan_free(&plan_); }

    void run() {
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
        if (op_ == Op::kCollective)
            shmemx_alltoallv(SHMEM_TEAM_WORLD, dest_, dest_bytes_.data(), dest_offsets_.data(), source_,
                             source_bytes_.data(), source_offsets_.data(), 1);
        else if (op_ == Op::kPosted)
            post(&request);
        else
            shmemx_request_start(plan_, &request);
        shmemx_request_wait(&request);
    }
#else
    void run() {}
#endif
    CollectiveExchange(const CollectiveExchange&) = delete;
    CollectiveExchange& operator=(const CollectiveExchange&) = delete;

  private:
#if SHMEM_MT_HAVE_PLANS
    void post(shmemx_request_t* request) const {
        shmemx_alltoallv_nbe(SHMEM_TEAM_WORLD, dest_, dest_bytes_.data(), dest_offsets_.data(), source_,
                             source_bytes_.data(), source_offsets_.data(), 1, request);
    }

    shmemx_plan_t plan_ = SHMEMX_PLAN_NULL;
#endif
    char* const source_;
    char* const dest_;
    const Op op_;
    std::vector<size_t> dest_bytes_, dest_offsets_, source_bytes_, source_offsets_;  // by PE
};

class Exchange {
  public:
    Exchange(Job& job, char* source, char* dest, Op op, Route route, const Blocks& blocks)
        : job_(job),
          source_(source),
          dest_(dest),
          op_(op),
          route_(route),
          blocks_(blocks),
          collective_(is_collective(op) ? std::make_unique<CollectiveExchange>(job, source, dest, op, blocks)
                                        : nullptr) {
        for (int step = 1; step <= job.n_pes(); ++step) {
            const int to = (job.me() + step) % job.n_pes();
            Put put{source + blocks.source_offset(job.me(), to), dest + blocks.dest_offset(job.me(), to),
                    static_cast<size_t>(blocks.bytes(job.me(), to)), job.real_pe(to)};
            if (job.options().fault == Fault::kLastElementMissing && put.bytes > 0)
                put.bytes -= 8;
            puts_.push_back(put);
        }
    }

    // `count` exchanges; then the last word of every block is there. Collective.
    Report sample(long count) {
        const long token = job_.next_token();
        for (int to = 0; to < job_.n_pes(); ++to) mark(source_ + blocks_.source_offset(job_.me(), to), to, token);
        return run(count, [&] {
            bool ok = true;
            for (int from = 0; from < job_.n_pes(); ++from) {
                const long bytes = blocks_.bytes(from, job_.me());
                const long right = ~make_base(from, 0, token);
                const char* const end = dest_ + blocks_.dest_offset(from, job_.me()) + bytes;
                ok = ok && (bytes == 0 || std::memcmp(end - 8, &right, 8) == 0);
            }
            return ok;
        });
    }

    // Each round has other bytes; compares all of dest and the word behind its end. The first three have one exchange,
    // two, and three, the others one, so that each block that does not come is seen. Collective.
    Agreed validate() {
        Checker checker(job_.options().fault);
        const int me = job_.me();
        const uint64_t poison = 0xa5a5a5a5a5a5a5a5u;
        const long end = blocks_.dest_offset(job_.n_pes(), me);
        for (round_ = 0; round_ < kRounds; ++round_) {
            const long token = job_.next_token();
            for (int to = 0; to < job_.n_pes(); ++to)
                fill_slot(source_ + blocks_.source_offset(me, to), make_base(me, 0, token), to, blocks_.bytes(me, to));
            std::fill(dest_, dest_ + end + 8, static_cast<char>(0xa5));
            validating_ = true;
            run(round_ < 3 ? 1 + round_ : 1, [] { return true; });
            validating_ = false;
            for (int from = 0; from < job_.n_pes(); ++from) {
                checker.compare_slot(dest_ + blocks_.dest_offset(from, me), make_base(from, 0, token), me,
                                     blocks_.bytes(from, me));
            }
            checker.compare(dest_ + end, &poison, 8);
            shmem_barrier_all();
        }
        return agree_verdict(job_, checker);
    }

  private:
    static constexpr int kRounds = 8;  // of a validating pass

    struct Put {
        char* source;
        char* dest;
        size_t bytes;
        int pe;
    };

    void mark(char* block, int to, long token) const {
        const long bytes = blocks_.bytes(job_.me(), to);
        const long word = ~make_base(job_.me(), 0, token);
        if (bytes > 0)
            std::memcpy(block + bytes - 8, &word, 8);
    }

    template <class Finish>
    Report run(long count, Finish&& finish) {
        const Fault fault = job_.options().fault;
        const bool skipped = fault == Fault::kSkippedOperation || (fault == Fault::kStaleResult && round_ > 0) ||
                             (fault == Fault::kGetNamedPut && collective_);
        if (collective_)
            return run_together(
                job_,
                [&](int thread) {
                    const bool calls = thread == job_.threads() - 1;
                    if (calls && !skipped && (validating_ || !job_.idles(thread)))
                        for (long i = 0; i < count; ++i) collective_->run();
                },
                finish);
        return run_together(
            job_,
            [&](int thread) {
                const bool idle = skipped || (job_.idles(thread) && !validating_);
                job_.with_link(route_, thread, [&](const auto& link) {
                    for (long i = 0; i < count; ++i) {
                        if (!idle)
                            put_own(link, static_cast<size_t>(thread));
                        link.quiet();
                        job_.team().barrier();
                        if (thread == 0)
                            shmem_barrier_all();
                        job_.team().barrier();
                    }
                });
            },
            finish);
    }

    template <class Link>
    void put_own(const Link& link, size_t thread) const {
        for (size_t i = thread; i < puts_.size(); i += static_cast<size_t>(job_.threads())) {
            const Put& put = puts_[i];
            if (job_.options().fault == Fault::kGetNamedPut)
                link.get(put.source, put.dest, put.bytes, put.pe);
            else if (op_ == Op::kPut)
                link.put(put.dest, put.source, put.bytes, put.pe);
            else
                link.put_nbi(put.dest, put.source, put.bytes, put.pe);
        }
    }

    Job& job_;
    char* const source_;
    char* const dest_;
    const Op op_;
    const Route route_;
    const Blocks blocks_;
    const std::unique_ptr<CollectiveExchange> collective_;  // null: puts
    std::vector<Put> puts_;  // in the order of the exchange: the next PE first, itself last
    int round_ = 0;
    bool validating_ = false;
};

// An operation, and the contexts of the threads.
struct Variant {
    std::string name;
    Op op;
    const char* sync;
    Route route;
};

void print_variant(Job& job, const Variant& variant, const Blocks& blocks, long size, const Samples& samples,
                   const Agreed& verdict) {
    Json params = job.params(variant.name);
    params.integer("size_bytes", size).text("placement", "heap").text("context", context_name(variant.route));
    params.text("sync", variant.sync).integer("seed", job.options().seed).integer("total_bytes", blocks.total());
    const Agreed* const shown = job.options().validate ? &verdict : nullptr;
    std::vector<double> times, bandwidths;
    for (const double seconds : samples.seconds) {
        times.push_back(seconds / static_cast<double>(samples.count));
        bandwidths.push_back(static_cast<double>(blocks.total()) / times.back());
    }
    print_point(job, kName, params, "time", "s", times, samples, shown);
    print_point(job, kName, params, "bandwidth", "bytes/s", bandwidths, samples, shown);
}

// All variants with blocks of that size, interleaved.
void run_group(Job& job, char* source, char* dest, const std::vector<Variant>& variants, long size) {
    const Blocks blocks(job.options().seed, size, job.n_pes());
    std::vector<std::unique_ptr<Exchange>> exchanges;
    std::vector<Agreed> verdicts;
    std::vector<Body> bodies;
    for (const Variant& variant : variants) {
        exchanges.push_back(std::make_unique<Exchange>(job, source, dest, variant.op, variant.route, blocks));
        Exchange* const exchange = exchanges.back().get();
        verdicts.push_back(job.options().validate ? exchange->validate() : Agreed{});
        bodies.push_back([exchange](long count) { return exchange->sample(count); });
    }
    const std::vector<Samples> samples = measure(job, bodies);
    for (size_t i = 0; i < variants.size(); ++i) print_variant(job, variants[i], blocks, size, samples[i], verdicts[i]);
}

void run_all(Job& job) {
    const Options& options = job.options();
    std::vector<long> sizes;
    for (const long size : options.sizes) {
        if (Blocks::buffer_bytes(size, job.n_pes()) <= options.buffer_bytes)
            sizes.push_back(size);
        else
            job.skip(kName, std::to_string(size) + " bytes", "it would need buffers larger than --buffer-bytes");
    }
    if (sizes.empty())
        return;
    const long largest = Blocks::buffer_bytes(*std::max_element(sizes.begin(), sizes.end()), job.n_pes());
    char* const source = static_cast<char*>(symmetric_alloc(static_cast<size_t>(largest)));
    char* const dest = static_cast<char*>(symmetric_alloc(static_cast<size_t>(largest)));
    std::vector<Variant> variants;
    for (const Route route : wanted_routes(job, kName)) {
        for (const auto& op : kOps) {
            if (options.wants_op(op.name) && options.wants_sync(op.sync) &&
                (!is_collective(op.op) || (SHMEM_MT_HAVE_PLANS && route == Route::kDefaultContext)))
                variants.push_back({op.name, op.op, op.sync, route});
        }
    }
    if (!SHMEM_MT_HAVE_PLANS) {
        for (const auto& op : kOps) {
            if (is_collective(op.op) && options.wants_op(op.name))
                job.skip(kName, op.name, kNoPlans);
        }
    }
    for (const long size : sizes) run_group(job, source, dest, variants, size);
}

std::vector<std::string> known_ops() {
    std::vector<std::string> names;
    for (const auto& op : kOps) names.push_back(op.name);
    return names;
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    Options defaults;
    defaults.sizes = {64, 4096, 65536};
    defaults.placements = {"heap"};
    defaults.contexts = {"default", "shared", "private"};
    Job job(kName, parse_options(argc, argv, defaults, known_ops()), Pes::kAny);
    if (job.threads() > job.n_pes()) {
        job.skip(kName, "threads=" + std::to_string(job.threads()), "there are no more peers to share than PEs");
    } else if (threads_available(job, kName)) {
        run_all(job);
    }
    job.finish();
    return 0;
}

// SHMEM-MT ordering: the cost of order. Rates of puts from PE i to PE i + n/2 under rules of delivery, by size,
// messages outstanding, and mechanism. ordering_mpi.cpp measures MPI in the same way.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "programs/common/transfer_points.hpp"
#include "programs/ordering/puts.hpp"

namespace shmem_mt {
namespace {

// From this size on Heddle sends data from where it lies, and before it copies (kLargeBytes, src/fabric/stream.h).
constexpr long kLargeBytes = 32L << 10;
constexpr long kSliceBytes = kLargeBytes / 2;

bool on_node(Job& job, TransferMemory& memory) {
    Report mine;
    mine.ok = shmem_ptr(memory.window(true), job.partner()) != nullptr;
    return job.agree(mine).ok;
}

// What carries a message that the library copies.
std::string copying_mechanism() {
    const char* batch = std::getenv("HEDDLE_NET_COALESCE");
    return batch != nullptr && std::string(batch) == "0" ? "eager" : "batch";
}

void run_all(Job& job) {
    TransferMemory memory(job, largest_window(job.options()));
    auto* posts = static_cast<OrderPost*>(symmetric_alloc(sizeof(OrderPost) * static_cast<size_t>(job.threads())));
    RuleContexts contexts(job);
    if (!contexts.why_not_these_rails().empty())
        return job.skip(kOrderingName, "rails=" + std::string(std::getenv("HEDDLE_NET_RAILS")),
                        contexts.why_not_these_rails());
    const bool here = on_node(job, memory);
    for (const auto& rule : kRules)
        if (!contexts.why_not(rule.rule).empty() && job.options().wants_op(rule.name))
            job.skip(kOrderingName, rule.name, contexts.why_not(rule.rule));
    const auto stream = [&](const RuleName& rule, long size, long outstanding, const std::string& mechanism,
                            long slice) {
        return RuleStream{
            rule.name, mechanism, contexts.name(rule.rule),
            std::make_unique<OrderedPuts>(job, memory, contexts, posts, rule.rule, size, outstanding, slice), slice};
    };
    Ordering(job, contexts.rails()).run_all([&](const RuleName& rule, long size, long outstanding) {
        std::vector<RuleStream> streams;
        if (rule.mpi || !contexts.why_not(rule.rule).empty())
            return streams;
        const bool known = here || SHMEM_MT_HAVE_SHMEMX;
        const bool large = !here && known && size >= kLargeBytes;
        const std::string whole = here ? "store" : large ? "rendezvous" : known ? copying_mechanism() : "library";
        streams.push_back(stream(rule, size, outstanding, whole, 0));
        if (large && rule.rule == Rule::kRelaxed)  // beside it, what would be without that mechanism
            streams.push_back(stream(rule, size, outstanding, copying_mechanism(), kSliceBytes));
        return streams;
    });
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    Job job(kOrderingName, parse_ordering_options(argc, argv));
    if (threads_available(job, kOrderingName))
        run_all(job);
    job.finish();
    return 0;
}

// SHMEM-MT gups: operations on random words of a table that is spread over all PEs. Two applications share the table:
// the HPC Challenge's RandomAccess (Luszczek and others, Introduction to the HPC Challenge Benchmark Suite, 2005;
// updates.hpp), whose updates are atomic here, so that none may be lost; and a hash table with linear probing
// (hash_operations.hpp). --size N counts the table's words, 8 bytes each, or with --scale weak those for each thread of
// each PE. A thousand million updates a second are one GUPS.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "apps/common/mini_app.hpp"
#include "apps/common/problem_size.hpp"
#include "apps/gups/hash_operations.hpp"
#include "apps/gups/table.hpp"
#include "apps/gups/updates.hpp"
#include "programs/common/requests.hpp"

namespace shmem_mt {
namespace {

constexpr const char* kName = "gups";
constexpr Sizes kWords = {1L << 12, 1L << 22, 1L << 25, 1L << 27};

struct GupsForm {
    const char* name;
    Route route;
    InFlight in_flight;
    bool hashes;
};

constexpr GupsForm kGupsForms[] = {
    {"atomic", Route::kDefaultContext, InFlight::kSingly, false},
    {"private", Route::kPrivateContext, InFlight::kSingly, false},
    {"windowed", Route::kPrivateContext, InFlight::kBatch, false},
    {"batched", Route::kPrivateContext, InFlight::kRequest, false},
    {"hash", Route::kPrivateContext, InFlight::kSingly, true},
    {"hash_nbi", Route::kPrivateContext, InFlight::kBatch, true},
    {"hash_batched", Route::kPrivateContext, InFlight::kRequest, true},
};

// The hash table does without contexts where there are none.
Route route_of(const Job& job, const GupsForm& form) {
    return form.hashes ? job.own_route() : form.route;
}

// Empty, or why the form is not there.
std::string why_not(const Job& job, const GupsForm& form) {
    if (form.in_flight == InFlight::kRequest && !SHMEM_MT_HAVE_SHMEMX)
        return kNoRequests;
    if (form.hashes && form.in_flight == InFlight::kBatch && !SHMEM_MT_HAVE_FETCH_NBI)
        return "the library has no non-blocking atomic fetches (OpenSHMEM 1.5)";
    return job.why_no_context(route_of(job, form));
}

void run_all(Job& job, long words) {
    const GupsTable table(job, words * (is_weak(job.options()) ? workers_of(job) : 1));
    if (table.words() < HashOperations::kLeastWords)
        fail("--size " + job.options().size + " for " + std::to_string(job.n_pes()) + " PEs: the table needs " +
             std::to_string(HashOperations::kLeastWords) + " words or more on each");
    std::shared_ptr<GupsResult> result;
    std::vector<std::unique_ptr<MiniApp>> forms;
    for (const GupsForm& form : kGupsForms) {
        if (!job.options().wants_op(form.name))
            continue;
        const std::string reason = why_not(job, form);
        if (!reason.empty()) {
            job.skip(kName, form.name, reason);
            continue;
        }
        const Route route = route_of(job, form);
        if (!form.hashes && result == nullptr && job.options().validate)
            result = std::make_shared<GupsResult>(job, table);
        if (form.hashes)
            forms.push_back(std::make_unique<HashOperations>(job, form.name, route, form.in_flight, table));
        else
            forms.push_back(std::make_unique<GupsUpdates>(job, form.name, route, form.in_flight, table, result));
    }
    run_forms(job, kName, forms);
}

// Words that --size says. Ends the program when they are too few for a PE alone.
long words_of(const char* program, const Options& options) {
    const long words = size_of(options, kWords);
    if (words < HashOperations::kLeastWords) {
        usage_error(program, "--size " + options.size + ": the table needs " +
                                 std::to_string(HashOperations::kLeastWords) + " words or more");
    }
    return words;
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    std::vector<std::string> names;
    for (const GupsForm& form : kGupsForms) names.push_back(form.name);
    const Options options = parse_options(argc, argv, Options(), names);
    const long words = words_of(argv[0], options);
    return run_program(kName, options, [&](Job& job) { run_all(job, words); });
}

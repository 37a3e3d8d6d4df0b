// SHMEM-MT gups: operations on random words of a table that is spread over all PEs. Two applications share the table:
// the HPC Challenge's RandomAccess (Luszczek and others, Introduction to the HPC Challenge Benchmark Suite, 2005;
// updates.hpp), whose updates are atomic here, so that none may be lost; and a hash table with linear probing
// (hash_operations.hpp). --size N counts the table's words on each PE, 8 bytes each. A thousand million updates a
// second are one GUPS.
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
constexpr Sizes kWords = {1L << 11, 1L << 21, 1L << 24, 1L << 26};

struct GupsForm {
    const char* name;
    Route route;
    bool batched;
    bool hashes;
};

constexpr GupsForm kGupsForms[] = {
    {"atomic", Route::kDefaultContext, false, false},     {"private", Route::kPrivateContext, false, false},
    {"batched", Route::kPrivateContext, true, false},     {"hash", Route::kPrivateContext, false, true},
    {"hash_batched", Route::kPrivateContext, true, true},
};

// The hash table does without contexts where there are none.
Route route_of(const Job& job, const GupsForm& form) {
    return form.hashes ? job.own_route() : form.route;
}

std::unique_ptr<MiniApp> make_form(Job& job, const GupsForm& form, const GupsTable& table) {
    if (form.hashes)
        return std::make_unique<HashOperations>(job, form.name, route_of(job, form), form.batched, table);
    return std::make_unique<GupsUpdates>(job, form.name, form.route, form.batched, table);
}

void run_all(Job& job, long words) {
    const GupsTable table(job, words);
    std::vector<std::unique_ptr<MiniApp>> forms;
    for (const GupsForm& form : kGupsForms) {
        if (!job.options().wants_op(form.name))
            continue;
        const bool lacks = form.batched && !SHMEM_MT_HAVE_SHMEMX;
        const std::string reason = lacks ? kNoRequests : job.why_no_context(route_of(job, form));
        if (reason.empty())
            forms.push_back(make_form(job, form, table));
        else
            job.skip(kName, form.name, reason);
    }
    run_forms(job, kName, forms);
}

// Words on each PE. Ends the program when they are too few.
long words_of(const char* program, const Options& options) {
    const long words = size_of(options, kWords);
    if (words < HashOperations::kLeastWords) {
        usage_error(program, "--size " + options.size + ": the table needs " +
                                 std::to_string(HashOperations::kLeastWords) + " words or more on each PE");
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

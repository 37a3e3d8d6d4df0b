// SHMEM-MT patterns: what the whole job gets of the same cores, divided into PEs and threads in one way or another. A
// start has one division; the driver compares starts. Of each pattern and size all synchronizations (ways.hpp) and all
// contexts are measured in turns:
//   throughput  of the whole job, bytes a second; of random operations a second
//   time        of latency, a round trip of a thread with its partner, while all others do the same; of collective, a
//               sum over the vectors of all threads
// Sizes are those of a message, a face, a block or a vector, whatever the division.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "programs/common/job.hpp"
#include "programs/common/measure.hpp"
#include "programs/patterns/exchange.hpp"
#include "programs/patterns/pinning.hpp"
#include "programs/patterns/sum_of_all.hpp"

namespace shmem_mt {
namespace {

constexpr const char* kName = "patterns";

// What a start has found out once.
struct Setting {
    std::string level;
    std::string pinning;
    int callers;
    std::vector<Context> contexts;
};

// A way to do a pattern.
struct Variant {
    Sync sync;
    Context context;
};

// Says by name, each once, what is left out.
class Skips {
  public:
    explicit Skips(Job& job) : job_(job) {}

    // Whether there is something to be left out.
    bool add(const Why& why) {
        if (why && told_.insert(why.what).second)
            job_.skip(kName, why.what, why.reason);
        return static_cast<bool>(why);
    }

  private:
    Job& job_;
    std::set<std::string> told_;
};

std::vector<Variant> variants_of(Job& job, const Setting& setting, const PatternContexts& contexts, Pattern pattern,
                                 Skips& skips) {
    std::vector<Variant> variants;
    const bool is_collective = pattern == Pattern::kCollective;
    for (const auto& named : kSyncs) {
        if (is_of_collectives(named.sync) != is_collective || !job.options().wants_sync(named.name) ||
            skips.add(why_no_sync(pattern, named.sync, job.threads(), setting.level)))
            continue;
        if (is_collective)
            variants.push_back({named.sync, context_named("default")});
        for (const Context& context : is_collective ? std::vector<Context>{} : setting.contexts) {
            if (!skips.add(why_no_context(named.sync, context, job.threads(), setting.level)) &&
                !skips.add({"context=" + context.name, contexts.why_not(context)}))
                variants.push_back({named.sync, context});
        }
    }
    return variants;
}

Json params_of(Job& job, const Setting& setting, Pattern pattern, const Variant& variant, long size) {
    Json params = job.params(name_of(pattern));
    params.integer("cores", static_cast<long>(job.n_pes()) * job.threads()).integer("size_bytes", size);
    params.text("placement", "heap").text("context", variant.context.name).text("sync", name_of(variant.sync));
    return params.text("level", setting.level).text("pinning", setting.pinning);
}

void print_time(Job& job, const Json& params, const Samples& samples, const Agreed& verdict) {
    std::vector<double> times;
    for (const double seconds : samples.seconds) times.push_back(seconds / static_cast<double>(samples.count));
    print_point(job, kName, params, "time", "s", times, samples, job.options().validate ? &verdict : nullptr);
}

// `amount`: bytes or operations of a turn of the whole job.
void print_throughput(Job& job, const Json& params, const char* unit, double amount, const Samples& samples,
                      const Agreed& verdict) {
    std::vector<double> values;
    for (const double seconds : samples.seconds)
        values.push_back(amount * static_cast<double>(samples.count) / seconds);
    print_point(job, kName, params, "throughput", unit, values, samples, job.options().validate ? &verdict : nullptr);
}

// The verdict of each of these, then their samples, taken in turns.
template <class Measured>
std::vector<Samples> measure_all(Job& job, std::vector<std::unique_ptr<Measured>>& all, TimeOf time_of, double bytes,
                                 std::vector<Agreed>* verdicts) {
    std::vector<Body> bodies;
    for (const auto& one : all) {
        verdicts->push_back(job.options().validate ? one->validate() : Agreed{});
        Measured* const measured = one.get();
        bodies.push_back([measured](long count) { return measured->sample(count); });
    }
    return measure(job, bodies, time_of, std::vector<double>(all.size(), bytes));
}

void run_messages(Job& job, PatternMemory& memory, PatternContexts& contexts, const Setting& setting,
                  const Layout& layout, const std::vector<Variant>& variants) {
    std::vector<std::unique_ptr<Exchange>> all;
    for (const Variant& variant : variants)
        all.push_back(std::make_unique<Exchange>(job, memory, contexts, layout, variant.sync, variant.context));
    Report mine;
    mine.seconds = static_cast<double>(all[0]->turn_bytes());
    const double bytes = job.agree(mine).mean_seconds * job.n_pes();
    const double cores = static_cast<double>(job.n_pes()) * job.threads();
    const bool is_latency = layout.pattern == Pattern::kLatency, is_random = layout.pattern == Pattern::kRandom;
    std::vector<Agreed> verdicts;
    const std::vector<Samples> samples =
        measure_all(job, all, is_latency ? TimeOf::kSlowestPe : TimeOf::kCommonWindow, bytes / cores, &verdicts);
    for (size_t i = 0; i < variants.size(); ++i) {
        Json params = params_of(job, setting, layout.pattern, variants[i], layout.size_bytes);
        params.integer("messages", layout.shown_messages());
        params.text("touch", is_exchange(layout.pattern) ? "read" : "write-only");
        if (layout.pattern == Pattern::kHalo2d || layout.pattern == Pattern::kHalo3d) {
            const Place grid = layout.grid();
            const std::string sides = std::to_string(grid[0]) + "x" + std::to_string(grid[1]);
            params.text("grid", sides + (layout.pattern == Pattern::kHalo3d ? "x" + std::to_string(grid[2]) : ""));
        }
        if (is_latency)
            print_time(job, params, samples[i], verdicts[i]);
        else
            print_throughput(job, params, is_random ? "1/s" : "bytes/s",
                             is_random ? bytes / static_cast<double>(layout.size_bytes) : bytes, samples[i],
                             verdicts[i]);
    }
}

void run_sums(Job& job, const Setting& setting, double* source, double* dest, long size,
              const std::vector<Variant>& variants) {
    std::vector<std::unique_ptr<SumOfAll>> all;
    for (const Variant& variant : variants)
        all.push_back(std::make_unique<SumOfAll>(job, source, dest, variant.sync, size));
    std::vector<Agreed> verdicts;
    const double bytes = static_cast<double>(all[0]->bytes()) / job.threads();
    const std::vector<Samples> samples = measure_all(job, all, TimeOf::kSlowestPe, bytes, &verdicts);
    for (size_t i = 0; i < variants.size(); ++i)
        print_time(job, params_of(job, setting, Pattern::kCollective, variants[i], size), samples[i], verdicts[i]);
}

// Of these patterns and sizes, those whose buffers are not too large; says which are left out.
std::vector<Layout> layouts_of(Job& job, const Setting& setting, Skips& skips) {
    std::vector<Layout> layouts;
    for (const auto& named : kPatterns) {
        if (!job.options().wants_op(named.name) || named.pattern == Pattern::kCollective)
            continue;
        if (is_in_pairs(named.pattern) && job.n_pes() % 2 != 0 && job.n_pes() > 1) {
            skips.add({named.name, "an odd number of PEs has no pairs"});
            continue;
        }
        for (const long size : job.options().sizes) {
            const Layout layout(named.pattern, job.n_pes(), job.threads(), setting.callers, size,
                                job.options().messages);
            const std::string what = std::string(named.name) + " of " + std::to_string(size) + " bytes";
            const bool too_large = 2 * layout.inboxes() * layout.stride() > job.options().buffer_bytes;
            if (!skips.add({what, too_large ? "it would need buffers larger than --buffer-bytes" : ""}))
                layouts.push_back(layout);
        }
    }
    return layouts;
}

// Of the sizes, those of vectors of doubles that are not too large; says which are left out.
std::vector<long> vectors_of(Job& job, Skips& skips) {
    std::vector<long> sizes;
    for (const long size : job.options().sizes) {
        const std::string reason = size % 8 != 0 ? "a vector of doubles has a multiple of 8 bytes"
                                   : size > job.options().buffer_bytes
                                       ? "it would need buffers larger than --buffer-bytes"
                                       : "";
        if (!skips.add({name_of(Pattern::kCollective) + " of " + std::to_string(size) + " bytes", reason}))
            sizes.push_back(size);
    }
    return sizes;
}

void run_all(Job& job, Setting setting) {
    Skips skips(job);
    for (const std::string& name : job.options().contexts) setting.contexts.push_back(context_named(name));
    PatternContexts contexts(job, setting.contexts, setting.level == "serialized");
    const std::vector<Layout> layouts = layouts_of(job, setting, skips);
    long outbox = 8, inbox = 8, flags = 1, signals = 1;
    for (const Layout& layout : layouts) {
        outbox = std::max(outbox, layout.most_items() * layout.stride());
        inbox = std::max(inbox, layout.inboxes() * layout.stride());
        flags = std::max(flags, layout.most_items());
        signals = std::max(signals, layout.most_items() * layout.messages);
    }
    PatternMemory memory(outbox, inbox, flags, signals);
    for (const Layout& layout : layouts) {
        const std::vector<Variant> variants = variants_of(job, setting, contexts, layout.pattern, skips);
        if (!variants.empty())
            run_messages(job, memory, contexts, setting, layout, variants);
    }
    if (!job.options().wants_op(name_of(Pattern::kCollective)))
        return;
    const std::vector<long> sizes = vectors_of(job, skips);
    if (sizes.empty())
        return;
    const size_t bytes = static_cast<size_t>(*std::max_element(sizes.begin(), sizes.end())) + 16;
    auto* const source = static_cast<double*>(symmetric_alloc(bytes));
    auto* const dest = static_cast<double*>(symmetric_alloc(bytes));
    const std::vector<Variant> variants = variants_of(job, setting, contexts, Pattern::kCollective, skips);
    for (const long size : variants.empty() ? std::vector<long>{} : sizes)
        run_sums(job, setting, source, dest, size, variants);
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    Options defaults;
    defaults.sizes = {8, 65536};
    defaults.placements = {"heap"};
    defaults.contexts = {"default", "shared", "serialized", "private"};
    defaults.known_contexts = defaults.contexts;
    defaults.has_pools = true;
    defaults.level = "multiple";
    std::vector<std::string> known;
    for (const auto& pattern : kPatterns) known.push_back(pattern.name);
    Job job(kName, parse_options(argc, argv, defaults, known), Pes::kAny);
    const std::string level = job.options().level;
    const std::string what = "threads=" + std::to_string(job.threads()) + " with level=" + level;
    if (level == "single" && job.threads() > 1)
        job.skip(kName, what, "SHMEM_THREAD_SINGLE is for programs of one thread");
    else if (!job.thread_level_ok())
        job.skip(kName, what, "the library does not give that thread level");
    else
        run_all(job, {level, pin_threads(job), level == "funneled" ? 1 : job.threads(), {}});
    job.finish();
    return 0;
}

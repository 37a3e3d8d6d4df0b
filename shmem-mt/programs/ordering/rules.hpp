// The rules of the ordering study, and how streams of messages under them are measured, with OpenSHMEM and with MPI.
// The lower half of the PEs sends to the upper half, each thread its own stream. At most `outstanding` messages of a
// stream are not known to be at the target: so many are sent (a window), then completed under the rule.
//
//     relaxed          put_nbi on a context that asks for no order; quiet behind a window
//     ordered          put_nbi on a context that keeps program order; quiet behind a window
//     reorder-buffer   ordered, where the library was told to use a buffer at the target (HEDDLE_ORDER=reorder)
//     fence            put_nbi and fence each on a context without order; quiet behind a window
//     quiet            put and quiet each
//     two-sided        MPI_Isend to MPI_Irecv of the same tag; the receiver answers each window with an empty message
//     two-sided-any    two-sided, received with MPI_ANY_SOURCE and MPI_ANY_TAG
//     mpi-put          MPI_Put; MPI_Win_flush behind a window
//     mpi-put-flush    MPI_Put and MPI_Win_flush each
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "programs/common/measure.hpp"

namespace shmem_mt {

constexpr const char* kOrderingName = "ordering";

enum class Rule {
    kRelaxed,
    kOrdered,
    kReorderBuffer,
    kFence,
    kQuiet,
    kTwoSided,
    kTwoSidedAny,
    kMpiPut,
    kMpiPutFlush,
};

struct RuleName {
    const char* name;
    Rule rule;
    bool mpi;
    bool one_by_one;  // only one message is ever outstanding
};

constexpr RuleName kRules[] = {
    {"relaxed", Rule::kRelaxed, false, false},
    {"ordered", Rule::kOrdered, false, false},
    {"reorder-buffer", Rule::kReorderBuffer, false, false},
    {"fence", Rule::kFence, false, false},
    {"quiet", Rule::kQuiet, false, true},
    {"two-sided", Rule::kTwoSided, true, false},
    {"two-sided-any", Rule::kTwoSidedAny, true, false},
    {"mpi-put", Rule::kMpiPut, true, false},
    {"mpi-put-flush", Rule::kMpiPutFlush, true, true},
};

inline Options parse_ordering_options(int argc, char** argv) {
    Options defaults;
    defaults.sizes = {8, 512, 8192, 65536, 1048576};
    defaults.outstanding = {1, 8, 64, 512};
    defaults.buffer_bytes = 16L << 20;
    std::vector<std::string> known;
    for (const auto& rule : kRules) known.push_back(rule.name);
    return parse_options(argc, argv, defaults, known);
}

// Bytes of a thread's window, and of what it sends from.
inline long window_bytes(long size_bytes, long outstanding) {
    return (outstanding * std::max(8L, size_bytes) + 4095) / 4096 * 4096;
}

// The largest window that is measured with these options.
inline long largest_window(const Options& options) {
    long largest = 4096;
    for (const long size : options.sizes) {
        for (const long outstanding : options.outstanding) {
            const long bytes = window_bytes(size, outstanding);
            largest = bytes <= options.buffer_bytes ? std::max(largest, bytes) : largest;
        }
    }
    return largest;
}

class Stream {
  public:
    virtual ~Stream() = default;

    // Runs so many windows a thread; the time is up to the moment when the target has seen the last. Collective.
    virtual Report sample(long windows) = 0;

    // Sends in the way that is timed, and checks the bytes that arrived, their order where the rule keeps one, and that
    // the calls are those of the rule. Collective.
    virtual Agreed validate() = 0;
};

struct RuleStream {
    std::string rule;
    std::string mechanism;  // what carries a message: store, batch, eager, rendezvous; library: whatever it chooses
    std::string context;
    std::unique_ptr<Stream> stream;
    long slice_bytes = 0;  // a message leaves in pieces of so many bytes; 0: whole
};

class Ordering {
  public:
    // `rails`: network paths that a message without order can take.
    Ordering(Session& session, int rails) : session_(session), rails_(rails) {}

    // make(rule, size_bytes, outstanding) gives the streams of a rule: none where the library does not have it. All of
    // one size and window are interleaved.
    template <class Make>
    void run_all(Make&& make) {
        const Options& options = session_.options();
        for (const long size : options.sizes) {
            for (const long outstanding : options.outstanding) {
                if (window_bytes(size, outstanding) > options.buffer_bytes) {
                    session_.skip(kOrderingName,
                                  std::to_string(outstanding) + " messages of " + std::to_string(size) + " bytes",
                                  "their window is larger than --buffer-bytes");
                    continue;
                }
                std::vector<RuleStream> group;
                for (const auto& rule : kRules) {
                    if (!options.wants_op(rule.name) || (rule.one_by_one && outstanding > 1))
                        continue;
                    for (auto& stream : make(rule, size, outstanding)) group.push_back(std::move(stream));
                }
                run_group(size, outstanding, group);
            }
        }
    }

  private:
    void run_group(long size, long outstanding, const std::vector<RuleStream>& group) {
        const double bytes = static_cast<double>(size * outstanding);
        std::vector<Agreed> verdicts;
        std::vector<Body> bodies;
        for (const auto& one : group) {
            Stream* stream = one.stream.get();
            verdicts.push_back(session_.options().validate ? stream->validate() : Agreed{});
            bodies.push_back([stream](long windows) { return stream->sample(windows); });
        }
        std::vector<Samples> samples =
            measure(session_, bodies, TimeOf::kCommonWindow, std::vector<double>(bodies.size(), bytes));
        for (size_t i = 0; i < group.size(); ++i) {
            samples[i].count *= outstanding;
            print(group[i], size, outstanding, samples[i], session_.options().validate ? &verdicts[i] : nullptr);
        }
    }

    void print(const RuleStream& one, long size, long outstanding, const Samples& samples, const Agreed* verdict) {
        Json params = session_.params(one.rule);
        params.text("rule", one.rule).integer("size_bytes", size).integer("outstanding", outstanding);
        params.integer("rails", rails_).text("mechanism", one.mechanism).text("context", one.context);
        if (one.slice_bytes > 0)
            params.integer("slice_bytes", one.slice_bytes);
        const double messages = session_.n_pes() / 2 * session_.threads() * static_cast<double>(samples.count);
        std::vector<double> rates, bandwidths;
        for (const double seconds : samples.seconds) {
            rates.push_back(messages / seconds);
            bandwidths.push_back(messages / seconds * static_cast<double>(size));
        }
        print_point(session_, kOrderingName, params, "rate", "messages/s", rates, samples, verdict);
        print_point(session_, kOrderingName, params, "bandwidth", "bytes/s", bandwidths, samples, verdict);
    }

    Session& session_;
    const int rails_;
};

}  // namespace shmem_mt

// Faults planted on purpose (--plant-fault NAME): the first five are mistakes found in public benchmark code,
// the others break what whole exchanges and collectives do. The suite's own tests plant them one by one and require
// that the programs report valid=false. Never used in a measurement.
#pragma once

#include <string>

namespace shmem_mt {

enum class Fault {
    kNone,
    kRankAsSize,          // rank-as-size: the rank is used where the number of PEs belongs
    kPeerListIgnored,     // peer-list-ignored: everybody sends to its neighbour, whatever the pairing says
    kOnePeReduction,      // one-pe-reduction: a value of one PE is divided by the number of PEs
    kCheckNeverRuns,      // check-never-runs: the comparison returns "equal" without looking
    kGetNamedPut,         // get-named-put: the operation reported as put gets
    kSkippedOperation,    // skipped-operation: the collective is never called
    kStaleResult,         // stale-result: the collective is called once; its result stands for the later ones
    kLastElementMissing,  // last-element-missing: the collective is told one element too few
    kSkippedComputation,  // skipped-computation: what communication is to be hidden behind is never computed
    kRuleIgnored,         // rule-ignored: fence, quiet or the ordered context of the rule is left out
    kWindowIgnored,       // window-ignored: more messages are outstanding than the point says
    kLateMessage,         // late-message: the network delivers a message behind the next one
    kIdleTimedPass,       // idle-timed-pass: the loop that is timed does nothing; the validating pass is right
    kIdleThread,          // idle-thread: as idle-timed-pass, but only the last thread of each PE does nothing
    kEarlyBarrier,        // early-barrier: barriers and syncs return at once
    kForeignClocks,       // foreign-clocks: every PE counts as a host, and the clock of PE i is i * 1000 s ahead
    kLateSender,          // late-sender: PE 1 stamps the start and the end of each sample 100 s later than they are
    kLostMessage,         // lost-message: one message in seven is not sent
};

// The fault called `name`; false when there is none of that name.
inline bool fault_from_name(const std::string& name, Fault* fault) {
    static const struct {
        const char* name;
        Fault fault;
    } kNames[] = {
        {"none", Fault::kNone},
        {"rank-as-size", Fault::kRankAsSize},
        {"peer-list-ignored", Fault::kPeerListIgnored},
        {"one-pe-reduction", Fault::kOnePeReduction},
        {"check-never-runs", Fault::kCheckNeverRuns},
        {"get-named-put", Fault::kGetNamedPut},
        {"skipped-operation", Fault::kSkippedOperation},
        {"stale-result", Fault::kStaleResult},
        {"last-element-missing", Fault::kLastElementMissing},
        {"skipped-computation", Fault::kSkippedComputation},
        {"rule-ignored", Fault::kRuleIgnored},
        {"window-ignored", Fault::kWindowIgnored},
        {"late-message", Fault::kLateMessage},
        {"idle-timed-pass", Fault::kIdleTimedPass},
        {"idle-thread", Fault::kIdleThread},
        {"early-barrier", Fault::kEarlyBarrier},
        {"foreign-clocks", Fault::kForeignClocks},
        {"late-sender", Fault::kLateSender},
        {"lost-message", Fault::kLostMessage},
    };
    for (const auto& entry : kNames) {
        if (name == entry.name) {
            *fault = entry.fault;
            return true;
        }
    }
    return false;
}

}  // namespace shmem_mt

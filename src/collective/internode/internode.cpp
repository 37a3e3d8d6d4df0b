#include "collective/internode/internode.h"

#include "base/error.h"
#include "collective/internode/internode_step.h"
#include "collective/sync.h"

#include <algorithm>
#include <cstring>

namespace heddle::collective {

namespace {

// What a leader sends to another in a barrier: the combined values of all leaders that it has heard from.
struct Word {
    // The kind of barrier; kNothing when not all leaders are in a barrier of one kind. The message of another
    // collective has another length, or neither of these numbers.
    static constexpr uint32_t kBarrier = 0x7465656d, kParting = 0x74726170, kNothing = 0;

    uint32_t kind = kBarrier;
    uint32_t agree = true;
    int32_t first = INT32_MAX;
};

// Sends this leader's call to the next node, and compares the one from the node before with it.
void compare_in_ring(const team::Span& span, const InternodeStep& step, const CallComparison& mine) {
    const int from = span.leader((span.node + span.n_nodes - 1) % span.n_nodes);
    step.send(span.leader((span.node + 1) % span.n_nodes), 0, &mine.message(), sizeof(CallComparison::Shown));
    CallComparison::Shown theirs = {};
    mine.compare(theirs, step.read_any(from, 0, &theirs, sizeof theirs), step.pe(from));
}

// A barrier of the leaders (dissemination: Hensgen, Finkel, Manber 1988), which combines their Words. comparison: the
// first round, which is a ring, compares calls instead; the result then says nothing of the first round's Words.
Word leaders_barrier(const team::Span& span, const InternodeStep& step, Word mine,
                     const CallComparison* comparison = nullptr) {
    if (comparison)
        compare_in_ring(span, step, *comparison);
    for (int distance = comparison ? 2 : 1, round = comparison ? 1 : 0; distance < span.n_nodes;
         distance *= 2, ++round) {
        const int to = (span.node + distance) % span.n_nodes,
                  from = (span.node + span.n_nodes - distance) % span.n_nodes;
        const auto which = static_cast<uint32_t>(round);
        step.send(span.leader(to), which, &mine, sizeof mine);
        Word theirs = {};
        if (step.read_any(span.leader(from), which, &theirs, sizeof theirs) != sizeof theirs)
            theirs = {Word::kNothing, false, INT32_MAX};
        mine.kind = theirs.kind == mine.kind ? mine.kind : Word::kNothing;
        mine.agree = mine.agree && theirs.agree;
        mine.first = std::min(mine.first, theirs.first);
    }
    return mine;
}

}  // namespace

void internode_barrier(CollectiveCall& coll, CallComparison* comparison) {
    const InternodeStep step(coll);
    node_barrier(coll);
    if (comparison)
        comparison->compare_with_next(coll.state);
    if (is_leader(coll) && leaders_barrier(*coll.team.span, step, {}, comparison).kind != Word::kBarrier)
        base::fatal(
            coll.call.function,
            "PEs of another node leave (shmem_finalize, exit, or the end of main), or are in another collective: "
            "right would be the same collectives on all members");
    node_barrier(coll);
}

void meet(CollectiveCall& coll, const InternodeStep& step) {
    if (is_leader(coll))
        leaders_barrier(*coll.team.span, step, {});
}

void compare_nodes(CollectiveCall& coll, const CallComparison& mine) {
    const InternodeStep step(coll);
    if (is_leader(coll))
        compare_in_ring(*coll.team.span, step, mine);
}

bool all_agree(CollectiveCall& coll, bool mine) {
    if (!coll.team.span)
        return mine;
    const InternodeStep step(coll);
    bool all = mine;
    if (is_leader(coll)) {
        all = leaders_barrier(*coll.team.span, step, {Word::kBarrier, mine, INT32_MAX}).agree != 0;
        memcpy(team::next_inline_data(coll.state), &all, sizeof all);
    }
    const uint32_t published = coll.state.count + 1;
    node_barrier(coll);
    memcpy(&all, coll.state.inline_data(0, published), sizeof all);
    return all;
}

// Takes as many steps as internode_barrier, so that one of these can meet the other.
bool part(const Call& call, int32_t* first) {
    CollectiveCall coll(call, SHMEM_TEAM_WORLD, {});
    const InternodeStep step(coll);
    node_barrier(coll);
    Word word = {Word::kParting, true, *first};
    if (is_leader(coll)) {
        word = leaders_barrier(*coll.team.span, step, word);
        memcpy(team::next_inline_data(coll.state), &word, sizeof word);
    }
    const uint32_t published = coll.state.count + 1;
    node_barrier(coll);
    memcpy(&word, coll.state.inline_data(0, published), sizeof word);
    *first = word.first;
    return word.kind == Word::kParting;
}

bool is_unanimous(CollectiveCall& coll, bool mine) {
    MemberState& state = coll.state;
    memcpy(team::next_inline_data(state), &mine, sizeof mine);
    const uint32_t step = state.count + 1;
    team::barrier(coll.call, state);
    bool all = true;
    for (int rank = 0; rank < state.size(); ++rank) {
        bool theirs;
        memcpy(&theirs, state.inline_data(rank, step), sizeof theirs);
        all = all && theirs;
    }
    return all_agree(coll, all);
}

}  // namespace heddle::collective

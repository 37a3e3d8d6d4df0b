#include "collective/across.h"

#include "base/error.h"
#include "collective/step.h"
#include "collective/sync.h"

#include <algorithm>
#include <cstring>

namespace heddle::collective {

namespace {

// What a leader tells another in a barrier: what all have, of whom it has heard.
struct Word {
    // What they met in; nothing when not all are in the same. The data of another collective, read as a word, has
    // neither of these numbers.
    static constexpr uint32_t kMeeting = 0x7465656d, kParting = 0x74726170, kNothing = 0;

    uint32_t kind = kMeeting;
    uint32_t agree = true;
    int32_t first = INT32_MAX;
};

// This leader's letter goes to the node behind, and that of the node before is compared with it.
void compare_in_ring(const team::Span& span, const Step& step, const Alike& mine) {
    const int from = span.leader((span.node + span.n_nodes - 1) % span.n_nodes);
    step.send(span.leader((span.node + 1) % span.n_nodes), 0, &mine.letter(), sizeof(Alike::Shown));
    Alike::Shown theirs = {};
    mine.compare(theirs, step.read(from, 0, &theirs, sizeof theirs), step.pe(from));
}

// The leaders meet (dissemination: Hensgen, Finkel, Manber 1988), and find what was on all of them. alike: the first of
// its rounds, which is a ring, compares, too; what these say of `mine` is not asked then.
Word leaders_meet(const team::Span& span, const Step& step, Word mine, const Alike* alike = nullptr) {
    if (alike)
        compare_in_ring(span, step, *alike);
    for (int distance = alike ? 2 : 1, round = alike ? 1 : 0; distance < span.n_nodes; distance *= 2, ++round) {
        const int to = (span.node + distance) % span.n_nodes,
                  from = (span.node + span.n_nodes - distance) % span.n_nodes;
        const auto which = static_cast<uint32_t>(round);
        step.send(span.leader(to), which, &mine, sizeof mine);
        Word theirs = {};
        step.read(span.leader(from), which, &theirs, sizeof theirs);
        mine.kind = theirs.kind == mine.kind ? mine.kind : Word::kNothing;
        mine.agree = mine.agree && theirs.agree;
        mine.first = std::min(mine.first, theirs.first);
    }
    return mine;
}

}  // namespace

void meet_across(Entered& entered, Alike* alike) {
    const Step step(entered);
    meet_here(entered);
    if (alike)
        alike->compare_with_next(entered.state);
    if (is_leader(entered) && leaders_meet(*entered.team.span, step, {}, alike).kind != Word::kMeeting)
        base::fatal(
            entered.call.function,
            "PEs of another node leave (shmem_finalize, exit, or the end of main), or are in another collective: "
            "right would be the same collectives on all members");
    meet_here(entered);
}

void compare_across(Entered& entered, const Alike& mine) {
    const Step step(entered);
    if (is_leader(entered))
        compare_in_ring(*entered.team.span, step, mine);
}

bool all_agree(Entered& entered, bool mine) {
    if (!entered.team.span)
        return mine;
    const Step step(entered);
    bool all = mine;
    if (is_leader(entered)) {
        all = leaders_meet(*entered.team.span, step, {Word::kMeeting, mine, INT32_MAX}).agree != 0;
        memcpy(team::next_inline_data(entered.state), &all, sizeof all);
    }
    const uint32_t told = entered.state.count + 1;
    meet_here(entered);
    memcpy(&all, entered.state.inline_data(0, told), sizeof all);
    return all;
}

// With as many steps as meet_across has.
bool part(const Call& call, int32_t* first) {
    Entered entered(call, SHMEM_TEAM_WORLD, {});
    const Step step(entered);
    meet_here(entered);
    Word word = {Word::kParting, true, *first};
    if (is_leader(entered)) {
        word = leaders_meet(*entered.team.span, step, word);
        memcpy(team::next_inline_data(entered.state), &word, sizeof word);
    }
    const uint32_t told = entered.state.count + 1;
    meet_here(entered);
    memcpy(&word, entered.state.inline_data(0, told), sizeof word);
    *first = word.first;
    return word.kind == Word::kParting;
}

bool is_unanimous(Entered& entered, bool mine) {
    MemberState& state = entered.state;
    memcpy(team::next_inline_data(state), &mine, sizeof mine);
    const uint32_t step = state.count + 1;
    team::barrier(entered.call, state);
    bool all = true;
    for (int rank = 0; rank < state.size(); ++rank) {
        bool theirs;
        memcpy(&theirs, state.inline_data(rank, step), sizeof theirs);
        all = all && theirs;
    }
    return all_agree(entered, all);
}

}  // namespace heddle::collective

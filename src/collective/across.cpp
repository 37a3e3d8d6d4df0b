#include "collective/across.h"

#include "collective/step.h"

#include <cstring>

namespace heddle::collective {

namespace {

// This leader's letter goes to the node behind, and that of the node before is compared with it.
void compare_in_ring(const team::Span& span, const Step& step, const Alike& mine) {
    const int from = span.leader((span.node + span.n_nodes - 1) % span.n_nodes);
    step.send(span.leader((span.node + 1) % span.n_nodes), 0, &mine.letter(), sizeof(Alike::Shown));
    Alike::Shown theirs = {};
    mine.compare(theirs, step.read(from, 0, &theirs, sizeof theirs), step.pe(from));
}

// The leaders meet (dissemination: Hensgen, Finkel, Manber 1988), and find whether `mine` was on all of them. alike:
// the first of its rounds, which is a ring, compares, too; what these say of `mine` is not asked then.
bool leaders_meet(const team::Span& span, const Step& step, bool mine, const Alike* alike = nullptr) {
    if (alike)
        compare_in_ring(span, step, *alike);
    for (int distance = alike ? 2 : 1, round = alike ? 1 : 0; distance < span.n_nodes; distance *= 2, ++round) {
        const int to = (span.node + distance) % span.n_nodes,
                  from = (span.node + span.n_nodes - distance) % span.n_nodes;
        const auto which = static_cast<uint32_t>(round);
        step.send(span.leader(to), which, &mine, sizeof mine);
        unsigned char theirs = 0;  // of a PE that is in another call, any
        step.read(span.leader(from), which, &theirs, sizeof theirs);
        mine = mine && theirs != 0;
    }
    return mine;
}

}  // namespace

void meet_across(Entered& entered, Alike* alike) {
    const Step step(entered);
    meet_here(entered);
    if (alike)
        alike->compare_with_next(entered.place);
    if (is_leader(entered))
        leaders_meet(*entered.team.span, step, true, alike);
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
        all = leaders_meet(*entered.team.span, step, mine);
        memcpy(team::next_note(entered.place), &all, sizeof all);
    }
    const uint32_t told = entered.place.count + 1;
    meet_here(entered);
    memcpy(&all, entered.place.note(0, told), sizeof all);
    return all;
}

bool is_unanimous(Entered& entered, bool mine) {
    Place& place = entered.place;
    memcpy(team::next_note(place), &mine, sizeof mine);
    const uint32_t step = place.count + 1;
    team::meet(entered.call, place);
    bool all = true;
    for (int rank = 0; rank < place.size(); ++rank) {
        bool theirs;
        memcpy(&theirs, place.note(rank, step), sizeof theirs);
        all = all && theirs;
    }
    return all_agree(entered, all);
}

}  // namespace heddle::collective

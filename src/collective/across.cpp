#include "collective/across.h"

#include "collective/step.h"

#include <cstring>

namespace heddle::collective {

namespace {

// The leaders meet (dissemination: Hensgen, Finkel, Manber 1988), and find whether `mine` was on all of them.
bool leaders_meet(const team::Span& span, const Step& step, bool mine) {
    for (int distance = 1, round = 0; distance < span.n_nodes; distance *= 2, ++round) {
        const int to = (span.node + distance) % span.n_nodes,
                  from = (span.node + span.n_nodes - distance) % span.n_nodes;
        const auto which = static_cast<uint32_t>(round);
        step.send(span.leader(to), which, &mine, sizeof mine);
        bool theirs = false;
        step.read(span.leader(from), which, &theirs, sizeof theirs);
        mine = mine && theirs;
    }
    return mine;
}

}  // namespace

void meet_across(Entered& entered) {
    const Step step(entered);
    meet_here(entered);
    if (is_leader(entered))
        leaders_meet(*entered.team.span, step, true);
    meet_here(entered);
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

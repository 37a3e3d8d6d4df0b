// Teams, the interface (section 9.4): checks arguments, splits teams, then calls src/team.

#include "base/error.h"
#include "collective/collective_call.h"
#include "collective/internode/internode.h"
#include "collective/posted_group.h"
#include "context/context.h"
#include "operations/check.h"
#include "operations/order.h"
#include "runtime/runtime.h"
#include "team/team.h"

#include <heddle/constants.h>
#include <cstring>

namespace heddle::runtime {

using base::Call;
using base::fatal;
using collective::CollectiveCall;
using collective::Shape;
using team::Members;
using team::Team;

namespace {

// The team of a handle; null for SHMEM_TEAM_INVALID. Anything else ends the PE.
Team* find_team(const char* function, shmem_team_t handle) {
    operations::require_running(function);
    Team* team = team::find(handle);
    if (!team && handle != SHMEM_TEAM_INVALID)
        fatal(function, "team %p is no team: it was destroyed, or never created", static_cast<const void*>(handle));
    return team;
}

// num_contexts of the program's config, or -1 with a message.
int read_config(const char* function, const shmem_team_config_t* config, long mask) {
    if (mask & ~SHMEM_TEAM_NUM_CONTEXTS) {
        base::complain(function, "config_mask %#lx: the bits %#lx are unknown", mask, mask & ~SHMEM_TEAM_NUM_CONTEXTS);
        return -1;
    }
    if (mask == 0)
        return 0;
    if (!config) {
        base::complain(function, "config is NULL, but config_mask is %#lx: right would be a config, or 0", mask);
        return -1;
    }
    if (config->num_contexts < 0) {
        base::complain(function, "num_contexts %d is wrong: right would be 0 or more", config->num_contexts);
        return -1;
    }
    return config->num_contexts;
}

// A team that the members of a parent make together; parent members outside it take part.
struct Split {
    Members members;  // PEs of the world
    int num_contexts = 0;
};

// Makes the teams of a split. Each parent member passes the team that it is in, or any team that it is not in. False on
// every parent member when any of the teams cannot be made. *made: null unless the caller is in its team.
bool make(CollectiveCall& parent, const Split& split, Team** made) {
    team::MemberState& state = parent.state;
    const team::Part part = team::part_on_this_node(split.members);  // empty unless the caller is in its team
    const int first_rank = state.members.rank(part.first);
    // The inline data of a member in each of the two barriers.
    struct SplitStep {
        bool is_right = true;
        int segment = team::kNoSegment;
    };
    const auto barrier = [&](const SplitStep& mine) {
        memcpy(team::next_inline_data(state), &mine, sizeof mine);
        const uint32_t step = state.count + 1;
        team::barrier(parent.call, state);
        bool all_right = true;
        SplitStep of_first;
        for (int rank = 0; rank < state.size(); ++rank) {
            SplitStep inline_data;
            memcpy(&inline_data, state.inline_data(rank, step), sizeof inline_data);
            all_right &= inline_data.is_right;
            if (rank == first_rank)
                of_first = inline_data;
        }
        return SplitStep{collective::all_agree(parent, all_right), of_first.segment};
    };
    *made = nullptr;
    if (!barrier({split.num_contexts >= 0, team::kNoSegment}).is_right)
        return false;
    // After the first barrier every member has left the teams that it destroyed before: their segments are free.
    SplitStep mine;
    if (first_rank >= 0 && first_rank == state.rank) {
        mine.segment = team::take_segment(split.members, part.count);
        mine.is_right = mine.segment != team::kNoSegment;
        if (!mine.is_right) {
            const team::SegmentLimit limit = team::segment_limit(part.count);
            base::complain(parent.call.function,
                           "as many teams and active sets of %d to %d PEs are there on this node as there can be, %d: "
                           "right would be to destroy teams that are not used any more",
                           limit.from, limit.to, limit.number);
        }
    }
    const SplitStep agreed = barrier(mine);
    const bool member = split.members.rank(parent.pe(parent.rank())) >= 0;
    if (member && agreed.is_right) {
        *made = team::create(split.members, agreed.segment, split.num_contexts,
                             team::id_of_split(parent.team, split.members));
        if (!*made)
            fatal(parent.call.function, "no memory for a team");
    } else if (member && agreed.segment != team::kNoSegment) {
        team::leave_segment(agreed.segment, part.count);  // another team of the split could not be made
    }
    if (parent.team.span)
        ++parent.team.span->splits;
    return agreed.is_right;
}

shmem_team_t handle_of(const Team* team) {
    return team ? team->handle : SHMEM_TEAM_INVALID;
}

// The members with ranks start, start + stride, ... of the parent.
Members within(const Members& parent, int start, int stride, int size) {
    return {parent.list ? parent.start + start * parent.stride : parent.pe(start), parent.stride * stride, size,
            parent.list};
}

}  // namespace

int team_my_pe(const char* function, shmem_team_t handle) {
    const Team* team = find_team(function, handle);
    return team ? team->rank : -1;
}

int team_n_pes(const char* function, shmem_team_t handle) {
    const Team* team = find_team(function, handle);
    return team ? team->members.size : -1;
}

int team_get_config(const char* function, shmem_team_t handle, long config_mask, shmem_team_config_t* config) {
    const Team* team = find_team(function, handle);
    if (!team)
        return -1;
    if (config_mask & ~SHMEM_TEAM_NUM_CONTEXTS) {
        base::complain(function, "config_mask %#lx: the bits %#lx are unknown", config_mask,
                       config_mask & ~SHMEM_TEAM_NUM_CONTEXTS);
        return -1;
    }
    if (config_mask & SHMEM_TEAM_NUM_CONTEXTS) {
        operations::require_pointer(function, "config", config);
        config->num_contexts = team->num_contexts;
    }
    return 0;
}

int team_translate_pe(const char* function, shmem_team_t from, int pe, shmem_team_t to) {
    const Team* source = find_team(function, from);
    const Team* target = find_team(function, to);
    if (!source || !target || pe < 0 || pe >= source->members.size)
        return -1;
    return target->members.rank(source->members.pe(pe));
}

void* team_pointer(const char* function, shmem_team_t handle, const void* dest, int pe) {
    const Team* team = find_team(function, handle);
    if (!team || pe < 0 || pe >= team->members.size)
        return nullptr;
    return pointer(function, dest, team->members.pe(pe));
}

int team_split_strided(const Call& call, shmem_team_t parent_handle, int start, int stride, int size,
                       const shmem_team_config_t* config, long config_mask, shmem_team_t* new_team) {
    const Team* parent = find_team(call.function, parent_handle);
    operations::require_pointer(call.function, "new_team", new_team);
    *new_team = SHMEM_TEAM_INVALID;
    if (!parent)
        return -1;
    const int parent_size = parent->members.size;
    const int64_t last = start + (static_cast<int64_t>(size) - 1) * stride;
    if (size < 1 || start < 0 || start >= parent_size || last < 0 || last >= parent_size ||
        (stride == 0 && size != 1)) {
        base::complain(call.function,
                       "start %d, stride %d, size %d is no subset: right would be size >= 1, and numbers from start to "
                       "start + stride * (size - 1) within 0 to %d",
                       start, stride, size, parent_size - 1);
        return -1;
    }
    CollectiveCall coll(call, parent_handle, {{{"start", start}, {"stride", stride}, {"size", size}}});
    Team* made;
    const Members members = within(parent->members, start, size == 1 ? 1 : stride, size);
    if (!make(coll, {members, read_config(call.function, config, config_mask)}, &made))
        return -1;
    *new_team = handle_of(made);
    return 0;
}

int team_split_2d(const Call& call, shmem_team_t parent_handle, int xrange, const shmem_team_config_t* xaxis_config,
                  long xaxis_mask, shmem_team_t* xaxis_team, const shmem_team_config_t* yaxis_config, long yaxis_mask,
                  shmem_team_t* yaxis_team) {
    const Team* parent = find_team(call.function, parent_handle);
    operations::require_pointer(call.function, "xaxis_team", xaxis_team);
    operations::require_pointer(call.function, "yaxis_team", yaxis_team);
    *xaxis_team = *yaxis_team = SHMEM_TEAM_INVALID;
    if (!parent)
        return -1;
    if (xrange < 1) {
        base::complain(call.function, "xrange %d is wrong: right would be 1 or more", xrange);
        return -1;
    }
    const int size = parent->members.size, width = xrange < size ? xrange : size;
    const int x = parent->rank % width, y = parent->rank / width;
    const int row_start = y * width, row_size = size - row_start < width ? size - row_start : width;
    const int column_size = (size - x + width - 1) / width;
    CollectiveCall coll(call, parent_handle, {{{"xrange", xrange}}});
    const Split row = {within(parent->members, row_start, 1, row_size),
                       read_config(call.function, xaxis_config, xaxis_mask)};
    const Split column = {within(parent->members, x, width, column_size),
                          read_config(call.function, yaxis_config, yaxis_mask)};
    Team *made_row, *made_column;
    const bool has_rows = make(coll, row, &made_row);
    if (!has_rows || !make(coll, column, &made_column)) {  // the results agree on all members: no team or both
        if (has_rows)
            team::destroy(made_row);
        return -1;
    }
    *xaxis_team = handle_of(made_row);
    *yaxis_team = handle_of(made_column);
    return 0;
}

void team_destroy(const Call& call, shmem_team_t handle) {
    if (!operations::may_give_back(call.function))
        return;
    Team* team = find_team(call.function, handle);
    if (!team)
        return;
    if (handle == SHMEM_TEAM_WORLD || handle == SHMEM_TEAM_SHARED)
        fatal(call.function, "team is %s, which cannot be destroyed",
              handle == SHMEM_TEAM_WORLD ? "SHMEM_TEAM_WORLD" : "SHMEM_TEAM_SHARED");
    collective::require_all_posted(call, team);
    {
        const CollectiveCall coll(call, handle, {});  // in a checked run: all members are in this call
    }
    operations::settle_all(call.function);  // before the team's contexts are destroyed
    operations::complete_stores();
    context::destroy_all_of(handle);
    team::destroy(team);
}

}  // namespace heddle::runtime

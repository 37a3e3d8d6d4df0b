#include "team/team.h"

#include "base/error.h"
#include "base/invariant.h"
#include "base/settings.h"
#include "fabric/network.h"
#include "memory/peers.h"
#include "memory/symmetric.h"
#include "os/locked.h"
#include "team/team_table.h"

#include <sys/resource.h>
#include <algorithm>
#include <new>
#include <vector>

const struct heddle_team heddle_team_world = {}, heddle_team_shared = {};

namespace heddle::team {

HEDDLE_PE_LOCAL base::PePointer<Teams> teams;

namespace {

uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t x = a ^ (b + 0x9e3779b97f4a7c15 + (a << 6) + (a >> 2));  // the finalizer of splitmix64 behind it
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

uint64_t id_of(const Members& members) {
    return mix(static_cast<uint64_t>(members.pe(0)),
               mix(static_cast<uint64_t>(members.stride), static_cast<uint64_t>(members.size)));
}

// Of a team, or of a further instance of it; 0 on one node. The salt is no other id's: active sets have one, too.
uint64_t id_of_instance(const Team& team, int instance) {
    constexpr uint64_t kSalt = uint64_t{1} << 32;
    if (!team.span || instance == 0)
        return team.span ? team.span->id : 0;
    return mix(team.span->id, kSalt | static_cast<uint64_t>(instance));
}

// The members as start and stride if they are evenly spaced, otherwise as the list, which must stay valid.
Members members_of(const int* pes, int count) {
    if (count == 0)
        return {};
    const int stride = count > 1 ? pes[1] - pes[0] : 1;
    for (int i = 0; i < count; ++i)
        if (pes[i] != pes[0] + i * stride)
            return {0, 1, count, pes};
    return {pes[0], stride, count};
}

// Of the team and its further instances, in which other members may be ahead of this one.
int64_t most_waiting_in_instances(const Team& team) {
    return kInstances * static_cast<int64_t>(team.span->most_waiting());
}

void allow_control_messages(const Team& team) {
    if (!fabric::network || !team.span || team.span->is_allowed)
        return;
    fabric::network->control_inbox().allow(most_waiting_in_instances(team));
    team.span->is_allowed = true;
}

}  // namespace

void allow_control_messages() {
    allow_control_messages(teams->world);
}

size_t Span::most_waiting() const {
    size_t most = 0;
    for (int of_node = 0; of_node < n_nodes; ++of_node) most = std::max(most, static_cast<size_t>(count(of_node)));
    const size_t gathered = kBlockBytes * most * static_cast<size_t>(count(node));
    const size_t exchanged = (kShortBytes + most * sizeof(size_t)) * static_cast<size_t>(n_nodes);
    return (kStepsAhead + 1) * kPiecesBytes + 2 * std::max(gathered, exchanged);
}

namespace {

bool is_on_one_node(const Members& members) {
    for (int rank = 1; teams->nodes && rank < members.size; ++rank)
        if (teams->nodes[members.pe(rank)] != teams->nodes[members.pe(0)])
            return false;
    return true;
}

void drop_span(Team* team) {
    if (!team->span)
        return;
    if (team->span->is_allowed)
        fabric::network->control_inbox().allow(-most_waiting_in_instances(*team));
    delete[] team->span->node_of;
    delete[] team->span->members;
    delete[] team->span->begins;
    delete[] team->span->locals;
    delete team->span;
    team->span = nullptr;
}

// Fills the span of a team with members on several nodes. Nodes are numbered in the order of their first members.
void make_span(Team* team, uint64_t id) {
    const Members& members = team->members;
    const auto size = static_cast<size_t>(members.size);
    int most = 0;
    for (int rank = 0; rank < members.size; ++rank) most = std::max(most, teams->nodes[members.pe(rank)]);
    std::vector<int> number(static_cast<size_t>(most) + 1, -1);  // of a node of the job, in the team
    auto* span = new Span;
    span->node_of = new int[size];
    span->members = new int[size];
    span->begins = new int[size + 1]();
    span->locals = new int[size];
    span->id = id;
    int n_locals = 0;
    for (int rank = 0; rank < members.size; ++rank) {
        const int pe = members.pe(rank), node = teams->nodes[pe];
        int& index = number[static_cast<size_t>(node)];
        if (index < 0)
            index = span->n_nodes++;
        span->node_of[rank] = index;
        ++span->begins[index + 1];
        if (node == teams->nodes[teams->pe]) {
            span->node = index;
            span->locals[n_locals++] = pe;
        }
    }
    for (int node = 0; node < span->n_nodes; ++node) span->begins[node + 1] += span->begins[node];
    HEDDLE_INVARIANT(span->n_nodes > 1 && n_locals > 0);
    HEDDLE_INVARIANT(span->begins[span->n_nodes] == members.size);  // each member is on one node
    std::vector<int> next(span->begins, span->begins + span->n_nodes);
    for (int rank = 0; rank < members.size; ++rank)
        span->members[next[static_cast<size_t>(span->node_of[rank])]++] = rank;
    team->span = span;
    team->state.members = members_of(span->locals, n_locals);
}

// Makes the segment of a member that is alone on its node, as new; false when there is no memory.
bool make_own_segment(Team* team) {
    if (!team->own_segment)
        team->own_segment = static_cast<OwnSegment*>(std::aligned_alloc(alignof(OwnSegment), sizeof(OwnSegment)));
    if (team->own_segment)
        team->own_segment->clear();
    return team->own_segment;
}

template <class Visit>
void for_each_created(Visit visit) {
    for (Chunk* chunk = teams->chunks; chunk; chunk = chunk->next)
        for (Team& team : chunk->teams) visit(&team);
}

// Visits the team, and those of its further instances that have been used.
template <class Visit>
void for_each_instance(Team* team, Visit visit) {
    visit(team);
    for (Team* instance : team->instances)
        if (instance && instance->alive)
            visit(instance);
}

// Visits all teams of this PE that are alive.
template <class Visit>
void for_each_alive(Visit visit) {
    visit(&teams->world);
    visit(&teams->shared);
    for_each_created([&](Team* team) {
        if (team->alive)
            visit(team);
    });
    for (const auto& bucket : teams->active_sets)
        for (ActiveSet* set = bucket.load(std::memory_order_relaxed); set; set = set->next) visit(&set->team);
}

// Ends the PE where two of its teams have one id. Control messages are matched by it (fabric::ControlKey), and an id is
// a hash: that two are equal is unlikely (2^-64 for a pair), and must not mix up messages. Both members of a pair of
// PEs that could mix them up are in both teams, so each notices.
void require_own_id(const Team& team) {
    const auto compare = [&](uint64_t one, uint64_t other) {
        if (one == other)
            base::fatal("shmem_team_split",
                        "two teams over several nodes have the id %#llx: right would be other members",
                        static_cast<unsigned long long>(one));
    };
    for_each_alive([&](const Team* other) {
        for (int mine = 0; other != &team && other->span && mine < kInstances; ++mine)
            for (int theirs = 0; theirs < kInstances; ++theirs)
                compare(id_of_instance(team, mine), id_of_instance(*other, theirs));
    });
}

// What a new team over several nodes needs besides.
void admit(const Team& team) {
    if (team.span)
        require_own_id(team), allow_control_messages(team);
}

void leave_instances(Team* team) {
    team->posted = 0;
    for (Team* instance : team->instances) {
        if (!instance)
            continue;
        drop_span(instance);
        instance->alive = false;
        if (team->handle == &team->abi)  // a predefined team keeps its segment, and so its steps
            instance->state = MemberState();
    }
}

// Gives the team its members and its segment. `state` keeps its counts if the segment keeps its own.
void settle(Team* team, shmem_team_t handle, const Members& members, const TeamSegment& segment, uint64_t id) {
    leave_instances(team);
    team->alive = true;
    team->handle = handle;
    team->members = members;
    team->rank = members.rank(teams->pe);
    HEDDLE_INVARIANT_MSG(team->rank >= 0, "PE %d is no member", teams->pe);
    team->num_contexts = 0;
    team->peers = nullptr;
    team->state.members = members;
    drop_span(team);
    if (!is_on_one_node(members))
        make_span(team, id);
    team->state.segment = segment;
    team->state.rank = team->state.members.rank(teams->pe);
    HEDDLE_INVARIANT(team->state.rank >= 0 && team->state.members.size <= members.size);
    HEDDLE_INVARIANT((segment.index == kOwnSegment) <= (team->state.members.size == 1));
    team->state.barrier_algorithm = barrier_algorithm_for(team->state.members.size);
}

void close_table(Team* team) {
    for (int rank = 0; team->own_peers && rank < team->members.size; ++rank)
        if (team->own_peers[rank].heap)
            team->own_peers[rank] = {};
    team->peers = nullptr;
}

void retire(Team* team) {
    HEDDLE_INVARIANT(team != teams->free && team != &teams->world && team != &teams->shared);
    if (team->alive)
        leave_segment(team->state.segment.index, team->state.members.size);
    close_table(team);
    leave_instances(team);
    drop_span(team);
    team->alive = false;
    ++team->lives;
    team->next_free = teams->free;
    teams->free = team;
}

void return_stream_sets(Team* team) {
    if (fabric::network)
        for_each_instance(team, [](Team* one) {
            fabric::network->return_stream_sets(one->stream_sets);
            for (Helper* it = one->helpers; it; it = it->next) fabric::network->return_stream_sets(it->stream_sets);
        });
}

TeamSegment segment_of(const Team& team, int index) {
    return index == kOwnSegment ? team.own_segment->segment() : segment_at(index);
}

// A team of the same members, for the steps of a further instance.
Team* make_instance(const char* function, Team& team, int number) {
    Team*& instance = team.instances[number - 1];
    const os::Locked lock(teams->lock);
    if (!instance)
        instance = new (std::nothrow) Team;
    const int index = team.state.segment.index;
    if (!instance || (index == kOwnSegment && !make_own_segment(instance)))
        base::fatal(function, "no memory for a team's non-blocking collectives");
    const TeamSegment segment =
        index == kOwnSegment ? instance->own_segment->segment() : instance_segment_at(index, number);
    settle(instance, team.handle, team.members, segment, id_of_instance(team, number));
    return instance;
}

bool grow() {
    auto* chunk = new (std::nothrow) Chunk;
    if (!chunk)
        return false;
    chunk->next = teams->chunks;
    teams->chunks = chunk;
    for (Team& team : chunk->teams) retire(&team);
    return true;
}

// True when the handle points to a team in the pool, alive or not.
bool is_in_pool(shmem_team_t handle) {
    const os::Locked lock(teams->lock);
    for (Chunk* chunk = teams->chunks; chunk; chunk = chunk->next) {
        const auto offset =
            static_cast<size_t>(reinterpret_cast<const char*>(handle) - reinterpret_cast<char*>(chunk->teams));
        if (offset < sizeof chunk->teams)
            return offset % sizeof(Team) == 0;
    }
    return false;
}

}  // namespace

void start_teams(int pe, int n_pes, const int* nodes) {
    if (!teams)
        teams.publish(new Teams);  // pairs with team::close_peer_tables, after a fork by another thread
    teams->pe = pe;
    teams->nodes = nodes;
    const Members all = {0, 1, n_pes};
    if (teams->on_node.size == 0) {
        auto* pes = new int[static_cast<size_t>(n_pes)];  // stays valid as long as the process
        int count = 0;
        for (int i = 0; i < n_pes; ++i)
            if (!nodes || nodes[i] == nodes[pe])
                pes[count++] = i;
        teams->on_node = members_of(pes, count);
        if (!teams->on_node.list)
            delete[] pes;
    }
    HEDDLE_INVARIANT(teams->on_node.rank(pe) >= 0 && teams->on_node.size <= n_pes);
    settle(&teams->world, &heddle_team_world, all, segment_at(kWorldSegment), id_of(all));
    settle(&teams->shared, &heddle_team_shared, teams->on_node, segment_at(kSharedSegment), 0);
    claim_segment(kWorldSegment, teams->world.state.members);
    claim_segment(kSharedSegment, teams->on_node);
}

Part part_on_this_node(const Members& members) {
    Part part;
    for (int rank = 0; rank < members.size; ++rank) {
        const int pe = members.pe(rank);
        if (teams->nodes && teams->nodes[pe] != teams->nodes[teams->pe])
            continue;
        if (part.count++ == 0)
            part.first = pe;
    }
    return part;
}

uint64_t id_of_split(const Team& parent, const Members& members) {
    return parent.span ? mix(mix(parent.span->id, parent.span->splits), id_of(members)) : 0;
}

void stop_teams() {
    for_each_created([](Team* team) {
        if (!team->alive)
            return;
        return_stream_sets(team);
        retire(team);
    });
}

void close_peer_tables() {
    if (!teams)  // another thread forks while init runs; pairs with team::start_teams
        return;
    for_each_created([](Team* team) { close_table(team); });
}

Team* find(shmem_team_t handle) {
    if (handle == SHMEM_TEAM_WORLD)
        return &teams->world;
    if (handle == SHMEM_TEAM_SHARED)
        return &teams->shared;
    if (handle == SHMEM_TEAM_INVALID || (base::settings.check && !is_in_pool(handle)))
        return nullptr;
    auto* team = const_cast<Team*>(reinterpret_cast<const Team*>(handle));
    return team->alive ? team : nullptr;
}

Team* find_active_set(const char* function, int start, int log_stride, int size) {
    const Members members = {start, 1 << log_stride, size};
    std::atomic<ActiveSet*>& bucket = teams->active_sets[id_of(members) % ActiveSet::kBuckets];
    const auto find_known = [&]() -> Team* {
        // Acquire: pairs with team::find_active_set, which adds to the list below; the list only grows.
        for (ActiveSet* set = bucket.load(std::memory_order_acquire); set; set = set->next) {
            const Members& known = set->team.members;
            if (known.start == start && set->log_stride == log_stride && known.size == size)
                return &set->team;
        }
        return nullptr;
    };
    if (Team* known = find_known())
        return known;
    const os::Locked lock(teams->lock);
    if (Team* known = find_known())
        return known;
    const int segment = active_set_segment(function, members, log_stride, part_on_this_node(members).count);
    auto* set = segment != kNoSegment ? new (std::nothrow) ActiveSet : nullptr;
    if (!set || (segment == kOwnSegment && !make_own_segment(&set->team)))
        return nullptr;
    set->log_stride = log_stride;
    settle(&set->team, SHMEM_TEAM_INVALID, members, segment_of(set->team, segment), mix(id_of(members), 1));
    admit(set->team);
    set->next = bucket.load(std::memory_order_relaxed);
    bucket.store(set, std::memory_order_release);  // pairs with team::find_active_set
    return &set->team;
}

Team* create(const Members& members, int segment, int num_contexts, uint64_t id) {
    const os::Locked lock(teams->lock);
    if (!teams->free && !grow())
        return nullptr;
    Team* team = teams->free;
    if (segment == kOwnSegment && !make_own_segment(team))
        return nullptr;
    HEDDLE_INVARIANT(!team->alive && !team->span && !team->peers);  // as retire leaves it
    teams->free = team->next_free;
    team->state = MemberState();
    settle(team, &team->abi, members, segment_of(*team, segment), id);
    admit(*team);
    team->num_contexts = num_contexts;
    return team;
}

void destroy(Team* team) {
    // Ahead of the lock: this waits, and operations that go on meanwhile may look for their teams.
    return_stream_sets(team);
    const os::Locked lock(teams->lock);
    HEDDLE_INVARIANT(team->alive);  // a team is left once
    retire(team);
}

Team& next_instance(const char* function, Team& team) {
    const bool compares_all = base::settings.check && base::settings.chaos == 0;
    const int number = static_cast<int>(team.posted++ % kInstances);
    if (number == 0 || compares_all)
        return team;
    Team* const instance = team.instances[number - 1];
    return instance && instance->alive ? *instance : *make_instance(function, team, number);
}

void wait_for_posted(const char* function, Team& team) {
    if (!progress::Fiber::current())
        for_each_instance(&team, [&](const Team* instance) {
            if (instance->sequence)
                instance->sequence->wait(function);
        });
}

StepOf team_of_step(uint64_t word, bool on_this_node) {
    StepOf found;
    const os::TryLocked lock(teams->lock);  // this thread may hold the lock, and wait for an active set's segment
    if (!lock)
        return found;
    const auto look = [&](const Team& team, int instance) {
        const Team* const further = instance == 0 ? &team : team.instances[instance - 1];
        bool is_here;
        if (word & kStepOfSegment) {
            const int index = team.state.segment.index;
            is_here = on_this_node && index != kOwnSegment &&
                      word_of_segment(index_of_instance(index, instance), static_cast<uint32_t>(word)) == word;
        } else {
            is_here = team.span && Span::word_of(id_of_instance(team, instance), word) == word;
        }
        if (!found.team && is_here)
            found = {&team, instance, further ? begun(*further) : Begun()};
    };
    for_each_alive([&](const Team* team) {
        for (int instance = 0; instance < kInstances; ++instance) look(*team, instance);
    });
    return found;
}

Begun begun(const Team& team) {
    return {team.state.count, team.span ? team.span->steps : 0};
}

int32_t steps_ahead(uint64_t word, const Begun& begun) {
    if (word & kStepOfSegment)
        return static_cast<int32_t>(static_cast<uint32_t>(word) - begun.in_segment);
    constexpr int kOthers = 32 - Span::kStepBits;  // shifted out and back, the difference gets its sign
    return static_cast<int32_t>(static_cast<uint32_t>(word - begun.across) << kOthers) >> kOthers;
}

const heddle_peer* peers_of(Team* team, bool open) {
    if (team == &teams->world || (team == &teams->shared && !teams->nodes))
        return memory::symmetric->published;
    const os::Locked lock(teams->lock);
    if (team->peers)
        return team->peers;
    if (!team->own_peers) {
        // Each full table takes 128 GiB of the 128 TiB of address space. The tables beyond kFullTables, and all where
        // the address space is limited (ulimit -v), have entries for fewer numbers.
        constexpr int kFullTables = 64;
        rlimit limit;
        const bool full =
            teams->peer_tables < kFullTables && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
        team->own_peers =
            memory::make_peer_table(memory::symmetric->n_pes, full ? memory::kEveryInt : memory::kFewerBits);
        if (!team->own_peers)
            return nullptr;
        ++teams->peer_tables;
    }
    // A table without entries takes no memory.
    for (int rank = 0; open && rank < team->members.size; ++rank)
        if (const heddle_peer& peer = memory::symmetric->peers[team->members.pe(rank)]; peer.heap)
            team->own_peers[rank] = peer;
    return team->peers = team->own_peers;
}

}  // namespace heddle::team

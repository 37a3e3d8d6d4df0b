// Barriers and collectives: all members meet, and what each gets is under way until they leave.
#include <algorithm>
#include <cstring>
#include <vector>

#include "context.hpp"

using namespace metronome;

namespace {

// Element `index` of what a member brings.
template <class T>
T element(const Team& team, int rank, size_t index) {
    T value;
    const int pe = team.first + rank * team.stride;
    std::memcpy(&value, memory_of(pe) + team.members[rank].source + index * sizeof(T), sizeof(T));
    return value;
}

// Each member's dest becomes what make(rank, old) makes of its `nelems` elements.
template <class T, class Make>
int collective(shmem_team_t id, T* dest, const T* source, size_t nelems, size_t dest_nelems, Make&& make) {
    Team& team = world->teams[id];
    meet(team, settings.collective.of(sizeof(T) * nelems), kCollectiveKind, source, dest, [&](Picoseconds time) {
        std::vector<std::vector<T>> all;
        for (int rank = 0; rank < team.size; ++rank) {
            const auto* const old =
                reinterpret_cast<const T*>(memory_of(team.first + rank * team.stride) + team.members[rank].dest);
            all.emplace_back(old, old + dest_nelems);
            make(rank, all.back());
        }
        for (int rank = 0; rank < team.size; ++rank) {
            char* const here = memory_of(me) + team.members[rank].dest;
            send(team.first + rank * team.stride, here, all[static_cast<size_t>(rank)].data(), sizeof(T) * dest_nelems,
                 time);
        }
    });
    return 0;
}

template <class T>
int concatenate(shmem_team_t id, T* dest, const T* source, size_t nelems) {
    const Team& team = world->teams[id];
    const size_t all = nelems * static_cast<size_t>(team.size);
    return collective(id, dest, source, nelems, all, [&](int, std::vector<T>& result) {
        for (size_t i = 0; i < all; ++i) result[i] = element<T>(team, static_cast<int>(i / nelems), i % nelems);
    });
}

// Of the members up to `last(rank)`.
template <class T, class Combine, class Last>
int reduce(shmem_team_t id, T* dest, const T* source, size_t nelems, Combine&& combine, Last&& last) {
    const Team& team = world->teams[id];
    return collective(id, dest, source, nelems, nelems, [&](int rank, std::vector<T>& result) {
        for (size_t i = 0; i < nelems; ++i) {
            result[i] = element<T>(team, 0, i);
            for (int other = 1; other <= last(rank); ++other)
                result[i] = combine(result[i], element<T>(team, other, i));
        }
    });
}

template <class T>
T sum(T a, T b) {
    return a + b;
}

}  // namespace

void shmem_barrier_all() {
    complete(SHMEM_CTX_DEFAULT);
    meet(world->teams[0], settings.barrier.of(), kBarrierKind);
}

void shmem_sync_all() {
    meet(world->teams[0], settings.sync.of(), kSyncKind);
}

int shmem_team_sync(shmem_team_t team) {
    meet(world->teams[team], settings.sync.of(), kSyncKind);
    return 0;
}

int shmem_team_split_strided(shmem_team_t parent, int start, int stride, int size, const shmem_team_config_t*, long,
                             shmem_team_t* team) {
    meet(world->teams[parent], settings.barrier.of(), -1, nullptr, nullptr, [&](Picoseconds) {
        if (world->n_teams == kMostTeams)
            fatal("it has no room for so many teams");
        Team& made = world->teams[world->n_teams++];
        made.first = start;
        made.stride = stride;
        made.size = size;
        for (Member& member : made.members) member.task = -1;
    });
    const bool is_member = me >= start && (me - start) % stride == 0 && (me - start) / stride < size;
    *team = is_member ? world->n_teams - 1 : SHMEM_TEAM_INVALID;
    return 0;
}

void shmem_team_destroy(shmem_team_t) {}

int shmem_long_broadcast(shmem_team_t id, long* dest, const long* source, size_t nelems, int root) {
    const Team& team = world->teams[id];
    return collective(id, dest, source, nelems, nelems, [&](int, std::vector<long>& result) {
        for (size_t i = 0; i < nelems; ++i) result[i] = element<long>(team, root, i);
    });
}

int shmem_long_collect(shmem_team_t id, long* dest, const long* source, size_t nelems) {
    return concatenate(id, dest, source, nelems);
}

int shmem_long_fcollect(shmem_team_t id, long* dest, const long* source, size_t nelems) {
    return concatenate(id, dest, source, nelems);
}

int shmem_double_fcollect(shmem_team_t id, double* dest, const double* source, size_t nelems) {
    return concatenate(id, dest, source, nelems);
}

int shmem_long_alltoall(shmem_team_t id, long* dest, const long* source, size_t nelems) {
    return shmem_long_alltoalls(id, dest, source, 1, 1, nelems);
}

int shmem_long_alltoalls(shmem_team_t id, long* dest, const long* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems) {
    const Team& team = world->teams[id];
    const size_t all = nelems * static_cast<size_t>(team.size);
    const auto to_stride = static_cast<size_t>(dst), from_stride = static_cast<size_t>(sst);
    const size_t span = (all - 1) * to_stride + 1;
    return collective(id, dest, source, nelems, span, [&](int rank, std::vector<long>& result) {
        const size_t block = nelems * static_cast<size_t>(rank);
        for (size_t i = 0; i < all; ++i) {
            result[i * to_stride] =
                element<long>(team, static_cast<int>(i / nelems), (block + i % nelems) * from_stride);
        }
    });
}

int shmem_double_sum_reduce(shmem_team_t id, double* dest, const double* source, size_t nelems) {
    const int last = world->teams[id].size - 1;
    return reduce(id, dest, source, nelems, sum<double>, [=](int) { return last; });
}

int shmem_long_sum_reduce(shmem_team_t id, long* dest, const long* source, size_t nelems) {
    const int last = world->teams[id].size - 1;
    return reduce(id, dest, source, nelems, sum<long>, [=](int) { return last; });
}

int shmem_long_max_reduce(shmem_team_t id, long* dest, const long* source, size_t nelems) {
    const int last = world->teams[id].size - 1;
    return reduce(id, dest, source, nelems, [](long a, long b) { return std::max(a, b); }, [=](int) { return last; });
}

int shmem_double_sum_inscan(shmem_team_t id, double* dest, const double* source, size_t nelems) {
    return reduce(id, dest, source, nelems, sum<double>, [](int rank) { return rank; });
}

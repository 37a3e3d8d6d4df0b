// What every collective begins with: the team behind the handle, and in a checked run the comparison of what the
// members called with what. One thread per PE and team.
#pragma once

#include "base/settings.h"
#include "memory/symmetric.h"
#include "team/team.h"

#include <cstddef>
#include <cstdint>

namespace heddle::collective {

using team::Call;
using team::Members;
using team::Place;

// Who takes part: a team, or the PEs of an active set (deprecated).
struct Group {
    Group(shmem_team_t of_team) : team(of_team) {}  // NOLINT: a team is a group
    Group(int from, int log, int count, const long* sync_array)
        : is_active_set(true), start(from), log_stride(log), size(count), psync(sync_array) {}

    shmem_team_t team = SHMEM_TEAM_INVALID;
    bool is_active_set = false;
    int start = 0;
    int log_stride = 0;
    int size = 0;
    const long* psync = nullptr;
};

// What all members must pass alike, by the names that the function has for it.
struct Shape {
    struct Argument {
        const char* name = nullptr;
        int64_t value = 0;
    };
    Argument arguments[3] = {};
    const void* dest = nullptr;  // compared as offsets from the start of their region
    const void* source = nullptr;
};

// One collective operation, from entry to return. Ends the PE when the team or active set is none or lacks this PE, and
// in a checked run when members disagree.
class Entered {
  public:
    Entered(const Call& called, const Group& group, const Shape& shape) : call(called), place(place_of(called, group)) {
        if (base::settings.check)
            compare(shape);
    }
    ~Entered() {
        if (base::settings.check)
            leave();
    }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;

    const Call& call;
    Place& place;

    int size() const { return place.members.size; }
    int rank() const { return place.rank; }
    int pe(int of_rank) const { return place.members.pe(of_rank); }
    void meet() { team::meet(call, place); }

  private:
    static Place& place_of(const Call& call, const Group& group);
    void compare(Shape shape) const;
    static void leave();
};

// A symmetric buffer as this PE reaches it on each member.
class Buffer {
  public:
    // Ends the PE unless [address, address + bytes) is symmetric here; nothing is asked of a buffer of 0 bytes.
    Buffer(const Call& call, const char* argument, const void* address, size_t bytes)
        : peers_(memory::symmetric->peers) {
        const memory::Region& heap = memory::symmetric->heap;
        if (heap.holds(address) && bytes <= heap.room(address) && !base::settings.check)
            offset_ = reinterpret_cast<uintptr_t>(address) - heap.base;
        else if (bytes != 0)
            check(call, argument, address, bytes);
    }

    char* on(int world_pe) const {
        const heddle_peer& peer = peers_[world_pe];
        return (in_heap_ ? peer.heap : peer.data) + offset_;
    }

  private:
    // The rest: static data, checked runs, and complaints.
    void check(const Call& call, const char* argument, const void* address, size_t bytes);

    const heddle_peer* peers_;
    size_t offset_ = 0;
    bool in_heap_ = true;
};

// In a checked run: ends the PE when dest and source overlap without being the same.
void check_in_place(const Call& call, const void* dest, const void* source, size_t bytes);

}  // namespace heddle::collective

// The job of the metronome: memory that all its processes map, and the virtual time in it.
//
// A task is a thread of a PE. Each has a clock of its own, which only operations of the library, sleeping and looking
// at the clock advance; what the program computes takes no time. One task of the whole job runs at a time, the one that
// has the turn: whenever its clock advances, the turn goes to the ready task whose clock is least. Messages under way
// are events of the same order. So a job is the same each time it runs, whatever else the machine does, and each
// interval that a program measures is a sum of what the settings say.
//
// Whoever has the turn owns everything here; it passes by Task::turn alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "settings.hpp"

namespace metronome {

// Of non-blocking collectives of all PEs; team 0 is that of the others.
constexpr int kNonBlockingTeam = 1;

constexpr int kMostPes = 16, kMostTasks = 1024, kMostTeams = 16;
constexpr size_t kMostMessages = 1 << 16;  // under way
constexpr size_t kStaticBytes = 4u << 20;  // data and bss of the program, at most
constexpr size_t kHeapBytes = 128u << 20;  // symmetric heap of a PE
constexpr size_t kPeBytes = kStaticBytes + kHeapBytes;
constexpr size_t kArenaBytes = 64u << 20;  // what messages under way carry

enum class State { kNone, kReady, kAwaitsWord, kMeets, kAwaitsNotice, kJoins };

struct Task {
    std::atomic<uint32_t> turn;  // a futex: 1 gives the turn
    State state;
    int pe;
    int number;  // among the threads of its PE
    Picoseconds clock;
    Picoseconds busy;     // CPU time
    Picoseconds blocked;  // the clock when it was blocked
    uint64_t yielded;     // its place among those that yield; 0: it does not
    long operations;      // that move data
    // kAwaitsWord: the word in its PE's memory, and what it is compared with; kAwaitsNotice: the condition variable.
    const void* on;
    int comparison;
    bool is_signed;
    uint64_t value;
};

// Bytes for a PE, or what an atomic operation adds.
struct Message {
    Picoseconds time;
    uint64_t number;  // of two of one time the lesser comes first
    int pe;
    bool adds;
    size_t place;  // in the memory of the PE
    size_t bytes;
    size_t payload;  // in the arena
};

struct Member {
    uint64_t arrivals;
    Picoseconds clock;  // at the last one
    int task;           // that is blocked in it; -1: none
    size_t source, dest;
};

struct Team {
    int first, stride, size;
    Member members[kMostPes];
};

struct Pe {
    std::atomic<uint32_t> left;  // it has finalized
    long messages;               // that the planted fault counts
    long meetings;
    Picoseconds busy;  // of threads that have ended
};

struct alignas(4096) World {  // the memory of PE 0 is behind it
    int n_pes;
    std::atomic<uint32_t> started;  // PEs; a futex
    int n_tasks;                    // no task beyond has ever been
    uint64_t yields;
    uint64_t fruitless;  // yields since something else happened
    uint64_t numbers;    // of messages
    size_t under_way;
    uint64_t arena_head, arena_tail;
    int n_teams;
    Pe pes[kMostPes];
    Team teams[kMostTeams];
    Task tasks[kMostTasks];           // of PE i the first is i
    Message messages[kMostMessages];  // a heap, the next one first
    alignas(64) char arena[kArenaBytes];
};

inline size_t world_bytes(int n_pes) {
    return sizeof(World) + kPeBytes * static_cast<size_t>(n_pes);
}

extern World* world;  // null: this process is no PE, or not yet
extern int me;        // this PE
extern const Settings settings;
extern Picoseconds outside_clock;  // of this process before init and after finalize
extern thread_local Task* self;    // null: outside of the job, before init, after finalize

// This process becomes a task of the job. Collective.
void enter();

// For good.
void leave();

// The caller's clock goes on by so much, of which its CPU was busy or idle.
void spend(Picoseconds time);
void sleep(Picoseconds time);

// The caller's clock goes on to `time` or is later.
void reach(Picoseconds time);

// Of an operation that moves data.
void spend_moving(const Cost& cost, size_t bytes);

// Lets others run, as long as any can.
void yield();

// Blocked until another task wakes it up, or (await) the word compares as is said.
void block(State state, const void* on);
void wake(Task& task, Picoseconds time);
// Wakes the tasks of this PE that are blocked like that, or the first of them.
void wake_blocked(State state, const void* on, bool all = true);
void await(const void* word, int comparison, bool is_signed, uint64_t value);
bool compares(uint64_t word, int comparison, bool is_signed, uint64_t value);

// A task of this PE runs what is to be done, and has then gone. Returns what to join it with.
struct Helper;
Helper* start_helper(std::function<void()> todo);
void join_helper(Helper* helper);

// What a thread of this PE is: a task that is ready when its creator's clock is what it is now.
Task* make_task();
void give_turn(Task* task);
void take_turn(Task* task);
void end_task();

// The message is at its target at `time`, unless a fault is planted.
void send(int pe, void* dest, const void* data, size_t bytes, Picoseconds time, bool adds = false);

// A word of that PE has just changed, otherwise than by a message.
void notify(int pe);

// What this process is to do at `time` or soon after.
void later(Picoseconds time, std::function<void()> todo);

// Whether this message, of those that have as many bytes as the planted fault wants, is one that goes wrong.
bool goes_wrong(size_t bytes);

// All members of the team meet. The last one that comes calls move(time), and all leave at that time, which is `cost`
// later. `source` and `dest` are what each brings. `kind`: which planted fault (early) it can have; -1: none.
void meet(Team& team, Picoseconds cost, int kind, const void* source = nullptr, void* dest = nullptr,
          const std::function<void(Picoseconds)>& move = nullptr);
constexpr int kBarrierKind = 0, kSyncKind = 1, kCollectiveKind = 2;

// Virtual time as this process sees it, and the CPU time of all its threads.
Picoseconds now();
Picoseconds busy();

// The address of the symmetric object of this PE in the memory of another.
char* at(const void* symmetric, int pe);
size_t place_of(const void* symmetric);
char* memory_of(int pe);

}  // namespace metronome

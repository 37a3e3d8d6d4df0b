// The turn, virtual time, messages and meetings (world.hpp).
#include "world.hpp"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace metronome {

const Settings settings;
thread_local Task* self;

namespace {

constexpr uint64_t kMostFruitless = 1 << 20;

struct Later {
    Picoseconds time;
    std::function<void()> todo;
};
std::vector<Later> laters;

void futex_wait(std::atomic<uint32_t>& word, uint32_t value) {
    syscall(SYS_futex, &word, FUTEX_WAIT, value, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word) {
    syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

template <class F>
void for_tasks(F&& f) {
    for (int i = 0; i < world->n_tasks; ++i) f(world->tasks[i]);
}

// ---- payloads ----

struct Block {
    size_t bytes;  // with this header
    bool done;
};

Block& block_at(uint64_t position) {
    return *reinterpret_cast<Block*>(world->arena + position % kArenaBytes);
}

size_t allocate(size_t bytes) {
    const size_t whole = (sizeof(Block) + bytes + 63) / 64 * 64;
    const size_t to_end = kArenaBytes - world->arena_head % kArenaBytes;
    const size_t unused = to_end < whole ? to_end : 0;
    if (whole > kArenaBytes || world->arena_head + unused + whole - world->arena_tail > kArenaBytes)
        fatal("more bytes are under way than it has room for");
    if (unused > 0) {
        block_at(world->arena_head) = {unused, true};
        world->arena_head += unused;
    }
    block_at(world->arena_head) = {whole, false};
    const size_t payload = world->arena_head % kArenaBytes;
    world->arena_head += whole;
    return payload;
}

void release(size_t payload) {
    reinterpret_cast<Block*>(world->arena + payload)->done = true;
    while (world->arena_tail < world->arena_head && block_at(world->arena_tail).done)
        world->arena_tail += block_at(world->arena_tail).bytes;
}

char* bytes_of(size_t payload) {
    return world->arena + payload + sizeof(Block);
}

// ---- messages ----

bool comes_later(const Message& a, const Message& b) {
    return a.time != b.time ? a.time > b.time : a.number > b.number;
}

void enqueue(int pe, size_t place, const char* data, size_t bytes, Picoseconds time, bool adds) {
    if (world->under_way == kMostMessages)
        fatal("more messages are under way than it has room for");
    const size_t payload = allocate(bytes);
    std::memcpy(bytes_of(payload), data, bytes);
    world->messages[world->under_way++] = {time, ++world->numbers, pe, adds, place, bytes, payload};
    std::push_heap(world->messages, world->messages + world->under_way, comes_later);
}

void wake_waiters(int pe, Picoseconds time) {
    for_tasks([&](Task& task) {
        if (task.state != State::kAwaitsWord || task.pe != pe)
            return;
        uint64_t word;
        std::memcpy(&word, memory_of(pe) + reinterpret_cast<size_t>(task.on), 8);
        if (compares(word, task.comparison, task.is_signed, task.value))
            wake(task, time + settings.wait.of());
    });
}

void deliver_first() {
    std::pop_heap(world->messages, world->messages + world->under_way, comes_later);
    const Message message = world->messages[--world->under_way];
    char* const dest = memory_of(message.pe) + message.place;
    if (message.adds) {
        uint64_t value, more;
        std::memcpy(&value, dest, 8);
        std::memcpy(&more, bytes_of(message.payload), 8);
        value += more;
        std::memcpy(dest, &value, 8);
    } else {
        std::memcpy(dest, bytes_of(message.payload), message.bytes);
    }
    release(message.payload);
    wake_waiters(message.pe, message.time);
    world->fruitless = 0;
}

// ---- the turn ----

bool runs_before(const Task& a, const Task& b) {
    if (a.clock != b.clock)
        return a.clock < b.clock;
    return a.yielded != b.yielded ? a.yielded < b.yielded : &a < &b;
}

[[noreturn]] void stuck() {
    std::string what = "nobody can go on";
    for_tasks([&](const Task& task) {
        static const char* const kStates[] = {"", "ready", "waits for a word", "meets", "waits for a notice", "joins"};
        if (task.state != State::kNone)
            what += ", PE " + std::to_string(task.pe) + " " + kStates[static_cast<int>(task.state)];
    });
    fatal(what);
}

// The task whose turn is next; null: all have ended.
Task* choose() {
    for (;;) {
        Task* best = nullptr;
        bool any = false;
        for_tasks([&](Task& task) {
            any = any || task.state != State::kNone;
            if (task.state == State::kReady && (best == nullptr || runs_before(task, *best)))
                best = &task;
        });
        const bool delivers = world->under_way > 0 && (best == nullptr || world->messages[0].time <= best->clock);
        if (delivers)
            deliver_first();
        else if (best != nullptr || !any)
            return best;
        else
            stuck();
    }
}

void do_laters() {
    for (size_t i = 0; i < laters.size();) {
        if (laters[i].time > self->clock) {
            ++i;
            continue;
        }
        const std::function<void()> todo = std::move(laters[i].todo);
        laters.erase(laters.begin() + static_cast<long>(i));
        todo();
    }
}

void pass_turn() {
    Task* const own = self;
    Task* const next = choose();
    if (next != own) {
        give_turn(next);
        take_turn(own);
    }
    if (!laters.empty())
        do_laters();
}

}  // namespace

// ---- tasks ----

void give_turn(Task* task) {
    task->turn.store(1, std::memory_order_release);  // pairs with take_turn
    futex_wake(task->turn);
}

Task* make_task() {
    int number = 0;
    for_tasks([&](const Task& task) { number += task.state != State::kNone && task.pe == me; });
    for (int i = world->n_pes; i < kMostTasks; ++i) {
        Task& task = world->tasks[i];
        if (task.state != State::kNone)
            continue;
        world->n_tasks = std::max(world->n_tasks, i + 1);
        task.turn.store(0, std::memory_order_relaxed);
        task.state = State::kReady;
        task.pe = me;
        task.number = number;
        task.clock = self->clock;
        task.busy = task.operations = 0;
        task.yielded = 0;
        return &task;
    }
    fatal("it has no room for so many threads");
}

void take_turn(Task* task) {
    while (task->turn.load(std::memory_order_acquire) == 0) futex_wait(task->turn, 0);  // pairs with give_turn
    task->turn.store(0, std::memory_order_relaxed);
    self = task;
}

void end_task() {
    world->pes[me].busy += self->busy;
    self->state = State::kNone;
    self = nullptr;
    if (Task* const next = choose())
        give_turn(next);
}

// ---- time ----

void spend(Picoseconds time) {
    self->busy += time;
    sleep(time);
}

void sleep(Picoseconds time) {
    self->clock += time;
    world->fruitless = 0;
    pass_turn();
}

void reach(Picoseconds time) {
    if (time > self->clock)
        spend(time - self->clock);
}

void spend_moving(const Cost& cost, size_t bytes) {
    Picoseconds time = cost.of(bytes) + self->number * settings.thread.of();
    if (settings.mode_every > 0 && ++self->operations % settings.mode_every == 0)
        time = std::llround(static_cast<double>(time) * settings.mode_factor);
    spend(time);
}

void yield() {
    if (++world->fruitless > kMostFruitless)
        stuck();
    Picoseconds next = INT64_MAX;
    for_tasks([&](const Task& task) {
        if (task.state == State::kReady && task.yielded == 0 && &task != self)
            next = std::min(next, task.clock);
    });
    if (world->under_way > 0)
        next = std::min(next, world->messages[0].time);
    if (next != INT64_MAX && next > self->clock) {
        self->busy += next - self->clock;
        self->clock = next;
    }
    self->yielded = ++world->yields;
    pass_turn();
    self->yielded = 0;
}

void block(State state, const void* on) {
    self->state = state;
    self->on = on;
    self->blocked = self->clock;
    pass_turn();
}

void wake(Task& task, Picoseconds time) {
    task.clock = std::max(task.clock, time);
    task.busy += std::min(task.clock - task.blocked, settings.awake.of());
    task.state = State::kReady;
    world->fruitless = 0;
}

void wake_blocked(State state, const void* on, bool all) {
    bool more = true;
    for_tasks([&](Task& task) {
        if (!more || task.state != state || task.pe != me || task.on != on)
            return;
        wake(task, self->clock);
        more = all;
    });
}

bool compares(uint64_t word, int comparison, bool is_signed, uint64_t value) {
    const bool less = is_signed ? static_cast<int64_t>(word) < static_cast<int64_t>(value) : word < value;
    switch (comparison) {
        case 0:
            return word == value;
        case 1:
            return word != value;
        case 2:
            return !less && word != value;
        case 3:
            return !less;
        case 4:
            return less;
        default:
            return less || word == value;
    }
}

void await(const void* word, int comparison, bool is_signed, uint64_t value) {
    uint64_t seen;
    std::memcpy(&seen, word, 8);
    if (compares(seen, comparison, is_signed, value))
        return spend(settings.wait.of());
    self->comparison = comparison;
    self->is_signed = is_signed;
    self->value = value;
    block(State::kAwaitsWord, reinterpret_cast<const void*>(place_of(word)));
}

Picoseconds now() {
    if (self == nullptr)
        return outside_clock += settings.look.of();
    spend(settings.look.of());
    return self->clock;
}

Picoseconds busy() {
    if (self == nullptr)
        return outside_clock += settings.look.of();
    spend(settings.look.of());
    Picoseconds sum = world->pes[me].busy;
    for_tasks([&](const Task& task) {
        if (task.state != State::kNone && task.pe == me)
            sum += task.busy;
    });
    return sum;
}

// ---- data ----

bool goes_wrong(size_t bytes) {
    if (settings.fault == Fault::kNone || settings.fault == Fault::kEarly)
        return false;
    if (settings.fault_bytes != 0 && settings.fault_bytes != bytes)
        return false;
    return ++world->pes[me].messages % settings.fault_every == 0;
}

void send(int pe, void* dest, const void* data, size_t bytes, Picoseconds time, bool adds) {
    const size_t place = place_of(dest);
    const auto* const from = static_cast<const char*>(data);
    const Picoseconds late = time + settings.late.of();
    if (!goes_wrong(bytes))
        return enqueue(pe, place, from, bytes, time, adds);
    switch (settings.fault) {
        case Fault::kDouble:
            enqueue(pe, place, from, bytes, time, adds);
            return enqueue(pe, place, from, bytes, late, adds);
        case Fault::kTear:
            if (adds)
                return enqueue(pe, place, from, bytes, late, adds);
            enqueue(pe, place, from, bytes / 2, time, adds);
            return enqueue(pe, place + bytes / 2, from + bytes / 2, bytes - bytes / 2, late, adds);
        case Fault::kLate:
            return enqueue(pe, place, from, bytes, late, adds);
        default:
            return;
    }
}

void notify(int pe) {
    wake_waiters(pe, self->clock);
}

void later(Picoseconds time, std::function<void()> todo) {
    laters.push_back({time, std::move(todo)});
}

void meet(Team& team, Picoseconds cost, int kind, const void* source, void* dest,
          const std::function<void(Picoseconds)>& move) {
    Member& mine = team.members[(me - team.first) / team.stride];
    ++mine.arrivals;
    mine.clock = self->clock;
    mine.source = source ? place_of(source) : 0;
    mine.dest = dest ? place_of(dest) : 0;
    const bool early = settings.fault == Fault::kEarly && kind == static_cast<int>(settings.fault_bytes) &&
                       ++world->pes[me].meetings % settings.fault_every == 0;
    Picoseconds last = 0;
    bool all = true;
    for (int i = 0; i < team.size; ++i) {
        last = std::max(last, team.members[i].clock);
        all = all && team.members[i].arrivals >= mine.arrivals;
    }
    const auto leaves = [&](int pe) { return last + cost + pe * settings.skew.of(); };
    if (all && move)
        move(last + cost);
    for (int i = 0; all && i < team.size; ++i) {
        Member& member = team.members[i];
        if (member.task < 0 || member.arrivals > mine.arrivals)
            continue;
        wake(world->tasks[member.task], leaves(team.first + i * team.stride));
        member.task = -1;
    }
    if (early)
        return spend(cost);
    if (all)
        return reach(leaves(me));
    mine.task = static_cast<int>(self - world->tasks);
    block(State::kMeets, nullptr);
}

}  // namespace metronome

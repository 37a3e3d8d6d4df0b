// What programs use of the C library to tell the time, to sleep and to wait for threads, in virtual time. Processes
// that oshrun has not started, and threads outside of the job, get the C library's own.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "world.hpp"

using namespace metronome;

namespace {

constexpr Picoseconds kSecond = 1000000000000, kNanosecond = 1000;
constexpr long kEpochSeconds = 1000;  // no time is 0

// A thread that this PE has started.
struct Thread {
    Task* task;
    void* (*run)(void*);
    void* argument;
    bool has_ended;
    Picoseconds end;
};
std::map<pthread_t, Thread*> threads;

template <class Function>
Function* real(Function*, const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool is_pe() {
    static const bool is = std::getenv("METRONOME_WORLD") != nullptr;
    return is;
}

void* run_thread(void* argument) {
    auto* const thread = static_cast<Thread*>(argument);
    take_turn(thread->task);
    void* const result = thread->run(thread->argument);
    thread->has_ended = true;
    thread->end = self->clock;
    wake_blocked(State::kJoins, thread);
    end_task();
    return result;
}

int sleep_for(const timespec* time) {
    metronome::sleep(time->tv_sec * kSecond + time->tv_nsec * kNanosecond);
    return 0;
}

}  // namespace

// A thread that runs what is to be done. Its CPU time is nobody's.
struct metronome::Helper {
    pthread_t id;
    std::function<void()> todo;
};

metronome::Helper* metronome::start_helper(std::function<void()> todo) {
    auto* const helper = new Helper{0, std::move(todo)};
    const auto run = [](void* argument) -> void* {
        static_cast<Helper*>(argument)->todo();
        self->busy = 0;
        return nullptr;
    };
    pthread_create(&helper->id, nullptr, run, helper);
    return helper;
}

void metronome::join_helper(Helper* helper) {
    pthread_join(helper->id, nullptr);
    delete helper;
}

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
    static const auto others = real(&clock_gettime, "clock_gettime");
    if (!is_pe() || (clock != CLOCK_MONOTONIC && clock != CLOCK_PROCESS_CPUTIME_ID))
        return others(clock, time);
    const Picoseconds value = clock == CLOCK_MONOTONIC ? now() : busy();
    time->tv_sec = kEpochSeconds + value / kSecond;
    time->tv_nsec = value % kSecond / kNanosecond;
    return 0;
}

// A byte's way through two pipes, where it comes out of one.
ssize_t read(int fd, void* bytes, size_t most) {
    static const auto others = real(&read, "read");
    const ssize_t count = others(fd, bytes, most);
    struct stat status;
    if (self != nullptr && fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode))
        spend(2 * settings.pipe.of());
    return count;
}

int nanosleep(const timespec* time, timespec* rest) {
    static const auto others = real(&nanosleep, "nanosleep");
    return self ? sleep_for(time) : others(time, rest);
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* rest) {
    static const auto others = real(&clock_nanosleep, "clock_nanosleep");
    return self && flags == 0 ? sleep_for(time) : others(clock, flags, time, rest);
}

int usleep(useconds_t microseconds) {
    const timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000L};
    return nanosleep(&time, nullptr);
}

int sched_yield() noexcept {
    static const auto others = real(&sched_yield, "sched_yield");
    if (self == nullptr)
        return others();
    yield();
    return 0;
}

int pthread_create(pthread_t* id, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) noexcept {
    static const auto others = real(&pthread_create, "pthread_create");
    if (self == nullptr)
        return others(id, attributes, run, argument);
    auto* const thread = new Thread{make_task(), run, argument, false, 0};
    if (others(id, attributes, run_thread, thread) != 0)
        fatal("a thread cannot be started");
    threads[*id] = thread;
    return 0;
}

int pthread_join(pthread_t id, void** result) {
    static const auto others = real(&pthread_join, "pthread_join");
    const auto found = threads.find(id);
    if (self != nullptr && found != threads.end()) {
        Thread* const thread = found->second;
        if (!thread->has_ended)
            block(State::kJoins, thread);
        self->clock = std::max(self->clock, thread->end);
        threads.erase(found);
        delete thread;
    }
    return others(id, result);
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
    static const auto others = real(&pthread_cond_wait, "pthread_cond_wait");
    if (self == nullptr)
        return others(condition, mutex);
    pthread_mutex_unlock(mutex);
    block(State::kAwaitsNotice, condition);
    return pthread_mutex_lock(mutex);
}

int pthread_cond_signal(pthread_cond_t* condition) noexcept {
    static const auto others = real(&pthread_cond_signal, "pthread_cond_signal");
    if (self == nullptr)
        return others(condition);
    wake_blocked(State::kAwaitsNotice, condition, false);
    return 0;
}

int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
    static const auto others = real(&pthread_cond_broadcast, "pthread_cond_broadcast");
    if (self == nullptr)
        return others(condition);
    wake_blocked(State::kAwaitsNotice, condition);
    return 0;
}

// Enough cores for all tasks, wherever the tests run, and to be bound to one costs nothing.
int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t* set) noexcept {
    static const auto others = real(&sched_getaffinity, "sched_getaffinity");
    if (!is_pe())
        return others(pid, bytes, set);
    std::memset(set, 0xff, bytes);
    return 0;
}

int sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t* set) noexcept {
    static const auto others = real(&sched_setaffinity, "sched_setaffinity");
    return is_pe() ? 0 : others(pid, bytes, set);
}

// Of programs/progress/computation.hpp.
void metronome_compute(long units) {
    if (self != nullptr)
        spend(units * settings.compute.of());
}

}  // extern "C"

/* Of shmem.hpp: coroutines that wait for requests, and what carries them out in one thread.
 *
 *     shmem::task send(int pe) {
 *         shmem::request req;
 *         shmem::context_ref().put(dest, source, pe, req);
 *         co_await req;            // other tasks of the executor go on meanwhile
 *     }
 *     shmem::executor tasks;
 *     tasks.spawn(send(1));
 *     tasks.run();                 // until all are done
 *
 * A task begins when the executor runs it, or when another task co_awaits it. Where no task can go on, run() sleeps in
 * shmemx_request_wait_any. Tasks of one executor never run at the same time. Members of a team that post collectives
 * from tasks see to the same order on all of them. */
#ifndef HEDDLE_CPP_COROUTINE_HPP
#define HEDDLE_CPP_COROUTINE_HPP

#include <heddle/cpp/base.hpp>

#include <coroutine>
#include <deque>
#include <vector>

namespace shmem {

class task;

/* Carries out tasks, in the thread that calls run(). */
class executor {
  public:
    executor() = default;
    executor(const executor&) = delete;
    executor& operator=(const executor&) = delete;
    inline ~executor();

    inline void spawn(task one);
    /* Returns when all tasks are done. What a task throws is thrown here; the next call goes on with the others. */
    inline void run();

  private:
    friend class task;
    struct waiting {
        request* of;
        std::coroutine_handle<> who;
    };

    void resume_ready() {
        for (size_t now = ready_.size(); now > 0; --now) {
            const std::coroutine_handle<> next = ready_.front();
            ready_.pop_front();
            next.resume();
        }
    }
    void wake_all_of(const request* of) {
        std::erase_if(waiting_, [&](const waiting& one) {
            if (one.of == of)
                ready_.push_back(one.who);
            return one.of == of;
        });
    }
    /* Those whose request is complete can go on: at least one, if no other task can. */
    void wake() {
        while (!waiting_.empty()) {
            handles_.clear();
            for (const waiting& one : waiting_) handles_.push_back(*one.of->handle());
            const size_t n = handles_.size();
            const auto ended = std::find(handles_.begin(), handles_.end(), SHMEMX_REQUEST_NULL);
            const size_t which = ended != handles_.end() ? static_cast<size_t>(ended - handles_.begin())
                                 : ready_.empty()        ? ::shmemx_request_wait_any(n, handles_.data())
                                                         : ::shmemx_request_test_any(n, handles_.data());
            if (which == SIZE_MAX)
                return;
            request* const complete = waiting_[which].of;
            *complete->handle() = handles_[which];
            wake_all_of(complete);
        }
    }
    inline void end_tasks();

    std::deque<std::coroutine_handle<>> ready_;
    std::vector<waiting> waiting_;
    std::vector<shmemx_request_t> handles_;
    std::vector<task> tasks_;
};

/* What a coroutine returns. Its frame lives as long as the task, or in an executor until it has ended. */
class [[nodiscard]] task {
  public:
    struct promise_type;
    using handle_type = std::coroutine_handle<promise_type>;

    explicit task(handle_type handle) : handle_(handle) {}
    ~task() {
        if (handle_)
            handle_.destroy();
    }
    task(task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    task& operator=(task&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }

  private:
    friend class executor;

    struct awaiting_request {
        request& of;
        executor* where;
        bool await_ready() { return of.test(); }
        void await_suspend(std::coroutine_handle<> who) { where->waiting_.push_back({&of, who}); }
        void await_resume() {}
    };
    struct awaiting_task;
    /* At its end a task goes on with the one that awaits it. */
    struct ending {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<>) noexcept { return next; }
        void await_resume() noexcept {}
        std::coroutine_handle<> next;
    };

    handle_type handle_;
};

struct task::promise_type {
    executor* where = nullptr;
    std::coroutine_handle<> awaited_by = std::noop_coroutine();
    std::exception_ptr thrown;

    task get_return_object() { return task(handle_type::from_promise(*this)); }
    std::suspend_always initial_suspend() { return {}; }
    ending final_suspend() noexcept { return {awaited_by}; }
    void return_void() {}
    void unhandled_exception() { thrown = std::current_exception(); }
    awaiting_request await_transform(request& of) { return {of, where}; }
    inline awaiting_task await_transform(const task& of);
};

struct task::awaiting_task {
    promise_type& of;
    bool is_done;
    bool await_ready() { return is_done; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> who) {
        of.awaited_by = who;
        return handle_type::from_promise(of);
    }
    void await_resume() {
        if (of.thrown)
            std::rethrow_exception(std::exchange(of.thrown, nullptr));
    }
};

inline task::awaiting_task task::promise_type::await_transform(const task& of) {
    of.handle_.promise().where = where;
    return {of.handle_.promise(), of.handle_.done()};
}

inline executor::~executor() = default;

inline void executor::spawn(task one) {
    one.handle_.promise().where = this;
    ready_.push_back(one.handle_);
    tasks_.push_back(std::move(one));
}

/* The frames of those that are done go; the first exception goes on from here. */
inline void executor::end_tasks() {
    std::exception_ptr thrown;
    std::erase_if(tasks_, [&](const task& one) {
        const bool goes = one.handle_.done() && !(thrown && one.handle_.promise().thrown);
        if (goes && one.handle_.promise().thrown)
            thrown = one.handle_.promise().thrown;
        return goes;
    });
    if (thrown)
        std::rethrow_exception(thrown);
}

inline void executor::run() {
    for (end_tasks(); !tasks_.empty(); end_tasks()) {
        wake();
        if (ready_.empty())
            detail::refuse("executor::run", "a task awaits what will not end: a task may be awaited once",
                           detail::place::current());
        resume_ready();
    }
}

}  // namespace shmem

#endif

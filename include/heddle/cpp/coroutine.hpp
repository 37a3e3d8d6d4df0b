/* Of shmem.hpp: coroutines that wait for requests (co_await request), and what carries them out in one thread.
 *
 * A task begins when the executor runs it, or when another task co_awaits it: one of the two, once. Tasks of one executor
 * never run at the same time. A task whose requests are complete at once lets the others go on as well, at every 32nd
 * co_await. Where no task can go on, run() sleeps in shmemx_request_wait_any. Members of a team that post collectives
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
    executor& operator=(executor&&) = delete;
    inline ~executor();

    inline void spawn(task one, const detail::place& at = detail::place::current());
    /* Returns when all tasks are done. What a task throws is thrown here; the next call goes on with the others. */
    inline void run(const detail::place& at = detail::place::current());

  private:
    friend class task;
    struct waiting {
        request* of;
        std::coroutine_handle<> who;
    };

    /* A task that begins another one, or ends, leaves the next one here: no frame is on the stack of another. */
    void resume_ready() {
        for (size_t now = ready_.size(); now > 0 && !ready_.empty(); --now) {
            next_ = ready_.front();
            ready_.pop_front();
            while (next_) std::exchange(next_, nullptr).resume();
        }
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
            std::erase_if(waiting_, [&](const waiting& one) {
                if (one.of == complete)
                    ready_.push_back(one.who);
                return one.of == complete;
            });
        }
    }
    inline void end_tasks();

    unsigned complete_ = 0; /* awaited requests that were complete at once */
    std::coroutine_handle<> next_;
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
        bool is_complete = of.test();
        bool await_ready() { return is_complete && ++where->complete_ % 32 != 0; }
        void await_suspend(std::coroutine_handle<> who) {
            is_complete ? where->ready_.push_back(who) : where->waiting_.push_back({&of, who});
        }
        void await_resume() {}
    };
    struct awaiting_task;
    inline promise_type& begin(const char* call, executor* where, const detail::place& at) const;
    /* At its end a task goes on with the one that awaits it. */
    struct ending {
        bool await_ready() noexcept { return false; }
        inline void await_suspend(handle_type who) noexcept;
        void await_resume() noexcept {}
    };

    handle_type handle_;
};

struct task::promise_type {
    executor* where = nullptr;
    std::coroutine_handle<> awaited_by;
    std::exception_ptr thrown;

    task get_return_object() { return task(handle_type::from_promise(*this)); }
    std::suspend_always initial_suspend() { return {}; }
    ending final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { thrown = std::current_exception(); }
    awaiting_request await_transform(request& of) { return {of, where}; }
    inline awaiting_task await_transform(const task& of, const detail::place& at = detail::place::current());
};

inline void task::ending::await_suspend(handle_type who) noexcept {
    who.promise().where->next_ = who.promise().awaited_by;
}

inline task::promise_type& task::begin(const char* call, executor* where, const detail::place& at) const {
    if (!handle_ || handle_.promise().where)
        detail::refuse(call, handle_ ? "the task has begun: it may be spawned or awaited once" : "the task has moved",
                       at);
    handle_.promise().where = where;
    return handle_.promise();
}

struct task::awaiting_task {
    promise_type& of;
    bool is_done;
    bool await_ready() { return is_done; }
    void await_suspend(std::coroutine_handle<> who) {
        of.awaited_by = who;
        of.where->next_ = handle_type::from_promise(of);
    }
    void await_resume() {
        if (of.thrown)
            std::rethrow_exception(std::exchange(of.thrown, nullptr));
    }
};

inline task::awaiting_task task::promise_type::await_transform(const task& of, const detail::place& at) {
    if (of.handle_ && of.handle_.done())
        return {of.handle_.promise(), true};
    return {of.begin("task", where, at), false};
}

inline executor::~executor() = default;

inline void executor::spawn(task one, const detail::place& at) {
    one.begin("executor::spawn", this, at);
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

inline void executor::run(const detail::place& at) {
    for (end_tasks(); !tasks_.empty(); end_tasks()) {
        wake();
        if (ready_.empty())
            detail::refuse("executor::run", "called by one of its own tasks, which it would wait for", at);
        resume_ready();
    }
}

}  // namespace shmem

#endif

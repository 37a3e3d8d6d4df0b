// A team of threads that lives as long as the program: the caller is thread 0, the others sleep between jobs
// and never spin there. `barrier` aligns the members inside a job; it spins briefly, then yields, because
// cores may be fewer than threads.
#pragma once

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace shmem_mt {

class ThreadTeam {
  public:
    explicit ThreadTeam(int size) : size_(size) {
        for (int index = 1; index < size; ++index) threads_.emplace_back([this, index] { serve(index); });
    }

    ~ThreadTeam() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            stopping_ = true;
        }
        wake_.notify_all();
        for (auto& thread : threads_) thread.join();
    }

    ThreadTeam(const ThreadTeam&) = delete;
    ThreadTeam& operator=(const ThreadTeam&) = delete;

    int size() const { return size_; }

    // Calls job(index) on every member and returns when all have returned. Only thread 0 may call it.
    void run(const std::function<void(int)>& job) {
        if (size_ == 1)
            return job(0);
        {
            std::lock_guard<std::mutex> lock(mutex_);
            job_ = &job;
            busy_ = size_ - 1;
            ++generation_;
        }
        wake_.notify_all();
        job(0);
        std::unique_lock<std::mutex> lock(mutex_);
        finished_.wait(lock, [this] { return busy_ == 0; });
    }

    // Every member must call it. No member leaves before the last has come.
    void barrier() {
        if (size_ == 1)
            return;
        const unsigned phase = phase_.load(std::memory_order_acquire);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) == size_ - 1) {
            arrived_.store(0, std::memory_order_relaxed);
            phase_.store(phase + 1, std::memory_order_release);  // pairs with the loads below
            return;
        }
        for (int spins = 0; phase_.load(std::memory_order_acquire) == phase; ++spins) {
            if (spins > 50)
                sched_yield();
            else
                pause();
        }
    }

  private:
    // Leaves the core's other hardware thread more of it, and the line that is watched to who writes to it.
    static void pause() {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }

    void serve(int index) {
        unsigned long seen = 0;
        for (;;) {
            const std::function<void(int)>* job = nullptr;
            {
                std::unique_lock<std::mutex> lock(mutex_);
                wake_.wait(lock, [&] { return stopping_ || generation_ != seen; });
                if (stopping_)
                    return;
                seen = generation_;
                job = job_;
            }
            (*job)(index);
            std::lock_guard<std::mutex> lock(mutex_);
            if (--busy_ == 0)
                finished_.notify_one();
        }
    }

    const int size_;
    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable wake_, finished_;
    const std::function<void(int)>* job_ = nullptr;
    unsigned long generation_ = 0;
    int busy_ = 0;
    bool stopping_ = false;
    alignas(64) std::atomic<int> arrived_{0};
    alignas(64) std::atomic<unsigned> phase_{0};
};

}  // namespace shmem_mt

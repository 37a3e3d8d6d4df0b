// Holds a mutex while it lives.
#pragma once

#include <pthread.h>

namespace heddle::os {

class Locked {
  public:
    explicit Locked(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
    ~Locked() { pthread_mutex_unlock(&mutex_); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

  private:
    pthread_mutex_t& mutex_;
};

// Holds a mutex while it lives, if the mutex was free.
class TryLocked {
  public:
    explicit TryLocked(pthread_mutex_t& mutex) : mutex_(pthread_mutex_trylock(&mutex) == 0 ? &mutex : nullptr) {}
    ~TryLocked() {
        if (mutex_)
            pthread_mutex_unlock(mutex_);
    }
    TryLocked(const TryLocked&) = delete;
    TryLocked& operator=(const TryLocked&) = delete;
    explicit operator bool() const { return mutex_ != nullptr; }

  private:
    pthread_mutex_t* const mutex_;
};

}  // namespace heddle::os

// Threads that the library starts for itself. They block all signals, which are for the program's threads, except the
// signals that a fault of the thread itself raises.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <initializer_list>

namespace heddle::os {

// pthread_create for such a thread; returns its result.
inline int start_own_thread(pthread_t* thread, void* (*run)(void*), void* argument) {
    sigset_t all, old;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int result = pthread_create(thread, nullptr, run, argument);
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    return result;
}

}  // namespace heddle::os

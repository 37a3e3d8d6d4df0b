/* Watches what a program's thread does between two places: the locks of the C library that anybody takes, and the
 * system calls of the calling thread. */
#ifndef CONFORMANCE_LOCK_AND_SYSCALL_INTERPOSER_H
#define CONFORMANCE_LOCK_AND_SYSCALL_INTERPOSER_H

#include <atomic>

namespace conformance {

// Of all threads: while it is true, calls of pthread_mutex_lock and its kin are counted (the .cpp defines them for the
// process).
extern std::atomic<bool> watching_locks;
extern std::atomic<unsigned> locks_taken;
extern std::atomic<const char*> last_lock;

// From here on the system calls of this thread go through a handler. False where that cannot be had.
bool install_call_watch();
// Of this thread: while it is true, they are counted.
extern constinit thread_local bool watching_calls;
extern std::atomic<unsigned> calls_made;
extern std::atomic<long> last_call;

}  // namespace conformance

#endif

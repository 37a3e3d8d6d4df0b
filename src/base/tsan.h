// What ThreadSanitizer is told of the library's synchronization, in programs that are compiled with it: the library is
// not, so that it sees neither the atomics here nor what they order, only what goes through functions that it replaces
// (memcpy, malloc, mutexes) and what is inlined into the program.
//
//     release(object)   what this thread did comes before what a thread does behind an acquire of the object
//     release()         the same for whatever the PE orders: fence, quiet, locks, collectives, signals
//
// One object for all of these, because an order may go by way of another PE, which ThreadSanitizer does not see: one
// thread puts there, and what that PE puts here another thread waits for. So an order may be seen where there is none,
// and a race be missed; none is reported that is not.
//
//     look_away()       from here to look_back() what this thread does is not looked at: what comes from the network,
//                       and the network's own libraries; what other PEs of the node store is not looked at either
//
// Cost without ThreadSanitizer: a load and a branch that is never taken; nothing in a library that is compiled with it,
// which it sees through.
#pragma once

#if defined(__SANITIZE_THREAD__) || defined(HEDDLE_PES_AS_THREADS)
#define HEDDLE_TELLS_TSAN 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HEDDLE_TELLS_TSAN 0
#endif
#endif
#ifndef HEDDLE_TELLS_TSAN
#define HEDDLE_TELLS_TSAN 1
#endif

#if HEDDLE_TELLS_TSAN
// Of ThreadSanitizer's runtime, where the program has one.
extern "C" void __tsan_acquire(void* object) __attribute__((weak));
extern "C" void __tsan_release(void* object) __attribute__((weak));
extern "C" void AnnotateIgnoreReadsBegin(const char* file, int line) __attribute__((weak));
extern "C" void AnnotateIgnoreReadsEnd(const char* file, int line) __attribute__((weak));
extern "C" void AnnotateIgnoreWritesBegin(const char* file, int line) __attribute__((weak));
extern "C" void AnnotateIgnoreWritesEnd(const char* file, int line) __attribute__((weak));
#endif

namespace heddle::tsan {

#if HEDDLE_TELLS_TSAN

inline bool is_on() {
    return __builtin_expect(__tsan_release != nullptr, 0);
}
inline void acquire(const void* object) {
    if (is_on())
        __tsan_acquire(const_cast<void*>(object));
}
inline void release(const void* object) {
    if (is_on())
        __tsan_release(const_cast<void*>(object));
}
inline void look_away() {
    if (!is_on())
        return;
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}
inline void look_back() {
    if (!is_on())
        return;
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

#else

constexpr bool is_on() {
    return false;
}
inline void acquire(const void*) {}
inline void release(const void*) {}
inline void look_away() {}
inline void look_back() {}

#endif

inline constinit char of_pe = 0;

inline void acquire() {
    acquire(&of_pe);
}
inline void release() {
    release(&of_pe);
}

}  // namespace heddle::tsan

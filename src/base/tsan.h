// Annotations for ThreadSanitizer, in programs that are compiled with it. The library is not: ThreadSanitizer sees
// neither its atomics nor what they order. It sees functions that it replaces (memcpy, malloc, mutexes), and code
// inlined into the program.
//
//     release(object)   what this thread did happens before what a thread does after an acquire of the object
//     release()         release of one object for all orders of the PE: fence, quiet, locks, collectives, signals
//
// One object serves for these, because an order may go through another PE, which ThreadSanitizer does not see: one
// thread puts there, and another waits for what that PE puts here. So races may be missed, but none is reported that
// does not exist.
//
//     look_away()       ignores this thread's accesses until look_back(): data from the network, and the network's
//                       libraries; stores of other PEs of the node are not seen either
//
// Cost without ThreadSanitizer: a load and a branch that is never taken. A library that is compiled with
// ThreadSanitizer needs none of this.
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
// Functions of ThreadSanitizer's runtime; null in programs without it.
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

// Invariants: what the code relies on, checked while it runs in debug, sanitizer and fuzz builds and in the library
// that the unit tests link. A release build evaluates nothing: the condition is compiled, its value is not computed.
//
// An invariant is about Heddle alone. What a program may do wrong, and what a peer may send, is checked in every build
// and ends with base::fatal. A condition has no side effect.
//
// Threads: any; a condition reads only what the thread may read.
#pragma once

namespace heddle::base {

// Ends the PE with the place and the condition, and the values where `format` is not null.
[[noreturn]] void invariant_failed(const char* function, const char* file, int line, const char* condition,
                                   const char* format, ...) __attribute__((format(printf, 5, 6), cold));

}  // namespace heddle::base

// HEDDLE_INVARIANTS is a definition of CMakeLists.txt (all of a debug, sanitizer or fuzz build) and of heddle_threads.
#ifdef HEDDLE_INVARIANTS
#define HEDDLE_INVARIANT(condition)                                                            \
    (__builtin_expect(!(condition), 0)                                                         \
         ? ::heddle::base::invariant_failed(__func__, __FILE__, __LINE__, #condition, nullptr) \
         : static_cast<void>(0))
// With values for the message, as printf takes them.
#define HEDDLE_INVARIANT_MSG(condition, ...)                                                       \
    (__builtin_expect(!(condition), 0)                                                             \
         ? ::heddle::base::invariant_failed(__func__, __FILE__, __LINE__, #condition, __VA_ARGS__) \
         : static_cast<void>(0))
#else
#define HEDDLE_INVARIANT(condition) static_cast<void>(sizeof((condition) ? 1 : 0))
#define HEDDLE_INVARIANT_MSG(condition, ...) static_cast<void>(sizeof((condition) ? 1 : 0))
#endif

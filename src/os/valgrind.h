// Requests to Valgrind: sequences of rotations that have no effect outside Valgrind.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::os {

// The answer to a client request; 0 when the program does not run under Valgrind.
inline uint64_t ask_valgrind(uint64_t request, uint64_t first = 0, uint64_t second = 0) {
    const uint64_t arguments[6] = {request, first, second};
#if defined(__x86_64__)
    uint64_t answer = 0;
    asm volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\txchgq %%rbx, %%rbx"
                 : "+d"(answer)
                 : "a"(arguments)
                 : "cc", "memory");
    return answer;
#elif defined(__aarch64__)
    register uint64_t answer asm("x3") = 0;
    register const uint64_t* where asm("x4") = arguments;
    asm volatile("ror x12, x12, #3\n\tror x12, x12, #13\n\tror x12, x12, #51\n\tror x12, x12, #61\n\torr x10, x10, x10"
                 : "+r"(answer)
                 : "r"(where)
                 : "cc", "memory");
    return answer;
#else
    return arguments[0] == 0;
#endif
}

inline bool runs_under_valgrind() {
    constexpr uint64_t kRunningOnValgrind = 0x1001;
    return ask_valgrind(kRunningOnValgrind) != 0;
}

// Tells memcheck that the program must not access [address, address + bytes), or that all of it is defined. Memcheck's
// search for leaks leaves forbidden memory out; it would commit the shared memory that it reads.
constexpr uint64_t kMemcheck = uint64_t{'M'} << 24 | uint64_t{'C'} << 16;
inline void forbid_memory(const void* address, size_t bytes) {
    constexpr uint64_t kMakeNoAccess = kMemcheck;
    ask_valgrind(kMakeNoAccess, reinterpret_cast<uint64_t>(address), bytes);
}
inline void allow_memory(const void* address, size_t bytes) {
    constexpr uint64_t kMakeDefined = kMemcheck + 2;
    ask_valgrind(kMakeDefined, reinterpret_cast<uint64_t>(address), bytes);
}

}  // namespace heddle::os

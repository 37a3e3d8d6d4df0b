// Whether Valgrind runs this program. It keeps books of every page that a program maps, untouched ones too.
#pragma once

#include <cstdint>

namespace heddle::os {

// Valgrind's client request RUNNING_ON_VALGRIND: rotations that together do nothing, which it takes for a call.
inline bool runs_under_valgrind() {
    const uint64_t request[6] = {0x1001};
#if defined(__x86_64__)
    uint64_t answer = 0;
    asm volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\txchgq %%rbx, %%rbx"
                 : "+d"(answer)
                 : "a"(request)
                 : "cc", "memory");
    return answer != 0;
#elif defined(__aarch64__)
    register uint64_t answer asm("x3") = 0;
    register const uint64_t* arguments asm("x4") = request;
    asm volatile("ror x12, x12, #3\n\tror x12, x12, #13\n\tror x12, x12, #51\n\tror x12, x12, #61\n\torr x10, x10, x10"
                 : "+r"(answer)
                 : "r"(arguments)
                 : "cc", "memory");
    return answer != 0;
#else
    return request[0] == 0;
#endif
}

}  // namespace heddle::os

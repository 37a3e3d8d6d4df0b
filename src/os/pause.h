// pause: a hint to the CPU between two reads of a line in a spin loop.
#pragma once

namespace heddle::os {

inline void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" : : : "memory");  // yield is a no-op on most cores; isb takes about as long as x86's pause
#endif
}

}  // namespace heddle::os

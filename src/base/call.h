// A function of the interface as a program called it, for messages.
#pragma once

#include <array>

namespace heddle::base {

struct Call {
    const char* function = nullptr;
    const void* caller = nullptr;  // the return address
};

// "shmem_barrier_all (called at prog+0x1234)"; without the place where nobody knows it. Cut to fit. Any thread.
using CallText = std::array<char, 128>;
CallText describe(const Call& call);

}  // namespace heddle::base

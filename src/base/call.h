// A call of an interface function by the program, for messages.
#pragma once

#include <array>

namespace heddle::base {

struct Call {
    const char* function = nullptr;
    const void* caller = nullptr;  // the return address
};

// "shmem_barrier_all (called at prog+0x1234)"; without the place if it is unknown. Cut to fit. Threads: any.
using CallText = std::array<char, 128>;
CallText describe(const Call& call);

}  // namespace heddle::base

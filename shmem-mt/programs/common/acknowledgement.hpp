// The messages by which a clock stops only when the target has seen the data. Behind the quiet of its PE's threads the
// sender tells where the last message of each thread lies and what its ends must be; the target compares, and answers.
#pragma once

#include <cstring>

#include "programs/common/job.hpp"

namespace shmem_mt {

// Sender: `last` has an entry for each thread; all data is complete.
inline void tell_last(Job& job, const Control::LastWord* last, long token) {
    Control* control = job.control();
    shmem_putmem(control->last, last, sizeof(Control::LastWord) * static_cast<size_t>(job.threads()), job.partner());
    shmem_quiet();
    shmem_long_p(&control->flag, token, job.partner());
    shmem_quiet();
}

// Target: waits to be told, looks at the last messages in `windows`, answers. False when one is not there.
inline bool look_at_last(Job& job, const char* windows, long token) {
    Control* control = job.control();
    shmem_long_wait_until(&control->flag, SHMEM_CMP_EQ, token);
    bool ok = true;
    for (int t = 0; t < job.threads(); ++t) {
        const Control::LastWord last = control->last[t];
        if (last.offset < 0)
            continue;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);  // behind the flag
        ok = ok && std::memcmp(windows + last.offset, &last.value, 8) == 0;
        ok = ok && (last.first < 0 || std::memcmp(windows + last.first, &last.first_value, 8) == 0);
    }
    shmem_long_p(&control->ack, token, job.partner());
    shmem_quiet();
    return ok;
}

// Sender: until the target has answered.
inline void await_answer(Job& job, long token) {
    shmem_long_wait_until(&job.control()->ack, SHMEM_CMP_EQ, token);
}

}  // namespace shmem_mt

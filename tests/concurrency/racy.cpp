// A program that is wrong: one PE puts or gets while another uses the data, and nothing orders the two. ThreadSanitizer
// must say so, or its silence about the other programs of this folder means nothing. The argument: "p", "put" or "get".
//
// The remote side comes last and late, round after round: whoever is ahead in a barrier may already hand its clock to a
// PE that is still leaving the one before, which would hide the race from the sanitizer.
#include "support/pes_as_threads.h"

#include <shmem.h>

#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr size_t kElements = 16;
constexpr int kRounds = 5;
constexpr useconds_t kLateUs = 20000;

// Returns a value that was got, so that no compiler leaves the get out.
long use_remotely(const std::string& kind, long* data) {
    long values[kElements] = {1, 2, 3};
    if (kind == "p")
        shmem_long_p(data, 1, 1);
    else if (kind == "put")
        shmem_long_put(data, values, kElements, 1);
    else
        shmem_long_get(values, data, kElements, 1);
    return values[0];
}

long use_locally(const std::string& kind, long* data) {
    if (kind == "get")
        data[0] += 1;
    return data[0];
}

}  // namespace

int main(int argc, char** argv) {
    const std::string kind = argc > 1 ? argv[1] : "p";
    setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
    long sum = 0, remote_sum = 0;
    heddle::test::run_pes(2, [&](int pe) {
        shmem_init();
        long* data = static_cast<long*>(shmem_calloc(kElements, sizeof(long)));
        for (int round = 0; round < kRounds; ++round) {
            if (pe == 0) {
                usleep(kLateUs);
                remote_sum += use_remotely(kind, data);
            } else {
                sum += use_locally(kind, data);
            }
            shmem_barrier_all();
        }
        shmem_free(data);
        shmem_finalize();
    });
    printf("%ld\n", sum + remote_sum);
}

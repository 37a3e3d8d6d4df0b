#include "bootstrap/deadline.h"

#include "bootstrap/bootstrap.h"
#include "bootstrap/own_status.h"
#include "os/clock.h"
#include "os/own_thread.h"
#include "os/process.h"

#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace heddle::bootstrap {

namespace {

constexpr uint64_t kBehindNs = 100 * os::kMillisecondNs;  // so that oshrun's own line comes first

struct Watch {
    int pe = -1;
    uint64_t begin_ns = 0, end_ns = 0;
    std::atomic<bool> has_joined{false};
};
Watch watched;

void* tell_at_deadline(void*) {
    for (uint64_t now = os::now_ns(); now < watched.end_ns; now = os::now_ns()) os::sleep_ns(watched.end_ns - now);
    const uint64_t now_ns = os::now_ns();
    char host[64] = "?", since[64];
    gethostname(host, sizeof host - 1);
    snprintf(since, sizeof since, "in shmem_init since %.1f s, waiting for other PEs",
             static_cast<double>(now_ns - watched.begin_ns) * 1e-9);
    std::vector<std::string> places = {since};
    if (watched.has_joined.load(std::memory_order_acquire)) {  // pairs with bootstrap::tell_place
        places = describe_pe(source_of_own_page(), job.slot);
        // Relaxed: only a hint, for the signal that ends the job two seconds later.
        job.page->end_told.store(kEndTold, std::memory_order_relaxed);
    }
    for (const std::string& place : places) {
        const std::string text = "oshrun: PE " + std::to_string(watched.pe) + " (pid " + std::to_string(getpid()) +
                                 " on host " + host + "): " + place + "\n";
        [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    }
    return nullptr;
}

}  // namespace

Deadline read_deadline(const char* text) {
    Deadline deadline;
    if (!text || sscanf(text, "%" SCNu64 ":%" SCNu64, &deadline.timeout_ns, &deadline.unix_ns) != 2)
        return {};
    return deadline;
}

uint64_t time_left(const Deadline& deadline, uint64_t unix_now_ns, uint64_t age_ns) {
    const uint64_t most = deadline.timeout_ns - std::min(deadline.timeout_ns, age_ns);
    const uint64_t least = most - std::min(most, kMostStartNs);
    const uint64_t left = deadline.unix_ns - std::min(deadline.unix_ns, unix_now_ns);
    return left == 0 ? least : std::min(left, most);  // 0: the clock here is ahead
}

void watch_deadline(int pe) {
    const Deadline deadline = read_deadline(getenv(kEnvDeadline));
    unsetenv(kEnvDeadline);
    if (deadline.timeout_ns == 0)
        return;
    watched.pe = pe;
    watched.begin_ns = os::now_ns();
    watched.end_ns = watched.begin_ns + time_left(deadline, os::clock_ns(CLOCK_REALTIME), os::age_ns()) + kBehindNs;
    pthread_t thread;
    if (os::start_own_thread(&thread, tell_at_deadline, nullptr) == 0)  // without it the job ends without a word
        pthread_detach(thread);
}

void tell_place() {
    watched.has_joined.store(true, std::memory_order_release);  // pairs with bootstrap::tell_at_deadline
}

}  // namespace heddle::bootstrap

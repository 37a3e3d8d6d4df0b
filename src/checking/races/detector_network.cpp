#include "checking/races/detector_network.h"

#include "base/error.h"
#include "base/pe_local.h"
#include "fabric/network.h"
#include "operations/remote.h"
#include "os/own_thread.h"
#include "progress/wait_policy.h"

#include <heddle/constants.h>

#include <cstring>
#include <utility>

namespace heddle::checking::races {

namespace {

constexpr const char* kFunction = "HEDDLE_RACES";
constexpr uint64_t kTeam = 0x7365636172;  // "races": the id of no team
constexpr fabric::ControlKey kRequest = {.team = kTeam, .round = 0}, kAnswer = {.team = kTeam, .round = 1};

HEDDLE_PE_LOCAL std::atomic<uint32_t> n_awaited{0};

fabric::ControlInbox& inbox() {
    return fabric::network->control_inbox();
}

}  // namespace

DetectorStreams::DetectorStreams() : stream_set_(fabric::network->make_stream_set(list_, nullptr)) {
    if (!stream_set_)
        base::fatal(kFunction, "no memory for the messages of the search");
}

DetectorStreams::~DetectorStreams() {
    fabric::network->return_stream_sets(list_);
}

void DetectorStreams::send(int pe, const fabric::ControlKey& key, std::string_view message) {
    const operations::IssueParams issue = {
        .call = {kFunction, nullptr}, .ctx = SHMEM_CTX_DEFAULT, .stream_set = stream_set_};
    operations::remote_control(issue, pe, key, message.data(), message.size());
    operations::remote_go(issue, pe);
}

void NetworkLink::send(std::string_view message) {
    streams_.send(0, kRequest, message);
}

size_t NetworkLink::receive(char* message, size_t bytes) {
    size_t length = 0;
    n_awaited.fetch_add(1, std::memory_order_relaxed);  // read by a look of this wait, or of another thread's
    progress::wait_for_stores(kFunction, this, [&] { return inbox().take(kAnswer, 0, message, bytes, &length); });
    n_awaited.fetch_sub(1, std::memory_order_relaxed);
    return length;
}

bool is_answer_awaited() {
    return n_awaited.load(std::memory_order_relaxed) != 0;
}

DetectorService::DetectorService(char* memory, size_t positions, int n_pes, std::vector<int> pes)
    : server_(memory, positions, n_pes), pes_(std::move(pes)) {
    inbox().watch(kTeam, &requests_);
    if (os::start_own_thread(&thread_, run, this) != 0)
        base::fatal(kFunction, "no thread can be made for the search");
}

DetectorService::~DetectorService() {
    stopping_.store(true, std::memory_order_relaxed);  // the event count orders it
    requests_.advance();
    pthread_join(thread_, nullptr);
    inbox().watch(kTeam, nullptr);
}

void* DetectorService::run(void* service) {
    static_cast<DetectorService*>(service)->serve();
    return nullptr;
}

void DetectorService::serve() {
    for (uint32_t seen = 0;;) {
        while (requests_.reached(seen + 1)) ++seen;
        if (stopping_.load(std::memory_order_relaxed))  // stored before the event count advanced
            return;
        if (!serve_all())
            progress::wait_in_background(*progress::wait_policy, requests_, seen + 1, [](bool) {});
    }
}

// True when there was a request.
bool DetectorService::serve_all() {
    bool served = false;
    char message[kMostBytes];
    std::string answer;
    for (const int pe : pes_)
        for (size_t bytes; inbox().take(kRequest, pe, message, sizeof message, &bytes); served = true) {
            if (bytes > sizeof message || !server_.carry_out(pe, {message, bytes}, &answer))
                base::fatal(kFunction, "a message of %zu bytes from PE %d is no request", bytes, pe);
            if (!answer.empty())
                streams_.send(pe, kAnswer, answer);
        }
    return served;
}

}  // namespace heddle::checking::races

#include "fabric/network.h"

#include "base/error.h"
#include "os/asymmetric_fence.h"
#include "os/clock.h"
#include "os/memfd.h"
#include "os/own_thread.h"
#include "os/plugin.h"

#include <dlfcn.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace heddle::fabric {

HEDDLE_PE_LOCAL Network* network = nullptr;

namespace {

constexpr uint64_t kMillisecondNs = 1000000;
constexpr uint64_t kServiceNapNs = kMillisecondNs / 10, kMostServiceNapNs = kMillisecondNs;
constexpr uint32_t kWakeup = UINT32_MAX;

size_t table_bytes(size_t count) {
    return os::round_up(count * sizeof(std::atomic<void*>), os::kPageBytes);
}

// A table of pointers that begin null and take memory as they are set.
template <class T>
std::atomic<T*>* make_table(size_t count) {
    const size_t bytes = table_bytes(count);
    void* const table = os::reserve_zeroes(bytes);
    return table && os::make_writable(table, bytes) ? static_cast<std::atomic<T*>*>(table) : nullptr;
}

}  // namespace

// What the wires and the transport call.
struct NetworkEvents {
    static Wire& wire_of(void* owner, int number) {
        auto* mine = static_cast<Network*>(owner);
        const auto index = static_cast<size_t>(number);
        return index < mine->wires_.size() ? *mine->wires_[index] : *mine->pulse_wire_;
    }
    static void arrived(void* owner, int wire, const void* bytes, const char* body, size_t body_bytes) {
        Header header;
        memcpy(&header, bytes, sizeof header);
        wire_of(owner, wire).arrived(header, body, body_bytes);
    }
    static void announced(void* owner, int wire, const void* bytes, size_t body_bytes, Arrival* arrival) {
        Header header;
        memcpy(&header, bytes, sizeof header);
        wire_of(owner, wire).announced(header, body_bytes, arrival);
    }
    static Stream* stream_of(void* owner, uint32_t number, int pe) {
        auto* mine = static_cast<Network*>(owner);
        // Acquire, both: pair with make_lane and Lane::open.
        Lane* const lane = number < kMostLanes ? mine->lane_table_[number].load(std::memory_order_acquire) : nullptr;
        return lane ? lane->streams[pe].load(std::memory_order_acquire) : nullptr;
    }
    static void heard(void* owner, const Header& header, const char* body, size_t bytes) {
        auto* mine = static_cast<Network*>(owner);
        if (mine->pulse_)
            mine->pulse_->heard(header, body, bytes);
    }
    static void failed(void* owner, int, int pe, const char* reason) {
        auto* mine = static_cast<Network*>(owner);
        if (!mine->parting_.load(std::memory_order_relaxed))
            mine->surroundings_.lost(pe, reason);
    }
};

Stream& Lane::open(int pe) {
    auto* stream = new Stream(*wire, producer, pe);
    stream->next_of_lane = used.load(std::memory_order_relaxed);
    used.store(stream, std::memory_order_release);         // pairs with all; one producer at a time
    streams[pe].store(stream, std::memory_order_release);  // pairs with stream_of
    return *stream;
}

std::unique_ptr<Network> Network::open(const NetworkOptions& options, const Surroundings& surroundings, char* error,
                                       size_t error_bytes) {
    std::unique_ptr<Network> made(new Network);
    made->surroundings_ = surroundings;
    made->surroundings_.owner = made.get();
    made->surroundings_.mailbox = &made->mailbox_;
    made->surroundings_.stream_of = NetworkEvents::stream_of;
    made->surroundings_.heard = NetworkEvents::heard;
    if (!os::prepare_heavy_fence()) {
        snprintf(error, error_bytes, "this kernel has no membarrier(2): right would be Linux 4.14 or later");
        return nullptr;
    }
    made->library_ = os::load_plugin(options.plugin);
    if (!made->library_) {
        snprintf(error, error_bytes, "%s", dlerror());
        return nullptr;
    }
    made->surroundings_.api = static_cast<const TransportApi*>(dlsym(made->library_, "heddle_transport_1"));
    if (!made->surroundings_.api) {
        snprintf(error, error_bytes, "%s is no transport of this version of Heddle", options.plugin);
        return nullptr;
    }
    const bool in_ring = surroundings.ring.before >= 0;
    Options wanted = options.transport;
    wanted.wires += in_ring;
    std::copy_n(surroundings.regions.of, kRegions, wanted.regions);
    const Events events = {made.get(), NetworkEvents::arrived, NetworkEvents::announced, NetworkEvents::failed};
    if (!made->surroundings_.api->open(wanted, events, &made->surroundings_.transport, error, error_bytes))
        return nullptr;
    made->surroundings_.is_native = made->surroundings_.api->is_native(made->surroundings_.transport, nullptr);
    made->lane_table_ = make_table<Lane>(kMostLanes);
    made->wakeup_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    made->descriptors_ = epoll_create1(EPOLL_CLOEXEC);
    if (!made->lane_table_ || made->wakeup_ < 0 || made->descriptors_ < 0) {
        snprintf(error, error_bytes, "cannot prepare the service thread: %s", strerror(errno));
        return nullptr;
    }
    epoll_event event = {EPOLLIN, {.u32 = kWakeup}};
    epoll_ctl(made->descriptors_, EPOLL_CTL_ADD, made->wakeup_, &event);
    made->around_pulses_ = made->surroundings_;
    made->around_pulses_.landed = [](void*) {};
    made->around_pulses_.go_on = nullptr;
    for (int number = 0; number < wanted.wires; ++number) {
        if (number < options.transport.wires)
            made->wires_.push_back(std::make_unique<Wire>(made->surroundings_, number));
        else
            made->pulse_wire_ = std::make_unique<Wire>(made->around_pulses_, number);
        event = {EPOLLIN, {.u32 = static_cast<uint32_t>(number)}};
        epoll_ctl(made->descriptors_, EPOLL_CTL_ADD,
                  made->surroundings_.api->descriptor(made->surroundings_.transport, number), &event);
    }
    if (in_ring)
        made->pulse_ = std::make_unique<Pulse>(*made->pulse_wire_, options.silence_ns);
    return made;
}

Network::~Network() {
    stop();
    if (surroundings_.transport)
        surroundings_.api->close(surroundings_.transport);
    lanes_.for_each([&](Lane& lane) {
        for (Stream* stream = lane.used.load(std::memory_order_relaxed); stream;) {
            Stream* const next = stream->next_of_lane;
            delete stream;
            stream = next;
        }
        if (lane.streams)
            os::unmap(lane.streams, table_bytes(static_cast<size_t>(surroundings_.n_pes)));
    });
    if (lane_table_)
        os::unmap(lane_table_, table_bytes(kMostLanes));
    wires_.clear();
    if (wakeup_ >= 0)
        ::close(wakeup_);
    if (descriptors_ >= 0)
        ::close(descriptors_);
}

// --- Lanes

Lane* Network::make_lane(std::atomic<Lane*>& list, const void* thread) {
    Lane* const lane = lanes_.take();
    if (!lane)
        return nullptr;
    if (!lane->streams) {
        const uint32_t number = lane->link.index;
        if (number < kMostLanes)
            lane->streams = make_table<Stream>(static_cast<size_t>(surroundings_.n_pes));
        if (!lane->streams) {
            lanes_.give(lane);
            return nullptr;
        }
        lane->producer.lane = number;
        lane->wire = wires_[number % wires_.size()].get();
        lane_table_[number].store(lane, std::memory_order_release);  // pairs with stream_of
    }
    lane->producer.thread.store(thread, std::memory_order_relaxed);
    // Its last thread may be about to set a stream of it idle, and take it for its own (Stream::go_idle): from here on
    // it knows better, or has set it (tests/concurrency/idle.pml, NEW_OWNER).
    if (lane->used.load(std::memory_order_relaxed))
        os::heavy_fence();
    Lane* first = list.load(std::memory_order_relaxed);
    do {
        lane->next = first;
    } while (!list.compare_exchange_weak(first, lane, std::memory_order_release, std::memory_order_relaxed));
    return lane;
}

void Network::give_lanes(std::atomic<Lane*>& list) {
    Lane* lane = list.exchange(nullptr, std::memory_order_acquire);
    while (lane) {
        Lane* const next = lane->next;
        lanes_.give(lane);
        lane = next;
    }
}

// --- Progress

bool Network::poll() {
    // Not a read-modify-write: a count that loses some still changes while threads poll.
    polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    bool moved = false;
    for (const auto& wire : wires_) moved |= wire->poll();
    return moved;
}

bool Network::arm() {
    for (const auto& wire : wires_)
        if (!wire->arm())
            return false;
    return !pulse_wire_ || pulse_wire_->arm();
}

// Called at every turn of the service thread; woken: something may have come.
void Network::beat(bool woken) {
    if (!pulse_ || parting_.load(std::memory_order_relaxed))
        return;
    const uint64_t now_ns = os::now_ns();
    if (!woken && now_ns - beat_ns_ < Pulse::kPeriodNs / 4)
        return;
    beat_ns_ = now_ns;
    pulse_->beat(now_ns);
}

bool Network::start() {
    stopping_.store(false, std::memory_order_relaxed);
    parting_.store(false, std::memory_order_relaxed);
    if (pulse_)
        pulse_->begin();
    serving_ = os::start_own_thread(&service_, run_service, this) == 0;
    return serving_;
}

void Network::stop() {
    if (!serving_)
        return;
    stopping_.store(true, std::memory_order_release);  // pairs with serve
    wake_up();
    pthread_join(service_, nullptr);
    clear_wakeup();
    serving_ = false;
}

void* Network::run_service(void* it) {
    static_cast<Network*>(it)->serve();
    return nullptr;
}

void Network::set_service(Service service) {
    service_kind_.store(service, std::memory_order_release);  // pairs with serve
    wake_up();
}

void Network::wake_up() {
    const uint64_t one = 1;
    if (write(wakeup_, &one, sizeof one) < 0 && errno != EAGAIN)
        base::complain("network", "the service thread's descriptor: %s", strerror(errno));
}

// True after a nap, when other threads poll.
bool Network::keeps_away(uint32_t* seen, uint64_t* nap_ns) {
    const progress::WaitPolicy* const policy = surroundings_.policy;
    const uint32_t turn = away_.value.load(std::memory_order_acquire);
    const uint32_t polls = polls_.load(std::memory_order_relaxed);
    const bool under_way = policy && policy->posted.load(std::memory_order_relaxed) != 0;
    if (under_way ? policy->pollers.load(std::memory_order_relaxed) == 0 : polls == *seen) {
        *nap_ns = kServiceNapNs;
        return false;
    }
    *seen = polls;
    const timespec deadline = os::to_timespec(os::now_ns() + *nap_ns);
    away_.sleep(turn + 1, &deadline);
    *nap_ns = std::min(2 * *nap_ns, kMostServiceNapNs);
    return std::none_of(wires_.begin(), wires_.end(), [](const auto& wire) { return wire->owes(); });
}

void Network::wait_for_pulses() {
    pollfd sources[2] = {{wakeup_, POLLIN, 0}, {-1, POLLIN, 0}};
    if (pulse_wire_ && pulse_wire_->arm())
        sources[1].fd = surroundings_.api->descriptor(surroundings_.transport, pulse_wire_->number());
    if (::poll(sources, 2, longest_sleep()) > 0 && sources[0].revents != 0)
        clear_wakeup();
}

void Network::clear_wakeup() {
    uint64_t count;
    if (read(wakeup_, &count, sizeof count) < 0 && errno != EAGAIN)
        base::complain("network", "the service thread's descriptor: %s", strerror(errno));
}

// Milliseconds that the service thread may sleep.
int Network::longest_sleep() const {
    return pulse_ ? static_cast<int>(Pulse::kPeriodNs / 2 / kMillisecondNs) : -1;
}

void Network::serve() {
    uint32_t seen = polls_.load(std::memory_order_relaxed);
    bool woken = true;
    uint64_t nap_ns = kServiceNapNs;
    while (!stopping_.load(std::memory_order_acquire)) {  // pairs with stop
        beat(woken);
        woken = false;
        const Service kind = service_kind_.load(std::memory_order_acquire);  // pairs with set_service
        if (kind == Service::kSleeps && keeps_away(&seen, &nap_ns))
            continue;
        bool moved = false;
        if (kind != Service::kNone)
            for (const auto& wire : wires_) moved |= wire->poll();
        seen = polls_.load(std::memory_order_relaxed);  // what goes on after a poll may poll itself
        if (kind == Service::kSpins && !moved)
            sched_yield();
        if (moved || kind == Service::kSpins)
            continue;
        woken = true;
        epoll_event event;
        if (kind == Service::kNone) {
            wait_for_pulses();
        } else if (!arm()) {
            os::sleep_ns(kServiceNapNs);  // another thread polls, or something has come
        } else if (epoll_wait(descriptors_, &event, 1, longest_sleep()) == 1 && event.data.u32 == kWakeup) {
            clear_wakeup();
        }
    }
}

}  // namespace heddle::fabric

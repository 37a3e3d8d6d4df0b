#include "fabric/network.h"

#include "base/error.h"
#include "base/tsan.h"
#include "fabric/card.h"
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
    return os::round_up(count * sizeof(std::atomic<void*>), os::page_bytes());
}

// A table of pointers that begin null and take memory as they are set.
template <class T>
std::atomic<T*>* make_table(size_t count) {
    const size_t bytes = table_bytes(count);
    void* const table = os::reserve_zeroes(bytes);
    return table && os::make_writable(table, bytes) ? static_cast<std::atomic<T*>*>(table) : nullptr;
}

}  // namespace

// What the wires and the transports call: their owner is a rail.
struct NetworkEvents {
    static Wire& wire_of(void* owner, int number) {
        const auto& rail = *static_cast<Network::Rail*>(owner);
        const auto index = static_cast<size_t>(number);
        return index < rail.wires.size() ? *rail.wires[index] : *rail.pulse_wire;
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
        const auto& rail = *static_cast<Network::Rail*>(owner);
        // Acquire: pairs with prepare.
        Lane* const lane =
            number < kMostLanes ? rail.network->lane_table_[number].load(std::memory_order_acquire) : nullptr;
        return lane ? lane->find(pe, rail.number) : nullptr;
    }
    static Delivered* delivered_of(void* owner, uint32_t lane, int pe) {
        Network& mine = *static_cast<Network::Rail*>(owner)->network;
        const std::lock_guard lock(mine.delivered_lock_);
        return &mine.delivered_[{pe, lane}];
    }
    static size_t own_card(void* owner, char* card) { return static_cast<Network::Rail*>(owner)->network->card(card); }
    static void heard(void* owner, const Header& header, const char* body, size_t bytes) {
        const auto& rail = *static_cast<Network::Rail*>(owner);
        if (rail.pulse)
            rail.pulse->heard(header, body, bytes);
    }
    static void failed(void* owner, int, int pe, const char* reason) {
        const auto& rail = *static_cast<Network::Rail*>(owner);
        if (rail.network->parting_.load(std::memory_order_relaxed))
            return;
        if (rail.network->rails() == 1)
            rail.surroundings.lost(pe, Loss::kBroken, reason);
        else
            rail.surroundings.rail_lost(rail.number, pe, Loss::kBroken, reason);
    }
};

// --- Open and close

bool Network::load(const char* plugin, char* error, size_t error_bytes) {
    library_ = os::load_plugin(plugin);
    if (!library_) {
        snprintf(error, error_bytes, "%s", dlerror());
        return false;
    }
    api_ = static_cast<const TransportApi*>(dlsym(library_, "heddle_transport_1"));
    if (!api_)
        snprintf(error, error_bytes, "%s is no transport of this version of Heddle", plugin);
    return api_ != nullptr;
}

bool Network::open_rail(const NetworkOptions& options, const Surroundings& given, char* error, size_t error_bytes) {
    rails_.push_back(std::make_unique<Rail>());
    Rail& rail = *rails_.back();
    rail.network = this;
    rail.number = rails() - 1;
    Surroundings& surroundings = rail.surroundings;
    surroundings = given;
    surroundings.api = api_;
    surroundings.owner = &rail;
    surroundings.mailbox = &mailbox_;
    surroundings.rail = rail.number;
    surroundings.n_rails = static_cast<int>(options.rails.size());
    surroundings.stream_of = NetworkEvents::stream_of;
    surroundings.delivered_of = NetworkEvents::delivered_of;
    surroundings.own_card = NetworkEvents::own_card;
    surroundings.heard = NetworkEvents::heard;
    const bool in_ring = given.ring.before >= 0;
    Options wanted = options.transport;
    wanted.devices = options.rails[static_cast<size_t>(rail.number)].c_str();
    wanted.wires += in_ring;
    std::copy_n(given.regions.of, kRegions, wanted.regions);
    const Events events = {&rail, NetworkEvents::arrived, NetworkEvents::announced, NetworkEvents::failed};
    if (!api_->open(wanted, events, &surroundings.transport, error, error_bytes))
        return false;
    surroundings.is_native = api_->is_native(surroundings.transport, nullptr);
    rail.around_pulses = surroundings;
    rail.around_pulses.landed = [](void*) {};
    rail.around_pulses.go_on = nullptr;
    open_wires(rail, wanted.wires);
    if (in_ring)
        rail.pulse = std::make_unique<Pulse>(*rail.pulse_wire, options.silence_ns);
    return true;
}

void Network::open_wires(Rail& rail, int count) {
    const bool in_ring = rail.surroundings.ring.before >= 0;
    for (int number = 0; number < count; ++number) {
        if (in_ring && number == count - 1)
            rail.pulse_wire = std::make_unique<Wire>(rail.around_pulses, number);
        else
            rail.wires.push_back(std::make_unique<Wire>(rail.surroundings, number));
        epoll_event event = {EPOLLIN, {.u32 = static_cast<uint32_t>(number)}};
        epoll_ctl(descriptors_, EPOLL_CTL_ADD, api_->descriptor(rail.surroundings.transport, number), &event);
    }
}

bool Network::prepare_service(char* error, size_t error_bytes) {
    lane_table_ = make_table<Lane>(kMostLanes);
    wakeup_descriptor_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    descriptors_ = epoll_create1(EPOLL_CLOEXEC);
    if (!lane_table_ || wakeup_descriptor_ < 0 || descriptors_ < 0) {
        snprintf(error, error_bytes, "cannot prepare the service thread: %s", strerror(errno));
        return false;
    }
    epoll_event event = {EPOLLIN, {.u32 = kWakeup}};
    epoll_ctl(descriptors_, EPOLL_CTL_ADD, wakeup_descriptor_, &event);
    return true;
}

std::unique_ptr<Network> Network::open(const NetworkOptions& options, const Surroundings& surroundings, char* error,
                                       size_t error_bytes) {
    std::unique_ptr<Network> made(new Network);
    made->n_pes_ = surroundings.n_pes;
    made->policy_ = surroundings.policy;
    if (!os::prepare_heavy_fence()) {
        snprintf(error, error_bytes, "this kernel has no membarrier(2): right would be Linux 4.14 or later");
        return nullptr;
    }
    if (!made->load(options.plugin, error, error_bytes) || !made->prepare_service(error, error_bytes))
        return nullptr;
    for (size_t rail = 0; rail < options.rails.size(); ++rail)
        if (!made->open_rail(options, surroundings, error, error_bytes))
            return nullptr;
    made->wires_.resize(made->rails_.front()->wires.size());
    for (size_t number = 0; number < made->wires_.size(); ++number) {
        for (const auto& rail : made->rails_) made->wires_[number].push_back(rail->wires[number].get());
        if (made->rails() > 1)
            for (Wire* const wire : made->wires_[number]) wire->set_rails(made->wires_[number].data());
    }
    return made;
}

size_t Network::card(char* card) const {
    size_t bytes = 0;
    for (const auto& rail : rails_)
        if (!add_card(*api_, rail->surroundings.transport, card, &bytes))
            return 0;
    return bytes;
}

Network::~Network() {
    stop();
    for (const auto& rail : rails_)
        if (rail->surroundings.transport)
            api_->close(rail->surroundings.transport);
    lanes_.for_each([&](Lane& lane) {
        for (Stream* stream = lane.used.load(std::memory_order_relaxed); stream;) {
            Stream* const next = stream->next_of_lane;
            delete stream;
            stream = next;
        }
        for (Rails* rails = lane.all_rails; rails;) {
            Rails* const next = rails->next;
            delete rails;
            rails = next;
        }
        const size_t bytes = table_bytes(static_cast<size_t>(n_pes_));
        if (lane.streams)
            os::unmap(lane.streams, bytes);
        if (lane.rails)
            os::unmap(lane.rails, bytes);
    });
    if (lane_table_)
        os::unmap(lane_table_, table_bytes(kMostLanes));
    rails_.clear();
    if (wakeup_descriptor_ >= 0)
        ::close(wakeup_descriptor_);
    if (descriptors_ >= 0)
        ::close(descriptors_);
}

// --- Lanes

// A lane that is used for the first time.
bool Network::prepare(Lane& lane) {
    const uint32_t number = lane.link.index;
    if (number >= kMostLanes)
        return false;
    const auto n_pes = static_cast<size_t>(n_pes_);
    lane.n_rails = rails();
    if (lane.n_rails > 1 && !lane.rails)
        lane.rails = make_table<Rails>(n_pes);
    if (lane.n_rails == 1 || lane.rails)
        lane.streams = make_table<Stream>(n_pes);
    if (!lane.streams)
        return false;
    lane.producer.lane = number;
    lane.home_rail = static_cast<int>(number / wires_.size()) % lane.n_rails;
    const std::vector<Wire*>& wires = wires_[number % wires_.size()];
    std::copy(wires.begin(), wires.end(), lane.wires);
    lane_table_[number].store(&lane, std::memory_order_release);  // pairs with stream_of
    return true;
}

Lane* Network::make_lane(std::atomic<Lane*>& list, const void* thread, Spread spread) {
    Lane* const lane = lanes_.take();
    if (!lane)
        return nullptr;
    if (!lane->streams && !prepare(*lane)) {
        lanes_.give(lane);
        return nullptr;
    }
    tsan::acquire(lane);
    lane->spread = spread;
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
        tsan::release(lane);
        lanes_.give(lane);
        lane = next;
    }
}

// --- Progress

bool Network::poll() {
    // Not a read-modify-write: a count that loses some still changes while threads poll.
    polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return poll_wires();
}

bool Network::poll_wires() {
    bool moved = false;
    for (const auto& rail : rails_)
        for (const auto& wire : rail->wires) moved |= wire->poll();
    return moved;
}

bool Network::arm() {
    return std::all_of(rails_.begin(), rails_.end(), [](const auto& rail) {
        return std::all_of(rail->wires.begin(), rail->wires.end(), [](const auto& wire) { return wire->arm(); }) &&
               (!rail->pulse_wire || rail->pulse_wire->arm());
    });
}

// Called at every turn of the service thread; woken: something may have come.
void Network::beat(bool woken) {
    if (!has_pulses())
        return;
    if (parting_.load(std::memory_order_relaxed)) {
        for (const auto& rail : rails_) rail->pulse->leave();
        return;
    }
    const uint64_t now_ns = os::now_ns();
    if (!woken && now_ns - beat_ns_ < Pulse::kPeriodNs / 4)
        return;
    beat_ns_ = now_ns;
    Pulse* silent = nullptr;
    int lost = 0;
    bool is_heard = false, all_are_silent = true;
    for (const auto& rail : rails_) {
        Pulse& pulse = *rail->pulse;
        pulse.beat(now_ns);
        if (rail->wires.front()->is_lost())
            continue;
        is_heard |= pulse.is_heard();
        all_are_silent &= pulse.is_silent();
        if (pulse.is_silent()) {
            silent = &pulse;
            lost = rail->number;
        }
    }
    if (!silent)
        return;
    if (all_are_silent)
        return silent->lose_neighbour();
    if (!is_heard)
        return;  // it may be the node, and the other rails' time is not over
    char reason[Pulse::kMostReason];
    silent->say_silence(reason);
    const Surroundings& surroundings = rails_.front()->surroundings;
    surroundings.rail_lost(lost, surroundings.ring.behind, Loss::kSilent, reason);
}

bool Network::start() {
    stopping_.store(false, std::memory_order_relaxed);
    parting_.store(false, std::memory_order_relaxed);
    for (const auto& rail : rails_)
        if (rail->pulse)
            rail->pulse->begin();
    serving_ = os::start_own_thread(&service_, run_service, this) == 0;
    return serving_;
}

void Network::stop() {
    if (!serving_)
        return;
    stopping_.store(true, std::memory_order_release);  // pairs with serve
    wake_up();
    pthread_join(service_, nullptr);
    clear_wakeup_descriptor();
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
    if (write(wakeup_descriptor_, &one, sizeof one) < 0 && errno != EAGAIN)
        base::report("network", "the service thread's descriptor: %s", strerror(errno));
}

// True after a nap, when other threads poll.
bool Network::keeps_away(uint32_t* seen, uint64_t* nap_ns) {
    const uint32_t turn = away_.value.load(std::memory_order_acquire);
    const uint32_t polls = polls_.load(std::memory_order_relaxed);
    const bool under_way = policy_ && policy_->posted.load(std::memory_order_relaxed) != 0;
    if (under_way ? policy_->pollers.load(std::memory_order_relaxed) == 0 : polls == *seen) {
        *nap_ns = kServiceNapNs;
        return false;
    }
    *seen = polls;
    const timespec deadline = os::to_timespec(os::now_ns() + *nap_ns);
    away_.sleep(turn + 1, &deadline);
    *nap_ns = std::min(2 * *nap_ns, kMostServiceNapNs);
    return std::none_of(rails_.begin(), rails_.end(), [](const auto& rail) {
        return std::any_of(rail->wires.begin(), rail->wires.end(), [](const auto& wire) { return wire->owes(); });
    });
}

void Network::wait_for_pulses() {
    pollfd sources[1 + kMostRails] = {{wakeup_descriptor_, POLLIN, 0}};
    nfds_t count = 1;
    for (const auto& rail : rails_)
        if (rail->pulse_wire && rail->pulse_wire->arm())
            sources[count++] = {api_->descriptor(rail->surroundings.transport, rail->pulse_wire->number()), POLLIN, 0};
    if (::poll(sources, count, longest_sleep()) > 0 && sources[0].revents != 0)
        clear_wakeup_descriptor();
}

void Network::clear_wakeup_descriptor() {
    uint64_t count;
    if (read(wakeup_descriptor_, &count, sizeof count) < 0 && errno != EAGAIN)
        base::report("network", "the service thread's descriptor: %s", strerror(errno));
}

// Milliseconds that the service thread may sleep.
int Network::longest_sleep() const {
    return has_pulses() || rails_.front()->wires.front()->keeps()
               ? static_cast<int>(Pulse::kPeriodNs / 2 / kMillisecondNs)
               : -1;
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
            moved = poll_wires();
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
            clear_wakeup_descriptor();
        }
    }
}

}  // namespace heddle::fabric

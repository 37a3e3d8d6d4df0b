// The service thread of a network (network.h): when it polls, and where it sleeps.
#include "base/counters.h"
#include "base/error.h"
#include "base/slow_event.h"
#include "fabric/network.h"
#include "os/clock.h"
#include "os/own_thread.h"
#include "os/ticks.h"

#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace heddle::fabric {

namespace {

constexpr uint64_t kServiceNapNs = os::kMillisecondNs / 10, kMaxServiceNapNs = os::kMillisecondNs;
// Where the program's threads have all cores, they are given so long since their last poll for the next one.
constexpr uint64_t kPatienceNs = 2 * kMaxServiceNapNs;
// What has come is likely to be followed by more for so long: an answer to what this PE sends at once takes less.
constexpr uint64_t kLikelyNs = os::kMillisecondNs / 10;
// From poll to poll a core rests about as long as nothing has come: a poll takes about the least of these times.
// As long may what is under way keep silent while the thread watches: who is waited for may come in a second.
constexpr uint64_t kPendingNs = 20 * os::kMillisecondNs;
constexpr uint64_t kMinWatchNs = 2000, kMaxWatchNs = os::kMillisecondNs / 20;

}  // namespace

// A channel that nobody uses stays armed from sleep to sleep.
bool Network::arm() {
    return std::all_of(channel_pools_.begin(), channel_pools_.end(),
                       [](const auto& pool) {
                           const bool again = pool->is_used.load(std::memory_order_relaxed);
                           return std::all_of(pool->channels.begin(), pool->channels.end(),
                                              [&](Channel* channel) { return channel->arm(again); });
                       }) &&
           std::all_of(rails_.begin(), rails_.end(),
                       [](const auto& rail) { return !rail->heartbeat_channel || rail->heartbeat_channel->arm(); });
}

// Called at every turn of the service thread; woken: something may have come.
void Network::tick(bool woken) {
    if (!has_heartbeats() || leaving_.load(std::memory_order_relaxed))
        return;
    const uint64_t now_ns = os::now_ns();
    if (!woken && now_ns - tick_ns_ < Heartbeat::kPeriodNs / 4)
        return;
    tick_ns_ = now_ns;
    Heartbeat* silent = nullptr;
    int lost = 0;
    bool is_heard = false, all_are_silent = true;
    for (const auto& rail : rails_) {
        Heartbeat& heartbeat = *rail->heartbeat;
        heartbeat.tick(now_ns);
        if (rail->is_lost())
            continue;
        is_heard |= heartbeat.is_heard();
        all_are_silent &= heartbeat.is_silent();
        if (heartbeat.is_silent()) {
            silent = &heartbeat;
            lost = rail->number;
        }
    }
    if (!silent)
        return;
    if (all_are_silent)
        return silent->lose_neighbour();
    if (!is_heard)
        return;  // it may be the node, and the other rails' time is not over
    char reason[Heartbeat::kMaxReason];
    silent->describe_silence(reason);
    const ChannelConfig& config = rails_.front()->config;
    config.job.rail_lost(lost, config.ring.behind, Loss::kSilent, reason);
}

bool Network::start() {
    stopping_.store(false, std::memory_order_relaxed);
    leaving_.store(false, std::memory_order_relaxed);
    for (const auto& rail : rails_)
        if (rail->heartbeat)
            rail->heartbeat->begin();
    const bool is_started = os::start_own_thread(&service_, run_service, this) == 0;
    serving_.store(is_started, std::memory_order_relaxed);
    return is_started;
}

void Network::stop() {
    if (!serving_.load(std::memory_order_relaxed))
        return;
    stopping_.store(true, std::memory_order_release);  // pairs with Network::serve
    wake_up();
    pthread_join(service_, nullptr);
    clear_wakeup_descriptor();
    serving_.store(false, std::memory_order_relaxed);
}

void* Network::run_service(void* it) {
    static_cast<Network*>(it)->serve();
    return nullptr;
}

void Network::set_service(Service service) {
    service_kind_.store(service, std::memory_order_release);  // pairs with Network::serve
    wake_up();
}

const char* Network::service_name() const {
    switch (service_kind_.load(std::memory_order_relaxed)) {
        case Service::kNone:
            return "none";
        case Service::kSpins:
            return "spin";
        case Service::kWatches:
            if (policy_->leaves_core())
                return policy_->monitor->name;
            [[fallthrough]];
        case Service::kSleeps:
            break;
    }
    return "epoll";
}

void Network::wake_up() {
    const uint64_t one = 1;
    if (write(wakeup_descriptor_, &one, sizeof one) < 0 && errno != EAGAIN)
        base::report("network", "the service thread's descriptor: %s", strerror(errno));
}

// True after a nap, when other threads poll, or may soon. *looks: it was patient, nobody has polled for as long as the
// nap, and something has come. That may be the get of a PE that waits for it.
bool Network::keeps_away(uint64_t* nap_ns, bool* looks) {
    const uint32_t turn = away_.value.load(std::memory_order_acquire);
    const bool polled = polls_.load(std::memory_order_relaxed) != seen_polls_.load(std::memory_order_relaxed);
    const bool under_way = policy_ && policy_->posted.load(std::memory_order_relaxed) != 0;
    const uint64_t now_ns = os::now_ns();
    if (polled)
        polled_ns_ = now_ns;
    // A thread that sleeps waits for what comes. Relaxed: it has ended the nap.
    const bool sleeps = policy_ && policy_->own_sleepers.load(std::memory_order_relaxed) != 0;
    const bool is_asked = std::exchange(turn_, turn) != turn;
    const bool is_patient = policy_ && !sleeps && !is_asked && now_ns - polled_ns_ < kPatienceNs &&
                            !policy_->leaves_core() && !any_channel(&Channel::has_large);
    if (under_way ? policy_->pollers.load(std::memory_order_relaxed) == 0 : !polled && !is_patient) {
        *nap_ns = kServiceNapNs;
        return false;
    }
    see_polls();
    if (sleeps)
        *nap_ns = kServiceNapNs;
    const timespec deadline = os::to_timespec(now_ns + *nap_ns);
    away_.sleep(turn + 1, &deadline);
    *looks = is_patient && polls_.load(std::memory_order_relaxed) == seen_polls_.load(std::memory_order_relaxed) &&
             has_event();
    *nap_ns = std::min(2 * *nap_ns, kMaxServiceNapNs);
    return true;
}

// Something waits to be read. A transport may tell so only once it is armed.
bool Network::has_event() const {
    epoll_event events[2];
    const int count = epoll_wait(descriptors_, events, 2, 0);
    return std::any_of(events, events + std::max(count, 0),
                       [](const auto& event) { return event.data.u32 != kWakeup; });
}

// True after a rest on the line that take_over writes, up to the time of the next poll. False where the service thread
// should sleep: nothing is under way, or no core is left, and the rest would keep one from the program.
bool Network::watch() {
    HEDDLE_INVARIANT(policy_ && policy_->monitor);
    const uint64_t now_ns = os::now_ns(), quiet_ns = now_ns - moved_ns_;
    const bool is_pending = policy_->posted.load(std::memory_order_relaxed) != 0 || any_channel(&Channel::has_large);
    if (is_pending && !is_pending_)
        pending_since_ns_ = now_ns;
    is_pending_ = is_pending;
    const bool is_under_way =
        quiet_ns < kLikelyNs || (is_pending && now_ns - std::max(moved_ns_, pending_since_ns_) < kPendingNs);
    if (!is_under_way || !policy_->leaves_core())
        return false;
    policy_->monitor->arm(&away_.value);
    if (away_.holds(turn_)) {  // what has advanced it since keeps_away looked would not end the rest
        base::counters->service_watches.add_cheaply();
        policy_->monitor->wait(std::clamp(quiet_ns, kMinWatchNs, kMaxWatchNs));
    }
    return true;
}

// True after a nap while large data comes, which the kernel keeps (fabric/interrupt_moderation.h). None while a thread
// waits: one that falls asleep ends the nap, one that is awake polls. What was due has left with the poll before.
bool Network::nap_while_data_comes() {
    uint64_t asked = 0, arrived = 0;
    for (const auto& rail : rails_)
        for (const auto& channel : rail->channels) {
            arrived += channel->arrived();
            asked += channel->asked();
        }
    const uint64_t now_ns = os::now_ns();
    const bool nobody_waits = !policy_ || (policy_->own_sleepers.load(std::memory_order_relaxed) == 0 &&
                                           policy_->pollers.load(std::memory_order_relaxed) == 0);
    const uint64_t nap_ns = moderation_.nap_ns(now_ns, asked, arrived, nobody_waits);
    if (nap_ns == 0)
        return false;
    base::counters->service_naps.add_cheaply();
    const timespec deadline = os::to_timespec(now_ns + nap_ns);
    away_.sleep(turn_ + 1, &deadline);
    return true;
}

bool Network::any_channel(bool (Channel::*holds)() const) const {
    return std::any_of(rails_.begin(), rails_.end(), [&](const auto& rail) {
        return std::any_of(rail->channels.begin(), rail->channels.end(),
                           [&](const auto& channel) { return (*channel.*holds)(); });
    });
}

void Network::wait_for_heartbeats() {
    pollfd sources[1 + kMaxRails] = {{wakeup_descriptor_, POLLIN, 0}};
    nfds_t count = 1;
    for (const auto& rail : rails_)
        if (rail->heartbeat_channel && rail->heartbeat_channel->arm())
            sources[count++] = {api_->descriptor(rail->transport, rail->heartbeat_channel->number()), POLLIN, 0};
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
    return has_heartbeats() || retransmitting_ ? static_cast<int>(Heartbeat::kPeriodNs / 2 / os::kMillisecondNs) : -1;
}

// Nobody looks at what comes on a lost rail, which would end every sleep. Only the heartbeats' channel goes on.
void Network::unwatch_lost_rails() {
    for (const auto& rail : rails_) {
        if (!rail->is_watched || !rail->is_lost())
            continue;
        rail->is_watched = false;
        for (const auto& channel : rail->channels)
            epoll_ctl(descriptors_, EPOLL_CTL_DEL, api_->descriptor(rail->transport, channel->number()), nullptr);
    }
}

void Network::sleep_until_event() {
    // Ahead of the looks of arm; pairs with Network::on_left and Network::polls_soon.
    asleep_.store(true, std::memory_order_seq_cst);
    epoll_event event;
    unwatch_lost_rails();
    if (!arm()) {
        os::sleep_ns(kServiceNapNs);  // another thread polls, or something has come
    } else {
        base::counters->service_sleeps.add_cheaply();
        uint64_t asleep_ticks = base::find_slow_event_sink() ? os::ticks_now() : 0;
        const int found = epoll_wait(descriptors_, &event, 1, longest_sleep());
        base::end_slow_event(base::SlowEvent::kServiceSleep, &asleep_ticks);
        if (found == 1) {
            if (event.data.u32 == kWakeup)
                clear_wakeup_descriptor();
            else if (event.data.u32 < channel_pools_.size())  // not the heartbeats'
                channel_pools_[event.data.u32]->is_used.store(true, std::memory_order_relaxed);
        }
    }
    asleep_.store(false, std::memory_order_relaxed);  // a wake-up in vain is a look more
}

// The service thread does what a poll has left. Where it serves no stream, the next poll does. A thread that waits
// awake is sooner there than one that naps; a service thread that sleeps on the descriptors would not come at all.
void Network::on_left() {
    // seq_cst, both: behind the look at what is left. Pair with Network::sleep_until_event.
    if (asleep_.load(std::memory_order_seq_cst)) {
        if (asleep_.exchange(false, std::memory_order_seq_cst))
            wake_up();
    } else if (!policy_ || policy_->pollers.load(std::memory_order_relaxed) == 0) {
        take_over();
    }
}

// Whether a record may be left to others: threads that wait awake poll, and share the cores. Should they fall asleep
// meanwhile, the service thread comes when its nap ends; it is there, and does not sleep on the descriptors.
bool Network::polls_soon() const {
    // seq_cst: behind the push of the caller (Channel::queue). Pairs with Network::sleep_until_event.
    return policy_ && policy_->is_crowded() && policy_->pollers.load(std::memory_order_relaxed) != 0 &&
           serving_.load(std::memory_order_relaxed) &&
           service_kind_.load(std::memory_order_relaxed) != Service::kNone && !asleep_.load(std::memory_order_seq_cst);
}

void Network::serve() {
    see_polls();
    bool woken = true;
    uint64_t nap_ns = kServiceNapNs;
    while (!stopping_.load(std::memory_order_acquire)) {  // pairs with Network::stop
        tick(woken);
        woken = false;
        const Service kind = service_kind_.load(std::memory_order_acquire);  // pairs with Network::set_service
        const bool watches = kind == Service::kWatches;
        bool looks = false;
        if ((watches || kind == Service::kSleeps) && keeps_away(&nap_ns, &looks)) {
            if (looks || any_channel(&Channel::ack_pending)) {
                poll_channels(Use::kAny);
                see_polls();
            } else {
                poll_channels(Use::kUnused);
            }
            continue;
        }
        bool moved = false;
        if (kind != Service::kNone)
            moved = poll_channels(Use::kAny);
        see_polls();  // what goes on after a poll may poll itself
        if (kind == Service::kSpins && !moved)
            sched_yield();
        if (moved)
            moved_ns_ = os::now_ns();
        if (moved || kind == Service::kSpins || (watches && watch()))
            continue;
        if (kind != Service::kNone && nap_while_data_comes())
            continue;
        woken = true;
        if (kind == Service::kNone)
            wait_for_heartbeats();
        else
            sleep_until_event();
    }
    if (has_heartbeats() && leaving_.load(std::memory_order_relaxed))
        for (const auto& rail : rails_) rail->heartbeat->leave();
}

}  // namespace heddle::fabric

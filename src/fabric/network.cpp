#include "fabric/network.h"

#include "base/error.h"
#include "base/tsan.h"
#include "fabric/transport/address_blob.h"
#include "os/asymmetric_fence.h"
#include "os/locked.h"
#include "os/memfd.h"
#include "os/plugin.h"

#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace heddle::fabric {

HEDDLE_PE_LOCAL base::PePointer<Network> network;

namespace {

constexpr const char* kReturn = "the return of stream sets";

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

// What the channels and the transports call: their owner is a rail.
struct NetworkEvents {
    static Channel& channel_of(void* owner, int number) {
        const auto& rail = *static_cast<Network::Rail*>(owner);
        const auto index = static_cast<size_t>(number);
        return index < rail.channels.size() ? *rail.channels[index] : *rail.heartbeat_channel;
    }
    static Header header_of(const void* bytes) {
        Header header;
        memcpy(&header, bytes, sizeof header);
        return header;
    }
    static void arrived(void* owner, int channel, const void* bytes, const char* body, size_t body_bytes) {
        channel_of(owner, channel).arrived(header_of(bytes), body, body_bytes);
    }
    static void announced(void* owner, int channel, const void* bytes, size_t body_bytes, Arrival* arrival) {
        channel_of(owner, channel).announced(header_of(bytes), body_bytes, arrival);
    }
    // Heartbeats are not retransmitted: they are about their rail.
    static RetransmittingTransport* retransmitting(const Network::Rail& rail, int channel) {
        return static_cast<size_t>(channel) < rail.channels.size() ? rail.network->retransmitting_.get() : nullptr;
    }
    static void arrived_on_rail(void* owner, int channel, const void* bytes, const char* body, size_t body_bytes) {
        const auto& rail = *static_cast<Network::Rail*>(owner);
        if (RetransmittingTransport* const all = retransmitting(rail, channel))
            return all->arrived(rail.number, channel, header_of(bytes), body, body_bytes);
        arrived(owner, channel, bytes, body, body_bytes);
    }
    static void announced_on_rail(void* owner, int channel, const void* bytes, size_t body_bytes, Arrival* arrival) {
        const auto& rail = *static_cast<Network::Rail*>(owner);
        if (RetransmittingTransport* const all = retransmitting(rail, channel))
            return all->announced(rail.number, channel, header_of(bytes), arrival);
        announced(owner, channel, bytes, body_bytes, arrival);
    }
    static Endpoint* endpoint_of(void* owner, int channel, int pe) {
        return channel_of(owner, channel).endpoint_of(pe);
    }
    static void wake(void* owner, int channel) { channel_of(owner, channel).wake(); }
    static Stream* stream_of(void* owner, uint32_t number, int pe) {
        const auto& rail = *static_cast<Network::Rail*>(owner);
        // Acquire: pairs with Network::prepare.
        StreamSet* const stream_set =
            number < kMaxStreamSets ? rail.network->stream_set_table_[number].load(std::memory_order_acquire) : nullptr;
        return stream_set ? stream_set->find(pe, rail.number) : nullptr;
    }
    static RailWatermarks* watermarks_of(void* owner, uint32_t stream_set, int pe) {
        Network& mine = *static_cast<Network::Rail*>(owner)->network;
        const std::lock_guard lock(mine.watermarks_lock_);
        return &mine.watermarks_[{pe, stream_set}];
    }
    static size_t own_address_blob(void* owner, char* address_blob) {
        return static_cast<Network::Rail*>(owner)->network->address_blob(address_blob);
    }
    static void on_left(void* owner) { static_cast<Network::Rail*>(owner)->network->on_left(); }
    static bool polls_soon(void* owner) { return static_cast<Network::Rail*>(owner)->network->polls_soon(); }
    static bool is_asleep(void* owner) { return static_cast<Network::Rail*>(owner)->network->is_asleep(); }
    static void on_heartbeat(void* owner, const Header& header, const char* body, size_t bytes) {
        const auto& rail = *static_cast<Network::Rail*>(owner);
        if (rail.heartbeat)
            rail.heartbeat->on_heartbeat(header, body, bytes);
    }
    static void failed(void* owner, int, int pe, const char* reason) {
        const auto& rail = *static_cast<Network::Rail*>(owner);
        if (rail.network->leaving_.load(std::memory_order_relaxed))
            return;
        if (rail.network->rails() == 1)
            rail.config.job.lost(pe, Loss::kBroken, reason);
        else
            rail.config.job.rail_lost(rail.number, pe, Loss::kBroken, reason);
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

bool Network::open_rail(const NetworkOptions& options, const ChannelConfig& given, char* error, size_t error_bytes) {
    rails_.push_back(std::make_unique<Rail>());
    Rail& rail = *rails_.back();
    rail.network = this;
    rail.number = rails() - 1;
    ChannelConfig& config = rail.config;
    config = given;
    config.api = api_;
    config.network.owner = &rail;
    config.control_inbox = &control_inbox_;
    config.addresses = &addresses_;
    config.rail = rail.number;
    config.n_rails = static_cast<int>(options.rails.size());
    config.network.stream_of = NetworkEvents::stream_of;
    config.network.watermarks_of = NetworkEvents::watermarks_of;
    config.network.own_address_blob = NetworkEvents::own_address_blob;
    config.network.on_left = NetworkEvents::on_left;
    config.network.polls_soon = NetworkEvents::polls_soon;
    config.network.is_asleep = NetworkEvents::is_asleep;
    config.network.on_heartbeat = NetworkEvents::on_heartbeat;
    const bool in_ring = given.ring.before >= 0;
    Options wanted = options.transport;
    wanted.devices = options.rails[static_cast<size_t>(rail.number)].c_str();
    wanted.channels += in_ring;
    std::copy_n(given.regions.of, kRegions, wanted.regions);
    const Events events = {&rail, NetworkEvents::arrived_on_rail, NetworkEvents::announced_on_rail,
                           NetworkEvents::failed};
    if (!api_->open(wanted, events, &rail.transport, error, error_bytes))
        return false;
    config.transport = rail.transport;
    config.is_native = api_->is_native(rail.transport, nullptr);
    rail.heartbeat_config = config;
    rail.heartbeat_config.job.notify = [](void*) {};
    rail.heartbeat_config.job.run_ready = nullptr;
    if (config.lost_rails && config.n_rails > 1) {
        retransmit(config, config.n_rails, options.transport.channels);
        config.api = &RetransmittingTransport::api();
        config.transport = retransmitting_->add_rail(
            rail.transport, {&rail, NetworkEvents::arrived, NetworkEvents::announced, NetworkEvents::failed});
    } else {
        // RDMA takes large data past the messages. And what is sent again has an order of its own.
        config.parts_large = !config.is_native;
    }
    open_channels(rail, wanted.channels);
    if (in_ring)
        rail.heartbeat = std::make_unique<Heartbeat>(*rail.heartbeat_channel, options.heartbeat_timeout_ns);
    return true;
}

// Messages are kept from here on, for when a rail is lost.
void Network::retransmit(const ChannelConfig& config, int n_rails, int n_channels) {
    if (retransmitting_)
        return;
    retransmitting_ = std::make_unique<RetransmittingTransport>(
        RetransmittingTransport::Config{.api = api_,
                                        .token = config.token,
                                        .n_pes = config.n_pes,
                                        .n_rails = n_rails,
                                        .n_channels = n_channels,
                                        .lost_rails = config.lost_rails,
                                        .rail_lost = config.job.rail_lost,
                                        .endpoint_of = NetworkEvents::endpoint_of,
                                        .wake = NetworkEvents::wake});
}

void Network::open_channels(Rail& rail, int count) {
    const bool in_ring = rail.config.ring.before >= 0;
    for (int number = 0; number < count; ++number) {
        if (in_ring && number == count - 1)
            rail.heartbeat_channel = std::make_unique<Channel>(rail.heartbeat_config, number);
        else
            rail.channels.push_back(std::make_unique<Channel>(rail.config, number));
        epoll_event event = {EPOLLIN, {.u32 = static_cast<uint32_t>(number)}};
        epoll_ctl(descriptors_, EPOLL_CTL_ADD, api_->descriptor(rail.transport, number), &event);
    }
}

bool Network::prepare_service(char* error, size_t error_bytes) {
    stream_set_table_ = make_table<StreamSet>(kMaxStreamSets);
    wakeup_descriptor_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    descriptors_ = epoll_create1(EPOLL_CLOEXEC);
    if (!stream_set_table_ || wakeup_descriptor_ < 0 || descriptors_ < 0) {
        snprintf(error, error_bytes, "cannot prepare the service thread: %s", strerror(errno));
        return false;
    }
    epoll_event event = {EPOLLIN, {.u32 = kWakeup}};
    epoll_ctl(descriptors_, EPOLL_CTL_ADD, wakeup_descriptor_, &event);
    return true;
}

std::unique_ptr<Network> Network::open(const NetworkOptions& options, const ChannelConfig& config, char* error,
                                       size_t error_bytes) {
    std::unique_ptr<Network> made(new Network);
    made->n_pes_ = config.n_pes;
    made->policy_ = config.policy;
    if (!os::prepare_heavy_fence()) {
        snprintf(error, error_bytes, "this kernel has no membarrier(2): right would be Linux 4.14 or later");
        return nullptr;
    }
    if (!made->load(options.plugin, error, error_bytes) || !made->prepare_service(error, error_bytes))
        return nullptr;
    for (size_t rail = 0; rail < options.rails.size(); ++rail)
        if (!made->open_rail(options, config, error, error_bytes))
            return nullptr;
    for (size_t number = 0; number < made->rails_.front()->channels.size(); ++number) {
        std::vector<Channel*>& channels = made->channel_pools_.emplace_back(std::make_unique<ChannelPool>())->channels;
        for (const auto& rail : made->rails_) channels.push_back(rail->channels[number].get());
        if (made->rails() > 1)
            for (Channel* const channel : channels) channel->set_rails(channels.data());
    }
    made->spread_over(static_cast<int>(made->channel_pools_.size()));
    return made;
}

size_t Network::address_blob(char* address_blob) const {
    size_t bytes = 0;
    for (const auto& rail : rails_)
        if (!add_rail_address(*api_, rail->transport, address_blob, &bytes))
            return 0;
    return bytes;
}

Network::~Network() {
    stop();
    for (const auto& rail : rails_)
        if (rail->transport && !rail->is_lost())  // fabric/multirail/retransmitting_transport.h: a lost rail
            api_->close(rail->transport);
    for_each_stream_set([&](StreamSet& stream_set) {
        stream_set.delete_streams();
        const size_t bytes = table_bytes(static_cast<size_t>(n_pes_));
        if (stream_set.streams)
            os::unmap(stream_set.streams, bytes);
        if (stream_set.rails)
            os::unmap(stream_set.rails, bytes);
    });
    if (stream_set_table_)
        os::unmap(stream_set_table_, table_bytes(kMaxStreamSets));
    rails_.clear();
    if (wakeup_descriptor_ >= 0)
        ::close(wakeup_descriptor_);
    if (descriptors_ >= 0)
        ::close(descriptors_);
}

// --- Stream sets

// A stream set that is used for the first time.
bool Network::prepare(StreamSet& stream_set, size_t channel) {
    const size_t number = stream_set.link.index * channel_pools_.size() + channel;
    if (number >= kMaxStreamSets)
        return false;
    const auto n_pes = static_cast<size_t>(n_pes_);
    stream_set.n_rails = rails();
    if (stream_set.n_rails > 1 && !stream_set.rails)
        stream_set.rails = make_table<RailScheduler>(n_pes);
    if (stream_set.n_rails == 1 || stream_set.rails)
        stream_set.streams = make_table<Stream>(n_pes);
    if (!stream_set.streams)
        return false;
    stream_set.producer.stream_set = static_cast<uint32_t>(number);
    stream_set.channel = static_cast<int>(channel);
    stream_set.producer.quota.slab = &ring_slab_;
    stream_set.home_rail = static_cast<int>(stream_set.link.index) % stream_set.n_rails;
    const std::vector<Channel*>& channels = channel_pools_[channel]->channels;
    std::copy(channels.begin(), channels.end(), stream_set.channels);
    stream_set_table_[number].store(&stream_set, std::memory_order_release);  // pairs with NetworkEvents::stream_of
    return true;
}

void Network::spread_over(int count) {
    HEDDLE_INVARIANT(count > 0);
    own_channels_.store(std::min(count, static_cast<int>(channel_pools_.size())), std::memory_order_relaxed);
}

// The channel number that weighs least, which weighs so much more from now on.
size_t Network::weigh_in(Weight weight) {
    const std::lock_guard<std::mutex> lock(weights_lock_);
    const auto lightest = std::min_element(channel_pools_.begin(), channel_pools_.begin() + channels(),
                                           [](const auto& a, const auto& b) { return a->weight < b->weight; });
    (*lightest)->weight += static_cast<uint64_t>(weight);
    (*lightest)->is_used.store(true, std::memory_order_relaxed);
    return static_cast<size_t>(lightest - channel_pools_.begin());
}

void Network::weigh_out(size_t number, Weight weight) {
    const std::lock_guard<std::mutex> lock(weights_lock_);
    HEDDLE_INVARIANT(channel_pools_[number]->weight >= static_cast<uint64_t>(weight));
    channel_pools_[number]->weight -= static_cast<uint64_t>(weight);
}

bool Network::shares_channels(const StreamSet& stream_set) {
    const std::lock_guard<std::mutex> lock(weights_lock_);
    return channel_pools_[static_cast<size_t>(stream_set.channel)]->weight != static_cast<uint64_t>(stream_set.weight);
}

// Null where there is no memory, or no further number.
StreamSet* Network::take_stream_set(size_t number) {
    auto& pool = channel_pools_[number]->stream_sets;
    StreamSet* const stream_set = pool.take();
    if (!stream_set || stream_set->streams || prepare(*stream_set, number))
        return stream_set;
    pool.give(stream_set);
    return nullptr;
}

StreamSet* Network::make_stream_set(StreamSetList& list, const void* thread, Spread spread, Weight weight) {
    const size_t number = weigh_in(weight);
    StreamSet* const stream_set = take_stream_set(number);
    if (!stream_set) {
        weigh_out(number, weight);
        return nullptr;
    }
    HEDDLE_INVARIANT(stream_set->channel == static_cast<int>(number));
    tsan::acquire(stream_set);
    stream_set->weight = weight;
    stream_set->spread = spread;
    stream_set->producer.n_active = &list.n_active;
    stream_set->producer.batches.store(&list.batches, std::memory_order_release);  // pairs with Producer::may_batch
    stream_set->producer.thread.store(thread, std::memory_order_relaxed);
    // Its last thread may be about to set a stream of it idle, and take it for its own (SendRing::go_idle): from here
    // on it knows better, or has set it (tests/model/idle.pml, NEW_OWNER).
    if (stream_set->groups.load(std::memory_order_relaxed))
        os::heavy_fence();
    StreamSet* first = list.first.load(std::memory_order_relaxed);
    // Release: pairs with Network::return_stream_sets, StreamSetList::take_over, StreamSetList::of,
    // operations::find_stream_set, operations::all_active, operations::wait_for_fences_of_others,
    // operations::remote_fence, operations::remote_quiet, operations::remote_quiet_to, runtime::stream_set_of and
    // runtime::bytes_of.
    do {
        stream_set->next = first;
    } while (
        !list.first.compare_exchange_weak(first, stream_set, std::memory_order_release, std::memory_order_relaxed));
    return stream_set;
}

void Network::return_stream_sets(StreamSetList& list) {
    // A sender may be about to find that a stream is quiet, and then counts for this list.
    progress::wait_for_stores(kReturn, &list.n_active, [&] { return !list.is_active(); });
    // Acquire: pairs with Network::make_stream_set.
    StreamSet* stream_set = list.first.exchange(nullptr, std::memory_order_acquire);
    while (stream_set) {
        StreamSet* const next = stream_set->next;
        {
            // The thread may be ending: it finds that the set is not its own, or is done with it.
            const os::Locked locked(stream_set->ends);
            stream_set->producer.thread.store(nullptr, std::memory_order_relaxed);   // relaxed: the lock orders it
            stream_set->producer.batches.store(nullptr, std::memory_order_release);  // as in Network::make_stream_set
            stream_set->producer.quota.take_back_all();
        }
        const auto number = static_cast<size_t>(stream_set->channel);
        weigh_out(number, stream_set->weight);
        tsan::release(stream_set);
        channel_pools_[number]->stream_sets.give(stream_set);
        stream_set = next;
    }
}

// --- Progress

bool Network::poll() {
    count_poll();
    const bool others_look =
        serving_.load(std::memory_order_relaxed) && service_kind_.load(std::memory_order_relaxed) != Service::kNone;
    return poll_channels(others_look ? Use::kUsed : Use::kAny);
}

bool Network::poll_channels(Use use) {
    bool moved = false;
    for (const auto& pool : channel_pools_) {
        const bool is_used = pool->is_used.load(std::memory_order_relaxed);
        if (is_used ? use == Use::kUnused : use == Use::kUsed)
            continue;
        bool moves = false;
        for (Channel* const channel : pool->channels) moves |= channel->poll();
        if (moves && !is_used)
            pool->is_used.store(true, std::memory_order_relaxed);
        moved |= moves;
    }
    return moved;
}

}  // namespace heddle::fabric

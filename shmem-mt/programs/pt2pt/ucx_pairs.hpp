// Bare UCX between the PEs of a pair, thread with thread: what a library over the same transports could reach at best.
// Each thread has a worker and an endpoint to its partner's thread, memory that the partner reaches, and private
// memory. The OpenSHMEM library starts the PEs and carries the addresses; nothing that is timed goes through it.
#pragma once

#include <sched.h>
#include <ucp/api/ucp.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "programs/common/job.hpp"

namespace shmem_mt {

// Ends the program where UCX has failed.
inline void require_ucx(ucs_status_t status, const char* what) {
    if (status != UCS_OK)
        fail(std::string("bare UCX: ") + what + ": " + ucs_status_string(status));
}

// Active messages: a message to its place, one that is answered, one there and back; messages packed; what is asked
// for, and its bytes; the end of a stream, and an answer.
enum UcxId : unsigned {
    kUcxMessage,
    kUcxAsked,
    kUcxTrip,
    kUcxPack,
    kUcxFetch,
    kUcxFetched,
    kUcxTold,
    kUcxAnswer,
    kUcxIds
};

// Ahead of a message: where it goes. Of a pack: the size of each of its items, which have an offset ahead of their
// bytes. Of what is asked for: that size, and 2^32 times the number of the fetch.
using UcxHeader = uint64_t;

// Packs, and fetches, of a thread that may be under way at once.
constexpr size_t kUcxPacks = 16;

// One thread's side of a pair. The thread alone uses it once it is connected.
class UcxPort {
  public:
    struct Told {
        long offset, first, last;
    };

    UcxPort(ucp_context_h context, char* window, long bytes) : window_(window), local_(static_cast<size_t>(bytes)) {
        ucp_worker_params_t params{};
        params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
        params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
        require_ucx(ucp_worker_create(context, &params, &worker_), "ucp_worker_create");
        set_handler(kUcxMessage, on_message);
        set_handler(kUcxAsked, on_message);
        set_handler(kUcxPack, on_pack);
        set_handler(kUcxFetch, on_fetch);
        set_handler(kUcxFetched, on_fetched);
        set_handler(kUcxTold, on_told);
        set_handler(kUcxAnswer, on_answer);
        set_handler(kUcxTrip, on_message);
    }

    ~UcxPort() {
        ucp_rkey_destroy(key_);
        ucp_worker_destroy(worker_);
    }

    UcxPort(const UcxPort&) = delete;
    UcxPort& operator=(const UcxPort&) = delete;

    std::string address() const {
        ucp_address_t* address = nullptr;
        size_t bytes = 0;
        require_ucx(ucp_worker_get_address(worker_, &address, &bytes), "ucp_worker_get_address");
        const std::string copy(reinterpret_cast<const char*>(address), bytes);
        ucp_worker_release_address(worker_, address);
        return copy;
    }

    void connect(const std::string& address, const std::string& key, uint64_t remote) {
        ucp_ep_params_t params{};
        params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        params.address = reinterpret_cast<const ucp_address_t*>(address.data());
        require_ucx(ucp_ep_create(worker_, &params, &endpoint_), "ucp_ep_create");
        require_ucx(ucp_ep_rkey_unpack(endpoint_, key.data(), &key_), "ucp_ep_rkey_unpack");
        remote_ = remote;
    }

    char* window() { return window_; }
    char* local() { return local_.data(); }

    // `slot`: bytes into the window, and into the private memory.
    void put(long slot, size_t bytes) {
        const ucp_request_param_t params = counted();
        count(
            ucp_put_nbx(endpoint_, local_.data() + slot, bytes, remote_ + static_cast<uint64_t>(slot), key_, &params));
    }

    void get(long slot, size_t bytes) {
        const ucp_request_param_t params = counted();
        count(
            ucp_get_nbx(endpoint_, local_.data() + slot, bytes, remote_ + static_cast<uint64_t>(slot), key_, &params));
    }

    // `data` stays as it is until the message is done.
    void message(unsigned id, UcxHeader header, const void* data, size_t bytes) {
        const ucp_request_param_t params = counted();
        count(ucp_am_send_nbx(endpoint_, id, keep(header), sizeof header, data, bytes, &params));
    }

    // Memory that a pack is made in.
    struct Pack {
        char* data = nullptr;
        UcxPort* port = nullptr;
        bool is_under_way = false;
    };

    // Its first `bytes` bytes, items of `size` bytes with their offsets.
    void send_pack(Pack& pack, UcxHeader size, size_t bytes) {
        ucp_request_param_t params = eager();
        params.cb.send = on_pack_done;
        params.user_data = &pack;
        pack.port = this;
        pack.is_under_way = true;
        const UcxHeader* const header = keep(size);
        const ucs_status_ptr_t request =
            ucp_am_send_nbx(endpoint_, kUcxPack, header, sizeof size, pack.data, bytes, &params);
        pack.is_under_way = request != nullptr;
        count(request);
    }

    // Until the pack may be filled.
    void await_pack(const Pack& pack) {
        while (pack.is_under_way) progress();
    }

    // Offsets of messages of `size` bytes each, whose bytes one answer brings.
    std::vector<uint64_t>& offsets_of(size_t fetch) { return fetches_[fetch].offsets; }

    void send_fetch(size_t fetch, size_t size) {
        Fetch& one = fetches_[fetch];
        one.is_under_way = true;
        const ucp_request_param_t params = eager();
        count(ucp_am_send_nbx(endpoint_, kUcxFetch, keep(fetch << 32 | size), sizeof(UcxHeader), one.offsets.data(),
                              one.offsets.size() * sizeof(uint64_t), &params));
    }

    // Until the bytes are here.
    void await_fetch(size_t fetch) {
        while (fetches_[fetch].is_under_way) progress();
    }

    // Until fewer than `fewer` are under way.
    void drain(long fewer = 1) {
        while (in_flight_ >= fewer) progress();
    }

    // Until all puts are at the target and all gets here.
    void flush() {
        const ucp_request_param_t params = counted();
        count(ucp_ep_flush_nbx(endpoint_, &params));
        drain();
    }

    void tell(const Told& told) {
        told_out_ = told;
        message(kUcxTold, 0, &told_out_, sizeof told_out_);
        drain();
    }

    void answer() {
        message(kUcxAnswer, 0, nullptr, 0);
        drain();
    }

    void await_answer() { await(answers_, ++answers_wanted_); }

    // Returns what the partner told, when all that it had sent before is here.
    Told await_told() {
        await(tellings_, ++tellings_wanted_);
        drain();
        return told_in_;
    }

    void await_trip() { await(trips_, ++trips_wanted_); }

    void progress() {
        if (ucp_worker_progress(worker_) != 0)
            idle_ = 0;
        else if (++idle_ % kPollsAYield == 0)
            sched_yield();
    }

  private:
    static constexpr long kMostInFlight = 1024;
    static constexpr long kPollsAYield = 64;  // cores may be fewer than threads

    struct Fetch {
        std::vector<uint64_t> offsets;
        bool is_under_way = false;
    };

    ucp_request_param_t counted() {
        drain(kMostInFlight);
        return uncounted();
    }

    ucp_request_param_t eager() {
        ucp_request_param_t params = counted();
        params.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        params.flags = UCP_AM_SEND_FLAG_EAGER;
        return params;
    }

    // Inside a handler, which may not poll.
    ucp_request_param_t uncounted() {
        ucp_request_param_t params{};
        params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        params.cb.send = on_done;
        params.user_data = this;
        return params;
    }

    void count(ucs_status_ptr_t request) {
        if (UCS_PTR_IS_ERR(request))
            require_ucx(UCS_PTR_STATUS(request), "an operation");
        in_flight_ += request != nullptr;
    }

    // Where a header stays until its message is done: active messages of an endpoint are, in their order.
    const UcxHeader* keep(UcxHeader header) {
        UcxHeader& kept = headers_[next_header_++ & (kMostInFlight - 1)];
        kept = header;
        return &kept;
    }

    void await(const long& seen, long wanted) {
        while (seen < wanted) progress();
    }

    void set_handler(unsigned id, ucp_am_recv_callback_t handler) {
        ucp_am_handler_param_t params{};
        params.field_mask =
            UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
        params.id = id;
        params.cb = handler;
        params.arg = &arguments_[id];
        arguments_[id] = {this, id};
        require_ucx(ucp_worker_set_am_recv_handler(worker_, &params), "ucp_worker_set_am_recv_handler");
    }

    struct Argument {
        UcxPort* port;
        unsigned id;
    };

    static UcxPort& port_of(void* argument) { return *static_cast<Argument*>(argument)->port; }

    void arrived(unsigned id) {
        trips_ += id == kUcxTrip;
        if (id != kUcxAsked)
            return;
        const ucp_request_param_t params = uncounted();
        count(ucp_am_send_nbx(endpoint_, kUcxAnswer, keep(0), sizeof(UcxHeader), nullptr, 0, &params));
    }

    static void on_done(void* request, ucs_status_t status, void* port) {
        require_ucx(status, "an operation");
        --static_cast<UcxPort*>(port)->in_flight_;
        ucp_request_free(request);
    }

    static void on_pack_done(void* request, ucs_status_t status, void* pack) {
        static_cast<Pack*>(pack)->is_under_way = false;
        on_done(request, status, static_cast<Pack*>(pack)->port);
    }

    static void on_received(void* request, ucs_status_t status, size_t, void* argument) {
        require_ucx(status, "a large message");
        --port_of(argument).in_flight_;
        port_of(argument).arrived(static_cast<Argument*>(argument)->id);
        ucp_request_free(request);
    }

    static ucs_status_t on_message(void* argument, const void* header, size_t, void* data, size_t bytes,
                                   const ucp_am_recv_param_t* how) {
        UcxPort& port = port_of(argument);
        UcxHeader offset = 0;
        std::memcpy(&offset, header, sizeof offset);
        if (!(how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
            std::memcpy(port.window_ + offset, data, bytes);
            port.arrived(static_cast<Argument*>(argument)->id);
            return UCS_OK;
        }
        ucp_request_param_t params{};
        params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
        params.cb.recv_am = on_received;
        params.user_data = argument;
        port.count(ucp_am_recv_data_nbx(port.worker_, data, port.window_ + offset, bytes, &params));
        return UCS_INPROGRESS;
    }

    static ucs_status_t on_pack(void* argument, const void* header, size_t, void* data, size_t bytes,
                                const ucp_am_recv_param_t*) {
        UcxHeader size = 0;
        std::memcpy(&size, header, sizeof size);
        char* const window = port_of(argument).window_;
        const char* const end = static_cast<const char*>(data) + bytes;
        for (const char* item = static_cast<const char*>(data); item < end; item += sizeof(uint64_t) + size) {
            uint64_t offset = 0;
            std::memcpy(&offset, item, sizeof offset);
            if (size == 8)
                std::memcpy(window + offset, item + sizeof offset, 8);
            else
                std::memcpy(window + offset, item + sizeof offset, size);
        }
        return UCS_OK;
    }

    // A fetch is asked for again only when its bytes have come, so its memory is free.
    static ucs_status_t on_fetch(void* argument, const void* header, size_t, void* data, size_t bytes,
                                 const ucp_am_recv_param_t*) {
        UcxPort& port = port_of(argument);
        UcxHeader asked = 0;
        std::memcpy(&asked, header, sizeof asked);
        const size_t size = asked & 0xffffffff, items = bytes / sizeof(uint64_t);
        std::vector<char>& reply = port.replies_[asked >> 32];
        reply.resize(items * size);
        for (size_t i = 0; i < items; ++i) {
            uint64_t offset = 0;
            std::memcpy(&offset, static_cast<const char*>(data) + i * sizeof offset, sizeof offset);
            std::memcpy(reply.data() + i * size, port.window_ + offset, size);
        }
        ucp_request_param_t params = port.uncounted();
        params.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        params.flags = UCP_AM_SEND_FLAG_EAGER;
        port.count(ucp_am_send_nbx(port.endpoint_, kUcxFetched, port.keep(asked), sizeof asked, reply.data(),
                                   reply.size(), &params));
        return UCS_OK;
    }

    static ucs_status_t on_fetched(void* argument, const void* header, size_t, void* data, size_t,
                                   const ucp_am_recv_param_t*) {
        UcxPort& port = port_of(argument);
        UcxHeader asked = 0;
        std::memcpy(&asked, header, sizeof asked);
        const size_t size = asked & 0xffffffff;
        Fetch& fetch = port.fetches_[asked >> 32];
        for (size_t i = 0; i < fetch.offsets.size(); ++i)
            std::memcpy(port.local_.data() + fetch.offsets[i], static_cast<const char*>(data) + i * size, size);
        fetch.is_under_way = false;
        return UCS_OK;
    }

    static ucs_status_t on_told(void* argument, const void*, size_t, void* data, size_t, const ucp_am_recv_param_t*) {
        std::memcpy(&port_of(argument).told_in_, data, sizeof(Told));
        ++port_of(argument).tellings_;
        return UCS_OK;
    }

    static ucs_status_t on_answer(void* argument, const void*, size_t, void*, size_t, const ucp_am_recv_param_t*) {
        ++port_of(argument).answers_;
        return UCS_OK;
    }

    char* const window_;
    std::vector<char> local_;
    ucp_worker_h worker_ = nullptr;
    ucp_ep_h endpoint_ = nullptr;
    ucp_rkey_h key_ = nullptr;
    uint64_t remote_ = 0;
    long in_flight_ = 0;  // sent and not done, or announced and not received
    long idle_ = 0;       // polls in a row that found nothing
    Fetch fetches_[kUcxPacks];
    std::vector<char> replies_[kUcxPacks];
    UcxHeader headers_[kMostInFlight] = {};
    long next_header_ = 0;
    Told told_out_{}, told_in_{};
    long answers_ = 0, answers_wanted_ = 0, tellings_ = 0, tellings_wanted_ = 0, trips_ = 0, trips_wanted_ = 0;
    Argument arguments_[kUcxIds] = {};
};

// The ports of a PE's threads, connected to those of its partner.
class UcxPairs {
  public:
    // `bytes`: of a thread's window, and of its private memory. Collective.
    UcxPairs(Job& job, long bytes) : job_(job) {
        open_context();
        ucp_mem_map_params_t params{};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
        params.length = static_cast<size_t>(bytes * job.threads());
        params.flags = UCP_MEM_MAP_ALLOCATE;  // some transports reach only what they have allocated themselves
        require_ucx(ucp_mem_map(context_, &params, &memory_), "ucp_mem_map");
        ucp_mem_attr_t attributes{};
        attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
        require_ucx(ucp_mem_query(memory_, &attributes), "ucp_mem_query");
        char* const windows = static_cast<char*>(attributes.address);
        std::memset(windows, 0, params.length);
        for (int t = 0; t < job.threads(); ++t)
            ports_.push_back(std::make_unique<UcxPort>(context_, windows + t * bytes, bytes));
        connect();
    }

    ~UcxPairs() {
        job_.barrier();
        ports_.clear();
        ucp_mem_unmap(context_, memory_);
        ucp_cleanup(context_);
    }

    UcxPairs(const UcxPairs&) = delete;
    UcxPairs& operator=(const UcxPairs&) = delete;

    UcxPort& of(int thread) const { return *ports_[static_cast<size_t>(thread)]; }

  private:
    static constexpr size_t kMostAddress = 8192;

    // What a thread tells its partner, in symmetric memory.
    struct Card {
        size_t address_bytes, key_bytes;
        uint64_t window;
        char address[kMostAddress], key[kMostAddress];
    };

    void open_context() {
        ucp_config_t* config = nullptr;
        require_ucx(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
        const std::string& transports = job_.options().transports;
        if (!transports.empty())
            require_ucx(ucp_config_modify(config, "TLS", transports.c_str()), "UCX_TLS");
        // A pack goes in one piece.
        for (const char* name : {"RX_SEG_SIZE", "TX_SEG_SIZE"}) {
            if (transports.find("tcp") != std::string::npos)
                ucp_config_modify(config, name, "128k");
        }
        ucp_params_t params{};
        params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_NAME;
        params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM;
        params.mt_workers_shared = job_.threads() > 1;
        params.name = "shmem-mt";
        const ucs_status_t status = ucp_init(&params, config, &context_);
        ucp_config_release(config);
        require_ucx(status, "ucp_init");
    }

    void connect() {
        const size_t count = static_cast<size_t>(job_.threads());
        auto* const cards = static_cast<Card*>(symmetric_alloc(count * sizeof(Card)));
        auto mine = std::make_unique<Card>();
        void* key = nullptr;
        require_ucx(ucp_rkey_pack(context_, memory_, &key, &mine->key_bytes), "ucp_rkey_pack");
        if (mine->key_bytes > kMostAddress)
            fail("bare UCX: a key of " + std::to_string(mine->key_bytes) + " bytes");
        std::memcpy(mine->key, key, mine->key_bytes);
        ucp_rkey_buffer_release(key);
        for (size_t t = 0; t < count; ++t) {
            const std::string address = ports_[t]->address();
            if (address.size() > kMostAddress)
                fail("bare UCX: an address of " + std::to_string(address.size()) + " bytes");
            std::memcpy(mine->address, address.data(), address.size());
            mine->address_bytes = address.size();
            mine->window = reinterpret_cast<uint64_t>(ports_[t]->window());
            shmem_putmem(cards + t, mine.get(), sizeof(Card), job_.partner());
        }
        shmem_barrier_all();
        for (size_t t = 0; t < count; ++t) {
            const Card& card = cards[t];
            ports_[t]->connect({card.address, card.address_bytes}, {card.key, card.key_bytes}, card.window);
        }
        shmem_barrier_all();
        shmem_free(cards);
    }

    Job& job_;
    ucp_context_h context_ = nullptr;
    ucp_mem_h memory_ = nullptr;
    std::vector<std::unique_ptr<UcxPort>> ports_;
};

}  // namespace shmem_mt

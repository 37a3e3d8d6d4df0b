// UCX as a transport: active messages, eager for small ones and rendezvous for large ones; where it has RDMA, puts and
// gets too. A channel is a worker. Nothing of UCX is seen outside this folder. The settings that suit coalesced
// messages over TCP are made here, so that no user has to know them. Variables of the environment (UCX_...) take
// precedence.
#include "fabric/transport/ucx/ucx.h"

#include <dlfcn.h>
#include <net/if.h>
#include <ucs/debug/log_def.h>
#include <unistd.h>
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace heddle::fabric::ucx {

bool explain(char* error, size_t error_bytes, const char* what, ucs_status_t status) {
    snprintf(error, error_bytes, "%s: %s", what, ucs_status_string(status));
    return false;
}

namespace {

// Stops UCX's own messages about sockets that fail. UCX calls on_error each time, too, which reports a lost peer once,
// or not at all while the job ends. A user who sets UCX_LOG_LEVEL gets all messages.
ucs_log_func_rc_t keep_quiet_of_sockets(const char* file, unsigned, const char*, ucs_log_level_t level,
                                        const ucs_log_component_config_t*, const char*, va_list) {
    const char* const slash = strrchr(file, '/');
    return level == UCS_LOG_LEVEL_ERROR && strcmp(slash ? slash + 1 : file, "sock.c") == 0 ? UCS_LOG_FUNC_RC_STOP
                                                                                           : UCS_LOG_FUNC_RC_CONTINUE;
}

}  // namespace

// Loads UCX's libraries with an environment that keeps them from replacing functions of the program. They would replace
// mmap and its relatives, for a cache of registered memory (their mremap loses its last argument), and signal handlers.
// They read that when they are loaded. Therefore the plugin does not load them: its symbols of UCX are bound lazily.
bool load(char* error, size_t error_bytes) {
    const struct {
        const char *name, *value;
        bool set;
    } words[] = {{"UCX_MEM_EVENTS", "no", !getenv("UCX_MEM_EVENTS")},
                 {"UCX_HANDLE_ERRORS", "none", !getenv("UCX_HANDLE_ERRORS")}};
    for (const auto& word : words)
        if (word.set)
            setenv(word.name, word.value, 1);
    const bool loaded = dlopen("libucp.so.0", RTLD_NOW | RTLD_GLOBAL) != nullptr;
    for (const auto& word : words)
        if (word.set)
            unsetenv(word.name);
    if (!loaded)
        snprintf(error, error_bytes, "%s", dlerror());
    else if (!getenv("UCX_LOG_LEVEL"))
        ucs_log_push_handler(keep_quiet_of_sockets);
    return loaded;
}

// --- Events

// Said once for an endpoint; not of what close cuts off.
void fail(const Channel& channel, int pe, ucs_status_t status) {
    const Transport& transport = *channel.transport;
    if (transport.closing)
        return;
    for (Endpoint* endpoint : channel.endpoints) {
        if (endpoint->pe != pe)
            continue;
        if (endpoint->failed)
            return;
        endpoint->failed = true;
    }
    transport.events.failed(transport.events.owner, channel.number, pe, ucs_status_string(status));
}

void end(Operation* operation, ucs_status_t status) {
    Channel& channel = *operation->channel;
    if (status == UCS_OK)
        return channel.finish(operation);
    fail(channel, operation->pe, status);
    channel.give(operation);
}

void begin(Operation* operation, ucs_status_ptr_t request) {
    if (!UCS_PTR_IS_PTR(request))
        end(operation, UCS_PTR_STATUS(request));
}

void on_sent(void* request, ucs_status_t status, void* argument) {
    ucp_request_free(request);
    end(static_cast<Operation*>(argument), status);
}

namespace {

// The active messages of UCX that carry messages: small ones, and large ones.
constexpr unsigned kMessageId = 1;
constexpr unsigned kLargeMessageId = 2;

void on_received(void* request, ucs_status_t status, size_t, void* argument) {
    ucp_request_free(request);
    end(static_cast<Operation*>(argument), status);
}

// The header of a message; of one that is not as long as headers are, the header of a message from outside of the job.
const void* header_of(const void* header, size_t header_bytes) {
    static constexpr char kOutside[kHeaderBytes] = {};
    return header_bytes == kHeaderBytes ? header : kOutside;
}

ucs_status_t announce(const Channel& channel, const void* header, void* arrival, size_t bytes) {
    const Events& events = channel.transport->events;
    events.announced(events.owner, channel.number, header, bytes, static_cast<Arrival*>(arrival));
    return UCS_INPROGRESS;
}

bool is_rendezvous(const ucp_am_recv_param_t* param) {
    return (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
}

ucs_status_t on_message(void* argument, const void* header, size_t header_bytes, void* data, size_t bytes,
                        const ucp_am_recv_param_t* param) {
    auto* channel = static_cast<Channel*>(argument);
    channel->moved = true;
    header = header_of(header, header_bytes);
    if (is_rendezvous(param))  // no channel sends small ones so: the library refuses it
        return announce(*channel, header, data, bytes);
    const Events& events = channel->transport->events;
    events.arrived(events.owner, channel->number, header, static_cast<const char*>(data), bytes);
    return UCS_OK;
}

// UCX may choose the eager protocol although the sender has asked for the rendezvous: the body is there already.
ucs_status_t on_large_message(void* argument, const void* header, size_t header_bytes, void* data, size_t bytes,
                              const ucp_am_recv_param_t* param) {
    auto* channel = static_cast<Channel*>(argument);
    channel->moved = true;
    header = header_of(header, header_bytes);
    if (is_rendezvous(param))
        return announce(*channel, header, data, bytes);
    const char* const body = static_cast<const char*>(data);
    announce(*channel, header, channel->keep_body(body, bytes), bytes);
    return UCS_OK;
}

void on_error(void* argument, ucp_ep_h, ucs_status_t status) {
    auto* endpoint = static_cast<Endpoint*>(argument);
    fail(*endpoint->channel, endpoint->pe, status);
}

// --- Open and close

// What suits messages of message_bytes over TCP, unless the environment says otherwise. UCX takes the names of a
// transport without its prefix here, and warns of those that no transport in use has.
void tune(ucp_config_t* config, const Options& options) {
    const bool all = !*options.transports || strstr(options.transports, "all") != nullptr;
    char segment[32];
    snprintf(segment, sizeof segment, "%zuk", 2 * options.message_bytes / 1024);
    const struct {
        const char *variable, *name, *value;
    } settings[] = {{"UCX_TCP_RX_SEG_SIZE", "RX_SEG_SIZE", segment},
                    {"UCX_TCP_TX_SEG_SIZE", "TX_SEG_SIZE", segment},
                    {"UCX_TCP_MAX_NUM_EPS", "MAX_NUM_EPS", "inf"}};
    for (const auto& setting : settings)
        if (!getenv(setting.variable) && (all || strstr(options.transports, "tcp")))
            ucp_config_modify(config, setting.name, setting.value);
    if (*options.devices)
        ucp_config_modify(config, "NET_DEVICES", options.devices);
    if (*options.transports)
        ucp_config_modify(config, "TLS", options.transports);
}

// UCX only warns of names that are none, and goes on with the others or with none.
bool are_devices(const char* names, char* error, size_t error_bytes) {
    for (const char* at = names; *at; at += strcspn(at, ",") + (strchr(at, ',') != nullptr)) {
        const std::string name(at, strcspn(at, ",:"));  // behind a colon: the port of a device that is not the system's
        if (name == "all" || name[0] == '^' || if_nametoindex(name.c_str()) != 0 ||
            access(("/sys/class/infiniband/" + name).c_str(), F_OK) == 0)
            continue;
        std::string have;
        struct if_nameindex* const all = if_nameindex();
        for (const struct if_nameindex* each = all; each && each->if_index != 0; ++each)
            have.append(" ").append(each->if_name);
        if (all)
            if_freenameindex(all);
        snprintf(error, error_bytes, "HEDDLE_NET_DEVICES=%s: this host has no interface '%s'; it has%s", names,
                 name.c_str(), have.c_str());
        return false;
    }
    return true;
}

bool open_context(const Options& options, Transport* transport, char* error, size_t error_bytes) {
    ucp_config_t* config = nullptr;
    ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
    if (status != UCS_OK)
        return explain(error, error_bytes, "cannot read the settings of UCX", status);
    tune(config, options);
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
    params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    params.mt_workers_shared = options.channels > 1;  // different threads may be in different workers at once
    params.name = "heddle";
    transport->is_native = options.protocol == Protocol::kRma;
    if (!transport->is_native)
        status = ucp_init(&params, config, &transport->context);
    if (status == UCS_OK && options.protocol == Protocol::kAuto && has_rdma(transport->context)) {
        ucp_cleanup(transport->context);
        transport->is_native = true;
    }
    if (transport->is_native) {
        params.features |= UCP_FEATURE_RMA;
        status = ucp_init(&params, config, &transport->context);
    }
    ucp_config_release(config);
    if (status == UCS_OK)
        return true;
    transport->context = nullptr;
    return explain(error, error_bytes, "UCX finds no network", status);
}

bool open_channel(Channel& channel, char* error, size_t error_bytes) {
    ucp_worker_params_t params = {};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_EVENTS;
    params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    params.events = UCP_WAKEUP_RX | UCP_WAKEUP_TX | (channel.transport->is_native ? UCP_WAKEUP_RMA : 0);
    ucs_status_t status = ucp_worker_create(channel.transport->context, &params, &channel.worker);
    if (status == UCS_OK)
        status = ucp_worker_get_address(channel.worker, &channel.address, &channel.address_bytes);
    if (status == UCS_OK)
        status = ucp_worker_get_efd(channel.worker, &channel.descriptor);
    ucp_am_handler_param_t handler = {};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.arg = &channel;
    for (const unsigned id : {kMessageId, kLargeMessageId}) {
        handler.id = id;
        handler.cb = id == kMessageId ? on_message : on_large_message;
        if (status == UCS_OK)
            status = ucp_worker_set_am_recv_handler(channel.worker, &handler);
    }
    return status == UCS_OK || explain(error, error_bytes, "UCX cannot open a worker", status);
}

// A close that does not wait for the peer needs an endpoint that sees failures (ucp.h). Others go with their worker.
void close_endpoint(Endpoint* endpoint) {
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const bool sees_failures = endpoint->channel->transport->sees_failures;
    void* const request = sees_failures ? ucp_ep_close_nbx(endpoint->endpoint, &param) : nullptr;
    if (UCS_PTR_IS_PTR(request)) {
        while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(endpoint->channel->worker);
        ucp_request_free(request);
    }
    for (const ucp_rkey_h key : endpoint->keys)
        if (key)
            ucp_rkey_destroy(key);
    delete endpoint;
}

void close(Transport* transport) {
    transport->closing = true;
    for (Channel& channel : transport->channels) {
        for (Endpoint* endpoint : channel.endpoints) close_endpoint(endpoint);
        if (channel.address)
            ucp_worker_release_address(channel.worker, channel.address);
        if (channel.worker)
            ucp_worker_destroy(channel.worker);
        while (channel.free) {
            Operation* const operation = channel.free;
            channel.free = operation->next;
            delete operation;
        }
    }
    close_memories(transport);
    if (transport->context)
        ucp_cleanup(transport->context);
    delete transport;
}

bool open(const Options& options, const Events& events, Transport** result, char* error, size_t error_bytes) {
    auto* transport = new Transport;
    transport->events = events;
    for (const char* name : {"shm", "sm", "posix", "sysv", "cma", "self"})
        if (strstr(options.transports, name))
            transport->sees_failures = false;
    transport->channels.resize(static_cast<size_t>(options.channels));
    bool opened = are_devices(options.devices, error, error_bytes) && load(error, error_bytes) &&
                  open_context(options, transport, error, error_bytes) &&
                  open_memories(transport, options, error, error_bytes);
    for (size_t i = 0; i < transport->channels.size() && opened; ++i) {
        transport->channels[i].transport = transport;
        transport->channels[i].number = static_cast<int>(i);
        opened = open_channel(transport->channels[i], error, error_bytes);
    }
    if (opened)
        *result = transport;
    else
        close(transport);
    return opened;
}

bool is_native(const Transport* transport, const Endpoint* to) {
    return to ? to->is_native : transport->is_native;
}

Endpoint* connect(Transport* transport, int number, int pe, const char* address_blob, size_t address_blob_bytes,
                  char* error, size_t error_bytes) {
    Channel& channel = transport->channels[static_cast<size_t>(number)];
    const char* const address = address_in(address_blob, address_blob_bytes, number);
    if (!address) {
        snprintf(error, error_bytes, "its address blob has no channel %d", number);
        return nullptr;
    }
    auto* endpoint = new Endpoint{.channel = &channel, .pe = pe};
    ucp_ep_params_t params = {};
    params.field_mask =
        UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(address);
    params.err_mode = transport->sees_failures ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
    params.err_handler = {on_error, endpoint};
    const ucs_status_t status = ucp_ep_create(channel.worker, &params, &endpoint->endpoint);
    if (status != UCS_OK) {
        explain(error, error_bytes, "no path", status);
        delete endpoint;
        return nullptr;
    }
    channel.endpoints.push_back(endpoint);
    if (transport->is_native)
        take_keys(endpoint, address_blob, address_blob_bytes);
    return endpoint;
}

// --- Messages

void send(Transport*, int, Endpoint* to, const void* header, const char* body, size_t bytes, bool large, Done done,
          void* argument) {
    Channel& channel = *to->channel;
    if (to->failed)
        return;
    Operation* const operation = channel.take(to->pe, done, argument);
    memcpy(operation->header, header, kHeaderBytes);
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.flags = large ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER;
    param.cb.send = on_sent;
    param.user_data = operation;
    const unsigned id = large ? kLargeMessageId : kMessageId;
    begin(operation, ucp_am_send_nbx(to->endpoint, id, operation->header, kHeaderBytes, body, bytes, &param));
}

void receive(Transport* transport, int number, int pe, Arrival* arrival, char* to, size_t bytes, Done done,
             void* argument) {
    Channel& channel = transport->channels[static_cast<size_t>(number)];
    if (const std::unique_ptr<std::vector<char>> body = channel.take_body(arrival)) {
        std::copy_n(body->data(), std::min(bytes, body->size()), to);  // which may be none
        channel.moved = true;
        return done(argument);
    }
    Operation* const operation = channel.take(pe, done, argument);
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    param.cb.recv_am = on_received;
    param.user_data = operation;
    begin(operation, ucp_am_recv_data_nbx(channel.worker, arrival, to, bytes, &param));
}

void refuse(Transport* transport, int number, Arrival* arrival) {
    Channel& channel = transport->channels[static_cast<size_t>(number)];
    if (!channel.take_body(arrival))
        ucp_am_data_release(channel.worker, arrival);
}

bool progress(Transport* transport, int number) {
    Channel& channel = transport->channels[static_cast<size_t>(number)];
    channel.moved = false;
    const unsigned count = ucp_worker_progress(channel.worker);
    flush(channel);
    return count != 0 || channel.moved;
}

int descriptor(const Transport* transport, int number) {
    return transport->channels[static_cast<size_t>(number)].descriptor;
}

bool arm(Transport* transport, int number) {
    const Channel& channel = transport->channels[static_cast<size_t>(number)];
    return !channel.to_flush && ucp_worker_arm(channel.worker) == UCS_OK;
}

}  // namespace

}  // namespace heddle::fabric::ucx

extern "C" __attribute__((visibility("default"))) const heddle::fabric::TransportApi heddle_transport_1;
const heddle::fabric::TransportApi heddle_transport_1 = {
    "UCX",
    heddle::fabric::ucx::open,
    heddle::fabric::ucx::close,
    heddle::fabric::ucx::is_native,
    heddle::fabric::ucx::address_blob,
    heddle::fabric::ucx::connect,
    heddle::fabric::ucx::send,
    heddle::fabric::ucx::receive,
    heddle::fabric::ucx::refuse,
    heddle::fabric::ucx::put,
    heddle::fabric::ucx::get,
    heddle::fabric::ucx::progress,
    heddle::fabric::ucx::descriptor,
    heddle::fabric::ucx::arm,
};

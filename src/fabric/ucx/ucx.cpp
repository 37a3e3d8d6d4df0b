// UCX as a transport: active messages, eager for small ones and rendezvous for large ones. A wire is a worker.
// Nothing of UCX is seen outside this folder; the settings that suit batches over TCP are made here, so that no user
// has to know them. What the environment says (UCX_...) is taken first.

#include "fabric/transport.h"

#include <ucp/api/ucp.h>

#include <dlfcn.h>
#include <net/if.h>
#include <unistd.h>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

namespace heddle::fabric {

namespace {

constexpr unsigned kMessageId = 1;

struct Wire;

// A message on its way out, or the body of a large one on its way in.
struct Operation {
    Wire* wire = nullptr;
    Done done = nullptr;
    void* argument = nullptr;
    Operation* next_free = nullptr;
    alignas(8) char header[kHeaderBytes];
};

struct Wire {
    Transport* transport = nullptr;
    int number = 0;
    ucp_worker_h worker = nullptr;
    ucp_address_t* address = nullptr;
    size_t address_bytes = 0;
    int descriptor = -1;
    Operation* free = nullptr;
    bool moved = false;  // an event since progress began

    Operation* take(Done done, void* argument) {
        Operation* operation = free;
        if (operation)
            free = operation->next_free;
        else
            operation = new Operation;
        operation->wire = this;
        operation->done = done;
        operation->argument = argument;
        return operation;
    }
    void give(Operation* operation) {
        operation->next_free = free;
        free = operation;
    }
    void finish(Operation* operation) {
        moved = true;
        const Done done = operation->done;
        void* const argument = operation->argument;
        give(operation);
        if (done)
            done(argument);
    }
};

}  // namespace

struct Endpoint {
    Wire* wire;
    int pe;
    ucp_ep_h endpoint;
    bool failed;
};

struct Transport {
    Events events;
    ucp_context_h context = nullptr;
    bool sees_failures = true;  // shared memory, for tests on one machine, does not tell when a peer is gone
    std::vector<Wire> wires;
    std::vector<Endpoint*> endpoints;
};

namespace {

bool explain(char* error, size_t error_bytes, const char* what, ucs_status_t status) {
    snprintf(error, error_bytes, "%s: %s", what, ucs_status_string(status));
    return false;
}

// --- Events

void on_sent(void* request, ucs_status_t status, void* argument) {
    auto* operation = static_cast<Operation*>(argument);
    ucp_request_free(request);
    if (status == UCS_OK)  // otherwise the endpoint's handler tells, and the data stays where it is
        operation->wire->finish(operation);
}

void on_received(void* request, ucs_status_t status, size_t, void* argument) {
    auto* operation = static_cast<Operation*>(argument);
    ucp_request_free(request);
    if (status == UCS_OK)
        operation->wire->finish(operation);
}

ucs_status_t on_message(void* argument, const void* header, size_t header_bytes, void* data, size_t bytes,
                        const ucp_am_recv_param_t* param) {
    auto* wire = static_cast<Wire*>(argument);
    const Events& events = wire->transport->events;
    const bool large = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
    wire->moved = true;
    if (header_bytes != kHeaderBytes)
        return UCS_OK;  // no wire of ours: dropped
    if (!large) {
        events.arrived(events.owner, wire->number, header, static_cast<const char*>(data), bytes);
        return UCS_OK;
    }
    events.announced(events.owner, wire->number, header, bytes, static_cast<Arrival*>(data));
    return UCS_INPROGRESS;
}

void on_error(void* argument, ucp_ep_h, ucs_status_t status) {
    auto* endpoint = static_cast<Endpoint*>(argument);
    const Events& events = endpoint->wire->transport->events;
    endpoint->failed = true;
    events.failed(events.owner, endpoint->wire->number, endpoint->pe, ucs_status_string(status));
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

// UCX's libraries, when they are loaded, read from the environment whether to put their own functions over mmap and its
// relatives (needed for caches of registered memory alone; their mremap loses its last argument) and over the handlers
// of a program's signals. So they are loaded here, behind words that tell them not to, and not with this plugin: its
// symbols of UCX are bound when they are first called.
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
    return loaded;
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
            have = have + " " + each->if_name;
        if (all)
            if_freenameindex(all);
        snprintf(error, error_bytes, "HEDDLE_NET_DEVICES=%s: this host has no interface '%s'; it has%s", names,
                 name.c_str(), have.c_str());
        return false;
    }
    return true;
}

bool open_context(const Options& options, ucp_context_h* context, char* error, size_t error_bytes) {
    ucp_config_t* config = nullptr;
    ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
    if (status != UCS_OK)
        return explain(error, error_bytes, "cannot read the settings of UCX", status);
    tune(config, options);
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
    params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    params.name = "heddle";
    status = ucp_init(&params, config, context);
    ucp_config_release(config);
    return status == UCS_OK || explain(error, error_bytes, "UCX finds no network", status);
}

bool open_wire(Wire& wire, char* error, size_t error_bytes) {
    ucp_worker_params_t params = {};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_EVENTS;
    params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    params.events = UCP_WAKEUP_RX | UCP_WAKEUP_TX;
    ucs_status_t status = ucp_worker_create(wire.transport->context, &params, &wire.worker);
    if (status == UCS_OK)
        status = ucp_worker_get_address(wire.worker, &wire.address, &wire.address_bytes);
    if (status == UCS_OK)
        status = ucp_worker_get_efd(wire.worker, &wire.descriptor);
    ucp_am_handler_param_t handler = {};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = kMessageId;
    handler.cb = on_message;
    handler.arg = &wire;
    if (status == UCS_OK)
        status = ucp_worker_set_am_recv_handler(wire.worker, &handler);
    return status == UCS_OK || explain(error, error_bytes, "UCX cannot open a worker", status);
}

void close(Transport* transport) {
    for (Endpoint* endpoint : transport->endpoints) {
        ucp_request_param_t param = {};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = UCP_EP_CLOSE_FLAG_FORCE;
        void* const request = ucp_ep_close_nbx(endpoint->endpoint, &param);
        if (UCS_PTR_IS_PTR(request)) {
            while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(endpoint->wire->worker);
            ucp_request_free(request);
        }
        delete endpoint;
    }
    for (Wire& wire : transport->wires) {
        if (wire.address)
            ucp_worker_release_address(wire.worker, wire.address);
        if (wire.worker)
            ucp_worker_destroy(wire.worker);
        while (wire.free) {
            Operation* const operation = wire.free;
            wire.free = operation->next_free;
            delete operation;
        }
    }
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
    transport->wires.resize(static_cast<size_t>(options.wires));
    bool opened = are_devices(options.devices, error, error_bytes) && load(error, error_bytes) &&
                  open_context(options, &transport->context, error, error_bytes);
    for (size_t i = 0; i < transport->wires.size() && opened; ++i) {
        transport->wires[i].transport = transport;
        transport->wires[i].number = static_cast<int>(i);
        opened = open_wire(transport->wires[i], error, error_bytes);
    }
    if (opened)
        *result = transport;
    else
        close(transport);
    return opened;
}

// --- Cards: for each wire the size of its address, and the address.

size_t card(const Transport* transport, char* card) {
    size_t bytes = 0;
    for (const Wire& wire : transport->wires) {
        const auto size = static_cast<uint16_t>(wire.address_bytes);
        if (bytes + sizeof size + size > kMostCardBytes)
            return 0;
        memcpy(card + bytes, &size, sizeof size);
        memcpy(card + bytes + sizeof size, wire.address, size);
        bytes += sizeof size + size;
    }
    return bytes;
}

// The address of a wire within a card, or null.
const char* address_in(const char* card, size_t card_bytes, int wire) {
    size_t at = 0;
    for (;; --wire) {
        uint16_t size;
        if (card_bytes - at < sizeof size)
            return nullptr;
        memcpy(&size, card + at, sizeof size);
        at += sizeof size;
        if (card_bytes - at < size)
            return nullptr;
        if (wire == 0)
            return card + at;
        at += size;
    }
}

Endpoint* connect(Transport* transport, int number, int pe, const char* card, size_t card_bytes, char* error,
                  size_t error_bytes) {
    Wire& wire = transport->wires[static_cast<size_t>(number)];
    const char* const address = address_in(card, card_bytes, number);
    if (!address) {
        snprintf(error, error_bytes, "its card has no wire %d", number);
        return nullptr;
    }
    auto* endpoint = new Endpoint{&wire, pe, nullptr, false};
    ucp_ep_params_t params = {};
    params.field_mask =
        UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(address);
    params.err_mode = transport->sees_failures ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
    params.err_handler = {on_error, endpoint};
    const ucs_status_t status = ucp_ep_create(wire.worker, &params, &endpoint->endpoint);
    if (status != UCS_OK) {
        explain(error, error_bytes, "no path", status);
        delete endpoint;
        return nullptr;
    }
    transport->endpoints.push_back(endpoint);
    return endpoint;
}

// --- Messages

void send(Transport*, int, Endpoint* to, const void* header, const char* body, size_t bytes, bool large, Done done,
          void* argument) {
    Wire& wire = *to->wire;
    if (to->failed)
        return;
    Operation* const operation = wire.take(done, argument);
    memcpy(operation->header, header, kHeaderBytes);
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.flags = large ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER;
    param.cb.send = on_sent;
    param.user_data = operation;
    void* const request =
        ucp_am_send_nbx(to->endpoint, kMessageId, operation->header, kHeaderBytes, body, bytes, &param);
    if (!request)
        wire.finish(operation);
    else if (UCS_PTR_IS_ERR(request))
        on_error(to, to->endpoint, UCS_PTR_STATUS(request));
}

void receive(Transport* transport, int number, Arrival* arrival, char* to, size_t bytes, Done done, void* argument) {
    Wire& wire = transport->wires[static_cast<size_t>(number)];
    Operation* const operation = wire.take(done, argument);
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    param.cb.recv_am = on_received;
    param.user_data = operation;
    void* const request = ucp_am_recv_data_nbx(wire.worker, arrival, to, bytes, &param);
    if (!request)
        wire.finish(operation);
}

void refuse(Transport* transport, int number, Arrival* arrival) {
    ucp_am_data_release(transport->wires[static_cast<size_t>(number)].worker, arrival);
}

bool progress(Transport* transport, int number) {
    Wire& wire = transport->wires[static_cast<size_t>(number)];
    wire.moved = false;
    const unsigned count = ucp_worker_progress(wire.worker);
    return count != 0 || wire.moved;
}

int descriptor(const Transport* transport, int number) {
    return transport->wires[static_cast<size_t>(number)].descriptor;
}

bool arm(Transport* transport, int number) {
    return ucp_worker_arm(transport->wires[static_cast<size_t>(number)].worker) == UCS_OK;
}

}  // namespace

}  // namespace heddle::fabric

extern "C" __attribute__((visibility("default"))) const heddle::fabric::TransportApi heddle_transport_1;
const heddle::fabric::TransportApi heddle_transport_1 = {
    "UCX",
    heddle::fabric::open,
    heddle::fabric::close,
    heddle::fabric::card,
    heddle::fabric::connect,
    heddle::fabric::send,
    heddle::fabric::receive,
    heddle::fabric::refuse,
    heddle::fabric::progress,
    heddle::fabric::descriptor,
    heddle::fabric::arm,
};

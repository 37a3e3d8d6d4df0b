// Puts and gets straight into the registered regions of other PEs.
//
// A put is done when a flush of its endpoint that began behind its local end is: one flush is under way at a time, for
// all that have ended since the last.
#include "fabric/transport/ucx/ucx.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heddle::fabric::ucx {

namespace {

void queue_flush(Endpoint* endpoint) {
    if (endpoint->queued || endpoint->flushed)
        return;
    endpoint->queued = true;
    endpoint->next_to_flush = endpoint->channel->to_flush;
    endpoint->channel->to_flush = endpoint;
}

// A put has ended here.
void end_put(Operation* operation, ucs_status_t status) {
    if (status != UCS_OK)
        return end(operation, status);
    Endpoint* const endpoint = operation->to;
    endpoint->channel->moved = true;
    operation->next = endpoint->ended;
    endpoint->ended = operation;
    queue_flush(endpoint);
}

void on_put(void* request, ucs_status_t status, void* argument) {
    ucp_request_free(request);
    end_put(static_cast<Operation*>(argument), status);
}

void end_flush(Endpoint* endpoint, ucs_status_t status) {
    Operation* operation = endpoint->flushed;
    endpoint->flushed = nullptr;
    if (endpoint->ended)
        queue_flush(endpoint);
    while (operation) {
        Operation* const next = operation->next;
        end(operation, status);
        operation = next;
    }
}

void on_flushed(void* request, ucs_status_t status, void* argument) {
    ucp_request_free(request);
    end_flush(static_cast<Endpoint*>(argument), status);
}

}  // namespace

// UCX has no query for RDMA. But UCX prints what a context uses, once all settings have chosen. Its lines end in the
// names of transport and device: "-- tcp/eth0".
bool has_rdma(ucp_context_h context) {
    char* text = nullptr;
    size_t bytes = 0;
    FILE* const stream = open_memstream(&text, &bytes);
    if (!stream)
        return false;
    ucp_context_print_info(context, stream);
    fclose(stream);
    bool has = false;
    for (const char* name : {"-- rc_", "-- dc_", "-- ugni_rdma"}) has |= strstr(text, name) != nullptr;
    free(text);
    return has;
}

void close_memories(Transport* transport) {
    for (Transport::Memory& memory : transport->memories) {
        if (memory.handle)
            ucp_mem_unmap(transport->context, memory.handle);
        memory = {};
    }
}

bool open_memories(Transport* transport, const Options& options, char* error, size_t error_bytes) {
    ucs_status_t status = UCS_OK;
    for (int i = 0; i < kRegions && transport->is_native && status == UCS_OK; ++i) {
        const Region& region = options.regions[i];
        if (region.bytes == 0)
            continue;
        ucp_mem_map_params_t params = {};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        params.address = region.base;
        params.length = region.bytes;
        transport->memories[i].base = reinterpret_cast<uintptr_t>(region.base);
        status = ucp_mem_map(transport->context, &params, &transport->memories[i].handle);
    }
    if (status == UCS_OK)
        return true;
    close_memories(transport);
    transport->is_native = false;
    return options.protocol == Protocol::kAuto ||
           explain(error, error_bytes, "cannot register symmetric memory", status);
}

void flush(Channel& channel) {
    Endpoint* endpoint = channel.to_flush;
    channel.to_flush = nullptr;
    while (endpoint) {
        Endpoint* const next = endpoint->next_to_flush;
        endpoint->queued = false;
        endpoint->flushed = endpoint->ended;
        endpoint->ended = nullptr;
        ucp_request_param_t param = {};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        param.cb.send = on_flushed;
        param.user_data = endpoint;
        void* const request = ucp_ep_flush_nbx(endpoint->endpoint, &param);
        if (!UCS_PTR_IS_PTR(request))
            end_flush(endpoint, UCS_PTR_STATUS(request));
        endpoint = next;
    }
}

void put(Transport*, int, Endpoint* to, int region, uint64_t offset, const char* from, size_t bytes, Done done,
         void* argument) {
    if (to->failed)
        return;
    Operation* const operation = to->channel->take(to->pe, done, argument);
    operation->to = to;
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send = on_put;
    param.user_data = operation;
    void* const request = ucp_put_nbx(to->endpoint, from, bytes, to->bases[region] + offset, to->keys[region], &param);
    if (!UCS_PTR_IS_PTR(request))
        end_put(operation, UCS_PTR_STATUS(request));
}

void get(Transport*, int, Endpoint* from, int region, uint64_t offset, char* to, size_t bytes, Done done,
         void* argument) {
    if (from->failed)
        return;
    Operation* const operation = from->channel->take(from->pe, done, argument);
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send = on_sent;
    param.user_data = operation;
    begin(operation, ucp_get_nbx(from->endpoint, to, bytes, from->bases[region] + offset, from->keys[region], &param));
}

}  // namespace heddle::fabric::ucx

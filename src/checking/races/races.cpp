#include "checking/races/races.h"

#include "base/elf_file.h"
#include "base/error.h"
#include "base/place.h"
#include "base/source_line.h"
#include "bootstrap/bootstrap.h"
#include "checking/races/caller.h"
#include "context/context.h"
#include "memory/node_memory.h"
#include "memory/symmetric.h"
#include "operations/transfer.h"
#include "os/locked.h"
#include "os/memfd.h"
#include "team/team_segment.h"

#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstring>
#include <utility>

namespace heddle::checking::races {

using bootstrap::job;
using operations::Operation;

namespace {

constexpr int kMostPes = 256;           // a clock has a word for each PE and flow
constexpr size_t kWordBytes = 8;        // a value that a program may wait for
constexpr size_t kMessageBytes = 1800;  // what base::report shows

enum WatchedRange { kOfNode, kOfData, kOfBuffers };
static_assert(kOfBuffers + 1 == HEDDLE_WATCHED_RANGES);

// Where static data begins among the positions: behind the heap.
size_t data_position() {
    return os::round_up(memory::symmetric->heap.bytes, Shadow::kBlockBytes);
}

size_t positions() {
    return data_position() + memory::symmetric->data.bytes;
}

Flow flow_of(shmem_ctx_t ctx) {
    if (ctx == SHMEM_CTX_DEFAULT)
        return Flow::kDefault;
    const uintptr_t number = reinterpret_cast<uintptr_t>(ctx) / sizeof(context::Context);
    return number % 2 == 0 ? Flow::kContextA : Flow::kContextB;
}

// The shared memory behind the slots of the node's file; null when it cannot be had. Zeroed the first time in a job.
HEDDLE_PE_LOCAL char* mapped = nullptr;  // stays as long as the process
char* map(size_t bytes) {
    const memory::NodeMemory& node = memory::node_memory;
    const size_t offset = os::round_up(node.layout.total_bytes, os::page_bytes());
    if (mapped)
        return mapped;
    if (const int error = os::set_memory_size(node.fd, offset + bytes); error != 0) {
        errno = -error;
        return nullptr;
    }
    mapped = static_cast<char*>(os::map_shared_unlocked(node.fd, offset, bytes, nullptr));
    if (mapped)
        os::set_dumped(mapped, bytes, false);
    return mapped;
}

}  // namespace

Races* Races::make(std::string* reason) {
    char text[256] = "";
    if (job.n_nodes > 1)
        snprintf(text, sizeof text, "this job has %d nodes; races are found among the PEs of one", job.n_nodes);
    else if (job.n_pes > kMostPes)
        snprintf(text, sizeof text, "this job has %d PEs; races are found among up to %d", job.n_pes, kMostPes);
    else if (char* const memory = map(Detector::bytes(positions(), job.n_pes)))
        return new Races(memory);
    else
        snprintf(text, sizeof text, "no memory: %s; right would be a smaller SHMEM_SYMMETRIC_SIZE",
                 os::describe_memory_error(errno));
    *reason = text;
    return nullptr;
}

Races::Races(char* memory)
    : detector_(memory, positions(), job.pe, job.n_pes, &Races::report_to, this),
      accesses_(&Races::take_runs, this),
      pe_of_slot_(static_cast<size_t>(job.n_slots), -1),
      reported_(detector_.shared_words()) {
    static_assert(Reported::kBytes <= Detector::kSharedBytes);
    detector_.learn_all();  // all PEs have met before
    for (int pe = 0; pe < job.n_pes; ++pe) pe_of_slot_[static_cast<size_t>(job.slot_of(pe))] = pe;
    if (job.as_thread)
        return;
    const memory::NodeMemory& node = memory::node_memory;
    const auto& data = memory::symmetric->data;
    Accesses::watch(kOfNode, reinterpret_cast<uintptr_t>(node.heap(0)),
                    node.layout.stride * static_cast<size_t>(job.n_slots));
    Accesses::watch(kOfData, data.base, data.bytes);
}

void Races::stop(const char*) {
    Accesses::watch_none();
    accesses_.flush();
}

bool Races::find(const void* address, size_t* position) const {
    const memory::Symmetric& memory = *memory::symmetric;
    const auto at = reinterpret_cast<uintptr_t>(address);
    if (memory.heap.holds(address))
        *position = at - memory.heap.base;
    else if (memory.data.holds(address))
        *position = data_position() + (at - memory.data.base);
    else
        return false;
    return true;
}

int Races::find_owner(const void* address, size_t* position) const {
    const memory::NodeMemory& node = memory::node_memory;
    const size_t offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(node.heap(0));
    const size_t slot = offset / node.layout.stride, inside = offset % node.layout.stride;
    if (slot >= pe_of_slot_.size())
        return -1;
    if (inside < memory::symmetric->heap.bytes)
        *position = inside;
    else if (inside - node.layout.data_offset < memory::symmetric->data.bytes)
        *position = data_position() + (inside - node.layout.data_offset);
    else
        return -1;
    return pe_of_slot_[slot];
}

void Races::take_runs(void* races, const std::vector<Accesses::Run>& runs) {
    auto* const here = static_cast<Races*>(races);
    std::vector<Detector::AtOnce> accesses;
    accesses.reserve(runs.size());
    size_t position;
    for (const Accesses::Run& run : runs)
        if (here->find(reinterpret_cast<const void*>(run.begin), &position))
            accesses.push_back({{.owner = job.pe, .position = position, .bytes = run.bytes, .writes = run.writes},
                                {run.writes ? kStore : kLoad, run.caller}});
    here->detector_.access_at_once(accesses);
}

void Races::take_accesses() {
    if (Accesses::are_told())
        accesses_.flush();
}

void Races::watch_buffers() {
    if (!Accesses::are_told())
        return;
    const PendingBuffers::Hull hull = detector_.held();
    Accesses::watch(kOfBuffers, hull.begin, hull.end - hull.begin);
}

void Races::access(const void* address, size_t bytes, heddle_access_kind kind, const void* caller) {
    size_t position = 0;
    const bool is_own = find(address, &position);
    const int owner = is_own ? job.pe : find_owner(address, &position);
    if (kind == HEDDLE_ACCESS_ATOMIC) {  // of the language: a flag, if another PE has changed it
        if (owner < 0)
            return;
        take_accesses();
        return detector_.see(owner, position, bytes, Edge::kWait);
    }
    const bool writes = kind == HEDDLE_ACCESS_STORE;
    const base::Call call = {writes ? kStore : kLoad, caller};
    if (Accesses::is_watched(kOfBuffers, address, bytes))
        detector_.touch(address, bytes, writes, call);
    if (is_own)
        return accesses_.add(reinterpret_cast<uintptr_t>(address), bytes, writes, caller);
    // At once: no call of the library need be between it and what another PE does then.
    if (owner >= 0)
        detector_.access({.owner = owner, .position = position, .bytes = bytes, .writes = writes}, call);
}

// What the caller would carry out by several operations is carried out here, as one.
bool Races::issue(const Operation& operation) {
    take_accesses();
    base::Call call = operation.call;
    const void* const from = std::exchange(operations::called_from, nullptr);
    if (!is_of_program(call.caller))
        call.caller = is_of_program(from) ? from : find_caller();
    const Flow flow = operation.req ? Flow::kRequest : flow_of(operation.ctx);
    if (context::context_of(operation.ctx).options & SHMEMX_CTX_ORDERED)
        detector_.fence(flow);
    size_t seen = 0;  // position of a value that comes back with this call
    bool sees = false;
    switch (operation.kind) {
        case Operation::Kind::kPut:
        case Operation::Kind::kPutSignal:
            put(operation, call, flow);
            break;
        case Operation::Kind::kGet:
            sees = get(operation, call, flow, &seen);
            break;
        case Operation::Kind::kAtomic:
            sees = update(operation, call, flow, &seen);
    }
    if (!operation.blocking)
        watch_buffers();
    if (!sees && !operation.req && operation.kind != Operation::Kind::kPutSignal)
        return false;
    carry_out(operation);
    if (operation.req)
        operations::join(operation.call, operation.req);
    if (sees) {
        const bool is_atomic = operation.kind == Operation::Kind::kAtomic;
        detector_.see(operation.world_pe, seen, is_atomic ? operation.element_bytes : operation.block_bytes(),
                      is_atomic && operation.world_pe == job.pe ? Edge::kWait : Edge::kRead);
    }
    return true;
}

void Races::use_buffer(const Operation& operation, const base::Call& call, Flow flow) {
    const bool writes = operation.kind == Operation::Kind::kGet;
    const char* const buffer =
        writes ? static_cast<const char*>(operation.dest) : static_cast<const char*>(operation.source);
    const size_t step = writes ? operation.dest_step : operation.source_step, bytes = operation.block_bytes();
    for (size_t i = 0; i < operation.nblocks && bytes != 0; ++i) {
        const char* const block = buffer + i * step;
        size_t position;
        detector_.touch(block, bytes, writes, call);
        if (!operation.blocking)
            detector_.hold(block, bytes, writes, flow, call);
        if (find(block, &position))
            detector_.access({.owner = job.pe, .position = position, .bytes = bytes, .writes = writes}, call);
    }
}

void Races::put(const Operation& operation, const base::Call& call, Flow flow) {
    const bool has_signal = operation.kind == Operation::Kind::kPutSignal;
    const size_t bytes = operation.block_bytes();
    size_t position;
    use_buffer(operation, call, flow);
    if (bytes != 0 && find(operation.dest, &position))
        for (size_t i = 0; i < operation.nblocks; ++i)
            detector_.access({.owner = operation.world_pe,
                              .position = position + i * operation.dest_step,
                              .bytes = bytes,
                              .writes = true,
                              .completion = Completion::kOrdered,
                              .flow = has_signal ? Flow::kSignal : flow},
                             call);
    if (has_signal && find(operation.sig_addr, &position))
        detector_.update({.owner = operation.world_pe,
                          .position = position,
                          .bytes = sizeof *operation.sig_addr,
                          .writes = true,
                          .is_atomic = true,
                          .completion = Completion::kOrdered,
                          .flow = flow},
                         call, true);
}

bool Races::get(const Operation& operation, const base::Call& call, Flow flow, size_t* position) {
    const size_t bytes = operation.block_bytes();
    use_buffer(operation, call, flow);
    if (!find(operation.source, position))
        return false;
    for (size_t i = 0; i < operation.nblocks; ++i)
        detector_.access({.owner = operation.world_pe,
                          .position = *position + i * operation.source_step,
                          .bytes = bytes,
                          .completion = operation.blocking ? Completion::kAtReturn : Completion::kAtQuiet,
                          .flow = flow},
                         call);
    return operation.blocking && !operation.req && operation.nblocks == 1 && bytes <= kWordBytes;
}

bool Races::update(const Operation& operation, const base::Call& call, Flow flow, size_t* position) {
    const size_t bytes = operation.element_bytes;
    const bool writes = operation.amo != HEDDLE_AMO_FETCH;
    if (!find(operation.dest, position))
        return false;
    const Access access = {.owner = operation.world_pe,
                           .position = *position,
                           .bytes = bytes,
                           .writes = writes,
                           .is_atomic = true,
                           .completion = operation.fetch && operation.blocking && !operation.req ? Completion::kAtReturn
                                                                                                 : Completion::kOrdered,
                           .flow = flow};
    writes ? detector_.update(access, call) : detector_.access(access, call);
    if (!operation.fetch)
        return false;
    if (operation.req) {
        const os::Locked locked(lock_);
        fetches_under_request_ = true;
    }
    if (!operation.blocking)
        detector_.hold(operation.fetch, bytes, true, flow, call);
    return !operation.req;
}

void Races::order(const char*, shmem_ctx_t ctx) {
    take_accesses();
    detector_.fence(flow_of(ctx));
}

void Races::complete(const char*, shmem_ctx_t ctx, const int*, size_t) {
    take_accesses();
    ctx ? detector_.quiet(flow_of(ctx)) : detector_.quiet_all();
    watch_buffers();
}

// Asked by a test for a quiet, which counts as one.
bool Races::is_complete(shmem_ctx_t ctx) {
    complete(nullptr, ctx, nullptr, 0);
    return true;
}

// Which operations a request has is not known: all that are under requests count as complete.
void Races::complete_request() {
    take_accesses();
    detector_.quiet(Flow::kRequest);
    watch_buffers();
    const os::Locked locked(lock_);
    if (fetches_under_request_)
        detector_.see_unknown();
    fetches_under_request_ = false;
}

void Races::see(const void* address, size_t bytes) {
    size_t position;
    take_accesses();
    if (find(address, &position))
        detector_.see(job.pe, position, bytes, Edge::kWait);
}

bool Races::try_last_write(const void* address, size_t bytes, int* pe, base::CallText* call) {
    size_t position;
    take_accesses();
    return find(address, &position) && detector_.try_last_write(position, bytes, pe, call);
}

void Races::take_lock(const long* lock) {
    size_t position;
    take_accesses();
    if (find(lock, &position))
        detector_.take_lock(position);
}

void Races::give_lock(const long* lock) {
    size_t position;
    take_accesses();
    if (find(lock, &position))
        detector_.release_lock(position);
}

// Of a broadcast (root: the rank), the members know what the root knew; of all others, what all knew.
void Races::begin_collective(const team::MemberState& state, int root) {
    take_accesses();
    if (state.segment.index < 0)
        return;
    const CollectiveKey key = {state.segment.index, state.count};
    {
        const os::Locked locked(lock_);
        entered_[state.segment.index] = {key, root < 0 || root != state.rank};
    }
    detector_.enter_collective(key, root < 0 || root == state.rank);
}

void Races::end_collective(const team::MemberState& state) {
    take_accesses();  // of other threads
    Entered entered;
    {
        const os::Locked locked(lock_);
        const auto found = entered_.find(state.segment.index);
        if (found == entered_.end())
            return;
        entered = found->second;
        entered_.erase(found);
    }
    detector_.leave_collective(entered.key, entered.takes);
}

void Races::allocate(const base::Call& call, const void* block, size_t bytes) {
    size_t position;
    if (!block || !find(block, &position))
        return;
    const os::Locked locked(lock_);
    blocks_[position] = {bytes, base::describe(call)};
}

// All that was put to this PE's block must be complete.
void Races::free(const base::Call& call, const void* block) {
    size_t position, bytes = 0;
    take_accesses();
    if (!block || !find(block, &position))
        return;
    {
        const os::Locked locked(lock_);
        const auto found = blocks_.find(position);
        if (found == blocks_.end())
            return;
        bytes = found->second.bytes;
    }
    detector_.access({.owner = job.pe, .position = position, .bytes = bytes, .writes = true}, call);
    const os::Locked locked(lock_);
    blocks_.erase(position);
}

// Not those with gaps between their blocks, nor what the root of a broadcast may leave as it is.
void Races::use_buffer(const base::Call& call, const void* buffer, size_t bytes, bool writes) {
    size_t position;
    if (strstr(call.function, "alltoalls"))
        return;
    take_accesses();
    if (writes) {
        const os::Locked locked(lock_);
        for (const auto& [segment, entered] : entered_)
            if (!entered.takes)
                return;
    }
    detector_.touch(buffer, bytes, writes, call);
    if (find(buffer, &position))
        detector_.access_in_collective({.owner = job.pe, .position = position, .bytes = bytes, .writes = writes}, call);
}

// The program may reach another PE's memory by loads and stores of its own.
void Races::hand_out_address() {
    detector_.expect_stores();
}

// Of this PE's program, and so of all where they run the same one.
std::string Races::global_at(size_t offset) {
    const uintptr_t address = memory::symmetric->data.base + offset;
    base::Module module;
    base::ObjectName object;
    std::array<char, PATH_MAX> path;
    std::array<char, 160> text;
    if (!base::find_module(address, &module) || !base::path_of(module, path.data(), path.size()) ||
        !base::find_object(path.data(), module.linked(address), &object))
        return {};
    snprintf(text.data(), text.size(), "from byte %" PRIu64 " of the %" PRIu64 " of %s", object.offset, object.bytes,
             object.name);
    return text.data();
}

std::string Races::object_at(size_t position) const {
    char text[256];
    const os::Locked locked(lock_);
    const auto behind = blocks_.upper_bound(position);
    if (behind != blocks_.begin()) {
        const auto& [begin, block] = *std::prev(behind);
        if (position - begin < block.bytes) {
            snprintf(text, sizeof text, "from byte %zu of the %zu of %s", position - begin, block.bytes,
                     block.origin.data());
            return text;
        }
    }
    const bool in_heap = position < memory::symmetric->heap.bytes;
    const size_t offset = position - (in_heap ? 0 : data_position());
    if (const std::string name = in_heap ? "" : global_at(offset); !name.empty())
        return name;
    snprintf(text, sizeof text, "from byte %#zx of its %s", offset, in_heap ? "heap" : "static data");
    return text;
}

// What this PE has found before is not looked up again.
bool Races::is_repeated(const Race& race) {
    const uint64_t key = uint64_t{race.earlier.pe} << 40 ^ uint64_t { race.earlier.place } << 20 ^ race.later.place;
    const os::Locked locked(lock_);
    return key != 0 && std::exchange(found_[key * 0x9e3779b97f4a7c15 >> 56], key) == key;
}

void Races::report(const Race& race) {
    if (is_repeated(race))
        return;
    const base::CallText earlier = detector_.places().text(static_cast<int>(race.earlier.pe), race.earlier.place);
    const base::CallText later = detector_.places().text(static_cast<int>(race.later.pe), race.later.place);
    if (!reported_.is_new(earlier, later))
        return;
    char text[kMessageBytes];
    base::add_source_lines(describe(race, earlier, later, race.owner < 0 ? "" : object_at(race.position)).c_str(), text,
                           sizeof text);
    base::report("race", "%s", text);
    job.page->races.fetch_add(1, std::memory_order_relaxed);  // a count; who reads it comes behind the PE's end
}

}  // namespace heddle::checking::races

#include "checking/races/races.h"

#include "base/error.h"
#include "base/pe_local.h"
#include "base/place.h"
#include "base/source_line.h"
#include "bootstrap/bootstrap.h"
#include "checking/checking.h"
#include "checking/races/detector.h"
#include "checking/races/detector_network.h"
#include "checking/races/mapping.h"
#include "context/context.h"
#include "memory/node_memory.h"
#include "memory/symmetric.h"
#include "operations/caller.h"
#include "operations/check.h"
#include "operations/transfer.h"
#include "os/locked.h"
#include "os/memfd.h"
#include "team/team.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace heddle::checking::races {

using bootstrap::job;
using operations::Operation;

namespace {

constexpr size_t kWordBytes = 8;        // a value that a program may wait for
constexpr size_t kMessageBytes = 1800;  // what base::report shows

size_t positions() {
    return data_position() + memory::symmetric->data.bytes;
}

Flow flow_of(shmem_ctx_t ctx) {
    if (ctx == SHMEM_CTX_DEFAULT)
        return Flow::kDefault;
    const uintptr_t number = reinterpret_cast<uintptr_t>(ctx) / sizeof(context::Context);
    return number % 2 == 0 ? Flow::kContextA : Flow::kContextB;
}

HEDDLE_PE_LOCAL base::PePointer<DetectorService> service;  // of PE 0, in a job of several nodes

std::vector<int> pes_elsewhere() {
    std::vector<int> pes;
    for (int pe = 0; pe < job.n_pes; ++pe)
        if (job.node_of(pe) != job.node)
            pes.push_back(pe);
    return pes;
}

RaceDetector* make_detector(char* memory, DetectorLink* link, void (*report)(void*, const Race&), void* to) {
    if (link)
        return new RemoteDetector(*link, job.n_pes, report, to);
    return new Detector(memory, positions(), job.pe, job.n_pes, report, to);
}

bool is_alone(const team::Team& team) {
    return !team.span && team.state.segment.index < 0;
}

CollectiveKey key_of(const team::Team& team) {
    if (team.span)
        return {CollectiveKey::kSpans | team.span->id, static_cast<uint32_t>(team.span->steps)};
    return {static_cast<uint64_t>(job.node) << 32 | static_cast<uint32_t>(team.state.segment.index), team.state.count};
}

}  // namespace

Races* Races::make(std::string* reason) {
    char text[256] = "";
    const bool is_here = job.node == job.node_of(0);
    const bool is_small = job.n_pes <= checking::kMostPes;
    char* const memory = is_here && is_small ? map_search(Detector::bytes(positions(), job.n_pes)) : nullptr;
    if (!is_small)
        snprintf(text, sizeof text, "this job has %d PEs; races are found among up to %d", job.n_pes, kMostPes);
    else if (is_here && !memory)
        snprintf(text, sizeof text, "no memory: %s; right would be a smaller SHMEM_SYMMETRIC_SIZE",
                 os::describe_memory_error(errno));
    *reason = text;
    if (!reason->empty()) {
        if (is_small && job.n_nodes > 1)
            base::fatal("HEDDLE_RACES", "%s", text);  // other nodes count on this one
        return nullptr;
    }
    if (job.pe == 0 && job.n_nodes > 1)
        service = new DetectorService(memory, positions(), job.n_pes, pes_elsewhere());
    return new Races(memory);
}

void Races::stop_serving() {
    delete service;
    service = nullptr;
}

uint32_t Races::threads() {
    return service ? 1 : 0;
}

Races::Races(char* memory)
    : link_(memory ? nullptr : new NetworkLink),
      detector_(make_detector(memory, link_.get(), &Races::report_to, this)),
      accesses_(&Races::take_blocks, this),
      pauses_(job.pe),
      pe_of_slot_(static_cast<size_t>(job.n_slots), -1) {
    detector_->learn_ended();
    for (int pe = 0; pe < job.n_pes; ++pe)
        if (const int slot = job.slot_of(pe); slot >= 0)
            pe_of_slot_[static_cast<size_t>(slot)] = pe;
    if (job.as_thread)
        return;
    const memory::NodeMemory& node = memory::node_memory;
    const auto& data = memory::symmetric->data;
    Accesses::watch(Accesses::kOfNode, reinterpret_cast<uintptr_t>(node.heap(0)),
                    node.layout.stride * static_cast<size_t>(job.n_slots));
    Accesses::watch(Accesses::kOfData, data.base, data.bytes);
}

void Races::stop(const char*) {
    Accesses::watch_none();
    accesses_.flush();
    detector_->end();
}

// What the caller would carry out by several operations is carried out here, as one.
bool Races::issue(const Operation& operation) {
    take_accesses();
    pauses_.maybe_pause();
    const base::Call call = operations::at_caller(operation.call);
    const Flow flow = operation.req ? Flow::kRequest : flow_of(operation.ctx);
    if (context::context_of(operation.ctx).options & SHMEMX_CTX_ORDERED)
        detector_->fence(flow);
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
    if (operation.kind != Operation::Kind::kGet)
        detector_->settle();
    if (!sees && !operation.req && operation.kind != Operation::Kind::kPutSignal)
        return false;
    carry_out(operation);
    if (operation.req)
        operations::join(operation.call, operation.req);
    if (sees) {
        const bool is_atomic = operation.kind == Operation::Kind::kAtomic;
        detector_->see(operation.world_pe, seen, is_atomic ? operation.element_bytes : operation.block_bytes(),
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
        detector_->touch(block, bytes, writes, call);
        if (!operation.blocking)
            detector_->hold(block, bytes, writes, flow, call);
        if (find(block, &position))
            detector_->access({.owner = job.pe, .position = position, .bytes = bytes, .writes = writes}, call);
    }
}

void Races::put(const Operation& operation, const base::Call& call, Flow flow) {
    const bool has_signal = operation.kind == Operation::Kind::kPutSignal;
    const size_t bytes = operation.block_bytes();
    size_t position;
    use_buffer(operation, call, flow);
    if (bytes != 0 && find(operation.dest, &position))
        for (size_t i = 0; i < operation.nblocks; ++i)
            detector_->access({.owner = operation.world_pe,
                               .position = position + i * operation.dest_step,
                               .bytes = bytes,
                               .writes = true,
                               .completion = Completion::kOrdered,
                               .flow = has_signal ? Flow::kSignal : flow},
                              call);
    if (has_signal && find(operation.sig_addr, &position))
        detector_->update({.owner = operation.world_pe,
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
        detector_->access({.owner = operation.world_pe,
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
    writes ? detector_->update(access, call, false) : detector_->access(access, call);
    if (!operation.fetch)
        return false;
    if (operation.req) {
        const os::Locked locked(lock_);
        learns_by_requests_ = true;
    }
    if (!operation.blocking)
        detector_->hold(operation.fetch, bytes, true, flow, call);
    return !operation.req;
}

void Races::order(const char*, shmem_ctx_t ctx) {
    take_accesses();
    detector_->fence(flow_of(ctx));
}

void Races::complete(const char* function, shmem_ctx_t ctx, const int* pes, size_t npes) {
    take_accesses();
    if (pes)
        for (size_t i = 0; i < npes; ++i)
            detector_->quiet_to(flow_of(ctx), operations::require_target(function, ctx, pes[i]));
    else
        ctx ? detector_->quiet(flow_of(ctx)) : detector_->quiet_all();
    watch_buffers();
}

// Asked by a test for a quiet, which counts as one.
bool Races::is_complete(shmem_ctx_t ctx) {
    complete(nullptr, ctx, nullptr, 0);
    return true;
}

// The wait for a posted collective's request counts as knowing all.
void Races::post_collective(const base::Call&) {
    const os::Locked locked(lock_);
    learns_by_requests_ = true;
}

void Races::post_buffer(const base::Call& call, const void* buffer, size_t bytes, bool writes) {
    size_t position;
    take_accesses();
    detector_->touch(buffer, bytes, writes, call);
    detector_->hold(buffer, bytes, writes, Flow::kRequest, call);
    if (find(buffer, &position))
        detector_->access({.owner = job.pe,
                           .position = position,
                           .bytes = bytes,
                           .writes = writes,
                           .completion = Completion::kAtQuiet,
                           .flow = Flow::kRequest},
                          call);
    watch_buffers();
}

// Which operations a request has is not known: all that are under requests count as complete.
void Races::complete_request() {
    take_accesses();
    detector_->quiet(Flow::kRequest);
    watch_buffers();
    const bool learns = [&] {
        const os::Locked locked(lock_);
        return std::exchange(learns_by_requests_, false);
    }();
    if (learns)  // without the lock, which a report takes
        detector_->see_unknown();
}

void Races::see(const void* address, size_t bytes) {
    size_t position;
    take_accesses();
    if (find(address, &position))
        detector_->see(job.pe, position, bytes, Edge::kWait);
    pauses_.maybe_pause();
}

bool Races::try_last_write(const void* address, size_t bytes, int* pe, base::CallText* call) {
    size_t position;
    return find(address, &position) && detector_->try_last_write(position, bytes, pe, call);
}

void Races::take_lock(const long* lock) {
    size_t position;
    take_accesses();
    if (find(lock, &position))
        detector_->take_lock(position);
}

void Races::give_lock(const long* lock) {
    size_t position;
    take_accesses();
    if (!find(lock, &position))
        return;
    detector_->release_lock(position);
    detector_->settle();
}

// Of a broadcast (root: the rank), the members know what the root knew; of all others, what all knew.
void Races::begin_collective(const team::Team& team, int root) {
    take_accesses();
    if (is_alone(team))
        return;
    const CollectiveKey key = key_of(team);
    {
        const os::Locked locked(lock_);
        entered_[key.team] = {key, root < 0 || root != team.rank, pthread_self(), {}};
    }
    detector_->enter_collective(key, root < 0 || root == team.rank);
    detector_->settle();
}

void Races::end_collective(const team::Team& team) {
    take_accesses();  // of other threads
    Entered entered;
    if (is_alone(team))
        return;
    {
        const os::Locked locked(lock_);
        const auto found = entered_.find(key_of(team).team);
        if (found == entered_.end())
            return;
        entered = std::move(found->second);
        entered_.erase(found);
    }
    detector_->leave_collective(entered.key, entered.takes);
    // Members leave one by one: who has left does not know that this PE is done with its buffers.
    detector_->access_at_once(entered.buffers);
}

void Races::allocate(const base::Call& call, const void* block, size_t bytes) {
    size_t position;
    if (!block || !find(block, &position))
        return;
    objects_.allocate(position, bytes, base::describe(call));
}

// All that was put to this PE's block must be complete.
void Races::free(const base::Call& call, const void* block) {
    size_t position;
    take_accesses();
    if (!block || !find(block, &position))
        return;
    if (const size_t bytes = objects_.free(position))
        detector_->access({.owner = job.pe, .position = position, .bytes = bytes, .writes = true}, call);
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
    detector_->touch(buffer, bytes, writes, call);
    if (!find(buffer, &position))
        return;
    const Access access = {.owner = job.pe, .position = position, .bytes = bytes, .writes = writes};
    detector_->access_in_collective(access, call);
    const os::Locked locked(lock_);
    for (auto& [segment, entered] : entered_)
        if (pthread_equal(entered.thread, pthread_self()))
            entered.buffers.push_back({access, call});
}

// The program may reach another PE's memory by loads and stores of its own.
void Races::hand_out_address() {
    detector_->expect_stores();
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
    const base::CallText earlier = detector_->text_of(static_cast<int>(race.earlier.pe), race.earlier.place);
    const base::CallText later = detector_->text_of(static_cast<int>(race.later.pe), race.later.place);
    if (!detector_->is_new(earlier, later))
        return;
    char text[kMessageBytes];
    base::add_source_lines(
        describe(race, earlier, later, race.owner < 0 ? "" : objects_.describe(race.position)).c_str(), text,
        sizeof text);
    base::report("race", "%s", text);
    job.page->races.fetch_add(1, std::memory_order_relaxed);  // a count; who reads it comes behind the PE's end
}

}  // namespace heddle::checking::races

#include "runtime/leaving.h"

#include "base/error.h"
#include "base/settings.h"
#include "bootstrap/bootstrap.h"
#include "checking/checking.h"
#include "collective/sync.h"
#include "fabric/network.h"
#include "operations/lock.h"
#include "operations/order.h"
#include "os/clock.h"
#include "os/process.h"
#include "progress/engine.h"
#include "progress/wait_policy.h"
#include "team/team.h"

#include <heddle/constants.h>
#include <unistd.h>
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <vector>

namespace heddle::runtime {

namespace {

using bootstrap::job;
using bootstrap::PeRecord;
using bootstrap::PeState;

constexpr uint64_t kSeldomNs = 500 * os::kMillisecondNs;  // between looks of a sleeping thread while no PE leaves
constexpr uint64_t kOftenNs = 20 * os::kMillisecondNs;    // between looks while a PE leaves
constexpr uint64_t kTellNs = 10000 * os::kMillisecondNs;  // until a wait that may be right is reported

// PeRecord::left: how many steps of the world the PE has begun, in its node's segment and between nodes.
constexpr int kCountBits = 31;
constexpr uint64_t kCount = (uint64_t{1} << kCountBits) - 1;
constexpr uint64_t kIsUntold = uint64_t{1} << 63;

uint64_t word_of(const team::Begun& begun) {
    return (begun.in_segment & kCount) | (begun.across & kCount) << kCountBits;
}

class Leaving {
  public:
    Leaving(const base::Call& call, Leave how);
    ~Leaving();
    Leaving(const Leaving&) = delete;
    Leaving& operator=(const Leaving&) = delete;

    // The first PE of the page that should have called shmem_finalize; INT32_MAX: none.
    int32_t first_untold() const;
    void look();
    // How this PE came to leave, for messages.
    const char* what_it_did() const {
        return how_ == Leave::kFinalize ? "is in shmem_finalize" : "has returned from main or called exit";
    }
    // Reports why the job cannot end well, unless another PE has done so, and ends this PE.
    [[noreturn]] void give_up(const char* format, ...) const __attribute__((format(printf, 2, 3)));

  private:
    struct Seen {  // of a PE that does not leave, when the round began
        uint64_t since_ns = 0;
        uint32_t looks = 0;
    };
    static constexpr int kRounds = 2;      // in the second round nothing is in flight that was sent before the first
    static constexpr uint32_t kLooks = 2;  // of each PE in a round: one of two began within the round

    void name_one_that_is_ahead() const;
    bool all_others_wait(int* waiting) const;
    void look_for_cycle(int waiting);
    void tell_if_it_lasts(int waiting);
    const char* function() const { return how_ == Leave::kFinalize ? call_.function : "exit"; }

    const base::Call& call_;
    const Leave how_;
    const team::Begun begun_;  // of the world, before this PE left
    std::vector<Seen> seen_;   // by slot
    int rounds_ = 0;
    uint64_t since_ns_;
    uint64_t next_ns_ = 0;
    bool told_ = false;
};

thread_local Leaving* leaving = nullptr;  // on the thread of this PE that leaves

const team::Team& world() {
    return *team::find(SHMEM_TEAM_WORLD);
}

template <class Visit>
void for_each_here(Visit visit) {
    for (int pe = 0; pe < job.n_pes; ++pe)
        if (job.slot_of(pe) >= 0)
            visit(pe, job.record(job.slot_of(pe)));
}

Leaving::Leaving(const base::Call& call, Leave how)
    : call_(call),
      how_(how),
      begun_(team::begun(world())),
      seen_(static_cast<size_t>(job.n_slots)),
      since_ns_(os::now_ns()) {
    PeRecord& mine = job.own_record();
    // Relaxed: ordered by the barrier in runtime::leave.
    mine.left.store(word_of(begun_) | (how == Leave::kUntold ? kIsUntold : 0), std::memory_order_relaxed);
    // Release: pairs with bootstrap::state_of.
    mine.state.store(static_cast<uint32_t>(PeState::kLeaving), std::memory_order_release);
    leaving = this;
    job.page->leaving.fetch_add(1, std::memory_order_relaxed);  // a hint: a PE that misses it looks again
}

Leaving::~Leaving() {
    job.page->leaving.fetch_sub(1, std::memory_order_relaxed);
    leaving = nullptr;
}

// To be called when all PEs of the page have left.
int32_t Leaving::first_untold() const {
    int32_t first = INT32_MAX;
    for_each_here([&](int pe, const PeRecord& record) {
        const uint64_t left = record.left.load(std::memory_order_relaxed);  // ordered by the barrier
        const uint64_t other = (left ^ word_of(begun_)) & ~kIsUntold;
        if (job.node_of(pe) == job.node ? other != 0 : other > kCount)
            give_up("PE %d has been in other collectives of all PEs than this PE: right would be the same on all PEs",
                    pe);
        if (left & kIsUntold)
            first = std::min(first, pe);
    });
    return first;
}

void Leaving::give_up(const char* format, ...) const {
    while (job.page->told.exchange(1, std::memory_order_relaxed) != 0)  // the first message ends the job
        os::sleep_ns(kSeldomNs);
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    base::fatal(function(), "%s", text);
}

// One look of the leaving thread, while it waits for the others.
void Leaving::look() {
    const uint64_t now = os::now_ns();
    if (now < next_ns_)
        return;
    next_ns_ = now + kOftenNs;
    name_one_that_is_ahead();
    int waiting = -1;
    if (!all_others_wait(&waiting)) {
        rounds_ = 0;
        since_ns_ = now;
        return;
    }
    if (job.n_slots == job.n_pes)
        look_for_cycle(waiting);
    tell_if_it_lasts(waiting);
}

void Leaving::name_one_that_is_ahead() const {
    for_each_here([&](int pe, const PeRecord& record) {
        const uint64_t step = record.wait_step.load(std::memory_order_acquire);  // pairs with runtime::show_look
        if (step == 0 || state_of(record) != PeState::kRunning)
            return;
        const team::StepOf of = team::team_of_step(step, job.node_of(pe) == job.node);
        if (of.team && team::steps_ahead(step, of.team == &world() && of.instance == 0 ? begun_ : of.begun) > 0)
            give_up("PE %d is in %s and waits for this PE, which %s: right would be the same collectives on all PEs",
                    pe, bootstrap::wait_name_of(record).data(), what_it_did());
    });
}

// True when every other PE of the page leaves or waits, and this PE is the first that leaves: one PE looks for all.
// *waiting: the first PE that waits; -1: none.
bool Leaving::all_others_wait(int* waiting) const {
    // The store of wait_since_ns in bootstrap::show_wait is relaxed: here it only tells that the PE waits.
    bool all = true, first = true;
    for_each_here([&](int pe, const PeRecord& record) {
        const PeState state = state_of(record);
        if (state == PeState::kLeaving) {
            first = first && pe >= job.pe;
        } else if (state == PeState::kRunning && record.wait_since_ns.load(std::memory_order_acquire) != 0) {
            if (*waiting < 0)
                *waiting = pe;
        } else {
            all = false;
        }
    });
    return all && first && *waiting >= 0;
}

// Acquire: pairs with runtime::show_look. The stores of wait_since_ns are relaxed; looks orders them.
void Leaving::look_for_cycle(int waiting) {
    bool all_looked = rounds_ > 0, none_moved = true;
    for_each_here([&](int pe, const PeRecord& record) {
        const Seen& seen = seen_[static_cast<size_t>(job.slot_of(pe))];
        if (state_of(record) != PeState::kRunning)
            return;
        all_looked = all_looked && record.looks.load(std::memory_order_acquire) - seen.looks >= kLooks;
        none_moved = none_moved && record.wait_since_ns.load(std::memory_order_acquire) == seen.since_ns;
    });
    if (rounds_ > 0 && none_moved && !all_looked)
        return;
    if (rounds_ == kRounds && none_moved) {
        const PeRecord& record = job.record(job.slot_of(waiting));
        give_up("PE %d is in %s, which nobody can end: this PE %s, and all others leave, too, or wait likewise",
                waiting, bootstrap::wait_name_of(record).data(), what_it_did());
    }
    rounds_ = none_moved ? rounds_ + 1 : 1;
    for_each_here([&](int pe, const PeRecord& record) {
        seen_[static_cast<size_t>(job.slot_of(pe))] = {record.wait_since_ns.load(std::memory_order_acquire),
                                                       record.looks.load(std::memory_order_acquire)};
    });
}

void Leaving::tell_if_it_lasts(int waiting) {
    if (told_ || os::now_ns() - since_ns_ < kTellNs)
        return;
    told_ = true;
    base::complain(function(), "this PE %s and waits for PE %d, which is in %s", what_it_did(), waiting,
                   bootstrap::wait_name_of(job.record(job.slot_of(waiting))).data());
}

// True when no operation that this PE has begun continues without it.
bool nothing_is_under_way() {
    if (checking::is_answer_awaited() || progress::engine->outstanding() != 0 ||
        progress::wait_policy->posted.load(std::memory_order_relaxed) != 0)
        return false;
    bool quiet = true;
    if (fabric::network)
        fabric::network->for_each_stream_set([&](fabric::StreamSet& stream_set) {
            quiet = quiet && stream_set.all_active([](fabric::Stream& stream) { return stream.is_quiet(); });
        });
    return quiet;
}

// Also counts threads that the library has not seen; false when the system does not tell.
bool is_only_thread() {
    const uint32_t threads = os::count_threads();
    return threads != 0 && threads - progress::engine->threads() == 1;
}

void show_look() {
    PeRecord& mine = job.own_record();
    uint64_t step = progress::AtStep::current();
    if (step == 0)
        step = progress::engine->step_of_posted();
    mine.wait_step.store(step, std::memory_order_release);  // pairs with Leaving::name_one_that_is_ahead
    if (is_only_thread() && nothing_is_under_way())
        mine.looks.fetch_add(1, std::memory_order_release);  // pairs with Leaving::look_for_cycle
}

// Races that PEs of another page have reported give this page's PEs their status, too. All PEs have ended their search.
void share_races(const base::Call& call) {
    int32_t has_none = job.page->races.load(std::memory_order_relaxed) == 0;
    collective::part(call, &has_none);
    uint32_t none = 0;
    if (has_none == 0)  // relaxed: read at the end of a PE, behind a barrier of all
        job.page->races.compare_exchange_strong(none, 1, std::memory_order_relaxed);
}

}  // namespace

bool leave(const base::Call& call, Leave how) {
    operations::settle_all(call.function);
    operations::report_held_locks(how == Leave::kFinalize ? call.function : "exit");
    Leaving here(call, how);
    bootstrap::barrier(call.function);
    int32_t first = here.first_untold();
    if (job.n_slots < job.n_pes && !collective::part(call, &first))
        here.give_up(
            "PEs of other nodes are in another collective (shmem_barrier_all?), but this PE %s: right would be "
            "the same collectives on all PEs",
            here.what_it_did());
    if (job.n_slots < job.n_pes && base::settings.races)
        share_races(call);
    return first == job.pe;
}

uint64_t looked(const char*) {
    if (job.page->leaving.load(std::memory_order_relaxed) == 0)  // a hint, see Leaving::Leaving
        return kSeldomNs;
    if (leaving)
        leaving->look();
    else
        show_look();
    return kOftenNs;
}

}  // namespace heddle::runtime

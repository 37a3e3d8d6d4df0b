#include "checking/races/detector.h"

#include "checking/races/inside.h"
#include "checking/races/report.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace heddle::checking::races {

struct Detector::SharedHead {
    std::atomic<uint32_t> expects_stores;
    uint32_t spare[15];
};

// Holds the detector's lock; behind it, reports what was found.
class Detector::Locked {
  public:
    explicit Locked(Detector& detector) : detector_(detector) { pthread_mutex_lock(&detector.lock_); }
    ~Locked() {
        const std::vector<Race> found = std::exchange(detector_.found_, {});
        pthread_mutex_unlock(&detector_.lock_);
        for (const Race& race : found) detector_.report_(detector_.to_, race);
    }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

  private:
    const Inside inside_;
    Detector& detector_;
};

size_t Detector::bytes(size_t positions, int n_pes) {
    const auto pes = static_cast<size_t>(n_pes);
    return sizeof(SharedHead) + kSharedBytes + whole_lines(Histories::bytes(n_pes)) +
           whole_lines(CollectiveClocks::bytes(n_pes)) + whole_lines(Places::bytes(n_pes)) +
           pes * (whole_lines(Contributions::bytes(n_pes)) + Shadow::bytes(positions));
}

Detector::Detector(char* memory, size_t positions, int pe, int n_pes, void (*report)(void* to, const Race& race),
                   void* to, bool is_here)
    : known_(pe, n_pes),
      histories_(memory + sizeof(SharedHead) + kSharedBytes, n_pes),
      collectives_(memory + sizeof(SharedHead) + kSharedBytes + whole_lines(Histories::bytes(n_pes)), n_pes),
      places_(memory + sizeof(SharedHead) + kSharedBytes + whole_lines(Histories::bytes(n_pes)) +
                  whole_lines(CollectiveClocks::bytes(n_pes)),
              pe, is_here),
      edges_(static_cast<size_t>(n_pes)),
      head_(reinterpret_cast<SharedHead*>(memory)),
      shared_words_(memory + sizeof(SharedHead)),
      report_(report),
      to_(to) {
    char* at = memory + sizeof(SharedHead) + kSharedBytes + whole_lines(Histories::bytes(n_pes)) +
               whole_lines(CollectiveClocks::bytes(n_pes)) + whole_lines(Places::bytes(n_pes));
    for (int owner = 0; owner < n_pes; ++owner) {
        contributions_.push_back(std::make_unique<Contributions>(at, n_pes));
        at += whole_lines(Contributions::bytes(n_pes));
        shadows_.push_back(std::make_unique<Shadow>(at, positions, owner));
        at += Shadow::bytes(positions);
    }
    time_ = histories_.now(pe);  // of an earlier detector of this PE
    publish();
}

Detector::~Detector() = default;

Time Detector::tick() {
    histories_.advance(known_.pe, ++time_);
    return time_;
}

Mark Detector::mark_of(const Access& access, const base::Call& call, Time time) {
    Mark mark = {};
    mark.time = time_of(time);
    mark.pe = static_cast<uint16_t>(known_.pe);
    mark.place = places_.number(call) & (Places::kPlaces - 1);
    mark.bytes = 0xff;
    mark.writes = access.writes;
    mark.is_atomic = access.is_atomic;
    mark.completion = access.completion;
    mark.flow = access.flow;
    mark.thread = thread_number();
    return mark;
}

void Detector::record(const Access& access, const base::Call& call, Time time) {
    const Mark mark = mark_of(access, call, time);
    Conflicts conflicts(1);
    shadow(access.owner).access(access.position, access.bytes, mark, known_, &conflicts);
    for (const Conflict& conflict : conflicts)
        report_later(conflict, mark, access.owner, access.position + access.bytes);
}

// end: of the access.
void Detector::report_later(const Conflict& conflict, const Mark& mark, int owner, size_t end) {
    const int from = static_cast<int>(conflict.earlier.pe);
    Race race;
    race.earlier = conflict.earlier;
    race.later = mark;
    race.owner = owner;
    race.position = conflict.position;
    race.bytes = end - conflict.position;
    race.is_known = from == known_.pe || known_.clock.issued(from) >= conflict.earlier.time;
    race.edge = edges_[static_cast<size_t>(from)];
    found_.push_back(race);
}

void Detector::access(const Access& access, const base::Call& call) {
    const Locked locked(*this);
    record(access, call, tick());
}

void Detector::access_at_once(const std::vector<AtOnce>& accesses) {
    const Locked locked(*this);
    const Time time = tick();
    for (const AtOnce& one : accesses) record(one.access, one.call, time);
}

void Detector::access_blocks(const std::vector<OfBlock>& accesses) {
    const Locked locked(*this);
    const Time time = tick();
    for (const OfBlock& one : accesses) {
        const Mark mark = mark_of({.owner = one.owner, .writes = one.writes}, one.call, time);
        Conflicts conflicts(kBlockBytes);  // as many as there are bytes
        shadow(one.owner).access_block(one.position, one.bytes, mark, known_, &conflicts);
        for (const Conflict& conflict : conflicts)
            report_later(conflict, mark, one.owner,
                         one.position + end_of_run(one.bytes, conflict.position - one.position));
    }
}

void Detector::access_in_collective(const Access& access, const base::Call& call) {
    const Locked locked(*this);
    record(access, call, time_);
}

void Detector::update(const Access& access, const base::Call& call, bool is_signal) {
    const Locked locked(*this);
    const Time time = tick();
    contributions(access.owner).add(access.position, known_.pe, {time, access.flow, is_signal});
    record(access, call, time);
}

void Detector::hold(const void* buffer, size_t bytes, bool writes, Flow flow, const base::Call& call) {
    const Locked locked(*this);
    pending_.add(buffer, bytes,
                 mark_of({.writes = writes, .completion = Completion::kAtQuiet, .flow = flow}, call, time_));
}

void Detector::touch(const void* buffer, size_t bytes, bool writes, const base::Call& call) {
    const Locked locked(*this);
    Race race;
    if (!pending_.take_conflict(buffer, bytes, writes, &race.earlier))
        return;
    race.later = mark_of({.writes = writes}, call, time_);
    race.owner = -1;
    race.bytes = bytes;
    race.is_known = true;
    race.is_buffer = true;
    race.address = buffer;
    found_.push_back(race);
}

PendingBuffers::Hull Detector::held() {
    const Locked locked(*this);
    return pending_.hull();
}

bool Detector::may_hold(const void* buffer, size_t bytes) {
    const Locked locked(*this);
    return pending_.holds(buffer, bytes);
}

// The fence before the flag has put in order what its flow, a signal or a request had for that PE.
// is_latest: also what the PE has learned since, which holds from its next operation on.
void Detector::learn(int from, Time at, Flow flow, bool is_signal, bool is_here, Edge edge, bool is_latest) {
    histories_.look(from, at + (is_latest ? 1 : 0), [&](const Time* fenced, const Time* words) {
        bool changed = false;
        if (from != known_.pe) {
            changed |= known_.clock.join(words);
            changed |= raise(known_.clock.issued(from), at);
        }
        const auto has_arrived = [&](Flow of, Time time) {
            changed |= raise(is_here ? known_.here(from, of) : known_.clock.complete(from, of), time);
        };
        for (const Flow of : {flow, Flow::kSignal, Flow::kRequest}) has_arrived(of, fenced[static_cast<size_t>(of)]);
        if (is_signal)
            has_arrived(Flow::kSignal, at);
        has_learned_ |= changed;
    });
    edges_[static_cast<size_t>(from)] = edge;
}

void Detector::learn_latest(int from, Edge edge) {
    const Time now = histories_.now(from);
    for (int flow = 0; flow < kFlows; ++flow) learn(from, now, Flow(flow), false, false, edge, true);
}

void Detector::learn_everything(Edge edge) {
    for (int from = 0; from < known_.n_pes; ++from) learn_latest(from, edge);
}

void Detector::publish() {
    known_.clock.issued(known_.pe) = time_;
    histories_.publish(time_ + 1, known_);
    has_learned_ = false;
}

void Detector::see(int owner, size_t position, size_t bytes, Edge edge) {
    const Locked locked(*this);
    Seen seen;
    shadow(owner).see(position, bytes, &seen);
    const bool is_here = owner == known_.pe;
    bool is_complete = !seen.is_lost;
    for (size_t i = 0; i < seen.n; ++i)
        learn(static_cast<int>(seen.writes[i].pe), seen.writes[i].time, seen.writes[i].flow, false, is_here, edge);
    for (size_t word = position / 8; word * 8 < position + bytes; ++word)
        is_complete &= contributions(owner).look(word * 8, [&](int from, const Contribution& what) {
            learn(from, what.time, what.flow, what.is_signal, is_here, edge);
        });
    if (!is_complete || (!has_learned_ && head_->expects_stores.load(std::memory_order_relaxed) != 0))
        learn_everything(edge);
    else if (!is_here)
        learn_latest(owner, edge);  // the owner may have stored the value itself, which nobody sees
    if (has_learned_)
        publish();
}

bool Detector::try_last_write(size_t position, size_t bytes, int* pe, base::CallText* call) const {
    Mark write;
    if (!shadow(known_.pe).try_last_write(position, bytes, &write))
        return false;
    *pe = static_cast<int>(write.pe);
    *call = places_.text(*pe, write.place);
    return true;
}

void Detector::see_unknown() {
    const Locked locked(*this);
    learn_everything(Edge::kRead);
    publish();
}

void Detector::quiet(Flow flow) {
    const Locked locked(*this);
    bool changed = false;
    for (const Flow of : {flow, Flow::kSignal, Flow::kRequest})
        changed |= raise(known_.clock.complete(known_.pe, of), time_);
    for (const Flow of : {flow, Flow::kRequest}) pending_.quiet(of);
    if (changed)
        publish();
}

void Detector::quiet_to(Flow flow, int target) {
    const Locked locked(*this);
    bool changed = false;
    for (const Flow of : {flow, Flow::kSignal, Flow::kRequest})
        changed |= known_.clock.arrive(known_.pe, of, time_, target);
    for (const Flow of : {flow, Flow::kRequest}) pending_.quiet(of);
    if (changed)
        publish();
}

void Detector::quiet_all() {
    const Locked locked(*this);
    for (int flow = 0; flow < kFlows; ++flow) known_.clock.complete(known_.pe, Flow(flow)) = time_;
    pending_.clear();
    publish();
}

void Detector::fence(Flow flow) {
    const Locked locked(*this);
    bool changed = false;
    for (const Flow of : {flow, Flow::kSignal, Flow::kRequest})
        changed |= raise(known_.fenced[static_cast<size_t>(of)], time_);
    if (changed)
        publish();
}

// What was done on other contexts is not complete for the next owner.
void Detector::release_lock(size_t position) {
    quiet(Flow::kDefault);
    const Locked locked(*this);
    contributions(0).add(position, known_.pe, {tick(), Flow::kDefault, false});
}

void Detector::take_lock(size_t position) {
    const Locked locked(*this);
    const bool is_complete = contributions(0).look(position, [&](int from, const Contribution& what) {
        learn(from, what.time, what.flow, false, false, Edge::kLock);
    });
    if (!is_complete)
        learn_everything(Edge::kLock);
    if (has_learned_)
        publish();
}

void Detector::enter_collective(const CollectiveKey& key, bool gives) {
    const Locked locked(*this);
    if (!gives)
        return;
    known_.clock.issued(known_.pe) = time_;
    collectives_.enter(key, known_.published());
}

void Detector::leave_collective(const CollectiveKey& key, bool takes) {
    const Locked locked(*this);
    if (!takes)
        return;
    const Clock before = known_.clock;
    if (!collectives_.leave(key, &known_.clock))
        return learn_everything(Edge::kCollective), publish();
    for (int from = 0; from < known_.n_pes; ++from)
        if (known_.clock.issued(from) != before.issued(from))
            edges_[static_cast<size_t>(from)] = Edge::kCollective;
    publish();
}

void Detector::learn_ended() {
    const Locked locked(*this);
    for (int from = 0; from < known_.n_pes; ++from) {
        const Time ended = histories_.ended(from);
        raise(known_.clock.issued(from), ended);
        for (int flow = 0; flow < kFlows; ++flow) raise(known_.clock.complete(from, Flow(flow)), ended);
    }
    publish();
}

void Detector::end() {
    const Locked locked(*this);
    histories_.end(known_.pe, time_);
}

bool Detector::is_new(const base::CallText& one, const base::CallText& other) {
    static_assert(Reported::kBytes <= kSharedBytes);
    return Reported(shared_words_).is_new(one, other);
}

void Detector::expect_stores() {
    head_->expects_stores.store(1, std::memory_order_relaxed);  // a hint, before the program can store
}

namespace {

thread_local int own_number = -1;  // none yet

}  // namespace

uint8_t thread_number() {
    static std::atomic<uint32_t> threads{0};
    if (own_number < 0)  // relaxed: only distinct numbers matter
        own_number = static_cast<int>(std::min(threads.fetch_add(1, std::memory_order_relaxed), uint32_t{255}));
    return static_cast<uint8_t>(own_number);
}

void set_thread_number(uint8_t number) {
    own_number = number;
}

}  // namespace heddle::checking::races

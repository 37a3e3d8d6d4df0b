#include "checking/races/remote_detector.h"

#include "base/error.h"
#include "checking/races/detector.h"
#include "checking/races/inside.h"
#include "checking/races/places.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace heddle::checking::races {

namespace {

template <class T>
std::string_view bytes_of(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

CallWords words_of(const base::Call& call) {
    return {reinterpret_cast<uintptr_t>(call.function), reinterpret_cast<uintptr_t>(call.caller)};
}

Request request_of(RequestKind kind) {
    Request request;
    request.kind = static_cast<uint32_t>(kind);
    return request;
}

Request request_of(RequestKind kind, const Access& access) {
    Request request = request_of(kind);
    request.access = words_of(access);
    return request;
}

Request request_of(RequestKind kind, Flow flow) {
    return request_of(kind, {.flow = flow});
}

Request request_of(RequestKind kind, const CollectiveKey& key, bool flag) {
    Request request = request_of(kind);
    request.team = key.team;
    request.step = key.step;
    request.flag = flag;
    return request;
}

Request request_of(RequestKind kind, const void* buffer, size_t bytes, bool writes, Flow flow) {
    return request_of(
        kind, {.position = reinterpret_cast<uintptr_t>(buffer), .bytes = bytes, .writes = writes, .flow = flow});
}

}  // namespace

RemoteDetector::RemoteDetector(DetectorLink& link, int n_pes, void (*report_race)(void* to, const Race& race), void* to)
    : link_(link), n_pes_(n_pes), report_(report_race), to_(to) {}

RemoteDetector::~RemoteDetector() {
    pthread_mutex_destroy(&lock_);
}

void RemoteDetector::send(const Request& request, std::string_view more) {
    if (has_ended_)
        return;
    std::string message(bytes_of(request));
    message += more;
    link_.send(message);
    ahead_ += message.size() + kOverheadBytes;
}

// The server learns of a call when it is first told of.
void RemoteDetector::name(const base::Call& call) {
    if (!named_.emplace(call.function, call.caller).second)
        return;
    Request request = request_of(RequestKind::kName);
    request.call = words_of(call);
    send(request, bytes_of(Places::text_of(call)));
}

void RemoteDetector::tell(const Request& request, std::string_view more, std::vector<Race>* races) {
    send(request, more);
    if (ahead_ > kMostAhead)
        ask(request_of(RequestKind::kSettle), {}, races);
}

void RemoteDetector::tell(const Request& request) {
    std::vector<Race> races;
    {
        const LockedInside locked(lock_);
        tell(request, {}, &races);
    }
    report(races);
}

void RemoteDetector::tell_of(const Request& request, const base::Call& call) {
    std::vector<Race> races;
    Request told = request;
    told.call = words_of(call);
    told.thread = thread_number();
    {
        const LockedInside locked(lock_);
        name(call);
        tell(told, {}, &races);
    }
    report(races);
}

Answer RemoteDetector::ask(Request request, std::string_view more, std::vector<Race>* races) {
    if (has_ended_)
        return {};
    request.answers = 1;
    send(request, more);
    const Answer answer = receive(races);
    for (uint32_t left = answer.left; left != 0; left = receive(races).left) {
        Request again = request_of(RequestKind::kSettle);
        again.answers = 1;
        send(again, {});
    }
    ahead_ = 0;
    return answer;
}

Answer RemoteDetector::ask(Request request, std::string_view more) {
    std::vector<Race> races;
    Answer answer;
    {
        const LockedInside locked(lock_);
        answer = ask(request, more, &races);
    }
    report(races);
    return answer;
}

// Without the lock: it asks for the calls' texts.
void RemoteDetector::report(const std::vector<Race>& races) const {
    for (const Race& race : races) report_(to_, race);
}

Answer RemoteDetector::receive(std::vector<Race>* races) {
    alignas(Answer) char message[kMostBytes];
    const size_t bytes = link_.receive(message, sizeof message);
    Answer answer;
    if (bytes >= sizeof answer)
        memcpy(&answer, message, sizeof answer);
    if (bytes < sizeof answer || answer.races > kMostRaces || bytes != sizeof answer + answer.races * sizeof(RaceWords))
        base::fatal("HEDDLE_RACES", "an answer of %zu bytes from PE 0 is none", bytes);
    for (size_t i = 0; i < answer.races; ++i) {
        RaceWords words;
        Race race;
        memcpy(&words, message + sizeof answer + i * sizeof words, sizeof words);
        if (!read(words, &race))
            base::fatal("HEDDLE_RACES", "a race in an answer from PE 0 is none");
        races->push_back(race);
    }
    answer.text.back() = '\0';
    return answer;
}

bool RemoteDetector::read(const RaceWords& words, Race* race) const {
    for (const Mark& mark : {words.earlier, words.later})
        if (static_cast<int>(mark.pe) >= n_pes_ || mark.completion > Completion::kAtQuiet ||
            static_cast<int>(mark.flow) >= kFlows)
            return false;
    if (words.owner < -1 || words.owner >= n_pes_ || words.edge > static_cast<uint8_t>(Edge::kCollective))
        return false;
    *race = {.earlier = words.earlier,
             .later = words.later,
             .owner = words.owner,
             .position = words.position,
             .bytes = words.bytes,
             .is_known = words.is_known != 0,
             .edge = static_cast<Edge>(words.edge),
             .is_buffer = words.is_buffer != 0,
             .address = reinterpret_cast<const void*>(words.address)};
    return true;
}

void RemoteDetector::access(const Access& access, const base::Call& call) {
    tell_of(request_of(RequestKind::kAccess, access), call);
}

void RemoteDetector::access_at_once(const std::vector<AtOnce>& accesses) {
    Request request = request_of(RequestKind::kAccessAtOnce);
    request.thread = thread_number();
    std::vector<Race> races;
    const Inside inside;
    pthread_mutex_lock(&lock_);
    for (size_t begin = 0; begin < accesses.size(); begin += kMostAtOnce) {
        const size_t end = std::min(accesses.size(), begin + kMostAtOnce);
        std::string more;
        for (size_t i = begin; i < end; ++i) {
            name(accesses[i].call);
            more += bytes_of(AccessRequest{races::words_of(accesses[i].access), words_of(accesses[i].call)});
        }
        request.number = static_cast<uint32_t>(end - begin);
        tell(request, more, &races);
    }
    pthread_mutex_unlock(&lock_);
    report(races);
}

void RemoteDetector::access_blocks(const std::vector<OfBlock>& accesses) {
    std::vector<AtOnce> runs;
    for (const OfBlock& one : accesses)
        for_each_run(one.bytes, [&](size_t begin, size_t end) {
            runs.push_back(
                {{.owner = one.owner, .position = one.position + begin, .bytes = end - begin, .writes = one.writes},
                 one.call});
        });
    access_at_once(runs);
}

void RemoteDetector::access_in_collective(const Access& access, const base::Call& call) {
    tell_of(request_of(RequestKind::kAccessInCollective, access), call);
}

void RemoteDetector::update(const Access& access, const base::Call& call, bool is_signal) {
    Request request = request_of(RequestKind::kUpdate, access);
    request.flag = is_signal;
    tell_of(request, call);
}

void RemoteDetector::hold(const void* buffer, size_t bytes, bool writes, Flow flow, const base::Call& call) {
    tell_of(request_of(RequestKind::kHold, buffer, bytes, writes, flow), call);
}

void RemoteDetector::touch(const void* buffer, size_t bytes, bool writes, const base::Call& call) {
    tell_of(request_of(RequestKind::kTouch, buffer, bytes, writes, Flow::kDefault), call);
}

PendingBuffers::Hull RemoteDetector::held() {
    const Answer answer = ask(request_of(RequestKind::kHeld));
    return {answer.begin, answer.end};
}

void RemoteDetector::see(int owner, size_t position, size_t bytes, Edge edge) {
    Request request = request_of(RequestKind::kSee, {.owner = owner, .position = position, .bytes = bytes});
    request.edge = static_cast<uint8_t>(edge);
    tell(request);
}

void RemoteDetector::quiet(Flow flow) {
    tell(request_of(RequestKind::kQuiet, flow));
}

void RemoteDetector::quiet_to(Flow flow, int target) {
    tell(request_of(RequestKind::kQuietTo, {.owner = target, .flow = flow}));
}

void RemoteDetector::quiet_all() {
    tell(request_of(RequestKind::kQuietAll));
}

void RemoteDetector::fence(Flow flow) {
    tell(request_of(RequestKind::kFence, flow));
}

void RemoteDetector::release_lock(size_t position) {
    tell(request_of(RequestKind::kReleaseLock, {.position = position}));
}

void RemoteDetector::take_lock(size_t position) {
    tell(request_of(RequestKind::kTakeLock, {.position = position}));
}

void RemoteDetector::enter_collective(const CollectiveKey& key, bool gives) {
    tell(request_of(RequestKind::kEnterCollective, key, gives));
}

void RemoteDetector::leave_collective(const CollectiveKey& key, bool takes) {
    tell(request_of(RequestKind::kLeaveCollective, key, takes));
}

void RemoteDetector::see_unknown() {
    tell(request_of(RequestKind::kSeeUnknown));
}

void RemoteDetector::learn_ended() {
    tell(request_of(RequestKind::kLearnEnded));
}

// A thread that runs on behind finalize finds no server any more.
void RemoteDetector::end() {
    tell(request_of(RequestKind::kEnd));
    settle();
    const LockedInside locked(lock_);
    has_ended_ = true;
}

void RemoteDetector::expect_stores() {
    ask(request_of(RequestKind::kExpectStores));  // before the program can store
}

void RemoteDetector::settle() {
    ask(request_of(RequestKind::kSettle));
}

base::CallText RemoteDetector::text_of(int pe, uint32_t place) {
    Request request = request_of(RequestKind::kText, {.owner = pe});
    request.number = place;
    return ask(request).text;
}

bool RemoteDetector::is_new(const base::CallText& one, const base::CallText& other) {
    std::string texts(one.data(), one.size());
    texts.append(other.data(), other.size());
    return ask(request_of(RequestKind::kIsNew), texts).flag != 0;
}

}  // namespace heddle::checking::races

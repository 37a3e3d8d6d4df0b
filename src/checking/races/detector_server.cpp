#include "checking/races/detector_server.h"

#include <algorithm>
#include <cstring>

namespace heddle::checking::races {

namespace {

// Never followed: both addresses name a call of the PE's process.
base::Call call_of(const CallWords& words) {
    return {reinterpret_cast<const char*>(words.function), reinterpret_cast<const void*>(words.caller)};
}

// Text of a PE.
base::CallText read_text(std::string_view bytes) {
    base::CallText text = {};
    bytes.copy(text.data(), text.size() - 1);
    return text;
}

RaceWords words_of(const Race& race) {
    return {.earlier = race.earlier,
            .later = race.later,
            .position = race.position,
            .bytes = race.bytes,
            .address = reinterpret_cast<uintptr_t>(race.address),
            .owner = race.owner,
            .is_known = race.is_known,
            .edge = static_cast<uint8_t>(race.edge),
            .is_buffer = race.is_buffer};
}

template <class T>
void append(std::string* to, const T& value) {
    to->append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

DetectorServer::DetectorServer(char* memory, size_t positions, int n_pes)
    : memory_(memory), positions_(positions), n_pes_(n_pes), clients_(static_cast<size_t>(n_pes)) {}

DetectorServer::Client& DetectorServer::client(int pe) {
    Client& found = clients_[static_cast<size_t>(pe)];
    if (!found.detector)
        found.detector = std::make_unique<Detector>(
            memory_, positions_, pe, n_pes_,
            [](void* races, const Race& race) { static_cast<std::vector<Race>*>(races)->push_back(race); },
            &found.found, false);
    return found;
}

bool DetectorServer::read(const AccessWords& words, Access* access) const {
    if (words.owner < 0 || words.owner >= n_pes_ || words.position > positions_ ||
        words.bytes > positions_ - words.position || words.completion > static_cast<uint8_t>(Completion::kAtQuiet) ||
        words.flow >= kFlows)
        return false;
    *access = {.owner = words.owner,
               .position = words.position,
               .bytes = words.bytes,
               .writes = words.writes != 0,
               .is_atomic = words.is_atomic != 0,
               .completion = static_cast<Completion>(words.completion),
               .flow = static_cast<Flow>(words.flow)};
    return true;
}

bool DetectorServer::carry_out(int pe, std::string_view message, std::string* answer) {
    Request request;
    if (pe < 0 || pe >= n_pes_ || message.size() < sizeof request || message.size() > kMostBytes)
        return false;
    memcpy(&request, message.data(), sizeof request);
    Client& from = client(pe);
    Answer answered;
    set_thread_number(request.thread);
    if (!carry_out(from, request, message.substr(sizeof request), &answered))
        return false;
    answer->clear();
    if (request.answers == 0)
        return true;
    const size_t races = std::min(from.found.size(), kMostRaces);
    answered.races = static_cast<uint32_t>(races);
    answered.left = static_cast<uint32_t>(from.found.size() - races);
    append(answer, answered);
    for (size_t i = 0; i < races; ++i) append(answer, words_of(from.found[i]));
    from.found.erase(from.found.begin(), from.found.begin() + static_cast<ptrdiff_t>(races));
    return true;
}

bool DetectorServer::access(Detector& detector, RequestKind kind, const Request& request) {
    Access what;
    if (!read(request.access, &what))
        return false;
    const base::Call call = call_of(request.call);
    if (kind == RequestKind::kAccess)
        detector.access(what, call);
    else if (kind == RequestKind::kAccessInCollective)
        detector.access_in_collective(what, call);
    else
        detector.update(what, call, request.flag != 0);
    return true;
}

bool DetectorServer::access_at_once(Detector& detector, const Request& request, std::string_view more) {
    if (more.size() != request.number * sizeof(AccessRequest))
        return false;
    std::vector<Detector::AtOnce> accesses(request.number);
    for (size_t i = 0; i < accesses.size(); ++i) {
        AccessRequest words;
        memcpy(&words, more.data() + i * sizeof words, sizeof words);
        if (!read(words.access, &accesses[i].access))
            return false;
        accesses[i].call = call_of(words.call);
    }
    detector.access_at_once(accesses);
    return true;
}

bool DetectorServer::carry_out(Client& client, const Request& request, std::string_view more, Answer* answer) {
    constexpr size_t kText = sizeof(base::CallText), kMostSeen = 16;
    Detector& detector = *client.detector;
    const auto kind = static_cast<RequestKind>(request.kind);
    const AccessWords& words = request.access;
    const auto flow = static_cast<Flow>(words.flow);
    const void* const buffer = reinterpret_cast<const void*>(words.position);
    const CollectiveKey key = {request.team, request.step};
    const size_t follows = kind == RequestKind::kName ? kText : kind == RequestKind::kIsNew ? 2 * kText : 0;
    if (request.kind >= kRequestKinds || words.flow >= kFlows ||
        (kind != RequestKind::kAccessAtOnce && more.size() != follows))
        return false;
    switch (kind) {
        case RequestKind::kName:
            detector.places().add(call_of(request.call), read_text(more));
            return true;
        case RequestKind::kAccess:
        case RequestKind::kAccessInCollective:
        case RequestKind::kUpdate:
            return access(detector, kind, request);
        case RequestKind::kAccessAtOnce:
            return access_at_once(detector, request, more);
        case RequestKind::kHold:
            return detector.hold(buffer, words.bytes, words.writes != 0, flow, call_of(request.call)), true;
        case RequestKind::kTouch:
            return detector.touch(buffer, words.bytes, words.writes != 0, call_of(request.call)), true;
        case RequestKind::kHeld: {
            const PendingBuffers::Hull hull = detector.held();
            answer->begin = hull.begin;
            answer->end = hull.end;
            return true;
        }
        case RequestKind::kSee: {
            Access seen;
            if (!read(words, &seen) || seen.bytes > kMostSeen || request.edge > static_cast<uint8_t>(Edge::kCollective))
                return false;
            return detector.see(seen.owner, seen.position, seen.bytes, static_cast<Edge>(request.edge)), true;
        }
        case RequestKind::kQuiet:
            return detector.quiet(flow), true;
        case RequestKind::kQuietTo:
            if (words.owner < 0 || words.owner >= n_pes_)
                return false;
            return detector.quiet_to(flow, words.owner), true;
        case RequestKind::kQuietAll:
            return detector.quiet_all(), true;
        case RequestKind::kFence:
            return detector.fence(flow), true;
        case RequestKind::kReleaseLock:
            return detector.release_lock(words.position), true;
        case RequestKind::kTakeLock:
            return detector.take_lock(words.position), true;
        case RequestKind::kEnterCollective:
            return detector.enter_collective(key, request.flag != 0), true;
        case RequestKind::kLeaveCollective:
            return detector.leave_collective(key, request.flag != 0), true;
        case RequestKind::kSeeUnknown:
            return detector.see_unknown(), true;
        case RequestKind::kLearnEnded:
            return detector.learn_ended(), true;
        case RequestKind::kEnd:
            return detector.end(), true;
        case RequestKind::kExpectStores:
            return detector.expect_stores(), true;
        case RequestKind::kSettle:
            return true;
        case RequestKind::kText:
            if (words.owner < 0 || words.owner >= n_pes_)
                return false;
            answer->text = detector.text_of(words.owner, request.number);
            return true;
        case RequestKind::kIsNew:
            answer->flag = detector.is_new(read_text(more), read_text(more.substr(kText)));
            return true;
    }
    return false;
}

}  // namespace heddle::checking::races

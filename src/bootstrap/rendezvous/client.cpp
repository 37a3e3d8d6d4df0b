#include "bootstrap/rendezvous/client.h"

#include "base/error.h"
#include "base/settings.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/rendezvous/connection.h"
#include "bootstrap/rendezvous/message.h"
#include "bootstrap/rendezvous/server.h"
#include "os/clock.h"
#include "os/locked.h"
#include "os/own_thread.h"
#include "os/process.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace heddle::bootstrap::rendezvous {

namespace {

constexpr uint64_t kNever = UINT64_MAX;
constexpr uint64_t kAbortNs = 4 * kSecondNs;    // until the server has told the others, or they do not listen
constexpr uint64_t kLeavingNs = 5 * kSecondNs;  // for a PE whose partners have all finalized to do so as well

struct Client {
    IdBytes id = {};
    Target target;

    Connection connection;
    os::OwnDescriptor stop;  // an event that ends the receiver
    pthread_t receiver = {};
    bool has_receiver = false;
    Server* own_server = nullptr;  // of this job, in this process
    std::vector<int> peers;

    pthread_mutex_t send_lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_t get_lock = PTHREAD_MUTEX_INITIALIZER;  // one get at a time
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;      // of what follows
    pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
    std::map<std::pair<int32_t, std::string>, std::string> entries;
    uint64_t fences_begun = 0, fences_done = 0;
    bool is_over = false;
    std::string why_over;

    std::atomic<const PeRecord*> record{nullptr};  // of this PE's state; null: it is in init
    std::atomic<bool> aborts{false};
};
bool is_asked = false;  // by the id; apart, so that a PE of another launcher makes no client

Client& client() {
    static auto* const it = new Client;  // not destroyed: its thread may outlast the destructors
    return *it;
}

uint64_t timeout_ns() {
    return base::settings.launch_timeout_s * kSecondNs;
}

std::string own_host() {
    char name[sizeof JoinRequest::host_name] = "?";
    gethostname(name, sizeof name - 1);
    return printable(name);
}

std::string text_of(const std::vector<Endpoint>& endpoints) {
    std::string text;
    for (const Endpoint& endpoint : endpoints) text += (text.empty() ? "" : ", ") + endpoint.text();
    return text;
}

// A reason in the words of this client, and where it is to be told.
struct Failure {
    char why[kMaxTextBytes + 128] = "";
    char* error;
    size_t error_bytes;
    Failure(char* text, size_t bytes) : error(text), error_bytes(bytes) {}
    Reason reason() { return {why, sizeof why}; }
    bool tell(const char* step) const {
        const Target& target = client().target;
        const std::string& connected = client().connection.where();
        const std::string where = !connected.empty()     ? connected
                                  : !target.host.empty() ? target.host + ":" + target.port
                                                         : text_of(target.place.endpoints);
        char who[64] = "this process";  // where its environment does not tell its number
        if (target.pe >= 0)
            snprintf(who, sizeof who, "PE %d of %d", target.pe, target.n_pes);
        snprintf(error, error_bytes, "%s on host %s, %s%s%s: %s", who, own_host().c_str(), step,
                 where.empty() ? "" : " ", where.c_str(), why);
        return false;
    }
};

bool send_message(Kind kind, std::string_view payload, const Reason& reason) {
    std::string bytes;
    append_message(&bytes, kind, payload);
    const os::Locked lock(client().send_lock);
    return client().connection.send(bytes, os::now_ns() + timeout_ns()) ||
           reason.fail("the connection to the server of this job has ended");
}

// State of the PE, in which it hears of the end of others; kAbsent for one that has joined and is in init.
PeState state_of_pe(const PeRecord& record) {
    return static_cast<PeState>(record.state.load(std::memory_order_relaxed));  // relaxed: only whether to end
}

// Nothing comes any more. Ends this PE with the text, unless it is in init, has finalized, or ends the job itself.
void end_connection(int status, const std::string& text, bool is_failure) {
    Client& it = client();
    const auto set_over = [&] {
        it.is_over = true;
        it.why_over = text;
        pthread_cond_broadcast(&it.changed);
    };
    const PeRecord* record = nullptr;
    {
        const os::Locked lock(it.lock);
        // Relaxed: the lock orders it against rendezvous::watch, which fails where this was first.
        record = it.record.load(std::memory_order_relaxed);
        if (!record)
            set_over();
    }
    // Relaxed: the thread that has set it waits for this one.
    if (is_failure && record && !it.aborts.load(std::memory_order_relaxed)) {
        const uint64_t end = os::now_ns() + kLeavingNs;
        while (state_of_pe(*record) == PeState::kLeaving && os::now_ns() < end) os::sleep_ns(10 * os::kMillisecondNs);
        if (state_of_pe(*record) != PeState::kFinalized) {
            base::report("launcher", "%s", text.c_str());
            _exit(status);
        }
    }
    shutdown(it.connection.fd(), SHUT_RDWR);  // the server need not wait
    const os::Locked lock(it.lock);
    set_over();
}

// False when no more messages come.
bool take(const Message& message) {
    Client& it = client();
    std::string_view rest = message.payload;
    Entry entry;
    if (message.kind == Kind::kFenceDone || message.kind == Kind::kValue) {
        const os::Locked lock(it.lock);
        while (take_entry(&rest, &entry)) it.entries[{entry.pe, std::string(entry.key)}] = entry.value;
        it.fences_done += message.kind == Kind::kFenceDone;
        pthread_cond_broadcast(&it.changed);
        if (rest.empty())
            return true;
    } else if (message.kind == Kind::kParted) {
        end_connection(0, "the process that served the job has ended", false);
        return false;
    } else if (message.kind == Kind::kEnd && rest.size() >= sizeof(int32_t)) {
        int32_t status = 0;
        memcpy(&status, rest.data(), sizeof status);
        end_connection(status, printable(rest.substr(sizeof status)), true);
        return false;
    }
    end_connection(1, "the server of the job has sent bytes that are no message", true);
    return false;
}

void* receive_all(void*) {
    Client& it = client();
    for (;;) {
        Message message;
        const Inbox::State state = it.connection.inbox().next(kMaxAnswerBytes, &message);
        if (state == Inbox::State::kWhole && take(message))
            continue;
        if (state == Inbox::State::kWhole)
            return nullptr;
        if (state == Inbox::State::kBroken) {
            end_connection(1, "the server of the job has sent bytes that are no message", true);
            return nullptr;
        }
        pollfd its[] = {{it.connection.fd(), POLLIN, 0}, {it.stop, POLLIN, 0}};
        if (poll(its, 2, -1) < 0)
            continue;
        if (its[1].revents != 0)
            return nullptr;
        char bytes[16384];
        const ssize_t got = recv(it.connection.fd(), bytes, sizeof bytes, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (got <= 0) {
            end_connection(1,
                           "the process at " + it.connection.where() +
                               " has ended, which served the job (PE 0, or the process " + "that made its id)",
                           true);
            return nullptr;
        }
        it.connection.inbox().append(bytes, static_cast<size_t>(got));
    }
}

bool start_receiver(const Reason& reason) {
    Client& it = client();
    it.stop.take([] { return eventfd(0, EFD_CLOEXEC); });
    const int status = it.stop < 0 ? errno : os::start_own_thread(&it.receiver, receive_all, nullptr);
    it.has_receiver = status == 0;
    return status == 0 || reason.fail("no thread for the rendezvous: %s", strerror(status));
}

// Ends the connection, and all that belongs to it.
void clean_up() {
    Client& it = client();
    if (it.has_receiver) {
        const uint64_t one = 1;
        [[maybe_unused]] const ssize_t told = write(it.stop, &one, sizeof one);
        pthread_join(it.receiver, nullptr);
    }
    it.has_receiver = false;
    it.stop.close();
    it.connection.close();
    if (it.own_server)
        it.own_server->stop();
    it.own_server = nullptr;
    is_asked = false;
    it.record.store(nullptr, std::memory_order_relaxed);  // relaxed: no other thread looks any more
    it.entries.clear();
    it.fences_begun = it.fences_done = 0;
    it.is_over = false;
    it.aborts.store(false, std::memory_order_relaxed);  // relaxed: as the record
}

// Listens in PE 0, for loopback alone where the environment names that.
bool serve_environment(const Environment& environment, const Reason& reason) {
    Client& it = client();
    // A host's own name often means loopback on that host alone (/etc/hosts).
    const bool is_local = environment.host == "localhost" || environment.host == "127.0.0.1";
    const auto port = static_cast<uint16_t>(strtoul(environment.port.c_str(), nullptr, 10));
    os::OwnDescriptor listener;
    if (!listen_on(port, is_local, &listener, reason)) {
        const std::string why = reason.text;
        return reason.fail("%s; right would be a port that no other job or program of this host uses", why.c_str());
    }
    it.target.place.endpoints = {own_endpoint(listener)};
    it.target.host.clear();
    it.own_server =
        Server::start(&listener, environment.token, environment.n_pes, base::settings.launch_timeout_s, reason);
    return it.own_server != nullptr;
}

// What is needed to find the server; makes it in PE 0 of the environment.
bool prepare(const Reason& reason) {
    Client& it = client();
    it.target.timeout_s = base::settings.launch_timeout_s;
    if (is_asked) {
        it.own_server = Server::find(it.target.place.token);
        return true;
    }
    Environment environment;
    const bool is_well = read_environment(base::settings.launch_token, &environment, reason);
    it.target.pe = environment.pe;
    it.target.n_pes = environment.n_pes;
    it.target.place = {environment.token, {}};
    it.target.host = environment.host;
    it.target.port = environment.port;
    return is_well && (environment.pe != 0 || serve_environment(environment, reason));
}

bool init(LauncherJob* job, uint64_t, void (*)(const char*), char* error, size_t error_bytes) {
    Client& it = client();
    Failure failure(error, error_bytes);
    const Reason reason = failure.reason();
    const uint64_t deadline_ns = os::now_ns() + timeout_ns();
    std::vector<uint64_t> hosts;
    const char* step = "at its environment (HEDDLE_LAUNCH=env),";
    bool is_well = prepare(reason);
    if (is_well) {
        step = "on its way to the rendezvous at";
        is_well = it.connection.find_server(it.target, deadline_ns, reason);
    }
    if (is_well) {
        step = "at the rendezvous";
        is_well =
            it.connection.wait_for_all(it.target, deadline_ns + kAnswerNs, &hosts, reason) && start_receiver(reason);
    }
    if (!is_well) {
        failure.tell(step);
        clean_up();
        return false;
    }
    it.peers.clear();
    for (int pe = 0; pe < it.target.n_pes; ++pe)
        if (hosts[static_cast<size_t>(pe)] == hosts[static_cast<size_t>(it.target.pe)])
            it.peers.push_back(pe);
    *job = {it.target.pe, it.target.n_pes, it.peers.data(), static_cast<int>(it.peers.size()), true};
    return true;
}

// Waits, with it.lock held, until the condition holds. False with the reason when nothing comes any more, or too late.
template <class Condition>
bool wait_for(Condition condition, uint64_t deadline_ns, const Reason& reason) {
    Client& it = client();
    while (!condition()) {
        if (it.is_over)
            return reason.fail("%s", it.why_over.c_str());
        if (os::now_ns() >= deadline_ns)
            return reason.fail("no answer within %llu s (HEDDLE_LAUNCH_TIMEOUT_S)",
                               static_cast<unsigned long long>(base::settings.launch_timeout_s));
        timespec limit;
        clock_gettime(CLOCK_REALTIME, &limit);
        limit.tv_sec += 1;
        pthread_cond_timedwait(&it.changed, &it.lock, &limit);
    }
    return true;
}

bool publish(const char* key, const void* value, size_t bytes, Reach, char* error, size_t error_bytes) {
    Failure failure(error, error_bytes);
    if (bytes > kMaxValueBytes || strlen(key) > kMaxKeyBytes)
        return failure.reason().fail("%s has %zu bytes: right would be up to %zu", key, bytes, kMaxValueBytes) ||
               failure.tell("at the rendezvous");
    std::string payload;
    append_entry(&payload, {client().target.pe, key, {static_cast<const char*>(value), bytes}});
    return send_message(Kind::kPublish, payload, failure.reason()) || failure.tell("at the rendezvous");
}

bool fence(bool collect, char* error, size_t error_bytes) {
    Client& it = client();
    Failure failure(error, error_bytes);
    const uint32_t collects = collect;
    const uint64_t deadline_ns = collect ? os::now_ns() + timeout_ns() + kAnswerNs : kNever;
    if (!send_message(Kind::kFence, bytes_of(collects), failure.reason()))
        return failure.tell("at the rendezvous");
    const os::Locked lock(it.lock);
    const uint64_t mine = ++it.fences_begun;
    return wait_for([&] { return it.fences_done >= mine; }, deadline_ns, failure.reason()) ||
           failure.tell("at the rendezvous");
}

size_t get(int pe, const char* key, void* value, size_t max_bytes, char* error, size_t error_bytes) {
    Client& it = client();
    Failure failure(error, error_bytes);
    const Reason reason = failure.reason();
    const std::pair<int32_t, std::string> name = {pe, key};
    const os::Locked one_at_a_time(it.get_lock);
    bool is_here = false;
    {
        const os::Locked lock(it.lock);
        is_here = it.entries.count(name) != 0;
    }
    std::string payload;
    append_entry(&payload, {pe, key, {}});
    bool is_well = is_here || send_message(Kind::kGet, payload, reason);
    size_t bytes = 0;
    if (is_well) {
        const os::Locked lock(it.lock);
        const uint64_t deadline_ns = os::now_ns() + timeout_ns();
        is_well = wait_for([&] { return it.entries.count(name) != 0; }, deadline_ns, reason);
        if (is_well) {
            const std::string& found = it.entries[name];
            bytes = found.size() <= max_bytes ? found.size() : 0;
            if (bytes == 0)
                reason.fail("%s of PE %d has %zu bytes: right would be 1 to %zu", key, pe, found.size(), max_bytes);
            memcpy(value, found.data(), bytes);
            it.entries.erase(name);
        }
    }
    if (bytes == 0)
        failure.tell("at the rendezvous");
    return bytes;
}

// Returns when the server has told the others, or it takes too long.
void abort_job(int status, const char* why) {
    Client& it = client();
    it.aborts.store(true, std::memory_order_relaxed);  // relaxed: the lock orders what matters
    std::string payload(bytes_of(static_cast<int32_t>(status)));
    payload += std::string_view(why).substr(0, kMaxTextBytes);
    std::string bytes;
    append_message(&bytes, Kind::kAbort, payload);
    timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 1;
    if (pthread_mutex_timedlock(&it.send_lock, &limit) != 0)
        return;
    const bool is_sent = it.connection.send(bytes, os::now_ns() + kSecondNs);
    pthread_mutex_unlock(&it.send_lock);
    char unused[kMaxTextBytes];
    if (!is_sent || pthread_mutex_timedlock(&it.lock, &limit) != 0)
        return;
    wait_for([] { return false; }, os::now_ns() + kAbortNs, {unused, sizeof unused});
    pthread_mutex_unlock(&it.lock);
}

void finalize() {
    char unused[kMaxTextBytes];
    send_message(Kind::kLeave, {}, {unused, sizeof unused});
    clean_up();
}

bool watch(const PeRecord* record, char* error, size_t error_bytes) {
    Client& it = client();
    Failure failure(error, error_bytes);
    const os::Locked lock(it.lock);
    it.record.store(record, std::memory_order_relaxed);  // relaxed: the lock orders it
    return !it.is_over || failure.reason().fail("%s", it.why_over.c_str()) || failure.tell("at the rendezvous");
}

void abandon(const char* why) {
    abort_job(1, why);
    clean_up();
}

}  // namespace

bool make_id(IdBytes* id, char* error, size_t error_bytes) {
    const Reason reason = {error, error_bytes};
    os::hold_standard_descriptors();
    base::Settings settings;
    if (!base::read_settings(&settings, error, error_bytes))
        return false;
    const uint64_t token = os::random_word();
    os::OwnDescriptor listener;
    if (!listen_on(0, false, &listener, reason))
        return false;
    const Endpoint endpoint = own_endpoint(listener);
    if (!Server::start(&listener, token, 0, settings.launch_timeout_s, reason))
        return false;
    write_id(token, ntohs(reinterpret_cast<const sockaddr_in*>(&endpoint.address)->sin_port), settings.net_devices, id);
    return true;
}

bool ask_to_join(const IdBytes& id, int pe, int n_pes, char* error, size_t error_bytes) {
    Client& it = client();
    const Reason reason = {error, error_bytes};
    Place place;
    if (job.n_pes != 0)
        return (is_asked && it.id == id && it.target.pe == pe && it.target.n_pes == n_pes) ||
               reason.fail("this process is PE %d of %d already: right would be the id, my_pe and n_pes of that job",
                           job.pe, job.n_pes);
    if (n_pes < 1 || n_pes > kMaxPes)
        return reason.fail("n_pes %d is out of range: right would be 1 to %d", n_pes, kMaxPes);
    if (pe < 0 || pe >= n_pes)
        return reason.fail("my_pe %d is out of range: right would be 0 to n_pes - 1, %d", pe, n_pes - 1);
    if (!read_id(id, &place, reason))
        return false;
    is_asked = true;
    it.id = id;
    it.target = {};
    it.target.place = place;
    it.target.pe = pe;
    it.target.n_pes = n_pes;
    return true;
}

bool is_asked_to_join() {
    return is_asked;
}

uint32_t server_threads() {
    return Server::count();
}

void drop_request() {
    if (job.n_pes == 0)
        is_asked = false;
}

constexpr LauncherApi launcher = {"rendezvous", init, publish, fence, get, abort_job, finalize, watch, abandon};

}  // namespace heddle::bootstrap::rendezvous

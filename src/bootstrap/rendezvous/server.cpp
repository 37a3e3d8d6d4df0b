#include "bootstrap/rendezvous/server.h"

#include "base/error.h"
#include "bootstrap/job_page.h"
#include "bootstrap/rendezvous/unique_id.h"
#include "os/clock.h"
#include "os/locked.h"
#include "os/own_thread.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace heddle::bootstrap::rendezvous {

namespace {

constexpr uint64_t kStrangerNs = 5 * kSecondNs;  // until a process that has connected must have joined
constexpr uint64_t kRefusedNs = kSecondNs;       // until a process that is refused must have read why
constexpr uint64_t kFlushNs = kSecondNs;         // for the last messages of the server
constexpr size_t kMaxStrangers = 512;            // that are connected and have not joined
constexpr size_t kMaxEntriesOfPe = 64;
constexpr int kMaxTold = 8;
constexpr int kLookMs = 100;  // between looks at the deadlines

pthread_mutex_t servers_lock = PTHREAD_MUTEX_INITIALIZER;
std::vector<Server*>& servers() {
    static auto* const all = new std::vector<Server*>;  // not destroyed: a server may outlast the destructors
    return *all;
}

}  // namespace

Server* Server::start(os::OwnDescriptor* listener, uint64_t token, int n_pes, uint64_t timeout_s,
                      const Reason& reason) {
    auto* const server = new Server(token, n_pes, timeout_s);  // stays as long as the process
    server->listener_.take(*listener);
    server->stop_.take([] { return eventfd(0, EFD_CLOEXEC); });
    fcntl(server->listener_, F_SETFL, O_NONBLOCK);
    const int status = server->stop_ < 0 ? errno : os::start_own_thread(&server->thread_, serve, server);
    if (status != 0) {
        delete server;
        reason.fail("no thread for the rendezvous: %s", strerror(status));
        return nullptr;
    }
    const os::Locked lock(servers_lock);
    servers().push_back(server);
    return server;
}

Server* Server::find(uint64_t token) {
    const os::Locked lock(servers_lock);
    for (Server* const server : servers()) {
        const bool is_over = server->is_over_.load(std::memory_order_relaxed);  // relaxed: it may end at any time
        if (server->token_ == token && server->process_ == getpid() && !is_over)
            return server;
    }
    return nullptr;
}

uint32_t Server::count() {
    const os::Locked lock(servers_lock);
    uint32_t running = 0;
    for (Server* const server : servers())  // relaxed: a number; pairs with Server::run
        running += server->process_ == getpid() && !server->is_over_.load(std::memory_order_relaxed);
    return running;
}

void Server::stop() {
    {
        const os::Locked lock(servers_lock);
        if (std::exchange(is_joined_, true))
            return;
    }
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t told = write(stop_, &one, sizeof one);
    pthread_join(thread_, nullptr);
    stop_.close();
}

void* Server::serve(void* server) {
    static_cast<Server*>(server)->run();
    return nullptr;
}

template <class Visit>
void Server::for_each_pe(Visit visit) {
    for (const auto& peer : peers_)
        if (peer->fd >= 0 && peer->has_joined)
            visit(*peer);
}

void Server::run() {
    while (phase_ != Phase::kOver) poll_once();
    flush_and_part();
    peers_.clear();
    listener_.close();
    entries_.clear();
    is_over_.store(true, std::memory_order_relaxed);  // relaxed: pairs with Server::count, which only counts
    const os::Locked lock(servers_lock);
    if (std::exchange(is_joined_, true))
        return;
    pthread_detach(thread_);
    stop_.close();
}

void Server::poll_once() {
    const size_t strangers = peers_.size() - static_cast<size_t>(joined_);
    const bool listens = listener_ >= 0 && strangers < kMaxStrangers && os::now_ns() >= listens_again_ns_;
    polled_ = {{stop_, POLLIN, 0}, {listens ? listener_ : -1, POLLIN, 0}};
    for (const auto& peer : peers_)
        polled_.push_back({peer->fd, static_cast<short>(POLLIN | (peer->out.empty() ? 0 : POLLOUT)), 0});
    const bool has_deadline = due_ns_ != 0 || strangers > 0 || (listener_ >= 0 && !listens);
    if (poll(polled_.data(), polled_.size(), has_deadline ? kLookMs : -1) < 0 && errno != EINTR)
        return end_job(1, std::string("poll: ") + strerror(errno), nullptr);
    if (polled_[0].revents != 0) {
        for_each_pe([](Peer& peer) { peer.out.add(Kind::kParted); });
        phase_ = Phase::kOver;
        return;
    }
    for (size_t i = 2; i < polled_.size() && phase_ != Phase::kOver; ++i) {
        Peer& peer = *peers_[i - 2];
        if (peer.fd >= 0 && (polled_[i].revents & (POLLIN | POLLHUP | POLLERR)))
            read_from(peer);
        if (peer.fd >= 0 && !peer.out.empty())
            write_to(peer);
    }
    if (phase_ == Phase::kOver)
        return;
    if (polled_[1].revents != 0 && listener_ >= 0)
        accept_one();
    look_at_deadlines();
    peers_.erase(std::remove_if(peers_.begin(), peers_.end(), [](const auto& peer) { return peer->fd < 0; }),
                 peers_.end());
}

void Server::accept_one() {
    Endpoint from;
    from.bytes = sizeof from.address;
    auto it = std::make_unique<Peer>();
    it->fd.take([&] {
        return accept4(listener_, reinterpret_cast<sockaddr*>(&from.address), &from.bytes,
                       SOCK_CLOEXEC | SOCK_NONBLOCK);
    });
    if (it->fd < 0) {
        if (errno != EMFILE && errno != ENFILE)
            return;
        if (listens_again_ns_ == 0)
            base::report("launcher", "PE %d cannot join: %s; right would be a higher limit (ulimit -n)", joined_,
                         strerror(errno));
        listens_again_ns_ = os::now_ns() + kSecondNs;
        return;
    }
    watch_connection(it->fd);
    it->address = from.text();
    it->end_by_ns = os::now_ns() + kStrangerNs;
    peers_.push_back(std::move(it));
}

void Server::read_from(Peer& peer) {
    char bytes[16384];
    const ssize_t got = recv(peer.fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0)
        return lose(peer);
    if (peer.is_refused)
        return;
    peer.inbox.append(bytes, static_cast<size_t>(got));
    take_messages(peer);
}

void Server::write_to(Peer& peer) {
    if (!peer.out.send_to(peer.fd))
        return lose(peer);
    if (peer.out.empty() && peer.is_refused)
        shutdown(peer.fd, SHUT_WR);
}

void Server::take_messages(Peer& peer) {
    while (peer.fd >= 0 && !peer.is_refused && phase_ != Phase::kOver) {
        Message message;
        const Inbox::State state = peer.inbox.next(peer.has_joined ? kMaxRequestBytes : sizeof(JoinRequest), &message);
        if (state == Inbox::State::kIncomplete)
            return;
        JoinRequest who;
        const bool is_whole = state == Inbox::State::kWhole;
        if (!peer.has_joined) {
            if (!is_whole || message.kind != Kind::kJoin || !read_value(message.payload, &who))
                return refuse(peer, "it has sent bytes that are no request of a PE of this version of Heddle");
            join(peer, who);
        } else if (!is_whole || phase_ == Phase::kJoining || !handle(peer, message)) {
            return end_job(1,
                           "PE " + std::to_string(peer.who.pe) + " (" + describe(peer.who) +
                               ") has sent bytes that are no message of a rendezvous",
                           nullptr);
        }
    }
}

// Why it must not join; empty: it may.
std::string Server::objection_to(const JoinRequest& who) const {
    const std::string name = "PE " + std::to_string(who.pe), range = " of " + std::to_string(who.n_pes);
    if (who.token != token_)
        return name + range + " is of another job (its token differs)";
    if (who.n_pes < 1 || who.n_pes > kMaxPes || who.pe < 0 || who.pe >= who.n_pes)
        return name + range + " cannot be: right would be 1 to " + std::to_string(kMaxPes) + " PEs, from PE 0 on";
    if (n_pes_ != 0 && who.n_pes != n_pes_)
        return name + range + " is none of this job, which has " + std::to_string(n_pes_) + " PEs";
    for (const auto& peer : peers_)
        if (peer->fd >= 0 && peer->has_joined && peer->who.pe == who.pe &&
            (who.pe == 0 || peer->who.n_pes == who.n_pes))
            return name + range + " is here already: " + describe(peer->who);
    return "";
}

void Server::join(Peer& peer, const JoinRequest& who) {
    if (const std::string why = objection_to(who); !why.empty())
        return refuse(peer, why + "; it is " + describe(who));
    peer.has_joined = true;
    peer.who = who;
    ++joined_;
    peer.out.add(Kind::kWaiting);
    if (due_ns_ == 0)
        due_ns_ = os::now_ns() + timeout_s_ * kSecondNs;
    if (n_pes_ == 0 && who.pe == 0) {
        n_pes_ = who.n_pes;
        for_each_pe([&](Peer& other) {
            if (other.who.n_pes != n_pes_)
                refuse(other, "PE " + std::to_string(other.who.pe) + " of " + std::to_string(other.who.n_pes) +
                                  " is none of this job, which has " + std::to_string(n_pes_) + " PEs; it is " +
                                  describe(other.who));
        });
    }
    if (has_all())
        start_job();
}

// All have joined, and are still there: a PE may have given up, and asked again, before its connection was accepted.
bool Server::has_all() {
    if (joined_ != n_pes_)
        return false;
    for_each_pe([this](Peer& peer) {
        char byte;
        if (recv(peer.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
            lose(peer);
    });
    return joined_ == n_pes_;
}

void Server::forget_join(Peer& peer) {
    peer.has_joined = false;
    if (peer.who.pe == 0)
        n_pes_ = given_n_pes_;
    if (--joined_ == 0)
        due_ns_ = 0;
}

void Server::refuse(Peer& peer, const std::string& why) {
    if (++told_ <= kMaxTold)
        base::report("launcher", "refused a connection from %s: %s%s", peer.address.c_str(), why.c_str(),
                     told_ == kMaxTold ? " (no more of this is reported)" : "");
    if (peer.has_joined)
        forget_join(peer);
    peer.is_refused = true;
    peer.end_by_ns = os::now_ns() + kRefusedNs;
    peer.out.add(Kind::kRefused, std::string_view(why).substr(0, kMaxTextBytes));
}

void Server::start_job() {
    listener_.close();
    phase_ = Phase::kStarted;
    due_ns_ = 0;
    std::vector<uint64_t> hosts(static_cast<size_t>(n_pes_));
    for_each_pe([&](Peer& peer) { hosts[static_cast<size_t>(peer.who.pe)] = peer.who.host; });
    const std::string_view payload(reinterpret_cast<const char*>(hosts.data()), hosts.size() * sizeof hosts[0]);
    const SharedMessage message = share_message(Kind::kStart, payload);
    for_each_pe([&](Peer& peer) { peer.out.add(message); });
}

bool Server::handle(Peer& peer, const Message& message) {
    int32_t status = 0;
    switch (message.kind) {
        case Kind::kPublish:
            return publish(peer, message.payload);
        case Kind::kFence:
            return enter_fence(peer, message.payload);
        case Kind::kGet:
            return look_up(peer, message.payload);
        case Kind::kAbort: {
            if (!read_value(message.payload.substr(0, sizeof status), &status))
                return false;
            const std::string why = printable(message.payload.substr(sizeof status));
            end_job(status,
                    "PE " + std::to_string(peer.who.pe) + " (" + describe(peer.who) + ") has ended the job" +
                        (why.empty() ? " with status " + std::to_string(status) : ": " + why),
                    &peer);
            return true;
        }
        case Kind::kLeave:
            left_ += !peer.has_left;
            peer.has_left = true;
            return true;
        default:
            return false;
    }
}

bool Server::publish(Peer& peer, std::string_view payload) {
    Entry entry;
    if (!take_entry(&payload, &entry) || !payload.empty() || entry.pe != peer.who.pe)
        return false;
    const Key key = {entry.pe, std::string(entry.key)};
    size_t count = 0;
    for (auto it = entries_.lower_bound({entry.pe, ""}); it != entries_.end() && it->first.first == entry.pe; ++it)
        ++count;
    if (count >= kMaxEntriesOfPe)
        return false;
    entries_[key] = entry.value;
    uncollected_.push_back(key);
    for_each_pe([&](Peer& other) {
        if (other.wanted_pe != entry.pe || other.wanted != entry.key)
            return;
        std::string answer;
        append_entry(&answer, entry);
        other.out.add(Kind::kValue, answer);
        other.wanted_pe = -1;
        other.wanted.clear();
    });
    return true;
}

bool Server::look_up(Peer& peer, std::string_view payload) {
    Entry entry;
    if (!take_entry(&payload, &entry) || !payload.empty() || entry.pe < 0 || entry.pe >= n_pes_)
        return false;
    const auto found = entries_.find({entry.pe, std::string(entry.key)});
    if (found == entries_.end()) {
        peer.wanted = entry.key;
        peer.wanted_pe = entry.pe;
        return true;
    }
    entry.value = found->second;
    std::string answer;
    append_entry(&answer, entry);
    peer.out.add(Kind::kValue, answer);
    return true;
}

bool Server::enter_fence(Peer& peer, std::string_view payload) {
    uint32_t collects = 0;
    if (peer.is_in_fence || !read_value(payload, &collects))
        return false;
    peer.is_in_fence = true;
    fence_collects_ = fence_collects_ || collects != 0;
    if (collects != 0 && due_ns_ == 0)
        due_ns_ = os::now_ns() + timeout_s_ * kSecondNs;
    if (++in_fence_ == n_pes_)
        end_fence();
    return true;
}

void Server::end_fence() {
    std::string payload;
    if (fence_collects_) {
        for (const Key& key : uncollected_) append_entry(&payload, {key.first, key.second, entries_[key]});
        uncollected_.clear();
    }
    in_fence_ = 0;
    fence_collects_ = false;
    due_ns_ = 0;
    const SharedMessage message = share_message(Kind::kFenceDone, payload);
    for_each_pe([&](Peer& peer) {
        peer.is_in_fence = false;
        peer.out.add(message);
    });
    for_each_pe([&](Peer& peer) {  // the PE of this process may end it behind the last fence: the others are told first
        if (phase_ == Phase::kStarted && peer.who.process != process_word())
            write_to(peer);
    });
}

// The connection has ended.
void Server::lose(Peer& peer) {
    peer.fd.close();
    if (!peer.has_joined)
        return;
    if (phase_ != Phase::kStarted)
        return forget_join(peer);  // its place is free for another process
    --joined_;
    if (!peer.has_left)
        end_job(1,
                "PE " + std::to_string(peer.who.pe) + " (" + describe(peer.who) + ") has ended without shmem_finalize",
                nullptr);
    else if (left_ == n_pes_ && joined_ == 0)
        phase_ = Phase::kOver;
}

void Server::look_at_deadlines() {
    const uint64_t now = os::now_ns();
    for (const auto& peer : peers_) {
        if (peer->fd < 0 || peer->has_joined || now < peer->end_by_ns)
            continue;
        if (peer->is_refused)
            lose(*peer);
        else
            refuse(*peer, "it has not said within " + std::to_string(kStrangerNs / kSecondNs) + " s who it is");
    }
    if (due_ns_ != 0 && now >= due_ns_)
        end_job(1, phase_ == Phase::kJoining ? describe_missing() : describe_late(), nullptr);
}

std::string Server::describe_missing() const {
    int n_pes = n_pes_;
    std::vector<int> here;
    for (const auto& peer : peers_) {
        if (peer->fd < 0 || !peer->has_joined)
            continue;
        here.push_back(peer->who.pe);
        n_pes = n_pes_ != 0 ? n_pes_ : std::max(n_pes, peer->who.n_pes);
    }
    std::sort(here.begin(), here.end());
    std::vector<int> missing;
    for (int pe = 0; pe < n_pes; ++pe)
        if (!std::binary_search(here.begin(), here.end(), pe))
            missing.push_back(pe);
    return name_pes(missing) + " of " + std::to_string(n_pes) + (missing.size() == 1 ? " has" : " have") +
           " not come within " + std::to_string(timeout_s_) + " s (HEDDLE_LAUNCH_TIMEOUT_S); here are " +
           name_pes(here);
}

std::string Server::describe_late() const {
    std::string text;
    for (const auto& peer : peers_)
        if (peer->fd >= 0 && peer->has_joined && !peer->is_in_fence && text.size() < kMaxTextBytes / 2)
            text += (text.empty() ? "PE " : ", PE ") + std::to_string(peer->who.pe) + " (" + describe(peer->who) + ")";
    return text + " does not go on in its init, for " + std::to_string(timeout_s_) + " s (HEDDLE_LAUNCH_TIMEOUT_S)";
}

// PEs that live in the server's process, or have asked for the end, are told last: the server ends with its process.
void Server::end_job(int status, const std::string& text, const Peer* cause) {
    if (phase_ == Phase::kOver)
        return;
    phase_ = Phase::kOver;
    std::string payload(bytes_of(static_cast<int32_t>(status)));
    payload += text.substr(0, kMaxTextBytes);
    const auto comes_last = [&](const Peer& peer) { return &peer == cause || peer.who.process == process_word(); };
    for (const bool last : {false, true}) {
        for_each_pe([&](Peer& peer) {
            if (comes_last(peer) == last && !peer.has_left)
                peer.out.add(Kind::kEnd, payload);
        });
        if (!last)
            flush_and_part();
    }
}

// Sends what is to be sent, and waits until these PEs have closed their connections: one that was closed here with
// bytes unread would lose the last message. Up to kFlushNs.
void Server::flush_and_part() {
    const uint64_t end = os::now_ns() + kFlushNs;
    std::vector<Peer*> waiting;
    for (const auto& peer : peers_)
        if (peer->fd >= 0 && !peer->out.empty())
            waiting.push_back(peer.get());
    while (!waiting.empty() && os::now_ns() < end) {
        std::vector<pollfd> its;
        its.reserve(waiting.size());
        for (Peer* const peer : waiting)
            its.push_back({peer->fd, static_cast<short>(POLLIN | (peer->out.empty() ? 0 : POLLOUT)), 0});
        poll(its.data(), its.size(), kLookMs);
        for (size_t i = 0; i < its.size(); ++i) {
            char unread[4096];
            Peer& peer = *waiting[i];
            const ssize_t got = its[i].revents & ~POLLOUT ? recv(peer.fd, unread, sizeof unread, MSG_DONTWAIT) : 1;
            const bool has_ended = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
            const bool had_some = !peer.out.empty();
            if (peer.out.send_to(peer.fd) && had_some && peer.out.empty())
                shutdown(peer.fd, SHUT_WR);
            if (has_ended)
                waiting[i] = nullptr;
        }
        waiting.erase(std::remove(waiting.begin(), waiting.end(), nullptr), waiting.end());
    }
}

}  // namespace heddle::bootstrap::rendezvous

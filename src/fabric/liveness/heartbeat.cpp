#include "fabric/liveness/heartbeat.h"

#include "os/clock.h"

#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstring>

namespace heddle::fabric {

Heartbeat::Heartbeat(Channel& channel, uint64_t heartbeat_timeout_ns)
    : channel_(channel), timeout_ns_(heartbeat_timeout_ns) {
    gethostname(own_name_, sizeof own_name_ - 1);
}

void Heartbeat::tick(uint64_t now_ns) {
    const bool was_away = now_ns - now_ns_ > timeout_ns_ / 2;
    now_ns_ = now_ns;
    const std::atomic<uint32_t>* const lost = channel_.config().lost_rails;
    const bool has_news = lost && lost->load(std::memory_order_relaxed) != announced_rails_;
    if (sent_ns_ == 0 || now_ns - sent_ns_ >= kPeriodNs || has_news) {
        sent_ns_ = now_ns;
        notify_neighbour({});
    }
    channel_.poll();  // comes to on_heartbeat
    if (since_ns_ == 0)
        since_ns_ = now_ns + kConnectNs;
    if (was_away)
        since_ns_ = std::max(since_ns_, now_ns);
}

bool Heartbeat::is_silent() const {
    return !has_left_ && timeout_ns_ != 0 && silence_ns() >= std::max(timeout_ns_, allowed_ns_);
}

void Heartbeat::describe_silence(char (&reason)[kMaxReason]) const {
    if (is_known_)
        snprintf(reason, sizeof reason, "its host %s has been silent for %.1f s", name_,
                 static_cast<double>(silence_ns()) * 1e-9);
    else
        snprintf(reason, sizeof reason, "nothing has been heard of it since shmem_init, for %.1f s",
                 static_cast<double>(silence_ns() + kConnectNs) * 1e-9);
}

void Heartbeat::lose_neighbour() {
    char reason[kMaxReason];
    describe_silence(reason);
    lose(channel_.config().ring.behind, reason);
}

void Heartbeat::leave() {
    notify_neighbour({.has_left = 1});
    channel_.poll();
}

void Heartbeat::on_heartbeat(const Header& header, const char* body, size_t bytes) {
    const auto heartbeat = header.as<HeartbeatHeader>();
    const ChannelConfig& config = channel_.config();
    if (heartbeat.lost_pe < -1 || heartbeat.lost_pe >= config.n_pes || heartbeat.has_left > 1 ||
        heartbeat.lost_rails >> config.n_rails != 0 || bytes >= kMaxName)
        channel_.protocol_error(header, "a malformed heartbeat");
    if (heartbeat.lost_pe >= 0) {
        char reason[kMaxReason];
        snprintf(reason, sizeof reason, "as PE %d has noticed", header.pe);
        lose(heartbeat.lost_pe, reason);
    }
    learn(header.pe, heartbeat.lost_rails);
    if (header.pe != channel_.config().ring.behind)
        return;
    since_ns_ = now_ns_;
    has_left_ = heartbeat.has_left;
    is_known_ = !has_left_;
    allowed_ns_ = heartbeat.timeout_ms * os::kMillisecondNs;
    memcpy(name_, body, bytes);
    name_[bytes] = 0;
}

void Heartbeat::learn(int pe, uint32_t lost_rails) {
    const ChannelConfig& config = channel_.config();
    if (!config.lost_rails)
        return;
    for (int rail = 0; rail < config.n_rails; ++rail)
        if ((lost_rails & ~config.lost_rails->load(std::memory_order_relaxed)) >> rail & 1)
            config.job.rail_lost(rail, pe, Loss::kSilent, "as it has noticed");
}

// news: a PE that is lost, or that this PE leaves; the other fields are filled in.
void Heartbeat::notify_neighbour(HeartbeatHeader news) {
    const std::atomic<uint32_t>* const lost = channel_.config().lost_rails;
    announced_rails_ = lost ? lost->load(std::memory_order_relaxed) : 0;
    news.timeout_ms = static_cast<uint32_t>(timeout_ns_ / os::kMillisecondNs);
    news.lost_rails = announced_rails_;
    channel_.send_single(channel_.config().ring.before, news, own_name_, strlen(own_name_));
}

// Passed on first: the rest of the ring listens to others.
void Heartbeat::lose(int pe, const char* reason) {
    if (losing_)
        return;
    losing_ = true;
    constexpr int kRounds = 100;
    notify_neighbour({.lost_pe = pe});
    for (int round = 0; round < kRounds; ++round) {  // until it has left
        channel_.poll();
        os::sleep_ns(os::kMillisecondNs);
    }
    channel_.config().job.lost(pe, Loss::kSilent, reason);
}

}  // namespace heddle::fabric

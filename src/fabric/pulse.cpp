#include "fabric/pulse.h"

#include "os/clock.h"

#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstring>

namespace heddle::fabric {

namespace {
constexpr uint64_t kMillisecondNs = 1000000;
}

Pulse::Pulse(Wire& wire, uint64_t silence_ns) : wire_(wire), silence_ns_(silence_ns) {
    gethostname(own_name_, sizeof own_name_ - 1);
}

void Pulse::beat(uint64_t now_ns) {
    const bool was_away = now_ns - now_ns_ > silence_ns_ / 2;
    now_ns_ = now_ns;
    const std::atomic<uint32_t>* const lost = wire_.surroundings().lost_rails;
    const bool has_news = lost && lost->load(std::memory_order_relaxed) != told_rails_;
    if (sent_ns_ == 0 || now_ns - sent_ns_ >= kPeriodNs || has_news) {
        sent_ns_ = now_ns;
        tell(0);
    }
    wire_.poll();  // comes to heard
    if (was_away && heard_ns_ != 0)
        heard_ns_ = now_ns;
}

bool Pulse::is_silent() const {
    return heard_ns_ != 0 && silence_ns_ != 0 && now_ns_ - heard_ns_ >= std::max(silence_ns_, allowed_ns_);
}

void Pulse::say_silence(char (&reason)[kMostReason]) const {
    snprintf(reason, sizeof reason, "its host %s has been silent for %.1f s", name_,
             static_cast<double>(now_ns_ - heard_ns_) * 1e-9);
}

void Pulse::lose_neighbour() {
    char reason[kMostReason];
    say_silence(reason);
    lose(wire_.surroundings().ring.behind, has_left_ ? Loss::kLeft : Loss::kSilent, reason);
}

void Pulse::leave() {
    if (!is_leaving_)
        tell(kHasLeft | (static_cast<uint64_t>(wire_.surroundings().pe) + 1));
    is_leaving_ = true;
    wire_.poll();
}

void Pulse::heard(const Header& header, const char* body, size_t bytes) {
    const uint64_t position = header.position & ~kHasLeft;
    const bool has_left = position != header.position;
    if (position > static_cast<uint64_t>(wire_.surroundings().n_pes) || bytes >= kMostName)
        wire_.broken(header.pe, "a pulse that is none");
    const bool is_own = has_left && position == static_cast<uint64_t>(header.pe) + 1;
    if (position != 0 && !is_own && !is_leaving_) {
        char reason[128];
        snprintf(reason, sizeof reason, "as PE %d has noticed", header.pe);
        lose(static_cast<int>(position - 1), has_left ? Loss::kLeft : Loss::kSilent, reason);
    }
    learn(header);
    if (header.pe != wire_.surroundings().ring.behind)
        return;
    has_left_ |= is_own;
    heard_ns_ = now_ns_;
    allowed_ns_ = header.count * kMillisecondNs;
    memcpy(name_, body, bytes);
    name_[bytes] = 0;
}

void Pulse::learn(const Header& header) {
    const Surroundings& surroundings = wire_.surroundings();
    if (header.complete >> surroundings.n_rails != 0)
        wire_.broken(header.pe, "a pulse that is none");
    if (!surroundings.lost_rails)
        return;
    for (int rail = 0; rail < surroundings.n_rails; ++rail)
        if ((header.complete & ~surroundings.lost_rails->load(std::memory_order_relaxed)) >> rail & 1)
            surroundings.rail_lost(rail, header.pe, Loss::kSilent, "as it has noticed");
}

// lost_pe: as the position of a kPulse.
void Pulse::tell(uint64_t lost_pe) {
    const std::atomic<uint32_t>* const lost = wire_.surroundings().lost_rails;
    told_rails_ = lost ? lost->load(std::memory_order_relaxed) : 0;
    wire_.say(wire_.surroundings().ring.before,
              {.position = lost_pe,
               .count = static_cast<uint32_t>(silence_ns_ / kMillisecondNs),
               .kind = MessageKind::kPulse,
               .complete = told_rails_},
              own_name_, strlen(own_name_));
}

// Passed on first: the rest of the ring listens to others.
void Pulse::lose(int pe, Loss loss, const char* reason) {
    if (losing_)
        return;
    losing_ = true;
    constexpr int kRounds = 100;
    tell((loss == Loss::kLeft ? kHasLeft : 0) | (static_cast<uint64_t>(pe) + 1));
    for (int round = 0; round < kRounds; ++round) {  // until it has left
        wire_.poll();
        os::sleep_ns(kMillisecondNs);
    }
    wire_.surroundings().lost(pe, loss, reason);
}

}  // namespace heddle::fabric

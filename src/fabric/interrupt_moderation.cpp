#include "fabric/interrupt_moderation.h"

#include <algorithm>

namespace heddle::fabric {

// Naps that make bodies slower do not make the rate lower, which would make the naps longer. Only what comes without
// naps lowers it, and slowly: a body may have waited for its sender.
void InterruptModeration::measure(uint64_t bytes, uint64_t ns) {
    constexpr double kWeight = 1.0 / 4, kMuchSlower = 0.8;
    const double measured = static_cast<double>(bytes) / static_cast<double>(std::max<uint64_t>(ns, 1));
    const bool is_slow = napped_ && measured < kMuchSlower * bytes_per_ns_;
    measures_ = is_slow && budget_ == kMinBytes;
    if (is_slow) {
        budget_ = std::max(budget_ / 2, kMinBytes);
        return;
    }
    budget_ = std::min(budget_ + budget_ / 8, kMaxBytes);
    const double weight = napped_ ? 0 : kWeight;
    bytes_per_ns_ = std::max(measured, (1 - weight) * bytes_per_ns_ + weight * measured);
}

uint64_t InterruptModeration::nap_ns(uint64_t now_ns, uint64_t asked, uint64_t arrived, bool may_nap) {
    if (comes_ && arrived != arrived_)
        measure(arrived - arrived_, now_ns - since_ns_);
    if (!comes_ || arrived != arrived_) {
        since_ns_ = now_ns;
        arrived_ = arrived;
        napped_ = false;
    }
    comes_ = arrived < asked;
    if (!comes_ || measures_ || !may_nap)
        return 0;
    const double left_ns =
        static_cast<double>(asked - arrived) / bytes_per_ns_ - static_cast<double>(now_ns - since_ns_);
    const double nap_ns =
        std::min({static_cast<double>(kMaxNapNs), left_ns / 2, static_cast<double>(budget_) / bytes_per_ns_});
    if (nap_ns < kMinNapNs || nap_ns * bytes_per_ns_ < kMinBytes)
        return 0;
    napped_ = true;
    return static_cast<uint64_t>(nap_ns);
}

}  // namespace heddle::fabric

// How the threads of a PE share the lists of an exchange. A list is cut into as many messages as there are threads, but
// into none of less than kLeastBytes: short ones would be more messages for nothing. Both ends of a list cut it alike;
// which thread has which part is each end's own affair.
#pragma once

#include <algorithm>
#include <vector>

#include "apps/common/range.hpp"

namespace shmem_mt {

struct HaloPart {
    size_t list;
    long number;     // among the parts of the list
    Range elements;  // of the list
};

class HaloParts {
  public:
    static constexpr long kLeastBytes = 4096;

    // `lengths` of the lists, in doubles. The longest part goes to the thread with the least to do, then the next one.
    HaloParts(const std::vector<long>& lengths, int threads) : by_thread_(static_cast<size_t>(threads)) {
        std::vector<HaloPart> parts;
        for (size_t list = 0; list < lengths.size(); ++list) {
            const long bytes = static_cast<long>(sizeof(double)) * lengths[list];
            const int count = static_cast<int>(std::clamp(bytes / kLeastBytes, 1L, static_cast<long>(threads)));
            for (int number = 0; number < count && bytes > 0; ++number)
                parts.push_back({list, number, Range{0, lengths[list]}.share(number, count)});
        }
        messages_ = static_cast<long>(parts.size());
        std::stable_sort(parts.begin(), parts.end(), [](const HaloPart& a, const HaloPart& b) {
            return a.elements.length() > b.elements.length();
        });
        std::vector<long> loads(by_thread_.size(), 0L);
        for (const HaloPart& part : parts) {
            const auto least = std::min_element(loads.begin(), loads.end());
            *least += part.elements.length() + kMessage;
            by_thread_[static_cast<size_t>(least - loads.begin())].push_back(part);
        }
    }

    long messages() const { return messages_; }
    const std::vector<HaloPart>& of(int thread) const { return by_thread_[static_cast<size_t>(thread)]; }

  private:
    static constexpr long kMessage = 128;  // a message costs about as much as packing so many elements

    std::vector<std::vector<HaloPart>> by_thread_;
    long messages_ = 0;
};

}  // namespace shmem_mt

// What a timed pass proves of the last of its collectives: source and dest are marked ahead with values that no other pass
// has, each thread that called takes the marked words of dest as soon as its call has returned, and they are compared
// behind the clock.
#pragma once

#include <vector>

#include "programs/common/collective_data.hpp"
#include "programs/common/session.hpp"

namespace shmem_mt {

class TimedCheck {
  public:
    // Marks the buffers, where this PE is a member and a check is wanted.
    TimedCheck(const Session& session, const Call& call, long token, int callers)
        : call_(call),
          token_(token),
          fault_(session.options().fault),
          checks_(session.options().validate && call.team.member()),
          seen_(static_cast<size_t>(callers), std::vector<uint64_t>(checks_ ? count_ends(call) : 0)) {
        if (checks_)
            mark_ends(call, token);
    }

    void look(int thread) {
        if (checks_)
            read_ends(call_, token_, seen_[static_cast<size_t>(thread)].data());
    }

    bool is_right(bool fills_root) const {
        Checker checker(fault_);
        for (const auto& seen : seen_) {
            if (checks_)
                check_ends(checker, call_, token_, fills_root, seen.data());
        }
        return checker.ok();
    }

  private:
    const Call call_;
    const long token_;
    const Fault fault_;
    const bool checks_;
    std::vector<std::vector<uint64_t>> seen_;  // by thread
};

}  // namespace shmem_mt

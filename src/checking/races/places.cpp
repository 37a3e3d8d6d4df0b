#include "checking/races/places.h"

#include <cstring>

namespace heddle::checking::races {

base::CallText Places::text_of(const base::Call& call) {
    base::CallText text = base::describe(call);
    if (call.function != kLoad && call.function != kStore)
        return text;
    constexpr const char* kCalled = "called ";
    if (char* const called = strstr(text.data(), kCalled))
        memmove(called, called + strlen(kCalled), strlen(called) - strlen(kCalled) + 1);
    return text;
}

// The text is written before its number is in any mark, whose lock orders both.
void Places::add(const base::Call& call, const base::CallText& text) {
    const auto [at, is_new] = numbers_.try_emplace({call.function, call.caller}, 0);
    if (!is_new || numbers_.size() >= kPlaces)
        return;
    at->second = static_cast<uint32_t>(numbers_.size());
    entry(pe_, at->second) = text;
}

uint32_t Places::number(const base::Call& call) {
    Known& last = known_[reinterpret_cast<uintptr_t>(call.caller) / 4 % kKnown];
    if (last.number != 0 && last.call.function == call.function && last.call.caller == call.caller)
        return last.number;
    auto at = numbers_.find({call.function, call.caller});
    if (at == numbers_.end()) {
        if (!describes_)
            return 0;
        add(call, text_of(call));
        at = numbers_.find({call.function, call.caller});
    }
    last = {call, at->second};
    return at->second;
}

base::CallText Places::text(int pe, uint32_t number) const {
    base::CallText text = {};
    if (number == 0 || number >= kPlaces) {
        strncpy(text.data(), "an unknown call", text.size() - 1);
        return text;
    }
    text = entry(pe, number);
    text.back() = '\0';
    return text;
}

}  // namespace heddle::checking::races

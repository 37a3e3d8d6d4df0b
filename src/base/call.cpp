#include "base/call.h"

#include "base/place.h"

#include <cstdint>
#include <cstdio>

namespace heddle::base {

CallText describe(const Call& call) {
    CallText text = {};
    const PlaceText place = describe(Place{reinterpret_cast<uintptr_t>(call.caller), true});
    if (place[0] != '\0')
        snprintf(text.data(), text.size(), "%.60s (called at %.48s)", call.function, place.data());
    else
        snprintf(text.data(), text.size(), "%s", call.function);
    return text;
}

}  // namespace heddle::base

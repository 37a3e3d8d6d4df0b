#include "base/call.h"

#include <dlfcn.h>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace heddle::base {

CallText describe(const Call& call) {
    CallText text = {};
    Dl_info info = {};
    if (dladdr(call.caller, &info) && info.dli_fname) {
        const char* slash = strrchr(info.dli_fname, '/');
        snprintf(text.data(), text.size(), "%s (called at %s+%#zx)", call.function, slash ? slash + 1 : info.dli_fname,
                 static_cast<size_t>(static_cast<const char*>(call.caller) - static_cast<char*>(info.dli_fbase)));
    } else {
        snprintf(text.data(), text.size(), "%s", call.function);
    }
    return text;
}

}  // namespace heddle::base

#include "os/plugin.h"

#include <dlfcn.h>
#include <climits>
#include <cstdio>
#include <cstring>

namespace heddle::os {

void* load_plugin(const char* file) {
    Dl_info self;
    char path[PATH_MAX];
    const bool known =
        !strchr(file, '/') && dladdr(reinterpret_cast<void*>(load_plugin), &self) != 0 && strchr(self.dli_fname, '/');
    const int folder = known ? static_cast<int>(strrchr(self.dli_fname, '/') + 1 - self.dli_fname) : 0;
    snprintf(path, sizeof path, "%.*s%s", folder, known ? self.dli_fname : "", file);
    return dlopen(path, RTLD_LAZY | RTLD_LOCAL);
}

}  // namespace heddle::os

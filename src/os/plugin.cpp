#include "os/plugin.h"

#include <dlfcn.h>
#include <unistd.h>
#include <climits>
#include <cstdio>
#include <cstring>

namespace heddle::os {

namespace {

// The path of this program without its last `up` components. False without /proc.
bool go_up(int up, char (&self)[PATH_MAX]) {
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    for (; up > 0; --up) {
        char* const slash = strrchr(self, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    return true;
}

}  // namespace

void* load_plugin(const char* file) {
    Dl_info self;
    char path[PATH_MAX];
    const bool known =
        !strchr(file, '/') && dladdr(reinterpret_cast<void*>(load_plugin), &self) != 0 && strchr(self.dli_fname, '/');
    const int folder = known ? static_cast<int>(strrchr(self.dli_fname, '/') + 1 - self.dli_fname) : 0;
    snprintf(path, sizeof path, "%.*s%s%s", folder, known ? self.dli_fname : "", known ? HEDDLE_PLUGIN_FOLDER : "",
             file);
    return dlopen(path, RTLD_LAZY | RTLD_LOCAL);
}

bool find_tool(const char* name, char* path, size_t bytes) {
    char bin[PATH_MAX];
    return go_up(1, bin) && snprintf(path, bytes, "%s/%s" HEDDLE_TOOL_SUFFIX, bin, name) < static_cast<int>(bytes);
}

bool find_in_library_folder(const char* file, char* path, size_t bytes) {
    char self[PATH_MAX];
    return go_up(2, self) &&
           snprintf(path, bytes, "%s/" HEDDLE_LIBRARY_FOLDER "/%s", self, file) < static_cast<int>(bytes);
}

bool find_plugin_of(const Part& part, char* path, size_t bytes) {
    char file[PATH_MAX];
    snprintf(file, sizeof file, HEDDLE_PLUGIN_FOLDER "%s", part.file);
    return find_in_library_folder(file, path, bytes);
}

bool is_built(const Part& part) {
    char path[PATH_MAX];
    return !find_plugin_of(part, path, sizeof path) || access(path, F_OK) == 0;
}

std::string describe_missing(const Part& part) {
    const bool is_packaged = HEDDLE_PACKAGED_PARTS && part.package[0] != '\0';
    return std::string(is_packaged ? "installed" : "built") + " without " + part.stands_on + ", which is for " +
           part.use + ": install " +
           (is_packaged ? std::string("the package ") + part.package
                        : part.needs + std::string(", and build Heddle again"));
}

}  // namespace heddle::os

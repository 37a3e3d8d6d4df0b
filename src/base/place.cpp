#include "base/place.h"

#include <link.h>
#include <unwind.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace heddle::base {

namespace {

constexpr int kMaxFrames = 256;  // more frames than these are taken for a damaged stack

thread_local const void* posted_at = nullptr;

bool holds(const dl_phdr_info& object, uintptr_t address) {
    for (int i = 0; i < object.dlpi_phnum; ++i) {
        const ElfW(Phdr)& segment = object.dlpi_phdr[i];
        if (segment.p_type == PT_LOAD && address - object.dlpi_addr - segment.p_vaddr < segment.p_memsz)
            return true;
    }
    return false;
}

// The first module for which is_it is true; false when there is none.
template <class IsIt>
bool find(Module* module, const IsIt& is_it) {
    struct Search {
        Module* module;
        const IsIt& is_it;
    } search = {module, is_it};
    return dl_iterate_phdr(
               [](dl_phdr_info* object, size_t, void* it) {
                   const Search& here = *static_cast<Search*>(it);
                   const Module one = {object->dlpi_name, object->dlpi_addr};
                   if (!here.is_it(*object, one))
                       return 0;
                   *here.module = one;
                   return 1;
               },
               &search) != 0;
}

// True for the library and its plugins; in a test that is linked with the library's parts, for the test itself.
bool is_own(const Module& module) {
    static const Module own = [] {
        Module here;
        find_module(reinterpret_cast<uintptr_t>(&find_caller), &here);
        return here;
    }();
    return module.bias == own.bias || std::string_view(module.name()).starts_with("libheddle");
}

// True for the C library: code that calls main, or that main calls to end.
bool is_libc(const Module& module) {
    const std::string_view name = module.name();
    return name.starts_with("libc.") || name.starts_with("libpthread.") || name.starts_with("ld-");
}

struct Walk {
    bool (*look)(Walk& walk, const Place& place, const Module& module);  // false: stop
    Place caller;
    uintptr_t interrupted = 0;
    bool is_behind = false;  // the interrupted frame has been passed
    int frames = 0;
};

_Unwind_Reason_Code look_at(_Unwind_Context* frame, void* it) {
    Walk& walk = *static_cast<Walk*>(it);
    int is_interrupted = 0;
    const auto address = static_cast<uintptr_t>(_Unwind_GetIPInfo(frame, &is_interrupted));
    const Place place = {address, is_interrupted == 0};
    Module module;
    if (address == 0 || ++walk.frames > kMaxFrames || !find_module(place.instruction(), &module))
        return _URC_END_OF_STACK;
    return walk.look(walk, place, module) ? _URC_NO_REASON : _URC_END_OF_STACK;
}

}  // namespace

const char* Module::name() const {
    if (is_executable())
        return program_invocation_short_name;
    const char* const slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool find_module(uintptr_t address, Module* module) {
    return find(module, [&](const dl_phdr_info& object, const Module&) { return holds(object, address); });
}

bool find_module_named(const char* name, size_t letters, Module* module) {
    return find(module, [&](const dl_phdr_info&, const Module& one) {
        return strlen(one.name()) == letters && strncmp(one.name(), name, letters) == 0;
    });
}

PlaceText describe(const Place& place) {
    PlaceText text = {};
    Module module;
    if (place.address != 0 && find_module(place.instruction(), &module))
        snprintf(text.data(), text.size(), "%.64s+%#zx", module.name(),
                 static_cast<size_t>(module.linked(place.instruction())));
    return text;
}

Place find_caller() {
    if (posted_at)
        return {reinterpret_cast<uintptr_t>(posted_at), true};
    Walk walk;
    walk.look = [](Walk& here, const Place& place, const Module& module) {
        if (is_own(module))
            here.caller = {};
        else if (here.caller.address == 0 && !is_libc(module))
            here.caller = place;
        return true;
    };
    _Unwind_Backtrace(look_at, &walk);
    return walk.caller;
}

Place find_caller_of(uintptr_t interrupted) {
    Walk walk;
    walk.interrupted = interrupted;
    walk.look = [](Walk& here, const Place& place, const Module& module) {
        if (here.is_behind && module.is_executable())
            here.caller = place;
        here.is_behind |= place.address == here.interrupted;
        return here.caller.address == 0;
    };
    _Unwind_Backtrace(look_at, &walk);
    return walk.caller;
}

const void* set_posted_at(const void* caller) {
    const void* const before = posted_at;
    posted_at = caller;
    return before;
}

}  // namespace heddle::base

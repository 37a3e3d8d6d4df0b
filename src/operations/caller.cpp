#include "operations/caller.h"

#include "operations/observer.h"
#include "operations/out_of_line.h"

#include <link.h>
#include <unwind.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

namespace heddle::operations {

namespace {

struct Code {
    uintptr_t begin = 0, end = 0;
    bool holds(uintptr_t address) const { return address - begin < end - begin; }
};

// The segments of the module that holds this function.
Code own_code() {
    Code code;
    dl_iterate_phdr(
        [](dl_phdr_info* object, size_t, void* it) {
            Code module = {UINTPTR_MAX, 0};
            for (int i = 0; i < object->dlpi_phnum; ++i) {
                const ElfW(Phdr)& segment = object->dlpi_phdr[i];
                const uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
                if (segment.p_type != PT_LOAD)
                    continue;
                module.begin = begin < module.begin ? begin : module.begin;
                module.end = begin + segment.p_memsz > module.end ? begin + segment.p_memsz : module.end;
            }
            if (!module.holds(reinterpret_cast<uintptr_t>(&find_caller)))
                return 0;
            *static_cast<Code*>(it) = module;
            return 1;
        },
        &code);
    return code;
}

bool is_own(uintptr_t address) {
    static const Code own = own_code();
    return own.holds(address - 1);
}

// The return addresses from find_caller's own up to the program's, and where on the stack they lie, from find_caller's
// frame on. The frames of code in which the same return addresses lie at the same places are alike: so a call that has
// taken the path of an earlier one finds the program's address without another walk.
struct CallPath {
    static constexpr size_t kMost = 8;
    struct Return {
        ptrdiff_t place;
        uintptr_t address;
    };
    std::array<Return, kMost> returns;  // the last one is the program's
    size_t n = 0;
    bool is_known = true;  // they lie where a walk expects them, and there is room
};

constexpr size_t kPaths = 16;
// Calls may come behind the end of the thread's variables: from atexit, static destructors and those of keys.
constinit thread_local bool has_ended = false;
// By the call's function; n 0: none.
struct Paths : std::array<CallPath, kPaths> {
    ~Paths() { has_ended = true; }
};
// On the heap: a library that a program opens has little room for each thread.
thread_local std::unique_ptr<Paths> paths;

uintptr_t load(const char* address) {
    uintptr_t value;
    memcpy(&value, address, sizeof value);
    return value;
}

struct Walk {
    const char* frame;
    CallPath path;
    uintptr_t found = 0;
};

_Unwind_Reason_Code look_at(_Unwind_Context* context, void* it) {
    Walk& walk = *static_cast<Walk*>(it);
    const auto address = static_cast<uintptr_t>(_Unwind_GetIP(context));
    const auto* const slot = reinterpret_cast<const char*>(_Unwind_GetCFA(context)) - sizeof address;
    if (slot >= walk.frame) {  // not of what find_caller calls
        CallPath& path = walk.path;
        path.is_known = path.is_known && path.n < CallPath::kMost && load(slot) == address;
        if (path.is_known)
            path.returns[path.n++] = {slot - walk.frame, address};
    }
    if (is_own(address))
        return _URC_NO_REASON;
    walk.found = address;
    return _URC_END_OF_STACK;
}

}  // namespace

bool is_of_program(const void* address) {
    return address && !is_own(reinterpret_cast<uintptr_t>(address));
}

__attribute__((noinline)) const void* find_caller(const char* function) {
    const auto* const frame = static_cast<const char*>(__builtin_frame_address(0));
    if (!has_ended && !paths)
        paths = std::make_unique<Paths>();
    CallPath none;
    CallPath& path = has_ended ? none : (*paths)[reinterpret_cast<uintptr_t>(function) / 8 % kPaths];
    size_t alike = 0;
    while (alike + 1 < path.n && load(frame + path.returns[alike].place) == path.returns[alike].address) ++alike;
    if (path.n != 0 && alike + 1 == path.n)
        if (const uintptr_t address = load(frame + path.returns[alike].place); !is_own(address))
            return reinterpret_cast<const void*>(address);
    Walk walk = {frame, {}, 0};
    _Unwind_Backtrace(look_at, &walk);
    path = walk.found != 0 && walk.path.is_known ? walk.path : CallPath{};
    return reinterpret_cast<const void*>(walk.found);
}

base::Call at_caller_of_wait(const base::Call& call) {
    return is_of_program(call.caller) ? call : base::Call{call.function, find_caller(call.function)};
}

base::Call at_caller(const base::Call& call) {
    const void* const from = std::exchange(called_from, nullptr);
    if (called_out_of_line_from)
        return {call.function, called_out_of_line_from};
    if (is_of_program(call.caller))
        return call;
    return {call.function, is_of_program(from) ? from : find_caller(call.function)};
}

}  // namespace heddle::operations

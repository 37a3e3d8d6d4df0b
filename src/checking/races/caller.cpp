#include "checking/races/caller.h"

#include <link.h>
#include <unwind.h>
#include <cstdint>

namespace heddle::checking::races {

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

_Unwind_Reason_Code look_at(_Unwind_Context* frame, void* it) {
    const auto address = static_cast<uintptr_t>(_Unwind_GetIP(frame));
    if (is_own(address))
        return _URC_NO_REASON;
    *static_cast<const void**>(it) = reinterpret_cast<const void*>(address);
    return _URC_END_OF_STACK;
}

}  // namespace

bool is_of_program(const void* address) {
    return address && !is_own(reinterpret_cast<uintptr_t>(address));
}

const void* find_caller() {
    const void* caller = nullptr;
    _Unwind_Backtrace(look_at, &caller);
    return caller;
}

}  // namespace heddle::checking::races

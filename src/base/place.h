// Places in a program: a module and the address within it, as `addr2line -e module 0xaddress` takes them. Found with
// this library's unwind tables. Threads: any, also in a signal handler: no memory is allocated. For messages only:
// walking a stack costs microseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace heddle::base {

// A loaded executable or shared library.
struct Module {
    const char* path = nullptr;  // as the dynamic loader names it; empty: the executable
    uintptr_t bias = 0;          // load address minus link address

    bool is_executable() const { return path[0] == '\0'; }
    // The file's name without folders.
    const char* name() const;
    // The address before loading, as in the module's file.
    uintptr_t linked(uintptr_t address) const { return address - bias; }
};

// The module that holds the address; false when there is none.
bool find_module(uintptr_t address, Module* module);
// The module whose name is `name`, of that many letters; false when there is none.
bool find_module_named(const char* name, size_t letters, Module* module);

// An address in code: of an instruction, or (`is_return`) a return address, whose call is the place.
struct Place {
    uintptr_t address = 0;  // 0: unknown
    bool is_return = false;

    uintptr_t instruction() const { return address - (is_return ? 1 : 0); }
};

// "prog+0x1234"; empty when no module holds the place. Cut to fit.
using PlaceText = std::array<char, 96>;
PlaceText describe(const Place& place);

// The place where the program called this library: on the calling thread's stack, the first frame of another module
// behind the library's outermost frame. On a thread of the library's own: the place where its work was posted, or
// nothing.
Place find_caller();

// find_caller for a signal handler: where the executable called the module that was interrupted at `interrupted`.
Place find_caller_of(uintptr_t interrupted);

// Sets the place where the work that the calling thread now carries out was posted; null: the thread's own work.
// Returns the value before.
const void* set_posted_at(const void* caller);

}  // namespace heddle::base

// Places in a program: the module and the address within it that `addr2line -e module 0xaddress` takes, found by the
// unwind tables of this library. Any thread, a signal's handler too: no memory is allocated. For messages alone: a look
// at the stack costs microseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace heddle::base {

// A loaded executable or shared library.
struct Module {
    const char* path = nullptr;  // as the loader has it; empty: the executable
    uintptr_t bias = 0;          // where it lies, less where it was linked to

    bool is_executable() const { return path[0] == '\0'; }
    // The file's name without folders.
    const char* name() const;
    // The address as the module's file has it.
    uintptr_t linked(uintptr_t address) const { return address - bias; }
};

// False when no module holds the address.
bool find_module(uintptr_t address, Module* module);
// The same for a name of so many letters.
bool find_module_named(const char* name, size_t letters, Module* module);

// An address in the code: of an instruction, or (`is_return`) the one behind a call, which is what is meant.
struct Place {
    uintptr_t address = 0;  // 0: nobody knows it
    bool is_return = false;

    uintptr_t instruction() const { return address - (is_return ? 1 : 0); }
};

// "prog+0x1234"; empty when the place is in no module. Cut to fit.
using PlaceText = std::array<char, 96>;
PlaceText describe(const Place& place);

// Where the program called this library, on the stack of the calling thread: the first frame of another module behind
// the library's outermost one. On a thread of the library's own it is where that thread's work was posted, or nothing.
Place find_caller();

// The same for a signal's handler: where the executable called what was interrupted at `interrupted`, in another
// module.
Place find_caller_of(uintptr_t interrupted);

// Where the work was posted that the calling thread carries out for somebody; null: it carries out its own. Returns
// what it was before.
const void* set_posted_at(const void* caller);

}  // namespace heddle::base

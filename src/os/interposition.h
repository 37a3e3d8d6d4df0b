// Whether functions of this library are interposed: the dynamic linker binds a name to the definition in the first
// module that has one. The program, what is loaded ahead (LD_PRELOAD), and libraries that the program was linked with
// before this one come first. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::os {

struct Definition {
    char module[160] = "";  // as the dynamic linker names it; empty: the program
    char name[64] = "";
};

// Looks for a definition of one of the functions in the modules before this library. hashes: of their names, as a
// DT_GNU_HASH table has them; prefix: what their names begin with. Cost: a few ns for each function and module.
bool find_interposition(const uint32_t* hashes, size_t n, const char* prefix, Definition* found);
template <size_t kCount>
bool find_interposition(const uint32_t (&hashes)[kCount], const char* prefix, Definition* found) {
    return find_interposition(hashes, kCount, prefix, found);
}

}  // namespace heddle::os

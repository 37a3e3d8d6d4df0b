// What the generated plugin of calls out of line is made of (docs/decisions/0083). It is a library apart because its
// references are bound by the dynamic linker as a program's are: to the first definition of a name, which may be a
// tool's, and through a table of its own that tools change. They are bound on first use, in runs that have a tool.
#pragma once

#include "operations/out_of_line.h"

#include <cstring>
#include <iterator>

#define HEDDLE_NO_GENERICS
#define HEDDLE_NO_INLINE  // calls of the symbols are what this is for
#include <shmemx.h>

namespace heddle::operations {

template <class T>
T read(const void* from) {
    T value;
    memcpy(&value, from, sizeof value);
    return value;
}

template <class T>
void write(void* to, T value) {
    memcpy(to, &value, sizeof value);
}

}  // namespace heddle::operations

#define HEDDLE_OUT_OF_LINE_TABLE(functions)                                                                          \
    extern "C" __attribute__((visibility("default"))) const heddle::operations::OutOfLineTable heddle_out_of_line_1; \
    const heddle::operations::OutOfLineTable heddle_out_of_line_1 = {std::begin(functions), std::size(functions)};

// State that belongs to one PE: a plain global in the library, thread-local where a test build runs PEs as threads of
// one process so that ThreadSanitizer sees across them (docs/decisions/0004). Owned by whoever declares it; written by
// init and finalize only, unless its declaration says otherwise. runtime/pe.h has all of it in the order of assembly.
#pragma once

#include "base/invariant.h"

#include <heddle/abi.h>  // HEDDLE_PE_LOCAL: the macro, because inlined code needs it too

namespace heddle::base {

// A part of this PE that init makes: null until then. In a release build a plain pointer.
//
// Invariant: a part is used only once it is there. An early use is a mistake in the order of assembly.
//
// Without UBSan: gcc 12 takes its check of `this` from the flags of the addition that makes a thread-local address. The
// linker replaces that addition by a lea, which sets none.
template <class T>
class PePointer {
  public:
    constexpr PePointer(T* part = nullptr) : part_(part) {}
    __attribute__((no_sanitize("undefined"))) PePointer& operator=(T* part) {
        part_ = part;
        return *this;
    }
    // As =, for a part that another thread may be looking for meanwhile: what was done to it before is seen by who
    // finds it.
    __attribute__((no_sanitize("undefined"))) void publish(T* part) {
        __atomic_store_n(&part_, part, __ATOMIC_RELEASE);
    }

    __attribute__((no_sanitize("undefined"))) operator T*() const { return part_; }
    __attribute__((no_sanitize("undefined"))) T* operator->() const {
        HEDDLE_INVARIANT(part_ != nullptr);
        return part_;
    }
    __attribute__((no_sanitize("undefined"))) T& operator*() const {
        HEDDLE_INVARIANT(part_ != nullptr);
        return *part_;
    }

  private:
    T* part_;
};

}  // namespace heddle::base

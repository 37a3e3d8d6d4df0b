// What a task or a posted operation works on: a copy of a small object in a place of fixed size, so that handing work
// to another thread allocates nothing. Only the functions that come with the object know its type.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace heddle::progress {

template <size_t kBytes>
class InlinePayload {
  public:
    template <class T>
    void hold(const T& object) {
        static_assert(sizeof(T) <= kBytes && alignof(T) <= kAlignment && std::is_trivially_copyable_v<T>);
        memcpy(bytes_, &object, sizeof object);
    }
    // The object; as long as no other is held.
    const void* object() const { return bytes_; }

  private:
    static constexpr size_t kAlignment = 16;

    alignas(kAlignment) char bytes_[kBytes];
};

}  // namespace heddle::progress

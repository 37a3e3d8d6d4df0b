// Places: the calls of each PE as text, in shared memory, so that another PE can name them. Threads: the detector's
// lock for number, any for text.
#pragma once

#include "base/call.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace heddle::checking::races {

// In place of a function's name: an access of the program itself. The place is where it is.
constexpr const char* kLoad = "a load";
constexpr const char* kStore = "a store";

class Places {
  public:
    static constexpr uint32_t kPlaces = 4096;  // of each PE; further calls are known by their function's name alone

    static_assert(kPlaces == uint32_t{1} << 12);  // Mark::place

    // describes: the calls are of this process, where their texts can be made; else they are told by add.
    Places(char* memory, int pe, bool describes = true) : memory_(memory), pe_(pe), describes_(describes) {}
    static size_t bytes(int n_pes) { return static_cast<size_t>(n_pes) * kPlaces * sizeof(base::CallText); }

    // The number of a call of this PE. 0: there is no room for more, or its text is not known.
    uint32_t number(const base::Call& call);
    // Makes a call of this PE known.
    void add(const base::Call& call, const base::CallText& text);
    static base::CallText text_of(const base::Call& call);

    // The text of a number of any PE; 0: "an unknown call".
    base::CallText text(int pe, uint32_t number) const;

  private:
    base::CallText& entry(int pe, uint32_t number) const {
        return reinterpret_cast<base::CallText*>(memory_)[static_cast<size_t>(pe) * kPlaces + number];
    }

    char* memory_;
    int pe_;
    const bool describes_;
    std::map<std::pair<const char*, const void*>, uint32_t> numbers_;
    struct Known {
        base::Call call;
        uint32_t number;  // 0: none
    };
    static constexpr size_t kKnown = 64;
    std::array<Known, kKnown> known_ = {};  // the last ones, by the caller's address
};

}  // namespace heddle::checking::races

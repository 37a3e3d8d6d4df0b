// What a misspelt name was meant to be. Any thread; no memory is allocated.
#pragma once

#include <cstddef>

namespace heddle::base {

// Control messages to insert, leave out, replace, or swap with their neighbours, to make one of the other; case does
// not count. Of words longer than 63 letters the rest is not looked at.
size_t spelling_distance(const char* a, const char* b);

// The nearest of some words, as they are offered one by one; those further away than `most` do not count.
class Nearest {
  public:
    Nearest(const char* misspelt, size_t most) : misspelt_(misspelt), distance_(most + 1) {}

    // word: what is compared; full: what is meant then.
    void offer(const char* word, const char* full) {
        const size_t distance = spelling_distance(misspelt_, word);
        if (distance < distance_) {
            distance_ = distance;
            full_ = full;
        }
    }
    const char* full() const { return full_; }  // null: none is near

  private:
    const char* misspelt_;
    size_t distance_;
    const char* full_ = nullptr;
};

}  // namespace heddle::base

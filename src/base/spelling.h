// Spelling: finds the name that a misspelt name was meant to be. Threads: any. No memory is allocated.
#pragma once

#include <cstddef>

namespace heddle::base {

// The number of letters to insert, leave out, replace, or swap with a neighbour to turn one word into the other. Case
// is ignored, and so is everything beyond 63 letters.
size_t spelling_distance(const char* a, const char* b);

// The nearest of the words that are offered one by one, at a distance of at most `most`.
class Nearest {
  public:
    Nearest(const char* misspelt, size_t most) : misspelt_(misspelt), distance_(most + 1) {}

    // word: the word to compare. full: the result if it is the nearest.
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

// IntrusiveList: a list whose links are members of the items, so that adding needs no memory. An item with several
// links may be in as many lists, once in each.
//
// The last item added is the first. Threads: one at a time; a list and the links of its items belong to one lock.
// Cost: O(1), but take_first.
#pragma once

#include "base/invariant.h"

#include <utility>

namespace heddle::fabric {

// A place in one list. An item that is destroyed is in none.
template <class T>
struct ListLink {
    T* next = nullptr;
    bool is_listed = false;
};

template <class T, ListLink<T> T::* kLink>
class IntrusiveList {
  public:
    bool is_empty() const { return first_ == nullptr; }
    // Adds the item unless it is in the list.
    void add(T& item) {
        ListLink<T>& link = item.*kLink;
        if (link.is_listed)
            return;
        HEDDLE_INVARIANT(link.next == nullptr);
        link = {first_, true};
        first_ = &item;
    }
    // Takes the first item out; null: there is none.
    T* take() { return first_ ? unlink(&first_) : nullptr; }
    // Takes the first item for which match(item) holds; null: there is none.
    template <class Match>
    T* take_first(Match match) {
        for (T** at = &first_; *at; at = &((*at)->*kLink).next)
            if (match(**at))
                return unlink(at);
        return nullptr;
    }
    // Takes all items out, and then calls visit(item) for each, which may add it again.
    template <class Visit>
    void take_all(Visit visit) {
        IntrusiveList all;
        std::swap(all.first_, first_);
        while (T* const item = all.take()) visit(*item);
    }

  private:
    static T* unlink(T** at) {
        T* const item = *at;
        ListLink<T>& link = item->*kLink;
        HEDDLE_INVARIANT(link.is_listed);  // an item is in the list exactly when its link says so
        *at = link.next;
        link = {};
        return item;
    }

    T* first_ = nullptr;
};

}  // namespace heddle::fabric

// A hash table spread over all PEs: a slot is claimed for a key by compare-and-swap, its count raised by fetch-and-add.
// All PEs insert, several times and in the same order, so that they meet at the slots; then every PE looks all keys up.
// Argument: keys.
#include "example.h"

namespace {

constexpr int kPasses = 20;

// What a PE inserts: PE 0 every key, PE 1 every second, PE 2 every third, PE 3 every key, ...
bool wants(int pe, long key) {
    return key % (pe % 3 + 1) == 0;
}

class Table {
  public:
    explicit Table(size_t slots_per_pe) : slots_(slots_per_pe) {
        keys_ = static_cast<long*>(shmem_calloc(slots_, sizeof(long)));
        counts_ = static_cast<long*>(shmem_calloc(slots_, sizeof(long)));
    }

    // Key is positive: 0 marks a slot that nobody has. Returns the count before.
    long insert(long key) {
        for (size_t probe = 0; probe < slots_ * static_cast<size_t>(shmem_n_pes()); ++probe) {
            const Place place = place_of(key, probe);
            const long owner = shmem_atomic_compare_swap(keys_ + place.slot, 0L, key, place.pe);
            if (owner == 0 || owner == key)
                return shmem_atomic_fetch_add(counts_ + place.slot, 1L, place.pe);
        }
        REQUIRE(false, "the table is full at key %ld", key);
        return 0;
    }

    long count(long key) const {
        for (size_t probe = 0;; ++probe) {
            const Place place = place_of(key, probe);
            const long owner = shmem_g(keys_ + place.slot, place.pe);
            if (owner == key)
                return shmem_atomic_fetch(counts_ + place.slot, place.pe);
            if (owner == 0)
                return 0;
        }
    }

  private:
    struct Place {
        size_t slot;
        int pe;
    };
    Place place_of(long key, size_t probe) const {
        const size_t hash = static_cast<size_t>(key) * 0x9e3779b97f4a7c15u + probe;
        return {hash / static_cast<size_t>(shmem_n_pes()) % slots_,
                static_cast<int>(hash % static_cast<size_t>(shmem_n_pes()))};
    }

    size_t slots_;
    long* keys_;
    long* counts_;
};

}  // namespace

int main(int argc, char** argv) {
    shmem_init();
    const long keys = static_cast<long>(example_size(argc, argv, 1, 800));
    const int me = shmem_my_pe(), n = shmem_n_pes();
    Table table(static_cast<size_t>(keys / n * 5 / 4 + 2));  // four slots of five are taken in the end
    shmem_barrier_all();
    for (int pass = 0; pass < kPasses; ++pass)
        for (long key = 1; key <= keys; ++key)
            if (wants(me, key))
                table.insert(key);
    shmem_barrier_all();
    for (long key = 1; key <= 2 * keys; ++key) {  // nobody has inserted the second half
        long right = 0;
        for (int pe = 0; key <= keys && pe < n; ++pe) right += wants(pe, key) * kPasses;
        const long found = table.count(key);
        REQUIRE(found == right, "key %ld was counted %ld times, right is %ld", key, found, right);
    }
    return example_pass("hashtable");
}

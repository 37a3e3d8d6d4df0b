// Which distance of polls is chosen by times that are known (apps/common/poll_tuning.hpp). Exit status 0: the right ones.
#include "apps/common/poll_tuning.hpp"

int main() {
    using shmem_mt::shortest;
    const bool steady = shortest({{3, 3, 3}, {2, 2, 2}, {4, 4, 4}}) == 1;
    const bool one_lucky = shortest({{1, 9, 9}, {3, 3, 3}, {9, 0.5, 9}}) == 1;
    const bool one_unlucky = shortest({{4, 4, 4}, {5, 5, 5}, {3, 90, 3}}) == 2;
    const bool first_of_equals = shortest({{2, 2, 2}, {2, 2, 2}}) == 0;
    return steady && one_lucky && one_unlucky && first_of_equals ? 0 : 1;
}

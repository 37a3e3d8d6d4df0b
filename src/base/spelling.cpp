#include "base/spelling.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace heddle::base {

size_t spelling_distance(const char* a, const char* b) {
    constexpr size_t kMax = 63;
    const size_t rows = std::min(strlen(a), kMax), columns = std::min(strlen(b), kMax);
    const auto same = [&](size_t i, size_t j) {
        return tolower(static_cast<unsigned char>(a[i])) == tolower(static_cast<unsigned char>(b[j]));
    };
    size_t table[3][kMax + 1];  // of the first i letters of a, for i and the two prefixes before it
    for (size_t i = 0; i <= rows; ++i) {
        size_t* const now = table[i % 3];
        const size_t* const before = table[(i + 2) % 3];
        const size_t* const earlier = table[(i + 1) % 3];
        for (size_t j = 0; j <= columns; ++j) {
            if (i == 0 || j == 0) {
                now[j] = i + j;
                continue;
            }
            now[j] = std::min({before[j] + 1, now[j - 1] + 1, before[j - 1] + !same(i - 1, j - 1)});
            if (i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1))
                now[j] = std::min(now[j], earlier[j - 2] + 1);
        }
    }
    return table[rows % 3][columns];
}

}  // namespace heddle::base

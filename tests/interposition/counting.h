/* Counts of calls, which a PE appends to the file HEDDLE_TEST_COUNTS at its end: lines "name count". */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct count {
    const char* name;
    unsigned long n;
};

static void write_counts(const struct count* counts, int n) {
    const char* path = getenv("HEDDLE_TEST_COUNTS");
    const int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    for (int i = 0; i < n && file >= 0; ++i) {
        char line[128];
        const int length = snprintf(line, sizeof line, "%s %lu\n", counts[i].name, counts[i].n);
        if (counts[i].n != 0 && write(file, line, (size_t)length) != length)
            abort();
    }
    if (file >= 0)
        close(file);
}

#define COUNT(it) __atomic_fetch_add(&(it).n, 1, __ATOMIC_RELAXED)

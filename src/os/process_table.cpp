#include "os/process_table.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heddle::os {

static bool read_stat(const char* path, ProcessEntry* entry) {
    char text[1024] = "";
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const ssize_t bytes = read(fd, text, sizeof text - 1);
    close(fd);
    const char* const name = bytes > 0 ? strchr(text, '(') : nullptr;
    char* const name_end = name ? strrchr(text, ')') : nullptr;  // the name itself may hold any character
    // The fields 3, 4, 14, 15, 22 and 39.
    uint64_t user_ticks = 0, system_ticks = 0;
    if (!name_end ||
        sscanf(name_end,
               ") %c %d"
               "%*s%*s%*s%*s%*s%*s%*s%*s%*s"
               "%" SCNu64 "%" SCNu64 "%*s%*s%*s%*s%*s%*s"
               "%" SCNu64 "%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s"
               "%d",
               &entry->state, &entry->parent, &user_ticks, &system_ticks, &entry->start_ticks, &entry->core) != 6)
        return false;
    entry->cpu_ticks = user_ticks + system_ticks;
    *name_end = '\0';
    snprintf(entry->name, sizeof entry->name, "%s", name + 1);
    return true;
}

bool read_process(int pid, ProcessEntry* entry) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    return read_stat(pid == kThisProcess ? "/proc/self/stat" : path, entry);
}

bool read_thread(int pid, int thread, ProcessEntry* entry) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, thread);
    return read_stat(path, entry);
}

int visible_parent() {
    char self[16] = "";
    return readlink("/proc/self", self, sizeof self - 1) > 0 && atoi(self) == getpid() ? getppid() : 0;
}

int count_children(int pid) {
    DIR* const all = opendir("/proc");
    int children = 0;
    while (const dirent* each = all ? readdir(all) : nullptr) {
        ProcessEntry entry;
        const int number = atoi(each->d_name);
        children += number > 0 && read_process(number, &entry) && entry.parent == pid;
    }
    if (all)
        closedir(all);
    return children;
}

Answer maps_file(int pid, const char* words) {
    char path[32], line[4352];  // a path of 4,096 bytes, and what stands before it
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE* const maps = fopen(path, "re");
    if (!maps)
        return errno == ENOENT ? Answer::kNo : Answer::kUntold;
    bool is_mapped = false;
    while (!is_mapped && fgets(line, sizeof line, maps)) is_mapped = strstr(line, words);
    const bool is_told = !ferror(maps);
    fclose(maps);
    return is_mapped ? Answer::kYes : is_told ? Answer::kNo : Answer::kUntold;
}

}  // namespace heddle::os

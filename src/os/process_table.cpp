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

bool read_process(int pid, ProcessEntry* entry) {
    char path[32], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const int fd = open(pid == kThisProcess ? "/proc/self/stat" : path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const ssize_t bytes = read(fd, text, sizeof text - 1);
    close(fd);
    const char* const name = bytes > 0 ? strchr(text, '(') : nullptr;
    char* const name_end = name ? strrchr(text, ')') : nullptr;  // the name itself may hold any character
    // The fields 3, 4 and 22.
    if (!name_end || sscanf(name_end,
                            ") %c %d"
                            "%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s"
                            "%" SCNu64,
                            &entry->state, &entry->parent, &entry->start_ticks) != 3)
        return false;
    *name_end = '\0';
    snprintf(entry->name, sizeof entry->name, "%s", name + 1);
    return true;
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

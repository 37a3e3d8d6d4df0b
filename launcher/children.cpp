#include "children.h"

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace heddle::launcher {

namespace {

// Reads the list that kernels with CONFIG_PROC_CHILDREN keep; false without it.
bool read_children_file(std::vector<pid_t>* children) {
    char path[64];
    // The list of the launcher's only thread.
    snprintf(path, sizeof path, "/proc/self/task/%d/children", static_cast<int>(getpid()));
    FILE* file = fopen(path, "re");
    if (!file)
        return false;
    int pid = 0;
    while (fscanf(file, "%d", &pid) == 1) children->push_back(pid);
    fclose(file);
    return true;
}

// The parent of a process; -1 when the process is gone.
pid_t parent_of(const char* pid) {
    char path[300];
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    FILE* file = fopen(path, "re");
    if (!file)
        return -1;
    char text[512];
    const size_t bytes = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[bytes] = '\0';
    const char* name_end = strrchr(text, ')');  // the name itself may hold any character
    int parent = -1;
    if (!name_end || sscanf(name_end + 1, " %*c %d", &parent) != 1)
        return -1;
    return parent;
}

// True when a process is `ancestor`, or descends from it.
bool is_descendant(pid_t pid, pid_t ancestor) {
    while (pid > 1 && pid != ancestor) pid = parent_of(std::to_string(pid).c_str());
    return pid == ancestor;
}

// The number of a process in its own process namespace; -1 when the process is gone.
pid_t innermost_number(const char* pid) {
    char path[300], line[256];
    snprintf(path, sizeof path, "/proc/%s/status", pid);
    FILE* file = fopen(path, "re");
    int number = file ? atoi(pid) : -1;  // kernels before 4.1 do not tell more
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "NSpid:", 6) != 0)
            continue;
        for (const char* word = strtok(line + 6, " \t\n"); word; word = strtok(nullptr, " \t\n")) number = atoi(word);
    }
    if (file)
        fclose(file);
    return number;
}

template <class Call>
void for_each_process(Call call) {
    DIR* processes = opendir("/proc");
    while (const dirent* entry = processes ? readdir(processes) : nullptr) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            call(entry->d_name);
    }
    if (processes)
        closedir(processes);
}

}  // namespace

pid_t find_descendant(pid_t number, pid_t ancestor) {
    if (number <= 0)
        return 0;
    if (is_descendant(number, ancestor) && innermost_number(std::to_string(number).c_str()) == number)
        return number;
    pid_t found = 0;
    for_each_process([&](const char* pid) {
        if (found == 0 && innermost_number(pid) == number && is_descendant(atoi(pid), ancestor))
            found = atoi(pid);
    });
    return found;
}

void adopt_orphans() {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

bool have_children() {
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

std::vector<pid_t> list_children() {
    std::vector<pid_t> children;
    if (read_children_file(&children))
        return children;
    for_each_process([&](const char* pid) {
        if (parent_of(pid) == getpid())
            children.push_back(atoi(pid));
    });
    return children;
}

}  // namespace heddle::launcher

#include "base/source_line.h"

#include "base/elf_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace heddle::base {

namespace {

// True when addr2line may find lines in the file, or through it: the file has a section for that.
bool has_debug_information(const char* path) {
    const ElfFile file(path);
    for (int number = 1; number < file.n_sections(); ++number) {
        ElfW(Shdr) section;
        if (!file.read_section(number, &section))
            return false;
        for (const char* wanted : {".debug_info", ".zdebug_info", ".gnu_debuglink", ".gnu_debugaltlink"})
            if (file.is_named(section, wanted))
                return true;
    }
    return false;
}

// The path of a program on the PATH.
bool find_tool(const char* name, char (&path)[PATH_MAX]) {
    const char* folders = getenv("PATH");
    while (folders && *folders) {
        const size_t length = strcspn(folders, ":");
        const int written = snprintf(path, sizeof path, "%.*s/%s", static_cast<int>(length), folders, name);
        if (length > 0 && written < static_cast<int>(sizeof path) && access(path, X_OK) == 0)
            return true;
        folders += length + (folders[length] == ':');
    }
    return false;
}

// Starts the tool in a process of its own, which writes to `output`. No handler of this process runs in it, and no
// memory is copied.
pid_t start_tool(char* const* arguments, int output, int nothing) {
    static char* no_environment[] = {nullptr};
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    const pid_t child = vfork();  // NOLINT(*-unsafe-functions,*.vfork): the child only calls execve and _exit
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(nothing, STDIN_FILENO);
        dup2(nothing, STDERR_FILENO);
        dup2(output, STDOUT_FILENO);
        execve(arguments[0], arguments, no_environment);
        _exit(1);
    }
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return child;
}

uint64_t now_ms() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1000000;
}

// Reads fd to its end into a string. What does not fit is left out; nothing is returned when reading takes too long.
void read_all(int fd, char* text, size_t bytes, uint64_t patience_ms) {
    size_t used = 0;
    const uint64_t end_ms = now_ms() + patience_ms;
    text[0] = '\0';
    for (;;) {
        const uint64_t now = now_ms();
        pollfd source = {fd, POLLIN, 0};
        if (now >= end_ms || poll(&source, 1, static_cast<int>(end_ms - now)) == 0) {
            text[0] = '\0';
            return;
        }
        const ssize_t got = read(fd, text + used, bytes - 1 - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return;
        used += static_cast<size_t>(got);
        text[used] = '\0';
    }
}

// Runs addr2line and leaves its output in text.
void ask(const char* file, uintptr_t address, char* text, size_t bytes, uint64_t patience_ms) {
    char tool[PATH_MAX], place[32], follow_inlined[] = "-i", option[] = "-e";
    char* const arguments[] = {tool, follow_inlined, option, const_cast<char*>(file), place, nullptr};
    int ends[2];
    text[0] = '\0';
    snprintf(place, sizeof place, "%#zx", static_cast<size_t>(address));
    if ((!find_tool("addr2line", tool) && !find_tool("llvm-addr2line", tool)) || pipe2(ends, O_CLOEXEC) != 0)
        return;
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    const pid_t child = start_tool(arguments, ends[1], nothing);
    close(nothing);
    close(ends[1]);
    if (child > 0) {
        read_all(ends[0], text, bytes, patience_ms);
        kill(child, SIGKILL);  // it has ended, or takes too long
        waitpid(child, nullptr, 0);
    }
    close(ends[0]);
}

// True for headers whose functions are inlined into programs: the line of their caller is wanted.
bool is_own_header(const char* path) {
    for (const char* name :
         {"/heddle/hot_path.h", "/heddle/request_path.h", "/heddle/inline.h", "/heddle/generated/inline_names.h",
          "/heddle/generated/inline_shmemx_names.h", "/shmem.h", "/shmemx.h"}) {
        const size_t length = strlen(path), tail = strlen(name);
        if (length >= tail && strcmp(path + length - tail, name) == 0)
            return true;
    }
    return false;
}

}  // namespace

bool path_of(const Module& module, char* path, size_t bytes) {
    if (!module.is_executable())
        return snprintf(path, bytes, "%s", module.path) < static_cast<int>(bytes);
    const ssize_t length = readlink("/proc/self/exe", path, bytes - 1);
    path[std::max<ssize_t>(length, 0)] = '\0';
    return length > 0 && static_cast<size_t>(length) < bytes - 1;
}

LineText source_line(const Module& module, uintptr_t linked_address) {
    char path[PATH_MAX];
    return path_of(module, path, sizeof path) ? source_line(path, linked_address) : LineText{};
}

LineText source_line(const char* path, uintptr_t linked_address, uint64_t patience_ms) {
    LineText line = {};
    char said[4096];
    if (!has_debug_information(path))
        return line;
    ask(path, linked_address, said, sizeof said, patience_ms);
    // One line for each function inlined there, innermost first: "folder/heat.c:42 (discriminator 3)".
    for (char *rest = said, *one; (one = strtok_r(rest, "\n", &rest));) {
        if (char* const blank = strchr(one, ' '))
            *blank = '\0';
        char* const colon = strrchr(one, ':');
        if (!colon || colon[1] < '1' || colon[1] > '9')  // "??:0", "??:?"
            continue;
        *colon = '\0';
        const bool is_inner = is_own_header(one);
        *colon = ':';
        if (is_inner)
            continue;
        const char* const slash = strrchr(one, '/');
        snprintf(line.data(), line.size(), "%s", slash ? slash + 1 : one);
        break;
    }
    return line;
}

void add_source_lines(const char* text, char* to, size_t bytes) {
    size_t used = 0;
    const auto add = [&](const char* part, size_t length) {
        length = std::min(length, bytes - 1 - used);
        memcpy(to + used, part, length);
        used += length;
    };
    while (const char* const at = strstr(text, "at ")) {
        const char* const name = at + 3;
        const size_t length = strcspn(name, "+ \n");
        char* end = nullptr;
        const uintptr_t address = strncmp(name + length, "+0x", 3) == 0 ? strtoul(name + length + 1, &end, 16) : 0;
        if (!end) {
            add(text, static_cast<size_t>(name - text));
            text = name;
            continue;
        }
        add(text, static_cast<size_t>(end - text));
        text = end;
        Module module;
        const LineText line = find_module_named(name, length, &module) ? source_line(module, address) : LineText{};
        if (line[0] != '\0') {
            add(", ", 2);
            add(line.data(), strlen(line.data()));
        }
    }
    add(text, strlen(text));
    to[used] = '\0';
}

}  // namespace heddle::base

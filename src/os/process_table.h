// Process table: other processes as /proc tells of them. Without /proc, and where it is that of another process
// namespace, there are none. Threads: any.
#pragma once

#include <cstdint>

namespace heddle::os {

constexpr int kThisProcess = 0;  // for read_process, also where /proc is that of another process namespace

struct ProcessEntry {
    int parent = 0;  // 0: none in this process namespace
    char state = 0;  // as ps shows it; Z and X: ended
    char name[16] = "";
    uint64_t start_ticks = 0;  // from the kernel's start to its own, of which there are sysconf(_SC_CLK_TCK) a second
    uint64_t cpu_ticks = 0;    // of processor time, likewise
    int core = -1;             // on which it ran last
};

// False when there is no such process.
bool read_process(int pid, ProcessEntry* entry);
// One of its threads.
bool read_thread(int pid, int thread, ProcessEntry* entry);

// The parent of this process; 0 when it is none of /proc's.
int visible_parent();

// Children of the process, with those that it has not reaped. Cost: reads all processes of the machine.
int count_children(int pid);

// Whether the process has mapped a file whose path has the words in it. kUntold: its mappings may not be read, as
// those of another user's process, or of one outside this user namespace.
enum class Answer { kNo, kYes, kUntold };
Answer maps_file(int pid, const char* words);

}  // namespace heddle::os

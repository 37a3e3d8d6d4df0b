// The process of a PE: its memory, which all PEs map, and how it comes into the job and leaves.
#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>

#include "world.hpp"

namespace metronome {

World* world;
int me;
Picoseconds outside_clock;

namespace {

char* static_begin;
char* static_end;

int find_statics(dl_phdr_info* info, size_t, void*) {
    const auto page = [](char* address, size_t up) {
        return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(address) + up) & ~uintptr_t{4095});
    };
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& part = info->dlpi_phdr[i];
        char* const begin = reinterpret_cast<char*>(info->dlpi_addr + part.p_vaddr);
        if (part.p_type == PT_LOAD && (part.p_flags & PF_W)) {
            static_begin = std::max(static_begin, page(begin, 0));
            static_end = page(begin + part.p_memsz, 4095);
        }
        if (part.p_type == PT_GNU_RELRO)
            static_begin = std::max(static_begin, page(begin + part.p_memsz, 0));
    }
    return 1;  // the program itself is the first
}

// Data and bss of the program move into the memory that all PEs map.
void share_statics(int fd) {
    dl_iterate_phdr(find_statics, nullptr);
    const size_t bytes = static_cast<size_t>(static_end - static_begin);
    if (bytes > kStaticBytes)
        fatal("the program has more static data than it has room for");
    std::memcpy(memory_of(me), static_begin, bytes);
    const off_t place = memory_of(me) - reinterpret_cast<char*>(world);
    if (mmap(static_begin, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, place) == MAP_FAILED)
        fatal("the program's static data cannot be shared");
}

}  // namespace

void enter() {
    const char* const fd_text = std::getenv("METRONOME_WORLD");
    const char* const pe_text = std::getenv("METRONOME_PE");
    const char* const pes_text = std::getenv("METRONOME_PES");
    if (!fd_text || !pe_text || !pes_text)
        fatal("start programs with its oshrun");
    const int fd = std::atoi(fd_text), n_pes = std::atoi(pes_text);
    me = std::atoi(pe_text);
    void* const memory = mmap(nullptr, world_bytes(n_pes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        fatal("the memory of the job cannot be mapped");
    world = static_cast<World*>(memory);
    share_statics(fd);
    Task& task = world->tasks[me];
    task.pe = me;
    task.clock = outside_clock;
    task.state = State::kReady;
    // Pairs with itself in the other PEs: whoever sees all started sees their tasks.
    const auto all = static_cast<uint32_t>(n_pes);
    if (world->started.fetch_add(1, std::memory_order_acq_rel) + 1 == all) {
        world->n_pes = n_pes;
        world->n_tasks = n_pes;
        world->n_teams = 2;
        for (Team& team : world->teams) {
            team.stride = 1;
            team.size = n_pes;
            for (Member& member : team.members) member.task = -1;
        }
        give_turn(&world->tasks[0]);
    }
    take_turn(&task);
    meet(world->teams[0], settings.init.of(), -1);
}

void leave() {
    meet(world->teams[0], settings.finalize.of(), -1);
    world->pes[me].left.store(1, std::memory_order_release);  // pairs with the launcher's load
    outside_clock = self->clock;
    end_task();
}

char* memory_of(int pe) {
    return reinterpret_cast<char*>(world + 1) + kPeBytes * static_cast<size_t>(pe);
}

size_t place_of(const void* symmetric) {
    const char* const address = static_cast<const char*>(symmetric);
    if (address >= static_begin && address < static_end)
        return static_cast<size_t>(address - static_begin);
    const char* const own = memory_of(me);
    if (address < own || address >= own + kPeBytes)
        fatal("an address is not symmetric");
    return static_cast<size_t>(address - own);
}

char* at(const void* symmetric, int pe) {
    if (pe < 0 || pe >= world->n_pes)
        fatal("there is no PE " + std::to_string(pe));
    return memory_of(pe) + place_of(symmetric);
}

}  // namespace metronome

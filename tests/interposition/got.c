/* A tool that defines no function of the library. Like GOTCHA it changes the tables by which the loaded modules call
 * others, for shmem_long_p and shmem_ctx_double_g; and for dlopen, to do so in modules that come later. */
#define _GNU_SOURCE
#include "counting.h"

#include <dlfcn.h>
#include <link.h>
#include <pshmem.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#define IS_CALL(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#else
#define IS_CALL(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#endif

static struct count counts[] = {{"shmem_long_p", 0}, {"shmem_ctx_double_g", 0}};
static __typeof(dlopen)* dlopen_of_libc;

static void tool_long_p(long* dest, long value, int pe) {
    COUNT(counts[0]);
    pshmem_long_p(dest, value, pe);
}
static double tool_ctx_double_g(shmem_ctx_t ctx, const double* source, int pe) {
    COUNT(counts[1]);
    return pshmem_ctx_double_g(ctx, source, pe);
}
static void* tool_dlopen(const char* file, int flags);
static const struct {
    const char* name;
    void* wrapper;
} wrappers[] = {{"shmem_long_p", (void*)tool_long_p},
                {"shmem_ctx_double_g", (void*)tool_ctx_double_g},
                {"dlopen", (void*)tool_dlopen}};

static void change(uintptr_t bias, const ElfW(Rela) * relocation, size_t bytes, const ElfW(Sym) * symbols,
                   const char* names) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (const ElfW(Rela)* end = relocation + bytes / sizeof *relocation; relocation < end; ++relocation) {
        const char* name = names + symbols[ELF64_R_SYM(relocation->r_info)].st_name;
        for (size_t i = 0; i < sizeof wrappers / sizeof wrappers[0]; ++i) {
            void** slot = (void**)(bias + relocation->r_offset);
            if (!IS_CALL(ELF64_R_TYPE(relocation->r_info)) || strcmp(name, wrappers[i].name) != 0)
                continue;
            mprotect((void*)((uintptr_t)slot & -page), page, PROT_READ | PROT_WRITE);
            *slot = wrappers[i].wrapper;
        }
    }
}

static int change_module(struct dl_phdr_info* module, size_t size, void* unused) {
    const ElfW(Dyn)* entry = NULL;
    const ElfW(Rela)* calls = NULL, *data = NULL;
    const ElfW(Sym)* symbols = NULL;
    const char* names = NULL;
    size_t calls_bytes = 0, data_bytes = 0;
    (void)size;
    (void)unused;
    for (int i = 0; i < module->dlpi_phnum; ++i)
        if (module->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn)*)(module->dlpi_addr + module->dlpi_phdr[i].p_vaddr);
    if (!entry || strstr(module->dlpi_name, "vdso") || strstr(module->dlpi_name, "got.so"))
        return 0;
    for (; entry->d_tag != DT_NULL; ++entry) {
        const uintptr_t address = entry->d_un.d_ptr;
        if (entry->d_tag == DT_JMPREL)
            calls = (const ElfW(Rela)*)address;
        else if (entry->d_tag == DT_PLTRELSZ)
            calls_bytes = entry->d_un.d_val;
        else if (entry->d_tag == DT_RELA)
            data = (const ElfW(Rela)*)address;
        else if (entry->d_tag == DT_RELASZ)
            data_bytes = entry->d_un.d_val;
        else if (entry->d_tag == DT_SYMTAB)
            symbols = (const ElfW(Sym)*)address;
        else if (entry->d_tag == DT_STRTAB)
            names = (const char*)address;
    }
    if (symbols && names && calls)
        change(module->dlpi_addr, calls, calls_bytes, symbols, names);
    if (symbols && names && data)
        change(module->dlpi_addr, data, data_bytes, symbols, names);
    return 0;
}

static void* tool_dlopen(const char* file, int flags) {
    void* library = dlopen_of_libc(file, flags);
    dl_iterate_phdr(change_module, NULL);
    return library;
}

__attribute__((constructor)) static void begin(void) {
    dlopen_of_libc = dlopen;
    dl_iterate_phdr(change_module, NULL);
}
__attribute__((destructor)) static void end(void) {
    write_counts(counts, 2);
}

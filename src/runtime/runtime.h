// Init and finalize: the ordered assembly of everything below; and the queries and memory collectives, which need all
// of it. One thread per PE in init, finalize and the memory collectives; the queries from any thread.
#pragma once

#include <heddle/abi.h>

#include <cstddef>

namespace heddle::runtime {

// Sections 9.1 and 9.2. The names are those of the specification; `function` is for messages.
void init_or_die(const char* function);
int init_thread(const char* function, int requested, int* provided);
void finalize(const char* function);
void query_initialized(const char* function, int* initialized);
void query_thread(const char* function, int* provided);
[[noreturn]] void global_exit(const char* function, int status);
int my_pe(const char* function);
int n_pes(const char* function);
int pe_accessible(const char* function, int pe);
int addr_accessible(const char* function, const void* addr, int pe);
void* pointer(const char* function, const void* dest, int pe);
void info_get_version(const char* function, int* major, int* minor);
void info_get_name(const char* function, char* name);

// Section 9.4.
int create_context(const char* function, long options, shmem_ctx_t* ctx);
void destroy_context(const char* function, shmem_ctx_t ctx);

// Section 9.3.
void* allocate(const char* function, size_t size);
void* allocate_zeroed(const char* function, size_t count, size_t size);
void* allocate_aligned(const char* function, size_t alignment, size_t size);
void* allocate_with_hints(const char* function, size_t size, long hints);
void* reallocate(const char* function, void* ptr, size_t size);
void release(const char* function, void* ptr);

}  // namespace heddle::runtime

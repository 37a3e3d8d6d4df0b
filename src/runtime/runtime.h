// Init and finalize, the ordered assembly of all layers below; queries and memory collectives, which need all layers.
// Threads: one per PE in init, finalize and the memory collectives; any in the queries.
#pragma once

#include "base/call.h"
#include "progress/engine.h"

#include <heddle/abi.h>
#include <heddle/request.h>

#include <cstddef>

namespace heddle::runtime {

// Sections 9.1 and 9.2, with the specification's names. `function` is for messages.
void init_or_die(const char* function);
int init_thread(const char* function, int requested, int* provided);
// shmemx.h. Null for provided: nobody asks.
int get_unique_id(const char* function, shmemx_uniqueid_t* id);
int init_unique_id(const char* function, const shmemx_uniqueid_t* id, int my_pe, int n_pes, int requested,
                   int* provided);
void finalize(const base::Call& call);
// The last finalize of a program that ends without one (exit.h).
void finalize_at_exit();
void query_initialized(const char* function, int* initialized);
void query_thread(const char* function, int* provided);
// Section 10.1.1. Also before init and behind finalize, where it does nothing.
void pcontrol(int level);
[[noreturn]] void global_exit(const char* function, int status);
int my_pe(const char* function);
int n_pes(const char* function);
int pe_accessible(const char* function, int pe);
int addr_accessible(const char* function, const void* addr, int pe);
void* pointer(const char* function, const void* dest, int pe);
void info_get_version(const char* function, int* major, int* minor);
void info_get_name(const char* function, char* name);

// Section 9.4. An impossible team gives a message and a result other than 0 (or -1, NULL).
int team_my_pe(const char* function, shmem_team_t team);
int team_n_pes(const char* function, shmem_team_t team);
int team_get_config(const char* function, shmem_team_t team, long config_mask, shmem_team_config_t* config);
int team_translate_pe(const char* function, shmem_team_t from, int pe, shmem_team_t to);
void* team_pointer(const char* function, shmem_team_t team, const void* dest, int pe);
int team_split_strided(const base::Call& call, shmem_team_t parent, int start, int stride, int size,
                       const shmem_team_config_t* config, long config_mask, shmem_team_t* new_team);
int team_split_2d(const base::Call& call, shmem_team_t parent, int xrange, const shmem_team_config_t* xaxis_config,
                  long xaxis_mask, shmem_team_t* xaxis_team, const shmem_team_config_t* yaxis_config, long yaxis_mask,
                  shmem_team_t* yaxis_team);
void team_destroy(const base::Call& call, shmem_team_t team);

// Section 9.5: contexts and sessions.
int create_context(const char* function, long options, shmem_ctx_t* ctx);
int create_team_context(const char* function, shmem_team_t team, long options, shmem_ctx_t* ctx);
void destroy_context(const char* function, shmem_ctx_t ctx);
int context_team(const char* function, shmem_ctx_t ctx, shmem_team_t* team);
void start_session(const char* function, shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t* config,
                   long config_mask);
void stop_session(const char* function, shmem_ctx_t ctx);

int context_info(const char* function, shmem_ctx_t ctx, shmemx_ctx_info_t* info);

// Merged requests (shmemx.h). Any thread.
int allocate_request(const base::Call& call, shmemx_request_t* req, long options);
void free_request(const base::Call& call, shmemx_request_t* req);
void begin_request(const base::Call& call, shmemx_request_t* req);
void end_request(const base::Call& call, shmemx_request_t* req);
void merge_requests(const base::Call& call, shmemx_request_t* req, size_t count, shmemx_request_t* requests);
void wait_request(const base::Call& call, shmemx_request_t* req);
void wait_request_local(const base::Call& call, shmemx_request_t* req);
int test_request(const base::Call& call, shmemx_request_t* req);
size_t wait_any_request(const base::Call& call, size_t count, shmemx_request_t* requests);
size_t wait_some_requests(const base::Call& call, size_t count, shmemx_request_t* requests, size_t* indices);
size_t test_any_request(const base::Call& call, size_t count, shmemx_request_t* requests);
void fence_request(const base::Call& call, shmemx_request_t* req);

// Progress (shmemx.h). Any thread.
void make_progress(const char* function);
int set_progress_policy(const char* function, const char* policy);
// As fabric::Network::service_name.
const char* network_progress(const char* function);

// The counters of this PE, by their numbers (base/counters.def).
int counter_num(const char* function);
const char* counter_name(const char* function, int index);
const char* counter_description(const char* function, int index);
uint64_t counter_value(const char* function, int index);
// Null, or why this machine cannot have the policy.
const char* apply_progress(progress::Progress progress);

// Section 9.3.
void* allocate(const base::Call& call, size_t size);
void* allocate_zeroed(const base::Call& call, size_t count, size_t size);
void* allocate_aligned(const base::Call& call, size_t alignment, size_t size);
void* allocate_with_hints(const base::Call& call, size_t size, long hints);
void* reallocate(const base::Call& call, void* ptr, size_t size);
void release(const base::Call& call, void* ptr);

}  // namespace heddle::runtime

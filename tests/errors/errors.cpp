// errors WHEN FUNCTION [NAME=VALUE...]: calls one function with arguments that are all right, but for those given.
//   WHEN    before: instead of shmem_init; after: behind shmem_finalize; one: on PE 0, the others wait in
//   shmem_finalize;
//           all: on every PE
//   VALUE   of a number: a number; of a pointer: null, wild, stack, malloc, library, private, heap, static, freed,
//           ones (bytes of 0xff), word (that of a policy), heapend (the end of the heap), requests (handles that are
//           NULL), shared (a SHARED request), with +N or -N bytes behind; of a ctx: default, invalid, destroyed, created; of a team: world,
//           shared, invalid, destroyed, created (of all PEs), none (an address that is no team)
//   NAME@N  for PE N alone
// Prints what the function returned, and "survived" when nothing ended the PE. It is the caller who knows what is
// right.
#include "calls.h"

#include <unistd.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

char** options;
int option_count;
bool running;
long static_data[512];
alignas(64) char private_data[4096];  // before init, when nothing else is there
char* private_buffer;
char* heap;
char* freed;
char* heap_end;
const char* function_name = "";

// The value of an option, or null. NAME@PE wins.
const char* option(const std::string& name) {
    const std::string for_this_pe = running ? name + "@" + std::to_string(shmem_my_pe()) + "=" : std::string("=");
    const std::string for_all = name + "=";
    const char* found = nullptr;
    for (int i = 0; i < option_count; ++i) {
        if (strncmp(options[i], for_this_pe.c_str(), for_this_pe.size()) == 0)
            return options[i] + for_this_pe.size();
        if (strncmp(options[i], for_all.c_str(), for_all.size()) == 0)
            found = options[i] + for_all.size();
    }
    return found;
}

bool contains(const char* part) {
    return strstr(function_name, part) != nullptr;
}

// A collective on a team or an active set that has data.
bool is_collective() {
    for (const char* part : {"broadcast", "collect", "alltoall", "reduce", "scan", "to_all"})
        if (contains(part))
            return true;
    return false;
}

// What a pointer parameter is when nothing is said.
const char* right_pointer(const std::string& name) {
    if (is_collective() && name == "source")
        return "heap+2048";
    const bool reads = contains("get") || contains("long_g") || contains("atomic_fetch") || contains("long_fetch");
    if (name == "dest")
        return contains("get") ? "private" : "heap";
    if (name == "source")
        return reads ? "heap" : "private";
    if (name == "status")
        return "null";
    if (name == "req" && contains("_mt_nbe"))
        return "shared";
    if (name == "req" || name == "requests")
        return name == "req" ? "requests" : "requests+8";
    if (name == "pSync" || name == "pWrk")
        return name == "pSync" ? "heap+1024" : "heap+1536";
    if (name == "policy")
        return "word";
    if (name == "sig_addr" || name == "ivar" || name == "ivars" || name == "ptr" || name == "addr" || name == "lock")
        return "heap";
    return "private";
}

char* base_of(const std::string& word) {
    if (word == "heap")
        return heap;
    if (word == "heapend")
        return heap_end;
    if (word == "freed")
        return freed;
    if (word == "static")
        return reinterpret_cast<char*>(static_data);
    if (word == "private")
        return private_buffer;
    if (word == "ones") {
        static char ones[64];
        memset(ones, 0xff, sizeof ones);
        return ones;
    }
    if (word == "word") {
        static char word_of_policy[] = "auto";
        return word_of_policy;
    }
    if (word == "requests") {
        static shmemx_request_t requests[4];
        return reinterpret_cast<char*>(requests);
    }
    if (word == "shared") {
        static shmemx_request_t request;
        if (running && request == SHMEMX_REQUEST_NULL)
            shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED);
        return reinterpret_cast<char*>(&request);
    }
    if (word == "library")
        return static_cast<char*>(library_data());
    if (word == "malloc")
        return static_cast<char*>(malloc(4096));
    if (word == "wild")
        return reinterpret_cast<char*>(uintptr_t{0x10});
    if (word == "stack")
        return static_cast<char*>(__builtin_frame_address(0));
    if (word == "null")
        return nullptr;
    fprintf(stderr, "errors: no such place: %s\n", word.c_str());
    _exit(3);
}

// The number right for a parameter when nothing is said.
long long right_number(const std::string& name) {
    if (contains("split_strided") && name == "size")
        return 2;
    for (const char* one : {"stride", "xrange", "nreduce", "nelems", "dst", "sst", "bsize", "nblocks", "value",
                            "signal", "cmp", "count", "npes", "nthreads"})
        if (name == one)
            return 1;
    if (name == "PE_size")
        return 2;
    if (name == "size" || name == "alignment")
        return 64;
    return 0;  // nneighbors, element_bytes, block_bytes, start, config_mask, PE_start, logPE_stride, PE_root, pe, cond, sig_op, cmp_value, hints, options,
               // requested, status, index
}

// Everything that arguments can point to. Collective.
void make_places() {
    heap = static_cast<char*>(shmem_calloc(1, 4096));
    freed = static_cast<char*>(shmem_calloc(1, 4096));
    shmem_free(freed);
    const char* bytes = getenv("ERRORS_HEAP_BYTES");  // of the whole heap, where a test asks for its end
    heap_end = heap + (bytes ? strtoull(bytes, nullptr, 10) : 0);
    private_buffer = static_cast<char*>(calloc(1, 1 << 16));
}

void run_call() {
    for (size_t i = 0; i < calls_count; ++i) {
        if (strcmp(calls[i].name, function_name) == 0) {
            calls[i].run();
            return;
        }
    }
    fprintf(stderr, "errors: no such function: %s\n", function_name);
    _exit(3);
}

}  // namespace

void* pointer_argument(const char* name) {
    const char* text = option(name);
    const std::string value = text ? text : right_pointer(name);
    const size_t sign = value.find_first_of("+-");
    char* base = base_of(value.substr(0, sign));
    return sign == std::string::npos ? base : base + strtoll(value.c_str() + sign, nullptr, 10);
}

long long number_argument(const char* name) {
    const char* text = option(name);
    if (!text)
        return right_number(name);
    return *text == '-' ? strtoll(text, nullptr, 0) : static_cast<long long>(strtoull(text, nullptr, 0));
}

shmem_ctx_t context_argument() {
    const char* text = option("ctx");
    const std::string value = text ? text : "default";
    if (value == "invalid")
        return SHMEM_CTX_INVALID;
    if (value == "default")
        return SHMEM_CTX_DEFAULT;
    shmem_ctx_t ctx = SHMEM_CTX_INVALID;
    if (value == "team") {
        shmem_team_t all = SHMEM_TEAM_INVALID, row, column;
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), nullptr, 0, &all);
        shmem_team_create_ctx(all, 0, &ctx);
        shmem_team_destroy(all);
        shmem_team_split_2d(SHMEM_TEAM_WORLD, 1, nullptr, 0, &row, nullptr, 0, &column);
        shmem_team_create_ctx(row, 0, &ctx);
        return ctx;
    }
    shmem_ctx_create(0, &ctx);
    if (value == "destroyed")
        shmem_ctx_destroy(ctx);
    return ctx;
}

shmem_team_t team_argument(const char* name) {
    const char* text = option(name);
    const std::string value = text ? text : "world";
    if (value == "invalid")
        return SHMEM_TEAM_INVALID;
    if (value == "world" || value == "shared")
        return value == "world" ? SHMEM_TEAM_WORLD : SHMEM_TEAM_SHARED;
    if (value == "none")
        return reinterpret_cast<shmem_team_t>(private_buffer);
    shmem_team_t team = SHMEM_TEAM_INVALID;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), nullptr, 0, &team);
    if (value == "destroyed")
        shmem_team_destroy(team);
    return team;
}

// One that has recorded nothing.
shmemx_plan_t plan_argument(const char* name) {
    if (option(name))
        return reinterpret_cast<shmemx_plan_t>(pointer_argument(name));
    shmemx_plan_t plan = SHMEMX_PLAN_NULL;
    if (running) {
        shmemx_plan_begin(&plan);
        shmemx_plan_end(&plan);
    }
    return plan;
}

void show_pointer(const void* result) {
    printf("returned %s\n", result ? "a pointer" : "NULL");
}

void show_number(long long result) {
    printf("returned %lld\n", result);
}

int main(int argc, char** argv) {
    if (argc < 3)
        return 3;
    const std::string when = argv[1];
    function_name = argv[2];
    options = argv + 3;
    option_count = argc - 3;
    heap = freed = heap_end = reinterpret_cast<char*>(static_data);
    private_buffer = private_data;
    if (when == "before") {
        run_call();
    } else {
        shmem_init();
        running = true;
        make_places();
        const bool calls_now = when == "all" || (when == "one" && shmem_my_pe() == 0);
        if (calls_now)
            run_call();
        if (when != "after" && strcmp(function_name, "shmem_finalize") != 0)
            shmem_barrier_all();
        running = false;
        if (strcmp(function_name, "shmem_finalize") != 0 || !calls_now)
            shmem_finalize();
        if (when == "after")
            run_call();
    }
    printf("survived\n");
    return 0;
}

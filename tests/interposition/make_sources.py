"""Writes C of all functions of the tables in api, for test_every_function.py.

    make_sources.py wrappers OUTPUT.c    a tool: each function counts, and calls the next definition of its name or,
                                         with -DBY_TWIN, its second name (pshmem_, pshmemx_)
    make_sources.py calls OUTPUT.c       a program: each thread of each PE calls each inlined function TIMES() times
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
for folder in ("tests/conformance", "api"):
    sys.path.insert(0, str(HERE.parent.parent / folder))
from recorder import functions  # noqa: E402

WRAPPERS = """/* Written by tests/interposition/make_sources.py. */
#define _GNU_SOURCE
#define HEDDLE_NO_INLINE
#define HEDDLE_NO_GENERICS /* some functions have the name of a generic */
#include "counting.h"

#include <dlfcn.h>
#include <pshmem.h>
#include <pshmemx.h>

static struct count counts[];
__attribute__((destructor)) static void end(void);
#ifdef BY_TWIN
#define NEXT(name) (p##name)
#else
#define NEXT(name) (*(__typeof(name)*)dlsym(RTLD_NEXT, #name))
#endif
"""
CALLS = """/* Written by tests/interposition/make_sources.py. */
#define HEDDLE_NO_GENERICS
#include <pthread.h>
#include <shmemx.h>
#include <stdlib.h>

enum { kThreads = 8, kBytes = 64 };
/* Symmetric: what is written from elsewhere, and this PE's own. */
static _Alignas(64) char there[kThreads][kBytes], here[kThreads][kBytes], old[kThreads][kBytes];
static int right;
"""
MAIN = """
static void* call_all(void* thread) {
    const size_t t = (size_t)thread;
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; ++i) calls[i](there[t], here[t], old[t], &request);
    shmemx_request_wait(&request);
    shmem_quiet();
    return NULL;
}

int main(int argc, char** argv) {
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t others[kThreads];
    int provided;
    if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0)
        return 1;
    right = (shmem_my_pe() + 1) % shmem_n_pes();
    shmem_barrier_all();
    for (int t = 1; t < threads; ++t) pthread_create(&others[t], NULL, call_all, (void*)(size_t)t);
    call_all(NULL);
    for (int t = 1; t < threads; ++t) pthread_join(others[t], NULL);
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
"""


def times(number):
    """How often a thread calls the inlined function of that number."""
    return 1 + number % 3


def inlined():
    return [function for function in functions() if function.inline]


def wrappers():
    """The tool."""
    every = functions()
    lines = [WRAPPERS]
    for i, function in enumerate(every):
        if "..." in function.arguments:  # shmem_pcontrol, whose further arguments have no meaning
            call = f"NEXT({function.name})(level)"
        else:
            call = f"NEXT({function.name})({function.call})"
        keyword = "" if function.returns == "void" else "return "
        end = " abort();" if function.attribute else ""
        lines.append(f"{function.prototype} {{ COUNT(counts[{i}]); {keyword}{call};{end} }}")
    rows = ", ".join(f'{{"{function.name}", 0}}' for function in every)
    lines += [f"static struct count counts[{len(every)}] = {{{rows}}};",
              f"static void end(void) {{ write_counts(counts, {len(every)}); }}"]
    return "\n".join(lines).replace("counts[];", f"counts[{len(every)}];") + "\n"


def argument(function, text):
    """What the program passes for one of a function's arguments."""
    declared, name = re.fullmatch(r"(.*?)\s*(\w+)", text.strip()).groups()
    is_get = re.search(r"get|atomic_fetch(_nb[ie])?$|_g$", function.name) is not None
    values = {"ctx": "SHMEM_CTX_DEFAULT", "nelems": "1", "pe": "right", "req": "request", "fetch": f"({declared})old",
              "dest": f"({declared}){'here' if is_get and 'source' in function.arguments else 'there'}",
              "source": f"({declared}){'there' if is_get else 'here'}", "sig_addr": f"({declared})there"}
    return values.get(name, f"({declared})1")


def calls():
    """The program."""
    lines = [CALLS]
    every = inlined()
    for i, function in enumerate(every):
        passed = ", ".join(argument(function, text) for text in function.arguments.split(","))
        unused = " ".join(f"(void){name};" for name in ("there", "here", "old", "request"))
        lines.append(f"static void call_{i}(char* there, char* here, char* old, shmemx_request_t* request) {{ {unused} "
                     f"for (int i = 0; i < {times(i)}; ++i) (void){function.name}({passed}); }}")
    names = ", ".join(f"call_{i}" for i in range(len(every)))
    lines.append(f"static void (*const calls[])(char*, char*, char*, shmemx_request_t*) = {{{names}}};")
    return "\n".join(lines) + MAIN


if __name__ == "__main__":
    pathlib.Path(sys.argv[2]).write_text({"wrappers": wrappers, "calls": calls}[sys.argv[1]]())

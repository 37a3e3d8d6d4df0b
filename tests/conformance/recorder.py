"""Writes the recorder: a library of all functions of the tables in api, each of which notes that it was called and
calls its twin (pshmem_, pshmemx_). Loaded ahead of libheddle.so (LD_PRELOAD) under programs that call functions instead
of inlining them; so it tests the profiling interface, too.

    recorder.py OUTPUT.c

Byte i of the file named by HEDDLE_TEST_RECORD becomes 1 when function i of functions() is called.
conformance_last_called() is the name of the function that this thread called last, but for what completes a request:
programs complete some collectives before they ask.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "api"))
import generate  # noqa: E402  (api/generate.py reads the table)

HEAD = """/* Written by tests/conformance/recorder.py. */
#define HEDDLE_NO_INLINE
#define HEDDLE_NO_GENERICS /* some functions have the name of a generic */
#include <fcntl.h>
#include <pshmem.h>
#include <pshmemx.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FUNCTIONS = %d };
static volatile char unrecorded[FUNCTIONS];
static volatile char* calls = unrecorded;
static __thread const char* last_called = "";

__attribute__((visibility("default"))) const char* conformance_last_called(void);
const char* conformance_last_called(void) { return last_called; }

__attribute__((constructor)) static void open_record(void) {
    const char* path = getenv("HEDDLE_TEST_RECORD");
    int file = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;
    if (file < 0)
        return;
    if (ftruncate(file, FUNCTIONS) == 0) {
        void* mapped = mmap(NULL, FUNCTIONS, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED)
            calls = (volatile char*)mapped;
    }
    close(file);
}

#define NOTE(i, name) (calls[i] = 1, last_called = name)
#define NOTE_COMPLETION(i, name) (calls[i] = 1)
"""


def functions():
    """Every function of the tables, in the order of their names."""
    by_name = {f.name: f for table in generate.TABLES for f in generate.functions_of(generate.load(table))}
    return [by_name[name] for name in sorted(by_name)]


def main():
    every = functions()
    lines = [HEAD % len(every)]
    for i, function in enumerate(every):
        keyword = "" if function.returns == "void" else "return "
        end = " abort();" if function.attribute else ""
        note = "NOTE_COMPLETION" if function.name.startswith("shmemx_request_") else "NOTE"
        lines.append(f'{function.prototype} {{ {note}({i}, "{function.name}"); {keyword}p{function.name}'
                     f'({function.call});{end} }}')
    pathlib.Path(sys.argv[1]).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

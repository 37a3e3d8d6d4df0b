#!/usr/bin/env python3
"""The library and its monitors on aarch64, from a machine that has a cross compiler and qemu's user mode.

    aarch64.py library|monitors|order SOURCE BUILD     exit 0: all is well; 1: not; 77: a tool is missing

library    builds all that needs no plugin, without a warning; heddle-info and a program of one PE run; programs of one
           and of three PEs, PIE and not, with the pages of 4, 16 and 64 KiB that such machines' kernels have
monitors   the unit tests of the monitors: WFE and WFET carried out by the tests themselves
           (tests/support/monitor_emulation.h), for qemu 7.2 lacks WFET; and WFE by qemu, which yields there
order      in the object code that applies records from the network, on every path, a barrier lies between the stores
           of two records: qemu keeps the order of its host, which is x86-64's, and would not show that one is missing
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

TRIPLE = "aarch64-linux-gnu"
FLAGS = ["-O2", "-march=armv8-a", "-Wall", "-Wextra"]
GOOGLETEST = Path("/usr/src/googletest/googletest")  # Debian's googletest, which libgtest-dev brings
SUPPORT = ["every_monitor.cpp", "monitor_emulation.cpp"]
MONITORS = ["os/monitor_wait.cpp", "os/ticks.cpp", "os/memfd.cpp", "sync/wakeup.cpp", "progress/fiber.cpp",
            "progress/wait_policy.cpp", "base/pe_local.cpp"]


def find(program: str) -> str:
    """The cross compiler, which may carry its version, or qemu; ends the test where there is none."""
    for name in (program, f"{program}-12"):
        if path := shutil.which(name):
            return path
    print(f"skipped: there is no {program}")
    sys.exit(77)


def run(*command: object, **variables: str) -> str:
    result = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
                            env={**os.environ, **variables})
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {result.returncode}\n{result.stdout[-8000:]}")
    return result.stdout


def emulator(page_bytes: int = 4096) -> list[object]:
    return [find("qemu-aarch64"), "-p", page_bytes, "-cpu", "max", "-L", f"/usr/{TRIPLE}"]


def emulated(program: Path, *arguments: str, **variables: str) -> str:
    return run(*emulator(), program, *arguments, **variables)


# qemu tells the program of large pages, but maps its .bss by 4 KiB: this makes it end with a page, and prints what a
# page is.
LAST_OF_BSS = """
#include <stdio.h>
#include <unistd.h>
char last_of_bss[65536] __attribute__((aligned(65536), common));
__attribute__((constructor)) static void tell(void) {
    printf("pages of %ld\\n", sysconf(_SC_PAGESIZE));
    fflush(stdout);
}
"""


def check_page_sizes(source: Path, build: Path) -> None:
    last = build / "last_of_bss.c"
    last.write_text(LAST_OF_BSS)
    native_oshrun = build.parent.parent / "bin" / "oshrun"  # starts the emulators; what it shares is laid out alike
    launchers = [[]] + [[native_oshrun, "-n", 3]] * native_oshrun.exists()
    for name, options, right in (("examples/ring.c", [], "pass"),
                                 ("tests/abi/stale.c", ["-fno-pie", "-no-pie"], "right")):
        program = build / f"{Path(name).stem}_of_pages"
        run(find(f"{TRIPLE}-gcc"), *FLAGS, *options, "-I", source / "include", "-o", program, source / name, last,
            "-L", build / "lib", "-lheddle", f"-Wl,-rpath,{build}/lib")
        for page_bytes in (4096, 16384, 65536):
            for launcher in launchers:
                text = run(*launcher, *emulator(page_bytes), program)
                print(text)
                if f"pages of {page_bytes}\n" not in text or right not in text:
                    sys.exit(f"{program.name}, pages of {page_bytes} bytes:\n{text}")


def check_library(source: Path, build: Path) -> None:
    find("qemu-aarch64")
    compilers = [f"-DCMAKE_{language}_COMPILER={find(f'{TRIPLE}-{name}')}"
                 for language, name in (("C", "gcc"), ("CXX", "g++"))]
    run("cmake", "-G", "Ninja", "-S", source, "-B", build, *compilers, "-DCMAKE_SYSTEM_NAME=Linux",
        "-DCMAKE_SYSTEM_PROCESSOR=aarch64", "-DCMAKE_BUILD_TYPE=Release", "-DHEDDLE_BUILD_TESTS=OFF",
        "-DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON", "-DCMAKE_C_FLAGS=-march=armv8-a -Werror",
        "-DCMAKE_CXX_FLAGS=-march=armv8-a -Werror")
    run("cmake", "--build", build, "--target", "heddle", "heddle-info")
    text = emulated(build / "bin" / "heddle-info")
    # qemu promises neither WFET nor an event stream, without which a WFE might not end.
    if "spin, no monitor instruction, yield, sleep" not in text:
        sys.exit(f"heddle-info found a monitor:\n{text}")
    program = build / "ring"
    run(find(f"{TRIPLE}-gcc"), *FLAGS, "-I", source / "include", "-o", program, source / "examples/ring.c",
        "-L", build / "lib", "-lheddle", f"-Wl,-rpath,{build}/lib")
    print(emulated(program))
    check_page_sizes(source, build)


def check_monitors(source: Path, build: Path) -> None:
    compiler = find(f"{TRIPLE}-g++")
    find("qemu-aarch64")
    if not GOOGLETEST.exists():
        print(f"skipped: there is no {GOOGLETEST}")
        sys.exit(77)
    build.mkdir(parents=True, exist_ok=True)
    framework = build / "gtest-all.o"
    if not framework.exists():
        run(compiler, "-c", "-O1", "-std=c++20", "-I", GOOGLETEST / "include", "-I", GOOGLETEST, "-o", framework,
            GOOGLETEST / "src" / "gtest-all.cc")
    program = build / "monitors"
    run(compiler, *FLAGS, "-Werror", "-std=c++20", "-I", source / "src", "-I", source / "include",
        "-I", source / "tests", "-I", GOOGLETEST / "include", "-o", program,
        source / "tests/unit/os/monitor_emulated_test.cpp",
        source / "tests/unit/os/ticks_test.cpp", *(source / "tests/support" / file for file in SUPPORT),
        *(source / "src" / file for file in MONITORS), GOOGLETEST / "src" / "gtest_main.cc", framework, "-pthread")
    print(emulated(program, "--gtest_filter=-NativeWfe.*"))
    print(emulated(program, "--gtest_filter=-NativeWfe.*:Ticks.*", HEDDLE_TEST_NO_WFET="1"))
    print(emulated(program, "--gtest_filter=NativeWfe.*", HEDDLE_TEST_NO_WFET="1"))


# Instructions that store where other threads look: through any register but the stack's. Calls that store: memcpy, and
# the atomics that a processor without LSE gets from libgcc.
STORE = re.compile(r"^st\w*\s.*\[(?!sp|x29)")
STORING_CALL = re.compile(r"^bl\s.*<(memcpy|memmove|__aarch64_\w+|.*::apply_\w+\()")
BRANCH = re.compile(r"^(b|b\.\w+|cbn?z|tbn?z)\s(?:.*,\s*)?([0-9a-f]+)\s<")


def unordered_stores(listing: str) -> tuple[int, list[str]]:
    """The number of stores in the listing of one function, and those that a path reaches from another store, or from
    itself, without a barrier."""
    code: dict[int, str] = {}
    for line in listing.splitlines():
        if match := re.match(r"\s*([0-9a-f]+):\t(.*)", line):
            code[int(match.group(1), 16)] = match.group(2).replace("\t", " ").strip()
    stores, found = 0, []
    behind_store: dict[int, bool] = {}
    ways = [(min(code), False)]
    while ways:
        at, stored = ways.pop()
        if at not in code or behind_store.get(at, False) or (at in behind_store and not stored):
            continue
        behind_store[at] = stored
        text = code[at]
        if STORE.match(text) or STORING_CALL.match(text):
            stored = True
        elif text.startswith("dmb ish"):
            stored = False
        branch = BRANCH.match(text)
        if branch:
            ways.append((int(branch.group(2), 16), stored))
        if re.match(r"^br\s", text):  # the switch: what follows an end may be a case
            ends = re.compile(r"^(b|br|ret)\b(?!\.)")
            ways += [(next_at, stored) for next_at in code if ends.match(code.get(next_at - 4, ""))]
        elif not re.match(r"^(b\s|ret\b)", text):
            ways.append((at + 4, stored))
    for at, text in code.items():
        if STORE.match(text) or STORING_CALL.match(text):
            stores += 1
            if behind_store.get(at, True):  # not reached: the listing was not understood
                found.append(f"{at:x}: {text}")
    return stores, found


def check_order(source: Path, build: Path) -> None:
    compiler, objdump = find(f"{TRIPLE}-g++"), find(f"{TRIPLE}-objdump")
    build.mkdir(parents=True, exist_ok=True)
    for flags, is_right in (([], True), (["-include", str(build / "no_fence.h")], False)):
        (build / "no_fence.h").write_text("#include <heddle/hot_path.h>\n#undef HEDDLE_FENCE\n"
                                          "#define HEDDLE_FENCE(order) ((void)0)\n")
        code = build / "record.o"
        run(compiler, *FLAGS, "-std=c++20", "-DNDEBUG", "-I", source / "include", "-I", source / "src", *flags, "-c",
            source / "src/fabric/protocol/record.cpp", "-o", code)
        text = run(objdump, "-dC", "--no-show-raw-insn", code)
        functions = [part for part in text.split("\n\n") if "<heddle::fabric::apply(" in part.splitlines()[0]]
        if len(functions) != 1:
            sys.exit(f"{len(functions)} functions apply:\n{text}")
        stores, found = unordered_stores(functions[0])
        name = "with" if is_right else "without"
        print(f"{name} the barrier: {stores} stores, of which may pass another {len(found)}", *found, sep="\n")
        if stores < 3 or bool(found) == is_right:
            sys.exit(functions[0])


def main() -> int:
    what, source, build = sys.argv[1], Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve()
    {"library": check_library, "monitors": check_monitors, "order": check_order}[what](source, build)
    return 0


if __name__ == "__main__":
    sys.exit(main())

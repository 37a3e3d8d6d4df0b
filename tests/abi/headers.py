#!/usr/bin/env python3
"""Compiles every header alone.

    headers.py public ROOT COMPILER    include/: C99, C11, C17, C++11, C++17, C++20, strictly, with and without -O2
    headers.py internal ROOT COMPILER  src/ and launcher/: C++20
    headers.py names ROOT COMPILER     what shmem.h and its kin define beside the names of OpenSHMEM: nothing but
                                       heddle_*, HEDDLE_* and what the standard's own headers do (clang tells)
    headers.py linkage ROOT COMPILER   C++ programs need no extern "C", and may have it

Exit 0: all compile without a warning; 1: not; 77: there is no such compiler. COMPILER is gcc or clang-19; its C++
compiler is g++ or clang++-19.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-pedantic-errors", "-Wshadow", "-Wconversion", "-Wundef", "-Werror"]
STANDARDS = ["c99", "c11", "c17", "c++11", "c++17", "c++20"]
# They say themselves what includes them.
NOT_ALONE = {"heddle/generated/inline_names.h", "heddle/generated/inline_shmemx_names.h",
             "collective/node/kernels_body.h"}


def compile_header(compiler: str, header: Path, options: list[str]) -> str:
    """The compiler's complaints about a file that includes the header alone, twice (for its guard)."""
    is_cpp = any(option.startswith("-std=c++") for option in options)
    source = f'#include "{header}"\n' * 2 + "extern int used; int used;\n"
    command = [compiler, "-x", "c++" if is_cpp else "c", *options, *WARNINGS, "-c", "-o", os.devnull, "-"]
    result = subprocess.run(command, input=source, capture_output=True, text=True)
    return "" if result.returncode == 0 else f"{' '.join(command)}  < {header.name}\n{result.stderr}"


def cpp_compiler(compiler: str) -> str:
    return compiler.replace("clang", "clang++") if "clang" in compiler else compiler.replace("gcc", "g++")


def public(root: Path, compiler: str) -> list[tuple[str, Path, list[str]]]:
    include = root / "include"
    jobs = []
    for header in sorted(include.rglob("*.h")):
        if str(header.relative_to(include)) in NOT_ALONE:
            continue
        for standard in STANDARDS:
            program = cpp_compiler(compiler) if "++" in standard else compiler
            jobs += [(program, header, [f"-std={standard}", level, f"-I{include}"]) for level in ("-O0", "-O2")]
    return jobs


def internal(root: Path, compiler: str) -> list[tuple[str, Path, list[str]]]:
    options = ["-std=c++20", "-O1", "-fno-exceptions", "-fno-rtti", f"-I{root / 'src'}", f"-I{root / 'include'}"]
    return [(cpp_compiler(compiler), header, options)
            for folder in ("src", "launcher") for header in sorted((root / folder).rglob("*.h"))
            if str(header.relative_to(root / folder)) not in NOT_ALONE]


PUBLIC = ["shmem.h", "shmemx.h", "pshmem.h", "pshmemx.h", "mpp/shmem.h", "mpp/shmemx.h"]
ALLOWED = re.compile(r"(p?shmemx?_|SHMEMX?_|_SHMEM_|heddle_|HEDDLE_)\w*")
EXTENSION = re.compile(r"p?shmemx_|SHMEMX_")
OLD = {prefix + name for prefix in ("", "p")
       for name in ("start_pes", "_my_pe", "_num_pes", "shmalloc", "shfree", "shrealloc", "shmemalign")}
STANDARD_HEADERS = "#include <stddef.h>\n#include <stdint.h>\n"


def run(command: list[str], source: str) -> str:
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout


def declared_names(tree: dict) -> set[str]:
    """What the top of a syntax tree declares: functions, types, variables, tags and enumerators."""
    found = set()
    for node in tree.get("inner", []):
        if "name" in node and not node.get("isImplicit"):
            found.add(node["name"])
        if node["kind"] in ("LinkageSpecDecl", "EnumDecl"):
            found |= declared_names(node)
    return found


def macros(command: list[str], source: str) -> set[str]:
    """The macros that the compiler knows behind a source."""
    return set(re.findall(r"^#define (\w+)", run([*command, "-dM", "-E", "-"], source), flags=re.M))


def identifiers(command: list[str], source: str) -> set[str]:
    """The names that a source declares; clang's."""
    return declared_names(json.loads(run([*command, "-Xclang", "-ast-dump=json", "-fsyntax-only", "-"], source)))


def names(root: Path, compiler: str) -> list[str]:
    """The names that a header makes a program have, and may not."""
    wrong = []
    for standard in ("c99", "c11", "c++11", "c++20"):
        is_cpp = "++" in standard
        command = [cpp_compiler(compiler) if is_cpp else compiler, "-x", "c++" if is_cpp else "c", f"-std={standard}",
                   f"-I{root / 'include'}"]

        readers = [("macro", macros)] + ([("name", identifiers)] if "clang" in compiler else [])
        for what, reader in readers:
            given = reader(command, STANDARD_HEADERS)
            for header in PUBLIC:
                found = reader(command, f"#include <{header}>\n") - given
                left = {name for name in found if not ALLOWED.fullmatch(name)} - OLD
                if not header.endswith("x.h"):  # what the standard does not have is in shmemx.h alone
                    left |= {name for name in found if EXTENSION.match(name)}
                wrong += [f"{header}, {standard}: the {what} {name} is not ours to define" for name in sorted(left)]
    return wrong


PROGRAM = """
static long cell;
int use(shmem_team_t team);
int use(shmem_team_t team) {
    shmem_long_p(&cell, 1, 0);
    shmem_p(&cell, 1L, 0);
    shmem_put(SHMEM_CTX_DEFAULT, &cell, &cell, 1, 0);
    return shmem_sync(team) + shmem_sum_reduce(team, &cell, &cell, 1) + shmem_test(&cell, SHMEM_CMP_EQ, 1L);
}
"""


def linkage(root: Path, compiler: str) -> list[str]:
    """What is wrong with the names that a C++ program asks the linker for."""
    wrong = []
    for lead, tail in (("", ""), ('extern "C" {\n', "}\n")):
        for header in PUBLIC:
            source = f"{lead}#include <{header}>\n{tail}{PROGRAM}"
            with tempfile.NamedTemporaryFile(suffix=".o") as output:
                command = [cpp_compiler(compiler), "-x", "c++", "-std=c++11", "-O0", f"-I{root / 'include'}",
                           "-c", "-o", output.name, "-"]
                result = subprocess.run(command, input=source, capture_output=True, text=True)
                if result.returncode != 0:
                    wrong.append(f"{header}, {'in' if lead else 'without'} extern C:\n{result.stderr[:600]}")
                    continue
                wanted = subprocess.check_output(["nm", "-u", output.name], text=True).split()
                right = {"shmem_long_p", "shmem_long_put", "shmem_ctx_long_put", "shmem_team_sync",
                         "shmem_long_sum_reduce", "shmem_long_test"}
                wrong += [f"{header}: asks for {name}" for name in wanted if "shmem" in name and name not in right]
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", choices=["public", "internal", "names", "linkage"])
    parser.add_argument("root", type=Path)
    parser.add_argument("compiler")
    options = parser.parse_args()
    if not shutil.which(options.compiler) or not shutil.which(cpp_compiler(options.compiler)):
        print(f"skipped: there is no {options.compiler}")
        return 77
    if options.which in ("names", "linkage"):
        wrong = (names if options.which == "names" else linkage)(options.root, options.compiler)
        print("\n".join(wrong[:20]) or f"{len(PUBLIC)} headers, nothing wrong")
        return bool(wrong)
    jobs = (public if options.which == "public" else internal)(options.root, options.compiler)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = [text for text in pool.map(lambda job: compile_header(*job), jobs) if text]
    print("\n".join(complaints[:10]) or f"{len(jobs)} compilations without a warning")
    if len(complaints) > 10:
        print(f"... and {len(complaints) - 10} more")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())

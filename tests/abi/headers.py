#!/usr/bin/env python3
"""Compiles every header alone.

    headers.py public ROOT COMPILER    include/: C99, C11, C17, C++11, C++17, C++20, strictly, with and without -O2
    headers.py internal ROOT COMPILER  src/ and launcher/: C++20

Exit 0: all compile without a warning; 1: not; 77: there is no such compiler. COMPILER is gcc or clang-19; its C++
compiler is g++ or clang++-19.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-pedantic-errors", "-Wshadow", "-Wconversion", "-Wundef", "-Werror"]
STANDARDS = ["c99", "c11", "c17", "c++11", "c++17", "c++20"]
NOT_ALONE = {"heddle/names.h"}  # says itself that heddle/inline.h includes it


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
            for folder in ("src", "launcher") for header in sorted((root / folder).rglob("*.h"))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", choices=["public", "internal"])
    parser.add_argument("root", type=Path)
    parser.add_argument("compiler")
    options = parser.parse_args()
    if not shutil.which(options.compiler) or not shutil.which(cpp_compiler(options.compiler)):
        print(f"skipped: there is no {options.compiler}")
        return 77
    jobs = (public if options.which == "public" else internal)(options.root, options.compiler)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = [text for text in pool.map(lambda job: compile_header(*job), jobs) if text]
    print("\n".join(complaints[:10]) or f"{len(jobs)} compilations without a warning")
    if len(complaints) > 10:
        print(f"... and {len(complaints) - 10} more")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())

"""Deprecated names warn: each call of one gets one warning from gcc and clang, in C11 and C++; no other call gets any,
and none with HEDDLE_SILENCE_DEPRECATED. What is compiled here is written from api/openshmem.toml."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "api")]
import generate  # noqa: E402
from families import FAMILIES  # noqa: E402
from make_tables import all_families  # noqa: E402

INCLUDE = HERE.parent.parent / "include"
COMPILERS = {"gcc-c11": ["gcc", "-std=c11", "-ftrack-macro-expansion=0"],
             "gcc-c17": ["gcc", "-std=c17", "-ftrack-macro-expansion=0"],
             "gcc-cxx11": ["g++", "-std=c++11", "-ftrack-macro-expansion=0"],
             "gcc-cxx20": ["g++", "-std=c++20", "-ftrack-macro-expansion=0"],
             "clang-c11": ["clang-19", "-std=c11"], "clang-cxx11": ["clang++-19", "-std=c++11"],
             "clang-cxx20": ["clang++-19", "-std=c++20"]}
compilers = pytest.mark.parametrize("compiler", COMPILERS)
SECTIONS = generate.load()
EVERY = [family for _, families in SECTIONS for family in families]


def value(part):
    """A value for a parameter, as `TYPE name`."""
    c_type = re.sub(r"\w+$", "", part.strip()).strip()
    return f"({c_type})0"


def values(function):
    parts = [] if function.arguments == "void" else function.arguments.split(",")
    return ", ".join(value(part) for part in parts if part.strip() != "...")


def functions(deprecated):
    return [f"({function.name})({values(function)});" for family in EVERY for function in family.every()
            if bool(function.deprecated) == deprecated]


def generics(deprecated):
    """Calls of generics all of whose families are deprecated, or of functions of the others that are not."""
    lines = []
    for name, families in generate.by_generic(SECTIONS).items():
        if all(family.deprecated for family in families) != deprecated:
            continue
        for family in families:
            if bool(family.deprecated) != deprecated:
                continue
            for form in family.forms():
                chosen = [function for _, function in family.choices(form)] or family.functions(form)
                lines += [f"{name}({values(function)});" for function in chosen]
    return lines


def warned(compiler, lines, *options):
    """How many warnings of deprecation each line got; and there are no other complaints."""
    command = COMPILERS[compiler]
    if not shutil.which(command[0]):
        pytest.skip(f"there is no {command[0]}")
    language = "c++" if "++" in command[0] else "c"
    text = "#include <shmem.h>\nvoid calls(void);\nvoid calls(void) {\n" + "\n".join(lines) + "\n}\n"
    # -O0: a constant null pointer in inlined code is another warning.
    command = [*command, "-x", language, "-O0", "-Wall", "-Wextra", "-Wno-unused-value", "-fsyntax-only",
               f"-I{INCLUDE}", *options, "-"]
    if "clang" in compiler:
        command[1:1] = ["-ferror-limit=0", "-fmacro-backtrace-limit=1"]
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    counts = [0] * len(lines)
    for line in result.stderr.splitlines():
        found = re.match(r"<stdin>:(\d+):\d+: warning: .*deprecated", line)
        if found:
            counts[int(found.group(1)) - 4] += 1
        else:
            assert not re.search(r": (warning|error):", line), line
    assert result.returncode == 0, result.stderr[-3000:]
    return dict(zip(lines, counts))


@compilers
def test_deprecated_functions_warn_once(compiler):
    counts = warned(compiler, functions(True))
    assert len(counts) > 100
    assert {line: count for line, count in counts.items() if count != 1} == {}


@compilers
def test_deprecated_generics_warn_once(compiler):
    counts = warned(compiler, generics(True))
    assert len(counts) >= 8 * 3
    assert {line: count for line, count in counts.items() if count != 1} == {}


@compilers
def test_others_do_not_warn(compiler):
    lines = functions(False) + generics(False)
    assert {"shmem_wait_until((int *)0, (int)0, (int)0);", "shmem_sync((shmem_team_t)0);"} <= set(lines)
    assert [line for line, count in warned(compiler, lines).items() if count] == []


@compilers
def test_silenced(compiler):
    lines = functions(True) + generics(True)
    silent = warned(compiler, lines, "-DHEDDLE_SILENCE_DEPRECATED")
    assert [line for line, count in silent.items() if count] == []


def test_every_family_has_its_test():
    """families.py is complete (all_families stops otherwise)."""
    assert all_families().keys() == FAMILIES.keys()

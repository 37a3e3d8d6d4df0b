"""The programs of the README and of the pages in docs, as a reader builds and runs them. A block of code is a program
when its first line names a file: "```c stencil.c -fopenmp"; the words behind the name are options of the compiler."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["HEDDLE_TEST_BUILD"])
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ALL = {name: (options.split(), text) for name, options, text in re.findall(
    r"^```\w+ (\w+\.\w+)([^\n]*)\n(.*?)^```$", "".join(page.read_text() for page in PAGES), flags=re.S | re.M)}
PYTHON = {name: text for name, (_, text) in ALL.items() if name.endswith(".py")}
PROGRAMS = {name: program for name, program in ALL.items() if name not in PYTHON}

# What PE `me` of n prints; the other programs check their answer, and PE 0 says that it is right.
LINES = {
    "hello.c": lambda me, n: f"PE {me} of {n}",
    "hello.py": lambda me, n: f"PE {me} of {n}: {(me + n - 1) % n} is to my left",
    "ring.c": lambda me, n: f"PE {me} of {n}: my left neighbour is {(me + n - 1) % n}",
}


# What the indented pieces of programs name and do not declare.
AROUND = """#include <shmemx.h>
static shmem_team_t team;
static shmemx_request_t request;
static double dest[8], source[8], cell[8], value[8];
static size_t nreduce = 8;
static int n = 8, neighbour[8], my_pe, n_pes;
void broadcast(void* bytes, size_t size);
int piece(void);
int piece(void) {
    (void)team, (void)request, (void)dest, (void)source, (void)cell, (void)value, (void)nreduce, (void)n;
    (void)neighbour, (void)my_pe, (void)n_pes;
%s
    return 0;
}
"""


def pieces():
    """The indented blocks of the pages that call functions, and are no prototypes."""
    found = []
    for page in PAGES:
        prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.S | re.M)
        blocks = re.findall(r"(?:^    .*\n|^ *\n(?=    ))+", prose, flags=re.M)
        found += [(page.stem, block) for block in blocks
                  if re.search(r"^ +(?!void|int|TYPE)\S*.*\bshmemx?_\w+\(.*;", block, re.M)]
    return found


def test_blocks_of_c_are_programs_or_parts_of_some():
    unnamed = [page.relative_to(ROOT) for page in PAGES if re.search(r"^ *```(?:c|cpp)\s*$", page.read_text(), re.M)]
    assert list(map(str, unnamed)) == ["docs/finding-bugs.md"]  # whose test compares them with their programs


def test_pieces_of_programs_compile(tmp_path):
    found = pieces()
    assert sorted(page for page, _ in found) == ["nonblocking-collectives", "requests", "running"]
    for page, block in found:
        source = tmp_path / f"{page}.c"
        source.write_text(AROUND % re.sub(r"^ *\.\.\.", "", block, flags=re.M))
        done = subprocess.run([BUILD / "bin/oshcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-c", source, "-o",
                               tmp_path / "a.o"], capture_output=True, text=True)
        assert done.returncode == 0, f"{page}: {done.stderr}"


# The same of C++ and of Fortran: what a piece of such a page names, before it, and where its statements begin.
AROUND_CPP = """#include <shmem.hpp>
#include <span>
#include <vector>
shmem::task add_up(std::span<double> dest);
%s
void piece(int n, std::vector<std::span<double>>& parts, shmem::array<double>& source);
void piece(int n, std::vector<std::span<double>>& parts, shmem::array<double>& source) {
%s
}
"""
AROUND_FORTRAN = """program piece
use shmem
implicit none
integer(c_int) :: pe = 0
integer :: rows = 2, columns = 3
%s
end program
"""


def indented(page, pattern):
    prose = re.sub(r"^```.*?^```$", "", (ROOT / f"docs/user/{page}.md").read_text(), flags=re.S | re.M)
    return [block for block in re.findall(r"(?:^    .*\n|^ *\n(?=    ))+", prose, flags=re.M)
            if re.search(pattern, block)]


def compiles(tmp_path, compiler, name, text):
    (tmp_path / name).write_text(text)
    done = subprocess.run([BUILD / "bin" / compiler[0], *compiler[1:], "-Wall", "-Wextra", "-Werror", "-c", name, "-o",
                           "a.o"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + text


def test_pieces_of_cpp_compile(tmp_path):
    whole, piece = indented("cpp", "shmem::")
    compiles(tmp_path, ["oshc++", "-std=c++20"], "whole.cpp", whole)
    function, statements = piece.split("\n\n")
    compiles(tmp_path, ["oshc++", "-std=c++20"], "piece.cpp", AROUND_CPP % (function, statements))


def test_pieces_of_fortran_compile(tmp_path):
    if not (BUILD / "bin/oshfort").exists():
        pytest.skip("this build has no Fortran")
    found = indented("fortran", "::")
    assert len(found) == 3
    for block in found:
        compiles(tmp_path, ["oshfort", "-Wno-unused-variable"], "piece.f90", AROUND_FORTRAN % block)


@pytest.fixture(scope="session")
def binaries(tmp_path_factory):
    """Name to executable."""
    folder = tmp_path_factory.mktemp("programs")
    made = {}
    for name, (options, text) in PROGRAMS.items():
        source = folder / name
        source.write_text(text)
        made[name] = source.with_suffix("")
        compiler = ["oshcc", "-std=gnu11"] if source.suffix == ".c" else ["oshc++", "-std=c++20"]
        subprocess.run([BUILD / "bin" / compiler[0], *compiler[1:], "-O2", "-Wall", "-Wextra", "-Werror", *options,
                        source, "-o", made[name]], check=True)
    return made


def run(program, pes, **settings):
    return subprocess.run([BUILD / "bin/oshrun", "-n", str(pes), *program], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "SHMEM_SYMMETRIC_SIZE": "64M", **settings})


def test_all_are_there():
    assert sorted(PROGRAMS) == ["batches.c", "flag.c", "hello.c", "log.c", "pipeline.cpp", "reduction.c", "ring.c",
                                "rod.c", "rows.c", "smooth.c", "stencil.c"]
    assert sorted(PYTHON) == ["exchange.py", "hello.py", "requests.py", "teams.py", "threads.py"]


@pytest.mark.parametrize("settings",
                         [{}, {"OMP_NUM_THREADS": "1", "HEDDLE_ASYNC_COPY": "always"}, {"HEDDLE_CHECK": "1"}],
                         ids=["plain", "one_thread", "checked"])
@pytest.mark.parametrize("pes", [1, 2, 3, 4, 7, 8])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_passes(binaries, name, pes, settings):
    check(name, pes, run([binaries[name]], pes, **{"OMP_NUM_THREADS": "3", **settings}))


@pytest.mark.parametrize("pes", [1, 4])
@pytest.mark.parametrize("name", PYTHON)
def test_python_program_passes(tmp_path, name, pes):
    (tmp_path / name).write_text(PYTHON[name])
    check(name, pes, run([sys.executable, tmp_path / name], pes, HEDDLE_PREFIX=str(BUILD),
                         PYTHONPATH=str(ROOT / "python")))


def check(name, pes, result):
    assert result.returncode == 0, result.stderr
    if name in LINES:
        assert sorted(result.stdout.splitlines()) == sorted(LINES[name](me, pes) for me in range(pes))
    else:
        assert result.stdout == f"{name.split('.')[0]}: passed, {pes} PEs\n"

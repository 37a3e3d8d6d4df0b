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
    assert sorted(PROGRAMS) == ["flag.c", "hello.c", "log.c", "pipeline.cpp", "reduction.c", "ring.c", "rod.c",
                                "rows.c", "smooth.c", "stencil.c"]
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

"""Each inlined function of a program that was compiled for no tool is counted by a tool that defines all functions, as
often as it was called."""

import collections
import functools
import subprocess
import sys

import pytest
from conftest import HERE, LIMIT_S
from make_sources import functions, inlined, times

INLINED = [function.name for function in inlined()]
EVERY = {function.name for function in functions()}


@pytest.fixture(scope="session")
def sources(made):
    for what in ("wrappers", "calls"):
        subprocess.run([sys.executable, HERE / "make_sources.py", what, made.folder / f"every_{what}.c"], check=True,
                       timeout=LIMIT_S)
    return made


SILENT = ["-O1", f"-I{HERE}", "-DHEDDLE_SILENCE_DEPRECATED", "-Wno-deprecated-declarations"]


@pytest.fixture(scope="session")
def program(sources):
    return sources.make("every", "every_calls.c", options=[*SILENT, "-O2"])


@pytest.fixture(scope="session")
def make_tool(sources):
    return functools.cache(lambda *options: sources.tool(f"every{'_'.join(options)}.so", "every_wrappers.c",
                                                         options=[*SILENT, *options]))


def check(made, program, *arguments, tool, n, **settings):
    file = made.folder / "counts_of_all"
    file.unlink(missing_ok=True)
    made.run(program, *arguments, tool=tool, n=n, HEDDLE_TEST_COUNTS=str(file), **settings)
    counts = collections.Counter()
    for line in file.read_text().splitlines():
        name, count = line.split()
        counts[name] += int(count)
    threads = arguments[0] if arguments else 1
    wrong = [f"{name}: {counts[name]}, right would be {times(i) * n * threads}"
             for i, name in enumerate(INLINED) if counts[name] != times(i) * n * threads]
    assert len(INLINED) > 1200 and not wrong, wrong
    others = {name: count for name, count in counts.items() if name not in INLINED}
    assert others == {"shmem_init_thread": n, "shmem_my_pe": n, "shmem_n_pes": n, "shmem_barrier_all": 2 * n,
                      "shmemx_request_wait": n * threads, "shmem_quiet": n * threads, "shmem_finalize": n}
    assert set(counts) <= EVERY


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("way", [[], ["-DBY_TWIN"]], ids=["by_next", "by_twin"])
def test_preloaded(sources, program, make_tool, way, n):
    check(sources, program, tool=make_tool(*way), n=n)


def test_threads(sources, program, make_tool):
    check(sources, program, 5, tool=make_tool(), n=2)


def test_linked_before_the_library(sources, make_tool):
    tool = make_tool("-DBY_TWIN")
    linked = sources.make("every_linked", "every_calls.c",
                          options=[*SILENT, "-O2", "-Wl,--no-as-needed", tool, f"-Wl,-rpath,{sources.folder}"])
    check(sources, linked, tool=None, n=2)


def test_forced(sources, program, make_tool):
    check(sources, program, tool=make_tool(), n=2, HEDDLE_OUT_OF_LINE="1")

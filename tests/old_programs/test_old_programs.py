"""Programs of 1.0 to 1.3 run clean: status 0, each PE says once that its answer is right, and nothing is complained of.
`make test` has a sample, compiled together; with OLD_PROGRAMS=all each is compiled by itself, by gcc and by clang."""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "api")]
import generate  # noqa: E402
from table import programs  # noqa: E402
from write import one_file, suffix  # noqa: E402

BUILD = pathlib.Path(os.environ["HEDDLE_BUILD"])
STEP = int(os.environ["OLD_PROGRAMS_STEP"])
LIMIT_S = 60
PROGRAMS = programs()
WAYS = {  # compiler: C and C++, numbers of PEs
    "gcc": ("gcc", "g++", (2, 3)),
    "clang": ("clang-19", "clang++-19", (2, 4)),
}
OPTIONS = [["-std=gnu99", "-O0"], ["-O2"], ["-O3", "-fno-pie", "-no-pie"], ["-O1"], ["-std=gnu11", "-O3"]]  # in turns


def complaint(program, command, pes):
    """What is wrong with a run; None: nothing."""
    environment = {**os.environ, "SMA_SYMMETRIC_SIZE": "16M"}
    result = subprocess.run([BUILD / "bin" / "oshrun", "-n", str(pes), *command], stdin=subprocess.DEVNULL, check=False,
                            capture_output=True, text=True, timeout=LIMIT_S, env=environment)
    said = sorted(line for line in result.stdout.splitlines() if line.startswith(f"{program.name}: "))
    right = [f"{program.name}: PE {pe} of {pes} passed" for pe in range(pes)]
    if result.returncode == 0 and result.stderr == "" and said == right:
        return None
    return f"{program.name}, {pes} PEs: status {result.returncode}\n{result.stdout[-600:]}{result.stderr[-600:]}"


def build_and_run(way, number, folder):
    program = PROGRAMS[number]
    compilers, pes = WAYS[way][:2], WAYS[way][2]
    source = folder / (program.name + suffix(program))
    source.write_text(one_file(program))
    is_c = program.language == "c"
    options = [option for option in OPTIONS[number % len(OPTIONS)] if is_c or not option.startswith("-std")]
    command = [BUILD / "bin" / ("oshcc" if is_c else "oshc++"), "-DHEDDLE_SILENCE_DEPRECATED", "-Wall", "-Werror",
               *options, source, "-o", source.with_suffix("")]
    compiled = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False, env={
        **os.environ, "HEDDLE_CC": compilers[0], "HEDDLE_CXX": compilers[1]})
    if compiled.returncode != 0:
        return f"{program.name}: {compiled.stderr[:1000]}"
    return complaint(program, [source.with_suffix("")], pes[number % len(pes)])


def test_the_table():
    assert len(PROGRAMS) == 300 and len({program.name for program in PROGRAMS}) == 300
    assert len({one_file(program) for program in PROGRAMS}) == 300
    everything = "\n".join(map(one_file, PROGRAMS))
    words = set(re.findall(r"\w+", everything))
    for _, families in generate.load():
        for family in families:
            functions = {function.name for function in family.every() if function.deprecated}
            assert not functions or functions & words, f"no program calls any of {sorted(functions)[:4]}"
    constants = re.findall(r"#define (_SHMEM_\w+)", (HERE.parents[1] / "include/heddle/constants.h").read_text())
    assert len(constants) > 10 and set(constants) <= words, sorted(set(constants) - words)
    assert "<mpp/shmem.h>" in everything


@pytest.mark.skipif(os.environ.get("OLD_PROGRAMS") == "all", reason="all of them run")
def test_a_sample():
    chosen = PROGRAMS[::STEP]
    assert len(chosen) >= 20
    wrong = [complaint(program, [BUILD / "tests/old_programs" / f"old_programs_{program.language.replace('+', 'p')}",
                                 program.name], 2 + number % 2) for number, program in enumerate(chosen)]
    assert not any(wrong), "\n".join(filter(None, wrong))


@pytest.mark.skipif(os.environ.get("OLD_PROGRAMS") != "all", reason="make test-all")
@pytest.mark.parametrize("way", WAYS)
def test_all(way, tmp_path):
    if not shutil.which(WAYS[way][0]):
        pytest.skip(f"{WAYS[way][0]} is not here")
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as workers:
        wrong = list(workers.map(lambda number: build_and_run(way, number, tmp_path), range(len(PROGRAMS))))
    assert not any(wrong), f"{sum(map(bool, wrong))} of {len(PROGRAMS)}:\n" + "\n".join(filter(None, wrong))

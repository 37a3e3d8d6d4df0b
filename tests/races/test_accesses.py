"""oshcc -fheddle-races: races between a call and a load or store of the program are reported with both places; cured
programs are silent, and so are all without HEDDLE_RACES."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

BUILD = pathlib.Path(os.environ["HEDDLE_BUILD"])
SOURCE = pathlib.Path(__file__).resolve().parent / "accesses.c"
STATUS_RACES = 66
TIMEOUT_S = 300  # a hang: anything here ends within a second on a machine that is free

# What is missing, and how the program's own access is called.
CASES = {
    "load": ("a wait", "a load"),
    "store": ("a wait", "a store"),
    "copy": ("a wait", "a load"),
    "fill": ("a wait", "a store"),
    "in_a_thread": ("a wait", "a load"),
    "in_a_loop": ("a wait", "a load"),
    "source_of_nbi": ("shmem_quiet before the buffer is used again", "a store"),
    "part_of_nbi": ("shmem_quiet before the buffer is used again", "a store"),
    "dest_of_nbi": ("shmem_quiet before the buffer is used again", "a load"),
    "last_word": ("a wait of PE 1 for the signal", "a load"),
    "through_a_pointer": ("a wait", "a load"),
}
RIGHT = ["neighbour", "language_atomics", "many_orders", "in_a_handler", "to_the_end"]
# binutils of 2023 do not know the calls of inlined functions in what clang writes by itself.
WAYS = [("gcc", "-O0"), ("gcc", "-O2"), *([("clang-19", "-O1 -gdwarf-4")] if shutil.which("clang-19") else [])]


def line_of(mark, case):
    lines = SOURCE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if re.search(rf"{mark}: [\w ]*\b{case}\b", line))


@pytest.fixture(scope="module", params=WAYS, ids=" ".join)
def program(request, tmp_path_factory):
    compiler, level = request.param
    path = tmp_path_factory.mktemp("accesses") / "accesses"
    subprocess.run([BUILD / "bin/oshcc", "-fheddle-races", "-g", *level.split(), "-Wall", "-Werror", SOURCE, "-o", path,
                    "-pthread"], check=True, timeout=TIMEOUT_S, env={**os.environ, "HEDDLE_CC": compiler})
    return path


def run(program, pes, *arguments, races="1", **environment):
    command = [BUILD / "bin" / "oshrun", "-n", pes, program, *arguments]
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=TIMEOUT_S, check=False,
                          env={**os.environ, "HEDDLE_RACES": races, "SHMEM_SYMMETRIC_SIZE": "4M", **environment})


def is_silent(result, pes):
    return (result.returncode, result.stdout, result.stderr) == (0, "goes on\n" * pes, "")


@pytest.mark.parametrize("pes", [2, 3, 7])
@pytest.mark.parametrize("case", CASES)
def test_a_race_is_reported(program, case, pes):
    result = run(program, pes, case, "racy")
    assert result.returncode == STATUS_RACES and result.stdout == "goes on\n" * pes, result
    races = [line for line in result.stderr.splitlines() if " race: " in line]
    assert len(races) == 1, result
    missing, name = CASES[case]
    for mark in ("first", "second"):
        assert f", accesses.c:{line_of(mark, case)})" in races[0], races
    assert f"missing: {missing}" in races[0] and f"{name} (at accesses+0x" in races[0], races
    assert is_silent(run(program, pes, case, "racy", races="0"), pes)


@pytest.mark.parametrize("pes", [2, 3, 7])
@pytest.mark.parametrize("case", [*CASES, *RIGHT])
def test_correct_programs_are_silent(program, case, pes):
    for _ in range(3):
        result = run(program, pes, case, "cured")
        assert is_silent(result, pes), result


NODES_OF_TWO = {"HEDDLE_TEST_PES_PER_NODE": "2", "HEDDLE_NET_TRANSPORTS": "tcp"}


@pytest.mark.parametrize("case", ["load", "store", "in_a_loop", "source_of_nbi"])
def test_a_race_between_nodes_is_reported(program, case):
    result = run(program, 2, case, "racy", HEDDLE_TEST_PES_PER_NODE="1", HEDDLE_NET_TRANSPORTS="tcp")
    assert result.returncode == STATUS_RACES and result.stdout == "goes on\n" * 2, result
    assert f"missing: {CASES[case][0]}" in result.stderr, result


@pytest.mark.parametrize("case", [*CASES, *RIGHT])
def test_correct_programs_are_silent_between_nodes(program, case):
    result = run(program, 4, case, "cured", **NODES_OF_TWO)
    assert is_silent(result, 4), result


def test_pes_of_a_node_that_is_not_that_of_the_search(program):
    """Loads of a flag in a loop tell faster than the search takes."""
    for _ in range(5):
        result = run(program, 4, "language_atomics", "cured", "2", **NODES_OF_TWO)
        assert is_silent(result, 4), result


def test_the_flags_of_the_wrapper(tmp_path):
    """Objects of gcc -fsanitize=thread may be linked, too; the option stands anywhere; a library has it as well."""
    def call(*words):
        subprocess.run([str(word) for word in words], check=True, timeout=TIMEOUT_S, cwd=tmp_path)
    oshcc = BUILD / "bin/oshcc"
    call("gcc", "-fsanitize=thread", "-Wno-tsan", "-g", f"-I{BUILD}/include", "-c", SOURCE, "-o", "object.o")
    call(oshcc, "object.o", "-fheddle-races", "-o", "program", "-pthread")
    assert run(tmp_path / "program", 2, "load", "racy").returncode == STATUS_RACES
    call(oshcc, "-fheddle-races", "-shared", "-fPIC", SOURCE, "-o", "libprogram.so")
    call(sys.executable, "-c", "import ctypes, os; ctypes.CDLL('./libprogram.so', os.RTLD_NOW)")
    shown = subprocess.run([oshcc, "-fheddle-races", "-show", "x.c"], check=True, capture_output=True, text=True).stdout
    assert " -fsanitize=thread " in shown and "-fheddle-races" not in shown, shown

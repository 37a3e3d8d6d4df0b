"""The conformance suite and the examples on several hosts, by oshrun: those that matter, each in one shape;
with --every (`make test-hosts`) each in every shape, and what does not run here is listed with the reason.

A program that was compiled in several ways runs in every shape as `inline`, and in one shape in each other way: the
ways differ in what the compiler sees, not in what the library is asked for."""

import itertools
import pathlib
import re

import pytest
from conftest import BUILD, SHAPES

FOLDERS = {"conformance_": BUILD / "tests" / "conformance", "example_": BUILD / "examples"}
BUILT = (BUILD / "tests" / "multihost" / "programs").read_text().split()  # by CMake: all executables of both folders
OTHER_WAYS = re.compile("_(calls|debug|generic|cxx11|cxx20|static_data_(?!inline).*)$")
LIMIT_S = 300
LIMIT_OF_EVERY_S = 280  # some are thousands of round trips

# What a program needs beside its name.
ARGUMENTS = {"conformance_heap_size": ["1048576"], "conformance_touch_heap": ["16"],
             **{f"conformance_global_exit_{way}": ["5"] for way in ["inline", "calls", "debug"]}}
STATUS = {name: 5 for name in ARGUMENTS if "global_exit" in name}
SETTINGS = {"conformance_heap_size": {"SHMEM_SYMMETRIC_SIZE": "1m"},
            "conformance_beyond_cache": {"SHMEM_SYMMETRIC_SIZE": "2g", "HEDDLE_VECTOR": "baseline"}}
LEFT_OUT = {"conformance_no_locks": "it asks that nothing takes a lock or makes a system call: so on a node alone",
            "conformance_message_counts": "test_message_counts.py gives it its collective, and counts",
            "conformance_captured_far": "it asks for two PEs that are a node each, and for manual progress",
            "conformance_emulated_info": "heddle-info with an instruction emulated, on the machine that it runs on"}

CHOSEN = ["example_heat2d", "conformance_rma_inline", "example_isort", "conformance_strided_inline",
          "example_workqueue", "conformance_signals_inline", "example_matmul", "conformance_waits_inline",
          "example_ring", "conformance_requests_inline", "example_teams2d", "conformance_static_data_inline",
          "example_hashtable", "conformance_team_contexts_inline", "example_locks", "conformance_data_movement_inline",
          "example_prefix", "conformance_reductions_inline", "example_legacy", "conformance_sequences",
          "conformance_stress", "conformance_schedules", "conformance_concurrent_load"]


def every():
    """(program, shape), or the program with the reason why it is left out."""
    turn = itertools.cycle(SHAPES)
    for name in BUILT:
        if name in LEFT_OUT:
            yield pytest.param(name, "", marks=pytest.mark.skip(reason=f"{name}: {LEFT_OUT[name]}"))
            continue
        for shape in [next(turn)] if OTHER_WAYS.search(name) else SHAPES:
            yield name, shape


def pytest_generate_tests(metafunc):
    if "program" in metafunc.fixturenames:
        cases = every() if metafunc.config.getoption("every") else zip(CHOSEN, itertools.cycle(SHAPES))
        metafunc.parametrize("program,shape", list(cases))


def settings_of(program, shape):
    number = SHAPES.index(shape)
    settings = {"SHMEM_SYMMETRIC_SIZE": "64m", "HEDDLE_TEST_CTX": number % 2,
                "HEDDLE_TEST_PES": sum(map(int, shape.split("+"))),
                "HEDDLE_TEST_REQUEST": ["null", "private", "shared", "private"][number]}
    return {**settings, **SETTINGS.get(program, {})}


def path_of(program):
    prefix = next(prefix for prefix in FOLDERS if program.startswith(prefix))
    return FOLDERS[prefix] / program


def test_answers_are_right(oshrun, request, program, shape):
    limit = LIMIT_OF_EVERY_S if request.config.getoption("every") else LIMIT_S
    result = oshrun.run(shape, path_of(program), *ARGUMENTS.get(program, []), limit=limit,
                        settings=settings_of(program, shape))
    assert result.status == STATUS.get(program, 0), result


@pytest.mark.every
@pytest.mark.parametrize("on_hosts", ["2+2", "1+1+2"])
def test_a_million_random_operations(oshrun, on_hosts):
    result = oshrun.run(on_hosts, path_of("conformance_stress"), limit=LIMIT_OF_EVERY_S,
                        settings={"SHMEM_SYMMETRIC_SIZE": "64m", "HEDDLE_TEST_OPERATIONS": 1000000})
    assert result.status == 0 and "stress: 1000000 operations" in result.lines, result


def test_programs_of_different_size_in_one_job(oshrun, programs):
    """The static data of a PE on another host is found although it has another size."""
    script = programs / "mixed"
    script.write_text(f'#!/bin/sh\n[ $((PMIX_RANK % 2)) = 0 ] && exec "{path_of("conformance_small")}"\n'
                      f'exec "{path_of("conformance_large")}"\n')
    script.chmod(0o755)
    result = oshrun.run("1+2", script)
    assert result.status == 0, result


def test_what_is_said_of_programs_is_of_such_that_there_are():
    assert {*ARGUMENTS, *SETTINGS, *LEFT_OUT, *CHOSEN} <= set(BUILT)


def test_every_source_with_a_main_is_built():
    """A program that CMake does not know would be left out here in silence."""
    root = pathlib.Path(__file__).resolve().parents[2]
    sources = [*root.glob("tests/conformance/*/*.cpp"), *root.glob("examples/*.c"), *root.glob("examples/*.cpp")]
    stems = {source.stem for source in sources if re.search(r"^int main\(", source.read_text(), re.M)}
    known = {re.sub("^(conformance|example)_", "", name) for name in BUILT}
    built = {stem for stem in stems if any(name == stem or name.startswith(stem + "_") for name in known)}
    assert stems - built == {"mixed_sizes"}, "conformance_small and conformance_large are made of it"

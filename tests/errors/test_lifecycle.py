"""Calls before init and after finalize, of every family; and the memory collectives misused."""

import re

import pytest
from conftest import FUNCTIONS, alike, both_runs, invoke, is_said, message

ANY_TIME = {"shmem_init", "shmem_init_thread", "start_pes", "shmem_query_initialized", "shmem_info_get_version",
            "shmem_info_get_name", "shmem_pcontrol", "shmemx_get_uniqueid", "shmemx_init_uniqueid",
            "shmemx_init_thread_uniqueid"}
BETWEEN = [name for name in FUNCTIONS if name not in ANY_TIME]


@pytest.mark.parametrize("function", BETWEEN)
def test_before_init(function):
    ctx = "ctx=default" if "ctx" in FUNCTIONS[function] and "create" not in function else "unused=0"
    result = invoke("before", function, ctx)
    result.is_fatal(rf"heddle {re.escape(function)}: called before shmem_init")


@pytest.mark.parametrize("function", BETWEEN)
@both_runs
def test_after_finalize(function, check):
    result = invoke("after", function, check=check)
    result.is_fatal(message(function, "called after shmem_finalize"))


@pytest.mark.parametrize("function", ["shmem_query_initialized", "shmem_info_get_version", "shmem_info_get_name",
                                      "shmem_pcontrol"])
def test_queries_at_any_time(function):
    assert invoke("after", function).out.count("survived") == 2
    result = invoke("before", function, pes=1)
    assert "survived" in result.out and "heddle" not in result.err  # and oshrun says that it never called shmem_init


@pytest.mark.parametrize("function,size", [("shmem_malloc", "size"), ("shmem_calloc", "count"), ("shmem_align", "size"),
                                           ("shmem_malloc_with_hints", "size"), ("shmem_realloc", "size")])
def test_unequal_sizes_checked(function, size):
    result = invoke("all", function, f"{size}=640", f"{size}@1=1280", check=True)
    shown = "count * size" if size == "count" else "size"
    factor = 64 if size == "count" else 1
    sides = alike(shown, 640 * factor, 1280 * factor, 1), alike(shown, 1280 * factor, 640 * factor, 0)
    result.is_fatal(message(function, f"({'|'.join(sides)})"))


def test_unequal_alignments_checked():
    """The message names the argument that differs."""
    result = invoke("all", "shmem_align", "alignment=64", "alignment@1=128", check=True)
    result.is_fatal(message("shmem_align", f"({alike('alignment', 64, 128, 1)}|{alike('alignment', 128, 64, 0)})"))


NOT_ALLOCATED = (r"ptr (0x[0-9a-f]+|\(nil\)) was not allocated from the symmetric heap \[0x[0-9a-f]+, 0x[0-9a-f]+\), "
                 "or was freed already")


@pytest.mark.parametrize("function", ["shmem_free", "shmem_realloc", "shfree", "shrealloc"])
@pytest.mark.parametrize("place", ["freed", "heap+64", "heap+1", "static", "stack", "malloc", "wild"])
@both_runs
def test_pointers_that_were_not_allocated(function, place, check):
    invoke("all", function, f"ptr={place}", check=check).is_fatal(message(function, NOT_ALLOCATED))


def test_unequal_pointers_to_free_checked():
    result = invoke("all", "shmem_free", "ptr@1=freed", check=True)
    pointer = alike("ptr, from the start of the heap,", r"\d+", r"\d+", "[01]")
    result.is_fatal(message("shmem_free", pointer))


@pytest.mark.parametrize("alignment", [0, 1, 2, 4, 12, 24, 65, 2**62 + 8, 2**64 - 1])
@both_runs
def test_wrong_alignments(alignment, check):
    result = invoke("all", "shmem_align", f"alignment={alignment}", check=check)
    assert result.status == 0 and result.out.count("returned NULL") == 2, result
    text = message("shmem_align", rf"alignment {alignment} is wrong: right would be a power of two that is a "
                                  "multiple of 8")
    assert len([line for line in result.err.splitlines() if is_said(text, line)]) == 2, result


@pytest.mark.parametrize("alignment", [2**23, 2**63])  # the heap has 2**24 bytes
def test_large_alignments(alignment):
    """Right by the standard, met or not: nothing is said unless asked for."""
    result = invoke("all", "shmem_align", f"alignment={alignment}", "size=100")
    nulls = 2 if alignment == 2**63 else 0
    assert result.status == 0 and result.err == "" and result.out.count("returned NULL") == nulls, result
    result = invoke("all", "shmem_align", f"alignment={alignment}", "size=100", check=True)
    text = message("shmem_align", rf"no room at a multiple of {alignment}: not every heap begins at one, that of this "
                                  r"PE at 0x[0-9a-f]+; alignments up to the size of the heap are met, "
                                  r"SHMEM_SYMMETRIC_SIZE sets it, now 16777216")
    told = [line for line in result.err.splitlines() if is_said(text, line)]
    assert result.status == 0 and len(told) == nulls, result


@pytest.mark.parametrize("function,arguments", [("shmem_malloc", ["size=1099511627776"]),
                                                ("shmem_calloc", ["size=1099511627776", "count=1099511627776"]),
                                                ("shmem_align", ["size=16777217"]),
                                                ("shmem_malloc_with_hints", ["size=18446744073709551615"]),
                                                ("shmem_realloc", ["size=1099511627776"])])
def test_exhaustion_is_explained_when_asked_for(function, arguments):
    quiet = invoke("all", function, *arguments)
    assert quiet.status == 0 and quiet.out.count("returned NULL") == 2 and quiet.err == "", quiet
    text = message(function, r"no room for \d+ bytes \(alignment \d+\): \d+ of 16777216 bytes of the heap are free, "
                             r"the largest piece is \d+; SHMEM_SYMMETRIC_SIZE sets the size of the heap, now 16777216")
    for told in (invoke("all", function, *arguments, check=True), invoke("all", function, *arguments, SHMEM_DEBUG="1"),
                 invoke("all", function, *arguments, SMA_DEBUG="1")):
        assert told.status == 0 and told.out.count("returned NULL") == 2, told
        assert len([line for line in told.err.splitlines() if is_said(text, line)]) == 2, told


"""Collectives with wrong arguments: the exact message, status 1 and no hang; and what only checked runs see: members
that do not pass the same."""

import pytest
from conftest import (
    ADDRESS,
    COLLECTIVES,
    EXCHANGES,
    FUNCTIONS,
    INT_MAX,
    INT_MIN,
    ON_ACTIVE_SETS,
    ON_TEAMS,
    PLACES,
    SIZE_MAX,
    WAITING,
    alike,
    both_runs,
    element_bytes,
    invoke,
    message,
)

COUNTS = {name: next(count for count in ("nelems", "nreduce") if count in FUNCTIONS[name]) for name in COLLECTIVES}
UNEVEN = [name for name in COLLECTIVES if "_collect" in name]  # nelems may differ there
EVEN = [name for name in COLLECTIVES if name not in UNEVEN]
WITH_ROOT = [name for name in COLLECTIVES if "PE_root" in FUNCTIONS[name]]
WITH_STRIDES = [name for name in COLLECTIVES if "dst" in FUNCTIONS[name]]
TO_ALL = [name for name in COLLECTIVES if "to_all" in name]


@pytest.mark.parametrize("function", COLLECTIVES)
@pytest.mark.parametrize("argument", ["dest", "source"])
@both_runs
def test_buffers_that_are_not_symmetric(function, argument, check):
    for place in ("stack", "malloc", "null"):
        invoke("all", function, f"{argument}={place}", check=check).is_fatal(
            message(function, rf"{argument} ({ADDRESS}|\(nil\)) is not symmetric: {PLACES}"))


@pytest.mark.parametrize("function", COLLECTIVES)
def test_buffers_in_a_library(function):
    invoke("all", function, "dest=library").is_fatal(
        message(function, rf"dest {ADDRESS} is not symmetric: {PLACES}; it is static data of liberrors_library\.so, "
                          "and only the executable's static data is symmetric"))


@pytest.mark.parametrize("function", COLLECTIVES)
@both_runs
def test_extent_across_the_end_of_the_heap(function, check):
    for argument in ("dest", "source"):
        count = 64 // element_bytes(function) + 1
        invoke("all", function, f"{argument}=heapend-64", f"{COUNTS[function]}={count}", check=check).is_fatal(
            message(function, rf"{argument} {ADDRESS}: \d+ bytes from there cross the end of the heap "
                              rf"\[{ADDRESS}, {ADDRESS}\)"))


@pytest.mark.parametrize("function", COLLECTIVES)
def test_extent_across_the_end_of_the_allocation_checked(function):
    for argument in ("dest", "source"):
        invoke("all", function, f"{argument}=heap+4088", f"{COUNTS[function]}={8 // element_bytes(function) + 1}",
               check=True).is_fatal(
            message(function, rf"{argument} {ADDRESS}: \d+ bytes from there cross the end of the allocation that it "
                              "lies in"))
        invoke("all", function, f"{argument}=freed", check=True).is_fatal(
            message(function, rf"{argument} {ADDRESS} lies in symmetric heap that is not allocated: it was freed, or "
                              "never allocated"))


@pytest.mark.parametrize("function", COLLECTIVES)
@both_runs
def test_no_elements_are_fine(function, check):
    invoke("all", function, f"{COUNTS[function]}=0", "dest=null", "source=null", check=check).is_fine()
    invoke("all", function, f"{COUNTS[function]}=0", "dest=stack", "source=wild", check=check).is_fine()


@pytest.mark.parametrize("function", [name for name in COLLECTIVES if name not in TO_ALL])
@pytest.mark.parametrize("count", [SIZE_MAX, 2**63, SIZE_MAX // 8 + 1])
def test_more_elements_than_an_address_space(function, count):
    if element_bytes(function) == 1 and count < 2**63:
        count = 2**63 + 1
    invoke("all", function, f"{COUNTS[function]}={count}").is_fatal(
        message(function, r"nelems \d+ is too large: elements of \d+ bytes would fill more than an address space"))


@pytest.mark.parametrize("function", TO_ALL)
@pytest.mark.parametrize("count", [-1, INT_MIN])
@both_runs
def test_negative_counts(function, count, check):
    invoke("all", function, f"nreduce={count}", check=check).is_fatal(
        message(function, rf"nreduce is {count}: right would be 0 or more"))


@pytest.mark.parametrize("function", WITH_ROOT)
@pytest.mark.parametrize("root", [-1, 2, INT_MIN, INT_MAX])
@both_runs
def test_wrong_roots(function, root, check):
    invoke("all", function, f"PE_root={root}", check=check).is_fatal(
        message(function, rf"PE_root {root} is out of range: the team has PEs 0 to 1"))


@pytest.mark.parametrize("function", WITH_STRIDES)
@pytest.mark.parametrize("dst,sst", [(0, 1), (1, 0), (-1, 1), (1, -2**62)])
@both_runs
def test_wrong_strides(function, dst, sst, check):
    invoke("all", function, f"dst={dst}", f"sst={sst}", check=check).is_fatal(
        message(function, rf"dst {dst}, sst {sst}: right would be 1 or more"))


@pytest.mark.parametrize("function", ON_ACTIVE_SETS)
@pytest.mark.parametrize("start,log,size", [(-1, 0, 2), (2, 0, 1), (0, -1, 2), (0, 31, 1), (0, 30, 2), (0, 0, 0),
                                            (0, 0, -1), (0, 0, 3), (1, 0, 2), (0, 1, 2), (INT_MAX, 30, INT_MAX),
                                            (0, INT_MAX, 1)])
def test_wrong_active_sets(function, start, log, size):
    invoke("all", function, f"PE_start={start}", f"logPE_stride={log}", f"PE_size={size}").is_fatal(
        message(function, rf"PE_start {start}, logPE_stride {log}, PE_size {size} is no active set: right would be "
                          r"PE_start >= 0, logPE_stride >= 0, PE_size >= 1 and a last PE below 2"))


@pytest.mark.parametrize("function", ON_ACTIVE_SETS)
@both_runs
def test_active_sets_without_the_caller(function, check):
    invoke("one", function, "PE_start=1", "PE_size=1", check=check).is_fatal(
        message(function, "PE 0 is not in the active set PE_start 1, logPE_stride 0, PE_size 1", 0))


@pytest.mark.parametrize("function", ON_ACTIVE_SETS)
def test_psync_checked(function):
    for place in ("stack", "null", "malloc"):
        invoke("all", function, f"pSync={place}", check=True).is_fatal(
            message(function, rf"pSync ({ADDRESS}|\(nil\)) is not symmetric: {PLACES}"))
    invoke("all", function, "pSync=static", check=True).is_fine()


# --- What only a checked run sees: members that pass different things.

def differs(function, what, mine, theirs):
    """The message of either PE: of 0, which passes `mine`, or of 1."""
    return "(" + message(function, alike(what, mine, theirs, 1), 0) + "|" + \
        message(function, alike(what, theirs, mine, 0), 1) + ")"


@pytest.mark.parametrize("function", EVEN)
def test_unequal_counts_checked(function):
    count = COUNTS[function]
    invoke("all", function, f"{count}=3", f"{count}@1=5", check=True).is_fatal(
        differs(function, count, 3, 5))


@pytest.mark.parametrize("function", UNEVEN)
def test_uneven_counts_are_fine_checked(function):
    invoke("all", function, "nelems=3", "nelems@1=5", check=True).is_fine()
    invoke("all", function, "nelems=0", "nelems@1=5", check=True).is_fine()


@pytest.mark.parametrize("function", WITH_ROOT)
def test_unequal_roots_checked(function):
    invoke("all", function, "PE_root@1=1", check=True).is_fatal(
        differs(function, "PE_root", 0, 1))


@pytest.mark.parametrize("function", WITH_STRIDES)
def test_unequal_strides_checked(function):
    invoke("all", function, "dst=2", "dst@1=3", check=True).is_fatal(
        differs(function, "dst", 2, 3))
    invoke("all", function, "sst=2", "sst@1=3", check=True).is_fatal(
        differs(function, "sst", 2, 3))


@pytest.mark.parametrize("function", COLLECTIVES)
def test_different_places_checked(function):
    for argument in ("dest", "source"):
        invoke("all", function, f"{argument}=heap+64", f"{argument}@1=heap+128", check=True).is_fatal(
            differs(function, f"{argument}, from the start of its region,", r"\d+", r"\d+"))


@pytest.mark.parametrize("function", [name for name in COLLECTIVES
                                      if any(word in name for word in ("broadcast", "reduce", "scan", "to_all"))])
def test_overlap_checked(function):
    count = 64 // element_bytes(function)
    invoke("all", function, "dest=heap+64", "source=heap+96", f"{COUNTS[function]}={count}", check=True).is_fatal(
        message(function, rf"source \[{ADDRESS}, {ADDRESS}\) and dest \[{ADDRESS}, {ADDRESS}\) overlap"))
    invoke("all", function, "dest=heap+64", "source=heap+64", f"{COUNTS[function]}={count}", check=True).is_fine()
    invoke("all", function, "dest=heap+64", "source=heap+128", f"{COUNTS[function]}={count}", check=True).is_fine()


@pytest.mark.parametrize("function", WAITING)
@both_runs
def test_syncs_are_silent(function, check):
    invoke("all", function, check=check, pes=2).is_fine(2)


def test_lists_are_complete():
    assert len(ON_TEAMS) >= 20 and len(ON_ACTIVE_SETS) >= 14
    assert set(ON_TEAMS + ON_ACTIVE_SETS) == {*COLLECTIVES, *EXCHANGES, *WAITING}

"""Addresses that are not symmetric, allocated no more, not there, not aligned, or whose extent leaves the region."""

import pytest
from conftest import (
    ADDRESS,
    FUNCTIONS,
    HEAP_BYTES,
    INLINED,
    PLACES,
    SANITIZER,
    both_runs,
    element_bytes,
    invoke,
    message,
    remote_argument,
    those_with,
)

ONE_SIDED = [name for name in those_with("pe") if {"dest", "source", "sig_addr"} & set(FUNCTIONS[name])
             and name not in ("shmem_ptr", "shmem_team_ptr")]
SIGNAL_ONLY = [name for name in ONE_SIDED if not {"dest", "source"} & set(FUNCTIONS[name])]
DATA = [name for name in ONE_SIDED if name not in SIGNAL_ONLY]
OLD_ATOMIC = [f"shmem_long_{name}" for name in ("cswap", "swap", "fetch", "set", "finc", "inc", "fadd", "add")]
ATOMIC = [name for name in DATA if "atomic" in name or name in OLD_ATOMIC]


def remote(function):
    return "dest" if function in SIGNAL_ONLY else remote_argument(function)


def option(function):
    """The command line's name of the remote argument: signal operations are atomics on sig_addr."""
    return "sig_addr" if function in SIGNAL_ONLY else remote_argument(function)


@pytest.mark.parametrize("function", ONE_SIDED)
@pytest.mark.parametrize("place", ["stack", "malloc", "null"])
def test_not_symmetric(function, place):
    where = r"\(nil\)" if place == "null" else ADDRESS
    text = rf"{remote_or_signal(function)} {where} is not symmetric: {PLACES}"
    invoke("one", function, f"{option(function)}={place}").is_fatal(message(function, text, 0))


def remote_or_signal(function):
    return "(dest|sig_addr)" if function in SIGNAL_ONLY else remote(function)


@pytest.mark.parametrize("function", ONE_SIDED)
def test_static_data_of_a_library(function):
    text = (rf"{remote_or_signal(function)} {ADDRESS} is not symmetric: {PLACES}; it is static data of "
            r"liberrors_library\.so, and only the executable's static data is symmetric")
    invoke("one", function, f"{option(function)}=library", check=True).is_fatal(message(function, text, 0))
    invoke("one", function, f"{option(function)}=library").is_fatal(message(function, text, 0))


@pytest.mark.parametrize("function", [name for name in INLINED if name in ONE_SIDED])
def test_not_symmetric_when_not_inlined(function):
    text = rf"{remote_or_signal(function)} {ADDRESS} is not symmetric: {PLACES}"
    result = invoke("one", function, f"{option(function)}=malloc", program="errors_calls")
    result.is_fatal(message(function, text, 0))


@pytest.mark.parametrize("function", those_with("sig_addr", "sig_op"))
@both_runs
def test_signals_of_put_signal(function, check):
    invoke("one", function, "sig_addr=stack", check=check).is_fatal(
        message(function, rf"sig_addr {ADDRESS} is not symmetric: {PLACES}", 0))
    invoke("one", function, "sig_addr=heap+4", check=check).is_fatal(
        message(function, rf"sig_addr {ADDRESS} is not a multiple of 8(, .*)?", 0))


@pytest.mark.parametrize("function", ONE_SIDED)
def test_freed_memory_checked(function):
    text = (rf"{remote_or_signal(function)} {ADDRESS} lies in symmetric heap that is not allocated: it was freed, or "
            "never allocated")
    invoke("one", function, f"{option(function)}=freed", check=True).is_fatal(message(function, text, 0))


COUNTED = [name for name in DATA if "nelems" in FUNCTIONS[name] or "nblocks" in FUNCTIONS[name]]


def elements(function, count):
    """Options for `count` contiguous elements."""
    return [f"bsize={count}", f"dst={count}", f"sst={count}"] if "bsize" in FUNCTIONS[function] else [f"nelems={count}"]


@pytest.mark.parametrize("function", COUNTED)
@both_runs
def test_extent_across_the_end_of_the_heap(function, check):
    count = 64 // element_bytes(function) + 1
    result = invoke("one", function, f"{remote(function)}=heapend-64", *elements(function, count), check=check)
    total = count * element_bytes(function)
    result.is_fatal(message(function, rf"{remote(function)} {ADDRESS}: {total} bytes from there cross the end of the "
                                      rf"heap \[{ADDRESS}, {ADDRESS}\)", 0))


@pytest.mark.parametrize("function", COUNTED)
def test_extent_to_the_end_of_the_heap_is_fine(function):
    fitting = elements(function, 64 // element_bytes(function))
    invoke("one", function, f"{remote(function)}=heapend-64", *fitting).is_fine()


@pytest.mark.parametrize("function", COUNTED)
def test_extent_across_the_end_of_the_static_data(function):
    count = (4 << 20) // element_bytes(function)
    result = invoke("one", function, f"{remote(function)}=static", *elements(function, count))
    result.is_fatal(message(function, rf"{remote(function)} {ADDRESS}: {4 << 20} bytes from there cross the end of the "
                                      rf"static data \[{ADDRESS}, {ADDRESS}\)", 0))


@pytest.mark.parametrize("function", COUNTED)
def test_extent_across_the_end_of_the_allocation_checked(function):
    count = 4096 // element_bytes(function)
    invoke("one", function, *elements(function, count), check=True).is_fine()
    invoke("one", function, *elements(function, count + 1), check=True).is_fatal(
        message(function, rf"{remote(function)} {ADDRESS}: \d+ bytes from there cross the end of the allocation that "
                          "it lies in", 0))


@pytest.mark.parametrize("function", those_with("dst"))
def test_strided_extent_across_the_end_of_the_heap(function):
    stride = "dst" if remote(function) == "dest" else "sst"
    counts = ["nelems=3"] if "nelems" in FUNCTIONS[function] else ["nblocks=3"]
    fits, crosses = (HEAP_BYTES - 8) // 16, HEAP_BYTES // 16
    invoke("one", function, *counts, f"{stride}={fits}").is_fine()
    invoke("one", function, *counts, f"{stride}={crosses}").is_fatal(
        message(function, rf"{remote(function)} {ADDRESS}: {HEAP_BYTES + 8} bytes from there cross the end of the heap "
                          rf"\[{ADDRESS}, {ADDRESS}\)", 0))


VALUES = [name for name in DATA if name not in COUNTED and name not in ATOMIC]


@pytest.mark.parametrize("function", VALUES)
def test_value_across_the_end_checked(function):
    invoke("one", function, f"{remote(function)}=heapend-4", check=True).is_fatal(
        message(function, rf"{remote(function)} {ADDRESS}: 8 bytes from there cross the end of the heap "
                          rf"\[{ADDRESS}, {ADDRESS}\)", 0))
    invoke("one", function, f"{remote(function)}=heap+4092", check=True).is_fatal(
        message(function, rf"{remote(function)} {ADDRESS}: 8 bytes from there cross the end of the allocation that it "
                          "lies in", 0))


@pytest.mark.parametrize("function", VALUES)
def test_value_across_the_end_harms_nothing(function):
    """The gap behind a region takes it; nothing is said in a plain run."""
    invoke("one", function, f"{remote(function)}=heapend-4", "pe=1").is_fine()


@pytest.mark.parametrize("function", ATOMIC + SIGNAL_ONLY)
@pytest.mark.parametrize("offset", [1, 4])
def test_misaligned_atomic_checked(function, offset):
    invoke("one", function, f"{option(function)}=heap+{offset}", check=True).is_fatal(
        message(function, rf"{remote_or_signal(function)} {ADDRESS} is not a multiple of 8, as an atomic of that size "
                          "needs", 0))


LOCAL = [(name, "dest" if remote_argument(name) == "source" else "source") for name in COUNTED]


@pytest.mark.parametrize("function,argument", LOCAL)
def test_null_local_buffer_checked(function, argument):
    invoke("one", function, f"{argument}=null", *elements(function, 100), check=True).is_fatal(
        message(function, f"{argument} is NULL", 0))


@pytest.mark.skipif(SANITIZER != "", reason="the sanitizer reports the access first")
@pytest.mark.parametrize("function,argument", LOCAL)
def test_null_local_buffer_ends_the_job(function, argument):
    """A plain run has no check there: the message, or the signal that the access gets; in any case the job's end."""
    result = invoke("one", function, f"{argument}=null", *elements(function, 100))
    assert result.status in (1, 139), result
    assert f"{argument} is NULL" in result.err or "Segmentation fault" in result.err


OVERLAPPING = [name for name in COUNTED if name in INLINED or "signal" in name]


@pytest.mark.parametrize("function", OVERLAPPING)
@pytest.mark.parametrize("shift", ["+8", "+792", "-8"])
def test_overlap_checked(function, shift):
    count = 800 // element_bytes(function)
    place = ["dest=heap+1600", f"source=heap+{1600 + int(shift)}"]
    invoke("one", function, *place, f"nelems={count}", "sig_addr=heap", check=True).is_fatal(
        message(function, rf"source \[{ADDRESS}, {ADDRESS}\) and dest \[{ADDRESS}, {ADDRESS}\) overlap", 0))


@pytest.mark.parametrize("function", OVERLAPPING)
def test_neighbours_do_not_overlap_checked(function):
    count = 800 // element_bytes(function)
    for source in (800, 2400):
        invoke("one", function, "dest=heap+1600", f"source=heap+{source}", f"nelems={count}", "sig_addr=heap",
               check=True).is_fine()


WAITS = [*those_with("cmp"), "shmem_signal_fetch", "shmem_wait", "shmem_long_wait"]


@pytest.mark.parametrize("function", WAITS)
def test_waits_on_what_is_not_symmetric_checked(function):
    argument = next(name for name in ("sig_addr", "ivar", "ivars") if name in FUNCTIONS[function])
    for place, text in (("malloc", f"{ADDRESS} is not symmetric: {PLACES}"), ("null", "is NULL"),
                        (f"heap+{element_bytes(function) // 2}",
                         f"{ADDRESS} is not a multiple of {element_bytes(function)}"),
                        ("freed", f"{ADDRESS} lies in symmetric heap that is not allocated: it was freed, or never "
                                  "allocated")):
        invoke("one", function, f"{argument}={place}", check=True).is_fatal(message(function, f"{argument} {text}", 0))

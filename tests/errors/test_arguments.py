"""Wrong PEs, contexts, counts, strides and codes: the exact message, status 1, no hang. Nothing wrong: no message."""

import re

import pytest
from conftest import (
    COLLECTIVES,
    EXCHANGES,
    FUNCTIONS,
    HEAP_BYTES,
    INLINED,
    INT_MAX,
    INT_MIN,
    SIZE_MAX,
    WAITING,
    both_runs,
    element_bytes,
    invoke,
    message,
    remote_argument,
    those_with,
)

QUERIES = {"shmem_ptr", "shmem_pe_accessible", "shmem_addr_accessible", "shmem_team_ptr"}
TO_A_PE = [function for function in those_with("pe") if function not in QUERIES]
OUT_OF_RANGE = r"pe {} is out of range: the job has PEs 0 to 1"
# Those that end the job, start it once more, or need something to be there before.
NOT_TO_CALL = {"shmem_global_exit", "shmem_init", "shmem_init_thread", "start_pes", "shmem_clear_lock",
               "shmemx_request_end", "shmemx_plan_end", "shmemx_get_uniqueid", "shmemx_init_uniqueid",
               "shmemx_init_thread_uniqueid"}
# What some need beside the arguments that are right for all.
ARGUMENTS = {"shmem_ctx_destroy": ["ctx=created"], "shmem_team_destroy": ["team=created"],
             "shmem_wait": ["cmp_value=5"], "shmem_long_wait": ["cmp_value=5"]}
TAKE_A_LOCK = {"shmem_set_lock", "shmem_test_lock"}  # which the program does not give back
COLLECTIVE = {"shmem_malloc", "shmem_calloc", "shmem_align", "shmem_malloc_with_hints", "shmem_realloc", "shmem_free",
              "shmem_barrier_all", "shmem_sync_all", "shmem_finalize", "shmalloc", "shmemalign", "shrealloc", "shfree",
              "shmem_team_split_strided", "shmem_team_split_2d", "shmem_team_destroy", *COLLECTIVES, *EXCHANGES,
              *WAITING}


@pytest.mark.parametrize("function", [name for name in FUNCTIONS if name not in NOT_TO_CALL])
@both_runs
def test_right_arguments_are_silent(function, check):
    wait = ["cmp=1", "cmp_value=0"] if "wait_until" in function else []
    when = "all" if function in COLLECTIVE else "one"
    result = invoke(when, function, *wait, *ARGUMENTS.get(function, []), check=check)
    if check and function in TAKE_A_LOCK:
        kept = rf"this PE ends while it holds lock 0x[0-9a-f]+, since {function} \(called at .*\): right would be .*"
        assert re.fullmatch(message("shmem_finalize", kept, 0), result.err.strip()), result
        result.err = ""
    result.is_fine()


@pytest.mark.parametrize("function", TO_A_PE)
@pytest.mark.parametrize("pe", [-1, 2, INT_MIN, INT_MAX])
def test_pe_out_of_range(function, pe):
    invoke("one", function, f"pe={pe}").is_fatal(message(function, OUT_OF_RANGE.format(pe), 0))


@pytest.mark.parametrize("function", TO_A_PE)
@pytest.mark.parametrize("pe", [-1, INT_MAX])
def test_pe_out_of_range_checked(function, pe):
    invoke("one", function, f"pe={pe}", check=True).is_fatal(message(function, OUT_OF_RANGE.format(pe), 0))


@pytest.mark.parametrize("function", [name for name in TO_A_PE if name in INLINED])
@pytest.mark.parametrize("pe", [-1, 2, INT_MIN, INT_MAX])
def test_pe_out_of_range_for_static_data(function, pe):
    argument = "sig_addr" if "sig_addr" in FUNCTIONS[function] else remote_argument(function)
    result = invoke("one", function, f"pe={pe}", f"{argument}=static")
    result.is_fatal(message(function, OUT_OF_RANGE.format(pe), 0))


@pytest.mark.parametrize("function", [name for name in TO_A_PE if name in INLINED])
def test_pe_out_of_range_when_not_inlined(function):
    result = invoke("one", function, f"pe={INT_MIN}", program="errors_calls")
    result.is_fatal(message(function, OUT_OF_RANGE.format(INT_MIN), 0))


@pytest.mark.parametrize("function", ["shmem_pe_quiet", "shmem_ctx_pe_quiet"])
@both_runs
def test_pe_quiet_of_a_wrong_list(function, check):
    result = invoke("one", function, "npes=2", "target_pes=heap", "pe=0", check=check)  # zeroes: fine
    result.is_fine()
    invoke("one", function, "npes=1", "target_pes=null", check=check).is_fatal(message(function, "target_pes is NULL"))
    invoke("one", function, "npes=0", "target_pes=null", check=check).is_fine()


# Those that complete or order what was done on a context: on SHMEM_CTX_INVALID that is no operation.
COMPLETING = [name for name in those_with("ctx") if re.search("fence|quiet", name)]


# Those that take a context to communicate in; of the others: below, and test_teams.py.
@pytest.mark.parametrize("function", [name for name in those_with("ctx")
                                      if not re.search("create|destroy|get_team|session|info", name)])
@both_runs
def test_contexts_that_are_none(function, check):
    invalid = "ctx is SHMEM_CTX_INVALID: right would be SHMEM_CTX_DEFAULT or a context that was created"
    result = invoke("one", function, "ctx=invalid", check=check)
    if function in COMPLETING:
        result.is_fine()
    else:
        result.is_fatal(message(function, invalid, 0))
    destroyed = r"ctx 0x[0-9a-f]+ is no context: it was destroyed, or never created"
    invoke("one", function, "ctx=destroyed", check=check).is_fatal(message(function, destroyed, 0))
    invoke("one", function, "ctx=created", check=check).is_fine()


@pytest.mark.parametrize("function", [name for name in TO_A_PE if "ctx" in FUNCTIONS[name]])
@both_runs
def test_pe_out_of_range_of_a_team(function, check):
    """What a larger team had in the same place does not count."""
    for pe in (-1, 1, 2, INT_MAX):
        invoke("all", function, "ctx=team", f"pe={pe}", check=check).is_fatal(
            message(function, f"pe {pe} is out of range: the context's team has PEs 0 to 0"))
    invoke("all", function, "ctx=team", "pe=0", check=check).is_fine()


@both_runs
def test_context_create_and_destroy(check):
    invoke("one", "shmem_ctx_destroy", "ctx=invalid", check=check).is_fine()
    invoke("one", "shmem_ctx_destroy", "ctx=default", check=check).is_fatal(
        message("shmem_ctx_destroy", "ctx is SHMEM_CTX_DEFAULT, which cannot be destroyed"))
    invoke("one", "shmem_ctx_destroy", "ctx=destroyed", check=check).is_fatal(
        message("shmem_ctx_destroy", r"ctx 0x[0-9a-f]+ is no context: it was destroyed, or never created"))
    result = invoke("one", "shmem_ctx_create", "options=4096", check=check)
    assert result.status == 0 and "returned 1" in result.out, result
    assert "shmem_ctx_create: options 0x1000: the bits 0x1000 are unknown" in result.err
    invoke("one", "shmem_ctx_create", "ctx=null", check=check).is_fatal(message("shmem_ctx_create", "ctx is NULL"))


BULK = [function for function in those_with("nelems") if not any(word in function for word in ("wait", "test"))]


@pytest.mark.parametrize("function", BULK)
@pytest.mark.parametrize("nelems", [SIZE_MAX // 8 + 1, SIZE_MAX // 8 + 2, SIZE_MAX, 2**63])
def test_more_elements_than_an_address_space(function, nelems):
    result = invoke("one", function, f"nelems={nelems}")
    if element_bytes(function) == 1 and nelems < 2**63:  # bytes: fewer than an address space, but more than the heap
        result.is_fatal(message(function, rf"(dest|source) 0x[0-9a-f]+: {nelems} bytes from there cross the end of the "
                                          r"heap \[0x[0-9a-f]+, 0x[0-9a-f]+\)", 0))
    else:
        result.is_fatal(message(function, rf"nelems {nelems} is too large: elements of \d+ bytes would fill more than "
                                          "an address space", 0))


BLOCKS = those_with("bsize")


@pytest.mark.parametrize("function", BLOCKS)
@pytest.mark.parametrize("blocks", ["bsize=1 nblocks=2305843009213693953 dst=8 sst=8",
                                    "bsize=4611686018427387904 nblocks=4 dst=4611686018427387904 "
                                    "sst=4611686018427387904", "bsize=2305843009213693953 dst=2305843009213693953 "
                                    "sst=2305843009213693953 nblocks=1"])
def test_more_blocks_than_an_address_space(function, blocks):
    invoke("one", function, *blocks.split()).is_fatal(
        message(function, r"nelems \d+ is too large: elements of 8 bytes would fill more than an address space", 0))


@pytest.mark.parametrize("function", those_with("dst"))
@pytest.mark.parametrize("argument", ["dst", "sst"])
@pytest.mark.parametrize("stride", [0, -1, -(2**62)])
def test_wrong_strides(function, argument, stride):
    invoke("one", function, f"{argument}={stride}").is_fatal(
        message(function, f"{argument} {stride} is wrong: right would be 1 or more", 0))


@pytest.mark.parametrize("function", BLOCKS)
@pytest.mark.parametrize("argument,other", [("dst", "sst"), ("sst", "dst")])
@both_runs
def test_strides_smaller_than_a_block(function, argument, other, check):
    result = invoke("one", function, f"{argument}=6", f"{other}=7", "bsize=7", "nblocks=2", check=check)
    result.is_fatal(message(function, f"{argument} 6 is wrong: right would be 7 or more", 0))


@pytest.mark.parametrize("function", those_with("sig_op"))
@pytest.mark.parametrize("sig_op", [2, -1, INT_MAX])
@both_runs
def test_wrong_signal_operation(function, sig_op, check):
    invoke("one", function, f"sig_op={sig_op}", check=check).is_fatal(message(
        function, rf"sig_op {sig_op} is wrong: right would be SHMEM_SIGNAL_SET \(0\) or SHMEM_SIGNAL_ADD \(1\)", 0))


@pytest.mark.parametrize("function", those_with("cmp"))
@pytest.mark.parametrize("cmp", [0, 7, -1])
@both_runs
def test_wrong_comparison(function, cmp, check):
    invoke("one", function, f"cmp={cmp}", check=check).is_fatal(message(
        function, rf"cmp {cmp} is not a comparison: right would be SHMEM_CMP_EQ, NE, GT, GE, LT or LE \(1 to 6\)", 0))


@pytest.mark.parametrize("function", those_with("nelems"))
@both_runs
def test_no_elements_are_fine(function, check):
    """n = 0 asks for nothing, so no address matters."""
    nulls = [f"{name}=null" for name in ("dest", "source", "ivars", "indices", "cmp_values")
             if name in FUNCTIONS[function]]
    invoke("one", function, "nelems=0", *nulls, check=check).is_fine()
    invoke("one", function, "nelems=0", f"{remote_argument(function)}=stack", check=check).is_fine()


@pytest.mark.parametrize("function", BLOCKS)
@both_runs
def test_no_blocks_are_fine(function, check):
    for empty in ("nblocks=0", "bsize=0"):
        invoke("one", function, empty, "dest=null", "source=null", check=check).is_fine()


@pytest.mark.parametrize("function,argument", [
    ("shmem_query_initialized", "initialized"), ("shmem_query_thread", "provided"), ("shmem_info_get_version", "major"),
    ("shmem_info_get_version", "minor"), ("shmem_info_get_name", "name")])
def test_queries_into_nothing(function, argument):
    invoke("one", function, f"{argument}=null").is_fatal(message(function, f"{argument} is NULL", 0))


@pytest.mark.parametrize("function", ["shmemx_pcntr_name", "shmemx_pcntr_description", "shmemx_pcntr_get"])
@pytest.mark.parametrize("index", [-1, INT_MAX, INT_MIN])
def test_an_index_of_no_counter(function, index):
    invoke("one", function, f"index={index}").is_fatal(
        message(function, rf"index {index} is no counter's: right would be 0 to \d+", 0))


@pytest.mark.parametrize("requested", [-1, 4, 99])
def test_wrong_thread_level(requested):
    result = invoke("one", "shmem_init_thread", f"requested={requested}")
    assert result.status == 0 and "returned 1" in result.out and result.out.count("survived") == 2, result
    assert (f"shmem_init_thread: requested {requested} is no thread level: right would be SHMEM_THREAD_SINGLE to "
            "MULTIPLE (0 to 3)") in result.err


def test_heap_constant_is_that_of_the_run():
    """The end of the heap, used elsewhere, is where it is meant to be: one byte before it is fine."""
    invoke("one", "shmem_putmem", "dest=heapend-1", "nelems=1", ERRORS_HEAP_BYTES=str(HEAP_BYTES)).is_fine()

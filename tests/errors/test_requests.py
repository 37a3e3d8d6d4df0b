"""Requests and thread groups, misused: the exact message, which names every call that has to do with it."""

import pytest
from conftest import (
    ADDRESS,
    COLLECTIVES,
    EXCHANGES,
    FUNCTIONS,
    INT_MAX,
    INT_MIN,
    OSHRUN,
    PROGRAMS,
    WAITING,
    both_runs,
    execute,
    invoke,
    message,
    those_with,
)

PROGRAM = PROGRAMS / "misuse"
WITH_REQUEST = [name for name, parameters in FUNCTIONS.items() if "req" in parameters]
POSTING = [name for name in WITH_REQUEST if name.endswith("_nbe")]
POSTED_COLLECTIVES = [name for name in POSTING if name in COLLECTIVES + EXCHANGES + WAITING]
WITH_THREADS = [name for name, parameters in FUNCTIONS.items() if "nthreads" in parameters]


def misuse(scenario, kind="", pes=1, check=False):
    return execute([OSHRUN, "-n", pes, PROGRAM, scenario, kind], HEDDLE_CHECK=str(int(check)))


def site(function):
    return rf"{function} \(called at misuse\+0x[0-9a-f]+\)"


# How a handle is used -> the function. Inlined ones look at a handle in checked runs alone.
LOOKING = {kind: f"shmemx_request_{kind}" for kind in ("wait", "wait_local", "test", "free", "fence", "wait_any",
                                                       "wait_some", "test_any", "merge")}
POSTS = {"put": "shmemx_long_put_nbe", "get": "shmemx_long_get_nbe", "put_signal": "shmemx_long_put_signal_nbe",
         "add": "shmemx_long_atomic_add_nbe", "fetch": "shmemx_long_atomic_fetch_nbe",
         "begin": "shmemx_request_begin"}
COLLECTIVE_POSTS = {"sum": "shmemx_long_sum_reduce_nbe", "fcollect": "shmemx_fcollectmem_nbe",
                    "barrier": "shmemx_team_barrier_nbe"}
USES = [(kind, function, False) for kind, function in {**LOOKING, **COLLECTIVE_POSTS}.items()]
USES += [(kind, function, True) for kind, function in {**LOOKING, **COLLECTIVE_POSTS, **POSTS}.items()]
all_uses = pytest.mark.parametrize("kind,function,check", USES)


@pytest.mark.parametrize("scenario,ended", [("freed", "free"), ("waited_for", "wait"), ("merged", "merge")])
@all_uses
def test_handles_that_have_ended(scenario, ended, kind, function, check):
    misuse(scenario, kind, check=check).is_fatal(message(
        function, rf"request {ADDRESS} is used in {site(function)}, but has ended in {site('shmemx_request_' + ended)}",
        0))


@all_uses
def test_handles_that_are_none(kind, function, check):
    misuse("garbage", kind, check=check).is_fatal(message(
        function, rf"request 0x123456789a00 is none of this PE, in {site(function)}: right would be a handle that this "
                  "PE has made", 0))


@all_uses
def test_handles_of_another_pe(kind, function, check):
    """Where it happens to be the address of a request of this PE that is not in use, that is what is said."""
    misuse("of_another_pe", kind, pes=2, check=check).is_fatal(message(
        function, rf"request {ADDRESS} is (none of this PE, in {site(function)}: right would be a handle that this PE "
                  rf"has made|used in {site(function)}, but has ended)", 0))


def test_two_threads_post_collectives_to_one_private_request_checked():
    """Each on its own team, which is right; but a request that both share must be SHARED."""
    text = ("two threads post to one PRIVATE request at once, in {} and in {}: right would be SHMEMX_REQUEST_SHARED, "
            "or a request for each thread")
    total, largest = site("shmemx_long_sum_reduce_nbe"), site("shmemx_long_max_reduce_nbe")
    misuse("two_posters_of_collectives", check=True).is_fatal(
        "(" + message("shmemx_long_max_reduce_nbe", text.format(total, largest), 0) + "|" +
        message("shmemx_long_sum_reduce_nbe", text.format(largest, total), 0) + ")")


def test_two_threads_post_to_one_private_request_checked():
    put, get = site("shmemx_long_put_nbe"), site("shmemx_long_get_nbe")
    text = ("two threads post to one PRIVATE request at once, in {} and in {}: right would be SHMEMX_REQUEST_SHARED, "
            "or a request for each thread")
    misuse("two_posters", check=True).is_fatal("(" + message("shmemx_long_get_nbe", text.format(put, get), 0) + "|" +
                                               message("shmemx_long_put_nbe", text.format(get, put), 0) + ")")


@both_runs
def test_posters_that_are_right(check):
    misuse("two_posters", "shared", check=check).is_fine(1)
    misuse("two_posters_of_collectives", "shared", check=check).is_fine(1)
    misuse("posters_by_turns", check=check).is_fine(1)


@both_runs
def test_begin_and_end(check):
    begin, end = site("shmemx_request_begin"), site("shmemx_request_end")
    for kind in ("same", "other"):
        misuse("begun_twice", kind, check=check).is_fatal(message(
            "shmemx_request_begin", rf"in {begin} this thread's operations join request {ADDRESS} already, since "
                                    rf"{begin}: right would be shmemx_request_end before", 0))
    misuse("ended_with_another", check=check).is_fatal(message(
        "shmemx_request_end", rf"req is {ADDRESS} in {end}, but was {ADDRESS} in {begin}: right would be the same", 0))
    none = message("shmemx_request_end", "this thread's operations join no request: right would be "
                                         "shmemx_request_begin before", 0)
    misuse("ended_by_another_thread", check=check).is_fatal(none)
    invoke("one", "shmemx_request_end", check=check).is_fatal(none)


@both_runs
def test_merge_into_itself(check):
    for kind in ("same", "copy"):
        misuse("merged_into_itself", kind, check=check).is_fatal(
            message("shmemx_request_merge", r"req is requests\[1\], too: right would be another request", 0))


@both_runs
@pytest.mark.parametrize("options", [2, 3, -1, 1 << 62])
def test_unknown_options(options, check):
    result = invoke("one", "shmemx_request_allocate", f"options={options}", check=check)
    assert result.status == 0 and "returned 1" in result.out and result.out.count("survived") == 2, result
    bits = options % 2**64
    assert f"shmemx_request_allocate: options {bits:#x}: the bits {bits & ~1:#x} are unknown" in result.err, result


@pytest.mark.parametrize("function", WITH_REQUEST)
def test_no_place_for_a_request(function):
    invoke("one", function, "req=null", check=True).is_fatal(message(function, "req is NULL", 0))


@pytest.mark.parametrize("function",
                         [name for name in WITH_REQUEST if name not in POSTING or name in POSTED_COLLECTIVES])
def test_no_place_for_a_request_plain(function):
    invoke("one", function, "req=null").is_fatal(message(function, "req is NULL", 0))


@both_runs
def test_no_lists_of_requests(check):
    for function in those_with("requests"):
        invoke("one", function, "requests=null", check=check).is_fatal(message(function, "requests is NULL", 0))
        invoke("one", function, "requests=null", "count=0", check=check).is_fine()
    invoke("one", "shmemx_request_wait_some", "indices=null", check=check).is_fatal(
        message("shmemx_request_wait_some", "indices is NULL", 0))


@both_runs
def test_context_info(check):
    result = invoke("one", "shmemx_ctx_info", "ctx=invalid", check=check)
    assert result.status == 0 and "returned 1" in result.out and result.err == "", result
    invoke("one", "shmemx_ctx_info", "info=null", check=check).is_fatal(message("shmemx_ctx_info", "info is NULL", 0))
    invoke("one", "shmemx_ctx_info", "ctx=destroyed", check=check).is_fatal(
        message("shmemx_ctx_info", rf"ctx {ADDRESS} is no context: it was destroyed, or never created", 0))


NUMBERS = [(1, 1), (5, 4), (-1, 2), (INT_MIN, 1), (INT_MAX, INT_MAX), (0, 0), (0, -1), (3, INT_MIN)]


@pytest.mark.parametrize("function", WITH_THREADS)
@both_runs
def test_thread_numbers(function, check):
    for thread, threads in NUMBERS if function in ("shmemx_team_sync_mt", "shmemx_long_sum_reduce_mt") else NUMBERS[:3]:
        invoke("all", function, f"thread={thread}", f"nthreads={threads}", check=check).is_fatal(message(
            function, f"thread {thread} of nthreads {threads}: right would be nthreads of 1 or more, and threads 0 to "
                      f"{max(threads, 1) - 1}"))


SUM = site("shmemx_long_sum_reduce_mt")


def test_unequal_numbers_of_threads_checked():
    text = "nthreads is {} in " + SUM + ", but {} in another thread, in " + SUM + ": right would be the same in all"
    misuse("unequal_nthreads", check=True).is_fatal(message(
        "shmemx_long_sum_reduce_mt", f"({text.format(2, 3)}|{text.format(3, 2)})", 0))


def test_threads_of_one_number_checked():
    misuse("same_number", check=True).is_fatal(message(
        "shmemx_long_sum_reduce_mt", f"two threads are number 1, in {SUM} and in {SUM}: right would be a number of its "
                                     "own for each of the 2", 0))


def test_threads_in_different_collectives_checked():
    text = "thread {} is in {}, but another one in {}: right would be the same in all"
    other = site("shmemx_long_max_reduce_mt")
    misuse("different_functions", check=True).is_fatal("(" + message(
        "shmemx_long_sum_reduce_mt", text.format(0, SUM, other), 0) + "|" + message(
        "shmemx_long_max_reduce_mt", text.format(1, other, SUM), 0) + ")")


@both_runs
def test_thread_groups_that_are_right(check):
    misuse("right_group", pes=2, check=check).is_fine(2)


POSTED_SUM = site("shmemx_long_sum_reduce_mt_nbe")


@both_runs
def test_group_of_posts_that_is_right(check):
    misuse("group_of_posts", check=check).is_fine(1)


@pytest.mark.parametrize("kind,what", [("null", "SHMEMX_REQUEST_NULL"), ("private", "a PRIVATE request")])
@both_runs
def test_groups_post_to_shared_requests(kind, what, check):
    misuse("group_of_posts", kind, check=check).is_fatal(message(
        "shmemx_long_sum_reduce_mt_nbe", rf"req is {what}, in {POSTED_SUM}: right would be a SHARED request "
        r"\(shmemx_request_allocate\), to which several threads may post", 0))


@pytest.mark.parametrize("kind,text", [
    ("nthreads", rf"nthreads is 3 in {POSTED_SUM}, but 2 in another thread, in {POSTED_SUM}"),
    ("nelems", rf"nreduce is 3 in {POSTED_SUM}, but 4 in another thread, in {POSTED_SUM}"),
    ("dest", rf"dest is {ADDRESS} in {POSTED_SUM}, but {ADDRESS} in another thread, in {POSTED_SUM}")])
@both_runs
def test_threads_that_post_with_other_arguments(kind, text, check):
    misuse("group_of_posts", kind, check=check).is_fatal(message(
        "shmemx_long_sum_reduce_mt_nbe", text + ": right would be the same in all of a PE", 0))


@both_runs
def test_threads_that_post_different_collectives(check):
    other = "shmemx_long_max_reduce_mt_nbe"
    misuse("group_of_posts", "function", check=check).is_fatal(message(
        other, f"thread 1 is in {site(other)}, but another one in {POSTED_SUM}: right would be the same in all", 0))


def test_threads_that_post_as_one_number_checked():
    misuse("group_of_posts", "number", check=True).is_fatal(message(
        "shmemx_long_sum_reduce_mt_nbe", f"two threads are number 0, in {POSTED_SUM} and in {POSTED_SUM}: right would "
                                         "be a number of its own for each of the 2", 0))


@both_runs
def test_groups_do_not_post_into_plans(check):
    misuse("group_of_posts", "plan", check=check).is_fatal(message(
        "shmemx_long_sum_reduce_mt_nbe", f"in {POSTED_SUM} this thread records a plan, since "
        f"{site('shmemx_plan_begin')}: right would be shmemx_plan_end before; a plan has collectives that one thread "
        "posts", 0))


@pytest.mark.parametrize("kind,function", [("finalize", "shmem_finalize"), ("destroy", "shmem_team_destroy")])
@both_runs
def test_collectives_that_some_threads_have_not_posted(kind, function, check):
    misuse("posted_by_some", kind, check=check).is_fatal(message(
        function, f"1 of 2 threads have posted {POSTED_SUM}: right would be all of them, and a wait for it, before "
                  f"{site(function)}", 0))


def test_lists_are_complete():
    assert len(POSTING) >= 20 and len(WITH_THREADS) >= 15 and len(WITH_REQUEST) == len(POSTING) + 10

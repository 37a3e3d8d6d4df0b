"""Checked runs: collectives that do not match end the job within seconds and name both call sites; slow ones do not."""

import concurrent.futures
import re
import subprocess
import time

import pytest
from conftest import OSHRUN, PROGRAMS, alike, execute, message

PROGRAM = PROGRAMS / "order"
LIMIT_S = 120  # two looks a second apart take 2 s of it on a machine that is free


def execute_scenario(scenario, pes, environment):
    begin = time.monotonic()
    result = execute([OSHRUN, "-n", pes, PROGRAM, scenario], HEDDLE_CHECK="1", **environment)
    result.seconds = time.monotonic() - begin
    return result


# They sleep most of the time, so all run at once: name of the run -> scenario, PEs, settings.
RUNS = {"different": ("different", 2, {}), "circle_with_the_world": ("circle_with_the_world", 2, {}),
        "circle_of_three": ("circle_of_three", 3, {})}
RUNS |= {f"circle_of_two {barrier}": ("circle_of_two", 2, {"HEDDLE_BARRIER": barrier})
         for barrier in ("auto", "central", "dissemination", "flat")}
SLOW = [("slow", 2), ("slow", 4), ("slow_chain", 3), ("slow_chain", 4), ("busy", 2), ("busy", 3)]
RUNS |= {f"{scenario} {pes}": (scenario, pes, {}) for scenario, pes in SLOW}
PROGRESS = ("manual", "thread", "auto")
POSTED = ("different_posted", "posted_and_blocking", "unequal_posted", "crossed_and_posted", "outstanding_for_long")
RUNS |= {f"{scenario} {policy}": (scenario, 2, {"HEDDLE_PROGRESS": policy})
         for scenario in POSTED for policy in PROGRESS}
RUNS |= {scenario: (scenario, 2, {}) for scenario in ("thread_that_waited", "new_thread", "lock_over_a_barrier",
                                                      "crossed_locks", "lock_twice", "lock_twice_cleared_by_a_thread",
                                                      "lock_at_the_end")}


@pytest.fixture(scope="module")
def results():
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        yield {name: pool.submit(execute_scenario, *what) for name, what in RUNS.items()}


def site(function):
    return rf"{function} \(called at order\+0x[0-9a-f]+\)"


def names_are_there(result, functions):
    """The addresses in the message are those of the calls: the symbols that addr2line finds are the scenario's."""
    for function, offset in re.findall(r"(\w+) \(called at order\+(0x[0-9a-f]+)\)", result.err):
        assert function in functions
        text = subprocess.run(["nm", "-C", str(PROGRAM)], capture_output=True, text=True, check=True).stdout
        starts = sorted((int(line.split()[0], 16), line.split(maxsplit=2)[2]) for line in text.splitlines()
                        if line.split()[0] != "U" and " t " in line.lower())
        name = [name for start, name in starts if start <= int(offset, 16)][-1]
        assert "namespace" in name or "main" in name, name


def test_different_collectives(results):
    result = results["different"].result()
    one, other = site("shmem_int_sum_reduce"), site("shmem_int_broadcast")
    text = "PE {} is in {} while this PE is in {}: right would be the same collective on all members"
    result.is_fatal("(" + message("shmem_int_sum_reduce", text.format(1, other, one), 0) + "|" +
                    message("shmem_int_broadcast", text.format(0, one, other), 1) + ")")
    assert result.seconds < LIMIT_S
    names_are_there(result, {"shmem_int_sum_reduce", "shmem_int_broadcast"})


DIFFERENT = "PE {} is in {} while this PE is in {}: right would be the same collective on all members"


def either(one, other):
    """What either PE says of itself and the other."""
    here = [site(one), site(other)]
    return "(" + "|".join(message(name, DIFFERENT.format(1 - pe, here[1 - pe], here[pe]), pe)
                          for pe, name in enumerate((one, other))) + ")"


@pytest.mark.parametrize("policy", PROGRESS)
def test_different_orders_of_posting(results, policy):
    result = results[f"different_posted {policy}"].result()
    result.is_fatal(either("shmemx_int_sum_reduce_nbe", "shmemx_int_broadcast_nbe"))
    assert result.seconds < LIMIT_S
    names_are_there(result, {"shmemx_int_sum_reduce_nbe", "shmemx_int_broadcast_nbe"})


@pytest.mark.parametrize("policy", PROGRESS)
def test_posted_here_and_blocking_there(results, policy):
    result = results[f"posted_and_blocking {policy}"].result()
    result.is_fatal(either("shmemx_int_sum_reduce_nbe", "shmem_int_max_reduce"))
    assert result.seconds < LIMIT_S


@pytest.mark.parametrize("policy", PROGRESS)
def test_posted_with_different_arguments(results, policy):
    result = results[f"unequal_posted {policy}"].result()
    result.is_fatal("(" + "|".join(message("shmemx_int_sum_reduce_nbe", alike("nreduce", *numbers), pe)
                                   for pe, numbers in enumerate([(3, 4, 1), (4, 3, 0)])) + ")")
    assert result.seconds < LIMIT_S


@pytest.mark.parametrize("policy", PROGRESS)
@pytest.mark.parametrize("scenario", ["crossed_and_posted", "outstanding_for_long"])
def test_what_is_outstanding_accuses_nobody(results, scenario, policy):
    results[f"{scenario} {policy}"].result().is_fine(2)


WAITS = (r"waits for PE {}, which is in {} and waits for this PE{}: right would be the same order of collectives on "
         r"all PEs; this PE is in {}")


@pytest.mark.parametrize("barrier", ["auto", "central", "dissemination", "flat"])
def test_circle_of_two(results, barrier):
    result = results[f"circle_of_two {barrier}"].result()
    here = site("shmem_team_sync")
    result.is_fatal("(" + "|".join(message("shmem_team_sync", WAITS.format(1 - pe, here, "", here), pe)
                                   for pe in (0, 1)) + ")")
    assert result.seconds < LIMIT_S
    names_are_there(result, {"shmem_team_sync"})


def test_circle_with_the_world(results):
    result = results["circle_with_the_world"].result()
    one, other = site("shmem_barrier_all"), site("shmem_int_fcollect")
    result.is_fatal("(" + message("shmem_barrier_all", WAITS.format(1, other, "", one), 0) + "|" +
                    message("shmem_int_fcollect", WAITS.format(0, one, "", other), 1) + ")")
    assert result.seconds < LIMIT_S


def test_circle_of_three(results):
    result = results["circle_of_three"].result()
    here = site("shmem_int_sum_reduce")
    result.is_fatal("(" + "|".join(message("shmem_int_sum_reduce",
                                           WAITS.format((pe + 1) % 3, here, " by way of others", here), pe)
                                   for pe in range(3)) + ")")
    assert result.seconds < LIMIT_S


@pytest.mark.parametrize("scenario,pes", SLOW)
def test_slow_programs_are_not_accused(results, scenario, pes):
    results[f"{scenario} {pes}"].result().is_fine(pes)


@pytest.mark.parametrize("scenario", ["thread_that_waited", "new_thread"])
def test_threads_may_still_come(results, scenario):
    """Only said, since another thread may resolve it; and it does."""
    result = results[scenario].result()
    assert result.status == 0 and result.out.count("survived") == 2, result
    for line in result.err.splitlines():
        assert re.fullmatch(message("shmem_team_sync", WAITS.format(r"\d", site("shmem_team_sync"), "",
                                                                    site("shmem_team_sync"))), line), result


def test_plain_runs_do_not_look():
    """The same program, without HEDDLE_CHECK."""
    result = execute([OSHRUN, "-n", 2, PROGRAM, "busy"])
    result.is_fine(2)


LOCKED = WAITS.replace("the same order of collectives on all PEs", "to clear a lock before waiting for others in a "
                       "collective, and to take locks in the same order everywhere")


def test_lock_held_over_a_barrier(results):
    result = results["lock_over_a_barrier"].result()
    one, other = site("shmem_barrier_all"), site("shmem_set_lock")
    result.is_fatal("(" + message("shmem_barrier_all", LOCKED.format(1, other, "", one), 0) + "|" +
                    message("shmem_set_lock", LOCKED.format(0, one, "", other), 1) + ")")
    assert result.seconds < LIMIT_S


def test_crossed_locks(results):
    result = results["crossed_locks"].result()
    here = site("shmem_set_lock")
    result.is_fatal("(" + "|".join(message("shmem_set_lock", LOCKED.format(1 - pe, here, "", here), pe)
                                   for pe in (0, 1)) + ")")
    assert result.seconds < LIMIT_S


TWICE = (f"this thread holds lock 0x[0-9a-f]+ already, since {site('shmem_set_lock')}: right would be shmem_clear_lock "
         f"before this {site('shmem_set_lock')}")


def test_lock_taken_twice(results):
    results["lock_twice"].result().is_fatal(message("shmem_set_lock", TWICE))
    cleared = results["lock_twice_cleared_by_a_thread"].result()  # only said, since that may be what is meant
    assert cleared.status == 0 and cleared.out.count("survived") == 2, cleared
    assert re.fullmatch(message("shmem_set_lock", TWICE, 0), cleared.err.strip()), cleared


def test_lock_held_at_the_end(results):
    """Only said: where no PE waits for the lock, all is well."""
    result = results["lock_at_the_end"].result()
    assert result.status == 0 and result.out.count("survived") == 2, result
    assert re.fullmatch(message("shmem_finalize", f"this PE ends while it holds lock 0x[0-9a-f]+, since "
                                f"{site('shmem_set_lock')}: right would be shmem_clear_lock before"
                                r" \(called at order\+0x[0-9a-f]+\)", 1),
                        result.err.strip()), result

"""mpirun on several hosts: answers, output, and how jobs end."""

import pytest
from conftest import SHAPES, finish, start
from processes import alive


def numbers(shape):
    return [int(count) for count in shape.split("+")]


@pytest.mark.parametrize("shape", SHAPES)
def test_answers_are_right(apart, shape):
    counts = numbers(shape)
    n_pes = sum(counts)
    near = [count for count in counts for _ in range(count)]
    result = apart.run(shape, "./data")
    assert result.status == 0, result
    assert sorted(result.lines) == [f"PE {pe} of {n_pes}: {near[pe]} on its node" for pe in range(n_pes)], result


@pytest.mark.parametrize("shape", ["2+2", "1+1+2"])
def test_checked_runs_find_nothing_wrong(apart, shape):
    result = apart.run(shape, "./data", settings={"HEDDLE_CHECK": "1"})
    assert result.status == 0 and len(result.lines) == 4, result


def test_pes_dealt_out_in_turn(apart):
    """PEs 0 and 2 on one host, 1 and 3 on the other: a PE's place on its node is not its number."""
    command = apart.command("2+2", "./data")
    command[command.index("--host"):command.index("--host")] = ["--map-by", "node"]
    result = finish(start(command))
    assert result.status == 0, result
    assert sorted(result.lines) == [f"PE {pe} of 4: 2 on its node" for pe in range(4)], result


def test_nodes_pretended_on_each_host(apart):
    result = apart.run("3+1", "./data", settings={"HEDDLE_TEST_PES_PER_NODE": "2"})
    assert result.status == 0, result
    near = [2, 2, 1, 1]  # PEs 2 and 3 would be one of the pretended nodes, but are on different hosts
    assert sorted(result.lines) == [f"PE {pe} of 4: {near[pe]} on its node" for pe in range(4)], result


def test_the_network_is_opened(apart):
    result = apart.run("1+1", "./loaded")
    assert sorted(result.lines) == [f"PE {pe} of 2: pmix 1, ucx 1" for pe in range(2)], result


def test_init_may_follow_finalize(apart):
    result = apart.run("2+1", "./ends", "again")
    assert result.status == 0, result
    again = sorted(line for line in result.lines if line.startswith("again"))
    assert again == [f"again: {pe}" for pe in (1, 2, 3)], result


def ended(result):
    """The PEs have told their numbers, and all are gone."""
    pids = result.pids()
    return bool(pids) and not any(map(alive, pids))


@pytest.mark.parametrize("shape", ["1+1", "2+2"])
@pytest.mark.parametrize("status", [0, 5])
def test_global_exit(apart, shape, status):
    result = apart.run(shape, "./ends", "global_exit", str(status))
    assert result.status == status, result
    assert f"the last words of PE {sum(numbers(shape)) - 1}" in result.lines, result
    assert ended(result), result


def test_the_status_of_a_pe_is_the_jobs(apart):
    result = apart.run("2+1", "./ends", "status", "7")
    assert result.status == 7, result


def test_exit_without_finalize(apart):
    result = apart.run("1+1", "./ends", "exit", "3")
    assert result.status == 3 and ended(result), result


@pytest.mark.parametrize("shape", ["1+1", "2+1"])
def test_a_return_without_finalize_is_one(apart, shape):
    result = apart.run(shape, "./ends", "no_finalize")
    assert result.status == 0 and ended(result), result
    assert result.err.count("was finalized at its end, which is deprecated") == 1, result


@pytest.mark.parametrize("shape", ["1+1", "2+1"])
def test_an_end_while_others_are_in_a_barrier_is_a_failure_and_hangs_nobody(apart, shape):
    result = apart.run(shape, "./ends", "leave")
    assert result.status != 0 and ended(result), result
    assert "right would be the same collectives on all" in result.err, result


def test_an_end_past_finalize_is_a_failure_and_hangs_nobody(apart):
    result = apart.run("1+1", "./ends", "_exit")
    assert result.status != 0 and ended(result), result


@pytest.mark.parametrize("shape", ["1+1", "2+2"])
def test_a_pe_that_is_killed_ends_the_job(apart, shape):
    result = apart.run(shape, "./ends", "signal")
    assert result.status == 128 + 9, result
    assert ended(result), result


def test_a_fatal_message_ends_the_job(apart):
    result = apart.run("2+1", "./ends", "fatal")
    assert result.status == 1 and ended(result), result
    assert "heddle [pe 2] shmem_long_p: pe 3 is out of range: the job has PEs 0 to 2" in result.err, result


def test_sizes_that_differ_are_an_error(apart, programs):
    """On all PEs: nobody waits for one that has given up."""
    script = programs / "sizes"
    script.write_text('#!/bin/sh\nSHMEM_SYMMETRIC_SIZE=$((PMIX_RANK + 1))m exec "$@"\n')
    script.chmod(0o755)
    result = apart.run("1+1", script, "./ends")
    assert result.status == 1, result
    assert "SHMEM_SYMMETRIC_SIZE is 1048576 bytes here, but 2097152 on PE 1" in result.err, result


def test_a_host_without_the_setting_of_a_profile_is_named(apart, tmp_path):
    script = tmp_path / "some"
    script.write_text('#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" = 1 ] && unset HEDDLE_PROFILE\nexec "$@"\n')
    script.chmod(0o755)
    profiled = {"HEDDLE_PROFILE": str(tmp_path / "profile.json")}
    result = apart.run("1+1", script, "./ends", "well", settings=profiled)
    assert result.status != 0, result
    assert "PE 0 is profiled (HEDDLE_PROFILE), and PE 1 is not: right would be the same" in result.err, result
    result = apart.run("2+1", "./ends", "well", settings=profiled)
    assert result.status == 0 and "heddle profile of ends: 3 PEs" in result.err, result

"""oshrun --hosts with the mpirun that is here."""

import os
import re
import subprocess

import pytest
from conftest import LIMIT_S
from processes import alive


@pytest.mark.parametrize("as_file", [False, True])
def test_answers_are_right(oshrun, tmp_path, as_file):
    result = oshrun.run("2+1", "-v", "./data", hostfile=tmp_path / "list" if as_file else None)
    assert result.status == 0, result
    lines = [f"PE {pe} of 3: {near} on its node" for pe, near in enumerate([2, 2, 1])]
    assert sorted(result.lines) == lines, result
    assert "mpirun starts the PEs" in result.err, result


def test_settings_and_env_reach_every_host(oshrun, programs):
    script = programs / "settings"
    script.write_text('#!/bin/sh\necho "$PMIX_RANK: $NAME, $SHMEM_SYMMETRIC_SIZE"\nexec "$@"\n')
    script.chmod(0o755)
    result = oshrun.run("1+1", "--env", "NAME=a;b c", script, "./ends", settings={"SHMEM_SYMMETRIC_SIZE": "3m"})
    assert result.status == 0, result
    assert {"0: a;b c, 3m", "1: a;b c, 3m"} <= set(result.lines), result


def test_the_status_of_global_exit(oshrun):
    result = oshrun.run("1+2", "./ends", "global_exit", "5")
    assert result.status == 5, result
    assert len(result.pids()) == 3 and not any(map(alive, result.pids())), result


def test_a_launcher_without_pmix_is_noticed(programs):
    """Its PEs would each be a job of their own."""
    result = subprocess.run([programs / "ends"], env={**os.environ, "HEDDLE_HANDED_OVER": "mpirun"},
                            capture_output=True, text=True, timeout=LIMIT_S)
    assert result.returncode == 1 and "mpirun did not tell this PE who it is" in result.stderr, result


def test_the_timeout(oshrun):
    """As on one host: status and message, where each PE is, and no PE is left."""
    result = oshrun.run("2+1", "--timeout", "10", "./ends", "wait")
    assert result.status == 124, result
    assert "oshrun: the job has not ended within 10 s (--timeout); ending it. Its PEs:" in result.err, result
    pids = result.pids()
    places = dict(re.findall(r"oshrun: (PE \d) \(pid \d+ on host [\w-]+\): (.*)", result.err))
    assert places.keys() == {"PE 0", "PE 1", "PE 2"} and places["PE 2"] == "running, not waiting in Heddle", result
    assert all(re.match(r"in shmem_barrier_all .*since \d", places[pe]) for pe in ["PE 0", "PE 1"]), result
    assert {int(pid) for pid in re.findall(r"\(pid (\d+) on host", result.err)} == set(pids), result
    assert len(pids) == 3 and not any(map(alive, pids)), result


def test_the_grace(oshrun):
    """The PEs of each host have the time that --grace gives them."""
    result = oshrun.run("2+1", "--timeout", "8", "--grace", "8", "./ends", "save")
    assert result.status == 124 and len(result.pids()) == 3, result
    assert {f"PE {pe} has saved" for pe in range(3)} <= set(result.lines), result


def test_a_pe_that_never_starts_is_waited_for_in_init(oshrun, programs):
    """The others say so at the end of --timeout."""
    script = programs / "some"
    script.write_text('#!/bin/sh\n[ "$PMIX_RANK" = 1 ] && exec sleep 1000\nexec ./data\n')
    script.chmod(0o755)
    result = oshrun.run("1+1", "--timeout", "5", script)
    assert result.status == 124, result
    assert re.search(r"oshrun: PE 0 \(.*\): in shmem_init since \d.* s, waiting for other PEs", result.err), result
    assert "oshrun: PE 1" not in result.err, result


def test_a_pe_that_never_starts_ends_the_job(oshrun, programs):
    script = programs / "some"
    script.write_text('#!/bin/sh\n[ "$PMIX_RANK" = 1 ] && exec sleep 1000\nexec ./data\n')
    script.chmod(0o755)
    result = oshrun.run("1+1", script, settings={"HEDDLE_LAUNCH_TIMEOUT_S": "3"})
    assert result.status == 1, result
    assert re.search(r"PMIx_Fence: PE 0 of 2 on host [\w-]+ has waited for the other PEs for 3 s", result.err), result


def test_input_goes_to_the_first_pe(oshrun, programs):
    script = programs / "reads"
    script.write_text('#!/bin/sh\nread line || line=none\necho "PE $PMIX_RANK: $line"\nexec ./data >&2\n')
    script.chmod(0o755)
    process = subprocess.run(oshrun.command("1+2", script), input="a word\n", capture_output=True, text=True,
                             timeout=LIMIT_S)
    assert process.returncode == 0, process
    assert sorted(process.stdout.splitlines()) == ["PE 0: a word", "PE 1: none", "PE 2: none"], process

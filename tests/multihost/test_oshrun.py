"""oshrun --hosts with the mpirun that is here."""

import os
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
    """As on one host: status and message, and no PE is left."""
    result = oshrun.run("2+1", "--timeout", "5", "./ends", "wait")
    assert result.status == 124 and "the job has not ended within 5 s (--timeout); ending it" in result.err, result
    assert len(result.pids()) == 3 and not any(map(alive, result.pids())), result


def test_input_goes_to_the_first_pe(oshrun, programs):
    script = programs / "reads"
    script.write_text('#!/bin/sh\nread line || line=none\necho "PE $PMIX_RANK: $line"\nexec ./data >&2\n')
    script.chmod(0o755)
    process = subprocess.run(oshrun.command("1+2", script), input="a word\n", capture_output=True, text=True,
                             timeout=LIMIT_S)
    assert process.returncode == 0, process
    assert sorted(process.stdout.splitlines()) == ["PE 0: a word", "PE 1: none", "PE 2: none"], process

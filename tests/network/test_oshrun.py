"""oshrun --hosts with the mpirun that is here."""

import os
import subprocess

import pytest

from conftest import BUILD, LIMIT_S, alive


@pytest.fixture
def oshrun(hosts, programs):
    """Runs oshrun on the first host; `places`: PEs of each host."""
    def run(places, *words, hostfile=None, **variables):
        named = [f"{host.name}:{count}" for host, count in zip(hosts.all, places)]
        where = ["--hosts", ",".join(named)]
        if hostfile:
            hostfile.write_text("\n".join(named))
            where = ["--hostfile", hostfile]
        command = hosts.all[0].within(BUILD / "bin" / "oshrun", *where, "-n", sum(places), *words, folder=programs)
        environment = {**os.environ, "OMPI_MCA_plm_rsh_agent": str(hosts.agent), "HEDDLE_NET_TRANSPORTS": "tcp",
                       **variables}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S,
                              stdin=subprocess.DEVNULL)
    return run


@pytest.mark.parametrize("as_file", [False, True])
def test_answers_are_right(oshrun, tmp_path, as_file):
    result = oshrun([2, 1], "./data", hostfile=tmp_path / "list" if as_file else None)
    assert result.returncode == 0, result
    lines = [f"PE {pe} of 3: {near} on its node" for pe, near in enumerate([2, 2, 1])]
    assert sorted(result.stdout.splitlines()) == lines, result
    assert "mpirun starts the PEs" in result.stderr, result


def test_settings_and_env_reach_every_host(oshrun, programs):
    script = programs / "settings"
    script.write_text('#!/bin/sh\necho "$PMIX_RANK: $NAME, $SHMEM_SYMMETRIC_SIZE"\nexec "$@"\n')
    script.chmod(0o755)
    result = oshrun([1, 1], "--env", "NAME=a;b c", script, "./ends", SHMEM_SYMMETRIC_SIZE="3m")
    assert result.returncode == 0, result
    assert {"0: a;b c, 3m", "1: a;b c, 3m"} <= set(result.stdout.splitlines()), result


def test_the_status_of_global_exit(oshrun):
    result = oshrun([1, 2], "./ends", "global_exit", "5")
    assert result.returncode == 5, result
    pids = [int(line.split()[1]) for line in result.stdout.splitlines() if line.startswith("pid ")]
    assert len(pids) == 3 and not any(map(alive, pids)), result


def test_a_launcher_without_pmix_is_noticed(programs):
    """Its PEs would each be a job of their own."""
    result = subprocess.run([programs / "ends"], env={**os.environ, "HEDDLE_HANDED_OVER": "mpirun"},
                            capture_output=True, text=True, timeout=LIMIT_S)
    assert result.returncode == 1 and "mpirun did not tell this PE who it is" in result.stderr, result

"""Slurm on two hosts, which are namespaces of this machine with a slurmd each: srun by PMI-2 and by PMIx, and oshrun in
an allocation of both."""

import os
import pty
import subprocess
import time

import namespace_hosts
import pytest
import slurm as slurm_of_tests
from conftest import BUILD, LAUNCHERS, LIMIT_S, Result

SETTINGS = {"HEDDLE_NET_TRANSPORTS": "tcp", "HEDDLE_NET_HEARTBEAT_TIMEOUT_S": "60"}
WAYS = ["slurm-pmi2", "slurm-pmix"]
HEARD_S = 10  # twenty periods of the heartbeat


class OnHosts:
    def __init__(self, here, folder):
        self.here = here
        self.hosts = namespace_hosts.Hosts(folder, 2)
        try:
            self.slurm = slurm_of_tests.Slurm(folder, self.hosts.all)
        except BaseException:
            self.hosts.close()
            raise

    def command(self, on_each, *words, way):
        """The words that start so many PEs on each host."""
        return self.slurm.within(0, *LAUNCHERS[way], "-N", 2, "--ntasks-per-node", on_each, "-n", 2 * on_each, *words)

    def run(self, *command, **settings):
        return self.here.run(*command, **{**SETTINGS, **self.slurm.environment, **settings})

    def close(self):
        self.slurm.close()
        self.hosts.close()


@pytest.fixture(scope="module")
def on_hosts(here, tmp_path_factory):
    if lacking := namespace_hosts.missing():
        pytest.skip(f"hosts of namespaces need {lacking}")
    made = OnHosts(here, tmp_path_factory.mktemp("slurm-hosts"))
    yield made
    made.close()


@pytest.mark.parametrize("on_each", [1, 2, 4])
@pytest.mark.parametrize("way", WAYS)
def test_nodes(here, on_hosts, way, on_each):
    on_hosts.run(*on_hosts.command(on_each, here.program, way=way)).is_well(2 * on_each, near=on_each)


@pytest.mark.parametrize("way", WAYS)
def test_starts_256(here, on_hosts, way):
    on_hosts.run(*on_hosts.command(128, here.program, "hello", way=way),
                 HEDDLE_NET_HEARTBEAT_TIMEOUT_S="600").is_well(256, near=128)


@pytest.mark.parametrize("end", ["kill", "exit", "global"])
@pytest.mark.parametrize("way", WAYS)
def test_a_pe_ends_the_job(here, on_hosts, way, end):
    result = on_hosts.run(*on_hosts.command(2, here.program, end, way=way))
    assert result.status != 0 and len(result.processes) == 4, result
    result.leaves_nothing()


def test_srun_without_pmi_is_refused(here, on_hosts):
    """Also where each host has one process alone."""
    result = on_hosts.run(*on_hosts.slurm.within(0, "srun", "--quiet", "--mpi=none", "-N", 2, "-n", 2, here.program))
    assert result.status == 1 and result.out == "", result
    assert result.err.count("srun has started this process as one of several (SLURM_STEP_NUM_TASKS=2)") == 2, result


@pytest.mark.parametrize("way", WAYS)
def test_a_program_that_a_pe_starts_is_a_job_of_one(here, on_hosts, way):
    result = on_hosts.run(*on_hosts.command(1, here.program, "child", way=way))
    assert result.status == 0 and result.lines.count("PE 0 of 1: 1, 1 near") == 2 and len(result.lines) == 4, result


@pytest.mark.parametrize("way", WAYS)
def test_a_pe_never_starts(here, on_hosts, way, tmp_path):
    script = tmp_path / "some"
    script.write_text('#!/bin/sh\n[ "$SLURM_PROCID" = 1 ] && exec sleep 1000\nexec "$@"\n')
    script.chmod(0o755)
    result = on_hosts.run(*on_hosts.command(1, script, here.program, way=way), HEDDLE_LAUNCH_TIMEOUT_S="2")
    assert result.status != 0 and result.out == "", result  # srun may lose the line of a PE that it kills


def test_oshrun_in_an_allocation(here, on_hosts):
    """Uses all of it."""
    command = on_hosts.slurm.within(0, "salloc", "--quiet", "-N", 2, "-n", 4, "--ntasks-per-node", 2,
                                    BUILD / "bin/oshrun", here.program)
    on_hosts.run(*command).is_well(4, near=2)


@pytest.mark.parametrize("pes", ["stay", "deaf"])
def test_control_c_ends_a_job_of_oshrun_at_once(here, on_hosts, tmp_path, pes):
    """As on one host: srun alone would show its PEs, and want another one. deaf: PEs that ignore SIGINT, too."""
    for name in ["prterun", "mpirun"]:
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    settings = {**SETTINGS, **on_hosts.slurm.environment}
    settings["PATH"] = f"{tmp_path}:{settings['PATH']}"
    places = ",".join(f"{name}:2" for name in on_hosts.slurm.names)
    command = on_hosts.slurm.within(0, BUILD / "bin/oshrun", "-v", "--hosts", places, "-n", 4, here.program, pes)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(["setsid", "--ctty", *command], env={**here.environment, **settings}, stdin=theirs,
                               text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.close(theirs)
    out = "".join(process.stdout.readline() for _ in range(4))
    os.write(ours, b"\x03")
    try:
        rest, err = process.communicate(timeout=LIMIT_S)
    finally:
        os.close(ours)  # SIGHUP ends a job that is still there
    result = Result(process.returncode, out + rest, err)
    assert result.status == 130 and "/srun starts the PEs" in result.err and len(result.processes) == 4, result
    assert "srun: interrupt (one more within" not in result.err, result  # which only its end by SIGKILL would follow
    result.leaves_nothing()


@pytest.mark.parametrize("way", WAYS)
def test_a_host_that_dies_ends_the_job(here, on_hosts, way):
    """By the heartbeat: nothing else tells of a host without power. It has to have been heard once."""
    settings = {**SETTINGS, "HEDDLE_NET_HEARTBEAT_TIMEOUT_S": "15"}
    process = subprocess.Popen(on_hosts.command(1, here.program, "stay", way=way), stdin=subprocess.DEVNULL, text=True,
                               env={**here.environment, **settings, **on_hosts.slurm.environment},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out = "".join(process.stdout.readline() for _ in range(2))
    time.sleep(HEARD_S)
    on_hosts.slurm.kill_host(1)
    try:
        rest, err = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.terminate()
        rest, err = process.communicate()
        pytest.fail(f"hangs\n{Result(process.returncode, out + rest, err)}")
    finally:
        on_hosts.slurm.revive_host(1)
    result = Result(process.returncode, out + rest, err)
    assert result.status != 0 and len(result.processes) == 2, result
    result.leaves_nothing()

"""Launchers on two hosts: the PEs find their nodes, and the job ends as a whole. hydra, Open MPI's mpirun over real
ssh, oshrun that takes either, and Slurm by PMI-2 and by PMIx."""

import os
import pty
import re

import pytest
from conftest import BUILD, HERE, Result, all_hang, compile_program, reports_in, wait_until, write_script
from two_hosts import WAYS, OpenMpi, Slurm


@pytest.fixture(scope="module", params=WAYS)
def launcher(request, here, tmp_path_factory):
    made = WAYS[request.param](here, tmp_path_factory.mktemp("hosts"), request.param)
    yield made
    made.close()


def only(*ways):
    return pytest.mark.parametrize("launcher", ways, indirect=True)


@pytest.mark.parametrize("on_each", [1, 2, 4])
def test_starts(here, launcher, on_each):
    launcher.run(on_each, here.program).is_well(2 * on_each, near=on_each)


def test_starts_256(here, launcher):
    launcher.run(128, here.program, "hello", HEDDLE_NET_HEARTBEAT_TIMEOUT_S="600").is_well(256, near=128)


@pytest.mark.parametrize("end,status", [("exit", 7), ("global", 5), ("kill", 137)])
def test_a_pe_ends_the_job(here, launcher, end, status):
    result = launcher.run(2, here.program, end)
    assert result.status == status if isinstance(launcher, OpenMpi) else result.status != 0, result  # of one host
    assert len(result.processes) == 4 or "hydra" in launcher.way, result  # which may lose the other host's last words
    result.leaves_nothing()


@only("hydra", "openmpi", "oshrun-mpirun", "oshrun-hydra")
def test_a_signal_to_the_launcher_shows_where_the_pes_are(here, launcher):
    """Once for each host. Launchers may end PEs before that, or lose it: then once more. mpirun ends a host after the
    other, so that PEs of the second one may end when they notice, by a message."""
    for _ in range(5):
        job = launcher.start(2, here.program, "stay")
        job.hear(4)
        pes = Result(None, job.heard, "").processes
        wait_until(lambda pes=pes: all_hang(pes))
        job.process.terminate()
        result = job.end()
        assert result.status != 0, result
        result.leaves_nothing()
        reports = reports_in(result.err, "SIGTERM")
        if len(reports) == 2:
            break
    pes_of = dict(zip((host.name for host in launcher.hosts.all), ("0-1", "2-3"), strict=True))
    assert reports and reports.keys() <= pes_of.keys(), result
    for host, (line,) in reports.items():
        assert re.match(rf"2 PEs \({pes_of[host]}; pids [\d, ]+\): in shmem_long_wait_until\(sum < 0, is 10\) ", line)


def test_a_program_that_a_pe_starts_is_a_job_of_one(here, launcher):
    result = launcher.run(1, here.program, "child")
    assert result.status == 0 and result.lines.count("PE 0 of 1: 1, 1 near") == 2 and len(result.lines) == 4, result


def test_a_pe_never_starts(here, launcher, delayed):
    result = launcher.run(1, delayed, 1, "exec sleep 1000", here.program, HEDDLE_LAUNCH_TIMEOUT_S="2")
    assert result.status != 0 and result.out == "", result
    is_told = " for 2 s" in result.err or " within 2 s" in result.err
    assert is_told or isinstance(launcher, Slurm), result  # which may lose the line of a PE that it kills


def test_a_host_that_dies_ends_the_job(here, launcher):
    """By the heartbeat, where nothing else tells of a host without power."""
    job = launcher.start(1, here.program, "stay", HEDDLE_NET_HEARTBEAT_TIMEOUT_S="15")
    job.hear(2)
    launcher.lose_host()
    try:
        result = job.end()
    finally:
        launcher.revive_host()
    assert result.status != 0 and len(result.processes) == 2, result
    result.leaves_nothing()


@only("hydra")
def test_version_2_of_hydra_is_refused(here, launcher):
    """A fence of hydra's PMI-2 does not wait for the other host, so that a PE would leave while others still talk.
    hydra 4.0 does not know an abort of PMI-2 either: it ends at once, and may lose what the PEs have said."""
    result = launcher.run(1, here.program, HEDDLE_LAUNCH="pmi2")
    assert result.status != 0 and not result.processes, result
    words = ["only Slurm's PMI-2 has a barrier: right would be HEDDLE_LAUNCH=pmi", "Unrecognized PMI command: abort"]
    assert any(word in result.err for word in words), result


@only("slurm-pmix")
def test_srun_without_pmi_is_refused(here, launcher):
    """Also where each host has one process alone."""
    result = launcher.do("srun", "--quiet", "--mpi=none", "-N", 2, "-n", 2, here.program).end()
    assert result.status == 1 and result.out == "", result
    assert result.err.count("srun has started this process as one of several (SLURM_STEP_NUM_TASKS=2)") == 2, result


@only("slurm-pmix")
def test_oshrun_in_an_allocation(here, launcher):
    """Uses all of it."""
    launcher.do("salloc", "--quiet", "-N", 2, "-n", 4, "--ntasks-per-node", 2, BUILD / "bin/oshrun",
                here.program).end().is_well(4, near=2)


@only("oshrun-srun")
@pytest.mark.parametrize("pes", ["stay", "deaf"])
def test_control_c_ends_a_job_of_oshrun_at_once(here, launcher, tmp_path, pes):
    """As on one host: srun alone would show its PEs, and want another one. deaf: PEs that ignore SIGINT, too."""
    for name in ["prterun", "mpirun"]:
        write_script(tmp_path / name, "exit 1")
    ours, theirs = pty.openpty()
    job = launcher.do("setsid", "--ctty", *launcher.oshrun(2), "-v", "-n", 4, here.program, pes, stdin=theirs,
                      PATH=f"{tmp_path}:{launcher.environment['PATH']}")
    os.close(theirs)
    job.hear(4)
    os.write(ours, b"\x03")
    try:
        result = job.end()
    finally:
        os.close(ours)  # SIGHUP ends a job that is still there
    assert result.status == 130 and "/srun starts the PEs" in result.err and len(result.processes) == 4, result
    assert "srun: interrupt (one more within" not in result.err, result  # which only its end by SIGKILL would follow
    result.leaves_nothing()


@only("oshrun-mpirun")
def test_a_job_that_takes_too_long_is_ended(here, launcher):
    names = ",".join(host.name for host in launcher.hosts.all)
    result = launcher.do(BUILD / "bin/oshrun", "--hosts", names, "--ppn", 1, "--timeout", 10, here.program,
                         "stay").end()
    assert result.status == 124 and len(result.processes) == 2, result
    assert "oshrun: the job has not ended within 10 s (--timeout); ending it" in result.err, result
    result.leaves_nothing()


@pytest.fixture
def ends(tmp_path):
    return compile_program(HERE.parent / "multihost" / "ends.c", tmp_path / "ends")


@only("oshrun-hydra")
def test_the_timeout_of_oshrun_by_hydra(launcher, ends):
    result = launcher.do(*launcher.oshrun(2), "-n", 3, "--timeout", 8, ends, "wait").end()
    assert result.status == 124, result
    assert "oshrun: the job has not ended within 8 s (--timeout); ending it. Its PEs:" in result.err, result
    places = dict(re.findall(r"oshrun: (PE \d) \(pid \d+ on host [\w-]+\): (.*)", result.err))
    assert places.keys() == {"PE 0", "PE 1", "PE 2"} and places["PE 2"] == "running, not waiting in Heddle", result


@only("oshrun-hydra")
def test_the_grace_of_oshrun_by_hydra(launcher, ends):
    """Which is said to be none where a PE fails."""
    result = launcher.do(*launcher.oshrun(2), "-n", 3, "--timeout", 6, "--grace", 30, ends, "save").end()
    assert result.status == 124 and "/mpiexec.hydra ends the PEs by SIGKILL when one of them fails" in result.err
    assert {f"PE {pe} has saved" for pe in range(3)} <= set(result.out.splitlines()), result

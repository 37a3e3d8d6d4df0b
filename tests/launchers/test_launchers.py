"""Programs under real launchers: they start right, are refused, or end, and never are several jobs without a word."""

import os
import re
import signal
import subprocess
import time

import pytest
from conftest import (
    BUILD,
    LAUNCHERS,
    LIMIT_S,
    OVER_TCP,
    SPEAK_PMI,
    Result,
    all_hang,
    reports_in,
    wait_until,
    write_script,
)
from processes import alive, stat


@pytest.mark.parametrize("pes", [1, 2, 4])
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_starts(here, launcher, pes):
    here.run(*LAUNCHERS[launcher], "-n", pes, here.program).is_well(pes)


@pytest.mark.parametrize("launcher", [*LAUNCHERS, "oshrun"])
def test_starts_256(here, launcher):
    here.run(*LAUNCHERS.get(launcher, [BUILD / "bin" / "oshrun"]), "-n", 256, here.program, "hello").is_well(256)


@pytest.mark.parametrize("launcher", ["hydra", "slurm-pmi2"])
@pytest.mark.parametrize("pes", [1, 2, 4])
def test_starts_by_version_2(here, launcher, pes):
    here.run(*LAUNCHERS[launcher], "-n", pes, here.program, HEDDLE_LAUNCH="pmi2").is_well(pes)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_pretended_nodes(here, launcher):
    here.run(*LAUNCHERS[launcher], "-n", 3, here.program, HEDDLE_TEST_PES_PER_NODE="1", **OVER_TCP).is_well(3, near=1)


@pytest.mark.parametrize("way", ["kill", "exit", "global"])
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_pe_ends_the_job(here, launcher, way):
    result = here.run(*LAUNCHERS[launcher], "-n", 3, here.program, way)
    told = [1, 2, 3] if launcher.startswith("hydra") else [3]  # hydra may lose the last words of what it ends
    assert result.status != 0 and len(result.processes) in told, result
    result.leaves_nothing()


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_job_with_races_has_their_status(here, launcher):
    """And no PE is ended by another one's."""
    result = here.run(*LAUNCHERS[launcher], "-n", 3, here.program, "race", HEDDLE_RACES="1")
    assert result.status == 66 and " race: " in result.err, result
    assert [line for line in result.lines if "is at its end" in line] == [f"PE {pe} is at its end" for pe in range(3)]
    result.leaves_nothing()


@pytest.mark.parametrize("launcher,sent,name", [
    *((launcher, sent, sent.name) for launcher in ("hydra", "hydra-port") for sent in (signal.SIGTERM, signal.SIGINT)),
    *(("openmpi", sent, "SIGTERM") for sent in (signal.SIGTERM, signal.SIGINT)),
    *((launcher, "scancel", "SIGTERM") for launcher in ("slurm-pmi2", "slurm-pmix"))])
def test_a_signal_to_the_launcher_shows_where_the_pes_are(here, launcher, sent, name):
    """Once for all. A launcher that is itself kept waiting may end the PEs before, or lose it: then once more."""
    for _ in range(5):
        job = here.start(*LAUNCHERS[launcher], "-n", 3, here.program, "stay",
                         OMPI_MCA_odls_base_sigkill_timeout="10")
        job.hear(3)
        pes = Result(None, job.heard, "").processes
        wait_until(lambda pes=pes: all_hang(pes))
        if sent == "scancel":
            subprocess.run(["scancel", "--user", "root"], env=here.environment, check=True, timeout=LIMIT_S)
        else:
            job.process.send_signal(sent)
        result = job.end()
        assert result.status != 0, result
        result.leaves_nothing()
        reports = reports_in(result.err, name)
        if reports:
            break
    (line,), = reports.values()
    assert re.fullmatch(r"3 PEs \(0-2; pids [\d, ]+\): in shmem_long_wait_until\(sum < 0, is 6\) "
                        r"\(called at pe\+0x[0-9a-f]+\) since \d+\.\d( to \d+\.\d)? s", line), result


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_program_that_a_pe_starts_is_a_job_of_one(here, launcher):
    result = here.run(*LAUNCHERS[launcher], "-n", 2, here.program, "child")
    assert result.status == 0 and result.lines.count("PE 0 of 1: 1, 1 near") == 2 and len(result.lines) == 4, result


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_pe_never_starts(here, launcher, delayed):
    """The one that never starts is PE 1, which only waits for others, or PE 0, of which PE 1 wants the memory."""
    for absent, here_is, awaited in [(1, 0, "PMIx_Fence: {}the other PEs{}"),
                                     (0, 1, "PMIx_Get: {}heddle.offer.0 of PE 0{}")]:
        result = here.run(*LAUNCHERS[launcher], "-n", 2, delayed, absent, "exec sleep 1000", here.program,
                          HEDDLE_LAUNCH_TIMEOUT_S="2")
        assert result.status != 0, result
        waits = f"PE {here_is} of 2 on host {os.uname().nodename} has waited for "
        said = (f"PE {here_is} of 2 and the process manager that started it (PMI-1): not all PEs have come within 2 s"
                if launcher in SPEAK_PMI else awaited.format(waits, " for 2 s (HEDDLE_LAUNCH_TIMEOUT_S)"))
        assert said in result.err, result


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_pe_that_starts_late_is_waited_for(here, launcher, delayed):
    """As on a busy host. PMIx's own servers give up after 2 s."""
    here.run(*LAUNCHERS[launcher], "-n", 3, delayed, 0, "sleep 5", here.program).is_well(3)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_pe_ends_when_what_started_it_knows(here, launcher):
    """On a busy host PMIx's own clients end 2 s after they have told it, and mpirun saw them end without a word."""
    job = here.start(*LAUNCHERS[launcher], "-n", 4, here.program, "stop")
    job.hear(4)
    pes = Result(None, job.heard, "").processes
    wait_until(lambda: [stat(pe)[0] for pe in pes] == ["T"] * 4)
    starters = {stat(pe)[1] for pe in pes}
    for starter in starters:
        os.kill(starter, signal.SIGSTOP)
    for pe in pes:
        os.kill(pe, signal.SIGCONT)
    time.sleep(4)
    ended = [pe for pe in pes if not alive(pe)]
    for starter in starters:
        os.kill(starter, signal.SIGCONT)
    job.end().is_well(4)
    assert not ended


@pytest.mark.parametrize("launcher", ["hydra", "hydra-port", "openmpi"])
def test_a_launcher_that_is_killed_takes_its_pes_along(here, launcher):
    job = here.start(*LAUNCHERS[launcher], "-n", 2, here.program, "stay")
    job.hear(2)
    job.process.kill()
    result = job.end()
    assert len(result.processes) == 2, result
    result.leaves_nothing()


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_lost_environment_is_told(here, launcher, tmp_path):
    """As behind sudo. The processes above it tell, of which each stays until both have looked."""
    wait = f"{tmp_path}/WORD.* 2>/dev/null | wc -l) = 2 ]; do sleep 0.01; done\n"
    script = write_script(tmp_path / "lose", f'touch {tmp_path}/here.$$\nuntil [ $(ls {wait.replace("WORD", "here")}'
                          f'env -i "$@"\nstatus=$?\ntouch {tmp_path}/done.$$\n'
                          f'until [ $(ls {wait.replace("WORD", "done")}exit $status')
    result = here.run(*LAUNCHERS[launcher], "-n", 2, script, here.program)
    assert result.status != 0 and result.out == "", result
    assert result.err.count("has started this process as one of several, and the variables by which it tells") == 2


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_oshrun_that_is_started_several_times_says_so_once(here, launcher):
    result = here.run(*LAUNCHERS[launcher], "-n", 2, BUILD / "bin" / "oshrun", "-n", 2, here.program)
    assert result.status == 0 and result.lines == ["PE 0 of 2: 3, 2 near"] * 2 + ["PE 1 of 2: 3, 2 near"] * 2, result
    assert result.err.count("has started this oshrun as one of several, and each starts a job of its own") == 1, result


def test_srun_without_pmi_is_refused(here):
    result = here.run("srun", "--quiet", "--overcommit", "--mpi=none", "-n", 4, here.program)
    assert result.status == 1 and result.out == "", result
    assert result.err.count("srun has started this process as one of several (SLURM_STEP_NUM_TASKS=4)") == 4, result


def test_one_process_of_slurm_is_a_job_of_one(here):
    here.run("srun", "--quiet", "--mpi=none", "-n", 1, here.program).is_well(1)
    here.run("salloc", "--quiet", "-n", 4, here.program).is_well(1)


@pytest.mark.parametrize("shell", ["salloc --quiet -n 4", "srun --quiet -n 4 --pty bash --norc"])
def test_interactive_shells_of_slurm(here, shell):
    result = here.run("script", "--quiet", "--return", "--command", shell, "/dev/null",
                      text=f"{here.program}; echo status $?\nexit\n")
    assert "PE 0 of 1: 1, 1 near" in result.out and "status 0" in result.out, result


def test_oshrun_in_an_allocation(here):
    here.run("salloc", "--quiet", "-n", 4, BUILD / "bin" / "oshrun", "-n", 3, here.program).is_well(3)


@pytest.mark.parametrize("launcher", ["hydra", "openmpi"])
def test_a_job_in_an_allocation(here, launcher):
    here.run("salloc", "--quiet", "-n", 2, *LAUNCHERS[launcher], "-n", 2, here.program).is_well(2)

"""mpirun on one host: one node, and nodes that are pretended or apart although they are on one host."""

import os
import shutil
import signal
import subprocess
import time

import pytest
from conftest import BUILD, HERE, LIMIT_S
from processes import alive


@pytest.mark.parametrize("pes", [1, 2, 3, 4])
def test_answers_are_right(here, pes):
    result = here.run(str(pes), "./data")
    assert result.status == 0, result
    assert sorted(result.lines) == [f"PE {pe} of {pes}: {pes} on its node" for pe in range(pes)], result


def test_no_network_is_opened_for_one_node(here):
    result = here.run("3", "./loaded")
    assert sorted(result.lines) == [f"PE {pe} of 3: pmix 1, ucx 0" for pe in range(3)], result


def test_checked_runs_find_nothing_wrong(here):
    result = here.run("3", "./data", settings={"HEDDLE_CHECK": "1"})
    assert result.status == 0 and len(result.lines) == 3, result


def test_circles_end_checked_runs(here):
    """The threads of the launcher's library are not taken for the program's, which might still come."""
    result = here.run("2", "./circle", settings={"HEDDLE_CHECK": "1"})
    assert result.status == 1 and "right would be the same order of collectives" in result.err, result


def test_a_program_that_a_pe_starts_is_a_job_of_its_own(here):
    result = here.run("2", "./child")
    assert result.status == 0, result
    assert sorted(result.lines) == ["child: PE 0 of 1"] * 2 + ["parent: PE 0 of 2", "parent: PE 1 of 2"], result


@pytest.mark.parametrize("node_pes,near", [(1, [1, 1, 1, 1]), (2, [2, 2, 2, 2]), (3, [3, 3, 3, 1]), (4, [4, 4, 4, 4])])
def test_pretended_nodes(here, node_pes, near):
    result = here.run("4", "./data", settings={"HEDDLE_TEST_PES_PER_NODE": node_pes})
    assert result.status == 0, result
    assert sorted(result.lines) == [f"PE {pe} of 4: {near[pe]} on its node" for pe in range(4)], result


@pytest.mark.parametrize("apart", [[2], [0], [0, 1, 2]])
def test_containers_share_memory(here, programs, apart):
    """PEs with process numbers of their own, as in containers."""
    script = programs / f"apart-{'-'.join(map(str, apart))}"
    script.write_text(f'#!/bin/sh\ncase $PMIX_RANK in {"|".join(map(str, apart))}) exec unshare --pid --fork '
                      '--mount-proc "$@" ;; esac\nexec "$@"\n')
    script.chmod(0o755)
    result = here.run("3", script, "./data")
    assert result.status == 0, result
    assert sorted(result.lines) == [f"PE {pe} of 3: 3 on its node" for pe in range(3)], result


def test_sizes_that_differ_are_an_error_on_one_host(here):
    ends = here.programs / "ends"
    process = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe",
                              "-n", "1", "-x", "SHMEM_SYMMETRIC_SIZE=1m", ends, ":",
                              "-n", "1", "-x", "SHMEM_SYMMETRIC_SIZE=2m", ends],
                             capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL)
    assert process.returncode == 1
    assert "SHMEM_SYMMETRIC_SIZE is 1048576 bytes here, but 2097152 on PE 1" in process.stderr, process.stderr


@pytest.fixture(scope="module")
def hybrid(programs):
    header = ["mpicc", "-fsyntax-only", "-include", "mpi.h", "-x", "c", os.devnull]
    if not shutil.which("mpicc") or subprocess.run(header, capture_output=True).returncode != 0:
        pytest.skip("needs mpicc and mpi.h")
    (programs / "mpi").mkdir()
    built = programs / "mpi" / "hybrid"
    subprocess.run([BUILD / "bin" / "oshcc", "-O2", "-Wall", HERE / "mpi" / "hybrid.c", "-o", built],
                   check=True, timeout=60, env={**os.environ, "HEDDLE_CC": "mpicc"})
    return "./mpi/hybrid"


@pytest.mark.parametrize("order", ["mm", "ms", "sm", "ss"])
@pytest.mark.parametrize("settings", [{}, {"HEDDLE_TEST_PES_PER_NODE": 1}], ids=["node", "nodes"])
def test_mpi_in_the_same_program(here, hybrid, order, settings):
    """Either may be initialized and finalized first."""
    result = here.run("3", hybrid, order, settings=settings)
    assert result.status == 0, result
    assert sorted(result.lines) == [f"PE {pe} of 3" for pe in range(3)], result


def test_the_death_of_mpirun_ends_the_pes(here):
    process = here.start("3", "./ends", "wait")
    pids = [int(process.stdout.readline().split()[1]) for _ in range(3)]
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=LIMIT_S)
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end and any(map(alive, pids)):
        time.sleep(0.05)
    left = [pid for pid in pids if alive(pid)]
    for pid in left:  # the test's own programs, as they have just told
        os.kill(pid, signal.SIGKILL)
    assert not left


def test_who_ends_first_brings_nobody_down(programs):
    """What one is still connecting to another one has closed: rarely, hence many short jobs."""
    environment = {**os.environ, "HEDDLE_TEST_PES_PER_NODE": "3", "HEDDLE_NET_TRANSPORTS": "tcp"}
    for _ in range(40):
        result = subprocess.run([BUILD / "bin" / "oshrun", "-n", "7", programs / "brief"], capture_output=True,
                                text=True, env=environment, timeout=LIMIT_S)
        assert result.returncode == 0, result.stderr


def test_a_misspelt_setting_is_said_once(here):
    """By the first PE: mpirun ends the others before they do."""
    result = here.run("3", "./ends", settings={"HEDDLE_CHEK": 1})
    text = "HEDDLE_CHEK is no setting of Heddle: did you mean HEDDLE_CHECK?"
    assert result.status == 1 and result.err.count(text) == 1, result

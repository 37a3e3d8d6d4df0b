"""The end of programs without shmem_finalize: it is one, collective, where the program ends well; what cannot be
finalized is an error with a name, and never a hang. leaving.cpp has the words that tell each PE what to do."""

import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest
from conftest import build

HERE = pathlib.Path(__file__).resolve().parent
WARNING = (r"heddle \[pe \d\] exit: the program has called {} and shmem_finalize {}: it was finalized at its end, "
           r"which is deprecated; right would be a shmem_finalize for each shmem_init")
ONCE = WARNING.format("shmem_init once", "never")


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    program = tmp_path_factory.mktemp("leaving") / "leaving"
    subprocess.run([build() / "bin" / "oshc++", "-O1", "-o", program, HERE / "leaving.cpp", "-pthread"], check=True)
    return program


class Runs:
    """A job in one of the ways to run one: on a node, on nodes that are pretended, under another launcher."""

    def __init__(self, oshrun, program, way):
        self.oshrun, self.program, self.way = oshrun, program, way

    def __call__(self, pes, *words, limit=60):
        environment = dict(os.environ)
        if self.way != "mpirun":
            if self.way != "node":
                environment["HEDDLE_TEST_PES_PER_NODE"] = self.way.removeprefix("nodes of ")
            return self.oshrun.run("-n", pes, self.program, *words, limit=limit, env=environment)
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        node = self.oshrun.path
        self.oshrun.path = shutil.which("mpirun")
        try:
            return self.oshrun.run("--oversubscribe", "-n", pes, self.program, *words, limit=limit, env=environment)
        finally:
            self.oshrun.path = node


WAYS = ["node", "nodes of 1", "nodes of 2", "mpirun"]
NEEDS = {"nodes of 1": "libheddle_ucx.so", "nodes of 2": "libheddle_ucx.so", "mpirun": "libheddle_pmix.so"}


@pytest.fixture(params=WAYS)
def run(request, oshrun, compiled):
    plugin = NEEDS.get(request.param)
    without_plugin = plugin and not (build() / "lib" / plugin).exists()
    if without_plugin or (request.param == "mpirun" and not shutil.which("mpirun")):
        pytest.skip(f"{request.param} cannot be had here")
    return Runs(oshrun, compiled, request.param)


@pytest.fixture
def on_node(oshrun, compiled):
    return Runs(oshrun, compiled, "node")


def ends_well(result, *lines, warning=None):
    assert result.status == 0, result
    assert sorted(result.out.splitlines()) == sorted(lines), result
    if warning:
        assert re.fullmatch(warning, result.err.strip()), result
    else:
        assert result.err == "", result


# ---- It is finalized.

def test_start_pes_repeated_and_never_finalized(run):
    ends_well(run(3, "start_pes", "late", "nothing"), "PE 0: late")


def test_a_return_is_told_of_once(run):
    ends_well(run(3, "init", "nothing", "late", "nothing"), "PE 1: late", warning=ONCE)


@pytest.mark.parametrize("start,word,line,warning", [
    ("init", "finalize", None, None),
    ("start_pes", "finalize", None, None),
    ("finalize_before_init", "nothing", None, None),
    ("init", "nested", None, WARNING.format("shmem_init 3 times", "once")),
    ("start_pes", "nested", None, WARNING.format("shmem_init 2 times", "once")),
    ("start_pes", "handler", "handled", None),
    ("start_pes", "destructor", "destructed", None),
    ("init", "destructor_finalizes", None, None),
    ("start_pes", "from_another_thread", None, None),
    ("start_pes", "while_another_waits", None, None),
    ("start_pes", "children", "has had children", None),
])
def test_ways_to_end(on_node, start, word, line, warning):
    ends_well(on_node(2, start, word), *([f"PE {pe}: {line}" for pe in range(2)] if line else []), warning=warning)


def test_handlers_and_destructors_reach_other_nodes(run):
    for word, line in (("handler", "handled"), ("destructor", "destructed"), ("destructor_finalizes", None)):
        lines = [f"PE {pe}: {line}" for pe in range(2)] if line else []
        ends_well(run(2, "init", word), *lines, warning=ONCE if line else None)


def test_some_finalize_some_do_not(run):
    ends_well(run(3, "init", "finalize", "nothing", "finalize"), warning=ONCE)


def test_a_wait_that_an_own_thread_ends_is_right(run):
    ends_well(run(3, "start_pes", "nothing", "until_own_thread", "nothing"), "PE 1: served")


def test_alone(compiled):
    for start, warned in (("start_pes", False), ("init", True)):
        result = subprocess.run([compiled, start, "nothing"], capture_output=True, text=True, timeout=30, check=True)
        assert bool(re.fullmatch(ONCE, result.stderr.strip())) == warned and result.stdout == "", result


def test_below_a_script(oshrun, compiled):
    ends_well(oshrun.run("-n", 3, "sh", "-c", f"{compiled} start_pes late nothing; true"), "PE 0: late")


def test_loaded_by_a_program_that_knows_nothing_of_it(oshrun, python):
    """As Python's extensions do: by dlopen, for themselves."""
    library = build() / "lib" / "libheddle.so"
    program = python("prog", f"import ctypes\nheddle = ctypes.CDLL('{library}')\nheddle.shmem_init()\n"
                             "print(heddle.shmem_my_pe(), flush=True)\n")
    ends_well(oshrun.run("-n", 2, program), "0", "1", warning=ONCE)


def test_what_was_printed_is_shown_when_another_fails_later(on_node):
    for delay_ms in (300, 3000, 10000):  # for a machine on which PE 0 does not get to its end meanwhile
        result = on_node(2, "start_pes", "half_a_line", f"abort_after_{delay_ms}")
        assert result.status == 134, result
        if "half a line of PE 0" in result.out:
            return
    raise AssertionError(result)


# ---- It cannot be.

LEFT = "which has returned from main or called exit: right would be the same collectives on all PEs"


@pytest.mark.parametrize("run,waiting,function", [
    *((way, "barrier", "shmem_barrier_all") for way in WAYS),
    *((way, "barrier_beside_a_thread", "shmem_barrier_all") for way in ("node", "nodes of 2")),
    ("node", "reduce", "shmem_int_sum_reduce"), ("nodes of 1", "broadcast", "shmem_int_broadcast"),
], indirect=["run"])
def test_a_collective_that_a_pe_never_comes_to(run, waiting, function):
    """Before it could be taken for that PE's end."""
    result = run(3, "start_pes", waiting, "nothing")
    assert result.status == 1 and result.out == "", result
    waits = rf"heddle \[pe [12]\] exit: PE 0 is in {function} and waits for this PE, {LEFT}"
    assert re.search(waits, result.err) and result.err.count("heddle [pe") == 1, result


@pytest.mark.parametrize("run,words,function", [
    *((way, ["until", "nothing"], "shmem_long_wait_until") for way in WAYS),
    ("node", ["lock", "lock", "nothing"], "shmem_set_lock"),  # who has it leaves with it
    ("nodes of 1", ["lock", "lock", "nothing"], "shmem_set_lock"),
    ("node", ["to_all", "nothing"], "shmem_int_sum_to_all"),  # an active set that only some have seen
], indirect=["run"])
def test_a_wait_that_nobody_can_end(run, words, function):
    result = run(3, "start_pes", *words)
    assert result.status == 1, result
    assert re.search(rf"heddle \[pe \d\] exit: PE \d is in {function}, which nobody can end: this PE has returned from "
                     "main or called exit, and all others leave, too, or wait likewise", result.err), result
    assert result.err.count("heddle [pe") == 1, result


def test_the_same_in_shmem_finalize(run):
    result = run(3, "init", "finalize", "barrier", "finalize")
    assert result.status == 1 and result.out == "", result
    assert re.search(r"heddle \[pe [02]\] shmem_finalize: PE 1 is in shmem_barrier_all and waits for this PE, which is "
                     "in shmem_finalize: right would be the same collectives on all PEs", result.err), result


def test_a_nonzero_status_ends_the_job_and_waits_for_nobody(run):
    result = run(3, "start_pes", "nothing", "status_3", "nothing")
    assert result.status == 3 and result.out == "", result


@pytest.mark.parametrize("word", ["past_exit", "quickly", "by_signal"])
def test_ends_that_are_none(on_node, word):
    for _ in range(5):
        result = on_node(2, "start_pes", "late", word)
        # Where the machine is slow the signal comes before the wait, or after it has been named.
        if word != "by_signal" or (result.status != 0 and "nobody can end" not in result.err):
            break
    assert result.status == 1 and len(result.messages) == 1, result
    assert "PE 1 (" in result.messages[0] and "did not call shmem_finalize" in result.messages[0], result


@pytest.mark.parametrize("word", ["second_program", "second_program_unfinalized"])
def test_a_second_program_in_a_pes_process_is_refused(on_node, word):
    """It would be as many jobs of one PE."""
    result = on_node(2, "init", word)
    assert result.status == 1, result
    assert re.search(r"heddle shmem_init: this process was PE \d of 2 before it called exec: a second program cannot "
                     "be a PE of that job", result.err), result


# ---- Signals.

def test_a_signal_passes_by_what_is_between(oshrun, compiled):
    """It is for the program that has called shmem_init, and would end the script."""
    process = oshrun.start("-n", 2, "sh", "-c", f"{compiled} start_pes await_signal; echo status $?")
    oshrun.pids(2)
    process.send_signal(signal.SIGUSR1)
    ends_well(oshrun.finish(process), *[f"PE {pe}: signalled" for pe in range(2)], *["status 0"] * 2)


# ---- How the descriptors come to a PE.

def test_descriptors_that_were_closed_on_the_way(oshrun, compiled, python):
    """As Python's subprocess does by itself; and others have their numbers then."""
    program = python("prog", "import os, subprocess, sys\n"
                             f"sys.exit(subprocess.run(['{compiled}', 'start_pes', 'late', 'nothing']).returncode)\n")
    ends_well(oshrun.run("-n", 3, program), "PE 0: late")
    others = " ".join(f"{fd}</dev/null" for fd in range(3, 10))
    ends_well(oshrun.run("-n", 3, "sh", "-c", f"exec {others}; exec {compiled} start_pes late nothing"), "PE 0: late")


def without_proc():
    return subprocess.run(["unshare", "-m", "umount", "-l", "/proc"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not shutil.which("unshare") or not without_proc(), reason="needs a space of mounts of its own")
def test_without_proc(oshrun, compiled, python):
    job = f"umount -l /proc; exec {compiled} start_pes late nothing"
    ends_well(oshrun.run("-n", 3, "unshare", "-m", "sh", "-c", job), "PE 0: late")
    job = f"umount -l /proc; {compiled} start_pes late nothing; exit $?"
    ends_well(oshrun.run("-n", 3, "unshare", "-m", "sh", "-c", job), "PE 0: late")
    closing = python("closing", "import os, sys\nos.close(int(os.environ['HEDDLE_LIFELINE_FD']))\n"
                                "os.spawnv(os.P_WAIT, sys.argv[1], sys.argv[1:]) == 0 or sys.exit(1)\n")
    job = f"umount -l /proc; {closing} {compiled} start_pes nothing; exit $?"
    below = oshrun.run("-n", 1, "unshare", "-m", "sh", "-c", job)
    assert below.status == 1 and "this PE would outlive oshrun" in below.err and "/proc" in below.err, below
    result = subprocess.run(["unshare", "-m", "sh", "-c", f"umount -l /proc; exec {oshrun.path} -n 2 {compiled} "
                             "start_pes late nothing"], capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "PE 0: late\n", ""), result


def test_the_end_over_a_network_is_told_by_nobody_else(oshrun, compiled):
    """The others, which take no signal, still connect to a PE that is gone."""
    if not (build() / "lib" / "libheddle_ucx.so").exists():
        pytest.skip("there is no network")
    result = oshrun.run("-n", 3, compiled, "init", "global_exit", "reach_the_first", env={
        **os.environ, "HEDDLE_TEST_PES_PER_NODE": "1", "HEDDLE_NET_TRANSPORTS": "tcp"})
    assert result.status == 5 and "UCX" not in result.out + result.err, result  # it logs to stdout

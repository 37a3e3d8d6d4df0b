"""How a job ends: who is blamed, with which status, how soon, and that nothing is left. The PEs are programs/*.py."""

import os
import pathlib
import pty
import re
import signal
import subprocess
import time

import pytest
from conftest import PROMPT_S, wait_until
from processes import alive


def assert_all_gone(oshrun, count, **options):
    assert not [pid for pid in oshrun.pids(count, **options) if alive(pid)]


@pytest.mark.parametrize("how,status,text", [
    (("exit", 3), 3, "exited with status 3"),
    (("exit", 255), 255, "exited with status 255"),
    (("signal", 11), 139, "was killed by signal 11 (Segmentation fault)"),
    (("signal", 6), 134, "was killed by signal 6 (Aborted)"),
    (("signal", 9), 137, "was killed by signal 9 (Killed)"),
    (("signal", 15), 143, "was killed by signal 15 (Terminated)"),
])
def test_failing_pe_ends_the_job_and_is_named(oshrun, program, how, status, text):
    result = oshrun.run("-n", 4, program("fails"), *how)
    assert result.status == status
    assert len(result.messages) == 1
    assert re.fullmatch(rf"oshrun: PE 2 \(\./fails.py, pid \d+\) {re.escape(text)}; ending the other 3 PEs",
                        result.messages[0].replace(", core dumped", "")), result
    assert_all_gone(oshrun, 4)


def test_the_first_failure_counts(oshrun, program):
    result = oshrun.run("-n", 3, program("fails_when_ended"))
    assert result.status == 5 and len(result.messages) == 1 and "PE 1 " in result.messages[0], result


def test_no_others_no_word_about_them(oshrun):
    result = oshrun.run("-n", 1, "sh", "-c", "exit 4")
    assert result.status == 4
    assert re.fullmatch(r"oshrun: PE 0 \(sh, pid \d+\) exited with status 4", result.messages[0])


def test_pe_killed_from_outside(oshrun, program):
    process = oshrun.start("-n", 3, program("sleeps"))
    victim = oshrun.pids(3)[0]
    begin = time.monotonic()
    os.kill(victim, signal.SIGKILL)
    result = oshrun.finish(process)
    assert time.monotonic() - begin < PROMPT_S
    assert result.status == 137 and f"pid {victim}) was killed by signal 9" in result.messages[0], result
    assert_all_gone(oshrun, 3)


def test_pes_that_ignore_signals_are_killed(oshrun, program):
    result = oshrun.run("-n", 4, program("fails"), "exit", 7, "ignoring")
    taken = time.monotonic() - float((oshrun.folder / "failed").read_text())
    assert result.status == 7
    assert 0.4 < taken < PROMPT_S, taken  # the grace of 0.5 s, then SIGKILL
    assert_all_gone(oshrun, 4)


def test_pe_may_clean_up_on_sigterm(oshrun, program):
    result = oshrun.run("-n", 3, "--grace", 300, program("cleans_up"), 0.1, "failing")
    assert result.status == 6 and sorted(result.out.splitlines()) == ["clean 1", "clean 2"], result
    assert len(result.messages) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_to_the_launcher_ends_the_job(oshrun, program, number):
    process = oshrun.start("-n", 3, "--grace", 300, program("shows_signal"), int(number))
    oshrun.pids(3)
    process.send_signal(number)
    result = oshrun.finish(process)
    assert result.status == 128 + number and result.messages == [], result
    assert_all_gone(oshrun, 3)
    assert result.out.split() == [str(int(number))] * 3, result


def test_second_signal_does_not_wait(oshrun, program):
    process = oshrun.start("-n", 2, "--grace", 600, program("sleeps"), "ignoring")
    oshrun.pids(2)
    end = time.monotonic() + PROMPT_S
    while process.poll() is None and time.monotonic() < end:  # pending twice, it would come once
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
    assert oshrun.finish(process, limit=PROMPT_S).status == 130
    assert_all_gone(oshrun, 2)


def test_control_c_on_a_terminal_blames_nobody(oshrun, program):
    ours, theirs = pty.openpty()
    process = oshrun.start("-n", 4, program("sleeps"), "interruptible", stdin=theirs, start_new_session=True,
                           preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)))  # becomes its terminal
    os.close(theirs)
    oshrun.pids(4)
    os.write(ours, b"\x03")
    result = oshrun.finish(process)
    os.close(ours)
    assert result.status == 130 and result.err == "", result


def test_control_backslash_on_a_terminal_ends_no_pe(oshrun, program):
    """The terminal sends SIGQUIT to the PEs, too."""
    ours, theirs = pty.openpty()
    process = oshrun.start("-n", 2, program("waits_for_go"), stdin=theirs, start_new_session=True,
                           preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)))  # becomes its terminal
    os.close(theirs)
    oshrun.pids(2)
    os.write(ours, b"\x1c")
    said = process.stderr.readline() + process.stderr.readline()
    (oshrun.folder / "go").touch()
    result = oshrun.finish(process)
    os.close(ours)
    assert re.fullmatch(r"oshrun: where the PEs are \(SIGQUIT\); the job goes on:\n"
                        r"oshrun: 2 PEs \(0-1; pids \d+, \d+\): have not called shmem_init\n", said.decode()), said
    assert (result.status, result.err) == (0, ""), result


def test_deaths_by_the_signal_that_ends_the_job_are_not_blamed(oshrun, program):
    """Control-C again, with the order made certain: when oshrun wakes up, all PEs have died already."""
    process = oshrun.start("-n", 3, program("sleeps"), "interruptible")
    pids = oshrun.pids(3)
    for number, targets in ((signal.SIGSTOP, [process.pid]), (signal.SIGINT, [process.pid, *pids])):
        for pid in targets:
            os.kill(pid, number)
    assert wait_until(lambda: not any(alive(pid) for pid in pids))
    process.send_signal(signal.SIGCONT)
    result = oshrun.finish(process)
    assert (result.status, result.err) == (130, ""), result


FORWARDED = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGCONT]


def test_harmless_signals_reach_the_pes(oshrun, program):
    process = oshrun.start("-n", 3, program("collects_signals"), *map(int, FORWARDED))
    oshrun.pids(3)
    for number in FORWARDED:
        process.send_signal(number)
    result = oshrun.finish(process)
    assert (result.status, result.err) == (0, ""), result
    assert result.out == f"{sorted(map(int, FORWARDED))}\n" * 3, result


def test_a_signal_that_no_pe_takes_ends_them(oshrun, program):
    """As it would without a launcher."""
    process = oshrun.start("-n", 2, program("sleeps"))
    oshrun.pids(2)
    process.send_signal(signal.SIGUSR1)
    result = oshrun.finish(process)
    assert result.status == 128 + signal.SIGUSR1 and "was killed by signal 10" in result.messages[0], result
    assert_all_gone(oshrun, 2)


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_stop_and_continue(oshrun, program):
    """The job stops as a whole, and goes on."""
    process = oshrun.start("-n", 2, program("waits_for_go"))
    pids = oshrun.pids(2)
    process.send_signal(signal.SIGTSTP)
    assert wait_until(lambda: {state_of(pid) for pid in (*pids, process.pid)} == {"T"})
    process.send_signal(signal.SIGCONT)
    assert wait_until(lambda: "T" not in {state_of(pid) for pid in (*pids, process.pid)})
    (oshrun.folder / "go").touch()
    assert oshrun.finish(process).status == 0


@pytest.mark.parametrize("grace,cleaned", [("30", True), ("0", False)])
def test_grace(oshrun, program, grace, cleaned):
    """Of PEs that take their time to end: with enough of it they do; without any they are killed at once."""
    takes_s = 1.5 if cleaned else 600
    process = oshrun.start("-n", 2, "--grace", grace, program("cleans_up"), takes_s)
    oshrun.pids(2)
    process.terminate()
    result = oshrun.finish(process)
    assert result.status == 143 and sorted(result.out.splitlines()) == ["clean 0", "clean 1"] * cleaned, result
    assert_all_gone(oshrun, 2)


def test_nohup_is_respected(oshrun, program):
    process = oshrun.start("-n", 2, program("waits_for_go"),
                           preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    oshrun.pids(2)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    (oshrun.folder / "go").touch()
    assert oshrun.finish(process).status == 0


def test_timeout_tells_where_the_pes_are(oshrun, program):
    result = oshrun.run("-n", 3, "--timeout", "1.25", program("sleeps"), 1)
    assert result.status == 124 and 1.2 < result.seconds < 1.25 + PROMPT_S, result
    assert result.messages[0] == "oshrun: the job has not ended within 1.25 s (--timeout); ending it. Its PEs:"
    assert re.fullmatch(r"oshrun: 2 PEs \(0, 2; pids \d+, \d+\): have not called shmem_init",
                        result.messages[1]), result
    assert result.messages[2:] == ["oshrun: PE 1: has ended"], result
    assert_all_gone(oshrun, 3)


def test_timeout_that_is_not_reached(oshrun):
    result = oshrun.run("-n", 2, "--timeout", "30", "true")
    assert (result.status, result.err) == (0, "") and result.seconds < PROMPT_S


def test_stopped_pe_is_ended(oshrun, program):
    result = oshrun.run("-n", 2, "--timeout", "0.7", program("sleeps"), "stopping")
    assert result.status == 124 and result.seconds < 0.7 + PROMPT_S, result
    assert_all_gone(oshrun, 2)


BACKGROUND = """
for i in 1 2; do
    (trap '{trap}' TERM INT; echo $(exec sh -c 'echo $PPID') >new.$HEDDLE_PE.$i
     mv new.$HEDDLE_PE.$i pid.$HEDDLE_PE.$i; while :; do sleep 0.05; done) &
done
while [ $(cat pid.$HEDDLE_PE.* 2>/dev/null | wc -l) -lt 2 ]; do sleep 0.01; done
{last}
"""


@pytest.mark.parametrize("trap", ["exit 0", ""], ids=["dies by SIGTERM", "ignores SIGTERM"])
@pytest.mark.parametrize("last,status", [("exit 0", 0), ("exit 3", 3)])
def test_background_processes_are_gone(oshrun, shell, trap, last, status):
    result = oshrun.run("-n", 3, shell("prog", BACKGROUND.format(trap=trap, last=last)))
    assert result.status == status, result
    assert result.seconds < PROMPT_S
    if status == 0:
        assert_all_gone(oshrun, 6)
    else:  # the first failure may end the others before they have started theirs
        assert not [path for path in oshrun.folder.glob("pid.*") if alive(int(path.read_text()))]


def test_daemons_are_gone(oshrun, program):
    daemon = program("starts_daemon")
    process = oshrun.start("-n", 2, "sh", "-c", f"{daemon}; while [ $(ls pid.* | wc -l) -lt 2 ]; do sleep 0.02; done")
    result = oshrun.finish(process)
    assert result.status == 0 and result.seconds < PROMPT_S, result
    assert_all_gone(oshrun, 2)


def test_deep_trees_are_gone(oshrun, program):
    result = oshrun.run("-n", 2, "--timeout", "1.5", program("starts_tree"))
    assert result.status == 124 and result.seconds < 1.5 + PROMPT_S, result
    assert_all_gone(oshrun, 2)


def test_children_that_oshrun_did_not_start_are_left_alone(oshrun, tmp_path):
    """`bash -c 'something & exec oshrun ...'` makes something a child of oshrun."""
    script = f"sleep 600 & echo $! >other; exec {oshrun.path} -n 2 true"
    process = subprocess.Popen(["bash", "-c", script], cwd=tmp_path)
    assert process.wait(PROMPT_S) == 0
    other = int((tmp_path / "other").read_text())
    try:
        assert alive(other)
    finally:
        os.kill(other, signal.SIGKILL)


def test_killed_launcher_leaves_no_pe(oshrun, program):
    process = oshrun.start("-n", 4, program("sleeps"), "ignoring")
    pids = oshrun.pids(4)
    assert all(alive(pid) for pid in pids)
    process.kill()
    process.wait()
    assert wait_until(lambda: not any(alive(pid) for pid in pids), PROMPT_S), "PEs outlive their launcher"


def test_lifeline_closes_with_the_launcher(oshrun, program):
    """What os::die_with waits for: the only write end is the launcher's, whatever scripts lie between."""
    process = oshrun.start("-n", 2, "bash", "-c", f"{program('reads_lifeline')}; true")
    pids = oshrun.pids(2)
    time.sleep(0.1)
    assert not list(oshrun.folder.glob("end.*"))
    process.kill()
    process.wait()
    assert wait_until(lambda: len(list(oshrun.folder.glob("end.*"))) == 2, PROMPT_S)
    assert wait_until(lambda: not any(alive(pid) for pid in pids), PROMPT_S)


def test_no_zombies_while_the_job_runs(oshrun, program):
    """Orphans that end by themselves are reaped at once."""
    process = oshrun.start("-n", 1, program("starts_orphan"))
    orphan = oshrun.pids(1, pattern="orphan")[0]
    assert wait_until(lambda: not pathlib.Path(f"/proc/{orphan}").exists(), 3)
    process.terminate()
    oshrun.finish(process)

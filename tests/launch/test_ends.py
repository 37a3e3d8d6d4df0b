"""How a job ends: who is blamed, with which status, how soon, and that nothing is left."""

import os
import pathlib
import pty
import re
import signal
import subprocess
import time

import pytest
from conftest import PROMPT_S, alive, wait_until

SELF = "import os, signal, sys, time\npe = int(os.environ['HEDDLE_PE'])\n" \
       "def up():\n    open(f'new.{os.getpid()}', 'w').write(f'{os.getpid()}\\n')\n" \
       "    os.rename(f'new.{os.getpid()}', f'pid.{os.getpid()}')\n"

# PE 2 ends as told once all are up; the others wait for ever.
ONE_FAILS = """
up()
if pe == 2:
    while len([name for name in os.listdir() if name.startswith('pid.')]) < 4: time.sleep(0.01)
    HOW
while True: time.sleep(1)
"""


def assert_all_gone(oshrun, count, **options):
    assert not [pid for pid in oshrun.pids(count, **options) if alive(pid)]


@pytest.mark.parametrize("code,status,text", [
    ("os._exit(3)", 3, "exited with status 3"),
    ("os._exit(255)", 255, "exited with status 255"),
    ("os.kill(os.getpid(), 11)", 139, "was killed by signal 11 (Segmentation fault)"),
    ("os.abort()", 134, "was killed by signal 6 (Aborted)"),
    ("os.kill(os.getpid(), 9)", 137, "was killed by signal 9 (Killed)"),
    ("os.kill(os.getpid(), 15)", 143, "was killed by signal 15 (Terminated)"),
])
def test_failing_pe_ends_the_job_and_is_named(oshrun, python, code, status, text):
    result = oshrun.run("-n", 4, python("prog", SELF + ONE_FAILS.replace("HOW", code)))
    assert result.status == status
    assert len(result.messages) == 1
    assert re.fullmatch(rf"oshrun: PE 2 \(\./prog, pid \d+\) {re.escape(text)}; ending the other 3 PEs",
                        result.messages[0].replace(", core dumped", "")), result
    assert_all_gone(oshrun, 4)


def test_the_first_failure_counts(oshrun, python):
    program = python("prog", SELF + "signal.signal(15, lambda *_: os._exit(9))\nup()\n"
                     "while len([name for name in os.listdir() if name.startswith('pid.')]) < 3: time.sleep(0.01)\n"
                     "if pe == 1: os._exit(5)\ntime.sleep(600)\n")
    result = oshrun.run("-n", 3, program)
    assert result.status == 5 and len(result.messages) == 1 and "PE 1 " in result.messages[0], result


def test_no_others_no_word_about_them(oshrun):
    result = oshrun.run("-n", 1, "sh", "-c", "exit 4")
    assert result.status == 4
    assert re.fullmatch(r"oshrun: PE 0 \(sh, pid \d+\) exited with status 4", result.messages[0])


def test_pe_killed_from_outside(oshrun, python):
    process = oshrun.start("-n", 3, python("prog", SELF + "up()\ntime.sleep(600)\n"))
    victim = oshrun.pids(3)[0]
    begin = time.monotonic()
    os.kill(victim, signal.SIGKILL)
    result = oshrun.finish(process)
    assert time.monotonic() - begin < PROMPT_S
    assert result.status == 137 and f"pid {victim}) was killed by signal 9" in result.messages[0], result
    assert_all_gone(oshrun, 3)


def test_pes_that_ignore_signals_are_killed(oshrun, python):
    ignore = "for s in (1, 2, 3, 15): signal.signal(s, signal.SIG_IGN)\n"
    how = "open('failed', 'w').write(str(time.monotonic())); os._exit(7)"
    result = oshrun.run("-n", 4, python("prog", SELF + ignore + ONE_FAILS.replace("HOW", how)))
    taken = time.monotonic() - float((oshrun.folder / "failed").read_text())
    assert result.status == 7
    assert 0.4 < taken < PROMPT_S, taken  # the grace of 0.5 s, then SIGKILL
    assert_all_gone(oshrun, 4)


def test_pe_may_clean_up_on_sigterm(oshrun, python):
    program = python("prog", SELF + "def clean(*_):\n    time.sleep(0.1)\n    print(f'clean {pe}', flush=True)\n    os._exit(0)\n"
                     "signal.signal(15, clean)\nup()\n"
                     "while len([name for name in os.listdir() if name.startswith('pid.')]) < 3: time.sleep(0.01)\n"
                     "if pe == 0: os._exit(6)\ntime.sleep(600)\n")
    result = oshrun.run("-n", 3, "--grace", 300, program)
    assert result.status == 6 and sorted(result.out.splitlines()) == ["clean 1", "clean 2"], result
    assert len(result.messages) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_signal_to_the_launcher_ends_the_job(oshrun, python, number):
    program = python("prog", SELF + "def got(n, _): print(n, flush=True); os._exit(0)\n"
                     f"signal.signal({int(number)}, got)\nup()\ntime.sleep(600)\n")
    process = oshrun.start("-n", 3, "--grace", 300, program)
    oshrun.pids(3)
    process.send_signal(number)
    result = oshrun.finish(process)
    assert result.status == 128 + number and result.messages == [], result
    assert_all_gone(oshrun, 3)
    assert result.out.split() == [str(int(number))] * 3, result


def test_second_signal_does_not_wait(oshrun, python):
    ignore = "for s in (1, 2, 3, 15): signal.signal(s, signal.SIG_IGN)\n"
    program = python("prog", SELF + ignore + "up()\ntime.sleep(600)\n")
    process = oshrun.start("-n", 2, "--grace", 600, program)
    oshrun.pids(2)
    end = time.monotonic() + PROMPT_S
    while process.poll() is None and time.monotonic() < end:  # pending twice, it would come once
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
    assert oshrun.finish(process, limit=PROMPT_S).status == 130
    assert_all_gone(oshrun, 2)


def test_control_c_on_a_terminal_blames_nobody(oshrun, python):
    program = python("prog", SELF + "signal.signal(2, signal.SIG_DFL)\nup()\ntime.sleep(600)\n")
    ours, theirs = pty.openpty()
    process = oshrun.start("-n", 4, program, stdin=theirs, start_new_session=True,
                           preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)))  # becomes its terminal
    os.close(theirs)
    oshrun.pids(4)
    os.write(ours, b"\x03")
    result = oshrun.finish(process)
    os.close(ours)
    assert result.status == 130 and result.err == "", result


def test_deaths_by_the_signal_that_ends_the_job_are_not_blamed(oshrun, python):
    """Control-C again, with the order made certain: when oshrun wakes up, all PEs have died already."""
    program = python("prog", SELF + "signal.signal(2, signal.SIG_DFL)\nup()\ntime.sleep(600)\n")
    process = oshrun.start("-n", 3, program)
    pids = oshrun.pids(3)
    for number, targets in ((signal.SIGSTOP, [process.pid]), (signal.SIGINT, [process.pid, *pids])):
        for pid in targets:
            os.kill(pid, number)
    assert wait_until(lambda: not any(alive(pid) for pid in pids))
    process.send_signal(signal.SIGCONT)
    result = oshrun.finish(process)
    assert (result.status, result.err) == (130, ""), result


FORWARDED = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGCONT]


def test_harmless_signals_reach_the_pes(oshrun, python):
    program = python("prog", SELF + "got = set()\n"
                     f"for number in {[int(number) for number in FORWARDED]}:\n"
                     "    signal.signal(number, lambda n, _: got.add(n))\n"
                     "up()\nwhile len(got) < 4: time.sleep(0.01)\nprint(sorted(got), flush=True)\n")
    process = oshrun.start("-n", 3, program)
    oshrun.pids(3)
    for number in FORWARDED:
        process.send_signal(number)
    result = oshrun.finish(process)
    assert (result.status, result.err) == (0, ""), result
    assert result.out == f"{sorted(map(int, FORWARDED))}\n" * 3, result


def test_a_signal_that_no_pe_takes_ends_them(oshrun, python):
    """As it would without a launcher."""
    process = oshrun.start("-n", 2, python("prog", SELF + "up()\ntime.sleep(600)\n"))
    oshrun.pids(2)
    process.send_signal(signal.SIGUSR1)
    result = oshrun.finish(process)
    assert result.status == 128 + signal.SIGUSR1 and "was killed by signal 10" in result.messages[0], result
    assert_all_gone(oshrun, 2)


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_stop_and_continue(oshrun, python):
    """The job stops as a whole, and goes on."""
    process = oshrun.start("-n", 2, python("prog", SELF + "up()\nwhile not os.path.exists('go'): time.sleep(0.01)\n"))
    pids = oshrun.pids(2)
    process.send_signal(signal.SIGTSTP)
    assert wait_until(lambda: {state_of(pid) for pid in (*pids, process.pid)} == {"T"})
    process.send_signal(signal.SIGCONT)
    assert wait_until(lambda: "T" not in {state_of(pid) for pid in (*pids, process.pid)})
    (oshrun.folder / "go").touch()
    assert oshrun.finish(process).status == 0


@pytest.mark.parametrize("grace,cleaned", [("30", True), ("0", False)])
def test_grace(oshrun, python, grace, cleaned):
    """Of PEs that take their time to end: with enough of it they do; without any they are killed at once."""
    takes_s = 1.5 if cleaned else 600
    program = python("prog", SELF + f"def clean(*_):\n    time.sleep({takes_s})\n    print('clean', flush=True)\n    os._exit(0)\n"
                     "signal.signal(15, clean)\nup()\ntime.sleep(600)\n")
    process = oshrun.start("-n", 2, "--grace", grace, program)
    oshrun.pids(2)
    process.terminate()
    result = oshrun.finish(process)
    assert result.status == 143 and result.out == ("clean\n" * 2 if cleaned else ""), result
    assert_all_gone(oshrun, 2)


def test_nohup_is_respected(oshrun, python):
    process = oshrun.start("-n", 2, python("prog", SELF + "up()\nwhile not os.path.exists('go'): time.sleep(0.01)\n"),
                           preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    oshrun.pids(2)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    (oshrun.folder / "go").touch()
    assert oshrun.finish(process).status == 0


def test_timeout_tells_where_the_pes_are(oshrun, python):
    program = python("prog", SELF + "up()\nif pe != 1: time.sleep(600)\n")
    result = oshrun.run("-n", 3, "--timeout", "1.25", program)
    assert result.status == 124 and 1.2 < result.seconds < 1.25 + PROMPT_S, result
    assert result.messages[0] == "oshrun: the job has not ended within 1.25 s (--timeout); ending it. Its PEs:"
    assert re.fullmatch(r"oshrun: PE 0 \(pid \d+\): has not called shmem_init", result.messages[1])
    assert result.messages[2] == "oshrun: PE 1: has ended"
    assert re.fullmatch(r"oshrun: PE 2 \(pid \d+\): has not called shmem_init", result.messages[3])
    assert len(result.messages) == 4
    assert_all_gone(oshrun, 3)


def test_timeout_that_is_not_reached(oshrun):
    result = oshrun.run("-n", 2, "--timeout", "30", "true")
    assert (result.status, result.err) == (0, "") and result.seconds < PROMPT_S


def test_stopped_pe_is_ended(oshrun, python):
    program = python("prog", SELF + "up()\nos.kill(os.getpid(), signal.SIGSTOP)\n")
    result = oshrun.run("-n", 2, "--timeout", "0.7", program)
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


def test_daemons_are_gone(oshrun, python):
    """Two forks, a session of its own, no output: only being a subreaper finds it."""
    program = python("prog", SELF + "if os.fork(): os._exit(os.wait()[1])\nos.setsid()\nif os.fork(): os._exit(0)\n"
                     "for fd in (0, 1, 2): os.close(fd)\nup()\ntime.sleep(600)\n")
    process = oshrun.start("-n", 2, "sh", "-c", f"{program}; while [ $(ls pid.* | wc -l) -lt 2 ]; do sleep 0.02; done")
    result = oshrun.finish(process)
    assert result.status == 0 and result.seconds < PROMPT_S, result
    assert_all_gone(oshrun, 2)


def test_deep_trees_are_gone(oshrun, python):
    program = python("prog", SELF + "signal.signal(15, signal.SIG_IGN)\nfor depth in range(12):\n    if os.fork():\n"
                     "        time.sleep(600)\nup()\nif pe == 1: time.sleep(0.3); os._exit(1)\ntime.sleep(600)\n")
    result = oshrun.run("-n", 2, "--timeout", "1.5", program)
    assert result.status == 124 and result.seconds < 1.5 + PROMPT_S, result
    assert_all_gone(oshrun, 2)


def test_children_that_oshrun_did_not_start_are_left_alone(oshrun, tmp_path):
    """`bash -c 'something & exec oshrun ...'` makes something a child of oshrun."""
    process = subprocess.Popen(["bash", "-c", f"sleep 600 & echo $! >other; exec {oshrun.path} -n 2 true"], cwd=tmp_path)
    assert process.wait(PROMPT_S) == 0
    other = int((tmp_path / "other").read_text())
    try:
        assert alive(other)
    finally:
        os.kill(other, signal.SIGKILL)


def test_killed_launcher_leaves_no_pe(oshrun, python):
    process = oshrun.start("-n", 4, python("prog", SELF + "for s in (1, 2, 3, 15): signal.signal(s, signal.SIG_IGN)\n"
                                           "up()\ntime.sleep(600)\n"))
    pids = oshrun.pids(4)
    assert all(alive(pid) for pid in pids)
    process.kill()
    process.wait()
    assert wait_until(lambda: not any(alive(pid) for pid in pids), PROMPT_S), "PEs outlive their launcher"


def test_lifeline_closes_with_the_launcher(oshrun, python):
    """What os::die_with waits for: the only write end is the launcher's, whatever scripts lie between."""
    program = python("prog", SELF + "up()\nos.read(int(os.environ['HEDDLE_LIFELINE_FD']), 1)\nopen(f'end.{pe}', 'w')\n"
                     "os._exit(0)\n")
    process = oshrun.start("-n", 2, "bash", "-c", f"{program}; true")
    pids = oshrun.pids(2)
    time.sleep(0.1)
    assert not list(oshrun.folder.glob("end.*"))
    process.kill()
    process.wait()
    assert wait_until(lambda: len(list(oshrun.folder.glob("end.*"))) == 2, PROMPT_S)
    assert wait_until(lambda: not any(alive(pid) for pid in pids), PROMPT_S)


def test_no_zombies_while_the_job_runs(oshrun, python):
    """Orphans that end by themselves are reaped at once."""
    program = python("prog", SELF + "if os.fork():\n    os.wait()\n    up()\n    time.sleep(600)\n"
                     "if os.fork() == 0:\n    time.sleep(0.2)\n    open('new', 'w').write(f'{os.getpid()}'); os.rename('new', 'orphan')\n"
                     "os._exit(0)\n")
    process = oshrun.start("-n", 1, program)
    orphan = oshrun.pids(1, pattern="orphan")[0]
    assert wait_until(lambda: not pathlib.Path(f"/proc/{orphan}").exists(), 3)
    process.terminate()
    oshrun.finish(process)

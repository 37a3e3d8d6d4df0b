"""oshrun --top in a terminal of its own: what it shows of jobs that hang in known ways, its ends, and that it leaves
job and terminal as they were."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios

import pytest
from conftest import PROMPT_S, wait_until


class Terminal:
    """A terminal of some lines, in which oshrun --top runs. text: all that it has got; screen: its last view."""
    def __init__(self, oshrun, pid, lines=24):
        self.master, self.slave = pty.openpty()
        self.text = ""
        self.resize(lines)
        self.before = termios.tcgetattr(self.slave)
        self.top = oshrun.start("--top", pid, stdin=self.slave, stdout=self.slave, start_new_session=True)

    def resize(self, lines, columns=200):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self):
        while select.select([self.master], [], [], 0.05)[0]:
            self.text += os.read(self.master, 65536).decode()

    @property
    def screen(self):
        self.read()
        views = re.findall(r"\x1b\[H(.*?)\x1b\[J", self.text, re.S)
        return [re.sub(r"\x1b\[K", "", line) for line in views[-1].split("\r\n")] if views else []

    def rows(self):
        found = [re.match(r" *(\d+) +(\S+) +(\S+) +(\d+)% +(\d+)%  (\S+) +(.*)", line) for line in self.screen[2:]]
        return {int(row[1]): row for row in found if row}

    def press(self, keys):
        os.write(self.master, keys.encode())

    def ended(self):
        """The status; the terminal is as it was, and shows what it did."""
        def is_over():
            self.read()
            return self.top.poll() is not None
        assert wait_until(is_over), self.text
        self.read()
        assert "\x1b[?1049h\x1b[?25l" in self.text, self.text
        assert "\x1b[?25h\x1b[?1049l" in self.text.split("\x1b[J")[-1], self.text
        assert termios.tcgetattr(self.slave) == self.before
        return self.top.returncode

    def close(self):
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def opened(oshrun):
    terminals = []
    def open_one(pid, has_job=True, **size):
        # An oshrun that has just been started has no job yet.
        assert not has_job or wait_until(lambda: oshrun.run("--status", pid).status == 0)
        terminals.append(Terminal(oshrun, pid, **size))
        return terminals[-1]
    yield open_one
    for one in terminals:
        one.close()


@pytest.fixture
def start(oshrun, hangs):
    jobs = []
    def start_one(pes, how, **settings):
        jobs.append(oshrun.start("-n", pes, hangs, how, env={**os.environ, "SHMEM_SYMMETRIC_SIZE": "1M", **settings}))
        return jobs[-1]
    yield start_one
    for job in jobs:
        assert job.poll() is None  # no view has ended it
        job.terminate()
        assert oshrun.finish(job).status == 128 + signal.SIGTERM


@pytest.mark.parametrize("pes", [1, 2, 4])
def test_every_pe_has_a_line_that_says_where_it_waits(start, opened, pes):
    job = start(pes, "barrier")
    terminal = opened(job.pid)
    def all_wait():
        rows = terminal.rows()
        return (len(rows) == pes and all(int(row[4]) > 50 for row in rows.values())
                and re.match(r"in shmem_long_wait_until\(never != 0, is 0\) \(called at hangs.*\) since", rows[0][7])
                and all(re.match(r"in shmem_barrier_all.* \(called at hangs.*\) since [\d.]+ s", rows[pe][7])
                        for pe in range(1, pes)))
    assert wait_until(all_wait), terminal.screen
    assert terminal.screen[0].startswith(f"oshrun {job.pid}: {pes} PE"), terminal.screen
    cores = os.sched_getaffinity(0)
    for row in terminal.rows().values():
        assert {int(core) for part in row[6].split(",") for core in part.split("-")} <= cores, row[0]
    terminal.press("q")
    assert terminal.ended() == 0


def test_a_pe_that_computes_uses_its_core(start, opened):
    job = start(2, "finalize")
    terminal = opened(job.pid)
    def one_computes():
        rows = terminal.rows()
        return (len(rows) == 2 and int(rows[0][5]) > 2 * int(rows[1][5]) and int(rows[0][4]) == 0
                and "not waiting in Heddle" in rows[0][7] and "at its end, in shmem_finalize" in rows[1][7])
    assert wait_until(one_computes), terminal.screen


def test_rates_are_those_of_messages_to_other_nodes(start, opened):
    job = start(2, "barriers", HEDDLE_TEST_PES_PER_NODE="1", HEDDLE_NET_TRANSPORTS="tcp")
    terminal = opened(job.pid)
    def both_have_rates():
        rows = terminal.rows()
        return len(rows) == 2 and all(row[2] != "0" and row[3] != "0" for row in rows.values())
    assert wait_until(both_have_rates), terminal.screen


def test_a_job_of_more_pes_than_lines_shows_those_that_wait_longest(start, opened):
    job = start(64, "barrier")
    terminal = opened(job.pid, lines=24)
    assert wait_until(lambda: len(terminal.rows()) == 21), terminal.screen
    assert len(terminal.screen) == 24 and terminal.screen[-1] == "  ... and 43 more that wait less long"
    for lines in (3, 1, 80, 24):  # smaller than the heading, too
        terminal.resize(lines)
        os.kill(terminal.top.pid, signal.SIGWINCH)
        shown = {1: 1, 3: 3, 80: 66, 24: 24}[lines]
        assert wait_until(lambda shown=shown: len(terminal.screen) == shown), (lines, terminal.screen)
    terminal.press("x\x1b[Aq")
    assert terminal.ended() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_signals_end_the_view_alone(start, opened, number):
    job = start(2, "barrier")
    terminal = opened(job.pid)
    assert wait_until(lambda: len(terminal.rows()) == 2), terminal.text
    os.kill(terminal.top.pid, number)
    assert terminal.ended() == 128 + number


def test_the_view_ends_with_the_job(oshrun, opened):
    job = oshrun.start("-n", 2, "sh", "-c", "read line; exit 0", stdin=subprocess.PIPE)
    terminal = opened(job.pid)
    assert wait_until(lambda: len(terminal.rows()) == 2), terminal.text
    assert all("has not called shmem_init" in row[7] for row in terminal.rows().values())
    assert oshrun.finish(job, text=b"\n").status == 0
    assert terminal.ended() == 0
    assert f"oshrun {job.pid}: 2 PEs on this host: the job has ended" in terminal.text


def test_the_job_takes_no_notice(oshrun, opened, tmp_path):
    """Its result and its output are as they are without a view."""
    go = tmp_path / "go"
    script = f'while ! [ -e {go} ]; do sleep 0.05; done; echo "$HEDDLE_PE is here"; exit 3'
    job = oshrun.start("-n", 1, "sh", "-c", script)
    terminal = opened(job.pid)
    assert wait_until(lambda: len(terminal.rows()) == 1), terminal.text
    terminal.press("q")
    assert terminal.ended() == 0
    go.touch()
    result = oshrun.finish(job)
    assert (result.status, result.out) == (3, "0 is here\n"), result


def test_without_a_terminal_there_is_a_message(oshrun):
    result = oshrun.run("--top")
    assert result.status == 1
    assert result.err == "oshrun: --top: input and output are no terminal; right would be a terminal, or --status\n"


def test_what_is_no_job_is_named(oshrun, opened):
    terminal = opened(os.getpid(), has_job=False)
    err = terminal.top.communicate(timeout=PROMPT_S)[1].decode()
    assert terminal.top.returncode == 1
    assert err == f"oshrun: --top {os.getpid()}: this process is no oshrun and no PE of yours with a job on this host\n"
    assert oshrun.run("--top", "one").err == (
        "oshrun: --top one: right would be the process number of an oshrun or a PE, and nothing else\n")

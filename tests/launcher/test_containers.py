"""PEs of one host, each in namespaces of its own: they share the host's memory, or say in one line why not. Other
launchers are the subject of tests/launchers/test_containers.py."""

import contextlib
import glob
import os
import re
import select
import signal
import subprocess

import containers
import pytest
from conftest import PROGRAMS, PROMPT_S, build
from pmi_manager import Manager
from test_pmi import check_is_well, lines_of

TCP = {"HEDDLE_NET_TRANSPORTS": "tcp", "HEDDLE_NET_HEARTBEAT_TIMEOUT_S": "60"}
# Without the kernel's help: the first process of a namespace, and no /proc.
HOLDS_ITSELF = ["process namespace", "process namespace, /proc of another", "no /proc", "bwrap, no /proc"]


class Inside:
    def __init__(self, folder):
        self.folder = folder
        self.program, self.filter = folder / "pmi", containers.compile_filter(folder)
        subprocess.run([build() / "bin" / "oshcc", "-O2", "-Wall", PROGRAMS / "pmi.c", "-o", self.program], check=True,
                       timeout=120)

    def words(self, way):
        if lacking := containers.missing(way):
            pytest.skip(f"{way} needs {lacking}")
        return containers.command(containers.WAYS[way], self.filter, [self.folder, build()])


@pytest.fixture(scope="module")
def inside(tmp_path_factory):
    return Inside(tmp_path_factory.mktemp("containers"))


@pytest.mark.parametrize("way", containers.WAYS)
def test_memory_is_shared_with_another_launcher(inside, way):
    results = Manager(3).run([*inside.words(way), inside.program])
    check_is_well(results)
    assert [err for _, _, err in results] == [""] * 3, results


@pytest.mark.parametrize("pes", [2, 4])
def test_memory_is_shared_by_version_2(inside, pes):
    check_is_well(Manager(pes).run([*inside.words("bwrap"), inside.program], HEDDLE_LAUNCH="pmi2"))


def says_that_they_are_apart(results, count):
    err = "".join(err for _, _, err in results)
    words = ["heddle launcher: PE 0 and PE", "are on one host, but do not share its memory", "talk over the network: ",
             "PE 0 cannot ", "/proc/", "cannot be opened (Permission denied)", "right would be one network namespace"]
    assert err.count("\n") == 1 and all(word in err for word in words), err
    assert (f"({count} PEs are apart from others of their host)" in err) == (count > 1), err


@pytest.mark.parametrize("pes", [2, 3, 4])
def test_memory_that_cannot_be_shared_is_told_once(inside, pes):
    inside.words("user namespace")
    results = Manager(pes).run([*containers.command(containers.APART, inside.filter), inside.program], **TCP)
    check_is_well(results, near=1)
    says_that_they_are_apart(results, pes - 1)


@contextlib.contextmanager
def user_namespace():
    """The process that holds one."""
    holder = subprocess.Popen(["unshare", "-Ur", "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    holder.stdout.readline()
    yield holder.pid
    holder.communicate(timeout=PROMPT_S)


def test_who_cannot_share_with_the_first_shares_with_others(inside, tmp_path):
    """PEs 2 and 3 have no sockets, and PE 0's memory in /proc is of another user namespace, but not that of PE 2."""
    inside.words("user namespace")
    with user_namespace() as holder:
        script = tmp_path / "start"
        script.write_text(f'#!/bin/sh\n[ $PMI_RANK -ge 2 ] && exec nsenter --target={holder} --user '
                          f'--preserve-credentials {inside.filter} unix {inside.program}\nexec {inside.program}\n')
        script.chmod(0o755)
        results = Manager(4).run([script], **TCP)
    check_is_well(results, near=2)
    says_that_they_are_apart(results, 2)


@pytest.mark.parametrize("way", containers.WAYS)
def test_oshrun(oshrun, inside, way):
    result = oshrun.run("-n", 3, *inside.words(way), inside.program)
    assert (result.status, result.err) == (0, ""), result
    assert sorted(result.out.splitlines()) == lines_of(3, 3), result


def end_who_has(file):
    """The processes of a failed test."""
    for entry in glob.glob("/proc/[0-9]*/fd/9"):
        pid = int(entry.split("/")[2])
        with contextlib.suppress(OSError):
            if pid != os.getpid() and os.path.samefile(entry, file):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("way", HOLDS_ITSELF)
def test_oshrun_that_is_killed_takes_its_pes_along(oshrun, inside, way, tmp_path):
    words = inside.words(way)
    os.mkfifo(tmp_path / "alive")  # open in each process of the job
    alive = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    process = oshrun.start("-n", 2, "sh", "-c", 'exec 9>alive; "$@"; exit', "sh", *words, inside.program, "stay")
    assert sorted(process.stdout.readline().decode().strip() for _ in range(2)) == lines_of(2, 2)
    assert not select.select([alive], [], [], 0)[0]
    process.kill()
    ended = bool(select.select([alive], [], [], PROMPT_S)[0]) and os.read(alive, 1) == b""
    if not ended:
        end_who_has(tmp_path / "alive")
    os.close(alive)
    oshrun.finish(process)
    assert ended


@pytest.mark.parametrize("way", ["process namespace", "bwrap"])
def test_signals_reach_the_pes(oshrun, inside, way):
    """Not the words between, which a signal would end."""
    process = oshrun.start("-n", 2, *inside.words(way), inside.program, "signal")
    assert sorted(process.stdout.readline().decode().strip() for _ in range(2)) == lines_of(2, 2)
    process.send_signal(signal.SIGUSR1)
    result = oshrun.finish(process)
    assert (result.status, result.err) == (0, ""), result


def test_timeout_names_processes_as_oshrun_sees_them(oshrun, inside):
    result = oshrun.run("-n", 2, "--timeout", 1, *inside.words("process namespace"), inside.program, "stay")
    pids = [pid for found in re.findall(r"pids? ([\d, ]+)", result.err) for pid in found.split(", ")]
    assert len(pids) == 2 and "1" not in pids, result

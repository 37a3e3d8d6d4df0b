"""Jobs that hang say where each PE is, grouped: at --timeout, SIGQUIT, SIGTERM and SIGINT, by --status, by a signal to
a PE, and after HEDDLE_HANG_S. The report is parsed and compared with what programs/hangs.c does."""

import os
import re
import shutil
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import PROGRAMS, wait_until
from pmi_manager import Manager
from processes import alive

SOURCE = (PROGRAMS / "hangs.c").read_text().splitlines()
COUNTS = [int(count) for count in os.environ.get("HEDDLE_TEST_COUNTS", "1 2 4 8").split()]  # of PEs
NODES = {"HEDDLE_TEST_PES_PER_NODE": "1", "HEDDLE_NET_TRANSPORTS": "tcp"}
ANSWER = re.compile(r"(?:(?P<count>\d+) PEs \((?P<pes>[\d, -]+?)(?:; pids (?P<pids>[\d, ]+?)(?P<more>, \.\.\.)?)?\)|"
                    r"PE (?P<pe>\d+)(?: \(pid (?P<pid>\d+)\))?): (?P<text>.*?)"
                    r"(?: since (?P<since>\d+\.\d)(?: to \d+\.\d)? s)?")

NUMBER = r" #(\d+(?:-\d+)?)"


def line_of(word):
    found = [number for number, line in enumerate(SOURCE, 1) if f"/* line: {word} */" in line]
    assert len(found) == 1, word
    return f"hangs.c:{found[0]}"


def call(what, word):
    """An answer that names a call; its address is left out by parse."""
    return f"in {what} (called at {line_of(word)})"


class Report:
    """answers: from PEs, as a tuple, to what they do. numbers: so, of their collectives. pids: by PE, as far as told.
    relations: all other lines."""
    def __init__(self, lines):
        self.answers, self.numbers, self.pids, self.relations, self.text = {}, {}, {}, [], lines
        self.since_s = []  # of the PE of each group that has waited for the shortest time
        for line in lines:
            found = ANSWER.fullmatch(line)
            if not found:
                self.relations.append(line)
                continue
            pes = numbers(found["pes"]) if found["pes"] else (int(found["pe"]),)
            assert found["count"] is None or len(pes) == int(found["count"]), line
            pids = [int(word) for word in (found["pids"] or found["pid"] or "").split(", ") if word]
            # Of a PE that has not come to init nobody knows the process.
            shown = 0 if line.endswith("has not called shmem_init") else min(len(pes), 4)
            assert len(pids) == shown and bool(found["more"]) == (shown != 0 and len(pes) > 4), line
            self.pids.update(zip(pes, pids, strict=False))
            number = re.search(NUMBER, found["text"])
            self.numbers[pes] = number and number[1]
            self.answers[pes] = re.sub(NUMBER, "", re.sub(r"hangs\+0x[0-9a-f]+, ", "", found["text"]))
            self.since_s += [float(found["since"])] if found["since"] else []

    def __repr__(self):
        return "\n".join(self.text)


def numbers(text):
    """(0, 1, 3) of "0-1, 3"."""
    parts = [tuple(map(int, part.split("-"))) for part in text.split(", ")]
    return tuple(number for part in parts for number in range(part[0], part[-1] + 1))


def groups(count, first, others):
    """What PE 0 does, and what all others do."""
    everyone = tuple(range(count))
    if first == others:
        return {everyone: first}
    return {(0,): first, **({everyone[1:]: others} if count > 1 else {})}


def wanted(how, count):
    never = call("shmem_long_wait_until(never != 0, is 0)", "never")
    if how == "barrier":
        return groups(count, never, call("shmem_barrier_all", "barrier"))
    if how == "lock":
        lock = call("shmem_set_lock(lock, held by PE 0)", "lock")
        return groups(count, call("shmem_barrier_all", "barrier with lock") if count > 1 else lock, lock)
    if how == "teams":
        return groups(count, call("shmem_team_sync", "first team"), call("shmem_team_sync", "second team"))
    if how == "mismatch":
        return groups(count, call("shmem_int_broadcast", "broadcast"), call("shmem_barrier_all", "mismatched barrier"))
    if how == "finalize":
        return groups(count, "running, not waiting in Heddle", "at its end, " + call("shmem_finalize", "finalize"))
    return groups(count, *2 * [{
        "until": call("shmem_int_wait_until(flag[3] >= 3, is 2)", "until"),
        "heap": call("shmem_int_wait_until(heap+0x14 > -1, is -7)", "heap"),
        "any": call("shmem_int_wait_until_any(3 elements from flag[0] on, !=)", "any"),
        "signal": call("shmem_signal_wait_until(signals[1] == 3, is 2)", "signal"),
    }[how]])


def all_from(first, count):
    """The PEs first to count - 1 in words, and whether these are several."""
    return (f"PEs {first}-{count - 1}", True) if count > first + 1 else (f"PE {first}", False)


def relations_wanted(how, count):
    if how == "lock" and count == 1:
        return ["PE 0 (in shmem_set_lock) waits for a lock that it holds itself"]
    if count == 1:
        return []
    if how == "barrier":
        others, several = all_from(1, count)
        return [f"{others} wait{'' if several else 's'} for PE 0"]
    if how == "mismatch":
        return ["PE 0 is in shmem_int_broadcast where PE 1 is in shmem_barrier_all: right would be the same "
                "collectives on all members of the team; HEDDLE_CHECK=1 compares them"]
    if how not in ("lock", "teams"):
        return []
    mine, theirs = ("shmem_barrier_all", "shmem_set_lock") if how == "lock" else ("shmem_team_sync",) * 2
    cycle = f"PE 0 (in {mine}) waits for PE 1 (in {theirs}), which waits for PE 0"
    if count == 2:
        return [cycle]
    others, several = all_from(2, count)
    return [cycle, f"{others} wait{'' if several else 's'} for PE 0", f"PE 0 waits for {others}"]


def status(oshrun, *words):
    result = oshrun.run("--status", *words)
    lines = result.out.splitlines()
    return result, Report(lines[1:]) if result.status == 0 else None


def await_report(oshrun, process, how, count, relations=None):
    """--status, asked again until the waits are as they should be: places follow a moment later."""
    last = None
    hung_s = 1.5  # a signal that ends the job makes a report when some PE has waited for a second

    def is_there():
        nonlocal last
        _, last = status(oshrun, process.pid)
        return (last and last.answers == wanted(how, count) and all(since > hung_s for since in last.since_s) and
                (relations is None or last.relations == relations))
    assert wait_until(is_there), f"{last}\nwanted: {wanted(how, count)}\n{relations}"
    return last


def reported(messages):
    return Report([line.removeprefix("oshrun: ") for line in messages[1:]])


HANGS = ["barrier", "until", "signal", "lock", "teams", "finalize"]


@pytest.mark.parametrize("how,count", [*((how, count) for how in [*HANGS, "heap", "any", "mismatch"]
                                         for count in COUNTS if count > 1 or how not in ("teams", "mismatch"))])
def test_status_and_sigquit_and_sigterm(oshrun, hangs, how, count):
    """The same report three times; the job goes on until SIGTERM."""
    process = oshrun.start("-n", count, hangs, how, env={**os.environ, "HEDDLE_BARRIER": "central"})
    oshrun.pids(count)
    last = await_report(oshrun, process, how, count, relations_wanted(how, count))
    assert all((oshrun.folder / f"pid.{pe}").read_text() == f"{pid}\n" for pe, pid in last.pids.items()), last
    process.send_signal(signal.SIGQUIT)
    assert status(oshrun, process.pid)[1].answers == wanted(how, count), "the job goes on"
    process.terminate()
    result = oshrun.finish(process)
    assert result.status == 128 + signal.SIGTERM, result
    heads = [number for number, line in enumerate(result.messages) if line.endswith(":")]
    asked = "oshrun: where the PEs are (SIGQUIT); the job goes on:"
    ended = "oshrun: ending the job by SIGTERM. Its PEs:"
    is_hung = (how, count) != ("finalize", 1)  # one PE, and that runs
    assert [result.messages[number] for number in heads] == [asked, ended][:1 + is_hung], result
    heads.append(len(result.messages))
    for part in (result.messages[:heads[1]], result.messages[heads[1]:])[:1 + is_hung]:
        assert reported(part).answers == wanted(how, count), result
        assert reported(part).relations == relations_wanted(how, count), result
    assert not [pid for pid in oshrun.pids(count) if alive(pid)]


def test_children_of_oshrun_with_its_name(oshrun, hangs, tmp_path):
    """As the one of the moment in which oshrun asks another program: it has the job's memory, and no PEs below it."""
    program = tmp_path / "oshrun"
    shutil.copy(hangs, program)
    process = oshrun.start("-n", 2, program, "barrier")
    oshrun.pids(2)
    texts = ("shmem_long_wait_until", "shmem_barrier_all")
    assert wait_until(lambda: all(text in oshrun.run("--status", process.pid).out for text in texts))
    process.terminate()
    assert oshrun.finish(process).status == 128 + signal.SIGTERM


@pytest.mark.parametrize("how,count", [(how, count) for how in HANGS for count in COUNTS
                                       if count > 1 or how != "teams"])
def test_timeout(oshrun, hangs, how, count):
    """On a busy machine a PE may not yet be where it will hang: then once more, with more time."""
    for seconds in (2, 6, 18, 54):
        result = oshrun.run("-n", count, "--timeout", seconds, hangs, how)
        assert result.status == 124, result
        assert result.messages[0].startswith(f"oshrun: the job has not ended within {seconds} s (--timeout)"), result
        report = reported(result.messages)
        if report.answers == wanted(how, count) and report.relations == relations_wanted(how, count):
            return
    pytest.fail(f"{result}\nwanted: {wanted(how, count)}")


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("how", ["barrier", "until", "signal", "teams"])
def test_pretended_nodes(oshrun, hangs, how, count):
    process = oshrun.start("-n", count, hangs, how, env={**os.environ, **NODES})
    oshrun.pids(count)
    await_report(oshrun, process, how, count)
    process.send_signal(signal.SIGINT)
    result = oshrun.finish(process)
    assert result.status == 128 + signal.SIGINT and reported(result.messages).answers == wanted(how, count), result


def end(oshrun, process):
    """Before another job of the same test."""
    process.terminate()
    oshrun.finish(process)
    for path in oshrun.folder.glob("pid.*"):
        path.unlink()


@pytest.mark.parametrize("environment", [{}, NODES], ids=["node", "nodes"])
@pytest.mark.parametrize("count", [2, 4])
def test_a_collective_has_its_number(oshrun, hangs, count, environment):
    """One for all PEs, and as many more as there were more barriers."""
    numbers = []
    for rounds in (3, 10):
        process = oshrun.start("-n", count, hangs, "rounds", rounds, env={**os.environ, **environment})
        oshrun.pids(count)
        last = None

        def is_there(process=process):
            nonlocal last
            _, last = status(oshrun, process.pid)
            return last and last.answers == groups(count, call("shmem_long_wait_until(never != 0, is 0)", "never"),
                                                   call("shmem_barrier_all", "last round"))
        assert wait_until(is_there), last
        assert last.numbers[0,] is None, last
        numbers.append(int(last.numbers[tuple(range(1, count))]))
        end(oshrun, process)
    assert numbers[1] - numbers[0] == 7, numbers


@pytest.mark.parametrize("how,wait,value,write", [
    ("written", "shmem_int_wait_until(flag[3] >= 3", 1, ("shmem_int_p", "plain")),
    ("counted", "shmem_int_wait_until(flag[0] == 3", 2, ("shmem_int_atomic_add", "last addition")),
    ("signalled", "shmem_signal_wait_until(signals[0] == 8", 7, ("shmem_int_put_signal", "put with signal"))])
@pytest.mark.parametrize("count", [1, 3])
def test_the_last_writer_is_named_where_races_are_looked_for(oshrun, hangs, how, wait, value, write, count):
    for races in ("1", "0"):
        function, line = write
        writer = f", last written by PE {count - 1}: {function} called at {line_of(line)}" if races == "1" else ""
        process = oshrun.start("-n", count, hangs, how, env={**os.environ, "HEDDLE_RACES": races})
        oshrun.pids(count)
        last = None

        def is_there(process=process, writer=writer):
            nonlocal last
            _, last = status(oshrun, process.pid)
            return last and last.answers == {tuple(range(count)): call(f"{wait}, is {value}{writer})", how)}
        assert wait_until(is_there), last
        end(oshrun, process)


def test_what_other_nodes_have_not_acknowledged_is_told(oshrun, hangs):
    process = oshrun.start("-n", 2, hangs, "quiet", env={**os.environ, **NODES, "HEDDLE_PROGRESS": "manual"})
    oshrun.pids(2)
    answers = {(0,): call("shmem_quiet", "quiet"), (1,): "running, not waiting in Heddle"}
    last = None

    def is_there():  # places follow a moment later
        nonlocal last
        _, last = status(oshrun, process.pid)
        return last and last.relations and last.answers == answers
    assert wait_until(is_there), last
    found = re.fullmatch(r"PE 0 has sent (\d+) bytes to PE 1, which has acknowledged (\d+)", last.relations[0])
    assert found and int(found[1]) > int(found[2]) and len(last.relations) == 1, last
    process.terminate()
    oshrun.finish(process)


def test_a_job_that_does_not_hang_ends_without_a_report(oshrun, hangs):
    process = oshrun.start("-n", 2, hangs, "spin")
    oshrun.pids(2)
    process.terminate()
    result = oshrun.finish(process)
    assert (result.status, result.messages) == (128 + signal.SIGTERM, []), result


def test_status_of_a_pe_and_of_what_is_no_job(oshrun, hangs):
    process = oshrun.start("-n", 2, hangs, "until")
    pids = oshrun.pids(2)
    await_report(oshrun, process, "until", 2)
    result, report = status(oshrun, pids[1])
    assert result.out.startswith(f"oshrun {process.pid}: 2 PEs on this host\n"), result
    assert report.answers == wanted("until", 2)
    result, _ = status(oshrun, os.getpid())
    assert result.status == 1 and result.messages == [
        f"oshrun: --status {os.getpid()}: this process is no oshrun and no PE of yours with a job on this host"], result
    for words in (["x"], ["0"], [process.pid, "y"]):
        result, _ = status(oshrun, *words)
        assert result.status == 2 and "right would be the process number" in result.messages[0], result
    second = oshrun.start("-n", 1, hangs, "spin")
    assert wait_until(lambda: f"oshrun --status {second.pid}" in status(oshrun)[0].err)
    result, _ = status(oshrun)
    assert result.status == 1 and f"oshrun --status {process.pid}" in result.err.splitlines(), result
    for one in (process, second):
        one.terminate()
        oshrun.finish(one)


def test_status_signal(oshrun, hangs):
    """Each PE by itself: one that waits names its wait, one that runs the place where the signal found it."""
    process = oshrun.start("-n", 2, hangs, "finalize", env={**os.environ, "HEDDLE_STATUS_SIGNAL": "usr2"})
    oshrun.pids(2)
    await_report(oshrun, process, "finalize", 2)
    process.send_signal(signal.SIGUSR2)  # goes on to the PEs
    told = b""
    while told.count(b"\n") < 2:
        told += os.read(process.stderr.fileno(), 4096)
    process.terminate()
    oshrun.finish(process)
    lines = sorted(re.sub(r" since \d+\.\d s", "", line) for line in told.decode().splitlines())
    spin = re.escape(line_of("spin")).replace(str(line_of("spin").split(":")[1]), r"\d+")
    assert re.fullmatch(rf"heddle \[pe 0\] status: running, not waiting in Heddle at hangs\+0x[0-9a-f]+, {spin}",
                        lines[0]), lines
    assert re.sub(r"hangs\+0x[0-9a-f]+, ", "", lines[1]) == (
        "heddle [pe 1] status: at its end, " + call("shmem_finalize", "finalize")), lines


def test_without_the_setting_the_signal_is_the_programs(oshrun, hangs):
    process = oshrun.start("-n", 1, hangs, "until")
    pid, = oshrun.pids(1)
    os.kill(pid, signal.SIGUSR2)
    result = oshrun.finish(process)
    assert result.status == 128 + signal.SIGUSR2 and "was killed by signal 12" in result.messages[0], result


def test_status_signal_that_is_none(oshrun, hangs):
    result = oshrun.run("-n", 1, hangs, "until", env={**os.environ, "HEDDLE_STATUS_SIGNAL": "KILL"})
    assert result.status == 1 and ("HEDDLE_STATUS_SIGNAL=KILL is malformed: right would be a signal such as USR2"
                                   in result.err), result


class Managed:
    """PEs of hangs that a process manager of the tests' own has started."""
    def __init__(self, folder, command, count, **environment):
        inside = ["env", "--default-signal=INT", "sh", "-c", f'cd {folder} && exec "$@"', "sh", *command]
        self.folder, self.count = folder, count
        self.results = ThreadPoolExecutor(1).submit(Manager(count).run, inside, 600, **environment)

    def pids(self):
        """By PE."""
        files = [self.folder / f"pid.{pe}" for pe in range(self.count)]
        assert wait_until(lambda: all(file.exists() for file in files) or self.results.done()), self.results
        return [int(file.read_text()) for file in files]

    def end(self, signal_of_all=signal.SIGTERM):
        """The status, output and messages of each PE. Those that have not ended get a signal."""
        for pid in self.pids():
            if alive(pid):
                os.kill(pid, signal_of_all)
        return self.results.result(600)


def without_lines(answers):
    """The report at the end of a job looks for lines of source only for a moment."""
    return {pes: re.sub(r"hangs\+0x[0-9a-f]+|hangs\.c:\d+", "PLACE", text) for pes, text in answers.items()}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("how,count", [("barrier", 3), ("until", 1), ("finalize", 2)])
def test_a_signal_shows_where_the_pes_are_without_oshrun(oshrun, hangs, tmp_path, how, count, number):
    """One PE tells for all, and no other one; each ends by the signal."""
    job = Managed(tmp_path, [hangs, how], count)
    pids = job.pids()
    last = None

    def is_there():
        nonlocal last
        _, last = status(oshrun, pids[0])
        return last and last.answers == wanted(how, count) and all(since > 1.5 for since in last.since_s)
    assert wait_until(is_there), last
    os.kill(pids[-1], number)
    assert wait_until(lambda: not alive(pids[-1]))
    assert all(alive(pid) for pid in pids[:-1])
    results = job.end(number)
    assert [result[0] for result in results] == [-number] * count, results
    assert all(err == "" for _, _, err in results[:-1]), results
    begin = f"heddle [pe {count - 1}] {number.name}: "
    lines = results[-1][2].splitlines()
    assert all(line.startswith(begin) for line in lines), results
    assert lines[0] == f"{begin}the job ends. The PEs of host {socket.gethostname()} are:", results
    told = Report([line.removeprefix(begin) for line in lines[1:]])
    assert without_lines(told.answers) == without_lines(wanted(how, count)), results
    assert told.relations == relations_wanted(how, count), results


@pytest.mark.parametrize("words,ends,environment", [
    (["spin"], -signal.SIGTERM, {}),
    (["until"], -signal.SIGTERM, {"HEDDLE_CRASH_REPORT": "no"}),
    (["until", "handles"], 77, {}),
    (["until", "handles later"], 77, {}),
], ids=["no PE waits", "off", "a handler of the program's", "a later one"])
def test_no_report_at_a_signal(oshrun, hangs, tmp_path, words, ends, environment):
    job = Managed(tmp_path, [hangs, *words], 1, **environment)
    pid, = job.pids()
    if words[0] == "until":
        assert wait_until(lambda: float((re.findall(r"since (\d+\.\d) s", status(oshrun, pid)[0].out) or [0])[0]) > 1.5)
    (ended, _, err), = job.end()
    assert (ended, err) == (ends, ""), err


@pytest.mark.parametrize("how,ends", [("raises", -signal.SIGTERM), ("forks", signal.SIGTERM)])
def test_a_signal_of_a_pe_to_itself_or_to_its_child_has_its_usual_effect(hangs, tmp_path, how, ends):
    (ended, _, err), = Managed(tmp_path, [hangs, how], 1).results.result(600)
    assert ended == ends and "did not hang" not in err, (ended, err)


def read_until(process, text):
    told = b""
    while text not in told:
        data = os.read(process.stderr.fileno(), 4096)
        assert data, told
        told += data
    return told.decode()


def test_hang_notice(oshrun, hangs):
    """Once; the job goes on."""
    process = oshrun.start("-n", 2, hangs, "until", env={**os.environ, "HEDDLE_HANG_S": "1"})
    told = read_until(process, b"2 PEs (0-1;")
    assert told.startswith("oshrun: no PE came forward for 1 s (HEDDLE_HANG_S); the job goes on. Its PEs:\n"), told
    await_report(oshrun, process, "until", 2)
    process.terminate()
    assert "HEDDLE_HANG_S" not in oshrun.finish(process).err


def test_no_hang_notice_where_a_pe_runs_or_none_is_wanted(oshrun, hangs):
    started = [oshrun.start("-n", 2, hangs, how, env={**os.environ, "HEDDLE_HANG_S": limit})
               for how, limit in (("finalize", "1"), ("until", "0"))]
    for process, how in zip(started, ("finalize", "until"), strict=True):
        def has_waited(process=process):
            result, _ = status(oshrun, process.pid)
            since = re.findall(r"since (?:\d+\.\d to )?(\d+\.\d) s", result.out)
            return since and float(since[0]) > 2.5
        assert wait_until(has_waited), how
        process.terminate()
        assert "HEDDLE_HANG_S" not in oshrun.finish(process).err


def test_hang_notice_without_oshrun(hangs, tmp_path):
    """A PE tells by itself where another launcher, or none, has started it."""
    process = subprocess.Popen([hangs, "until"], cwd=tmp_path, stderr=subprocess.PIPE,
                               env={**os.environ, "HEDDLE_HANG_S": "1"})
    told = read_until(process, b" since ")
    process.kill()
    process.wait()
    first, second = told.splitlines()
    assert first == (f"heddle [pe 0] HEDDLE_HANG_S: no PE of host {socket.gethostname()} came forward for 1 s. "
                     "They are:"), told
    assert second.startswith("heddle [pe 0] HEDDLE_HANG_S: PE 0 (pid "), told
    assert "shmem_int_wait_until(flag[3] >= 3, is 2)" in second, told


@pytest.mark.parametrize("waits", [{}, {"HEDDLE_SPIN_US": "0", "HEDDLE_YIELD_US": "0"}], ids=["", "that sleep at once"])
@pytest.mark.parametrize("count", [1, 3])
def test_last_calls_of_a_pe_that_died(oshrun, hangs, count, waits):
    """Each once, however many waits and comparisons are inside."""
    result = oshrun.run("-n", count, hangs, "dies", env={**os.environ, "HEDDLE_CHECK": "1", **waits})
    assert result.status == 137 and len(result.messages) == 2, result
    begin = f"oshrun: the last collectives and long waits of PE {count - 1}: "
    assert result.messages[1].startswith(begin), result
    names = re.findall(r"(shmem\w+) \(called at hangs\+0x[0-9a-f]+\) \d+\.\d s ago", result.messages[1])
    assert names[:3] == ["shmem_barrier_all", "shmem_free", "shmem_malloc"], result


def test_no_last_calls_in_an_unchecked_run(oshrun, hangs):
    result = oshrun.run("-n", 2, hangs, "dies")
    assert result.status == 137 and len(result.messages) == 1, result

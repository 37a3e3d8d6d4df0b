"""gdb on PEs (docs/debugging.md): heddle-status tells where threads hang, in the process and in a core file, as `oshrun
--status` does; the printers tell contexts, teams, requests and streams as programs/debugged.c has made them."""

import os
import re
import shutil
import signal
import subprocess

import pytest
from conftest import PROGRAMS, PROMPT_S, build, wait_until
from processes import alive
from test_status import NODES, await_report, line_of, relations_wanted, status

FIELDS = ["ctx", "destroyed_ctx", "default_ctx", "no_ctx", "of_team", "stray_ctx", "world", "shared", "ends",
          "destroyed_team", "no_team", "no_request", "complete", "shared_request", "ended", "posted"]
PRINTS = "".join(f"print handles->{field}\n" for field in FIELDS)
ADDRESS = r"0x[0-9a-f]+"
# What a debugged PE does at last: it leaves a core file, and waits until the test has what it wants of all.
LEAVE = """python
import os, time
pe = os.environ["HEDDLE_PE"]
gdb.execute(f"generate-core-file core.{pe}")
open(f"done.{pe}", "w").close()
while not os.path.exists("end"):
    time.sleep(0.05)
end
kill
"""


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    if not shutil.which("gdb"):
        pytest.skip("there is no gdb")
    tried = subprocess.run(["gdb", "-batch", "-nx", "-ex", "python print(6 * 7)", "-ex", "run", "true"],
                           capture_output=True, text=True)
    if not re.search(r"42\n(?s:.*)exited normally", tried.stdout):
        pytest.skip(f"gdb cannot run a program here, or has no Python: {tried.stdout}{tried.stderr}")
    folder = tmp_path_factory.mktemp("debugged")
    for name in ("hangs", "hangs_in_threads", "debugged"):
        subprocess.run([build() / "bin" / "oshcc", "-g", "-O1", "-pthread", PROGRAMS / f"{name}.c",
                        "-o", folder / name], check=True, timeout=PROMPT_S)
    return folder


class Debugged:
    """A job whose PEs run below gdb, each with its output in gdb.PE; only: of that PE alone."""

    def __init__(self, oshrun, count, program, *words, steps, only=None, env=None):
        self.oshrun, self.pes = oshrun, range(count) if only is None else [only]
        (oshrun.folder / "steps").write_text("set confirm off\nset print address off\nset width 0\n"
                                             "set disable-randomization off\n" + steps + LEAVE)
        command = " ".join([str(program), *words])
        plain = "" if only is None else f'[ "$HEDDLE_PE" = {only} ] || exec {command}; '
        self.process = oshrun.start("-n", count, "sh", "-c", f'{plain}exec gdb -batch -nx '
                                    f'-iex "add-auto-load-safe-path {build().resolve()}" -x steps --args {command} '
                                    '>gdb.$HEDDLE_PE 2>&1 </dev/null', env={**os.environ, **(env or {})})

    def finish(self):
        """What gdb has said of each PE."""
        folder = self.oshrun.folder
        told = wait_until(lambda: all((folder / f"done.{pe}").exists() for pe in self.pes)
                          or self.process.poll() is not None, 600)
        texts = {pe: (folder / f"gdb.{pe}").read_text() for pe in self.pes}
        assert told and self.process.poll() is None, texts
        pids = [int(path.read_text()) for path in folder.glob("pid.*")]
        (folder / "end").touch()
        self.oshrun.finish(self.process)
        assert wait_until(lambda: not any(map(alive, pids)))
        return texts


def of_core(folder, pe, *program):
    """What the command heddle-status says of a PE's core file."""
    result = subprocess.run([build() / "bin" / "heddle-status", folder / f"core.{pe}", *program], capture_output=True,
                            text=True, timeout=600)
    assert result.returncode == 0, result
    return result.stdout


def parts(text):
    """The lines of a status without the numbers that differ from reading to reading."""
    lines = text[text.index("PE "):].splitlines()
    lines = [re.sub(r" since \d+\.\d s( of the host's clock)?$", " since", line) for line in lines]
    lines = [re.sub(r" (\d+\.\d s ago|at \d+\.\d s)$", " then", line) for line in lines]
    return sorted(re.sub(r"^thread \d+ ", "thread ", line) for line in lines)


def place(function, word):
    return f"(called at {function} ({line_of(word)}))"


NEVER = f"in shmem_long_wait_until(never != 0, is 0) {place('wait_for_ever', 'never')} since"
WAITS = {  # of PE 0, and of all others
    "barrier": (NEVER, f"in shmem_barrier_all {place('hang', 'barrier')} since"),
    "heap": (f"in shmem_int_wait_until(heap+0x14 > -1, is -7) {place('hang', 'heap')} since",) * 2,
    "lock": (f"in shmem_barrier_all {place('hang', 'barrier with lock')} since",
             f"in shmem_set_lock(lock, held by PE 0) {place('hang', 'lock')} since"),
}
STATUS = "handle SIGUSR1 stop print nopass\nrun\necho status\\n\nheddle-status\necho end of status\\n\n"


def status_in(text):
    return text.split("\nstatus\n")[1].split("end of status\n")[0]


@pytest.mark.parametrize("how,count", [("barrier", 2), ("barrier", 3), ("heap", 2), ("lock", 3)])
def test_where_pes_hang(oshrun, compiled, how, count):
    """The same of the process and of its core file: threads, waits with values, and the PEs that wait."""
    job = Debugged(oshrun, count, compiled / "hangs", how, steps=STATUS)
    oshrun.pids(count)
    await_report(oshrun, job.process, how, count, relations_wanted(how, count))
    pids = {pe: int((oshrun.folder / f"pid.{pe}").read_text()) for pe in range(count)}
    for pid in pids.values():
        os.kill(pid, signal.SIGUSR1)
    for pe, text in job.finish().items():
        live = parts(status_in(text))
        assert f"PE {pe} of {count}: is initialized" in live, text
        assert f"thread (LWP {pids[pe]}): {WAITS[how][pe != 0]}" in live, text
        if how == "barrier":
            others = "PEs 1-2 wait" if count == 3 else "PE 1 waits"
            assert (f"{others} for this PE" in live) == (pe == 0), text
        function = WAITS[how][pe != 0].removeprefix("in ").split("(")[0].split()[0]
        assert f"  {function} then" in live, text
        core = of_core(oshrun.folder, pe)
        assert parts(core) == live and "of the host's clock" in core, (core, text)
        if pe == 0:
            assert parts(of_core(oshrun.folder, pe, compiled / "hangs")) == live


def test_threads_of_a_pe(oshrun, compiled):
    source = (PROGRAMS / "hangs_in_threads.c").read_text().splitlines()
    lines = {word: number for number, line in enumerate(source, 1) for word in re.findall(r"/\* line: (\w+) \*/", line)}
    job = Debugged(oshrun, 1, compiled / "hangs_in_threads", steps=STATUS)
    pid, = oshrun.pids(1, "pid.0")
    texts = ("(first[1] > 5, is 0) (called at ", "(second == 9, is 7) (called at ")
    assert wait_until(lambda: all(text in oshrun.run("--status", job.process.pid).out for text in texts))
    os.kill(pid, signal.SIGUSR1)
    text = job.finish()[0]
    wanted = [rf"thread \(LWP {pid}\): in shmem_long_wait_until\(first\[1\] > 5, is 0\) "
              rf"\(called at main \(hangs_in_threads.c:{lines['first']}\)\) since",
              r"thread \(LWP \d+\): in shmem_uint64_wait_until\(second == 9, is 7\) "
              rf"\(called at wait_for_second \(hangs_in_threads.c:{lines['second']}\)\) since",
              r"thread \(LWP \d+\): not in Heddle, at compute \(hangs_in_threads.c:\d+\)"]
    for told in (status_in(text), of_core(oshrun.folder, 0)):
        threads = [line for line in parts(told) if line.startswith("thread ")]
        assert sorted(sum(bool(re.fullmatch(one, line)) for one in wanted) for line in threads) == [1] * 3, told


def test_what_another_node_has_not_acknowledged(oshrun, compiled):
    """The positions of the stream are those that the PE has published for `oshrun --status`."""
    env = {**NODES, "HEDDLE_PROGRESS": "manual", "HEDDLE_NET_HEARTBEAT_TIMEOUT_S": "0"}
    job = Debugged(oshrun, 2, compiled / "hangs", "quiet", steps=STATUS, only=0, env=env)
    oshrun.pids(2)
    last = None

    def is_there():
        nonlocal last
        _, last = status(oshrun, job.process.pid)
        return last and last.relations
    assert wait_until(is_there), last
    sent, acked = map(int, re.search(r"has sent (\d+) bytes to PE 1, .* (\d+)$", last.relations[0]).groups())
    os.kill(int((oshrun.folder / "pid.0").read_text()), signal.SIGUSR1)
    text = job.finish()[0]
    live = parts(status_in(text))
    assert "PE 0 of 2, on node 0 of 2: is initialized" in live, text
    streams = [line for line in live if line.startswith("stream to PE ")]
    assert len(streams) == 1 and streams[0].startswith(f"stream to PE 1: published {sent}, sent "), text
    assert f", acked {acked}, " in streams[0], text
    quiet = rf"thread \(LWP \d+\): in shmem_quiet {re.escape(place('hang', 'quiet'))} since"
    assert [line for line in live if re.fullmatch(quiet, line)], text
    assert parts(of_core(oshrun.folder, 0)) == live


def printed(text):
    """The values of the last prints, by field."""
    values = re.split(r"(?m)^\$\d+ = ", text)[-len(FIELDS):]
    assert len(values) == len(FIELDS), text
    return {field: value.splitlines()[0] for field, value in zip(FIELDS, values, strict=True)}


def matches(told, wanted):
    for field, pattern in wanted.items():
        assert re.fullmatch(pattern, told[field], re.DOTALL), (field, pattern, told)


def wanted_of_handles(count):
    world = f"PEs 0-{count - 1}"
    options = r"SHMEM_CTX_SERIALIZED \| SHMEM_CTX_NOSTORE"
    return {
        "ctx": rf"context {ADDRESS}: {options}, SHMEM_TEAM_WORLD of {world}, 0 transfers outstanding",
        "destroyed_ctx": rf"context {ADDRESS}: destroyed",
        "default_ctx": rf"SHMEM_CTX_DEFAULT: no options, SHMEM_TEAM_WORLD of {world}, 0 transfers outstanding",
        "no_ctx": "SHMEM_CTX_INVALID",
        "stray_ctx": rf"{ADDRESS}: no context of this PE",
        "destroyed_team": rf"team {ADDRESS}: destroyed",
        "no_team": "SHMEM_TEAM_INVALID",
        "no_request": "SHMEMX_REQUEST_NULL",
        "complete": "request without operations that outlast their call: complete",
        "shared_request": rf"request {ADDRESS}: SHARED, complete",
        "ended": rf"{ADDRESS} \(unknown: the request has ended in shmemx_request_free\)",
    }


@pytest.mark.parametrize("count", [2, 3])
def test_handles(oshrun, compiled, count):
    job = Debugged(oshrun, count, compiled / "debugged", steps=f"break look_here\nrun\n{PRINTS}")
    for pe, text in job.finish().items():
        wanted = wanted_of_handles(count)
        wanted["world"] = (rf"SHMEM_TEAM_WORLD: PEs 0-{count - 1}, this PE is {pe} of {count}, "
                           r"[1-9]\d* steps? begun.*")
        wanted["shared"] = rf"SHMEM_TEAM_SHARED: PEs 0-{count - 1}, this PE is {pe} of {count}, \d+ steps? begun"
        wanted["posted"] = (rf"request {ADDRESS}: PRIVATE, 1 operation outstanding" if pe == 0
                            else "SHMEMX_REQUEST_NULL")
        ends = "0-1" if count == 2 else "0, 2"
        if pe in (0, count - 1):
            wanted["ends"] = (rf"team {ADDRESS}: PEs {ends}, this PE is {int(pe != 0)} of 2, "
                              r"[1-9]\d* steps? begun")
            wanted["of_team"] = (rf"context {ADDRESS}: SHMEM_CTX_PRIVATE, team {ADDRESS} of PEs {ends}, "
                                 "0 transfers outstanding")
        else:
            wanted.update(ends="SHMEM_TEAM_INVALID", of_team="SHMEM_CTX_INVALID")
        matches(printed(text), wanted)
        # From the core file, with the printers by `source`.
        (oshrun.folder / "prints").write_text(PRINTS)
        core = subprocess.run(["gdb", "-batch", "-nx", "-iex", "set auto-load no", "-ex", "set width 0",
                               "-ex", f"source {build()}/lib/heddle/gdb/heddle_gdb.py", "-x", "prints",
                               compiled / "debugged", f"core.{pe}"], cwd=oshrun.folder, capture_output=True, text=True,
                              timeout=600)
        matches(printed(core.stdout), wanted)


def test_handles_between_nodes(oshrun, compiled):
    """What PE 1 has not taken is outstanding: of the context, of the request, and of their streams."""
    env = {**NODES, "HEDDLE_PROGRESS": "manual", "HEDDLE_NET_HEARTBEAT_TIMEOUT_S": "0"}
    job = Debugged(oshrun, 2, compiled / "debugged", "network", only=0, env=env,
                   steps=f"break look_here\nrun\n{PRINTS}heddle-status\n")
    text = job.finish()[0]
    told = printed(text)
    matches(told, {
        "ctx": rf"context {ADDRESS}: .*, 1 stream, 1 with something outstanding = \{{stream to PE 1: .* in flight.*\}}",
        "default_ctx": r"SHMEM_CTX_DEFAULT: .*, 1 stream, 1 with something outstanding = \{stream to PE 1: .*\}",
        "of_team": rf"context {ADDRESS}: SHMEM_CTX_PRIVATE, team {ADDRESS} of PEs 0-1, 0 transfers outstanding",
        "ends": rf"team {ADDRESS}: PEs 0-1, this PE is 0 of 2, on 2 nodes, [1-9]\d* steps? begun",
        "posted": rf"request {ADDRESS}: PRIVATE, PE 1: [1-9]\d* bytes not acked, 1 value to come back",
    })
    positions = re.search(r"published (\d+), sent (\d+), acked (\d+), (\d+) bytes in flight", told["ctx"])
    published, sent, acked, in_flight = map(int, positions.groups())
    assert published - acked >= 24 and acked <= sent <= published and in_flight == sent - acked, told
    streams = re.findall(r"(?m)^stream to PE 1: published (\d+)", text)
    assert len(streams) == 2 and str(published) in streams, text
    assert re.search(rf"(?m)^request {ADDRESS}: PRIVATE, PE 1: ", text), text


def test_a_stripped_library_is_named(oshrun, compiled, tmp_path):
    """The printers have no types then; stacks tell the call all the same."""
    library = (build() / "lib" / "libheddle.so").resolve()
    (tmp_path / "lib").mkdir()
    subprocess.run(["strip", library, "-o", tmp_path / "lib" / "libheddle.so.1"], check=True)
    scripts = f"source {build()}/lib/heddle/gdb/heddle_gdb.py\n"
    job = Debugged(oshrun, 1, compiled / "hangs", "until", steps=scripts + STATUS + "print (shmem_ctx_t)0x1230\n",
                   env={"LD_LIBRARY_PATH": str(tmp_path / "lib")})
    oshrun.pids(1)
    await_report(oshrun, job.process, "until", 1)
    os.kill(int((oshrun.folder / "pid.0").read_text()), signal.SIGUSR1)
    text = job.finish()[0]
    reason = "libheddle.so has no debug information: it has been stripped"
    assert f"PE: unknown: {reason}\n" in text and f"waits: told from the stacks alone: {reason}\n" in text, text
    assert f"$1 = 0x1230 (unknown: {reason})" in text, text
    threads = [line for line in status_in(text).splitlines() if line.startswith("thread ")]
    call = f"in shmem_int_wait_until {place('hang', 'until')}, not asleep"
    assert [line for line in threads if line.endswith(call)], text


def test_before_init(compiled, tmp_path):
    result = subprocess.run(["gdb", "-batch", "-nx", "-ex", f"source {build()}/lib/heddle/gdb/heddle_gdb.py",
                             "-ex", "heddle-status", "-ex", "break main", "-ex", "run", "-ex", "heddle-status",
                             "-ex", "print (shmem_team_t)0x1230", compiled / "hangs"], cwd=tmp_path,
                            capture_output=True, text=True, timeout=600)
    assert "heddle-status: there is no process and no core file" in result.stderr, result
    assert "PE: unknown: the process has not called shmem_init\n" in result.stdout, result
    assert "not in Heddle, at main (hangs.c:" in result.stdout, result
    assert "$1 = 0x1230 (unknown: the process has not called shmem_init)" in result.stdout, result


@pytest.mark.parametrize("words,code,said", [([], 2, "heddle-status CORE [PROGRAM]"),
                                             (["nowhere"], 1, "nowhere: there is no such file")])
def test_wrong_words(tmp_path, words, code, said):
    result = subprocess.run([build() / "bin" / "heddle-status", *words], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == code and said in result.stderr, result

"""What PEs print and read: whole lines, complete, fast, in bounded memory."""

import collections
import os
import pathlib
import pty
import resource
import select
import signal
import subprocess
import threading
import time

import pytest
from conftest import PROMPT_S, wait_until
from processes import alive

MIB = 1 << 20

# Writes its lines in pieces that cut them, so that a forwarder that is not careful mixes them.
WRITER = """
import os, sys
pe, count, size = int(os.environ['HEDDLE_PE']), int(sys.argv[1]), int(sys.argv[2])
line = (chr(ord('a') + pe) * size + '\\n').encode()
data = line * count
step = max(1, len(line) * 2 // 3)
for begin in range(0, len(data), step):
    piece = data[begin:begin + step]
    while piece:
        piece = piece[os.write(1, piece):]
"""


@pytest.mark.parametrize("count,size", [(2000, 50), (20, 100_000), (12, 1_000_000)])
def test_lines_of_8_writers_are_not_mixed(oshrun, python, count, size):
    result = oshrun.run("-n", 8, python("writer", WRITER), count, size)
    assert result.status == 0, result
    seen = collections.Counter(result.out.splitlines())
    assert seen == {chr(ord("a") + pe) * size: count for pe in range(8)}


def test_lines_are_not_mixed_when_stdout_and_stderr_are_one_slow_pipe(oshrun, python):
    writer = python("writer", WRITER + "\n    os.write(2, b'-' * 3000 + b'\\n')\n")
    process = oshrun.start("-n", 4, writer, 300, 900, stderr=subprocess.STDOUT)
    text = b""
    while data := os.read(process.stdout.fileno(), 5000):
        text += data
        time.sleep(0.0005)
    assert process.wait(PROMPT_S) == 0
    assert len(text.splitlines()) > 4 * 300
    for line in text.splitlines():
        assert len(set(line)) == 1 and len(line) in (900, 3000)


def test_100_mb_arrive_whole(oshrun, tmp_path):
    line = b"0123456789" * 8 + b"\n"
    (tmp_path / "big").write_bytes(line * (100_000_000 // len(line)))
    with open(tmp_path / "copy", "wb") as copy:
        result = oshrun.run("-n", 1, "cat", "big", stdout=copy)
    assert result.status == 0
    assert subprocess.run(["cmp", "big", "copy"], cwd=tmp_path).returncode == 0


def test_binary_output_of_one_pe_is_not_changed(oshrun, tmp_path):
    (tmp_path / "data").write_bytes(os.urandom(3 * MIB).replace(b"\n", b"") + b"\0\nend")
    with open(tmp_path / "copy", "wb") as copy:
        assert oshrun.run("-n", 1, "cat", "data", stdout=copy).status == 0
    assert (tmp_path / "data").read_bytes() == (tmp_path / "copy").read_bytes()


def test_line_of_1_mib_is_not_cut_and_a_longer_one_is_cut_at_newlines_only(oshrun, python):
    result = oshrun.run("-n", 2, python("writer", WRITER), 3, MIB)
    assert collections.Counter(result.out.splitlines()) == {"a" * MIB: 3, "b" * MIB: 3}
    result = oshrun.run("-n", 2, python("writer2", WRITER), 2, 5 * MIB)
    assert result.out.count("a") == result.out.count("b") == 10 * MIB
    assert all(len(set(line)) == 1 for line in result.out.splitlines())


def test_memory_stays_bounded_with_a_reader_that_does_not_read(oshrun, python):
    program = python("endless", "import os\nwhile True: os.write(1, b'x' * 65535 + b'\\n')\n")
    process = oshrun.start("-n", 4, program)
    time.sleep(1.0)
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    peak_kb = int(status.split("VmHWM:")[1].split()[0])
    process.terminate()
    process.stdout.close()
    assert process.wait(PROMPT_S) == 128 + 15
    assert peak_kb < 16 * 1024


def test_timeout_and_signals_work_while_the_reader_does_not_read(oshrun, python):
    program = python("endless", "import os\nwhile True: os.write(1, b'x' * 65535 + b'\\n')\n")
    process = oshrun.start("-n", 2, "--timeout", 0.5, program)
    result = os.read(process.stderr.fileno(), 1)  # comes only if oshrun is awake
    assert result == b"o"
    process.stdout.close()
    assert process.wait(PROMPT_S) == 124


def test_unfinished_last_line_is_forwarded_as_it_is(oshrun):
    assert oshrun.run("-n", 1, "printf", "no end").out == "no end"
    assert sorted(oshrun.run("-n", 3, "printf", "no end").out.split("\n")) == ["no end"] * 3
    assert sorted(oshrun.run("-n", 2, "--tag-output", "printf", "a\\nb").out.split("\n")) == \
        ["[0] a", "[0] b", "[1] a", "[1] b"]


def test_tags(oshrun, shell):
    program = shell("say", 'echo "out $HEDDLE_PE"; echo; echo "err $HEDDLE_PE" >&2\n')
    result = oshrun.run("-n", 11, "--tag-output", program)
    assert result.status == 0
    assert sorted(result.out.splitlines()) == sorted(f"[{pe}] {text}" for pe in range(11) for text in (f"out {pe}", ""))
    assert sorted(result.err.splitlines()) == sorted(f"[{pe}] err {pe}" for pe in range(11))


def test_stdout_and_stderr_stay_apart(oshrun, shell):
    result = oshrun.run("-n", 2, shell("say", "echo out; echo err >&2\n"))
    assert (result.out, result.err) == ("out\nout\n", "err\nerr\n")


def test_stdin_goes_to_pe_0_and_the_others_read_nothing(oshrun, shell):
    program = shell("read", 'printf "%s:%s\\n" "$HEDDLE_PE" "$(cat)"\n')
    result = oshrun.run("-n", 3, program, text="one\ntwo")
    assert sorted(result.out.splitlines()) == ["0:one", "1:", "2:", "two"]


def test_only_pe_0_has_the_input(oshrun, shell):
    program = shell("show", 'echo "$HEDDLE_PE $(readlink /proc/self/fd/0)"\n')
    with open(oshrun.folder / "input", "w+b") as file:
        result = oshrun.run("-n", 3, program, stdin=file)
    assert sorted(result.out.splitlines()) == [f"0 {oshrun.folder}/input", "1 /dev/null", "2 /dev/null"]


def test_closed_stdout_ends_the_job_quietly(oshrun, python):
    program = python("endless", "import os\nopen(f'new.{os.getpid()}', 'w').write(f'{os.getpid()}\\n')\n"
                     "os.rename(f'new.{os.getpid()}', f'pid.{os.getpid()}')\n"
                     "while True: os.write(1, b'line\\n' * 100)\n")
    process = oshrun.start("-n", 3, program)
    pids = oshrun.pids(3)
    os.read(process.stdout.fileno(), 100)
    process.stdout.close()
    assert process.wait(PROMPT_S) == 128 + 13
    assert process.stderr.read() == b""
    assert not any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids)


def test_oshrun_in_a_pipe_to_head(oshrun):
    command = f"{oshrun.path} -n 2 yes | head -n 1"
    result = subprocess.run(["bash", "-c", command + '; echo "${PIPESTATUS[0]}"'], capture_output=True, text=True,
                            timeout=PROMPT_S)
    assert (result.stdout, result.stderr) == ("y\n141\n", "")


def test_full_disk_is_said(oshrun):
    with open("/dev/full", "wb") as full:
        result = oshrun.run("-n", 2, "echo", "hello", stdout=full)
    assert result.status == 1
    assert "oshrun: cannot forward the PEs' output: No space left on device; ending the job" in result.messages


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_take_no_other_meaning(oshrun, closed):
    command = f"{oshrun.path} -n 2 sh -c 'cat; echo out; echo err >&2' {closed}"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=PROMPT_S,
                            stdin=subprocess.DEVNULL)
    assert result.returncode == 0
    assert result.stdout == ("" if " >&-" in " " + closed else "out\nout\n")
    assert result.stderr == ("" if "2>&-" in closed else "err\nerr\n")


def test_output_before_death_is_forwarded_and_comes_before_the_verdict(oshrun, python):
    program = python("die", "import os\nos.write(2, b'last words\\n')\n"
                            "os.write(1, b'x' * 60000)\nos.kill(os.getpid(), 9)\n")
    result = oshrun.run("-n", 1, program)
    assert result.out == "x" * 60000
    assert result.err.startswith("last words\noshrun: PE 0 ")


def test_all_output_of_a_dead_pe_comes_before_the_verdict(oshrun, python, tmp_path):
    """More than one read takes, and the PE is dead when oshrun, which was stopped, looks."""
    program = python("die", "import fcntl, os, time\nfcntl.fcntl(2, 1031, 1 << 20)\n"  # F_SETPIPE_SZ
                     "open('new', 'w').write(f'{os.getpid()}\\n')\nos.rename('new', f'pid.{os.getpid()}')\n"
                     "while not os.path.exists('go'): time.sleep(0.01)\n"
                     "assert os.write(2, b'last words\\n' * 90000) == 990000\nos.kill(os.getpid(), 9)\n")
    with open(tmp_path / "errors", "wb") as errors:
        process = oshrun.start("-n", 1, program, stderr=errors)
        pid = oshrun.pids(1)[0]
        process.send_signal(signal.SIGSTOP)
        (tmp_path / "go").touch()
        assert wait_until(lambda: not alive(pid))
        process.send_signal(signal.SIGCONT)
        assert process.wait(PROMPT_S) == 137
    lines = (tmp_path / "errors").read_text().splitlines()
    assert lines[:90000] == ["last words"] * 90000 and len(lines) == 90001 and lines[-1].startswith("oshrun: PE 0 ")


def read_terminal(fd, seconds, until=None):
    """What arrives within the time; returns early once `until` is there."""
    text, end = b"", time.monotonic() + seconds
    while (rest := end - time.monotonic()) > 0 and not (until and until in text):
        if select.select([fd], [], [], rest)[0]:
            try:
                data = os.read(fd, 4096)
            except OSError:  # all have closed the terminal
                break
            if not data:
                break
            text += data
    return text


def test_prompt_appears_on_a_terminal(oshrun, python):
    program = python("ask", "import os\nos.write(1, b'name? ')\nos.write(1, b'hello ' + os.read(0, 100) + b'\\n')\n")
    ours, theirs = pty.openpty()
    reader, writer = os.pipe()
    process = oshrun.start("-n", 1, program, stdin=reader, stdout=theirs, stderr=theirs)
    os.close(theirs), os.close(reader)
    assert read_terminal(ours, PROMPT_S, b"name? ") == b"name? "
    os.write(writer, b"Ada")
    assert read_terminal(ours, PROMPT_S, b"\n") == b"hello Ada\r\n"
    assert process.wait(PROMPT_S) == 0
    os.close(ours), os.close(writer)


def test_unfinished_line_waits_for_its_end_when_not_on_a_terminal(oshrun, shell):
    program = shell("slow", "printf a; sleep 0.4; echo b\n")
    result = oshrun.run("-n", 2, program)
    assert result.out == "ab\nab\n"
    ours, theirs = pty.openpty()
    process = oshrun.start("-n", 1, shell("quick", "printf a; printf b; echo c; printf d; sleep 0.05; echo e"),
                           stdout=theirs)
    os.close(theirs)
    assert read_terminal(ours, PROMPT_S, b"de\r\n") == b"abc\r\nde\r\n"
    assert process.wait(PROMPT_S) == 0
    os.close(ours)


def test_descriptors_of_the_launcher_do_not_leak(oshrun, python):
    program = python("list", "import os\nfor fd in sorted(map(int, os.listdir('/proc/self/fd'))):\n"
                     "    try: print(fd, os.readlink(f'/proc/self/fd/{fd}'))\n    except OSError: pass\n")
    for line in oshrun.run("-n", 3, "--tag-output", program).out.splitlines():
        _, fd, target = line.split(maxsplit=2)
        assert int(fd) <= 2 or "memfd:heddle" in target or "pipe:" in target, line
    out = oshrun.run("-n", 1, program).out
    assert len(out.splitlines()) == 5, out  # standard streams, job memory, lifeline


def test_file_limit_of_the_pes_is_that_of_the_launcher(oshrun):
    def lower():
        resource.setrlimit(resource.RLIMIT_NOFILE, (50, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    result = oshrun.run("-n", 64, "sh", "-c", "ulimit -Sn", preexec_fn=lower)
    assert result.out.split() == ["50"] * 64, result


def test_many_readers_and_writers_at_once(oshrun, python):
    """Several jobs side by side do not disturb each other."""
    program = python("writer", WRITER)
    results = []
    threads = [threading.Thread(target=lambda: results.append(oshrun.run("-n", 4, program, 50, 5000)))
               for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [result.status for result in results] == [0] * 3
    for result in results:
        assert collections.Counter(result.out.splitlines()) == {c * 5000: 50 for c in "abcd"}


READS = 'while read line; do echo "$HEDDLE_PE $line"; done\n'


@pytest.mark.parametrize("who,readers", [("0", [0]), ("2", [2]), ("none", []), ("all", [0, 1, 2])])
def test_who_reads_standard_input(oshrun, shell, who, readers):
    result = oshrun.run("-n", 3, "--stdin", who, shell("reads", READS), text="a\nb\n")
    assert result.status == 0, result
    assert sorted(result.out.splitlines()) == [f"{pe} {line}" for pe in readers for line in "ab"], result


def test_input_for_all_is_whole_with_readers_that_are_slow_or_gone(oshrun, shell, tmp_path):
    """4 MiB, far more than pipes hold; PE 1 reads nothing, PE 2 is slow."""
    text = "".join(f"line {number}\n" for number in range(300_000))
    program = shell("reads", 'case $HEDDLE_PE in 1) exec true;; 2) sleep 0.3;; esac; exec cksum\n')
    expected = subprocess.run(["cksum"], input=text, capture_output=True, text=True, check=True).stdout
    assert oshrun.run("-n", 4, "--stdin", "all", program, text=text).out == expected * 3


def test_input_for_all_ends_with_the_job(oshrun):
    with subprocess.Popen(["sleep", "600"], stdout=subprocess.PIPE) as writer:
        result = oshrun.run("-n", 2, "--stdin", "all", "true", stdin=writer.stdout)
        writer.kill()
    assert result.status == 0 and result.seconds < 300, result


def test_a_file_for_each_pe(oshrun, shell, tmp_path):
    program = shell("say", 'echo "out $HEDDLE_PE"; echo "err $HEDDLE_PE" >&2; [ "$HEDDLE_PE" != 2 ] || exit 3\n')
    result = oshrun.run("-n", 3, "--output-dir", "out", program)
    assert result.status == 3 and result.out == "" and len(result.err.splitlines()) == 1, result
    assert "PE 2 (./say" in result.err, result
    assert (tmp_path / "out/pe.2.out").read_text() == "out 2\n"
    assert (tmp_path / "out/pe.2.err").read_text() == "err 2\n"
    oshrun.run("-n", 1, "--output-dir", "out", "echo", "x")
    assert (tmp_path / "out/pe.0.out").read_text() == "x\n"  # not behind what was there
    (tmp_path / "file").write_text("")
    result = oshrun.run("-n", 1, "--output-dir", "file", "echo", "x")
    assert result.status == 1 and "file" in result.err and "Not a directory" in result.err, result

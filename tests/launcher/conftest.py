"""Running oshrun and looking at what it leaves. The build under test is the folder HEDDLE_BUILD (bin/oshrun,
bin/oshcc, lib/). Only processes that a test started are ever ended, by their number."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from processes import alive

PYTHON = sys.executable
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
PROMPT_S = 120.0  # far less than the programs would take by themselves, and more than a busy machine needs


def build():
    folder = os.environ.get("HEDDLE_BUILD")
    if not folder:
        pytest.fail("set HEDDLE_BUILD to the build folder (with bin/oshrun)")
    return pathlib.Path(folder)


def wait_until(condition, seconds=PROMPT_S):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return bool(condition())


class Result:
    def __init__(self, status, out, err, seconds):
        self.status, self.out, self.err, self.seconds = status, out, err, seconds

    @property
    def messages(self):
        """What oshrun itself said."""
        return [line for line in self.err.splitlines() if line.startswith("oshrun: ")]

    def __repr__(self):
        return f"status {self.status} after {self.seconds:.2f} s\nout: {self.out[-2000:]}\nerr: {self.err[-2000:]}"


class Launcher:
    def __init__(self, folder):
        self.path = str(build() / "bin" / "oshrun")
        self.folder = folder
        self.started = []

    def start(self, *arguments, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen([self.path, *map(str, arguments)], cwd=self.folder, **options)
        self.started.append(process)
        return process

    def finish(self, process, limit=600, text=None):
        begin = time.monotonic()
        out, err = process.communicate(timeout=limit, input=text)
        def decode(data):
            return data.decode(errors="replace") if data is not None else ""
        return Result(process.returncode, decode(out), decode(err), time.monotonic() - begin)

    def run(self, *arguments, limit=600, text=None, **options):
        if text is not None:
            options["stdin"] = subprocess.PIPE
            text = text.encode()
        begin = time.monotonic()
        result = self.finish(self.start(*arguments, **options), limit, text)
        result.seconds = time.monotonic() - begin
        return result

    def pids(self, count, pattern="pid.*", seconds=PROMPT_S):
        """The numbers that processes have written to files, renamed then so that each is whole; waits for all."""
        def read():
            return [int(path.read_text()) for path in self.folder.glob(pattern)]
        assert wait_until(lambda: len(read()) >= count, seconds), f"{len(read())} of {count} processes are up"
        return read()


@pytest.fixture
def oshrun(tmp_path):
    launcher = Launcher(tmp_path)
    yield launcher
    left = [pid for pid in (int(path.read_text()) for path in tmp_path.glob("pid.*")) if alive(pid)]
    for process in launcher.started:
        if process.poll() is None:
            process.kill()
        process.wait()
    if left:  # only ever numbers that the test's own programs wrote, checked a moment ago
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        pytest.fail(f"processes left behind: {left}")


@pytest.fixture
def script(tmp_path):
    """Writes an executable program from its text."""
    def write(name, text, mode=0o755):
        path = tmp_path / name
        path.write_text(text)
        path.chmod(mode)
        return "./" + name
    return write


@pytest.fixture
def python(script):
    return lambda name, text: script(name, f"#!{PYTHON} -S\n{text}")


@pytest.fixture
def program(python, tmp_path):
    """Copies one of programs/, with what they share, into the folder of the test."""
    def copy(name):
        (tmp_path / "pe.py").write_text((PROGRAMS / "pe.py").read_text())
        return python(f"{name}.py", (PROGRAMS / f"{name}.py").read_text())
    return copy


@pytest.fixture
def shell(script):
    return lambda name, text: script(name, f"#!/bin/sh\n{text}")


@pytest.fixture(scope="session")
def hangs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hangs")
    subprocess.run([build() / "bin" / "oshcc", "-g", "-O1", PROGRAMS / "hangs.c", "-o", folder / "hangs"], check=True,
                   timeout=PROMPT_S)
    return folder / "hangs"

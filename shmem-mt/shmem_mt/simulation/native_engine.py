"""The simulator's engine: a C++ program, compiled once for each state of its sources, that reads scenarios line by line
and answers each with a JSON object."""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile

import platformdirs

from shmem_mt import sources, supervisor
from shmem_mt.errors import UserError
from shmem_mt.simulation import network_model

COMPILERS = ("c++", "g++", "clang++")
# A compiler may join a product and a sum into one instruction that rounds once, where the processor has it. Without,
# a seed gives the same bits on every machine.
FLAGS = ("-std=c++17", "-O2", "-ffp-contract=off")
COMPILE_TIMEOUT_S = 180


def program():
    """The path of the compiled engine. Raises UserError without a compiler."""
    compiler = shutil.which(os.environ.get("CXX") or "") or next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise UserError(f"the simulator is compiled when it is first used, and there is no {', '.join(COMPILERS)}")
    binary = os.path.join(_cache(), f"simulate-{_stamp(compiler)}")
    if not os.path.exists(binary):
        _compile(compiler, binary)
    return binary


def _cache():
    home = platformdirs.user_cache_dir("shmem-mt", appauthor=False)
    for folder in (home, os.path.join(tempfile.gettempdir(), f"shmem-mt-{os.getuid()}")):
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK) and os.stat(folder).st_uid == os.getuid():
            return folder
    raise UserError(f"no folder for the compiled simulator: neither {home} nor the temporary folder")


def _stamp(compiler):
    parts = [compiler, os.stat(compiler).st_mtime_ns, *FLAGS, sources.digest("simulator", "programs/common")]
    return hashlib.sha256(" ".join(map(str, parts)).encode()).hexdigest()[:16]


def _compile(compiler, binary):
    fresh = f"{binary}.{os.getpid()}"
    source = os.path.join(network_model.folder(), "simulate.cpp")
    command = [compiler, *FLAGS, "-I", sources.root(), source, "-o", fresh]
    try:
        done = supervisor.run(command, COMPILE_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"the simulator does not compile: {error}") from error
    if done.returncode:
        raise UserError(f"the simulator does not compile with {compiler}: {done.stderr.strip()[-500:]}")
    os.replace(fresh, binary)


class Engine:
    """A running engine. Leaving the context ends it."""

    def __enter__(self):
        self._process = subprocess.Popen(
            [program()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.communicate()

    def simulate(self, model, traffic):
        """What the engine says of it (simulator/simulate.cpp). The traffic has been checked. Raises UserError."""
        return self.answer(network_model.scenario(model, traffic))

    def answer(self, scenario):
        """To one line, as network_model.scenario writes them. Raises UserError."""
        requests, answers, errors = self._process.stdin, self._process.stdout, self._process.stderr
        assert requests and answers and errors  # the pipes that __enter__ asked for
        try:
            requests.write(scenario + "\n")
            requests.flush()
            line = answers.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise UserError(f"the simulator ended: {errors.read().strip() or 'it was killed'}")
        return json.loads(line)

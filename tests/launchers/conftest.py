"""The launchers that this machine has, as Debian packages them: MPICH's hydra, Open MPI's mpirun, and Slurm and sshd,
which the tests start themselves. The build under test is HEDDLE_BUILD."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import namespace_hosts  # noqa: E402
import slurm as slurm_of_tests  # noqa: E402
from processes import alive  # noqa: E402

BUILD = pathlib.Path(os.environ["HEDDLE_BUILD"])
LIMIT_S = 900  # of one that hangs: 256 PEs take minutes where others use the cores
OVER_TCP = {"HEDDLE_NET_TRANSPORTS": "tcp", "HEDDLE_NET_HEARTBEAT_TIMEOUT_S": "60"}
LAUNCHERS = {
    "hydra": ["mpiexec.hydra"],
    "hydra-port": ["mpiexec.hydra", "-pmi-port"],
    "openmpi": ["mpirun", "--allow-run-as-root", "--oversubscribe"],
    "slurm-pmi2": ["srun", "--quiet", "--kill-on-bad-exit", "--overcommit", "--mpi=pmi2"],
    "slurm-pmix": ["srun", "--quiet", "--kill-on-bad-exit", "--overcommit", "--mpi=pmix"],
}
SPEAK_PMI = ["hydra", "hydra-port", "slurm-pmi2"]


def pytest_sessionstart(session):
    lacking = [name for name in ["mpiexec.hydra", "mpirun", "ssh-keygen", "/usr/sbin/sshd"] if not shutil.which(name)]
    lacking += filter(None, [slurm_of_tests.missing(), namespace_hosts.missing()])
    lacking += [name for name in ["libheddle_pmix.so", "libheddle_ucx.so"] if not (BUILD / "lib" / name).exists()]
    if lacking:
        pytest.exit(f"skipped: the launchers of the tests need {', '.join(lacking)}", returncode=77)


def wait_until(holds, why=""):
    end = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end, why
        time.sleep(0.05)


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err
        self.lines = sorted(re.sub(", process .*", "", line) for line in out.splitlines())
        self.processes = [int(number) for number in re.findall(r", process (\d+)", out)]

    def __repr__(self):
        return f"status {self.status}\nout: {self.out[-2000:]}\nerr: {self.err[-3000:]}"

    def is_well(self, pes, near=None):
        assert self.status == 0, self
        behind = f"of {pes}: {pes * (pes + 1) // 2}, {near or pes} near"
        assert self.lines == sorted(f"PE {pe} {behind}" for pe in range(pes)), self

    def leaves_nothing(self):
        wait_until(lambda: not any(map(alive, self.processes)), self)


class Job:
    """A command that runs. What it says is heard by lines, then to its end."""

    def __init__(self, command, environment, text, stdin):
        self.text, self.heard = text, ""
        self.process = subprocess.Popen(list(map(str, command)), env=environment, text=True,
                                        stdin=stdin or (subprocess.PIPE if text else subprocess.DEVNULL),
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def hear(self, lines):
        self.heard += "".join(self.process.stdout.readline() for _ in range(lines))

    def end(self):
        hangs = False
        try:
            out, err = self.process.communicate(self.text, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            hangs = True
            self.process.terminate()
            out, err = self.process.communicate(timeout=LIMIT_S)
        result = Result(self.process.returncode, self.heard + out, err)
        assert not hangs, f"hangs\n{result}"
        return result


class Here:
    def __init__(self, slurm, program):
        self.program = program
        inherited = {name: text for name, text in os.environ.items()
                     if not name.startswith(("PMI", "SLURM_", "HEDDLE_", "OMPI_"))}
        self.environment = {**inherited, **slurm.environment}

    def start(self, *command, text=None, stdin=None, **settings):
        return Job(command, {**self.environment, **settings}, text, stdin)

    def run(self, *command, text=None, **settings):
        return self.start(*command, text=text, **settings).end()


def write_script(path, text):
    """Writes the commands of the shell to a file that can be run, and returns its path."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def compile_program(source, program):
    subprocess.run([BUILD / "bin" / "oshcc", "-O2", "-Wall", source, "-o", program], check=True, timeout=LIMIT_S)
    return program


def all_hang(pes):
    """True when all PEs that share a host with one of these processes have waited for more than a second."""
    for pe in pes:
        said = subprocess.run([BUILD / "bin" / "oshrun", "--status", str(pe)], capture_output=True, text=True,
                              timeout=LIMIT_S).stdout
        waits = [re.search(r" since (\d+\.\d)", line) for line in said.splitlines() if re.match(r"(\d+ PEs|PE) ", line)]
        if not waits or not all(wait and float(wait[1]) > 1.5 for wait in waits):
            return False
    return True


def reports_in(messages, name):
    """The reports that PEs made at a signal: by host, the lines without their beginnings."""
    reports, by = {}, {}
    for line in messages.splitlines():
        found = re.search(rf"heddle \[(pe \d+)\] {name}: (?:the job ends\. The PEs of host ([\w.-]+) are:$)?(.*)", line)
        if found and found[2]:
            assert found[2] not in reports, f"two reports of a host: {messages}"
            by[found[1]] = reports.setdefault(found[2], [])
        elif found:
            by[found[1]].append(found[3])
    return reports


@pytest.fixture(scope="session")
def here(tmp_path_factory):
    program = compile_program(HERE / "pe.c", tmp_path_factory.mktemp("program") / "pe")
    slurm = slurm_of_tests.Slurm(tmp_path_factory.mktemp("slurm"))
    yield Here(slurm, program)
    slurm.close()


@pytest.fixture
def delayed(tmp_path):
    """A script `delayed PE COMMAND WORD...`: that PE begins with the command, and each with the words."""
    return write_script(tmp_path / "delayed", 'pe=$1 command=$2\nshift 2\n'
                        '[ "${PMIX_RANK:-${PMI_RANK:-$PMI_ID}}" = $pe ] && $command\nexec "$@"')

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
import slurm as slurm_of_tests  # noqa: E402
from processes import alive  # noqa: E402

BUILD = pathlib.Path(os.environ["HEDDLE_BUILD"])
LIMIT_S = 900  # of one that hangs: 256 PEs take minutes where others use the cores
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
    if missing := slurm_of_tests.missing():
        lacking.append(missing)
    lacking += [name for name in ["libheddle_pmix.so", "libheddle_ucx.so"] if not (BUILD / "lib" / name).exists()]
    if lacking:
        pytest.exit(f"skipped: the launchers of the tests need {', '.join(lacking)}", returncode=77)


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
        end = time.monotonic() + LIMIT_S
        while any(map(alive, self.processes)) and time.monotonic() < end:
            time.sleep(0.05)
        assert not [process for process in self.processes if alive(process)], self


class Here:
    def __init__(self, slurm, program):
        self.program = program
        inherited = {name: text for name, text in os.environ.items()
                     if not name.startswith(("PMI", "SLURM_", "HEDDLE_", "OMPI_"))}
        self.environment = {**inherited, **slurm.environment}

    def run(self, *command, text=None, **settings):
        process = subprocess.Popen(list(map(str, command)), env={**self.environment, **settings}, text=True,
                                   stdin=subprocess.PIPE if text else subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        try:
            out, err = process.communicate(text, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            process.terminate()
            out, err = process.communicate()
            pytest.fail(f"hangs\n{Result(process.returncode, out, err)}")
        return Result(process.returncode, out, err)


@pytest.fixture(scope="session")
def here(tmp_path_factory):
    program = tmp_path_factory.mktemp("program") / "pe"
    subprocess.run([BUILD / "bin" / "oshcc", "-O2", "-Wall", HERE / "pe.c", "-o", program], check=True, timeout=LIMIT_S)
    slurm = slurm_of_tests.Slurm(tmp_path_factory.mktemp("slurm"))
    yield Here(slurm, program)
    slurm.close()

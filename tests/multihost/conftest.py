"""Runs small programs under mpirun, on this host and on several, which are namespaces
(tests/support/namespace_hosts.py). The build under test is HEDDLE_BUILD."""

import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import namespace_hosts as made_of  # noqa: E402

BUILD = pathlib.Path(os.environ["HEDDLE_BUILD"])
LIMIT_S = 300
SHAPES = ["1+1", "2+2", "3+1", "1+1+2"]  # PEs on each host


def pytest_addoption(parser):
    parser.addoption("--every", action="store_true", help="every program in every shape: make test-hosts")


def pytest_configure(config):
    config.addinivalue_line("markers", "every: runs with --every alone")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("every"):
        items[:] = [item for item in items if not item.get_closest_marker("every")]


def pytest_sessionstart(session):
    lacking = made_of.missing() or ("" if shutil.which("mpirun") else "mpirun")
    if not lacking:
        plugins = ["libheddle_pmix.so", "libheddle_ucx.so"]
        lacking = ", ".join(name for name in plugins if not (BUILD / "lib" / name).exists())
    if lacking:
        pytest.exit(f"skipped: jobs on several hosts need {lacking}", returncode=77)


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """The folder with the compiled programs."""
    folder = tmp_path_factory.mktemp("programs")
    for source in HERE.glob("*.c"):
        subprocess.run([BUILD / "bin" / "oshcc", "-O2", "-Wall", "-rdynamic", source, "-o", folder / source.stem],
                       check=True, timeout=LIMIT_S)
    return folder


@pytest.fixture(scope="session")
def hosts(tmp_path_factory):
    all_hosts = made_of.Hosts(tmp_path_factory.mktemp("hosts"), 3)
    yield all_hosts
    all_hosts.close()


class Result:
    def __init__(self, status, out, err, seconds):
        self.status, self.out, self.err, self.seconds = status, out, err, seconds
        self.lines = out.splitlines()

    def pids(self):
        """The processes that have said `pid N`."""
        return [int(line.split()[1]) for line in self.lines if line.startswith("pid ")]

    def __repr__(self):
        return f"status {self.status} after {self.seconds:.2f} s\nout: {self.out[-3000:]}\nerr: {self.err[-3000:]}"


def start(command, environment=None):
    return subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=environment)


def finish(process, limit=LIMIT_S):
    begin = time.monotonic()
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.terminate()  # mpirun ends its PEs
        out, err = process.communicate(timeout=LIMIT_S)
        pytest.fail(f"has not ended within {limit} s: {Result(None, out, err, limit)}")
    return Result(process.returncode, out, err, time.monotonic() - begin)


class Mpirun:
    def __init__(self, programs, hosts=None):
        self.programs, self.hosts = programs, hosts

    def command(self, shape, *program, settings=None):
        """shape: PEs of each host ("2+1"), or of this machine ("4")."""
        counts = [int(count) for count in shape.split("+")]
        command = ["mpirun", "--allow-run-as-root", "-n", sum(counts)]
        for name, value in {"HEDDLE_NET_TRANSPORTS": "tcp", **(settings or {})}.items():
            command += ["-x", f"{name}={value}"]
        if self.hosts:
            command += ["--mca", "plm_rsh_agent", self.hosts.agent, "--host",
                        ",".join(f"{host.name}:{count}" for host, count in zip(self.hosts.all, counts))]
        else:
            command += ["--oversubscribe"]
        command += ["--wdir", self.programs, *program]
        return self.hosts.all[0].within(*command) if self.hosts else list(map(str, command))

    def start(self, shape, *program, **options):
        return start(self.command(shape, *program, **options))

    def run(self, shape, *program, limit=LIMIT_S, **options):
        return finish(self.start(shape, *program, **options), limit)


class Oshrun(Mpirun):
    """The same by oshrun, which hands over to mpirun; hostfile: names the hosts there."""

    def command(self, shape, *program, settings=None, hostfile=None):
        counts = [int(count) for count in shape.split("+")]
        named = [f"{host.name}:{count}" for host, count in zip(self.hosts.all, counts)]
        where = ["--hosts", ",".join(named)]
        if hostfile:
            hostfile.write_text("\n".join(named))
            where = ["--hostfile", hostfile]
        variables = {"OMPI_MCA_plm_rsh_agent": self.hosts.agent, "HEDDLE_NET_TRANSPORTS": "tcp", **(settings or {})}
        return self.hosts.all[0].within("env", *(f"{name}={value}" for name, value in variables.items()),
                                        BUILD / "bin" / "oshrun", *where, "-n", sum(counts), *program,
                                        folder=self.programs)


@pytest.fixture
def here(programs):
    return Mpirun(programs)


@pytest.fixture
def apart(programs, hosts):
    return Mpirun(programs, hosts)


@pytest.fixture
def oshrun(programs, hosts):
    return Oshrun(programs, hosts)

"""hydra on two hosts, which are namespaces of this machine: the PEs find their nodes, and the job ends as a whole."""

import os
import re
import subprocess

import namespace_hosts
import pytest
from conftest import BUILD, HERE, LAUNCHERS, LIMIT_S, Result

MULTIHOST = HERE.parent / "multihost"

SETTINGS = ["HEDDLE_NET_TRANSPORTS=tcp", "HEDDLE_NET_HEARTBEAT_TIMEOUT_S=60"]


@pytest.fixture(scope="module")
def on_hosts(here, tmp_path_factory):
    """Runs the program on both hosts, with so many PEs on each."""
    if lacking := namespace_hosts.missing():
        pytest.skip(f"hosts of namespaces need {lacking}")
    folder = tmp_path_factory.mktemp("hosts")
    hosts = namespace_hosts.Hosts(folder, 2)
    agent = folder / "ssh"
    agent.write_text(f'#!/bin/sh\n[ "$1" = -x ] && shift\nexec {hosts.agent} "$@"\n')
    agent.chmod(0o755)

    def command(on_each, *way, **settings):
        return hosts.all[0].within(
            "env", *SETTINGS, *(f"{name}={value}" for name, value in settings.items()), *LAUNCHERS["hydra"],
            "-launcher", "ssh", "-launcher-exec", agent, "-hosts", ",".join(host.name for host in hosts.all),
            "-ppn", on_each, "-n", 2 * on_each, here.program, *way)

    def run(*words, **settings):
        return here.run(*command(*words, **settings))
    run.command, run.hosts = command, hosts.all
    yield run
    hosts.close()


@pytest.mark.parametrize("on_each", [1, 2, 4])
def test_nodes(on_hosts, on_each):
    on_hosts(on_each).is_well(2 * on_each, near=on_each)


def test_starts_256(on_hosts):
    on_hosts(128, "hello", HEDDLE_NET_HEARTBEAT_TIMEOUT_S="600").is_well(256, near=128)


def test_version_2_is_refused(on_hosts):
    """A fence of hydra's PMI-2 does not wait for the other host, so that a PE would leave while others still talk.
    hydra 4.0 does not know an abort of PMI-2 either: it ends at once, and may lose what the PEs have said."""
    result = on_hosts(1, HEDDLE_LAUNCH="pmi2")
    assert result.status != 0 and not result.processes, result
    words = ["only Slurm's PMI-2 has a barrier: right would be HEDDLE_LAUNCH=pmi", "Unrecognized PMI command: abort"]
    assert any(word in result.err for word in words), result


@pytest.mark.parametrize("way", ["kill", "exit", "global"])
def test_a_pe_ends_the_job(on_hosts, way):
    result = on_hosts(2, way)  # hydra may lose the last words of the other host, and with them process numbers
    assert result.status != 0, result
    result.leaves_nothing()


def test_a_program_that_a_pe_starts_is_a_job_of_one(on_hosts):
    result = on_hosts(1, "child")
    assert result.status == 0 and result.lines.count("PE 0 of 1: 1, 1 near") == 2 and len(result.lines) == 4, result


def test_a_host_that_dies_ends_the_job(here, on_hosts):
    process = subprocess.Popen(on_hosts.command(1, "stay"), env=here.environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out = "".join(process.stdout.readline() for _ in range(2))
    on_hosts.hosts[1].kill_all()
    rest, err = process.communicate(timeout=LIMIT_S)
    result = Result(process.returncode, out + rest, err)
    assert result.status != 0 and len(result.processes) == 2, result
    result.leaves_nothing()


@pytest.fixture(scope="module")
def oshrun(here, on_hosts, tmp_path_factory):
    """Runs a program of tests/multihost on both hosts by oshrun, which finds no launcher that works but hydra."""
    folder = tmp_path_factory.mktemp("oshrun")
    subprocess.run([BUILD / "bin/oshcc", "-O2", MULTIHOST / "ends.c", "-o", folder / "ends"], check=True,
                   timeout=LIMIT_S)
    for name in ["prterun", "mpirun", "srun"]:
        (folder / name).write_text("#!/bin/sh\nexit 1\n")
        (folder / name).chmod(0o755)
    agent = on_hosts.command(1)[on_hosts.command(1).index("-launcher-exec") + 1]
    settings = [*SETTINGS, f"PATH={folder}:{os.environ['PATH']}", "HYDRA_LAUNCHER=ssh", f"HYDRA_LAUNCHER_EXEC={agent}"]
    places = ",".join(f"{host.name}:2" for host in on_hosts.hosts)

    def run(*words):
        return here.run(*on_hosts.hosts[0].within("env", *settings, BUILD / "bin/oshrun", "--hosts", places, "-n", 3,
                                                  *words[:-1], folder / "ends", words[-1]))
    return run


def test_the_timeout_of_oshrun(oshrun):
    result = oshrun("--timeout", 8, "wait")
    assert result.status == 124, result
    assert "oshrun: the job has not ended within 8 s (--timeout); ending it. Its PEs:" in result.err, result
    places = dict(re.findall(r"oshrun: (PE \d) \(pid \d+ on host [\w-]+\): (.*)", result.err))
    assert places.keys() == {"PE 0", "PE 1", "PE 2"} and places["PE 2"] == "running, not waiting in Heddle", result


def test_the_grace_of_oshrun(oshrun):
    """Which is said to be none where a PE fails."""
    result = oshrun("--timeout", 6, "--grace", 30, "save")
    assert result.status == 124 and "/mpiexec.hydra ends the PEs by SIGKILL when one of them fails" in result.err
    assert {f"PE {pe} has saved" for pe in range(3)} <= set(result.out.splitlines()), result

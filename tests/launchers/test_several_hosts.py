"""hydra on two hosts, which are namespaces of this machine: the PEs find their nodes, and the job ends as a whole."""

import subprocess

import namespace_hosts
import pytest
from conftest import LAUNCHERS, LIMIT_S, Result

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

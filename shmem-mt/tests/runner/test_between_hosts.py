"""Runs on hosts and by launch templates: what launchers are told, and what the folder says of it."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import make_point, read_results
from shmem_mt.targets import hosts
from shmem_mt.targets.libraries import Heddle

SUITE = pathlib.Path(__file__).resolve().parents[2]
SRUN = "-N{nodes} -n{pes} -c{threads} {program}"


@pytest.fixture
def imitation(tmp_path):
    """(oshcc, a launcher, the file with its calls) of an OpenSHMEM whose compiler makes empty programs, and whose
    launcher prints one point."""
    event = json.dumps({"event": "point", **make_point(benchmark="bandwidth", metric="bandwidth", unit="bytes/s")})
    done = json.dumps({"event": "done", "points": 1})
    calls = tmp_path / "calls"
    for name, text in (
        ("oshcc", 'while [ $# -gt 0 ]; do [ "$1" = -o ] && exec touch "$2"; shift; done'),
        ("launcher", f"echo \"$@\" >> {calls}\necho '{event}'\necho '{done}'"),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    return str(tmp_path / "oshcc"), str(tmp_path / "launcher"), calls


@pytest.fixture
def run(shmem_mt, imitation, tmp_path):
    """Calls `run` with a launch template's words: (exit status, its error output, the launcher's calls)."""

    def call(words, *more):
        oshcc, launcher, calls = imitation
        pair = ["--oshcc", oshcc, "--launch", f"{launcher} {words}", "--label", "A"]
        chosen = ["--only", "bandwidth", "--rounds", "1", "--out", tmp_path / "run"]
        status, _, stderr = shmem_mt("run", *pair, *chosen, *more)
        said = calls.read_text().splitlines() if calls.exists() else []
        return status, stderr, [line.split() for line in said if "--version" not in line]

    return call


def test_a_launcher_of_which_nothing_is_known(run, tmp_path):
    status, stderr, calls = run(SRUN, "--nodes", "2", "--pes", "2,4", "--threads", "1,2")
    assert status == 0, stderr
    assert {tuple(call[:3]) for call in calls} == {
        ("-N2", f"-n{pes}", f"-c{threads}") for pes in (2, 4) for threads in (1, 2)
    }
    assert all(call[3].endswith("build/A/bandwidth") and call[4] == "--ops" for call in calls)
    assert {r["params"]["fabric"] for r in read_results(tmp_path / "run")} == {"hosts"}
    said = json.loads((tmp_path / "run" / "machine.json").read_text())
    assert said["settings"]["fabrics"] == "hosts" and said["settings"]["hosts"] == "2 nodes"
    assert said["implementations"][0]["oshrun"].endswith(SRUN)


def test_hosts_of_an_allocation_are_used_by_themselves(run, tmp_path, monkeypatch):
    nodes = tmp_path / "nodes"
    nodes.write_text("n1\nn1\nn2\nn2\n")
    monkeypatch.setenv("PBS_NODEFILE", str(nodes))
    status, stderr, calls = run("{hosts} {pes} {program}", "--pes", "2,4,6", "--threads", "1")
    assert status == 0 and {call[0] for call in calls} == {"n1:1,n2:1", "n1:2,n2:2"}
    assert "fabric hosts skipped: for 6 PEs: its hosts have room for 4" in stderr
    assert {r["params"]["fabric"] for r in read_results(tmp_path / "run")} == {"hosts"}


def test_on_node_is_one_host_of_several(run, tmp_path):
    status, _, calls = run("{hosts} {pes} {program}", "--hosts", "a:4,b:4", "--fabric", "on-node", "--threads", "1")
    assert status == 0 and {call[0] for call in calls} == {"a:2"}
    assert {r["params"]["fabric"] for r in read_results(tmp_path / "run")} == {"on-node"}


@pytest.mark.parametrize("words,more", [(SRUN, []), ("{hosts} {pes} {program}", ["--nodes", "2"])])
def test_a_template_that_hosts_are_missing_for_ends_before_anything_is_done(run, tmp_path, words, more):
    status, stderr, calls = run(words, *more)
    assert status == 2 and " needs --" in stderr and stderr.count("\n") == 1
    assert not calls and not (tmp_path / "run").exists()


def test_hosts_for_launchers_that_cannot_be_told(shmem_mt, tmp_path):
    fake = ["--oshcc", "true", "--oshrun", "true", "--only", "bandwidth", "--out", tmp_path / "run"]
    status, _, stderr = shmem_mt("run", *fake, "--hosts", "a,b")
    assert status == 2 and "fabric hosts skipped: SHMEM-MT does not know how its launcher is told" in stderr
    status, _, stderr = shmem_mt("run", *fake, "--nodes", "2")
    assert status == 2 and "--nodes is for launchers of --launch alone" in stderr


@pytest.fixture
def two_kernels(tmp_path):
    """Two hosts made of namespaces that do not know that they are one machine."""
    if hosts.missing():
        pytest.skip(f"hosts need {hosts.missing()}")
    made = hosts.Hosts(tmp_path, 2)
    yield made
    made.close()


@pytest.mark.long
def test_heddle_between_two_hosts(implementation, wrappers, two_kernels, tmp_path):
    if not isinstance(implementation, Heddle):
        pytest.skip("this is not Heddle")
    pair = ["--oshcc", os.path.abspath(wrappers[0]), "--oshrun", wrappers[1], "--label", "A"]
    chosen = ["--only", "bandwidth", "--sizes", "64", "--threads", "1", "--rounds", "1", "--out", tmp_path / "run"]
    names = ",".join(f"{host.name}:2" for host in two_kernels.all)
    told = ["env", f"OMPI_MCA_plm_rsh_agent={two_kernels.agent}", f"PYTHONPATH={SUITE}", "HEDDLE_NET_TRANSPORTS=tcp"]
    suite = [*told, sys.executable, "-m", "shmem_mt", "run", *pair, *chosen, "--hosts", names]
    done = subprocess.run(two_kernels.all[0].within(*suite), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = read_results(tmp_path / "run")
    assert found and all(r["valid"] and r["params"]["fabric"] == "hosts" for r in found)

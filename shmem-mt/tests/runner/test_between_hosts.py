"""Runs on hosts and by launch templates: what launchers are told, and what the folder says of it."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import make_point, read_results
from shmem_mt.report import page, report
from shmem_mt.report.charts.model import Points
from shmem_mt.report.parts import Part
from shmem_mt.runner import records
from shmem_mt.runner.results import load_results
from shmem_mt.targets import hosts
from shmem_mt.targets.libraries import Heddle

SUITE = pathlib.Path(__file__).resolve().parents[2]
SRUN = "-N{nodes} -n{pes} -c{threads} {program}"


@pytest.fixture
def imitation(tmp_path):
    """(oshcc, a launcher, the file with its calls) of an OpenSHMEM whose compiler makes empty programs, and whose
    launcher prints one point. PEs are on hosts n1 and n2 by turns, which have kernels of their own."""
    point = make_point(benchmark="bandwidth", metric="bandwidth", unit="bytes/s", hosts=2, partner="far")
    event = json.dumps({"event": "point", **point})
    done = json.dumps({"event": "done", "points": 1})
    calls = tmp_path / "calls"
    facts = {"event": "host", "cpu": "X", "cores": 8, "memory_bytes": 2**34, "governor": ""}
    n1, n2 = (json.dumps({**facts, "name": f"n{n}", "boot": f"b{n}", "kernel": f"6.{n}"}) for n in (1, 2))
    pes = r"s/.*-n\([0-9]*\) .*/\1/p"
    gathers = (
        f"for i in $(seq $(echo \"$*\" | sed -n '{pes}')); do [ $((i % 2)) = 1 ] && echo '{n1}' || echo '{n2}'; done"
    )
    for name, text in (
        ("oshcc", 'while [ $# -gt 0 ]; do [ "$1" = -o ] && exec touch "$2"; shift; done'),
        (
            "launcher",
            f"case $* in */host_facts*) {gathers}; exit ;; esac\necho \"$@\" >> {calls}\necho '{event}'\necho '{done}'",
        ),
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
    status, stderr, calls = run("{hosts} -n{pes} {program}", "--pes", "2,4,6", "--threads", "1")
    assert status == 0 and {call[0] for call in calls} == {"n1:1,n2:1", "n1:2,n2:2"}
    assert "fabric hosts skipped: for 6 PEs: its hosts have room for 4" in stderr
    assert {r["params"]["fabric"] for r in read_results(tmp_path / "run")} == {"hosts"}


def test_on_node_is_one_host_of_several(run, tmp_path):
    status, _, calls = run("{hosts} -n{pes} {program}", "--hosts", "a:4,b:4", "--fabric", "on-node", "--threads", "1")
    assert status == 0 and {call[0] for call in calls} == {"a:2"}


def test_points_have_the_fabric_of_where_their_pes_were(run, imitation, tmp_path):
    """Whatever was asked for. The launcher takes no notice of the hosts: its PEs are on two, or on one."""
    more = ("{hosts} -n{pes} {program}", "--hosts", "a:4,b:4", "--threads", "1")
    _, stderr, _ = run(*more, "--fabric", "on-node")
    assert {r["params"]["fabric"] for r in read_results(tmp_path / "run")} == {"hosts"}
    what = "PEs were on 2 hosts, so its points are called hosts, though measured as on-node"
    assert f"shmem-mt: A: bandwidth, 2 PEs x 1 threads: {what}\n" in stderr
    launcher = pathlib.Path(imitation[1])
    launcher.write_text(launcher.read_text().replace(', "hosts": 2, "partner": "far"', ""))
    _, stderr, _ = run(*more, "--out", tmp_path / "one")
    assert {r["params"]["fabric"] for r in read_results(tmp_path / "one")} == {"on-node"}
    assert "PEs were on 1 host, so its points are called on-node, though measured as hosts" in stderr


def test_partners_are_told_to_programs_and_skipped_where_there_are_none(run, tmp_path):
    told = ("{hosts} -n{pes} {program}", "--hosts", "a:4,b:4", "--threads", "1", "--pes", "2,4")
    status, stderr, calls = run(*told, "--partners", "near,far")
    assert status == 0
    assert sorted((call[0], call[call.index("--partner") + 1]) for call in calls) == [
        ("a:1,b:1", "far"),
        ("a:2,b:2", "far"),
        ("a:2,b:2", "near"),
    ]
    assert "fabric hosts skipped: for 2 PEs: of hosts with 1, 1 not every PE has a partner near\n" in stderr
    status, stderr, _ = run(*told, "--partners", "near,next", "--out", tmp_path / "none")
    assert status == 2 and "--partners next: there are near, far" in stderr
    status, stderr, _ = run(*told, "--partners", "near", "--fabric", "on-node", "--out", tmp_path / "none")
    assert status == 2 and "--partners near: PEs are not on several hosts here" in stderr


def test_facts_of_hosts_are_gathered_compared_and_shown(run, tmp_path):
    status, stderr, _ = run(SRUN, "--nodes", "2", "--threads", "1")
    assert status == 0 and "shmem-mt: hosts differ: kernel 6.1 on n1; 6.2 on n2\n" in stderr
    said = json.loads((tmp_path / "run" / "machine.json").read_text())
    same = {"cpu": "X", "cores": 8, "memory_bytes": 2**34, "governor": None}
    assert said["hosts"] == [{"name": f"n{n}", **same, "kernel": f"6.{n}"} for n in (1, 2)]
    assert said["hosts_differ"] == ["kernel"]
    assert records.parse("machine.json", json.dumps(said)) == said
    folder = str(tmp_path / "run")
    points = Points(report._joined([(folder, load_results(folder), {})]))
    text = page.build([Part("", [(folder, said)], points, [], [])])
    for row in (
        ("Hosts", "2: n1, n2"),
        ("Hosts, kernel", "differ: 6.1 on n1; 6.2 on n2"),
        ("Hosts, memory", "16.0 GiB"),
    ):
        assert "<dt>{}</dt><dd>{}</dd>".format(*row) in text
    assert "hosts differ: kernel 6.1 on n1; 6.2 on n2" in text and "Driver&#39;s host, kernel" in text


def test_where_a_template_puts_pes_chooses_the_fabric(run, tmp_path):
    """With its profile: longer samples."""
    status, stderr, calls = run("-n{pes} {program}", "--threads", "1")
    assert status == 0, stderr
    assert {r["params"]["fabric"] for r in read_results(tmp_path / "run")} == {"hosts"}
    assert {call[call.index("--sample-ms") + 1] for call in calls} == {"10"}


def test_hosts_that_cannot_be_asked_are_no_end(run, imitation, tmp_path):
    launcher = pathlib.Path(imitation[1])
    broken = "#!/bin/sh\ncase $* in */host_facts*) echo broken >&2; exit 3 ;; esac\n"
    launcher.write_text(launcher.read_text().replace("#!/bin/sh\n", broken))
    status, stderr, _ = run(SRUN, "--nodes", "2", "--threads", "1")
    assert status == 0 and "A: facts of hosts skipped: 0 of 2 processes answered (broken)" in stderr
    assert "hosts" not in json.loads((tmp_path / "run" / "machine.json").read_text())


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
    chosen += ["--pes", "4", "--partners", "near,far"]
    told = ["env", f"OMPI_MCA_plm_rsh_agent={two_kernels.agent}", f"PYTHONPATH={SUITE}", "HEDDLE_NET_TRANSPORTS=tcp"]
    suite = [*told, sys.executable, "-m", "shmem_mt", "run", *pair, *chosen, "--hosts", names]
    done = subprocess.run(two_kernels.all[0].within(*suite), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = read_results(tmp_path / "run")
    assert all(r["valid"] and r["params"]["fabric"] == "hosts" and r["params"]["hosts"] == 2 for r in found)
    assert {r["params"]["partner"] for r in found} == {"near", "far"}
    seen = json.loads((tmp_path / "run" / "machine.json").read_text())["hosts"]
    assert [host["name"] for host in seen] == sorted(host.name for host in two_kernels.all)
    assert all(host["kernel"] == os.uname().release and host["cores"] == os.cpu_count() for host in seen)

"""Fabrics: their names, what is planned for each, what libraries are told, and the labels in results and pages."""

import json
import os
import re
import subprocess
import sys

import pytest
from conftest import make_point, read_results
from shmem_mt.catalogue import catalogue, plan
from shmem_mt.errors import UserError
from shmem_mt.report import page, report
from shmem_mt.runner.points import describe
from shmem_mt.runner.results import RunFolder, load_results
from shmem_mt.targets import fabrics, hosts
from shmem_mt.targets.libraries import class_of

SYSV = fabrics.named("ucx:sysv,cma")
IMPAIRED = ["", "TCP", "ucx", "ucx:", "ucx:,", "ucx:a b", "ucx:tcp;x", "ucx:UP", "tcp\n"]


class Place:
    """A host as far as commands go."""

    def __init__(self, name):
        self.name = name

    def within(self, *command, folder):
        return ["within", self.name, folder, *command]


class TwoHosts:
    agent = "AGENT"
    all = (Place("a"), Place("b"))


def library(kind):
    made = class_of(kind)(kind, "oshcc", ["oshrun"], "1", "cc")
    made.binaries["latency"] = "latency"
    return made


def words(kind, fabric, coalescing="", hosts=None, pes=2):
    return library(kind).launch_command("latency", pes, 1, ["--ops", "g"], fabric, coalescing, hosts)


def pairs(command, option):
    """The words behind each `option`; of --mca the two behind it."""
    count = 2 if option == "--mca" else 1
    return [" ".join(command[i + 1 : i + 1 + count]) for i, word in enumerate(command) if word == option]


def planned(fabric, *names):
    chosen = catalogue.select(list(names) or None)
    return plan.starts_over(fabric, "quick", chosen, plan.Choices(), cores=2)


def test_names():
    assert fabrics.parse(None) == [fabrics.ON_NODE]
    found = fabrics.parse(["tcp", "ucx:sysv,cma", "tcp", "namespaces", "on-node"])
    assert [f.name for f in found] == ["tcp", "ucx:sysv,cma", "namespaces", "on-node"]
    assert [f.transports for f in found] == ["tcp", "sysv,cma", "tcp", ""]
    assert [f.is_network for f in found] == [True, True, True, False]


@pytest.mark.parametrize("text", IMPAIRED)
def test_names_that_are_none(text):
    with pytest.raises(UserError, match="no fabric is called"):
        fabrics.parse(["tcp", text])


@pytest.mark.parametrize("fabric", [fabrics.TCP, fabrics.NAMESPACES, SYSV])
def test_over_a_network_all_benchmarks_run_and_two_with_coalescing_on_and_off(fabric):
    starts = planned(fabric)
    assert {s.program for s in starts} == {b.program for b in catalogue.select(None)}
    assert {s.fabric for s in starts} == {fabric}
    ops = {op for s in starts for op in s.arguments[s.arguments.index("--ops") + 1].split(",")}
    assert {*catalogue.NETWORK_OPS, "get_nbi", "put", "alltoall", "exchange"} <= ops
    variants = {}
    for start in starts:
        same = (start.program, start.pes, start.threads, start.arguments, start.setting)
        variants.setdefault(same, []).append(start.coalescing)
    for (program, *_), found in variants.items():
        assert found == (["on", "off"] if program == "message_rate" else [""])
    requests = planned(fabric, "requests")
    assert [s.coalescing for s in requests] == ["on", "off"] * 2
    assert len({s.key("A", 0) for s in starts + planned(fabrics.ON_NODE)}) == len(starts + planned(fabrics.ON_NODE))


def test_a_link_rate_is_for_hosts_and_told_in_results():
    slow, tcp = fabrics.parse(["namespaces", "tcp"], "100mbit")
    assert (slow.name, slow.link_rate, tcp) == ("namespaces", "100mbit", fabrics.TCP)
    (start, *_), (fast, *_) = planned(slow, "requests"), planned(fabrics.NAMESPACES, "requests")
    assert start.params(library("Heddle")) == {**fast.params(library("Heddle")), "link_rate": "100mbit"}
    assert "link_rate" not in fast.params(library("Heddle"))
    assert start.key("A", 0) != fast.key("A", 0)
    assert start.title(library("Heddle")).endswith("coalescing on, link rate 100mbit")
    params = {**make_point()["params"], **start.params(library("Heddle"))}
    assert ", namespaces, coalescing on, links of 100mbit, " in describe("requests", params)


@pytest.mark.parametrize("rate,names", [("100mbit", ["tcp"]), ("1gbit", None)])
def test_a_link_rate_without_links_is_refused(rate, names):
    with pytest.raises(UserError, match="no fabric here has links"):
        fabrics.parse(names, rate)


@pytest.mark.parametrize("text", ["100", "mbit", "0mbit", "100Mbit", "1.5gbit", "100mbit; ls", "-1mbit", ""])
def test_link_rates_that_are_none(shmem_mt, text):
    status, _, stderr = shmem_mt("run", "--fabric", "namespaces", "--link-rate=" + text)
    assert status == 2 and "is not a rate such as 100mbit" in stderr


def test_links_of_hosts_are_as_slow_as_asked():
    """4 MB at 100 Mbit/s are 0.32 s; unshaped they take a hundredth of that."""
    if hosts.missing():
        pytest.skip(f"hosts need {hosts.missing()}")
    with hosts.made(2, "100mbit") as made:
        listen = "import socket as s; l = s.create_server(('', 5000)); print('up', flush=True); c, _ = l.accept()\n"
        listen += "n = 0\nwhile n < 4000000: n += len(c.recv(1 << 20))\nc.send(b'.')"
        send = "import socket as s, time; c = s.create_connection(('10.77.0.1', 5000)); t = time.monotonic()\n"
        send += "c.sendall(bytes(4000000)); c.recv(1); print(time.monotonic() - t)"
        server = subprocess.Popen(made.all[0].within(sys.executable, "-c", listen), stdout=subprocess.PIPE, text=True)
        with server:
            assert server.stdout.readline() == "up\n"
            seconds = float(made.all[1].do(sys.executable, "-c", send))
        assert 0.3 < seconds < 10
        assert not made.all[1].dropped()


def test_nothing_changes_on_node():
    """Not even the key of a start, so a run from before fabrics is continued."""
    starts = planned(fabrics.ON_NODE, "bandwidth")
    assert starts == plan.starts(plan.PROFILES["quick"], catalogue.select(["bandwidth"]), plan.Choices(), cores=2)
    assert json.loads(starts[0].key("A", 3)) == ["A", "bandwidth", 2, 1, list(starts[0].arguments), 3]
    assert words("Other", fabrics.ON_NODE) == ["oshrun", "-n", "2", "latency", "--ops", "g"]
    assert not {"--env", "-x", "--mca"} & {*words("Heddle", fabrics.ON_NODE), *words("Open MPI", fabrics.ON_NODE)}


@pytest.mark.parametrize("name", plan.NETWORK_PROFILES)
def test_counts_suit_a_network(name):
    """No start is expected to come near its time limit; a round of the quick profile takes two minutes, and the one
    with the mini-apps and the patterns three quarters of a minute more."""
    chosen = (catalogue.BENCHMARKS, catalogue.select(None))
    every, starts = (plan.starts_over(fabrics.TCP, name, some, plan.Choices(), cores=2) for some in chosen)
    assert all(4 * s.estimate_s < plan.NETWORK_PROFILES[name].timeout_s for s in every)
    if name == "quick":
        assert sum(s.estimate_s for s in starts if s.rounds > 1) < 140
        assert sum(s.estimate_s for s in starts if s.rounds == 1) < 45


def test_what_heddle_is_told():
    assert pairs(words("Heddle", fabrics.TCP), "--env") == ["HEDDLE_NET_TRANSPORTS=tcp", "HEDDLE_TEST_PES_PER_NODE=1"]
    assert pairs(words("Heddle", SYSV), "--env")[0] == "HEDDLE_NET_TRANSPORTS=sysv,cma"
    for coalescing, value in (("on", "1"), ("off", "0")):
        assert f"HEDDLE_NET_COALESCE={value}" in pairs(words("Heddle", fabrics.TCP, coalescing), "--env")


def test_what_open_mpi_is_told():
    command = words("Open MPI", SYSV)
    assert pairs(command, "-x") == ["UCX_TLS=sysv,cma,self"]
    assert {"spml ucx", "atomic ucx", "pml ucx"} <= set(pairs(command, "--mca"))


@pytest.mark.parametrize("kind,option", [("Heddle", "--hosts"), ("Open MPI", "--host")])
def test_between_namespaces(kind, option):
    command = words(kind, fabrics.NAMESPACES, hosts=TwoHosts, pes=3)
    assert command[:5] == ["within", "a", os.getcwd(), "env", "OMPI_MCA_plm_rsh_agent=AGENT"]
    assert command[5] == "oshrun" and pairs(command, option) == ["a:2,b:1"] and pairs(command, "-n") == ["3"]
    assert not any("HEDDLE_TEST_PES_PER_NODE" in word for word in command)  # the hosts are real ones
    alone = words(kind, fabrics.NAMESPACES, hosts=TwoHosts, pes=1)
    assert pairs(alone, option) == ["a:1"]
    assert "core" not in alone and pairs(alone, "--bind-to") == ["none"] * (kind == "Open MPI")  # hosts share cores
    assert "mpi_yield_when_idle 1" not in pairs(alone, "--mca")  # there is a core for the only thread


def test_who_is_measured():
    on, off = planned(fabrics.TCP, "requests")[:2]
    (here, *_) = planned(fabrics.ON_NODE, "requests")
    assert [library("Heddle").measures(start) for start in (here, on, off)] == [True, True, True]
    assert [library("Open MPI").measures(start) for start in (here, on, off)] == [True, True, False]
    assert [library("Other").measures(start) for start in (here, on, off)] == [True, False, False]
    assert off.title(library("Heddle")) == "message_rate over tcp, 2 PEs x 1 threads, coalescing off"
    assert on.title(library("Open MPI")) == "message_rate over tcp, 2 PEs x 1 threads"


def test_namespaces_that_cannot_be_are_skipped_in_words(shmem_mt, tmp_path, monkeypatch):
    monkeypatch.setattr(hosts, "missing", lambda: "root")
    fake = ["--oshcc", "true", "--oshrun", "true", "--only", "bandwidth", "--rounds", "1", "--threads", "1"]
    status, _, stderr = shmem_mt("run", *fake, "--fabric", "namespaces", "--out", tmp_path / "none")
    assert (status, stderr) == (2, "shmem-mt: fabric namespaces skipped: it needs root\n")
    assert not (tmp_path / "none").exists()
    _, _, stderr = shmem_mt("run", *fake, "--fabric", "namespaces", "--fabric", "on-node", "--out", tmp_path / "run")
    assert "shmem-mt: fabric namespaces skipped: it needs root\n" in stderr
    assert "true: bandwidth does not compile" in stderr  # the other fabric had its turn


def test_describe_names_fabric_and_coalescing():
    def text(**params):
        return describe("requests", make_point(**params)["params"])

    assert ", on-node, " in text(fabric="on-node")
    assert ", tcp, coalescing off, " in text(fabric="tcp", coalescing="off")


def test_results_without_a_fabric_are_on_node(shmem_mt, run_folder, tmp_path):
    old = run_folder("old", {"A": 1.0})
    path = os.path.join(old, "results.jsonl")
    with open(path, encoding="utf-8") as file:
        text = file.read().replace(', "fabric": "on-node"', "")
    assert "fabric" not in text
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    assert {p["params"]["fabric"] for p in load_results(old)} == {"on-node"}
    assert shmem_mt("compare", old, run_folder("new", {"A": 1.0}))[0] == 0


def test_points_of_different_fabrics_are_different_points(tmp_path):
    folder = RunFolder.open(str(tmp_path))
    for params in ({}, {"fabric": "on-node"}, {"fabric": "tcp"}, {"fabric": "tcp", "coalescing": "off"}):
        folder.add_point({**make_point(**params), "round": 0})
    assert len(folder.results()) == 3  # none and on-node are the same


def page_of(tmp_path, *params):
    """(the text of a page, its charts) of a point of message-rate for each."""
    folder = RunFolder.open(str(tmp_path / "run"))
    for number, one in enumerate(params):
        for point in (make_point("A", op="put_nbi", scale=2.0**number, **one), make_point("A", **one)):
            folder.add_point({**point, "round": 0})
    folder.write_results()
    part = report._part(1, [(folder.directory, load_results(folder.directory), {})])
    return page.build([part]), part.charts


def test_a_report_keeps_fabrics_apart(tmp_path):
    network = dict(fabric="ucx:sysv,cma")
    text, charts = page_of(
        tmp_path, {}, {"fabric": "tcp", "coalescing": "on"}, {"fabric": "tcp", "coalescing": "off"}, network
    )
    sections = dict(re.findall(r'<section id="(summary[^"]*)">(.*?)</section>', text, re.DOTALL))
    assert list(sections) == ["summary", "summary-tcp", "summary-ucx-sysv-cma"]
    for name, section in zip(("on-node", "tcp", "ucx:sysv,cma"), sections.values()):
        assert f"<h2>Summary, {name}</h2>" in section and f"Fabric: <b>{name}</b>" in section
    assert "A, coalescing off" in sections["summary-tcp"] and text.count("A, coalescing off") > 2
    assert not any("coalescing off" in sections[name] for name in ("summary", "summary-ucx-sysv-cma"))
    rows = re.findall(r'<th scope="row">8-byte put_nbi</th>(.*?)</tr>', sections["summary-tcp"])
    on, off = map(float, re.findall(r"<b>([\d.]+)", rows[0])[:2])
    assert (on, off) == pytest.approx((2, 4), rel=0.01)
    assert len({c.slug for c in charts}) == len(charts)
    for name in ("on-node", "tcp", "ucx:sysv,cma"):
        (chart,) = [c for c in charts if c.title == f"Message rate by size, {name}"]
        assert {x for panel in chart.panels for s in panel.series for x in s.x} == {8}


def test_partners_on_one_host_of_several_stand_apart(tmp_path):
    between = dict(fabric="hosts", hosts=2)
    text, _ = page_of(tmp_path, {**between, "partner": "far"}, {**between, "partner": "near"})
    assert "<h2>Summary, hosts</h2>" in text and "A, partner near" in text and "partner far" not in text
    params = make_point(**between, partner="near")["params"]
    assert ", hosts, partner near, 2 PEs on 2 hosts" in describe("requests", params)


def test_a_report_of_on_node_alone_has_the_places_it_had(tmp_path):
    text, charts = page_of(tmp_path, {})
    assert {"rate-by-operation", "rate-by-size"} <= {c.slug for c in charts}
    assert not any("on-node" in c.title for c in charts)
    assert "<h2>Summary, on-node</h2>" in text


@pytest.mark.long
def test_a_short_run_over_tcp(heddle, shmem_mt, tmp_path):
    (tmp_path / "run" / "build").mkdir(parents=True)
    (tmp_path / "run" / "lock").touch()
    (tmp_path / "run" / "build" / "Heddle").symlink_to(os.path.dirname(heddle.binaries["message_rate"]))
    arguments = ["--only", "requests", "--sync", "quiet", "--sizes", "8", "--threads", "1", "--rounds", "1"]
    arguments += ["--oshcc", heddle.oshcc, "--oshrun", heddle.oshrun[0], "--fabric", "tcp", "--out", tmp_path / "run"]
    status, _, stderr = shmem_mt("run", *arguments)
    assert status == 0, stderr
    found = [(r["params"]["op"], r["params"]["coalescing"]) for r in read_results(tmp_path / "run")]
    assert sorted(found) == [(op, coalescing) for op in ("fetch_add", "get", "put") for coalescing in ("off", "on")]
    assert all(r["valid"] and r["params"]["fabric"] == "tcp" for r in read_results(tmp_path / "run"))
    assert "Heddle, message_rate over tcp, 2 PEs x 1 threads, coalescing off" in stderr


def test_over_tcp_peers_are_not_in_reach_of_stores(heddle):
    program = ["--ops", "p", "--contexts", "default", "--placements", "heap", "--samples", "1", "--sample-ms", "0.1"]
    targets = []
    for fabric in (fabrics.ON_NODE, fabrics.TCP):
        command = heddle.launch_command("message_rate", 2, 1, program, fabric)
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        targets += re.findall(r'"target":"([a-z ]+)"', done.stdout)
    assert targets == ["peer mapping", "private memory"]

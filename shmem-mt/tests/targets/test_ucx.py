"""What MPI and bare UCX are asked to measure, and how bare UCX is started; without starting anything."""

import pytest
from shmem_mt.catalogue import catalogue, plan
from shmem_mt.runner import beside_libraries
from shmem_mt.targets import fabrics, mpi, ucx
from shmem_mt.targets.launch_template import LaunchTemplate
from shmem_mt.targets.libraries import class_of

SYSV = fabrics.named("ucx:sysv")


def library(kind):
    made = class_of(kind)(kind, "oshcc", ["oshrun"], "1", "cc")
    made.binaries |= dict.fromkeys(ucx.SOURCES, "program")
    return made


@pytest.fixture
def bare(monkeypatch):
    """Makes bare UCX of a library, without a compiler."""
    monkeypatch.setattr(ucx.build, "said_by_probe", lambda _: ("1.13.1\n", None))

    def make(kind):
        made, missing = ucx.find(library(kind))
        assert missing is None
        made.binaries |= dict.fromkeys(ucx.SOURCES, "bare_ucx")
        return made

    return make


def planned(fabric, profile, *names):
    return plan.starts_over(fabric, profile, catalogue.select(list(names) or None), plan.Choices(), cores=2)


def test_it_is_called_by_its_version_and_described_as_ucx(bare):
    made = bare("Heddle")
    assert made.label == "bare UCX 1.13.1" and made.describe()["standard"] == "UCX"
    assert library("Heddle").describe()["standard"] == "OpenSHMEM"


@pytest.mark.parametrize("kind,option", [("Heddle", "--env"), ("Open MPI", "-x")])
def test_the_library_starts_it_over_the_transports_of_the_fabric(bare, kind, option):
    command = bare(kind).launch_command("latency", 2, 1, ("--ops", "p_quiet,g,get"), SYSV)
    program = command.index("bare_ucx")
    told = ["--ops", "p_quiet,get", "--benchmark", "latency", "--transports", "sysv,self"]
    assert sorted(command[program + 1 :]) == sorted(told)
    assert option in command[:program]  # the library itself is told of the fabric, as ever
    given = bare(kind).launch_command("latency", 2, 1, (), fabrics.HOSTS)
    assert "--transports" not in given  # between hosts that are there it uses what it finds


def test_who_stands_beside_which_starts(bare):
    made, reference = bare("Heddle"), library("Open MPI")
    reference.reference = mpi.REFERENCE
    starts = planned(fabrics.TCP, "quick", "message-rate", "latency", "bandwidth", "requests")
    for one in (made, reference):
        told = {(s.program, s.threads, s.coalescing) for s in starts if one.measures(s)}
        assert told == {
            ("message_rate", 1, "on"),
            ("message_rate", 2, "on"),
            ("latency", 1, ""),
            ("bandwidth", 1, ""),
        }
        assert all("requests" not in s.arguments[1] for s in starts if one.measures(s))
    full = planned(fabrics.ON_NODE, "full")
    assert not any(made.measures(start) for start in full)
    assert {s.program for s in full if reference.measures(s)} == {"collectives", *mpi.OPS}
    assert {s.threads for s in full if reference.measures(s) and s.program == "latency"} == {1, 2, 4}


def test_a_quick_run_on_the_node_has_no_more_starts_than_before():
    starts = planned(fabrics.ON_NODE, "quick")
    assert {s.program for s in starts if s.has_references} & set(mpi.SOURCES) == {"collectives"}


def test_they_have_points_of_their_own_name(bare):
    on = next(start for start in planned(fabrics.TCP, "quick", "message-rate") if start.coalescing == "on")
    assert on.params(library("Heddle")) == {"fabric": "tcp", "coalescing": "on"}
    assert on.params(bare("Heddle")) == {"fabric": "tcp"}


def test_rails_are_more_than_it_knows(bare):
    two = fabrics.parse(["namespaces"], None, [2])[0]
    assert "knows one rail" in bare("Heddle").unable(two) and bare("Heddle").unable(fabrics.ON_NODE) == ""


def test_what_is_missing_is_told(monkeypatch):
    monkeypatch.setattr(ucx.build, "said_by_probe", lambda _: (None, "no such file"))
    monkeypatch.setattr(beside_libraries.mpi, "find", lambda *_: (None, "no mpicc"))
    options = type("Options", (), {"mpicc": None, "mpirun": None})
    found, missing = beside_libraries.find([library("Heddle")], planned(fabrics.TCP, "quick", "latency"), options)
    assert found == [] and missing == [
        "the MPI reference skipped: no mpicc",
        "bare UCX skipped: no headers and library of UCX (ucp/api/ucp.h, -lucp) with oshcc",
    ]
    assert beside_libraries.find([library("Heddle")], planned(fabrics.ON_NODE, "quick", "latency"), options) == ([], [])
    # A library that cannot be told of the fabric does not start it.
    assert beside_libraries.find([library("Other")], planned(SYSV, "quick", "latency"), options)[1] == missing[:1]


def test_an_mpi_that_must_be_named_between_hosts_is_told(monkeypatch):
    monkeypatch.setattr(beside_libraries.mpi, "find", lambda *_: (None, "asked for"))
    monkeypatch.setattr(beside_libraries.ucx, "find", lambda *_: (None, "not there"))
    by_template = library("Heddle")
    by_template.template = LaunchTemplate("l {pes} {program}")

    def told(mpicc):
        options = type("Options", (), {"mpicc": mpicc, "mpirun": None})
        return beside_libraries.find([by_template], planned(fabrics.HOSTS, "quick", "latency"), options)[1][0]

    assert "give --mpicc and --mpirun" in told(None) and told("mpicc") == "the MPI reference skipped: asked for"

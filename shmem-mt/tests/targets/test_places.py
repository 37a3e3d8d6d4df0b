"""Where PEs are put: lists of hosts, files, allocations, and how PEs are spread."""

import os
import random
import socket

import pytest
from shmem_mt.errors import UserError
from shmem_mt.targets import fabrics, libraries, places


def test_names_and_files(tmp_path):
    found = places.named("--hosts", ["a:4", "b", "a:2"])
    assert str(found) == "a:6,b:1" and found.slots == 7 and str(found.first()) == "a:6"
    hostfile = tmp_path / "hosts"
    hostfile.write_text("# all\na slots=4\n\nb:2  # fast\nc\n")
    assert str(places.read_hostfile(str(hostfile))) == "a:4,b:2,c:1"
    assert str(places.unnamed(2)) == "2 nodes" and not places.unnamed(2).are_named


@pytest.mark.parametrize("text", ["a:", "a:0", ":4", "a:x", "-a:2", "a b", "", "a,,b", "a:2000000", "a:-1", "a\n"])
def test_what_is_no_list_of_hosts_is_said(shmem_mt, text):
    status, _, stderr = shmem_mt("run", "--hosts=" + text)
    assert status == 2 and stderr.startswith("shmem-mt: --hosts") and "is no host; right would be" in stderr


def test_files_that_are_none_are_said(shmem_mt, tmp_path):
    assert "No such file" in shmem_mt("run", "--hostfile", tmp_path / "none")[2]
    (tmp_path / "empty").write_text("# nobody\n")
    assert "names 0 hosts" in shmem_mt("run", "--hostfile", tmp_path / "empty")[2]
    (tmp_path / "wrong").write_text("a 4\n")
    assert "'a 4' is no host" in shmem_mt("run", "--hostfile", tmp_path / "wrong")[2]
    assert "--hosts and --nodes both say" in shmem_mt("run", "--hosts", "a", "--nodes", "2")[2]
    assert "--fabric hosts: no hosts are known" in shmem_mt("run", "--fabric", "hosts")[2]


@pytest.mark.parametrize("seed", range(20))
def test_pes_are_spread_evenly_as_far_as_slots_go(seed):
    draw = random.Random(seed)
    slots = [draw.randint(1, 9) for _ in range(draw.randint(1, 12))]
    there = places.Places(tuple(places.Host(f"n{place}", slot) for place, slot in enumerate(slots)))
    for pes in range(1, there.slots + 1):
        counts = there.counts(pes)
        assert sum(counts) == pes and all(count <= slot for count, slot in zip(counts, slots)), seed
        free = [count for count, slot in zip(counts, slots) if count < slot]
        assert not free or max(counts) - min(free) <= 1, seed  # nobody has more while another has room for it
        assert there.used(pes) == [(host, count) for host, count in zip(there.all, counts) if count]


@pytest.mark.parametrize(
    "text,names",
    [
        ("a", ["a"]),
        ("n[01-03,7],login", ["n01", "n02", "n03", "n7", "login"]),
        ("r[1-2]n[8-9]", ["r1n8", "r1n9", "r2n8", "r2n9"]),
        ("n[099-101].x", ["n099.x", "n100.x", "n101.x"]),
    ],
)
def test_lists_of_resource_managers(text, names):
    assert places.expand("S", text) == names


@pytest.mark.parametrize(
    "text", ["", "n[1", "n]1", "n[2-1]", "n[a]", "n[],b", "n[1-99999999]", "n[1-400]m[1-400]", "a b", "-x"]
)
def test_what_is_no_list_of_a_resource_manager_is_said(text):
    with pytest.raises(UserError, match="S="):
        places.expand("S", text)


def test_slurm():
    given = {"SLURM_JOB_NODELIST": "n[1-3]", "SLURM_JOB_CPUS_PER_NODE": "8(x2),4"}
    assert str(places.of_allocation(given)) == "n1:8,n2:8,n3:4"
    assert str(places.of_allocation({**given, "SLURM_TASKS_PER_NODE": "2(x3)"})) == "n1:2,n2:2,n3:2"
    assert str(places.of_allocation({"SLURM_JOB_NODELIST": "n1"})) == "n1:1"
    with pytest.raises(UserError, match=r"counts for 2 hosts, but SLURM_JOB_NODELIST=n\[1-3\] names 3"):
        places.of_allocation({**given, "SLURM_TASKS_PER_NODE": "2(x2)"})
    for wrong in ("2x3", "0", "2(x0)", ""):
        with pytest.raises(UserError, match="no list of counts"):
            places.of_allocation({**given, "SLURM_TASKS_PER_NODE": wrong or ","})


def test_flux(tmp_path, monkeypatch):
    flux = tmp_path / "flux"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    for text, said in (("8 n[1-2]\\n3 big\\n", "n1:4,n2:4,big:3"), ("", None), ("x n1\\n", None)):
        flux.write_text(f"#!/bin/sh\nprintf '{text}'\n")
        flux.chmod(0o755)
        if said:
            assert str(places.of_allocation({"FLUX_URI": "local:///x"})) == said
        else:
            with pytest.raises(UserError, match="flux resource list does not tell"):
                places.of_allocation({"FLUX_URI": "local:///x"})
    assert places.of_allocation({}) is None


def test_pbs(tmp_path):
    nodes = tmp_path / "nodes"
    nodes.write_text("n1\nn1\nn2\nn2\n")
    assert str(places.of_allocation({"PBS_NODEFILE": str(nodes)})) == "n1:2,n2:2"
    with pytest.raises(UserError, match="PBS_NODEFILE=/none: No such file"):
        places.of_allocation({"PBS_NODEFILE": "/none"})


def test_an_allocation_of_this_host_alone_changes_nothing(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_NODELIST", socket.gethostname().partition(".")[0])
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", "8")
    here = places.chosen(None, None, None)
    assert [host.slots for host in here.all] == [8] and not here.are_named
    assert fabrics.parse(None, places=here) == [fabrics.ON_NODE]
    made = libraries.Heddle("A", "oshcc", ["oshrun"], "1", "cc")
    made.binaries["p"] = "p"
    assert "--hosts" not in made.launch_command("p", 2, 1, [], hosts=here)


def test_several_hosts_are_measured_between_unless_a_fabric_is_named():
    two = places.named("--hosts", ["a:4", "b:4"])
    assert fabrics.parse(None, places=two) == [fabrics.HOSTS] and fabrics.HOSTS.is_network
    assert fabrics.parse(["on-node"], places=two) == [fabrics.ON_NODE]
    assert fabrics.parse(None, places=two.first()) == [fabrics.ON_NODE]


@pytest.mark.parametrize(
    "library,told", [(libraries.Heddle, "--hosts"), (libraries.OpenMpi, "--host"), (libraries.Hydra, "-hosts")]
)
def test_launchers_are_told_of_hosts(library, told):
    made = library("A", "oshcc", ["oshrun"], "1", "cc")
    made.binaries["p"] = "p"
    two = places.named("--hosts", ["a:4", "b:4"])
    command = made.launch_command("p", 3, 2, ["-x"], fabrics.HOSTS, hosts=two)
    assert command[command.index(told) + 1] == "a:2,b:1" and command[-4:] == ["-n", "3", "p", "-x"]
    assert not any("HEDDLE_TEST" in word or "TRANSPORTS" in word or "UCX_TLS" in word for word in command)
    bound = {"-c", "slot:PE=2", "core:2"}
    assert bound & set(command)  # two PEs of two threads have four cores
    assert not {"--oversubscribe", "mpi_yield_when_idle"} & set(command)  # however many cores this machine has
    assert not bound & set(made.launch_command("p", 6, 2, [], fabrics.HOSTS, hosts=two))

"""Libraries: which class a launcher's version names, what it is told, and what others are called."""

import os

import pytest
from shmem_mt.targets import libraries, machine, openshmem
from shmem_mt.targets.libraries import Heddle, Hydra, Implementation, OpenMpi

VERSIONS = {
    "oshrun (Heddle 0.1.0)": Heddle,
    "mpirun (Open MPI) 4.1.4": OpenMpi,
    "oshrun (OpenRTE) 4.1.4": OpenMpi,
    "HYDRA build details:": Hydra,
    "unknown": Implementation,
}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_launcher_names_its_library(version):
    assert libraries.class_of(version) is VERSIONS[version]


@pytest.mark.parametrize("version,label", [("Heddle 1", "Heddle"), ("OpenRTE 4", "Open MPI"), ("HYDRA", "oshcc-x")])
def test_without_a_label_a_library_has_its_own_name_or_its_wrappers(tmp_path, version, label):
    for name in ("oshcc-x", "oshrun-x"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{version}'\n")
        (tmp_path / name).chmod(0o755)
    (found,) = openshmem.resolve([str(tmp_path / "oshcc-x")], [str(tmp_path / "oshrun-x")], [])
    assert (found.label, found.version) == (label, version) and isinstance(found, libraries.class_of(version))
    (named,) = openshmem.resolve([str(tmp_path / "oshcc-x")], [str(tmp_path / "oshrun-x")], ["mine"])
    assert named.label == "mine" and type(named) is type(found)


def placement(library, pes, threads, hosts=None, oshrun=("oshrun",)):
    return library("A", "oshcc", list(oshrun), "1", "cc").placement_flags(pes, threads, hosts)


ROOT = ["--allow-run-as-root"] * (os.geteuid() == 0)
BOUND = {  # by library: PEs of one thread, and of two
    Heddle: (["--bind", "core"], ["-c", "2"]),
    Hydra: (["-bind-to", "core"], ["-bind-to", "core:2"]),
    OpenMpi: tuple([*ROOT, "--map-by", f"slot:PE={threads}", "--bind-to", "core"] for threads in (1, 2)),
}
UNBOUND = {Heddle: [], Hydra: [], OpenMpi: [*ROOT, "--bind-to", "none"]}
YIELDS = ["--mca", "mpi_yield_when_idle", "1"]


@pytest.mark.parametrize("library", BOUND)
def test_all_libraries_bind_where_each_thread_has_a_core(library, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(os, "cpu_count", lambda: 64)  # of the host, in a container of 8
    monkeypatch.setattr(machine, "threads_per_core", lambda: 1)
    for pes, threads in ((1, 1), (4, 1), (8, 1), (2, 2), (4, 2)):
        assert placement(library, pes, threads) == BOUND[library][threads - 1]
    assert placement(library, 2, 1, hosts=["a", "b"]) == UNBOUND[library]  # which share the cores
    yields = YIELDS * (library is OpenMpi)
    assert placement(library, 5, 2) == [*UNBOUND[library], *yields]
    more = placement(library, 9, 1)
    assert more == ([*ROOT, "--oversubscribe", "--bind-to", "none", *yields] if library is OpenMpi else [])


@pytest.mark.parametrize("library", BOUND)
def test_binding_counts_cores_and_not_hardware_threads(library, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(machine, "threads_per_core", lambda: 2)
    assert placement(library, 4, 1) == BOUND[library][0]
    more = [*ROOT, "--oversubscribe", "--bind-to", "none"] if library is OpenMpi else []
    assert placement(library, 5, 1) == more  # and the launcher's slots are cores


@pytest.mark.parametrize(
    "library,option", [(Heddle, "--bind"), (Heddle, "-c"), (Hydra, "-bind-to"), (OpenMpi, "--map-by")]
)
def test_what_the_user_says_of_binding_holds(library, option):
    assert placement(library, 1, 1, oshrun=("oshrun", option, "x")) == ROOT * (library is OpenMpi)


def test_of_other_libraries_nothing_is_known():
    assert placement(Implementation, 1, 1) == [] and Implementation.exit_status_counts
    assert not (Implementation.coalesces or Implementation.has_settings)

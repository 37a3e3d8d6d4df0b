"""Libraries: which class a launcher's version names, what it is told, and what others are called."""

import os

import pytest
from shmem_mt.targets import libraries, openshmem
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


@pytest.mark.parametrize("library,option", [(Heddle, "--bind"), (Hydra, "-bind-to")])
def test_a_pe_of_one_thread_is_bound_where_each_has_a_core(library, option):
    assert placement(library, 1, 1) == [option, "core"]
    assert placement(library, 1, 2) == placement(library, 1 + (os.cpu_count() or 1), 1) == []
    assert placement(library, 1, 1, oshrun=("oshrun", option, "none")) == []  # the user has said so


def test_open_mpi_binds_by_itself_and_yields_shared_cores():
    root = ["--allow-run-as-root"] * (os.geteuid() == 0)
    assert placement(OpenMpi, 1, 1) == root
    assert placement(OpenMpi, 1, 2) == [*root, "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    assert "--oversubscribe" in placement(OpenMpi, 1 + (os.cpu_count() or 1), 1)


def test_of_other_libraries_nothing_is_known():
    assert placement(Implementation, 1, 1) == [] and Implementation.exit_status_counts
    assert not (Implementation.coalesces or Implementation.has_settings)

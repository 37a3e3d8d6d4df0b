"""Libraries: which class a launcher's version names, what it is told, and what others are called."""

import os

import pytest
from shmem_mt import __version__
from shmem_mt.errors import UserError
from shmem_mt.targets import fabrics, libraries, machine, openshmem, places
from shmem_mt.targets.launch_template import LaunchTemplate
from shmem_mt.targets.libraries import Heddle, Hydra, Implementation, OpenMpi

VERSIONS = {
    f"oshrun (Heddle {__version__})": Heddle,
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


LIBRARIES = {  # what headers say of their vendor -> the class, and what the launcher says that it needs
    "Sandia OpenSHMEM": (libraries.Sandia, "HYDRA build details:"),
    "osss-ucx": (libraries.OsssUcx, "mpiexec (OpenRTE) 4.1.5"),
}


def installed(tmp_path, vendor, version):
    """An installation whose headers and launcher say that."""
    folder = tmp_path / "opt" / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    says = f"case $* in *-dM*) echo '#define SHMEM_VENDOR_STRING \"{vendor}\"' ;; esac"
    for name, text in (("oshcc", says), ("oshrun", f"echo '{version}'")):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return str(folder.parent)


def command_of(found, fabric=fabrics.ON_NODE, hosts=None):
    found.binaries["p"] = "p"
    return found.launch_command("p", 2, 1, [], fabric, hosts=hosts)


@pytest.mark.parametrize("vendor", LIBRARIES)
def test_headers_name_a_library_without_a_launcher_of_its_own(tmp_path, vendor, monkeypatch):
    monkeypatch.delenv("SHMEM_SYMMETRIC_SIZE", raising=False)
    library, version = LIBRARIES[vendor]
    folder = installed(tmp_path, vendor, version)
    (found,) = openshmem.resolve([], [], [], [folder])
    assert type(found) is library and found.label == library.name and found.oshrun == [f"{folder}/bin/oshrun"]
    assert library.needs and not library.has_run and found.exit_status_counts
    two = places.named("--hosts", ["a:4", "b:4"])
    told = " ".join(command_of(found, fabrics.HOSTS, two))
    assert told.endswith(
        {
            libraries.Sandia: " -genv SHMEM_SYMMETRIC_SIZE 512M -hosts a:1,b:1 -n 2 p",
            libraries.OsssUcx: " -x SHMEM_SYMMETRIC_SIZE=512M --host a:1,b:1 -n 2 p",
        }[library]
    )
    monkeypatch.setenv("SHMEM_SYMMETRIC_SIZE", "8G")  # what the user says holds
    assert not any("SHMEM_SYMMETRIC_SIZE" in word for word in command_of(found))
    installed(tmp_path, vendor, "slurm-wlm 22.05.8")
    with pytest.raises(UserError, match=f"{library.name} is started by 'slurm-wlm 22.05.8'.*it needs .*--launch"):
        openshmem.resolve([], [], [], [folder])
    template = LaunchTemplate("sh -n{pes} {program}")
    (by_template,) = openshmem.resolve([f"{folder}/bin/oshcc"], [template], [])
    assert type(by_template) is library and command_of(by_template)[-2:] == ["-n2", "p"]


def test_what_is_told_of_a_fabric(tmp_path):
    sandia, osss = (
        openshmem.resolve([], [], [], [installed(tmp_path, vendor, version)])[0]
        for vendor, (_, version) in LIBRARIES.items()
    )
    assert "SHMEM_OFI_PROVIDER" in sandia.unable(fabrics.TCP) and not sandia.unable(fabrics.HOSTS)
    told = command_of(osss, fabrics.TCP)
    assert "UCX_TLS=tcp,self" in told and "pml" not in told and not osss.unable(fabrics.TCP)


def test_installations_stand_beside_wrappers(tmp_path):
    folder = installed(tmp_path, "Vendor X", "1.0")
    (tmp_path / "opt x").symlink_to(folder)
    found = openshmem.resolve(["true"], ["true"], ["A", "B", "C"], [folder, str(tmp_path / "opt x")])
    assert [one.label for one in found] == ["A", "B", "C"] and {type(one) for one in found} == {Implementation}
    with pytest.raises(UserError, match=r"--oshcc none/bin/oshcc: no such program"):
        openshmem.resolve([], [], [], ["none"])


def test_the_list_tells_what_libraries_need(shmem_mt):
    said = shmem_mt("list")[1]
    assert "\nSandia OpenSHMEM needs a build with --enable-pmi-simple;" in said and said.count("(not run here)") == 2

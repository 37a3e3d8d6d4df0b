"""The Debian packages in an empty Debian 12 beside Open MPI's: installed, used, chosen by alternatives, removed."""

import os
import re
import shutil
import time
from pathlib import Path

import pytest
from version import VERSION

PACKAGES = Path(os.environ["HEDDLE_PACKAGES"])
NAMES = ["libheddle1", "libheddle-dev", "heddle-tools", "heddle-ucx", "heddle-pmix"]
SHARED = ["oshcc", "oshc++", "oshrun"]  # with Open MPI
PROGRAM = r"""
#include <shmem.h>
#include <stdio.h>
long left;
int main(void) {
    shmem_init();
    shmem_long_p(&left, shmem_my_pe(), (shmem_my_pe() + 1) % shmem_n_pes());
    shmem_barrier_all();
    printf("%d of %d: %ld\n", shmem_my_pe(), shmem_n_pes(), left);
    shmem_finalize();
}
"""
ANSWER = [f"{pe} of 4: {(pe + 3) % 4}" for pe in range(4)]
CMAKE = f"""cmake_minimum_required(VERSION 3.20)
project(hello C)
find_package(Heddle {VERSION} REQUIRED)
add_executable(hello hello.c)
target_link_libraries(hello PRIVATE Heddle::heddle)
"""


@pytest.fixture(scope="module")
def installed(debian):
    """From the empty Debian to 4 PEs, with the time of each part printed; then Open MPI's packages come."""
    if not list(PACKAGES.glob("libheddle1_*.deb")):
        pytest.skip("no packages in build/packages: make deb")
    (debian.root / "packages").mkdir()
    for package in PACKAGES.glob("*.deb"):
        shutil.copy(package, debian.root / "packages")
    (debian.root / "programs").mkdir()
    (debian.root / "programs/hello.c").write_text(PROGRAM)
    (debian.root / "programs/CMakeLists.txt").write_text(CMAKE)
    times = [time.monotonic()]
    debian.run("apt-get", "update", "-qq")
    times.append(time.monotonic())
    install(debian, *NAMES, "gcc", "libc6-dev")
    times.append(time.monotonic())
    assert compile_and_run(debian, "oshcc", "oshrun") == ANSWER
    times.append(time.monotonic())
    parts = ", ".join(f"{what} {end - begin:.1f} s"
                      for what, begin, end in zip(("apt-get update", "install", "compile and run"), times, times[1:]))
    print(f"\nfrom an empty Debian 12 to a running program of 4 PEs: {times[-1] - times[0]:.1f} s ({parts})")
    debian.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "openmpi-bin", "libopenmpi-dev",
               "pkg-config", "cmake", "make", "g++")
    return debian


def install(debian, *names):
    """Packages of ours by their files, others by name."""
    files = {name: list(PACKAGES.glob(f"{name}_*.deb")) for name in names}
    paths = [f"/packages/{found[0].name}" if found else name for name, found in files.items()]
    debian.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *paths)


def compile_and_run(debian, oshcc, oshrun):
    debian.run("sh", "-c", f"cd /programs && {oshcc} -O2 hello.c -o hello")
    return sorted(debian.run(oshrun, "-n", "4", "/programs/hello").split("\n"))[1:]


def test_heddle_comes_first(installed):
    assert compile_and_run(installed, "oshcc", "oshrun") == ANSWER
    assert "Heddle" in installed.run("oshcc", "--version")
    assert installed.run("ldd", "/programs/hello").count("/lib/x86_64-linux-gnu/libheddle.so.1") == 1


def test_open_mpi_can_be_chosen(installed):
    for name in ("oshcc", "oshrun"):
        installed.run("update-alternatives", "--set", name, f"/usr/bin/{name}.openmpi")
    try:
        assert "-loshmem" in installed.run("oshcc", "--showme:link")
        assert "-loshmem" in installed.run("oshc++", "--showme:link")
        assert "open-mpi.org" in installed.run("oshrun", "--version")
        assert compile_and_run(installed, "oshcc.heddle", "oshrun.heddle") == ANSWER
    finally:
        for name in ("oshcc", "oshrun"):
            installed.run("update-alternatives", "--auto", name)
    assert "Heddle" in installed.run("oshcc", "--version")


def alternatives(debian, name):
    """Whether one was chosen by hand, and which one applies."""
    text = debian.run("update-alternatives", "--query", name)
    return tuple(re.search(f"^{key}: (.*)$", text, flags=re.M)[1] for key in ("Status", "Value"))


def test_a_choice_survives(installed):
    """That of an administrator, when the packages of either library are installed again."""
    for name in ("oshcc", "oshrun"):
        installed.run("update-alternatives", "--set", name, f"/usr/bin/{name}.openmpi")
    try:
        installed.run("sh", "-c", "dpkg --install /packages/libheddle-dev_*.deb /packages/heddle-tools_*.deb")
        installed.run("apt-get", "install", "-y", "-qq", "--reinstall", "openmpi-bin")
        for name in ("oshcc", "oshrun"):
            assert alternatives(installed, name) == ("manual", f"/usr/bin/{name}.openmpi")
    finally:
        for name in ("oshcc", "oshrun"):
            installed.run("update-alternatives", "--auto", name)


def test_a_removal_that_fails(installed):
    """The package is still there, and so is the name of its program."""
    script = installed.root / "var/lib/dpkg/info/heddle-tools.prerm"
    kept = script.read_text()
    script.write_text(kept + "exit 1\n")
    try:
        text = installed.run("sh", "-c", "dpkg --remove heddle-tools || echo status $?")
    finally:
        script.write_text(kept)
    assert "status 1" in text, text
    assert alternatives(installed, "oshrun") == ("auto", "/usr/bin/oshrun.heddle")
    installed.run("oshrun.openmpi", "--version")
    install(installed, "heddle-tools")


def test_alternatives_of_the_administrator(installed):
    """They may be there before the package, which adds its own. Open MPI's file gets its name back when that goes."""
    installed.run("apt-get", "remove", "-y", "-qq", "openmpi-bin", "heddle-tools")
    other = ("update-alternatives", "--quiet", "--install", "/usr/bin/oshrun", "oshrun", "/usr/bin/true", "100")
    installed.run(*other)
    install(installed, "heddle-tools")
    assert alternatives(installed, "oshrun") == ("auto", "/usr/bin/true")
    assert "openmpi" not in installed.run("update-alternatives", "--list", "oshrun")
    installed.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "openmpi-bin")
    text = installed.run("dpkg", "--remove", "heddle-tools")
    assert "heddle-tools: the alternatives of oshrun go with it: Open MPI's oshrun needs the name" in text
    assert "open-mpi.org" in installed.run("oshrun", "--version")
    install(installed, *NAMES)


def test_pkg_config(installed):
    installed.run("sh", "-c", "cd /programs && cc -O2 hello.c $(pkg-config --cflags --libs heddle) -o by-pkg-config")
    assert sorted(installed.run("oshrun", "-n", "4", "/programs/by-pkg-config").split("\n"))[1:] == ANSWER


def test_cmake(installed):
    installed.run("cmake", "-S", "/programs", "-B", "/programs/build")
    installed.run("cmake", "--build", "/programs/build")
    assert sorted(installed.run("oshrun", "-n", "4", "/programs/build/hello").split("\n"))[1:] == ANSWER


def test_parts(installed):
    """The plugins are found in their private folder, by the tools and by the library."""
    text = installed.run("heddle-info")
    assert "libheddle_ucx.so   UCX 1." in text and "libheddle_pmix.so  OpenPMIx " in text, text
    assert "found nothing wrong" in installed.run("heddle-info", "--check")
    installed.run("env", "HEDDLE_TEST_PES_PER_NODE=1", "HEDDLE_NET_TRANSPORTS=tcp", "oshrun", "-n", "2",
                  "/programs/hello")
    answer = installed.run("env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "mpirun",
                           "--oversubscribe", "-n", "4", "/programs/hello")
    assert set(ANSWER) <= set(answer.split("\n")), answer


def test_a_part_that_is_not_installed_is_named(installed):
    """By the package that has it."""
    installed.run("dpkg", "--remove", "heddle-ucx")
    try:
        assert installed.run("heddle-info", "--missing") == (
            "Heddle's part libheddle_ucx.so: installed without UCX, which is for jobs on several hosts: install the "
            "package heddle-ucx\n"
            "Heddle's part libheddle_fortran.a: built without gfortran, which is for programs in Fortran (oshfort): "
            "install gfortran (Debian, Ubuntu; Fedora: gcc-gfortran), and build Heddle again\n")
    finally:
        install(installed, "heddle-ucx")


def test_suite_says_what_it_lacks(installed):
    """Debian 12 lacks packages of Python; nothing is fetched unasked."""
    install(installed, "shmem-mt")
    text = installed.run("sh", "-c", "shmem-mt list || echo status $?")
    assert 'shmem-mt --setup' in text and "status 1" in text, text


def test_suite_gets_what_it_lacks(installed):
    """--setup, by pip from PyPI, with what Debian has in a version that suffices; then the suite runs."""
    install(installed, "shmem-mt", "python3-venv")
    said = installed.run("shmem-mt", "--setup")
    assert said.startswith("shmem-mt: ready, with /root/.local/share/shmem-mt/python"), said
    assert "latency" in installed.run("shmem-mt", "list")
    assert "program starts of Heddle" in installed.run("shmem-mt", "run", "--dry-run", "--only", "latency")
    shutil.rmtree(installed.root / "root/.local/share/shmem-mt")


def test_removal_leaves_nothing(installed):
    """Open MPI's programs have their names again. The state before is made by the removal of all and compared with a
    second installation and removal."""
    ours = [*NAMES, "shmem-mt"]
    installed.run("apt-get", "purge", "-y", "-qq", *ours)
    without = installed.files()
    left = [line for line in without if "heddle" in line or ("osh" in line and ".openmpi" in line.split(" -> ")[0])]
    assert left == []
    assert installed.run("dpkg-divert", "--list", "*osh*") == ""
    for name in SHARED:
        assert "open-mpi.org" in installed.run(name, "--version") or "-loshmem" in installed.run(name, "--showme:link")
    install(installed, *ours)
    assert compile_and_run(installed, "oshcc", "oshrun") == ANSWER
    installed.run("apt-get", "purge", "-y", "-qq", *ours)
    assert installed.files() == without


def test_open_mpi_comes_and_goes(installed):
    """Its removal takes its alternatives with it, and Heddle's tools keep working."""
    install(installed, *NAMES)
    installed.run("apt-get", "remove", "-y", "-qq", "openmpi-bin")
    assert "openmpi" not in installed.run("update-alternatives", "--list", "oshrun")
    assert compile_and_run(installed, "oshcc", "oshrun") == ANSWER

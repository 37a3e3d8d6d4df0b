"""The RPM packages, as make rpm has built and rpmlint has judged them: what is in each, and a job of 4 PEs by programs
from a folder into which RPM installs them. What they need by Fedora's names is not looked for: this is no Fedora."""

import fnmatch
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from version import VERSION

PACKAGES = Path(os.environ["HEDDLE_PACKAGES"])
SOURCE = Path(__file__).resolve().parents[2]
CONTENTS = {
    "heddle": ["/usr/bin/oshrun", "/usr/bin/heddle-info", "/usr/bin/heddle-status", "/usr/lib64/heddle/check_pe",
               "/usr/share/man/man1/oshrun.1*"],
    "heddle-libs": ["/usr/lib64/libheddle.so.1", f"/usr/lib64/libheddle.so.{VERSION}",
                    "/usr/lib64/heddle/libheddle_out_of_line.so"],
    "heddle-devel": ["/usr/bin/oshcc", "/usr/bin/oshc++", "/usr/include/heddle/shmem.h", "/usr/lib64/libheddle.so",
                     "/usr/lib64/pkgconfig/heddle.pc", "/usr/lib64/cmake/Heddle/HeddleConfig.cmake",
                     "/usr/share/man/man3/shmem_put.3*"],
    "heddle-ucx": ["/usr/lib64/heddle/libheddle_ucx.so"],
    "heddle-pmix": ["/usr/lib64/heddle/libheddle_pmix.so"],
}
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


def run(*command, **environment):
    own = {name: value for name, value in os.environ.items() if not name.startswith("HEDDLE_")}  # programs refuse those
    done = subprocess.run(list(map(str, command)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, timeout=600, env={**own, **environment})
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def packages():
    """Name to file, of the binary ones."""
    if not shutil.which("rpm"):
        pytest.skip("no rpm on this machine: make rpm")
    files = [file for file in PACKAGES.glob("heddle*.rpm") if not file.name.endswith(".src.rpm")]
    if not files:
        pytest.skip("no RPM packages in build/packages: make rpm")
    return {run("rpm", "-qp", "--queryformat", "%{NAME}", file): file for file in files}


@pytest.fixture(scope="module")
def root(packages, tmp_path_factory):
    """A folder in which all are installed, with a database of its own."""
    if os.geteuid() != 0:
        pytest.skip("rpm --root needs root")
    folder = tmp_path_factory.mktemp("installed") / "root"
    folder.mkdir()
    run("rpm", "--root", folder, "--initdb")
    run("rpm", "--root", folder, "--install", "--nodeps", *packages.values())
    return folder


def test_there_is_each(packages):
    assert sorted(packages) == sorted(CONTENTS)
    assert list(PACKAGES.glob(f"heddle-{VERSION}-*.src.rpm"))


@pytest.mark.parametrize("name", CONTENTS)
def test_contents(packages, name):
    """What is wanted is in it, nothing of the builder's machine, and no file is in two packages."""
    files = set(run("rpm", "-qlp", packages[name]).split())
    assert [pattern for pattern in CONTENTS[name] if not fnmatch.filter(files, pattern)] == []
    assert all(file.startswith("/usr/") for file in files)
    others = {file for other, package in packages.items() if other != name
              for file in run("rpm", "-qlp", package).split()}
    shared = (files & others) - {"/usr/lib64/heddle"}  # and folders of RPM's links by build id
    assert all("/licenses/" in file or file.startswith("/usr/lib/.build-id") for file in shared), shared


def test_needs(packages):
    """Of another version of the library none goes on; the plugins need what they load."""
    exact = f"heddle-libs(x86-64) = {VERSION}-1"
    for name in ("heddle", "heddle-devel", "heddle-ucx", "heddle-pmix"):
        assert exact in run("rpm", "-qp", "--requires", packages[name]), name
    assert "ucx(x86-64)" in run("rpm", "-qp", "--requires", packages["heddle-ucx"])
    assert "libpmix.so.2()(64bit)" in run("rpm", "-qp", "--requires", packages["heddle-pmix"])
    assert "libheddle.so.1(HEDDLE_1)(64bit)" in run("rpm", "-qp", "--provides", packages["heddle-libs"])
    assert "libstdc++" not in run("rpm", "-qp", "--requires", packages["heddle-libs"])


def test_job_from_what_is_installed(root, tmp_path):
    """The folder is not the system's: the loader and pkg-config are told where it is."""
    libraries = {"LD_LIBRARY_PATH": f"{root}/usr/lib64"}
    (tmp_path / "hello.c").write_text(PROGRAM)
    run(root / "usr/bin/oshcc", "-O2", tmp_path / "hello.c", "-o", tmp_path / "hello")
    answer = [f"{pe} of 4: {(pe + 3) % 4}" for pe in range(4)]
    assert sorted(run(root / "usr/bin/oshrun", "-n", 4, tmp_path / "hello", **libraries).splitlines()) == answer
    assert f"{root}/usr/lib64/libheddle.so.1" in run("ldd", tmp_path / "hello", **libraries)
    flags = run("pkg-config", "--cflags", "--libs", "heddle", PKG_CONFIG_PATH=f"{root}/usr/lib64/pkgconfig").split()
    run("cc", tmp_path / "hello.c", *flags, "-o", tmp_path / "by-pkg-config")
    assert sorted(run(root / "usr/bin/oshrun", "-n", 4, tmp_path / "by-pkg-config", **libraries).splitlines()) == answer


def test_tools(root):
    """The plugins are found in their folder, and the programs have no path of the build."""
    text = run(root / "usr/bin/heddle-info", LD_LIBRARY_PATH=f"{root}/usr/lib64")
    assert "libheddle_ucx.so   UCX 1." in text and "libheddle_pmix.so  OpenPMIx " in text, text
    for file in ("lib64/libheddle.so.1", "lib64/heddle/libheddle_ucx.so", "lib64/heddle/libheddle_pmix.so",
                 "bin/oshrun", "bin/heddle-info"):
        assert "PATH" not in run("readelf", "-d", root / "usr" / file), file

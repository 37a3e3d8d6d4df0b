"""The parts for several hosts: `make` installs what they are built with, goes on without it, and says what is missing;
so do heddle-info and oshrun --hosts."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ["HEDDLE_BUILD"])
SOURCE = Path(os.environ["HEDDLE_SOURCE"])
LIMIT_S = 1800
COMMANDS = ["sh", "g++", "cmake", "ninja", "cat", "head", "mktemp", "rm", "sed", "sort"]
PARTS = " libucx-dev ucx-utils libpmix-dev"
MISSING_UCX = ("built without UCX, which is for jobs on several hosts: install libucx-dev (Debian, Ubuntu; Fedora: "
               "ucx-devel), and build Heddle again")


@pytest.fixture
def require(tmp_path):
    """Runs require.sh on a machine with these commands alone: ``parts``, whether UCX and PMIx are installed; ``apt``,
    the status of apt-get, which notes its arguments."""
    def run(*kinds, root, parts, apt=0, without=()):
        folder = tmp_path / "bin"
        folder.mkdir()
        for name in COMMANDS:
            if name not in without:
                (folder / name).symlink_to(shutil.which(name))
        for name, text in {"python3": "exit 0", "id": f"echo {0 if root else 1000}",
                           "pkg-config": f"exit {0 if parts else 1}",
                           "apt-get": f'echo "$@" >>{tmp_path}/apt; exit {apt}'}.items():
            if name not in without:
                (folder / name).write_text(f"#!/bin/sh\n{text}\n")
                (folder / name).chmod(0o755)
        done = subprocess.run([SOURCE / "scripts/require.sh", *kinds], env={**os.environ, "PATH": str(folder)},
                              capture_output=True, text=True, timeout=LIMIT_S)
        noted = tmp_path / "apt"
        done.installed = [line for line in noted.read_text().splitlines() if line.startswith("install ")] \
            if noted.exists() else []
        return done
    return run


def test_parts_are_installed_by_root(require):
    done = require("build", root=True, parts=False)
    assert done.returncode == 0 and len(done.installed) == 1 and done.installed[0].endswith(PARTS), done
    assert done.stdout == f"installing:{PARTS}\n" and done.stderr == "", done


@pytest.mark.parametrize("how", [{"root": False}, {"root": True, "apt": 100},
                                 {"root": True, "without": ["apt-get"]}], ids=["user", "no package", "no Debian"])
def test_a_build_goes_on_without_parts(require, how):
    done = require("build", parts=False, **how)
    assert done.returncode == 0 and f"    sudo apt-get install{PARTS}\n" in done.stderr, done
    assert "built without its parts for several hosts" in done.stderr, done


def test_without_pkg_config_the_parts_are_not_found(require):
    done = require("build", root=True, parts=True, without=["pkg-config"])
    assert done.returncode == 0 and done.installed[0].endswith(f" pkg-config{PARTS}"), done


def test_what_a_build_needs_is_named_with_its_parts(require):
    done = require("build", root=False, parts=False, without=["g++"])
    assert done.returncode == 1 and f"    sudo apt-get install g++{PARTS}\n" in done.stderr, done
    assert done.installed == [], done


def test_what_root_cannot_install_ends_the_build(require):
    done = require("build", root=True, parts=True, apt=100, without=["g++"])
    assert done.returncode == 1 and done.installed == [], done


def test_nothing_is_said_where_nothing_is_missing(require):
    done = require("build", root=False, parts=True)
    assert (done.returncode, done.stdout, done.stderr, done.installed) == (0, "", "", []), done


def test_tests_need_the_parts(require):
    done = require("build", "test", root=False, parts=False)
    assert done.returncode == 1 and PARTS in done.stderr and done.stderr.count("libpmix-dev") == 1, done


@pytest.fixture
def prefix(tmp_path):
    if not all((BUILD / "lib" / name).exists() for name in ("libheddle_ucx.so", "libheddle_pmix.so")):
        pytest.skip("this build has not all parts")
    subprocess.run(["cmake", "--install", BUILD, "--prefix", tmp_path / "prefix"], check=True, capture_output=True,
                   timeout=LIMIT_S)
    return tmp_path / "prefix"


def said(*command, status=0, **environment):
    done = subprocess.run(list(map(str, command)), env={**os.environ, **environment}, capture_output=True, text=True,
                          timeout=LIMIT_S, stdin=subprocess.DEVNULL)
    assert done.returncode == status, done
    return done


def test_whole(prefix):
    text = said(prefix / "bin/heddle-info").stdout
    assert "libheddle_ucx.so   UCX 1." in text and "libheddle_pmix.so  OpenPMIx " in text, text
    assert "device             lo (network): tcp" in text, text
    assert said(prefix / "bin/heddle-info", "--missing").stdout == ""
    assert said(prefix / "bin/heddle-info", "--check").stdout.startswith("check: 2 PEs on 1 node\n")


def test_an_installed_program_uses_them(prefix, tmp_path):
    """Compiled and started from the installation: on pretended nodes by UCX, and by mpirun with PMIx."""
    (tmp_path / "two.c").write_text("#include <shmem.h>\n#include <stdio.h>\nlong x;\nint main(void) {\nshmem_init();\n"
                                    "shmem_long_p(&x, 7, 1 - shmem_my_pe());\nshmem_barrier_all();\n"
                                    'printf("%ld, near %d\\n", x, shmem_ptr(&x, 1 - shmem_my_pe()) != NULL);\n'
                                    "shmem_finalize();\n}\n")
    said(prefix / "bin/oshcc", "-O2", tmp_path / "two.c", "-o", tmp_path / "two")
    nodes = {"HEDDLE_TEST_PES_PER_NODE": "1", "HEDDLE_NET_TRANSPORTS": "tcp", "HEDDLE_NET_HEARTBEAT_TIMEOUT_S": "60"}
    assert said(prefix / "bin/oshrun", "-n", 2, tmp_path / "two", **nodes).stdout == "7, near 0\n" * 2
    if shutil.which("mpirun"):
        mpirun = ["mpirun", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "--oversubscribe", "-n", 2]
        assert said(*mpirun, tmp_path / "two").stdout == "7, near 1\n" * 2


def test_a_part_that_was_not_built(prefix):
    (prefix / "lib/libheddle_ucx.so").unlink()
    assert f"libheddle_ucx.so   none: {MISSING_UCX}\n" in said(prefix / "bin/heddle-info").stdout
    assert said(prefix / "bin/heddle-info", "--missing").stdout == f"Heddle's part libheddle_ucx.so: {MISSING_UCX}\n"


def test_a_part_that_cannot_be_loaded(prefix):
    """Another library is missing, as after an upgrade of the system; or the file is broken."""
    broken = prefix / "lib/libheddle_pmix.so"
    broken.write_bytes(b"nothing")
    text = said(prefix / "bin/heddle-info").stdout
    assert "libheddle_pmix.so  none: cannot be loaded: " in text and "file too short" in text, text
    assert "libheddle_ucx.so   UCX 1." in text, text
    lines = said(prefix / "bin/heddle-info", "--missing").stdout.splitlines()
    assert len(lines) == 1 and "libheddle_pmix.so: cannot be loaded" in lines[0], lines
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", prefix / "libgone.so"], check=True)
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", broken, "-Wl,--no-as-needed", "-L", prefix,
                    "-l:libgone.so"], check=True)
    (prefix / "libgone.so").unlink()
    assert "libgone.so: cannot open shared object file" in said(prefix / "bin/heddle-info").stdout


def test_jobs_on_several_hosts_say_what_is_missing(prefix, tmp_path):
    """mpirun needs both parts; hydra, which speaks PMI, needs the network alone."""
    launchers = tmp_path / "launchers"
    launchers.mkdir()
    for name, answer in {"mpirun": "mpirun (Open MPI) 4.1.4", "mpiexec": "HYDRA build details:"}.items():
        (launchers / name).write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "{answer}" || echo "{name} starts"\n')
        (launchers / name).chmod(0o755)
    command = [prefix / "bin/oshrun", "--hosts", "a,b", "-n", "2", "./program"]
    done = said(*command, PATH=str(launchers))
    assert (done.stdout, done.stderr) == ("mpirun starts\n", ""), done
    (prefix / "lib/libheddle_pmix.so").unlink()
    done = said(*command, PATH=str(launchers))
    assert (done.stdout, done.stderr) == ("mpiexec starts\n", ""), done
    (prefix / "lib/libheddle_ucx.so").unlink()
    done = said(*command, PATH=str(launchers))
    assert done.stdout == "mpiexec starts\n" and f"oshrun: this Heddle was {MISSING_UCX}" in done.stderr, done
    (launchers / "mpiexec").unlink()
    done = said(*command, PATH=str(launchers), status=1)
    assert "/mpirun: it speaks PMIx, and this Heddle is without that" in done.stderr, done
    assert "oshrun: this Heddle was built without PMIx, which is for" in done.stderr, done


def test_a_build_without_the_parts(tmp_path):
    """Configured as `make build` does it, where neither library is found; the library itself knows nothing of them."""
    said("cmake", "-S", SOURCE, "-B", tmp_path, "-G", "Ninja", "-DHEDDLE_BUILD_TESTS=OFF", "-DCMAKE_BUILD_TYPE=Debug",
         "-DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON", "-DHEDDLE_BUILD_FORTRAN=OFF")
    said("cmake", "--build", tmp_path, "--target", "heddle-info", "oshrun")
    assert not list(tmp_path.glob("lib/libheddle_*.so"))
    lines = said(tmp_path / "bin/heddle-info", "--missing").stdout.splitlines()
    assert [line.split(",")[0] for line in lines] == ["Heddle's part libheddle_ucx.so: built without UCX",
                                                      "Heddle's part libheddle_pmix.so: built without PMIx",
                                                      "Heddle's part libheddle_fortran.a: built without gfortran"]
    # As Debian's and RPM's packages are configured: what is missing is one of these.
    said("cmake", "-DHEDDLE_PACKAGED_PARTS=ON", tmp_path)
    said("cmake", "--build", tmp_path, "--target", "heddle-info")
    lines = said(tmp_path / "bin/heddle-info", "--missing").stdout.splitlines()
    assert lines[0].endswith(": installed without UCX, which is for jobs on several hosts: install the package "
                             "heddle-ucx"), lines
    assert lines[1].endswith(": install the package heddle-pmix") and "built without gfortran" in lines[2], lines

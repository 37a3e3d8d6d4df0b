"""The relocatable tarball: it works where it is unpacked, says which C library it needs, and is the same twice."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ["HEDDLE_BUILD"])
SOURCE = Path(os.environ["HEDDLE_SOURCE"])
# The newest that may be needed: of make tarball's build, by make test-tarball; of another, what Debian 12's compiler
# links into it (libstdc++.a, libgcc_eh.a).
NEWEST_GLIBC = tuple(map(int, os.environ.get("HEDDLE_TEST_NEWEST_GLIBC", "2.36").split(".")))


def run(*command, **environment):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=1800,
                          env={**os.environ, **environment})
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def tarball(tmp_path_factory):
    out = tmp_path_factory.mktemp("made")
    run(SOURCE / "packaging/tarball.sh", BUILD, out)
    (file,) = out.glob("heddle-*.tar.xz")
    return file


@pytest.fixture(scope="module")
def unpacked(tarball, tmp_path_factory):
    place = tmp_path_factory.mktemp("a place")
    shutil.unpack_archive(tarball, place, filter="data")
    (folder,) = place.iterdir()
    return folder


def test_it_works_where_it_is(unpacked, tmp_path):
    (tmp_path / "hello.c").write_text("#include <shmem.h>\n#include <stdio.h>\nint main(void) {\nshmem_init();\n"
                                      'printf("PE %d\\n", shmem_my_pe());\nshmem_finalize();\n}\n')
    run(unpacked / "bin/oshcc", "-O2", tmp_path / "hello.c", "-o", tmp_path / "hello")
    assert sorted(run(unpacked / "bin/oshrun", "-n", 4, tmp_path / "hello").split("\n"))[1:] == [
        f"PE {pe}" for pe in range(4)]
    assert str(unpacked / "lib/libheddle.so.1") in run("ldd", tmp_path / "hello")


def test_what_it_needs_of_the_c_library(unpacked):
    """The README's version is that of the files, and no newer than the bound."""
    said = re.search(r"glibc (\d+)\.(\d+) or later", (unpacked / "README").read_text())
    needed = max(tuple(map(int, version)) for path in unpacked.rglob("*") if path.is_file() and os.access(path, os.X_OK)
                 for version in re.findall(r"\(GLIBC_(\d+)\.(\d+)", subprocess.run(
                     ["objdump", "-T", path], capture_output=True, text=True).stdout))
    assert tuple(map(int, said.groups())) == needed <= NEWEST_GLIBC


def test_nothing_of_the_builders_machine_is_in_it(unpacked):
    for path in unpacked.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert str(BUILD).encode() not in path.read_bytes(), path


def test_the_same_twice(tarball, tmp_path):
    run(SOURCE / "packaging/tarball.sh", BUILD, tmp_path)
    assert (tmp_path / tarball.name).read_bytes() == tarball.read_bytes()


def test_module_file(unpacked):
    if not shutil.which("modulecmd"):
        pytest.skip("no modulecmd on this machine: Debian has it in environment-modules")
    text = run("sh", "-c", 'eval "$(modulecmd sh load heddle)"; command -v oshcc; echo "$PKG_CONFIG_PATH"',
               MODULEPATH=str(unpacked / "share/modulefiles"))
    assert text == f"{unpacked}/bin/oshcc\n{unpacked}/lib/pkgconfig\n"

"""The names of other OpenSHMEM: left out unless asked for, and then what build files look for works."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from version import VERSION

BUILD = Path(os.environ["HEDDLE_BUILD"])
SOURCE = Path(os.environ["HEDDLE_SOURCE"])
PROGRAM = """
#include <shmem.h>
#include <stdio.h>
long value;
int main(void) {
    shmem_init();
    shmem_long_p(&value, 7 + shmem_my_pe(), (shmem_my_pe() + 1) % shmem_n_pes());
    shmem_barrier_all();
    printf("value %ld\\n", value);
    shmem_finalize();
    return 0;
}
"""
NAMES = {"bin": ["oshmem_info", "shmemcc", "shmemc++", "shmemcxx", "shmemCC", "oshcxx", "oshCC", "shmemrun"],
         "lib": ["liboshmem.so", "libsma.so", "libopenshmem.so"], "lib/pkgconfig": ["oshmem.pc"],
         "lib/cmake": ["OpenSHMEM", "OSHMEM", "SHMEM"]}


def run(*command, status=0, cwd=None, **environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, cwd=cwd,
                          env={**os.environ, **environment})
    assert done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def there(prefix):
    return [f"{folder}/{name}" for folder, names in NAMES.items() for name in names
            if os.path.lexists(prefix / folder / name)]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("plain") / "prefix"
    run("cmake", "--install", BUILD, "--prefix", prefix)
    return prefix


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """With the names, and moved."""
    first = tmp_path_factory.mktemp("compat") / "first"
    run("cmake", "--install", BUILD, "--prefix", first)
    run("cmake", "--install", BUILD, "--prefix", first, "--component", "compat_names")
    return shutil.move(first, first.with_name("second"))


@pytest.fixture
def program(tmp_path):
    for name in ("hello.c", "hello.cpp"):
        (tmp_path / name).write_text(PROGRAM)
    return tmp_path


def check_runs(prefix, executable):
    assert sorted(run(prefix / "bin/shmemrun", "-np", 2, executable).splitlines()) == ["value 7", "value 8"]
    assert "libheddle.so.1" in run("readelf", "-d", executable)


def test_they_are_left_out(plain):
    assert there(plain) == []


def test_they_are_there(prefix):
    assert len(there(prefix)) == sum(map(len, NAMES.values()))


@pytest.mark.parametrize("wrapper,source", [("shmemcc", "hello.c"), ("shmemc++", "hello.cpp"), ("oshCC", "hello.cpp")])
def test_wrapper(prefix, program, wrapper, source):
    run(prefix / "bin" / wrapper, "-O2", source, "-o", "hello", cwd=program)
    check_runs(prefix, program / "hello")


def test_fortran_wrapper(prefix, program):
    if not (prefix / "bin/oshfort").exists():
        pytest.skip("this build has no Fortran")
    run(prefix / "bin/shmemfort", SOURCE / "examples/hello.f90", "-o", "hello", cwd=program)
    assert "my left neighbor is 0" in run(prefix / "bin/shmemrun", "-np", 2, program / "hello")


@pytest.mark.parametrize("library", ["oshmem", "sma", "openshmem"])
def test_library(prefix, program, library):
    run("cc", "hello.c", f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", f"-l{library}", "-o",
        "hello", cwd=program)
    check_runs(prefix, program / "hello")


def test_pkg_config(prefix, program):
    if not shutil.which("pkg-config"):
        pytest.skip("no pkg-config on this machine")
    flags = run("pkg-config", "--cflags", "--libs", "oshmem", PKG_CONFIG_PATH=f"{prefix}/lib/pkgconfig")
    run("cc", "hello.c", *flags.split(), "-o", "hello", cwd=program)
    check_runs(prefix, program / "hello")


@pytest.mark.parametrize("package,use", [
    ("OpenSHMEM 1.4", "target_link_libraries(hello PRIVATE OpenSHMEM::OpenSHMEM)"),
    ("OpenSHMEM", "target_link_libraries(hello PRIVATE OpenSHMEM::OpenSHMEM_C)"),
    ("OSHMEM", "target_include_directories(hello PRIVATE ${OSHMEM_INCLUDE_DIR})\n"
               "target_link_libraries(hello PRIVATE ${OSHMEM_LIBRARIES})"),
    ("SHMEM", "target_include_directories(hello PRIVATE ${SHMEM_C_INCLUDE_DIRS})\n"
              "target_link_libraries(hello PRIVATE ${SHMEM_C_LIBRARIES})")])
def test_cmake_package(prefix, program, package, use):
    name = package.split()[0]
    (program / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.20)\nproject(hello C)\nfind_package({package} REQUIRED)\n"
        f"add_executable(hello hello.c)\n{use}\nmessage(STATUS \"compiler ${{{name}_C_COMPILER}}\")\n")
    said = run("cmake", "-S", program, "-B", program / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    assert f"compiler {prefix}/bin/oshcc" in said
    run("cmake", "--build", program / "build")
    check_runs(prefix, program / "build/hello")


def test_another_major_version_is_refused(prefix, program):
    (program / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.20)\nproject(hello C)\n"
                                            "find_package(OpenSHMEM 2.0 REQUIRED)\n")
    said = run("cmake", "-S", program, "-B", program / "build", f"-DCMAKE_PREFIX_PATH={prefix}", status=1)
    assert "version: 1.6" in said


def test_oshmem_info(prefix):
    """What the Makefile of Open MPI's examples looks for, and forms for readers."""
    info = prefix / "bin/oshmem_info"
    lines = run(info, "--parsable").splitlines()
    assert "oshmem:bindings:c:yes" in lines and "oshmem:bindings:fort:no" in lines
    assert f"path:prefix:{prefix}" in lines and f"oshmem:version:full:{VERSION}" in lines
    assert all(re.fullmatch(r"[\w:]+:[^|]+", line) for line in lines), lines
    assert f"              Open SHMEM: {VERSION}\n" in run(info)
    assert run(info, "--path", "libdir") == f"{prefix}/lib\n"
    assert run(info, "--version") == f"Heddle {VERSION}\n"
    assert "SHMEM_SYMMETRIC_SIZE" in run(info, "--param", "all", "all")
    assert "must be prefix, bindir" in run(info, "--path", "nowhere", status=2)
    assert "no such option" in run(info, "--wrong", status=2)


def test_showme(prefix):
    """The words of Open MPI's wrappers."""
    compiler = run(prefix / "bin/oshcc", "--showme:command").strip()
    assert shutil.which(compiler)
    assert run(prefix / "bin/shmemcc", "--showme:incdirs") == f"{prefix}/include\n"
    assert run(prefix / "bin/shmemcc", "-showme:libdirs") == f"{prefix}/lib\n"
    assert run(prefix / "bin/shmemcc", "--showme:libs") == "heddle\n"
    assert run(prefix / "bin/shmemcc", "--showme:version") == f"oshcc: Heddle {VERSION} (Language: C)\n"
    assert "must be --showme with compile, link" in run(prefix / "bin/shmemcc", "--showme:all", status=2)

"""Projects of users, each with its build system, against an installation in a folder with an odd name: programs in C,
C++ and, where the installation has it, Fortran, started by its oshrun."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from version import VERSION

BUILD = Path(os.environ["HEDDLE_BUILD"])
SOURCE = Path(os.environ["HEDDLE_SOURCE"])
PES = 3
PROGRAM = r"""
#include <shmem.h>
#include <stdio.h>
long from_left;
int main(void) {
    shmem_init();
    shmem_long_p(&from_left, shmem_my_pe(), (shmem_my_pe() + 1) % shmem_n_pes());
    shmem_barrier_all();
    printf("PE %d: left is %ld\n", shmem_my_pe(), from_left);
    shmem_finalize();
    return 0;
}
"""
FORTRAN = """program ring
    use shmem
    integer(c_long), target, save :: from_left
    integer :: me
    call shmem_init()
    me = shmem_my_pe()
    call shmem_long_p(from_left, int(me, c_long), mod(me + 1, shmem_n_pes()))
    call shmem_barrier_all()
    print '(a, i0, a, i0)', 'PE ', me, ': left is ', from_left
    call shmem_finalize()
end program
"""
ANSWER = sorted(f"PE {pe}: left is {(pe + PES - 1) % PES}" for pe in range(PES))
FILES = {"c": "in_c.c", "cpp": "in_cpp.cpp", "fortran": "in_fortran.f90"}


def run(*command, cwd=None, **environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, cwd=cwd,
                          env={**os.environ, **environment})
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def needs(*commands):
    for command in commands:
        if not shutil.which(command):
            pytest.skip(f"no {command} on this machine")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """With the names of other OpenSHMEM, for find_package(OpenSHMEM)."""
    place = tmp_path_factory.mktemp("installed") / "odd+folder~1@x.y=z"
    run("cmake", "--install", BUILD, "--prefix", place)
    run("cmake", "--install", BUILD, "--prefix", place, "--component", "compat_names")
    return place


@pytest.fixture
def languages(prefix):
    return ["c", "cpp", *(["fortran"] if (prefix / "bin/oshfort").exists() else [])]


@pytest.fixture
def project(tmp_path, languages):
    """The programs' sources; a test adds the build file."""
    for language in languages:
        (tmp_path / FILES[language]).write_text(FORTRAN if language == "fortran" else PROGRAM)
    return tmp_path


def check_all_run(prefix, folder, languages):
    """Each program answers, and has found the library of this installation."""
    for language in languages:
        program = folder / f"in_{language}"
        assert sorted(run(prefix / "bin/oshrun", "-n", PES, program).splitlines()) == ANSWER, program
        library = re.search(r"libheddle\.so\.1 => (\S+)", run("ldd", program))[1]
        assert os.path.samefile(library, prefix / "lib/libheddle.so.1"), library


def on_path(prefix):
    return {"PATH": f"{prefix}/bin:{os.environ['PATH']}"}


def test_makefile_with_wrappers(prefix, project, languages):
    """The wrappers as compilers, by make's own rules."""
    needs("make")
    programs = " ".join(f"in_{name}" for name in languages)
    (project / "Makefile").write_text(f"CFLAGS = -O2\nCXXFLAGS = -O2\nall: {programs}\n"
                                      "in_fortran: in_fortran.f90\n\t$(FC) $(FFLAGS) $< -o $@\n")
    run("make", "CC=oshcc", "CXX=oshc++", "FC=oshfort", cwd=project, **on_path(prefix))
    check_all_run(prefix, project, languages)


def test_makefile_with_pkg_config(prefix, project, languages):
    """Objects and programs in steps of their own, without the wrappers."""
    needs("make", "pkg-config")
    compilers = {"c": "$(CC)", "cpp": "$(CXX)", "fortran": "gfortran"}
    rules = [f"in_{name}: {FILES[name]}\n\t{compilers[name]} -O2 -c $< $(shell pkg-config --cflags {module}) -o $@.o\n"
             f"\t{compilers[name]} $@.o $(shell pkg-config --libs {module}) -o $@\n"
             for name in languages for module in ["heddle-fortran" if name == "fortran" else "heddle"]]
    (project / "Makefile").write_text("all: " + " ".join(f"in_{name}" for name in languages) + "\n" + "".join(rules))
    run("make", cwd=project, PKG_CONFIG_PATH=f"{prefix}/lib/pkgconfig")
    check_all_run(prefix, project, languages)


def test_meson(prefix, project, languages):
    """dependency('heddle'), which Meson asks pkg-config for."""
    needs("meson", "ninja", "pkg-config")
    modules = {name: "heddle-fortran" if name == "fortran" else "heddle" for name in languages}
    programs = "".join(f"executable('in_{name}', '{FILES[name]}', dependencies: dependency('{modules[name]}'))\n"
                       for name in languages)
    names = ", ".join(f"'{name}'" for name in languages)
    (project / "meson.build").write_text(f"project('ring', {names})\n{programs}")
    run("meson", "setup", "build", f"-Dpkg_config_path={prefix}/lib/pkgconfig", cwd=project)
    run("meson", "compile", "-C", "build", cwd=project)
    check_all_run(prefix, project / "build", languages)


def cmake(prefix, project, languages, found, targets, **variables):
    enabled = " ".join({"c": "C", "cpp": "CXX", "fortran": "Fortran"}[name] for name in languages)
    programs = "".join(f"add_executable(in_{name} {FILES[name]})\n"
                       f"target_link_libraries(in_{name} PRIVATE {targets[name]})\n" for name in languages)
    (project / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.20)\nproject(ring {enabled})\n{found}\n{programs}")
    run("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
        *(f"-D{name}={value}" for name, value in variables.items()))
    run("cmake", "--build", project / "build")
    check_all_run(prefix, project / "build", languages)


def test_cmake(prefix, project, languages):
    cmake(prefix, project, languages, f"find_package(Heddle {VERSION} REQUIRED)",
          {"c": "Heddle::heddle", "cpp": "Heddle::heddle", "fortran": "Heddle::fortran"})


def test_cmake_by_a_general_name(prefix, project):
    cmake(prefix, project, ["c", "cpp"], "find_package(OpenSHMEM 1.4 REQUIRED)",
          {"c": "OpenSHMEM::OpenSHMEM_C", "cpp": "OpenSHMEM::OpenSHMEM_CXX"})


def test_cmake_with_wrappers(prefix, project):
    """No package: the wrappers are the compilers."""
    cmake(prefix, project, ["c", "cpp"], "", {"c": "m", "cpp": "m"}, CMAKE_C_COMPILER=prefix / "bin/oshcc",
          CMAKE_CXX_COMPILER=prefix / "bin/oshc++")

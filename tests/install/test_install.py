"""An installation works: oshcc, oshc++, pkg-config and CMake each build a program that runs, also after the prefix
moved; heddle-info tells what applies; the documentation generated from it is up to date."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from version import VERSION

BUILD = Path(os.environ["HEDDLE_BUILD"])
SOURCE = Path(os.environ["HEDDLE_SOURCE"])

PROGRAM = r"""
#include <shmem.h>
#include <stdio.h>
long value;
int main(void) {
    shmem_init();
    shmem_long_p(&value, 41 + shmem_my_pe(), (shmem_my_pe() + 1) % shmem_n_pes());
    shmem_barrier_all();
    printf("value %ld\n", value);
    shmem_finalize();
    return 0;
}
"""


def run(*command, env=None, cwd=None):
    """Runs a command that must succeed; returns what it printed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, cwd=cwd,
                          env={**os.environ, **(env or {})})
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """An installation, moved after it was made."""
    first = tmp_path_factory.mktemp("installed") / "first place"
    run("cmake", "--install", BUILD, "--prefix", first)
    second = first.with_name("second")
    shutil.move(first, second)
    return second


@pytest.fixture
def program(tmp_path):
    (tmp_path / "hello.c").write_text(PROGRAM)
    (tmp_path / "hello.cpp").write_text(PROGRAM)
    return tmp_path


def check_runs(prefix, executable):
    lines = sorted(run(prefix / "bin/oshrun", "-n", "3", executable).split("\n"))
    assert lines == ["", "value 41", "value 42", "value 43"]


@pytest.mark.parametrize("wrapper,source", [("oshcc", "hello.c"), ("oshc++", "hello.cpp")])
def test_wrapper(prefix, program, wrapper, source):
    run(prefix / "bin" / wrapper, "-O2", source, "-o", "hello", cwd=program)
    check_runs(prefix, program / "hello")


def test_wrapper_in_two_steps(prefix, program):
    run(prefix / "bin/oshcc", "-c", "-O2", "-Wall", "-Werror", "hello.c", cwd=program)
    run(prefix / "bin/oshcc", "hello.o", "-o", "hello", cwd=program)
    check_runs(prefix, program / "hello")


@pytest.mark.parametrize("name", ["a, comma", "it's [a] *\"place\"", "one -dash $HOME"])
def test_a_prefix_of_any_letters(prefix, program, name):
    """Compiled and linked by each wrapper, and by a shell with the flags that it prints."""
    place = shutil.copytree(prefix, program / name, symlinks=True)
    programs = [["oshcc", "-O2", "hello.c"], ["oshcc", "-O1", "-fheddle-races", "hello.c"], ["oshc++", "hello.cpp"]]
    if (place / "bin/oshfort").exists():
        programs.append(["oshfort", SOURCE / "examples/hello.f90"])
    for wrapper, *words in programs:
        run(place / "bin" / wrapper, *words, "-o", "hello", cwd=program)
        assert len(run(place / "bin/oshrun", "-n", "2", "./hello", cwd=program).splitlines()) == 2
    flags = [run(place / "bin/oshcc", f"--showme:{which}").strip() for which in ("compile", "link")]
    run("sh", "-c", f"cc {flags[0]} hello.c {flags[1]} -o shown", cwd=program)
    check_runs(place, program / "shown")
    for option in ([], ["-fheddle-races"]):
        assert run(place / "bin/oshcc", *option, "--showme:incdirs") == f"{place}/include\n"


def test_arguments_with_spaces(prefix, program):
    (program / "a name.c").write_text(PROGRAM.replace("value %ld", '" WORD " %ld'))
    run(prefix / "bin/oshcc", '-DWORD="two words"', "a name.c", "-o", "a program", cwd=program)
    assert "two words 41" in run(program / "a program")


def test_showme(prefix, program):
    compile_flags = run(prefix / "bin/oshcc", "--showme:compile").split()
    link_flags = run(prefix / "bin/oshcc", "--showme:link").split()
    assert f"-I{prefix}/include" in compile_flags and "-lheddle" in link_flags
    shown = run(prefix / "bin/oshcc", "--showme", "-O2", "hello.c", "-o", "hello").split()
    run(*shown, cwd=program)
    check_runs(prefix, program / "hello")


@pytest.mark.parametrize("option", ["-show", "--show", "-showme", "--showme"])
def test_show_prints_the_command_as_a_shell_reads_it(prefix, program, option):
    """Wherever the option stands, and whatever the words hold."""
    (program / "a 'name'.c").write_text(PROGRAM.replace("value %ld", '" WORD " %ld'))
    for words in ([option, "-O2", "a 'name'.c", "-o", "out"], ["-O2", "a 'name'.c", option, "-o", "out"]):
        shown = run(prefix / "bin/oshcc", '-DWORD="two  words"', *words, cwd=program)
        assert shown.count("\n") == 1 and not (program / "out").exists()
        run("sh", "-c", shown, cwd=program)
        assert "two  words 41" in run(program / "out")
        (program / "out").unlink()
    shown = run(prefix / "bin/oshcc", option, "-c", "hello.c", cwd=program, env={"HEDDLE_CC": "ccache  gcc"}
                if shutil.which("ccache") else {"HEDDLE_CC": "env  gcc"})
    assert shown.split()[1] == "gcc" and "-lheddle" not in shown
    assert run(prefix / "bin/oshcc", "-showme:link") == run(prefix / "bin/oshcc", "--showme:link")


def test_version_of_heddle_and_the_compiler(prefix, program):
    for option in ("-v", "--version"):
        done = subprocess.run([prefix / "bin/oshcc", option], capture_output=True, text=True, check=True)
        assert done.stderr.startswith(f"oshcc: Heddle {VERSION}, with "), done
        compiler = done.stderr.splitlines()[0].split()[-1]
        own = subprocess.run([compiler, option], capture_output=True, text=True, check=True)
        assert done.stdout == own.stdout  # build systems read that
    done = subprocess.run([prefix / "bin/oshcc", "-v", "-c", "hello.c"], capture_output=True, text=True, cwd=program)
    assert done.returncode == 0 and "Heddle" not in done.stderr.splitlines()[0]
    assert "HEDDLE_CXX" in run(prefix / "bin/oshc++", "--help")


def test_a_wrapper_of_itself_is_refused(prefix, program):
    done = subprocess.run([prefix / "bin/oshcc", "hello.c"], capture_output=True, text=True, cwd=program, timeout=60,
                          env={**os.environ, "HEDDLE_CC": str(prefix / "bin/oshcc")})
    assert done.returncode == 2 and "is this wrapper itself" in done.stderr


def test_other_compiler(prefix, program):
    clang = shutil.which("clang-19")
    if not clang:
        pytest.skip("no clang-19 on this machine")
    run(prefix / "bin/oshcc", "-O2", "hello.c", "-o", "hello", cwd=program, env={"HEDDLE_CC": clang})
    check_runs(prefix, program / "hello")


def test_a_compiler_of_several_words(prefix, program):
    """As `ccache gcc`; and one whose name has a blank in it."""
    run(prefix / "bin/oshcc", "hello.c", "-o", "hello", cwd=program, env={"HEDDLE_CC": "env  WORD=1 cc -O2"})
    check_runs(prefix, program / "hello")
    (program / "my cc").symlink_to(shutil.which("cc"))
    run(prefix / "bin/oshcc", "hello.c", "-o", "hello", cwd=program, env={"HEDDLE_CC": str(program / "my cc")})
    check_runs(prefix, program / "hello")


def test_verbose(prefix, program):
    """-v by itself asks for the version; beside files it shows the steps, and links all the same."""
    run(prefix / "bin/oshcc", "-v")
    run(prefix / "bin/oshcc", "-v", "hello.c", "-o", "hello", cwd=program)
    check_runs(prefix, program / "hello")


def test_missing_compiler(prefix):
    done = subprocess.run([prefix / "bin/oshcc", "hello.c"], capture_output=True, text=True,
                          env={**os.environ, "HEDDLE_CC": "no-such-compiler"})
    assert done.returncode == 127 and "no compiler no-such-compiler" in done.stderr


def test_pkg_config(prefix, program):
    if not shutil.which("pkg-config"):
        pytest.skip("no pkg-config on this machine")
    flags = run("pkg-config", "--cflags", "--libs", "heddle", env={"PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig"})
    run("cc", "-O2", "hello.c", *flags.split(), "-o", "hello", cwd=program)
    check_runs(prefix, program / "hello")


def test_cmake_package(prefix, program):
    (program / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(hello C)\n"
        f"find_package(Heddle {VERSION} REQUIRED)\n"
        "add_executable(hello hello.c)\ntarget_link_libraries(hello PRIVATE Heddle::heddle)\n")
    run("cmake", "-S", program, "-B", program / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", program / "build")
    check_runs(prefix, program / "build/hello")


def test_info(prefix):
    text = run(prefix / "bin/heddle-info", env={"SMA_SYMMETRIC_SIZE": "64m", "HEDDLE_CHECK": "1"})
    assert "OpenSHMEM 1.6" in text and "memfd: works" in text
    row = next(line for line in text.splitlines() if "SHMEM_SYMMETRIC_SIZE" in line)
    assert "64m" in row and "(SMA_SYMMETRIC_SIZE)" in row
    assert "checked: every operation through the slow path" in text


def test_info_names_a_malformed_setting(prefix):
    done = subprocess.run([prefix / "bin/heddle-info"], capture_output=True, text=True,
                          env={**os.environ, "SHMEM_SYMMETRIC_SIZE": "12Q"})
    assert done.returncode == 1 and "SHMEM_SYMMETRIC_SIZE=12Q is malformed" in done.stderr


def test_gdb(prefix, program):
    """gdb loads what lies beside the library, and the command for core files finds its part."""
    if not shutil.which("gdb"):
        pytest.skip("no gdb on this machine")
    run(prefix / "bin/oshcc", "-g", "hello.c", "-o", "hello", cwd=program)
    wanted = "PE 0 of 1: is initialized\n"
    text = run("gdb", "-batch", "-nx", "-iex", f"add-auto-load-safe-path {prefix}", "-ex", "set width 0",
               "-ex", "break shmem_finalize", "-ex", "run", "-ex", "heddle-status", "-ex", "print (shmem_team_t)0",
               "-ex", "generate-core-file core", program / "hello", cwd=program)
    assert wanted in text and "$1 = SHMEM_TEAM_INVALID" in text, text
    assert wanted in run(prefix / "bin/heddle-status", program / "core")


def test_man_pages(prefix):
    """By the name of any function, from where man looks for the pages of the commands on PATH."""
    pages = prefix / "share/man"
    assert (pages / "man1/oshrun.1").exists() and (pages / "man7/heddle.7").exists()
    assert (pages / "man3/shmem_ctx_long_put.3").read_text() == ".so man3/shmem_put.3\n"
    if not shutil.which("man"):
        pytest.skip("no man on this machine")
    text = run("man", "shmem_ctx_long_put", env={
        "PATH": f"{prefix}/bin:{os.environ['PATH']}", "MANPATH": "", "MANPAGER": "cat", "MANWIDTH": "100"})
    assert "SHMEM_PUT(3)" in text


def test_documented_settings(prefix):
    expected = (SOURCE / "docs/user/settings.md").read_text()
    assert run(prefix / "bin/heddle-info", "--settings-markdown") == expected, "docs/user/settings.md is out of date"

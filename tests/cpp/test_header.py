"""shmem.hpp compiles alone and strictly, says what it needs, stays short, is installed, and ends a
job that an exception leaves."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ["HEDDLE_BUILD"])
SOURCE = Path(os.environ["HEDDLE_SOURCE"])
HEADERS = [SOURCE / "include/shmem.hpp", *sorted((SOURCE / "include/heddle/cpp").glob("*.hpp"))]
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-pedantic-errors", "-Wshadow", "-Wconversion", "-Wundef", "-Werror"]


def compile_text(text, compiler="g++", standard="c++20", flags=()):
    command = [compiler, f"-std={standard}", "-x", "c++", f"-I{SOURCE}/include", *flags, "-fsyntax-only", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("compiler,header", [*(("g++", header) for header in HEADERS), ("clang++-19", HEADERS[0])])
def test_a_header_compiles_alone(compiler, header):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} on this machine")
    done = compile_text(f'#include "{header}"\n' * 2, compiler, flags=STRICT)
    assert done.returncode == 0, done.stderr


def test_it_stays_thin():
    assert sum(len(header.read_text().splitlines()) for header in HEADERS) < 800


@pytest.mark.parametrize("standard,flags", [("c++17", []), ("c++20", ["-fno-exceptions"])])
def test_what_it_needs_is_said(standard, flags):
    done = compile_text("#include <shmem.hpp>\n", standard=standard, flags=flags)
    assert done.returncode != 0 and "shmem.hpp needs C++20, and exceptions" in done.stderr


@pytest.mark.parametrize("pes", [1, 3])
def test_an_exception_of_one_pe_ends_the_job(pes):
    done = subprocess.run([BUILD / "bin/oshrun", "-n", str(pes), BUILD / "tests/cpp/unwinding_gcc"],
                          capture_output=True, text=True, timeout=600)
    said = f"heddle [pe {pes - 1}] shmem::environment: an exception leaves its scope: ending the job\n"
    assert done.returncode == 1 and said in done.stderr and done.stdout == "", done


def test_installed(tmp_path):
    subprocess.run(["cmake", "--install", BUILD, "--prefix", tmp_path / "prefix"], check=True, capture_output=True,
                   timeout=600)
    subprocess.run([tmp_path / "prefix/bin/oshc++", "-std=c++20", "-O2", SOURCE / "examples/tasks.cpp", "-o",
                    tmp_path / "made"], check=True, timeout=600)
    done = subprocess.run([tmp_path / "prefix/bin/oshrun", "-n", "3", tmp_path / "made"], capture_output=True,
                          text=True, timeout=600)
    assert done.stdout == "tasks: pass on 3 PEs\n", done

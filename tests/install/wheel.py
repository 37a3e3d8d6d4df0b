#!/usr/bin/env python3
"""A user with pip: installs a wheel of Heddle in a fresh environment and uses it, in Python and in C.

    wheel.py WHEEL [PYTHON]    prints each step and its time; exit 0: all did what they should

The environment has nothing else and nothing is set; the folder in which the wheel was made is not there for it. PYTHON:
the interpreter, by default the one that runs this.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parents[1] / "python"
HELLO = """\
import heddle

heddle.init()
me, n = heddle.my_pe(), heddle.n_pes()
inbox = heddle.zeros(1, "i8")
heddle.p(inbox, me, (me + 1) % n)
heddle.barrier_all()
print(f"PE {me} of {n}: {inbox[0]} is to my left")
heddle.finalize()
"""
HELLO_C = """\
#include <shmem.h>
#include <stdio.h>

int main(void) {
    shmem_init();
    printf("PE %d of %d\\n", shmem_my_pe(), shmem_n_pes());
    shmem_finalize();
    return 0;
}
"""


class Environment:
    def __init__(self, folder: Path):
        self.folder, self.bin, self.steps = folder, folder / "environment/bin", []
        self.variables = {key: value for key, value in os.environ.items()
                          if not key.startswith(("HEDDLE_", "SHMEM_", "PYTHON", "VIRTUAL_ENV"))}
        self.variables["PATH"] = f"{self.bin}:{os.environ['PATH']}"

    def step(self, what: str, *command: str | Path) -> str:
        before = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, env=self.variables, timeout=600)
        if done.returncode != 0:
            raise SystemExit(f"wheel.py: {what}: {' '.join(map(str, command))} has failed:\n{done.stdout}{done.stderr}")
        print(f"{time.monotonic() - before:6.1f} s  {what}")
        return done.stdout + done.stderr


def wants(what: str, text: str, right: bool) -> None:
    if not right:
        raise SystemExit(f"wheel.py: {what}: this is wrong:\n{text}")


def try_out(environment: Environment, wheel: Path, python: str) -> None:
    step, folder = environment.step, environment.folder
    step("python -m venv", python, "-m", "venv", "environment")
    step(f"pip install {wheel.name}", environment.bin / "pip", "install", "--quiet", "--no-cache-dir", wheel)
    (folder / "hello.py").write_text(HELLO)
    (folder / "hello.c").write_text(HELLO_C)
    said = step("oshrun -n 4 python hello.py", "oshrun", "-n", "4", "python", "hello.py")
    wants("hello.py", said, sorted(said.splitlines()) == [f"PE {me} of 4: {(me + 3) % 4} is to my left"
                                                          for me in range(4)])
    step("oshcc hello.c", "oshcc", "-Wall", "-Werror", "hello.c", "-o", "hello")
    said = step("oshrun -n 4 ./hello", "oshrun", "-n", "4", "./hello")
    wants("hello.c", said, sorted(said.splitlines()) == [f"PE {me} of 4" for me in range(4)])
    for name in ("families", "objects", "errors", "restart"):
        said = step(f"oshrun -n 2 python {name}_program.py", "oshrun", "-n", "2", "python",
                    PROGRAMS / f"{name}_program.py")
        wants(name, said, said.startswith(f"{name}: pass on 2 PEs"))
    step("oshc++ hello.c", "oshc++", "-x", "c++", "hello.c", "-o", "hello++")
    said = step("heddle-info --check", "heddle-info", "--check")
    wants("heddle-info", said, "found nothing wrong" in said)
    libraries = {}
    for name in ("libheddle_ucx.so", "libheddle_pmix.so"):
        file = next((folder / "environment").glob(f"lib/python*/site-packages/heddle/native/lib/{name}"), None)
        libraries[name] = "in the wheel" if file else "not in the wheel"
    print("          " + ", ".join(f"{name}: {there}" for name, there in libraries.items()))
    refused = subprocess.run(["shmem-mt", "--version"], capture_output=True, text=True, env=environment.variables)
    wants("shmem-mt without its extra", refused.stderr, "pip install 'heddle[bench]'" in refused.stderr)
    step("pip install 'heddle[bench]'", environment.bin / "pip", "install", "--quiet", f"{wheel}[bench]")
    step("shmem-mt list", "shmem-mt", "list")
    moved = folder / "elsewhere"
    shutil.copytree(folder / "environment", moved, symlinks=True)
    shutil.rmtree(folder / "environment")
    native = next(moved.glob("lib/python*/site-packages/heddle/native"))
    said = step("the same, moved elsewhere", native / "bin/oshrun", "-n", "2", moved / "bin/python", "hello.py")
    wants("hello.py, moved", said, len(said.splitlines()) == 2)
    step("oshcc, moved elsewhere", native / "bin/oshcc", "hello.c", "-o", "moved")
    step("its program", native / "bin/oshrun", "-n", "2", "./moved")


def main() -> int:
    wheel, python = Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else sys.executable
    version = subprocess.run([python, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    wants("the oldest C library", wheel.name, "-manylinux_2_28_" in wheel.name)
    print(f"{wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB, with {version}")
    with tempfile.TemporaryDirectory() as folder:
        try_out(Environment(Path(folder)), wheel, python)
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())

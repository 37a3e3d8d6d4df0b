"""The commands of an installed wheel: oshrun, oshcc and their kin, which lie in the package, become this process."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import NoReturn


def _become(name: str) -> NoReturn:
    program = Path(__file__).resolve().parent / "native/bin" / name
    if not program.exists():
        sys.exit(f"{name}: there is no {program}: the heddle package is not installed from a wheel")
    os.execv(program, [str(program), *sys.argv[1:]])


def oshrun() -> NoReturn:
    """Starts the PEs of a job."""
    _become("oshrun")


def oshcc() -> NoReturn:
    """Compiles and links C programs."""
    _become("oshcc")


def oshcxx() -> NoReturn:
    """Compiles and links C++ programs."""
    _become("oshc++")


def heddle_info() -> NoReturn:
    """Says what the installation has."""
    _become("heddle-info")


def heddle_status() -> NoReturn:
    """Says where the threads of a core file were."""
    _become("heddle-status")


def shmem_mt() -> None:
    """SHMEM-MT, the benchmark suite, whose own needs the extra `bench` has."""
    try:
        commands = importlib.import_module("shmem_mt.cli")
    except ImportError as error:
        sys.exit(f"shmem-mt: there is no {error.name}: pip install 'heddle[bench]'")
    commands.entry()

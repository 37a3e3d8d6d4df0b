#!/usr/bin/env python3
"""Checks that the code which switches stacks never claims to know shadow stacks, also where the compiler's default
claims it for all code: a thread would die at the first return of a fiber. One object that does not claim it is enough
for the library not to.

    shadow_stack.py BUILD SOURCE LIBRARY    exit 0: it does not; 1: it does; 77: this compiler has no such claim
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

CLAIMS_ALL = "-fcf-protection=full"  # the default of some distributions' compilers


def notes(file: Path) -> str:
    return subprocess.run(["readelf", "-n", file], check=True, capture_output=True, text=True).stdout


def compiled(arguments: list[str], folder: str, source: Path, to: Path) -> str:
    """The notes of source, compiled as the build does, but by a compiler that claims all by default."""
    how = arguments[:]
    how[how.index("-o") + 1] = str(to)
    how[how.index("-c") + 1] = str(source)
    program = next(i for i, word in enumerate(how) if "ccache" not in Path(word).name)
    subprocess.run([*how[:program + 1], CLAIMS_ALL, *how[program + 1:]], cwd=folder, check=True)
    return notes(to)


def main() -> int:
    build, source, library = (Path(word).resolve() for word in sys.argv[1:])
    entries = json.loads((build / "compile_commands.json").read_text())
    mine = [entry for entry in entries
            if Path(entry["file"]).resolve() == source and "heddle_core.dir" in entry["command"]]
    other = next(entry for entry in entries if Path(entry["file"]).name == "sequence.cpp")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        empty = folder / "empty.cpp"
        empty.write_text("int nothing() { return 0; }\n")
        try:
            control = compiled(shlex.split(other["command"]), other["directory"], empty, folder / "empty.o")
        except subprocess.CalledProcessError:
            print(f"skipped: the compiler does not know {CLAIMS_ALL}")
            return 77
        if "SHSTK" not in control:
            print(f"skipped: {CLAIMS_ALL} leaves no note")
            return 77
        wrong = [str(source) for entry in mine
                 if "SHSTK" in compiled(shlex.split(entry["command"]), entry["directory"], source, folder / "it.o")]
    if "SHSTK" in notes(library):
        wrong.append(str(library))
    for what in wrong:
        print(f"{what}: claims to know shadow stacks, but switches stacks without them")
    if not mine:
        print(f"{source} is not compiled by {build}")
    return 1 if wrong or not mine else 0


if __name__ == "__main__":
    sys.exit(main())

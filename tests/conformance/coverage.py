"""Every function of api/openshmem.toml and shmemx.toml must be called by the program that families.py names for it.

    coverage.py BIN RECORDER OSHRUN WAY      BIN holds conformance_<program>_WAY, and _generic where there are tables

Runs each program on two PEs under the recorder (recorder.py), then prints each function not called, and exits 1. WAY is
calls, or inline: then the recorder is a tool that the programs were not compiled for (tests/interposition).
The programs of the generics also check, call by call, that the generic reached the function of the right type.
"""

import pathlib
import subprocess
import sys
import tempfile

from families import FAMILIES, TABLE_PROGRAMS
from make_tables import all_families
from recorder import functions

EXPECTED_STATUS = {"global_exit": 7}
ARGUMENTS = {"global_exit": ["7"]}


def run(oshrun, recorder, program, arguments, status, folder):
    """The names that the program called; exits when it fails."""
    record = folder / program.name
    command = [oshrun, "-n", "2", "--timeout", "600", "--env", f"HEDDLE_TEST_RECORD={record}",
               "--env", f"LD_PRELOAD={recorder}", str(program), *arguments]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, check=False)
    if result.returncode != status:
        sys.exit(f"{program.name} under the recorder: status {result.returncode}, right would be {status}")
    called = record.read_bytes()
    return {function.name for i, function in enumerate(functions()) if called[i]}


def expected_by_program(families):
    """Program -> names that it must call."""
    expected = {}
    for name, (program, _) in FAMILIES.items():
        expected.setdefault(program, set()).update(f.name for f in families[name].every())
    return expected


def expected_of_generics(families, program):
    """The functions that a program's generics reach: one for each distinct type."""
    names = set()
    for name, (owner, table) in FAMILIES.items():
        family = families[name]
        if owner == program and table and family.generic and family.types:
            names.update(function.name for form in family.forms() for _, function in family.choices(form))
    return names


def main():
    binaries, recorder, oshrun, way = pathlib.Path(sys.argv[1]), *sys.argv[2:]
    families = all_families()
    missing = []
    with tempfile.TemporaryDirectory() as folder:
        for program, names in expected_by_program(families).items():
            file = binaries / f"conformance_{program}_{way}"
            if not file.exists():  # a program that calls nothing that is inlined
                file = binaries / f"conformance_{program}_calls"
            called = run(oshrun, recorder, file, ARGUMENTS.get(program, []), EXPECTED_STATUS.get(program, 0),
                         pathlib.Path(folder))
            missing += [f"{program}: {name}" for name in sorted(names - called)]
        for program in TABLE_PROGRAMS:
            if way != "calls" or not expected_of_generics(families, program):
                continue
            called = run(oshrun, recorder, binaries / f"conformance_{program}_generic", [], 0, pathlib.Path(folder))
            missing += [f"{program}, by generics: {name}"
                        for name in sorted(expected_of_generics(families, program) - called)]
    if missing:
        sys.exit("not called by their tests:\n  " + "\n  ".join(missing))
    print(f"{len(functions())} functions, each called by its test")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes docs/coverage.md: every function of the tables in api, with the conformance program that calls it, and every
setting, with the tests that name it.

    write_coverage.py            writes it
    write_coverage.py --check    exits 1 when it is not what would be written

Both exit 1 when no test names a setting. That the program calls the function, coverage.py checks when the tests run.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "api")]
import generate  # noqa: E402
from families import BODIES, FAMILIES  # noqa: E402
from make_tables import all_families  # noqa: E402

DOCUMENT = ROOT / "docs" / "coverage.md"
SETTINGS = ROOT / "src" / "base" / "settings.def"
SHOWN = 4  # files of a setting
OF_ALL_SETTINGS = {"unit/base/settings_test.cpp", "errors/test_settings.py", "errors/init_only.cpp"}
HEAD = """# Every function and setting, and the test of each

Written by `tests/conformance/write_coverage.py` from the tables in `api` and `tests/conformance/families.py`; the test
`conformance.coverage` sees each of the {functions} functions being called by the program named here, under a library
that records calls, and each generic name reaching the function of the right type. Every function has a `pshmem_` or
`pshmemx_` twin.

| | |
|---|---|
| functions | {functions}, in {families} families |
| inlined into the caller (and exported as well) | {inlined} |
| exported | {exported} |
| deprecated | {deprecated} |
| type-generic names, in C11 and C++ | {generics} |
| new in OpenSHMEM 1.6 | {new} |
| of `shmemx.h` | {ours} |
| without a test | {untested} |
"""
HEAD_OF_SETTINGS = """
## Settings

The files of `tests` that name a setting. What holds for all settings (types, wrong values, misspelt names) is in
`unit/base/settings_test.cpp` and `errors/test_settings.py`.

| setting | tests |
|---|---|
"""


def tests_of_settings():
    """Setting -> files below tests/ that name it, by path; without those of all settings."""
    names = re.findall(r'^(?:SETTING|CHOICE)\(\w+, \w+, "(\w+)"', SETTINGS.read_text(), re.M)
    files = {name: [] for name in names}
    for file in sorted((ROOT / "tests").rglob("*")):
        path = file.relative_to(ROOT / "tests").as_posix()
        if file.suffix in (".py", ".c", ".h", ".cpp", ".cmake", ".txt", ".table") and path not in OF_ALL_SETTINGS:
            for name in files.keys() & re.findall(r"\b(?:HEDDLE|SHMEM)_[A-Z_]+\b", file.read_text()):
                files[name].append(path)
    return files


def settings_section():
    found = tests_of_settings()
    if untested := [name for name, files in found.items() if not files]:
        sys.exit(f"no test names the setting {', '.join(untested)}: each setting has a test")
    lines = [f"| `{name}` | {', '.join(files[:SHOWN])}{', …' * (len(files) > SHOWN)} |"
             for name, files in found.items()]
    return HEAD_OF_SETTINGS + "\n".join(lines) + "\n"


def rows(family, program):
    """One line for each function of a family."""
    how = "inlined" if family.row.get("inline") else "exported"
    old = "deprecated" if family.deprecated else ""
    since = family.row.get("since", "extension")
    return [f"| `{function.name}` | {since} | {old} | {how} | {program} |" for function in family.every()]


def document():
    sections = [section for table in generate.TABLES for section in generate.load(table)]
    order = iter(FAMILIES[name][0] for name in all_families())  # both in the table's order
    lines, count = [], {"inlined": 0, "exported": 0, "deprecated": 0, "new": 0, "families": 0, "untested": 0, "ours": 0}
    for title, families in sections:
        lines += ["", f"## {title}", "", "| function | since | | | test |", "|---|---|---|---|---|"]
        for family in families:
            program = next(order)
            functions = rows(family, program)
            lines += functions
            count["families"] += 1
            count["inlined" if family.row.get("inline") else "exported"] += len(functions)
            count["deprecated"] += len(functions) if family.deprecated else 0
            count["new"] += len(functions) if family.row.get("since") == "1.6" else 0
            count["ours"] += 0 if "since" in family.row else len(functions)
            count["untested"] += 0 if list(HERE.glob(f"*/{BODIES.get(program, program)}.cpp")) else len(functions)
    count["functions"] = count["inlined"] + count["exported"]
    count["generics"] = len(generate.by_generic(sections))
    return HEAD.format(**count) + "\n".join(lines) + "\n" + settings_section()


def main():
    text = document()
    if sys.argv[1:] == ["--check"]:
        if not DOCUMENT.exists() or DOCUMENT.read_text() != text:
            sys.exit("docs/coverage.md is out of date: run tests/conformance/write_coverage.py")
        return
    DOCUMENT.write_text(text)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes docs/coverage.md: every function of the tables in api, and the conformance program that calls it.

    write_coverage.py            writes it
    write_coverage.py --check    exits 1 when it is not what would be written

That the program calls the function is checked when the tests run (coverage.py).
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
import generate  # noqa: E402  (make_tables.py put api/ on the path)
from families import BODIES, FAMILIES  # noqa: E402
from make_tables import all_families  # noqa: E402

DOCUMENT = ROOT / "docs" / "coverage.md"
HEAD = """# Every function, and the test that calls it

Written by `tests/conformance/write_coverage.py` from the tables in `api` and `tests/conformance/families.py`; the test
`conformance.coverage` sees each of the {functions} functions being called by the program named here, under a library that
records calls, and each generic name reaching the function of the right type. Every function has a `pshmem_` or
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


def rows(family, program):
    """One line for each function of a family."""
    how = "inlined" if family.row.get("inline") else "exported"
    old = "deprecated" if family.deprecated else ""
    since = family.row.get("since", "ours")
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
            count["untested"] += 0 if (HERE / f"{BODIES.get(program, program)}.cpp").exists() else len(functions)
    count["functions"] = count["inlined"] + count["exported"]
    count["generics"] = len(generate.by_generic(sections))
    return HEAD.format(**count) + "\n".join(lines) + "\n"


def main():
    text = document()
    if sys.argv[1:] == ["--check"]:
        if not DOCUMENT.exists() or DOCUMENT.read_text() != text:
            sys.exit("docs/coverage.md is out of date: run tests/conformance/write_coverage.py")
        return
    DOCUMENT.write_text(text)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""docs/conformance.md: every requirement of the standard has a test, and every test named there is one.

    conformance_page.py ROOT          exit 0: all holds; 1: not, with each case
    conformance_page.py --self-test   plants faults in a small page and wants each one found

A table whose last column is "Held by" has requirements as rows. Each names one test or several, `path:NAME`: the file
is there, is part of the build, and has NAME in it. A row that begins with the number of a section belongs to it, and
those that begin with nothing to the one above. Every section of OpenSHMEM 1.6 has a row, and every family of
api/openshmem.toml has its name on the page.
"""

from __future__ import annotations

import re
import sys
import tempfile
import tomllib
from pathlib import Path

PAGE = "docs/conformance.md"


def numbered(chapter: str, count: int) -> list[str]:
    return [f"{chapter}.{i}" for i in range(1, count + 1)]


# The table of contents.
SECTIONS = [
    *map(str, range(1, 9)), *numbered("3", 2), *numbered("4", 2), "9", *numbered("9", 13), *numbered("9.1", 13),
    *numbered("9.2", 2), *numbered("9.3", 6), *numbered("9.4", 8), *numbered("9.5", 4), *numbered("9.6", 2),
    *numbered("9.6.1", 8), *numbered("9.6.2", 2), *numbered("9.7", 2), *numbered("9.7.1", 14), *numbered("9.7.2", 8),
    *numbered("9.8", 7), *numbered("9.9", 3), *numbered("9.10", 10), *numbered("9.10.9", 7), *numbered("9.11", 15),
    *numbered("9.12", 4), "9.13.1", "10", *numbered("10", 3), "10.1.1", *numbered("10.2", 2), *numbered("10.3", 3),
    *"ABCDEFGH", *numbered("B", 2), "D.1", *numbered("D.1", 6), *numbered("F", 2),
]


def rows(page: str) -> list[tuple[int, str, list[str]]]:
    """(line, section, cells) of each row of the tables whose last column is "Held by"."""
    found, inside, section = [], False, ""
    for number, line in enumerate(page.splitlines(), 1):
        if not line.startswith("|"):
            inside = False
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if cells[-1] == "Held by":
            inside, section = True, ""
        elif inside and not set(line) <= set("|-: "):
            section = cells[0].split(" ")[0] or section
            found.append((number, section, cells))
    return found


def cmake_of(root: Path, file: Path) -> str:
    """What CMake is told in the file's folder and in those above it, below tests/ or the root; without comments."""
    text, folder = "", file.parent
    while folder != root / "tests" and root in folder.parents:
        for name in sorted(folder.glob("CMakeLists.txt")) + sorted(folder.glob("*.cmake")):
            text += re.sub(r"#.*", "", name.read_text())
        folder = folder.parent
    return text


def is_built(root: Path, file: Path) -> bool:
    cmake = cmake_of(root, file)
    if file.name == "CMakeLists.txt":
        return True
    if file.name.startswith("test_") and file.suffix == ".py":
        return "pytest" in cmake
    if re.search(rf"(?<![\w-]){re.escape(file.stem)}(?![\w-])", cmake):
        return True
    collected = [*file.parent.glob("test_*.py"), *file.parent.parent.glob("test_*.py")]
    return "pytest" in cmake and any(re.search(rf"\b{re.escape(file.stem)}\b", test.read_text()) for test in collected)


def wrong_reference(root: Path, reference: str) -> str:
    """Why `path:NAME` is no test; empty when it is one."""
    path, _, name = reference.partition(":")
    file = root / path
    if not name or not path.startswith(("tests/", "examples/")):
        return "is not path:NAME of something in tests/ or examples/"
    if not file.is_file():
        return "names a file that is not there"
    if not is_built(root, file):
        return "names a file that the build does not know"
    if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", file.read_text()):
        return "names something that the file does not have"
    return ""


def wrong_row(root: Path, line: int, cells: list[str]) -> list[str]:
    references = re.findall(r"`([^`]+)`", cells[-1])
    if any("TODO" in cell for cell in cells) or not references:
        return [f"{PAGE}:{line}: no test holds this row"]
    reasons = {reference: wrong_reference(root, reference) for reference in references}
    return [f"{PAGE}:{line}: {reference} {why}" for reference, why in reasons.items() if why]


def violations(root: Path, sections: list[str]) -> list[str]:
    page = (root / PAGE).read_text()
    table = tomllib.loads((root / "api/openshmem.toml").read_text())
    found, have = [], set()
    for line, section, cells in rows(page):
        have.add(section)
        found += wrong_row(root, line, cells)
        if section not in sections:
            found.append(f"{PAGE}:{line}: there is no section {section!r}")
    found += [f"{PAGE}: section {section} has no row" for section in sections if section not in have]
    families = {family["name"] for section in table["section"] for family in section["family"]}
    found += [f"{PAGE}: {name} is not on the page" for name in sorted(families) if f"`{name}`" not in page]
    return found


RIGHT_PAGE = """# Page
| § | Requires | Held by |
|---|---|---|
| 1 Begin | `shmem_one`: a thing \\| another | `tests/a/first.cpp:check_it`, `examples/fourth.c:main`, \
`tests/b/test_second.py:test_that` |
| | more | `tests/b/third.c:main` |
| 1.1 Inner | `shmem_two` | `tests/a/first.cpp:check_it` |

| no | requirement |
|---|---|
| 7 | here |
"""
TREE = {
    "api/openshmem.toml": '[[section]]\n[[section.family]]\nname = "shmem_one"\n'
                          '[[section.family]]\nname = "shmem_two"\n',
    "tests/a/CMakeLists.txt": "program(first)\n# orphan\n",
    "tests/a/first.cpp": "void check_it() {}\n",
    "tests/a/orphan.cpp": "void check_it() {}\n",
    "tests/b/CMakeLists.txt": "add_test(COMMAND pytest)\n",
    "tests/b/test_second.py": "def test_that():\n    run('third')\n",
    "tests/b/third.c": "int main(void);\n",
    "examples/CMakeLists.txt": "program(fourth)\n",
    "examples/fourth.c": "int main(void);\n",
    "src/first.cpp": "void check_it() {}\n",
}
FAULTS = {  # what stands there -> what is put there
    "a row without a test": ("`tests/b/third.c:main`", "by reading"),
    "an open row": ("`tests/b/third.c:main`", "`tests/b/third.c:main` TODO(me)"),
    "a row that is open elsewhere": ("| more |", "| TODO(me) more |"),
    "a file that is not there": ("third.c", "fifth.c"),
    "a file that is not built": ("first.cpp:check_it`, ", "orphan.cpp:check_it`, "),
    "a name that is not there": ("test_that", "test_this"),
    "a part of a name": ("test_that", "test_tha"),
    "no name": ("third.c:main", "third.c"),
    "a file outside tests": ("tests/a/first.cpp:check_it` |\n\n", "src/first.cpp:check_it` |\n\n"),
    "a family that is missing": ("`shmem_two`", "shmem_two"),
    "a section that is missing": ("| 1.1 Inner", "| "),
    "a section that is none": ("| 1.1 Inner", "| 1.2 Inner"),
}


def self_test() -> list[str]:
    missed = []
    for name, (old, new) in {"nothing wrong": ("", ""), **FAULTS}.items():
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            page = RIGHT_PAGE.replace(old, new, 1) if old else RIGHT_PAGE
            for place, text in {**TREE, PAGE: page}.items():
                (root / place).parent.mkdir(parents=True, exist_ok=True)
                (root / place).write_text(text)
            found = violations(root, ["1", "1.1"])
            if bool(found) != (name in FAULTS) or (old and page == RIGHT_PAGE):
                missed.append(f"{name}: {found or 'missed'}")
    return missed


def main() -> int:
    wrong = self_test() if sys.argv[1:] == ["--self-test"] else violations(Path(sys.argv[1]).resolve(), SECTIONS)
    print("\n".join(wrong) or "ok")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""ARCHITECTURE.md's map and the tree agree.

    architecture_map.py ROOT          exit 0: the section "What lives where" names each folder at the top, each folder
                                      of src/ and its layers, each folder of tests/, each folder of docs/ and each page
                                      of these, and names none that is not there; and docs/decisions/README.md has each
                                      decision; 1: not, with each case
    architecture_map.py --self-test   plants each kind of violation in a small tree and wants it found
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

NOT_OURS = {"build", "report", "__pycache__", "node_modules"}


def folders(path: Path) -> list[str]:
    return sorted(at.name for at in path.iterdir()
                  if at.is_dir() and at.name not in NOT_OURS and not at.name.startswith(".") and any(at.iterdir()))


def paragraphs(root: Path) -> dict[str, str]:
    """The map: what is said of each folder, by its path as the map has it."""
    section = (root / "ARCHITECTURE.md").read_text().split("## What lives where\n")[1].split("\n## ")[0]
    found: dict[str, str] = {}
    last = ""
    for line in section.splitlines():
        if match := re.match(r"    (\S+/)\s+(.*)", line):
            last = match.group(1).rstrip("/")
            found[last] = match.group(2)
        elif last:
            found[last] += " " + line.strip()
    return found


def violations(root: Path) -> list[str]:
    there = paragraphs(root)
    wrong = [f"{name}/ is in the map and not in the tree" for name in there if not (root / name).is_dir()]
    tops = {name.split("/")[0] for name in there}
    wrong += [f"{name}/ is not in the map" for name in folders(root) if name not in tops]
    for name in folders(root / "src"):
        said = there.get(f"src/{name}")
        if said is None:
            wrong.append(f"src/{name}/ is not in the map")
            continue
        wrong += [f"src/{name}/{layer}/ is not in its paragraph of the map" for layer in folders(root / "src" / name)
                  if f"{layer}/" not in said]
    inside = {"tests": [f"{name}/" for name in folders(root / "tests")]}
    for folder in [root / "docs", *(root / "docs" / name for name in folders(root / "docs") if name != "decisions")]:
        inside[str(folder.relative_to(root))] = [page.stem for page in sorted(folder.glob("*.md"))]
    for name, parts in inside.items():
        said = there.get(name, "")
        wrong += [f"{name}/: {part} is not in its paragraph of the map" for part in parts
                  if not re.search(rf"(?<![\w/-]){re.escape(part)}(?![\w-])", said)]
        wrong += [f"{name}/: {part} is in the map and not in the tree" for part in re.findall(r"(?<![\w/])(\w+/)", said)
                  if not (root / name / part).is_dir()]
    decisions = root / "docs/decisions"
    index = (decisions / "README.md").read_text()
    wrong += [f"docs/decisions/README.md lacks {page.name}" for page in sorted(decisions.glob("[0-9]*.md"))
              if f"({page.name})" not in index]
    return wrong


def self_test() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("src/fabric/endpoint", "tests/unit", "docs/decisions", "docs/user"):
            (root / name).mkdir(parents=True)
        for name in ("src/fabric/endpoint/a.h", "tests/unit/a.cpp", "docs/memory-model.md", "docs/user/order.md"):
            (root / name).write_text("")
        (root / "docs/decisions/0001-a.md").write_text("")
        (root / "docs/decisions/README.md").write_text("| [0001](0001-a.md) |\n")
        right = ("# A\n\n## What lives where\n\n    src/fabric/  endpoint/: streams\n    tests/       unit/ mirrors\n"
                 "                 src\n    docs/        memory-model\n    docs/user/   order\n\n## Other\n")
        (root / "ARCHITECTURE.md").write_text(right)
        assert violations(root) == [], violations(root)
        for before, after, wanted in [("endpoint/: streams", "streams", "src/fabric/endpoint/ is not in its paragraph"),
                                      ("unit/ mirrors", "mirrors", "tests/: unit/ is not in its paragraph"),
                                      ("unit/ mirrors", "unit/ gone/", "tests/: gone/ is in the map"),
                                      ("memory-model", "memory", "docs/: memory-model is not in its paragraph"),
                                      ("order\n", "reorder\n", "docs/user/: order is not in its paragraph"),
                                      ("    src/fabric/", "    src/fabrik/", "src/fabric/ is not in the map"),
                                      ("    src/fabric/", "    src/fabrik/", "src/fabrik/ is in the map")]:
            (root / "ARCHITECTURE.md").write_text(right.replace(before, after))
            assert any(wanted in one for one in violations(root)), (wanted, violations(root))
        (root / "docs/decisions/0002-b.md").write_text("")
        assert any("lacks 0002-b.md" in one for one in violations(root)), violations(root)


if __name__ == "__main__":
    if sys.argv[1] == "--self-test":
        self_test()
    else:
        cases = violations(Path(sys.argv[1]))
        print("\n".join(cases))
        sys.exit(1 if cases else 0)

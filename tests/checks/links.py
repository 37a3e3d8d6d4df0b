#!/usr/bin/env python3
"""Links between pages, and mentions of pages in sources, lead somewhere.

    links.py ROOT          exit 0: each relative link of a page is a file or folder, each anchor a heading of its page;
                           each docs/NAME.md and docs/decisions/NNNN that any text mentions is there; 1: not, with each
                           case
    links.py --self-test   plants each kind of dead link in a small tree and wants it found
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

TEXT = {".md", ".c", ".cpp", ".h", ".hpp", ".def", ".py", ".sh", ".toml", ".cmake", ".txt", ".json", ".pml", ".in"}
LINK = re.compile(r"\]\(([^)\s]+)\)")
MENTION = re.compile(r"(?<![\w/.-])((?:shmem-mt/)?docs/(?!decisions/NNNN)[\w/-]+\.md)")
DECISION = re.compile(r"docs/decisions/(\d{4})(?![\w-])")


def tracked(root: Path) -> list[Path]:
    """The files under version control, new ones too; all of them where there is no git."""
    result = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True)
    names = result.stdout.split("\0") if result.returncode == 0 else [str(p.relative_to(root)) for p in root.rglob("*")]
    return [root / name for name in names if name and (root / name).is_file() and (root / name).suffix in TEXT]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)
    headings = re.findall(r"^#+ (.*)$", prose, flags=re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def dead_links(root: Path, page: Path) -> list[str]:
    wrong = []
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)
    for link in LINK.findall(prose):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            wrong.append(f"{page.relative_to(root)}: ({link}) is not there")
        elif anchor and anchor not in anchors(target):
            wrong.append(f"{page.relative_to(root)}: ({link}): there is no such heading")
    return wrong


def violations(root: Path) -> list[str]:
    decisions = {page.name[:4] for page in (root / "docs/decisions").glob("[0-9]*.md")}
    wrong: list[str] = []
    for file in tracked(root):
        text = file.read_text(errors="replace")
        if file.suffix == ".md":
            wrong += dead_links(root, file)
        if file.parent == root / "tests/checks":  # their self-tests plant names
            continue
        wrong += [f"{file.relative_to(root)}: {name} is not there" for name in sorted(set(MENTION.findall(text)))
                  if not (root / name).exists() and not (file.parent / name).exists()]
        wrong += [f"{file.relative_to(root)}: there is no decision {number}"
                  for number in sorted(set(DECISION.findall(text)) - decisions)]
    return wrong


def self_test() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "docs/decisions").mkdir(parents=True)
        (root / "docs/decisions/0001-a.md").write_text("# A\n")
        (root / "docs/b.md").write_text("# The b\n")
        right = "[b](docs/b.md#the-b) [a](docs/decisions) see docs/b.md and docs/decisions/0001\n"
        (root / "README.md").write_text(right)
        assert violations(root) == [], violations(root)
        for before, after, wanted in [("docs/b.md#", "docs/c.md#", "(docs/c.md#the-b) is not there"),
                                      ("#the-b", "#a-b", "there is no such heading"),
                                      ("see docs/b.md", "see docs/d.md", "docs/d.md is not there"),
                                      ("0001", "0002", "there is no decision 0002")]:
            (root / "README.md").write_text(right.replace(before, after))
            assert any(wanted in one for one in violations(root)), (wanted, violations(root))


if __name__ == "__main__":
    if sys.argv[1] == "--self-test":
        self_test()
    else:
        cases = violations(Path(sys.argv[1]).resolve())
        print("\n".join(cases))
        sys.exit(1 if cases else 0)

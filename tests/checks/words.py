#!/usr/bin/env python3
"""The glossary and the code agree.

    words.py ROOT          exit 0: every term of docs/internals/glossary.md is used in src/; no word of its table
                           "Replaced" is part of the name of a file or a type; and every other word of such a name is a
                           term of the glossary or a word of vocabulary.txt; 1: not, with each case

vocabulary.txt has the words that need no explanation: plain English, C++, Linux, OpenSHMEM. A name that brings a new
word adds it there, or, where a stranger would ask what it means, to the glossary.
    words.py --self-test   plants each kind of violation in a small tree and wants it found
"""

from __future__ import annotations

import itertools
import re
import sys
import tempfile
from pathlib import Path

# Replaced words that are also English or the standard's, and so may be part of a name for another reason.
ALSO_ENGLISH = {"told", "tell", "hear", "room", "note", "post", "mail", "cut", "kept", "link", "letter", "meeting",
                "card", "hold back", "take along", "depart", "circle", "hello", "brought", "carried", "gate"}
FOLDERS = ["src", "include", "launcher", "tools"]
SUFFIXES = {".h", ".c", ".cpp", ".def"}


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table under a heading, without its head."""
    section = page.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def parts(name: str) -> list[str]:
    return [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def squeezed(text: str) -> str:
    return re.sub(r"[\s_-]", "", text).lower()


def types(text: str) -> list[str]:
    return re.findall(r"\b(?:class|struct|enum class|union)\s+(?:alignas\([^)]*\)\s*)?([A-Z]\w+)", text)


def words(name: str) -> set[str]:
    """The words of a name, each also without a plural's s."""
    return {form for part in parts(name) for form in (part, part.removesuffix("s"))}


def violations(root: Path, vocabulary: set[str]) -> list[str]:
    page = (root / "docs/internals/glossary.md").read_text()
    files = [file for folder in FOLDERS for file in sorted((root / folder).rglob("*")) if file.suffix in SUFFIXES]
    texts = {file: file.read_text() for file in files}
    everything = squeezed(" ".join(texts.values()))
    found = []
    terms = set()
    for heading in ("On a node", "Between nodes"):
        for row in rows(page, heading):
            for term in row[0].split(" (")[0].split(","):
                terms |= {word for part in re.split(r"[\s-]", term) for word in words(part)}
                if squeezed(term) not in everything:
                    found.append(f"docs/internals/glossary.md: {term.strip()!r} is used nowhere in src/")
    replaced = {word.strip() for row in rows(page, "Replaced") for word in row[0].split(",")} - ALSO_ENGLISH
    for file, text in texts.items():
        where = file.relative_to(root)
        for name in [file.stem, *types(text)]:
            for word in replaced & words(name):
                found.append(f"{where}: {name}: {word!r} has been replaced, see docs/internals/glossary.md")
            for part in parts(name):
                if not words(part) & (terms | vocabulary | replaced):
                    found.append(f"{where}: {name}: {part!r} is neither in docs/internals/glossary.md nor in "
                                 "vocabulary.txt")
    return found


def self_test() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in [*FOLDERS, "docs/internals"]:
            (root / name).mkdir(parents=True)
        page = ("## On a node\n\n| term | m |\n|---|---|\n| event count | x |\n\n"
                "## Between nodes\n\n| term | m |\n|---|---|\n| channel | x |\n\n"
                "## Replaced\n\n| before | now |\n|---|---|\n| wire, lane | channel |\n")
        (root / "docs/internals/glossary.md").write_text(page)
        good = "class EventCount {};\nstruct Channel {};\nint wire_up;\n"
        (root / "src/channel.h").write_text(good)
        plain = {"all", "of", "part", "up"}
        assert violations(root, plain) == [], violations(root, plain)
        for text, wanted in [("class EventCount {};", "'channel' is used nowhere"),
                             (good + "struct Wire {};", "Wire: 'wire' has been replaced"),
                             (good + "class alignas(64) LanesOfAll {};", "LanesOfAll: 'lane' has been replaced"),
                             (good + "struct WarpChannel {};", "WarpChannel: 'warp' is neither")]:
            (root / "src/channel.h").write_text(text)
            assert any(wanted in one for one in violations(root, plain)), (wanted, violations(root, plain))
        (root / "src/channel.h").write_text(good)
        (root / "src/wire_parts.h").write_text("")
        assert any("wire_parts" in one for one in violations(root, plain))


if __name__ == "__main__":
    if sys.argv[1] == "--self-test":
        self_test()
    else:
        listed = Path(__file__).with_name("vocabulary.txt").read_text().split()
        wrong = violations(Path(sys.argv[1]), set(listed))
        wrong += [f"vocabulary.txt: not sorted, or twice: {word}"
                  for word, next_one in itertools.pairwise(listed) if word >= next_one]
        print("\n".join(wrong))
        sys.exit(1 if wrong else 0)

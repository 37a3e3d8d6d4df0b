#!/usr/bin/env python3
"""The messages of the library and of oshrun, with cause and cure: the texts are read from the sources, causes and cures
from messages.toml.

    messages.py --check    exit 0: each message belongs to one entry of messages.toml, and each line of an entry to a
                           message; 1: not, with each case
    messages.py --list     the messages, each with its file

A message is what a call of `fatal`, `complain` and their kin says, and any other string of src/ or launcher/ with at
least four words. Strings beside each other are one. Strings that are no messages, such as the help of oshrun, are in
messages.toml, too (`none`)."""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("messages.toml")
NAME = "docs/site/messages.toml"
ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "0": "\0"}
# A comment, a character, or strings beside each other, with the names of formats (PRIu64) between them.
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|\'(?:[^\'\\]|\\.)\'|(?<!include )"(?:[^"\\\n]|\\.)*"'
                   r'(?:\s*(?:PRI\w+\s*)?"(?:[^"\\\n]|\\.)*")*', re.S)
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
CONVERSION = re.compile(r"%(?:[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|t|j)?[a-zA-Z]|%)")
WORD = re.compile(r"(?<![\w%/.])[A-Za-z]\w+")
SAYS = re.compile(r"\b(?:fatal|complain|report|fail|give_up|snprintf|fprintf)\((?:[^;\"]|\n)*$")
LEAST_WORDS = 4  # of a string anywhere; of one in a call that says something, LEAST_SAID
LEAST_SAID = 2


@dataclass(frozen=True)
class Message:
    """A text of the sources, without the ends of lines; formats are as in the code."""

    text: str
    file: str

    def shown(self) -> str:
        """As a reader sees it, with ... for what differs."""
        plain = CONVERSION.sub(lambda match: "%" if match.group(0) == "%%" else "...", self.text)
        return re.sub(r"\s+", " ", re.sub(r"(?:\.\.\.){2,}", "...", plain)).strip()


@dataclass
class Entry:
    """What several messages have in common."""

    title: str
    cause: str
    cure: str
    see: list[str]
    pieces: list[str]
    files: list[str]
    part: str


class TableError(Exception):
    """messages.toml cannot be understood; the text says why."""


def texts(source: str) -> list[str]:
    """The messages of C++ code."""
    found = []
    for match in TOKEN.finditer(source):
        if match.group(0).startswith('"'):
            text = "".join(re.sub(r"\\(.)", lambda m: ESCAPES.get(m.group(1), m.group(0)), part)
                           for part in STRING.findall(match.group(0)))
            words = len(WORD.findall(CONVERSION.sub(" ", text)))
            if words >= (LEAST_SAID if SAYS.search(source[max(0, match.start() - 200):match.start()]) else LEAST_WORDS):
                found.append(text)
    return found


def messages(root: Path = ROOT) -> list[Message]:
    """All messages, in the order of the files; a text that a file has twice is one message."""
    found: dict[Message, None] = {}
    for folder in ("src", "launcher"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in (".cpp", ".h") and "generated" not in file.parts:
                name = str(file.relative_to(root))
                found |= {Message(text.strip("\n"), name): None for text in texts(file.read_text())}
    return list(found)


def entries(table: Path = TABLE) -> list[Entry]:
    try:
        rows = tomllib.loads(table.read_text())
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"{NAME}: {error}") from error
    found = []
    for part in rows["part"]:
        for row in part["entry"]:
            unknown = row.keys() - {"title", "cause", "cure", "see", "messages", "files"}
            missing = [key for key in ("title", "cause", "cure") if not row.get(key)]
            if unknown or missing or not (row.get("messages") or row.get("files")):
                raise TableError(f"{NAME}: {row.get('title', 'an entry without a title')}: "
                                 f"{', '.join([*sorted(unknown), *missing]) or 'messages'}: an entry has title, cause, "
                                 "cure, and messages or files, and may have see")
            found.append(Entry(row["title"], row["cause"], row["cure"], row.get("see", []), row.get("messages", []),
                               row.get("files", []), part["title"]))
    return [*found, Entry("none", "", "", [], rows["none"]["messages"], rows["none"]["files"], "")]


def owners(message: Message, every: list[Entry]) -> list[Entry]:
    """The entries that have a message: by a piece of its text, or else by its file."""
    by_piece = [entry for entry in every if any(piece in message.text for piece in entry.pieces)]
    return by_piece or [entry for entry in every if any(message.file.startswith(file) for file in entry.files)]


def problems(said: list[Message], every: list[Entry]) -> list[str]:
    wrong = []
    for message in said:
        owner = owners(message, every)
        if not owner:
            wrong.append(f'{message.file}: "{message.text}" has no cause and cure: an entry of {NAME}')
        elif len(owner) > 1:
            wrong.append(f'{message.file}: "{message.text}" belongs to {" and ".join(e.title for e in owner)}: {NAME}')
    for entry in every:
        wrong += [f"{NAME}: {entry.title}: no message has {piece!r}" for piece in entry.pieces
                  if not any(piece in message.text for message in said)]
        wrong += [f"{NAME}: {entry.title}: no message is of {file}" for file in entry.files
                  if not any(message.file.startswith(file) for message in said)]
    return wrong


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def page() -> str:
    """The page of all messages."""
    every, said = entries(), messages()
    if wrong := problems(said, every):
        raise SystemExit("\n".join(wrong))
    lines = ["# Messages, with cause and cure", "",
             "A message of the library begins with `heddle [pe 3] FUNCTION:`, one of the launcher with `oshrun:`. "
             "Search for its words, or look below; `...` stands for what differs. A message of the library ends with "
             "the place of the call, and one that ends the job with the line of source. `HEDDLE_CHECK=1` makes the "
             "library look at each operation ([checking](../user/checking.md)).", ""]
    part = ""
    for entry in every[:-1]:
        if entry.part != part:
            part = entry.part
            lines += [f"## {part}", ""]
        lines += [f"### {entry.title}", "", f"**Cause.** {entry.cause}", "", f"**Cure.** {entry.cure}"
                  + (f" See {', '.join(entry.see)}." if entry.see else ""), ""]
        shown = dict.fromkeys(message.shown() for message in said if owners(message, every) == [entry])
        lines += [*(f"- `{one}`" if "`" not in one else f"- ``{one}``" for one in shown), ""]
    return "\n".join(lines)


def main() -> int:
    if sys.argv[1:] == ["--list"]:
        print("\n".join(f"{message.file}: {message.text}" for message in messages()))
        return 0
    if sys.argv[1:] != ["--check"]:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        wrong = problems(messages(), entries())
    except TableError as error:
        wrong = [str(error)]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

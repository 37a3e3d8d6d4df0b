"""The reference page of Heddle's extensions, docs/user/shmemx.md: a paragraph for each family of shmemx.toml, with its
prototype for any type. generate.py writes it."""

from __future__ import annotations

import re
import textwrap
from typing import Any

OPENING = """\
The extensions of Heddle: `#include <shmemx.h>`; `HEDDLE_SHMEMX` is defined where they are there. Any thread may call
any function between init and finalize, unless its section says otherwise. Each function has a `pshmemx_` twin.
Functions with `TYPENAME` in their names also have a type-generic name without it, in C11 and C++.
[Threads](threads.md), [requests](requests.md), [non-blocking collectives](nonblocking-collectives.md) and
[order](ordering.md) say what the functions are for."""

TYPES = """\
`TYPE` and `TYPENAME` stand for a type and its name, such as `long long` and `longlong`; `SIZE` stands for 8, 16, 32, 64
or 128 bits. Put, get, broadcast, collect and alltoall take the standard RMA types of OpenSHMEM 1.6; atomics its
standard, extended or bitwise AMO types; reductions and scans its reduction types. "Or with a context" marks functions
that have a second form: `shmemx_ctx_` in place of `shmemx_`, and `shmem_ctx_t ctx` as first argument."""


def as_markdown(text: str) -> str:
    """A comment's text with names as code, and paths of this folder as links."""
    text = re.sub(r"docs/user/([\w-]+)\.md", r"[\1](\1.md)", text)
    names = r"\*?(?:shmemx?|SHMEMX?|HEDDLE|SIZE)_\w+\*?|\*(?:req|fetch|info|sig_addr)\b"
    return re.sub(rf"(?<![\w`\[/])({names})", r"`\1`", text)


def page(notice: str, width: int, introduction: dict[str, str], sections: list[tuple[str, list[Any]]]) -> str:
    """sections: (title, families), as generate.load gives them; introduction: the comment of a section, by title."""

    def wrapped(text: str) -> list[str]:
        return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)

    lines = ["# Reference of shmemx.h", "", notice, "", *wrapped(OPENING), "", *wrapped(TYPES)]
    for title, families in sections:
        lines += ["", f"## {title}"]
        if title in introduction:
            lines += ["", *wrapped(as_markdown(introduction[title]))]
        for family in families:
            space = "" if family.returns.endswith("*") else " "
            prototype = f"{family.returns}{space}{family.row['name']}({family.arguments})"
            lines += ["", *textwrap.wrap(prototype, width, initial_indent=" " * 4, subsequent_indent=" " * 12)]
            lines += ["", *wrapped(as_markdown(family.doc) + (" Or with a context." if family.has_ctx else ""))]
    return "\n".join(lines) + "\n"

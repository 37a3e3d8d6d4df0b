"""What the rows of all programs share: values of a type, and the names of an operation."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "api"))

from fortran_module import IN_GENERICS, TYPES  # noqa: E402
from generate import load  # noqa: E402

# The types of a family with TYPENAME in its name.
TYPES_OF = {family.row["name"]: [name for _, name in family.types]
            for table in ("openshmem", "shmemx") for _, families in load(table) for family in families
            if "TYPENAME" in family.row["name"] and not family.deprecated}
N = 24  # elements of an array

# A part of a program: the type of its arrays d and s, their size, and its statements.
Part = tuple[str, str, list[str]]


def value(word: str, expression: str) -> str:
    """A number as a value of the type."""
    kind = TYPES[word]
    of = kind[kind.index("(") + 1:-1]
    if kind.startswith("integer"):
        return f"int({expression}, {of})"
    if kind.startswith("real"):
        return f"real({expression}, {of})"
    return f"cmplx({expression}, 0, {of})" if kind.startswith("complex") else f"achar({expression})"


def count(number: int | str) -> str:
    return f"{number}_c_size_t"


class Way:
    """How functions of a program are called: in the call itself, as nbi, under a request, by all threads, or both."""

    def __init__(self, suffix: str):
        self.suffix = suffix
        self.start = "shmemx" if suffix in ("_nbe", "_mt", "_mt_nbe") else "shmem"
        self.tail = {"_nbe": ", req", "_mt": ", 0, 1", "_mt_nbe": ", 0, 1, req"}.get(suffix, "")
        waits = "call shmemx_request_wait(req)"
        self.ended = {"_nbe": waits, "_mt_nbe": waits, "_nbi": "call shmem_quiet()"}.get(suffix, "")
        # Before and behind all rows: what all threads post needs a request that they share.
        self.before = ["ierr = shmemx_request_allocate(req, SHMEMX_REQUEST_SHARED)"] * (suffix == "_mt_nbe")
        self.behind = ["call shmemx_request_free(req)"] * (suffix == "_mt_nbe")

    def names(self, word: str, operation: str, with_ctx: bool) -> Iterator[tuple[str, str]]:
        """(a name of the function, its first argument): the own name, and the generic one where there is one."""
        for ctx in (False, True) if with_ctx else (False,):
            lead = "ctx, " if ctx else ""
            middle = "_ctx" if ctx else ""
            yield f"{self.start}{middle}_{word}_{operation}{self.suffix}", lead
            if word in IN_GENERICS:
                yield f"{self.start}_{operation}{self.suffix}", lead

    def has(self, word: str, operation: str) -> bool:
        return word in TYPES_OF.get(f"{self.start}_TYPENAME_{operation}{self.suffix}", [])


def expect(condition: str, name: str) -> str:
    return f"call expect({condition}, '{name}')"


def sequence(text: str, word: str, number: int = N) -> str:
    """An array of values; text: of k, the place."""
    return f"[({value(word, text)}, k = 1, {number})]"


def settled(way: Way) -> list[str]:
    """What was sent has arrived."""
    return [*([way.ended] if way.ended else []), "call shmem_ctx_quiet(ctx)", "call shmem_barrier_all()"]

"""The generated part of the Python bindings, python/heddle/generated: a function for each family that moves, combines
or waits for data, which passes its arguments on to the module that checks them. What has objects for handles (teams,
contexts, requests, memory, setup) is written by hand in python/heddle. generate.py writes the files."""

from __future__ import annotations

import re
import textwrap
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 120
CODES = {"size_t": "z", "ptrdiff_t": "d", "int": "i", "uint64_t": "u", "TYPE": "T", "void": "v", "shmem_team_t": "p"}
COUNTS = {"nelems", "nreduce", "nblocks"}
# What the tables say in terms of C.
REWORDED = [
    (r"Writes the indices of all (that|of the nelems ivars that) (\w+)( true with cmp_value)? to indices[.;] ?"
     r"[Rr]eturns their number(, 0 for an empty set)?\.", r"Returns the indices of all \1 \2\3."),
    (r"of all of the nelems ivars", "of all ivars"), (r"Writes the indices", "Returns the indices"),
    (r"SIZE_MAX|\bNULL\b", "None"), (r"Returns 1 when", "Returns True when"), (r"otherwise 0", "otherwise False"),
    (r"\*(ivar|fetch|dest|req|sig_addr)\b", r"\1"), (r"shmemx?_(\w)", r"\1"), (r"SHMEMX?_(\w)", r"\1"),
    (r"TYPENAME_", ""), (r"uint64_t", "uint64"), (r"(?<=in |of )[Tt]he nelems ivars", "the ivars"),
]
ARGUMENTS = {
    "req": "the heddle.Request that the operation joins",
    "team": "a heddle.Team that this PE is a member of, such as TEAM_WORLD",
    "status": "a sequence of an int for each variable, not 0 for one that is left out; None: all count",
    "neighbors": "sequence of numbers of PEs in team",
    "nelems": "number of elements; by default all of the caller's own buffer",
    "nblocks": "number of blocks; by default all of the caller's own buffer",
    "nreduce": "number of elements, the same on all members; by default all of source",
    "ctx": "a heddle.Context, in whose team pe counts; None: the default context, in which pe counts in the world",
}


def plain(text: str) -> str:
    for pattern, instead in REWORDED:
        text = re.sub(pattern, instead, text)
    return text


def python_name(c_name: str) -> str:
    return re.sub("^shmemx?_", "", c_name)


def arguments_of(family: Any) -> list[tuple[str, str]]:
    """(C type, name) of each argument."""
    if family.arguments == "void":
        return []
    found = []
    for part in family.arguments.removesuffix(", ...").split(","):
        name = re.search(r"(\w+)(?:\[\])?$", part.strip()).group(1)  # type: ignore[union-attr]
        found.append((re.sub(r"\w+(?:\[\])?$", "", part.strip()).strip() + ("*" if "[" in part else ""), name))
    return found


def code(c_type: str) -> str:
    return "p" if "*" in c_type else CODES[c_type.removeprefix("const ").strip()]


def raw_name(family: Any, names: set[str]) -> str:
    """The family for dtypes that the table of types lacks: the mem form, or that of sizes."""
    name = family.row["name"]
    for pattern, instead in [(r"TYPENAME_(put|get|broadcast|collect|fcollect|alltoalls?)(?=_|$)", r"\1mem"),
                             (r"TYPENAME_(i?b?put|i?b?get)(?=_|$)", r"\1SIZE")]:
        other = re.sub(pattern, instead, name)
        if other != name and other in names:
            return str(other)
    return ""


class Binding:
    """A function of Python."""

    def __init__(self, family: Any, bits: int | None, raw: str, section: dict[str, Any], page: dict[str, Any],
                 words: dict[str, str]) -> None:
        self.family, self.bits, self.section, self.page, self.words = family, bits, section, page, words
        name = family.row["name"]
        self.name = python_name(family.generic or (name.replace("SIZE", str(bits)) if bits else name))
        self.arguments = arguments_of(family)
        self.names = [one for _, one in self.arguments]
        self.has_ctx = family.has_ctx
        self.raw = raw
        self.constant = f"_{self.name.upper()}"

    def with_ctx(self, name: str) -> str:
        return re.sub("^(shmemx?)_", r"\1_ctx_", name) if self.has_ctx else name

    def family_line(self) -> str:
        signature = code(self.family.returns) + ":" + ("p" if self.has_ctx else "") + "".join(
            code(kind) for kind, _ in self.arguments)
        name = self.with_ctx(self.family.row["name"])
        parts = [f'"{self.name}", "{signature}"']
        if self.family.types and not self.bits:
            parts += [f'typed="{name}", types="{self.family.row["types"]}"']
            parts += [f'raw="{self.with_ctx(self.raw)}"'] if self.raw else []
        else:
            parts += [f'raw="{name.replace("SIZE", str(self.bits))}", unit={(self.bits or 8) // 8}']
        return f"{self.constant} = Family({', '.join(parts)})"

    # The parameters of Python: those of C in their order, but for counts, status and ctx, which are optional, and for
    # indices and element_bytes, which there is no need for.
    def positional(self) -> list[str]:
        return [one for one in self.names if one not in COUNTS | {"status", "indices", "element_bytes", "nneighbors",
                                                                   "block_bytes"}]

    def optional(self) -> list[str]:
        found = [one for one in self.names if one in COUNTS | {"status"}]
        if "cmp" in self.names:
            found = [one for one in found if one != "nelems"]
        if "block_bytes" in self.names:
            found.append("nelems")
        return found + (["ctx"] if self.has_ctx else [])

    def annotation(self, name: str) -> str:
        if name in ("dest", "source", "fetch", "ivar", "ivars", "sig_addr", "cmp_values"):
            return "Buffer"
        if name == "team":
            return "Team"
        if name == "req":
            return "Request"
        if name in ("value", "cond") or (name == "cmp_value" and "TYPE" in self.family.arguments):
            return "Number"
        if name.endswith(("_counts", "_offsets")) or name == "neighbors":
            return "Integers"
        return "SupportsIndex"

    def parameters(self, without: str = "") -> str:
        shown = [f"{one}: {self.annotation(one)}" for one in self.positional() if one != without]
        extra = {"status": "Integers | None", "ctx": "Context | None"}
        optional = [f"{one}: {extra.get(one, 'SupportsIndex | None')} = None" for one in self.optional()
                    if one != without]
        return ", ".join(shown + (["*", *optional] if optional else []))

    def passed_on(self, self_is: str) -> str:
        shown = ["self" if one == self_is else one for one in self.positional()]
        return ", ".join(shown + [f"{one}={'self' if one == self_is else one}" for one in self.optional()])

    def result(self) -> str:
        returns, name = self.family.returns, self.name
        if returns == "TYPE":
            return "Any"
        if "_some" in name:
            return "Indices"
        if "_any" in name:
            return "int | None"
        if "cmp" in self.names and returns == "int":
            return "bool"
        return "int" if returns == "uint64_t" else "None"

    def body(self) -> str:
        """The call of the module that checks the arguments."""
        has, name, constant = set(self.names), self.name, self.constant
        req = f', req=_requests.checked("{name}", req)' if "req" in has else ""
        nbi = ", nbi=True" if name.endswith("_nbi") else ""
        if "team" in has and has & {"nelems", "nreduce"}:
            return self.collective_body(req)
        if "team" in has and "dest" not in has:
            return f"_collectives.meet({constant}, team{self.threads()}{req})"
        if has & {"element_bytes", "block_bytes"}:
            neighbors = "neighbors" if "neighbors" in has else "None"
            blocks = "(dest_counts, dest_offsets, source_counts, source_offsets)" if "dest_counts" in has else "None"
            count = ", nelems" if "block_bytes" in has else ""
            return f"_collectives.exchange({constant}, team, {neighbors}, dest, source, {blocks}{count}{req})"
        if "ivars" in has:
            value = "cmp_values" if "cmp_values" in has else "cmp_value"
            function = "some" if "_some" in name else "first" if "_any" in name else "every"
            return f"_waits.{function}({constant}, ivars, cmp, {value}, status)"
        if "ivar" in has:
            return f"_waits.one({constant}, ivar, cmp, cmp_value)"
        if "cmp" in has:
            return f"_waits.signal({constant}, sig_addr, cmp, cmp_value)"
        if "sig_op" in has:
            return (f"_transfers.put_signal({constant}, dest, source, sig_addr, signal, sig_op, pe, nelems, "
                    f"ctx{req}{nbi})")
        if "sig_addr" in has:
            return (f"_atomics.signal_update({constant}, sig_addr, signal, pe, ctx)" if "pe" in has
                    else f"_atomics.signal_fetch({constant}, sig_addr)")
        if "dst" in has:
            count = "nblocks, ctx, bsize" if "bsize" in has else "nelems, ctx"
            return f"_transfers.strided({constant}, {'put' in name}, dest, source, dst, sst, pe, {count})"
        if "nelems" in has:
            return f"_transfers.copy({constant}, {'put' in name}, dest, source, pe, nelems, ctx{req}{nbi})"
        if name in ("p", "g"):
            return (f"_atomics.store({constant}, dest, value, pe, ctx)" if name == "p"
                    else f"_atomics.load({constant}, source, pe, ctx)")
        element = "dest" if "dest" in has else "source"
        operands = "".join(f'("{one}", {one}), ' for one in ("cond", "value") if one in has)
        operands = f"({operands.rstrip() if operands.count('(') == 1 else operands.rstrip(', ')})"
        fetch = "fetch, " if "fetch" in has else ""
        function = "fetching" if fetch else "operate"
        return f'_atomics.{function}({constant}, {fetch}"{element}", {element}, {operands}, pe, ctx{req})'

    def threads(self) -> str:
        return ", threads=(thread, nthreads)" if "nthreads" in self.names else ""

    def collective_body(self, req: str) -> str:
        has = set(self.names)
        if "alltoall" in self.name:
            shape = "exchange"
        elif "fcollect" in self.name:
            shape = "gather"
        else:
            shape = "collect" if "collect" in self.name else "same"
        count = "nreduce" if "nreduce" in has else "nelems"
        more = ', count_name="nreduce"' if count == "nreduce" else ""
        more += ", root=PE_root" if "PE_root" in has else ""
        more += ", steps=(dst, sst)" if "dst" in has else ""
        return f'_collectives.call({self.constant}, "{shape}", team, dest, source, {count}{more}{self.threads()}{req})'

    # ---- Documentation

    def argument_text(self, name: str) -> str:
        if name in ARGUMENTS and name not in ("nelems",):
            return ARGUMENTS[name]
        if name == "nelems":
            unit = f"elements of {self.bits} bits" if self.bits else "elements"
            unit = "bytes" if not self.family.types and "mem" in self.name else unit
            if "alltoall" in self.name:
                partner = "neighbor" if "neighbor" in self.name else "member"
                return f"number of {unit} of a block; by default what source has for each {partner}"
            whole = "source" if "team" in self.names else "the caller's own buffer"
            return f"number of {unit}; by default all of {whole}"
        own = self.page.get("arguments", {})
        text = own.get(name) or self.section.get("arguments", {}).get(name) or self.words.get(name)
        if not text:
            raise SystemExit(f"api/python_bindings.py: argument {name} of {self.name} has no words in the tables")
        if name == "dest" and re.match("collect", self.name):
            text = (f"{text}; what this member sends has to fit. No member knows the total before: in a shorter dest, "
                    "memory behind it is written, which HEDDLE_CHECK=1 finds at the end of the allocation")
        return plain(str(text))

    def raises(self) -> str:
        kinds = "TypeError and ValueError for an argument that is wrong"
        if {"value", "cond", "cmp_value", "signal"} & set(self.names):
            kinds += ", OverflowError for a value that the dtype cannot hold"
        return kinds + "; RuntimeError outside of init and finalize."

    def documentation(self) -> list[str]:
        doc = plain(self.family.doc).replace("SIZE bits", f"{self.bits} bits")
        row = self.family.row
        where = f"OpenSHMEM 1.6, section {row['section']}; since {row['since']}." if "section" in row else \
            "An extension of Heddle: docs/user/shmemx.md."
        threads = plain(self.section.get("threads", "Any thread."))
        lines = [doc, ""]
        lines += [f"{one}: {self.argument_text(one)}." for one in self.positional() + self.optional()]
        lines += ["", f"Raises {self.raises()} {threads} {where}"]
        return lines

    def definition(self) -> list[str]:
        lines = ["", "", *folded(f"def {self.name}({self.parameters()}) -> {self.result()}:")]
        lines += docstring(self.documentation())
        call = self.body()
        lead = "    return " if self.result() != "None" else "    "
        if self.result() == "bool":
            call = f"bool({call})"
        return [*lines, *folded(lead + call)]

    def method(self, owner: str) -> list[str]:
        lines = ["", *folded(f"    def {self.method_name()}(self, {self.parameters(owner)}) -> {self.result()}:"
                             .replace("(self, )", "(self)"))]
        kind = "this context" if owner == "ctx" else "this team"
        lines += [f'        """heddle.{self.name} with {kind}."""']
        lead = "        return " if self.result() != "None" else "        "
        return [*lines, *folded(f"{lead}operations.{self.name}({self.passed_on(owner)})")]

    def method_name(self) -> str:
        return self.name.removeprefix("team_")


def docstring(paragraphs: list[str]) -> list[str]:
    lines: list[str] = []
    for text in ['"""' + paragraphs[0], *paragraphs[1:]]:
        lines += textwrap.wrap(text, WIDTH - 4, break_long_words=False, break_on_hyphens=False) or [""]
    return [f"    {line}".rstrip() for line in lines] + ['    """']


def folded(line: str) -> list[str]:
    """A line of code at most WIDTH long: broken behind the bracket that it opens first."""
    if len(line) <= WIDTH:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 8)
    opening = line.index("(") + 1
    lines = [line[:opening], ""]
    for part in re.split(r"(?<=,) ", line[opening:]):
        if len(indent) + len(lines[-1]) + 1 + len(part) > WIDTH:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + part
    return [lines[0], *(indent + one for one in lines[1:])]


def bindings(load: Any) -> list[Binding]:
    """Those of all families that are generated, in the order of the tables."""
    found = []
    words = tomllib.loads((ROOT / "api/openshmem.toml").read_text())["arguments"]
    for table in ("openshmem", "shmemx"):
        rows = tomllib.loads((ROOT / f"api/{table}.toml").read_text())
        sections = {section["title"]: section for section in rows["section"]}
        names = {family.row["name"] for _, families in load(table) for family in families}
        for title, families in load(table):
            for family in families:
                if not is_generated(family, title):
                    continue
                page = page_of(rows["pages"], stem(family))
                for bits in family.types if family.types and isinstance(family.types[0], int) else [None]:
                    found.append(Binding(family, bits, raw_name(family, names), sections[title], page, words))
    return found


def page_of(pages: dict[str, Any], name: str) -> dict[str, Any]:
    """The row of the manual page that has a family."""
    found = [page for key, page in pages.items()
             if isinstance(page, dict) and (key == name or name in page.get("has", []))]
    return found[0] if found else {}


def stem(family: Any) -> str:
    name = family.generic or re.sub(r"TYPENAME_|SIZE", "", family.row["name"])
    return re.sub(r"(?<=[a-z])(?<!^sh)mem(?=_|$)", "", name)


def is_generated(family: Any, title: str) -> bool:
    """Whether the family is generated: what has data, and collectives; not what is deprecated."""
    if family.deprecated or title.startswith("Deprecated"):
        return False
    if family.row["name"] in ("shmem_ptr", "shmem_team_ptr", "shmem_sync_all"):
        return False
    names = {name for _, name in arguments_of(family)}
    return bool(family.types or names & {"dest", "sig_addr"} or re.search("_sync|team_barrier", family.row["name"]))


def operations(notice: str, load: Any) -> str:
    made = bindings(load)
    lines = [
        f'"""The operations on data and the collectives, each with its checks.\n{notice}"""',
        "",
        "# ruff: noqa",
        "from __future__ import annotations",
        "",
        "from collections.abc import Sequence",
        "from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias",
        "",
        "import numpy as np",
        "import numpy.typing as npt",
        "",
        "from .. import _atomics, _collectives, _requests, _transfers, _waits",
        "from .._families import Family",
        "from .._memory import Array, Buffer",
        "",
        "if TYPE_CHECKING:",
        "    from .._contexts import Context",
        "    from .._requests import Request",
        "    from .._teams import Team",
        "",
        "Number: TypeAlias = Any  # an int, a float or a NumPy scalar that the dtype holds",
        "Integers: TypeAlias = Array | Sequence[SupportsIndex]",
        "Indices: TypeAlias = npt.NDArray[np.intp]",
        "",
    ]
    for one in made:
        lines += folded(one.family_line())
    for one in made:
        lines += one.definition()
    lines += ["", "", "__all__ = [", *(f'    "{name}",' for name in sorted(one.name for one in made)), "]"]
    return "\n".join(lines) + "\n"


def methods(notice: str, load: Any, owner: str) -> str:
    kind, other = ("Context", "context") if owner == "ctx" else ("Team", "team")
    lines = [
        f'"""The operations as methods of a {other}.\n{notice}"""',
        "",
        "# ruff: noqa",
        "from __future__ import annotations",
        "",
        "from typing import TYPE_CHECKING, Any, SupportsIndex",
        "",
        "if TYPE_CHECKING:",
        "    from .._contexts import Context",
        "    from .._requests import Request",
        "    from .._teams import Team",
        "    from .._memory import Buffer",
        "    from .operations import Integers, Number",
        "",
        "    operations: Any  # whose arguments are a subclass of the class below",
        "else:",
        "    from . import operations",
        "",
        "",
        f"class {kind}Methods:",
        f'    """What a {other} has of heddle\'s functions."""',
    ]
    for one in bindings(load):
        if (one.has_ctx if owner == "ctx" else "team" in one.names):
            lines += one.method(owner)
    return "\n".join(lines) + "\n"


def tables(notice: str) -> str:
    types = tomllib.loads((ROOT / "api/openshmem.toml").read_text())["types"]
    lines = [f'"""The tables of types: the names of the C functions for each.\n{notice}"""', "", "# ruff: noqa",
             "TABLES: dict[str, tuple[str, ...]] = {"]
    for name, rows in types.items():
        if isinstance(rows[0], list) and not name.startswith(("old_", "to_all")):
            text = ", ".join(f'"{short}"' for _, short in rows)
            lines += textwrap.wrap(f'"{name}": ({text}),', WIDTH, initial_indent="    ", subsequent_indent="        ")
    return "\n".join([*lines, "}"]) + "\n"


def constants(notice: str) -> str:
    """The numbers of the public headers."""
    lines = [f'"""The constants of OpenSHMEM 1.6 and of Heddle\'s extensions, without SHMEM_.\n{notice}"""', ""]
    found = {}
    for header in ("constants", "request"):
        text = (ROOT / f"include/heddle/{header}.h").read_text().split("/* Deprecated")[0]
        for name, value in re.findall(r"^#define SHMEMX?_(\w+) (.+)$", text, re.M):
            if number := re.fullmatch(r"\(?(\d+)L?(?: << (\d+)\))?", value):
                found[name] = int(number[1]) << int(number[2] or 0)
    lines += [f"{name} = {value}" for name, value in found.items()]
    lines += ["", "__all__ = [", *(f'    "{name}",' for name in sorted(found)), "]"]
    return "\n".join(lines) + "\n"


def files(notice: str, load: Any) -> dict[str, Any]:
    """The files of python/heddle/generated, by their path: what writes each."""
    folder = "python/heddle/generated"
    return {
        f"{folder}/__init__.py": lambda: f'"""{notice}"""\n',
        f"{folder}/constants.py": lambda: constants(notice),
        f"{folder}/tables.py": lambda: tables(notice),
        f"{folder}/operations.py": lambda: operations(notice, load),
        f"{folder}/context_methods.py": lambda: methods(notice, load, "ctx"),
        f"{folder}/team_methods.py": lambda: methods(notice, load, "team"),
    }

"""The manual pages of section 3: which family is on which page, and the text of a page, all from the tables of this
folder. A family without a page, an argument that nobody explains, and a page without an example end the program with a
sentence."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import mdoc
from generate import ROOT, TABLES, Family, argument_names, load

EXAMPLES = ROOT / "api/examples"
MARKER = re.compile(r"/\* == ([\w ]+) == \*/")
PART = re.compile(r"(?:^|(?<=[.;]) )(Errors|Threads|Source|Results|Costs?): ")
PAPER = re.compile(r"; docs/[\w/-]+\.md|(?:How to use it: )?docs/[\w/-]+\.md(?: has the policies)?\.")
EVERY_THREAD = "Any thread may call at any time between init and finalize."
MESSAGE = "The message names PE, function, argument, value and what would be right."
MACROS = {"heddle_complexd": "double _Complex", "heddle_complexf": "float _Complex"}
# Names of arguments that are English words, too: not in italics where they stand in a sentence.
ENGLISH = {"team", "size", "count", "status", "name", "value", "level", "start", "thread", "options", "signal", "lock",
           "plan", "policy", "info", "requests", "neighbors", "hints", "id", "provided", "requested", "alignment"}


class PageError(Exception):
    """A table lacks something; the text says what, and where it belongs."""


@dataclass
class Section:
    """What holds for all functions of a section of a table."""

    table: str
    title: str
    parts: dict[str, str]  # "" and "Errors", "Threads", "Source", "Results" to the text
    row: dict
    mentioned: list[str]  # pages of docs



@dataclass
class Page:
    """A page, its families, and those of deprecated names."""

    name: str
    about: str
    row: dict
    families: list[Family] = field(default_factory=list)
    deprecated: list[Family] = field(default_factory=list)
    section: Section | None = None
    example: list[str] = field(default_factory=list)

    def names(self) -> list[str]:
        """All names that lead to the page, but its own: every function and every generic name."""
        found = {function.name for family in self.families + self.deprecated for function in family.every()}
        found |= {family.generic for family in self.families + self.deprecated if family.generic}
        return sorted(found - {self.name})


def stem(family: Family) -> str:
    """The generic name of a family, or its name without the words for types and sizes."""
    if family.generic:
        return family.generic
    name = re.sub(r"TYPENAME_|SIZE", "", family.row["name"])
    return re.sub(r"(?<=[a-z])(?<!^sh)mem(?=_|$)", "", name)


def is_deprecated(family: Family, title: str) -> bool:
    return bool(family.deprecated) or title.startswith("Deprecated")


def split_parts(text: str) -> tuple[dict[str, str], list[str]]:
    """A section's comment as its parts, and the pages of docs that it names."""
    pieces = PART.split(re.sub(r"\s+", " ", PAPER.sub("", text)).strip())
    parts = dict(zip(["", *pieces[1::2]], pieces[::2]))
    first = parts.pop("").strip()
    first += "" if first.endswith(".") or not first else "."
    return {"": first, **{key: sentence(said) for key, said in parts.items()}}, re.findall(r"docs/[\w/-]+\.md", text)


def sentence(text: str) -> str:
    text = text.strip()
    first = text[0] if "_" in text.split()[0] else text[0].upper()  # not the name of a function
    return first + text[1:] + ("" if text.endswith(".") else ".")


def examples() -> dict[str, list[str]]:
    """The lines of the example of each page."""
    found: dict[str, list[str]] = {}
    for file in sorted(EXAMPLES.glob("*.c")):
        text = file.read_text()
        before, *pieces = MARKER.split(text)
        head = [line for line in before.splitlines() if line.startswith("#include")]
        for names, body in zip(pieces[::2], pieces[1::2]):
            code = body.strip("\n").splitlines()
            used = [] if "main(void)" in body else [*needed(head, body), ""]
            for name in names.split():
                if name in found:
                    raise PageError(f"{file.name}: {name} has two examples")
                found[name] = used + code
    return found


def needed(includes: list[str], body: str) -> list[str]:
    """Those of the includes that an example needs."""
    of = {"assert": r"\bassert\(", "stdio": r"printf", "stdlib": r"\bexit\(", "omp": r"\bomp_", "stdint": r"SIZE_MAX"}
    found = [line for line in includes if re.search(of.get(line.split("<")[1].split(".")[0], ""), body)]
    return found if re.search("shmemx_|SHMEMX_", body) else [line.replace("shmemx.h", "shmem.h") for line in found]


def pages() -> list[Page]:
    """All pages of section 3."""
    found: dict[str, Page] = {}
    where: dict[str, Page] = {}
    rows = {table: tomllib.loads((ROOT / f"api/{table}.toml").read_text()) for table in TABLES}
    for table in TABLES:
        for name, said in rows[table]["pages"].items():
            row = {"about": said} if isinstance(said, str) else said
            page = found[name] = Page(name, row["about"], row)
            for covered in [name, *row.get("has", [])]:
                if covered in where:
                    raise PageError(f"{covered} is on the pages {where[covered].name} and {name}: api/{table}.toml")
                where[covered] = page
    late: list[Family] = []
    for table in TABLES:
        for row, (title, families) in zip(rows[table]["section"], load(table)):
            parts, mentioned = split_parts(row.get("doc", ""))
            section = Section(table, title, parts, row, mentioned)
            for family in families:
                if is_deprecated(family, title):
                    late.append(family)
                    continue
                if stem(family) not in where:
                    raise PageError(f"{family.row['name']} is on no page: [pages] of api/{table}.toml lacks "
                                    f"{stem(family)}")
                page = where[stem(family)]
                page.families.append(family)
                page.section = page.section or section
    by_name = {name: page for page in found.values() for name in [page.name, *page.names()]}
    for family in late:
        wanted = [*re.findall(r"shmem_\w+", family.deprecated), stem(family)]
        places = [where[stem(family)]] if stem(family) in where else [
            by_name[name] for name in wanted if name in by_name]
        if not places:
            raise PageError(f"{family.row['name']} is on no page: `has` of a page in api/openshmem.toml")
        places[0].deprecated.append(family)
    code = examples()
    for name in code.keys() - found.keys():
        raise PageError(f"api/examples: {name} is no page")
    for page in found.values():
        if not page.families:
            raise PageError(f"the page {page.name} has no functions: api/openshmem.toml, api/shmemx.toml")
        if page.name not in code:
            raise PageError(f"the page {page.name} has no example: api/examples")
        page.example = code[page.name]
    return list(found.values())


class Writer:
    """The text of one page."""

    def __init__(self, page: Page, common: dict[str, str], every: dict[str, Page], date: str, system: str):
        assert page.section
        self.page, self.section, self.common, self.every = page, page.section, common, every
        self.beside = [name for name, other in every.items() if other.section is page.section]
        self.head = mdoc.prologue(page.name, 3, date, system)
        self.arguments = self.argument_names(page.families)
        names = {*self.arguments, *self.argument_names(page.deprecated)}
        self.marked = dict.fromkeys(names - ENGLISH, "I")

    def argument_names(self, families: list[Family]) -> list[str]:
        found: dict[str, None] = {}
        for family in families:
            for with_ctx in family.forms():
                for name in argument_names(family.functions(with_ctx)[0].arguments):
                    found.setdefault(name)
        return list(found)

    def lines(self, text: str) -> list[str]:
        return mdoc.lines(text, self.marked)

    def title(self) -> list[str]:
        names = dict.fromkeys([self.page.name, *(stem(family) for family in self.page.families),
                               *(family.row["name"] for family in self.page.families)])
        listed = [f".Nm {name}" + (" ," if place < len(names) - 1 else "") for place, name in enumerate(names)]
        return [".Sh NAME", *listed, f".Nd {self.page.about}"]

    def prototype(self, family: Family, name: str, with_ctx: bool) -> list[str]:
        arguments = family.arguments
        if with_ctx:
            arguments = "shmem_ctx_t ctx" if arguments == "void" else f"shmem_ctx_t ctx, {arguments}"
        parts = [part.strip() for part in arguments.split(",")]
        return [f".Ft {family.returns}", f".Fo {name}", *(f'.Fa {mdoc.argument(part)}' for part in parts), ".Fc"]

    def synopsis(self) -> list[str]:
        result = [".Sh SYNOPSIS", f".In {'shmemx.h' if self.section.table == 'shmemx' else 'shmem.h'}"]
        for family in self.page.families:
            for with_ctx in family.forms():
                plain = family.row["name"]
                name = re.sub("^(shmemx?)_", r"\1_ctx_", plain) if with_ctx else plain
                result += self.prototype(family, name, with_ctx)
        return result

    def generics(self) -> list[str]:
        names = dict.fromkeys(family.generic for family in self.page.families if family.generic)
        if not names:
            return []
        listed = " and ".join([", ".join(list(names)[:-1]), list(names)[-1]]) if len(names) > 1 else next(iter(names))
        what = "is a generic name" if len(names) == 1 else "are generic names"
        forms = ", without a context and with one as first argument," if self.page.families[0].has_ctx else ""
        choice = "by the types of the arguments" if any(f.types for f in self.page.families) else "by the arguments"
        return self.lines(f"In C11 and C++ {listed} {what} that chooses the function{forms} {choice}."
                          if len(names) == 1 else
                          f"In C11 and C++ {listed} {what} that choose the function{forms} {choice}.")

    def types(self, families: list[Family]) -> list[str]:
        result, told = [], set()
        for family in families:
            if not family.types or family.row["types"] in told:
                continue
            told.add(family.row["types"])
            of = "" if len({f.row.get("types") for f in families if f.types and not isinstance(f.types[0], int)}) == 1 \
                else f" of {stem(family)}"
            if isinstance(family.types[0], int):
                bits = ", ".join(map(str, family.types[:-1]))
                result += ["", *self.lines(f"SIZE is {bits} or {family.types[-1]}: the bits of an element.")]
                continue
            words = [n if n == t or t == f"{n}_t" else f"{n} ({MACROS.get(t, t)})" for t, n in family.types]
            result += ["", *self.lines(f"TYPENAME{of} is the name of a TYPE: {', '.join(words)}.")]
        return [".Pp" if line == "" else line for line in result]

    def names_text(self) -> list[str]:
        text = [*self.generics(), *self.types(self.page.families)]
        twin = "pshmemx_" if self.section.table == "shmemx" else "pshmem_"
        last = self.lines(f"Each function has a second name for profilers, with {twin} at its beginning.")
        return [".Ss Names", *text, *([".Pp"] if text else []), *last]

    def described(self, families: list[Family]) -> list[str]:
        if len(families) == 1:
            return self.lines(families[0].doc)
        return mdoc.tagged([(f"Fn {family.row['name']}", self.lines(family.doc)) for family in families], "Ds")

    def said(self, key: str, otherwise: str = "") -> str:
        """What the page, or else its section, says of `errors`, `threads`, `undefined` or `returns`."""
        found = self.page.row.get(key) or self.section.row.get(key)
        return found or self.section.parts.get(key.capitalize(), otherwise)

    def explain(self, name: str) -> str:
        own, section = self.page.row.get("arguments", {}), self.section.row.get("arguments", {})
        text = own.get(name) or section.get(name) or self.common.get(name)
        if not text:
            raise PageError(f"{self.page.name}: nothing says what {name} is: `arguments` of its section or page in "
                            f"api/{self.section.table}.toml")
        return sentence(text)

    def argument_text(self) -> list[str]:
        if not self.arguments:
            return []
        width = max(self.arguments, key=len)
        return [".Ss Arguments", *mdoc.tagged([(f"Fa {mdoc.argument(name)}", self.lines(self.explain(name)))
                                               for name in self.arguments], f'"{width}xx"')]

    def old_names(self) -> list[str]:
        if not self.page.deprecated:
            return []
        result = [".Ss Deprecated names"]
        for family in self.page.deprecated:
            code = [f"{family.returns}{'' if family.returns.endswith('*') else ' '}{family.row['name']}("]
            for part in family.arguments.split(","):
                word = part.strip() + ", "
                if len(code[-1]) + len(word) > mdoc.WIDTH - 10:
                    code.append("    ")
                code[-1] += word
            code = [line.rstrip() for line in code]
            code[-1] = code[-1].rstrip(",") + ");"
            instead = f" {family.deprecated[0].upper()}{family.deprecated[1:]}." if family.deprecated else ""
            result += [*mdoc.display(code), *self.lines(family.doc + instead)]
        result += self.types(self.page.deprecated)
        if any("PE_start" in family.arguments for family in self.page.deprecated):
            result += [".Pp", *self.lines(
                "An active set is PE_size PEs: PE_start, PE_start + 2^logPE_stride, and so on; all of them call, one "
                "thread each. pSync and pWrk are not used; a checked run wants pSync to be symmetric.")]
        return result

    def results(self) -> list[str]:
        giving = [family for family in self.page.families if family.returns != "void"]
        if not giving:
            return []
        if said := self.said("returns"):
            return [".Sh RETURN VALUES", *self.lines(said)]
        items: list[tuple[str, str]] = []
        for family in giving:
            said = " ".join(s for s in mdoc.sentences(family.doc) if re.search(r"\b[Rr]eturns\b|^NULL", s))
            said = said or family.doc
            if not any(said == before for _, before in items):
                items.append((f"Fn {family.row['name']}", said))
        if len(items) == 1:
            return [".Sh RETURN VALUES", *self.lines(items[0][1])]
        return [".Sh RETURN VALUES", *mdoc.tagged([(head, self.lines(said)) for head, said in items], "Ds")]

    def standard(self) -> list[str]:
        if self.section.table == "shmemx":
            source = self.section.parts.get("Source", "")
            text = "An extension of Heddle, not part of OpenSHMEM 1.6." + (f" Source: {source}" if source else "")
            return [".Sh STANDARDS", *self.lines(text)]
        of = dict.fromkeys(family.row["section"] for family in self.page.families)
        word, since = ("Section" if len(of) == 1 else "Sections"), {f.row["since"] for f in self.page.families}
        numbers = ", ".join(of)
        result = [".Sh STANDARDS", *self.lines(f"{word} {numbers} of OpenSHMEM 1.6.")]
        if self.page.deprecated:
            result += self.lines("The deprecated names are in annex F.")
        first = " and ".join(sorted(since, key=lambda v: tuple(map(int, v.split(".")))))
        return [*result, ".Sh HISTORY", *self.lines(f"In OpenSHMEM since {first}.")]

    def text(self) -> str:
        section = self.section
        errors = self.said("errors", "A wrong argument ends the job with a message.")
        named = re.findall(r"\bshmemx?_\w+", " ".join([section.parts[""], *(f.doc for f in self.page.families)]))
        see = [(name, 3) for name in [*self.beside, *(self.every.keys() & set(named))] if name != self.page.name]
        see += [("heddle", 7), ("heddle-memory-model", 7)]
        files = [page for page in dict.fromkeys(section.mentioned) if page.startswith("docs/")]
        common = self.lines(section.parts[""]) if section.parts[""] else []
        result = [
            *self.head, *self.title(), *self.synopsis(), ".Sh DESCRIPTION", *self.described(self.page.families),
            *([".Pp", *common] if common else []),
            *self.argument_text(), *self.names_text(), *self.old_names(),
            ".Sh THREADS", *self.lines(self.said("threads", EVERY_THREAD)),
            *self.results(),
            ".Sh EXAMPLES", *mdoc.display(self.page.example),
            ".Sh ERRORS", *self.lines(errors),
            *([".Pp", *self.lines(MESSAGE)] if "the job with a message" in errors else []),
            ".Ss Undefined", *self.lines(self.said("undefined", "Nothing.")),
            ".Sh SEE ALSO", *mdoc.references(see),
            *([".Pp", *mdoc.lines(f"In Heddle's sources: {', '.join(files)}.")] if files else []),
            *self.standard(),
        ]
        return "\n".join(result) + "\n"


def write(folder: Path, date: str, system: str) -> list[Page]:
    """Writes all pages and links of section 3 to folder/man3."""
    common = tomllib.loads((ROOT / "api/openshmem.toml").read_text())["arguments"]
    everything = pages()
    by_name = {page.name: page for page in everything}
    at = folder / "man3"
    at.mkdir(parents=True, exist_ok=True)
    for page in everything:
        (at / f"{page.name}.3").write_text(Writer(page, common, by_name, date, system).text())
        for name in page.names():
            (at / f"{name}.3").write_text(f".so man3/{page.name}.3\n")
    return everything

"""The manual pages as Markdown: api/man_pages.py makes them, this module rewrites the macros of mdoc(7) that they use.

A macro that is not known here ends the program with a sentence, so that no text is lost."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OTHERS = {"gdb", "pkg-config"}  # pages of other projects
SPECIAL = {r"\&": "", r"\%": "", r"\-": "-", r"\e": "\\", r"\(ha": "^", r"\(ti": "~", r"\(ga": "`", r"\(aq": "'",
           r"\(dq": '"'}
CLOSING = {".", ",", ";", ":", ")", "?", "!"}


class MacroError(Exception):
    """A page has something that is not known here."""


def unescaped(text: str) -> str:
    return re.sub(r"\\(?:\(..|[&%e-])", lambda match: SPECIAL[match.group(0)], text)


def words(line: str) -> list[str]:
    """The arguments of a macro."""
    return [unescaped(quoted or bare) for quoted, bare in re.findall(r'"([^"]*)"|(\S+)', line)]


def prose(text: str) -> str:
    """A line of text as Markdown."""
    plain = unescaped(re.sub(r"\\f[BIP]", "\1", text))
    for letter in "\\`*_<>[]#|":
        plain = plain.replace(letter, "\\" + letter)
    plain = re.sub(r"(?<![\w\\/])((?:p?shmemx?|SHMEMX?|HEDDLE|OMP|SIZE|TYPE)(?:\\_\w+)+)",
                   lambda match: code(match.group(1).replace("\\_", "_")), plain)
    parts = plain.split("\1")  # text, marked, text, marked, ...
    return "".join(f"*{part}*" if place % 2 and part and "`" not in part else part for place, part in enumerate(parts))


def code(text: str) -> str:
    return f"`{text}`"


def head_of(text: str) -> str:
    """The head of a list's item: options in code, their values beside them."""
    return code(unescaped(re.sub(r"\\f[BIP]", "", text)))


def in_line(macros: list[str], link: Callable[[str], str]) -> str:
    """A line of macros that can stand within a sentence, such as "Op Fl n Ar N"."""
    result, style, space, inner = "", "", True, 0
    for word in macros:
        said = ""
        if word in ("Fl", "Ar", "Cm", "Ev", "Dv", "Pa", "Fn", "Fa"):
            style = word
            continue
        if word in ("Op", "Oo", "Pq"):
            said, style = "[" if word != "Pq" else "(", ""
            inner += word == "Op" and bool(result)
            result += (" " if result and space else "") + said
            space = False
            continue
        if word in ("Oc",):
            result, style, space = result + "]", "", True
            continue
        if word == "Ns":
            space, style = False, ""
            continue
        if word == "Xr":
            style = "Xr"
            continue
        if word in CLOSING and result:
            result, space = result + word, True
            continue
        if style == "Xr":
            if re.fullmatch(r"\d", word):
                continue
            said = link(word)
        elif style == "Fl":
            said, style = f"-{word}", ""
        else:
            said = word
        result += (" " if result and space else "") + said
        space = True
    return result + "]" * inner


@dataclass
class Converter:
    """One page. `links`: name of a page to its path as seen from this one; `title`: its name and what it is about."""

    text: str
    links: dict[str, str]
    out: list[str] = field(default_factory=list)
    title: str = ""
    about: str = ""
    code_lines: list[str] | None = None
    prototype: list[str] | None = None
    names: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    usage: list[str] = field(default_factory=list)  # of a program: a line for each form
    section: str = ""

    def link(self, name: str) -> str:
        return f"[{name}]({self.links[name]})" if name in self.links else code(name)

    def put(self, line: str) -> None:
        self.out.append(("  " * len(self.lists) if self.lists and line else "") + line)

    def paragraph(self) -> None:
        if self.out and self.out[-1]:
            self.out.append("")

    def sentence(self, said: str) -> None:
        self.put(said)

    def synopsis(self, macro: str, rest: str) -> bool:
        """Prototypes, which become a block of code."""
        if macro == "In":
            self.fence([f"#include <{rest}>"])
        elif macro == "Ft":
            self.prototype = [unescaped(rest)]
        elif macro == "Fo" and self.prototype:
            self.prototype = [f"{self.prototype[0]}{'' if self.prototype[0].endswith('*') else ' '}{rest}("]
        elif macro == "Fa" and self.prototype:
            self.prototype.append(words(rest)[0])
        elif macro == "Fc" and self.prototype:
            line = self.prototype[0] + ", ".join(self.prototype[1:]) + ");"
            self.out[-2:-2] = wrapped(line)
            self.prototype = None
        else:
            return False
        return True

    def fence(self, lines: list[str], language: str = "c") -> None:
        self.paragraph()
        for line in ["```" + language, *lines, "```"]:
            self.put(line)
        self.out.append("")

    def macro(self, macro: str, rest: str) -> None:
        if macro in ("Dd", "Dt", "Os"):
            return
        if self.section == "Synopsis" and macro in ("Nm", "Fl", "Op", "Ar", "Cm"):
            if macro == "Nm":
                self.usage.append(rest or self.title)
            else:
                self.usage[-1] += f" {in_line([macro, *words(rest)], self.link)}" + ("]" if macro == "Op" else "")
            return
        if macro == "Sh":
            if self.usage:
                self.fence(self.usage, "text")
                self.usage = []
            self.section = rest.title().replace("See Also", "See also")
            self.paragraph()
            if rest != "NAME":
                self.out += [f"## {self.section}", ""]
        elif macro == "Ss":
            self.paragraph()
            self.out += [f"### {unescaped(rest)}", ""]
        elif macro == "Nm":
            if self.section == "Name":
                self.names.append(rest.removesuffix(" ,"))
                self.title = self.title or self.names[0]
            else:
                closing = rest if rest in CLOSING else ""
                self.sentence(code(rest if rest and not closing else self.title) + closing)
        elif macro == "Nd":
            self.about = unescaped(rest)
            self.out += [f"{self.about[0].upper()}{self.about[1:]}.", ""]
        elif macro in ("In", "Ft", "Fo", "Fa", "Fc"):
            if not self.synopsis(macro, rest):
                raise MacroError(f".{macro} {rest}")
        elif macro == "Pp":
            self.out.append("")
        elif macro == "Bl":
            self.paragraph()
            self.lists.append("bullet" if "-bullet" in rest else "tag")
        elif macro == "El":
            self.lists.pop()
            self.out.append("")
        elif macro == "It":
            self.item(rest)
        elif macro == "Bd":
            self.code_lines = []
        elif macro in ("Xr", "Op", "Ar", "Fl", "Ev", "Dv", "Cm", "Pq", "Pa", "Fn"):
            self.sentence(self.spoken([macro, *words(rest)]))
        else:
            raise MacroError(f".{macro} {rest}")

    def spoken(self, macros: list[str]) -> str:
        said = in_line(macros, self.link)
        if macros[0] == "Pq":
            closing = said[-1] if said[-1] in CLOSING else ""
            return said.removesuffix(closing) + ")" + closing
        if macros[0] == "Op":
            said += "]"
        if "](" in said or "`" in said:
            return said
        closing = said[-1] if said[-1] in CLOSING else ""
        return code(said.removesuffix(closing).strip()) + closing

    def item(self, rest: str) -> None:
        if self.lists[-1] == "bullet":
            self.out.append("  " * (len(self.lists) - 1) + "-")
            return
        kind, _, said = rest.partition(" ")
        head = said if kind in ("Fa", "Fn", "Ev", "Pa") else rest
        self.out.append("  " * (len(self.lists) - 1) + f"- {head_of(head.replace(chr(34), ''))}")
        self.out.append("")

    def markdown(self) -> str:
        for line in self.text.splitlines():
            if self.code_lines is not None:
                if line == ".Ed":
                    lines, self.code_lines = self.code_lines, None
                    self.fence(lines, "c" if any("(" in one for one in lines) else "text")
                else:
                    self.code_lines.append(unescaped(line))
            elif line.startswith('.\\"'):
                continue
            elif match := re.match(r"\.(\w\w)(?: (.*))?$", line):
                self.macro(match.group(1), match.group(2) or "")
            else:
                self.sentence(prose(line))
        said = re.sub(r"^( *)-\n +(?=\S)", r"\1- ", "\n".join(self.out), flags=re.M)
        return f"# {self.title}\n\n" + re.sub(r"\n{3,}", "\n\n", said).strip() + "\n"


def wrapped(prototype: str) -> list[str]:
    """A prototype in lines that fit, an argument never in two."""
    lines = [""]
    for part in prototype.split(", "):
        if len(lines[-1]) + len(part) > 98:
            lines.append("       ")
        lines[-1] += (" " if lines[-1] else "") + part + ","
    lines[-1] = lines[-1].removesuffix(",")
    return lines


def pages(folder: Path) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Makes the manual below folder: each page's text by "SECTION/NAME", and the other names that lead to it."""
    done = subprocess.run([sys.executable, "-B", ROOT / "api/man_pages.py", folder], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    texts = {f"{path.suffix[1:]}/{path.stem}": path.read_text() for path in sorted(folder.glob("man*/*"))}
    names: dict[str, list[str]] = {}
    for name, text in texts.items():
        if match := re.fullmatch(r"\.so man(\d)/(.*)\.\d\n", text):
            names.setdefault(f"{match.group(1)}/{match.group(2)}", []).append(name.split("/")[1])
    return {name: text for name, text in texts.items() if not text.startswith(".so ")}, names


def write(manual: Path, into: Path, before: str) -> list[tuple[str, str, str]]:
    """Writes into/SECTION/NAME.md for each page, begun by `before`; returns section, name and subject of each."""
    texts, names = pages(manual)
    written = []
    for place, text in texts.items():
        section, name = place.split("/")
        links = {other.split("/")[1]: f"../{other}.md" for other in texts}
        for target, others in names.items():
            links |= dict.fromkeys(others, f"../{target}.md")
        page = Converter(text, links)
        try:
            said = page.markdown()
        except (MacroError, KeyError) as error:
            raise SystemExit(f"docs/site/manual.py: {name}({section}) has an unknown macro: {error}") from error
        if names.get(place) and section == "3":
            listed = ", ".join(map(code, sorted({name, *names[place]})))
            said += f"\n## All names\n\n{listed}\n"
        (into / section).mkdir(parents=True, exist_ok=True)
        (into / section / f"{name}.md").write_text(before + said)
        written.append((section, name, page.about))
    return written

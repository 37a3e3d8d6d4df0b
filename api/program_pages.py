"""The manual pages of sections 1 and 7: the texts of api/man, with options and settings of the code in their places.
A line `@NAME@` of such a text is replaced by what the function of that name here returns."""

from __future__ import annotations

import re
from pathlib import Path

import code_tables
import mdoc
from function_pages import Page
from generate import ROOT, TABLES, load

SOURCES = ROOT / "api/man"
TITLES = ["Several programs", "Threads", "Several hosts", "Output", "Status"]


def head(option: str) -> str:
    """An option with its names in bold and its values in italics, as the head of a list's item."""
    def word(match: re.Match) -> str:
        if match.group(1):
            return rf"\fB{mdoc.literal(match.group(1))}\fP"
        return rf"\fI{match.group(2)}\fP" if match.group(2) else match.group(0)

    return re.sub(r"(?<![\w])(-{1,2}\w[\w:-]*)|\b([A-Z][A-Z]*)\b(?!_)", word, option)


def listed(options: list[tuple[str, str]]) -> list[str]:
    """A list of options; the help says nothing of --help, nor the parser of the runs that a command works on."""
    return mdoc.tagged([(head(option), mdoc.lines(sentence(said or unsaid(option)))) for option, said in options], "Ds")


def unsaid(option: str) -> str:
    return "Print these options, or the version" if "--help" in option else "The folders of the runs that are meant"


def sentence(text: str) -> str:
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")


def paragraphs(text: str) -> dict[str, str]:
    """What oshrun --help says behind its options, by the words of TITLES."""
    pieces = re.split(rf"(?:^|\n)({'|'.join(TITLES)}): ", text)
    found = {title: " ".join(said.split()) for title, said in zip(pieces[1::2], pieces[2::2])}
    found["Several hosts"] = found["Several hosts"].removesuffix(" On this machine:")
    return found


def oshrun_options() -> list[str]:
    return listed(code_tables.options(code_tables.oshrun_help()))


def oshrun_more() -> list[str]:
    found = paragraphs(code_tables.oshrun_help())
    result: list[str] = []
    for title in TITLES[:-1]:
        result += [f".Ss {title if title != 'Output' else 'Output and the end of a job on this machine'}",
                   *mdoc.lines(sentence(found[title]))]
    return result


def oshrun_status() -> list[str]:
    cases = paragraphs(code_tables.oshrun_help())["Status"].rstrip(".").split("; ")
    cases[:2] = ["; ".join(cases[:2])]
    return [".Bl -bullet -compact", *(line for case in cases for line in [".It", *mdoc.lines(sentence(case))]), ".El"]


def wrapper_options() -> list[str]:
    return listed(code_tables.options(code_tables.comment_help("tools/oshcc.in")))


def info_options() -> list[str]:
    return listed(code_tables.options(code_tables.info_help()))


def suite_options() -> list[str]:
    parser = code_tables.suite_parser()
    result = listed(code_tables.suite_options(parser))
    for name, said, own in code_tables.suite_commands(parser):
        about = (own.description or "") if own.description and own.description != said else ""
        result += [f".Ss {name}", *mdoc.lines(sentence(said)), *(mdoc.lines(about) if about else []),
                   *listed(code_tables.suite_options(own))]
    return result


def settings() -> list[str]:
    items = []
    for setting in code_tables.settings():
        names = f"Ev {setting.name}" + (f" (or {setting.old_name})" if setting.old_name else "")
        words = setting.default.split("|")
        value = f"One of {', '.join(words)}; by default {words[0]}." if len(words) > 1 else (
            f"By default {setting.default}." if setting.default else "By default empty.")
        items.append((names, [*mdoc.lines(setting.help), *mdoc.lines(value)]))
    return mdoc.tagged(items, "Ds")


def functions(pages: list[Page]) -> list[str]:
    """All pages of section 3, by the sections of the tables."""
    result: list[str] = []
    for table in TABLES:
        for title, _ in load(table):
            here = [(page.name, 3) for page in pages
                    if page.section and (page.section.table, page.section.title) == (table, title)]
            if here:
                result += [".Ss " + re.sub(r" \(.*?\)|; see .*", "", title), *mdoc.references(here)]
    return result


def write(folder: Path, pages: list[Page], date: str, system: str) -> list[str]:
    """Writes all pages of sections 1 and 7, and returns their names."""
    makers = {"OSHRUN_OPTIONS": oshrun_options, "OSHRUN_MORE": oshrun_more, "OSHRUN_STATUS": oshrun_status,
              "WRAPPER_OPTIONS": wrapper_options, "INFO_OPTIONS": info_options, "SUITE_OPTIONS": suite_options,
              "SETTINGS": settings, "FUNCTIONS": lambda: functions(pages)}
    written = []
    for source in sorted(SOURCES.glob("*.in")):
        name, section = source.stem.rsplit(".", 1)
        lines: list[str] = []
        for line in source.read_text().splitlines():
            match = re.fullmatch(r"@(\w+)@", line)
            lines += makers[match.group(1)]() if match else [line]
        at = folder / f"man{section}"
        at.mkdir(parents=True, exist_ok=True)
        text = [*mdoc.prologue(name, int(section), date, system), *lines]
        (at / source.stem).write_text("\n".join(text) + "\n")
        written.append(source.stem)
    for wrapper in ("oshc++", "oshfort"):
        (folder / f"man1/{wrapper}.1").write_text(".so man1/oshcc.1\n")
    return written

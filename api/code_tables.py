"""What the manual pages of programs say of settings and options, read where the code has it: settings.def, the texts of
--help, and the parser of shmem-mt."""

from __future__ import annotations

import argparse
import re
import sys
import types
from dataclasses import dataclass
from typing import Any

from generate import ROOT

ESCAPES = {"n": "\n", '"': '"', "\\": "\\"}
STRING = r'"((?:[^"\\]|\\.)*)"'


@dataclass
class Setting:
    """A row of src/base/settings.def."""

    name: str
    old_name: str
    default: str  # of a choice: its words, the first one by default
    help: str


def unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: ESCAPES.get(match.group(1), match.group(0)), text)


def joined(strings: str) -> str:
    """C string literals beside each other as one text."""
    return "".join(unescaped(part) for part in re.findall(STRING, strings))


def settings() -> list[Setting]:
    text = (ROOT / "src/base/settings.def").read_text()
    found = []
    literals = rf"(?:\s*{STRING.replace('(', '(?:', 1)})+"
    old_name = r'((?: *(?:nullptr|"\w+"),)?)'
    rows = re.compile(rf'^(SETTING|CHOICE)\(\w+, \w+, ("\w+"),{old_name} *("[^"]*"),({literals})\)', re.M)
    for kind, name, old, default, said in (match.groups() for match in rows.finditer(text)):
        before = "" if kind == "CHOICE" or "nullptr" in old else joined(old)
        found.append(Setting(joined(name), before, joined(default), joined(said)))
    wanted = len(re.findall(r"^(?:SETTING|CHOICE)\(", text, re.M))
    if len(found) != wanted:
        raise SystemExit(f"api/code_tables.py: of {wanted} rows of src/base/settings.def {len(found)} are understood")
    return found


def help_text(path: str, before: str) -> str:
    """The string behind the words `before` in a C++ file."""
    text = (ROOT / path).read_text()
    strings = re.match(rf"(?:\s*{STRING})+", text[text.index(before) + len(before):])
    if not strings:
        raise SystemExit(f"api/code_tables.py: there is no text behind {before!r} in {path}")
    return joined(strings.group(0))


def oshrun_help() -> str:
    most = re.search(r"kMaxPes = (\d+)", (ROOT / "src/bootstrap/job_page.h").read_text())
    assert most
    return help_text("launcher/help.cpp", "kText =").replace("%d", most.group(1))


def info_help() -> str:
    return help_text("tools/heddle_info.cpp", "void print_help() {\n    printf(")


def comment_help(path: str) -> str:
    """The comment at the top of a shell script, which is its --help."""
    lines = (ROOT / path).read_text().splitlines()[1:]
    end = next(place for place, line in enumerate(lines) if not line.startswith("#"))
    return "\n".join(re.sub("^# ?", "", line) for line in lines[:end])


def options(text: str) -> list[tuple[str, str]]:
    """(an option with its other names and values, what it does) of the indented lines of a help."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if match := re.match(r"  (-.*?)(?:  +(\S.*))?$", line):
            found.append((match.group(1), match.group(2) or ""))
        elif match := re.match(r" {3,}(\S.*)", line):
            if found:
                found[-1] = (found[-1][0], f"{found[-1][1]} {match.group(1)}".strip())
        elif found and line:
            break
    return found


def suite_parser() -> argparse.ArgumentParser:
    """The parser of shmem-mt. Completion for shells, its one need beyond Python here, is an option without effect."""
    sys.path.insert(0, str(ROOT / "shmem-mt"))
    if "shtab" not in sys.modules:
        completion: Any = types.ModuleType("shtab")
        completion.add_argument_to = lambda parser, flag, **rest: parser.add_argument(flag, metavar="SHELL", **rest)
        sys.modules["shtab"] = completion
    try:
        from shmem_mt.cli import build_parser
    except ImportError as error:
        raise SystemExit(f"api/code_tables.py: shmem_mt.cli needs {error.name}, which python3 alone does not have: "
                         "import it in the function that needs it") from error
    return build_parser()


def suite_options(parser: argparse.ArgumentParser) -> list[tuple[str, str]]:
    """The options and arguments of a command, as `options` gives them."""
    found = []
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction):
            continue
        words = "|".join(map(str, action.choices or [action.dest.upper()]))
        value = "" if action.nargs == 0 else str(action.metavar or words)
        names = ", ".join(f"{name} {value}".strip() for name in action.option_strings) or f"{value} ..."
        found.append((names, " ".join((action.help or "").split())))
    return found


def suite_commands(parser: argparse.ArgumentParser) -> list[tuple[str, str, argparse.ArgumentParser]]:
    """(name, what it does, its parser) of each command of shmem-mt."""
    action = next(one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    said = {choice.dest: choice.help or "" for choice in action._choices_actions}
    return [(name, said[name], own) for name, own in action.choices.items()]

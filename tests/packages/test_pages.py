"""The commands of README.md and docs/quickstart.md in an empty Debian 12, as a reader types them, from the first to the
last; the pages are read, and nothing of them is written here once more. What the reader saves is saved where the page
says so."""

import os
import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# What is not run, by the beginning of the command, and why.
NOT_RUN = {
    "make report": "eight minutes of measuring, which nothing else may disturb",
    "make test": "ten minutes and more, and its packages: run by itself (HEDDLE_PAGES_MAKE=1)",
    "oshrun --hosts": "needs a second host: tests/multihost",
}
# What a reader has before the first command, beside Debian.
BEFORE = ["git", "make", "sudo", "ca-certificates"]
CLONED = "<this repository>"


def steps(text):
    """Of a page, in order: ("file", name, its text) and ("command", command, what the page shows behind it)."""
    found = []
    for name, program, block in re.findall(r"^```\w+ (\w+\.\w+)[^\n]*\n(.*?)^```$|((?:^    [^\n]*\n|^ *\n(?=    ))+)",
                                           re.sub(r"<!--.*?-->", "", text, flags=re.S), flags=re.S | re.M):
        if name:
            found.append(("file", name, program))
            continue
        lines = [line[4:] for line in block.strip("\n").splitlines()]
        shown = any(line.startswith("$ ") for line in lines)
        for line in lines:
            command = re.sub(r"^\s*#.*|\s+#.*", "", line.removeprefix("$ "))
            if shown and not line.startswith("$ "):
                found[-1][2].append(line)
            elif command:
                found.append(("command", command, []))
    return found


def reason_not_to_run(command):
    if os.environ.get("HEDDLE_PAGES_MAKE") and command.startswith("make "):
        return None
    return next((reason for start, reason in NOT_RUN.items() if command.startswith(start)), None)


def script_of(page):
    """A script that says before each command which it is; a command that fails ends it."""
    lines = ["set -e"]
    for kind, name, rest in steps((ROOT / page).read_text()):
        if kind == "file":
            lines += [f"cat >{name} <<'END OF {name}'", rest + f"END OF {name}"]
        elif not reason_not_to_run(name):
            lines += [f"echo '>>> {page}: '{quoted(name)}", name.replace(CLONED, "/repository")]
    return "\n".join([*lines, ""])


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


@pytest.fixture
def reader(fresh):
    fresh.run("apt-get", "update", "-qq")
    fresh.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *BEFORE)
    # A reader's own answer to apt's question; the clone belongs to another user than the one that made it.
    (fresh.root / "etc/apt/apt.conf.d/yes").write_text('APT::Get::Assume-Yes "true";\n')
    fresh.run("git", "config", "--global", "--add", "safe.directory", "*")
    shutil.copytree(ROOT, fresh.root / "repository", symlinks=True, ignore=shutil.ignore_patterns("build", "report"))
    return fresh


def test_each_command_of_the_first_pages(reader):
    for page, folder in (("docs/quickstart.md", "/root"), ("README.md", "/root/heddle")):
        (reader.root / "script").write_text(script_of(page))
        said = reader.run("bash", "-c", f"cd {folder} && export PATH=$PATH:$HOME/opt/heddle/bin && . /script")
        pieces = dict(re.findall(rf"^>>> {page}: (.*)\n((?:(?!>>> ).*\n)*)", said, re.M))
        ran = 0
        for kind, command, shown in steps((ROOT / page).read_text()):
            if kind == "command" and not reason_not_to_run(command):
                assert command in pieces, f"{command}\n{said}"
                assert not shown or sorted(pieces[command].splitlines()) == sorted(filter(None, shown)), said
                ran += 1
        assert ran > 1, said


def test_exceptions_are_commands_of_the_pages():
    commands = [name for page in ("README.md", "docs/quickstart.md")
                for kind, name, _ in steps((ROOT / page).read_text()) if kind == "command"]
    assert len(commands) > 10
    assert [start for start in NOT_RUN if not any(name.startswith(start) for name in commands)] == []

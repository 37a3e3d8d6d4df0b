#!/usr/bin/env python3
"""What programs were compiled with stays: every function with its types, every constant, and each layout.

    promise.py names          the functions and constants of promise.txt are as they were, and all are in it
    promise.py layouts        the types that programs and the library share are as in promise.abi, by abidiff; 77: there
                              is none
    promise.py write          adds what is new to promise.txt; with --anew: as it is now, and promise.abi. That breaks
                              programs: a new soname (src/CMakeLists.txt) and new names of data go with it
    promise.py self-test      breaks copies of the headers, and wants each break to be found

exit 0: kept; 1: not, with each case. Where this commit follows a release (a tag v1.2.3), the release's own promise.txt
counts, too: what is edited out of this one is still missed.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT, LAYOUTS = Path("tests/abi/promise.txt"), Path("tests/abi/promise.abi")
HEAD = "# What programs are compiled with, by tests/abi/promise.py: lines come, none goes or changes.\n"
OBJECTS = """const struct heddle_abi_1 heddle_abi_1;
__thread struct heddle_streams heddle_streams_2;
uint64_t heddle_streams_epoch_1;
const struct heddle_team heddle_team_world, heddle_team_shared;
"""
STANDARD = {"size_t", "ptrdiff_t", *(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64))}
FLAGS = ["-std=c2x", "-DHEDDLE_NO_INLINE", "-DHEDDLE_SILENCE_DEPRECATED", "-w"]


def output(*command: str | Path, cwd: Path | None = None) -> str:
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, cwd=cwd).stdout


def signatures(include: Path) -> dict[str, str]:
    """Function to its type, such as `void (long int *, long int, int)`, as the compiler reads the headers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "all.c").write_text("#include <shmemx.h>\n")
        output("gcc", *FLAGS, f"-I{include}", "-fsyntax-only", "-aux-info", "all.aux", "all.c", cwd=folder)
        text = (folder / "all.aux").read_text()
    found = {}
    for line in text.splitlines():
        match = re.fullmatch(rf"/\* {re.escape(str(include))}/\S+ \*/ extern (.*?)(\w+) (\(.*\));", line)
        if match:
            found[match[2]] = f"{match[1].strip()} {match[3]}"
    return found


def constants(include: Path) -> dict[str, str]:
    """Public names that the preprocessor replaces by a number, and by which one."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "all.c"
        source.write_text("#include <shmemx.h>\n")
        macros = re.findall(r"^#define (_?SHMEMX?_\w+) \S", output("gcc", *FLAGS, f"-I{include}", "-dM", "-E", source),
                            flags=re.M)
        source.write_text("#include <shmemx.h>\n" + "".join(f'"{name}" {name}\n' for name in macros))
        text = output("gcc", *FLAGS, f"-I{include}", "-E", "-P", source)
    found = re.findall(r'^"(_?SHMEMX?_\w+)" (-?\d\w*|\(-?\d\w*\))$', text, flags=re.M)
    return {name: value for name, value in found if not name.endswith("R_VERSION")}  # the standard's version may rise


def lines(include: Path) -> set[str]:
    """`TYPE: name` of each function, `name = value` of each constant."""
    return {f"{name}: {kind}" for name, kind in signatures(include).items()} | {
        f"{name} = {value}" for name, value in constants(include).items()}


def read(text: str) -> set[str]:
    """The lines of promise.txt, which has the names of functions by their type."""
    found, kind = set(), ""
    for line in text.splitlines():
        if line.startswith("    "):
            found |= {f"{name}: {kind}" for name in line.split()}
        elif " = " in line:
            found.add(line)
        elif not line.startswith("#"):
            kind = line
    return found


def written(found: set[str]) -> str:
    by_kind = defaultdict(list)
    for line in sorted(found):
        if ": " in line:
            name, kind = line.split(": ", 1)
            by_kind[kind].append(name)
    text = HEAD + "".join(f"{line}\n" for line in sorted(found) if ": " not in line)
    for kind in sorted(by_kind):
        text += f"{kind}\n"
        row = "   "
        for name in by_kind[kind]:
            if len(row) + 1 + len(name) > 120:
                text, row = f"{text}{row}\n", "   "
            row += f" {name}"
        text += f"{row}\n"
    return text


def last_release() -> tuple[str, set[str]]:
    """The tag of the release before this commit, and its lines; "" where there was none."""
    done = subprocess.run(["git", "-C", str(ROOT), "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return "", set()
    tag = done.stdout.strip()
    then = subprocess.run(["git", "-C", str(ROOT), "show", f"{tag}:{TEXT}"], capture_output=True, text=True)
    return tag, read(then.stdout)


def missed(promised: set[str], have: set[str], since: str) -> list[str]:
    now = {re.split(": | = ", line)[0]: line for line in have}
    return [f"{since} has \"{line}\"; now it is " + (f"\"{now[name]}\"" if name in now else "gone")
            for line in sorted(promised - have) for name in [re.split(": | = ", line)[0]]]


def check_names(include: Path) -> list[str]:
    have, promised = lines(include), read((ROOT / TEXT).read_text())
    tag, then = last_release()
    wrong = missed(promised, have, TEXT.name) + missed(then, have, tag)
    new = [] if wrong else sorted(have - promised)
    return wrong + [f"{line}: not in {TEXT.name} yet: promise.py write" for line in new]


def stub(include: Path, folder: Path) -> Path:
    """A library with the shared data, and a function of each kind of handle or structure, for what knows its types."""
    chosen: dict[str, str] = {}
    for name, kind in sorted(signatures(include).items()):
        for word in set(re.findall(r"(?:struct |enum )?\w+", kind)):
            if (word.endswith("_t") or " " in word) and word not in STANDARD:
                chosen.setdefault(word, name)
    functions = {name: signatures(include)[name] for name in sorted(set(chosen.values()))}
    text = "#include <shmemx.h>\n" + OBJECTS
    for name, kind in functions.items():
        result, arguments = kind.split(" (", 1)
        text += f"{result} {name}({arguments} {{ __builtin_trap(); }}\n"
    (folder / "promise.c").write_text(text)
    output("gcc", *FLAGS, f"-I{include}", "-g", "-O0", "-fPIC", "-shared", "-nostdlib", "-Wl,-soname,libheddle.so.1",
           "promise.c", "-o", "libheddle.so.1", cwd=folder)
    return folder / "libheddle.so.1"


def described(include: Path) -> str:
    with tempfile.TemporaryDirectory() as name:
        return output("abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-architecture",
                      stub(include, Path(name)))


def check_layouts(include: Path) -> list[str]:
    with tempfile.TemporaryDirectory() as name:
        now = Path(name) / "now.abi"
        now.write_text(described(include))
        done = subprocess.run(["abidiff", "--no-added-syms", ROOT / LAYOUTS, now], capture_output=True, text=True)
    return [] if done.returncode == 0 else [f"abidiff ends with {done.returncode}:", done.stdout + done.stderr]


BREAKS = {  # file, what, by what
    "a parameter": ("shmem.h", "int shmem_n_pes(void);", "long shmem_n_pes(void);"),
    "a constant": ("heddle/constants.h", "#define SHMEM_CMP_EQ 1", "#define SHMEM_CMP_EQ 9"),
    "a name": ("shmem.h", "void shmem_fence(void);", ""),
}
LAYOUT_BREAKS = {
    "a member in front": ("heddle/abi.h", "struct heddle_peer {", "struct heddle_peer {\n    uint64_t generation;"),
    "a member behind": ("heddle/abi.h", "struct heddle_abi_1 {", "struct heddle_abi_1 {\n    char first;"),
}


def self_test() -> list[str]:
    wrong = []
    kinds = [(BREAKS, check_names)] + ([(LAYOUT_BREAKS, check_layouts)] if shutil.which("abidiff") else [])
    for breaks, check in kinds:
        for what, (file, old, new) in breaks.items():
            with tempfile.TemporaryDirectory() as name:
                include = Path(name) / "include"
                shutil.copytree(ROOT / "include", include)
                text = (include / file).read_text()
                (include / file).write_text(text.replace(old, new))
                if old not in text or not check(include):
                    wrong.append(f"not found: {what}: {old!r} of {file}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["names", "layouts", "write", "self-test"])
    parser.add_argument("--anew", action="store_true")
    options = parser.parse_args()
    include = ROOT / "include"
    if options.what == "layouts" and not shutil.which("abidiff"):
        print("there is no abidiff: Debian has it in abigail-tools")
        return 77
    if options.what == "write":
        before = read((ROOT / TEXT).read_text()) if (ROOT / TEXT).exists() and not options.anew else set()
        wrong = missed(before, lines(include), TEXT.name)
        if not wrong:
            (ROOT / TEXT).write_text(written(lines(include)))
        if options.anew:
            (ROOT / LAYOUTS).write_text(described(include))
    else:
        wrong = {"names": lambda: check_names(include), "layouts": lambda: check_layouts(include),
                 "self-test": self_test}[options.what]()
    print("\n".join(wrong[:40]) or "kept")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

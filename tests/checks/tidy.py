#!/usr/bin/env python3
"""Runs clang-tidy (.clang-tidy) over src/, launcher/ and tools/.

    tidy.py ROOT              exit 0: nothing found; 1: findings, each with its place; 77: there is no clang-tidy-19
    tidy.py ROOT --one-in N   of the translation units every Nth
    tidy.py ROOT --analyzer   only the checks of clang's static analyzer, which take minutes
    tidy.py --self-test       wants both to find a mistake

Each folder is read as one translation unit, so that its headers are looked at once: 50 s of CPU time instead of 490.
The analyzer gets file by file. Generated files are not read.
"""

from __future__ import annotations

import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = "clang-tidy-19"
# init.cpp writes the ABI's table, which all others see as constant; kernels are one source for several vector units.
ALONE = ("src/runtime/init.cpp", "src/collective/node/kernels_")
# Plugins are libraries of their own, read where the library that they need is installed.
PLUGINS = {"src/fabric/transport/ucx": "ucx", "src/bootstrap/pmix": "pmix"}
FLAGS = ["-std=c++20", "-D_GNU_SOURCE", "-pthread", '-DHEDDLE_VERSION=""', '-DHEDDLE_LIBRARY_FOLDER=""',
         '-DHEDDLE_PLUGIN_FOLDER="private/"', '-DHEDDLE_TOOL_SUFFIX=""', "-DHEDDLE_PACKAGED_PARTS=0"]
# The library's own slow path, as in src/CMakeLists.txt.
FLAGS += [f"-Dheddle_slow_{name}=heddle_own_{name}" for name in (
    "put", "get", "p", "g", "amo", "put_nbi", "get_nbi", "amo_nbi", "put_nbe", "get_nbe", "amo_nbe")]


def flags_of(plugin: str) -> list[str] | None:
    """The compiler's flags for the library that a plugin needs; None where it is not installed."""
    result = subprocess.run(["pkg-config", "--cflags", PLUGINS[plugin]], capture_output=True, text=True, check=False)
    return result.stdout.split() if result.returncode == 0 else None


def units(root: Path, is_analyzer: bool) -> list[tuple[list[Path], list[str]]]:
    """The .cpp files of src/, launcher/ and tools/ by translation unit, each with flags of its own."""
    shared: dict[str, list[Path]] = {}
    found = []
    for file in sorted(file for folder in ("src", "launcher", "tools") for file in (root / folder).rglob("*.cpp")):
        name = file.relative_to(root)
        if (folder := name.parent.as_posix()) in PLUGINS:
            if (flags := flags_of(folder)) is not None:
                found.append(([file], flags))
        elif is_analyzer or name.as_posix().startswith(ALONE):
            found.append(([file], []))
        else:
            shared.setdefault("/".join(name.parts[:2]) if name.parts[0] == "src" else name.parts[0], []).append(file)
    return [*((files, []) for files in shared.values()), *found]


def findings(root: Path, unit_of: tuple[list[Path], list[str]], checks: list[str]) -> str:
    """What clang-tidy says of files that are read as one, compiled with flags of their own."""
    files, more_flags = unit_of
    with tempfile.TemporaryDirectory() as folder:
        unit = Path(folder) / "unit.cpp"
        if len(files) == 1:  # the analyzer looks at functions of the main file alone
            unit = files[0]
        else:
            unit.write_text("".join(f'#include "{file}"\n' for file in files))
        flags = [*FLAGS, *more_flags, f"-I{root / 'src'}", f"-I{root / 'include'}", f"-I{root}"]
        command = [PROGRAM, "--quiet", f"--config-file={root / '.clang-tidy'}", *checks, str(unit), "--", *flags]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        return result.stdout + result.stderr if result.returncode else ""


def check(root: Path, checks: list[str], one_in: int = 1) -> list[str]:
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        looked_at = units(root, checks is ANALYZER)[::one_in]
        return [text for text in pool.map(lambda unit: findings(root, unit, checks), looked_at) if text]


ANALYZER = ["--checks=-*,clang-analyzer-*,-clang-analyzer-optin.performance.Padding"]
OTHERS = ["--checks=-clang-analyzer-*"]
BROKEN = {
    "use after move": (OTHERS, "#include <string>\n"
                               "size_t f(std::string s) { auto t = std::move(s); return t.size() + s.size(); }\n"),
    "division by zero": (ANALYZER, "int f(int a) { int b = 0; if (a > 3) b = 0; return a / b; }\n"),
}


def self_test(root: Path) -> list[str]:
    missed = []
    for what, (checks, text) in BROKEN.items():
        with tempfile.TemporaryDirectory() as name:
            (Path(name) / "src" / "base").mkdir(parents=True)
            (Path(name) / "src" / "base" / "a.cpp").write_text(text)
            shutil.copy(root / ".clang-tidy", name)
            if not check(Path(name), checks):
                missed.append(f"missed: {what}")
    return missed


def main() -> int:
    if not shutil.which(PROGRAM):
        print(f"skipped: there is no {PROGRAM}")
        return 77
    if sys.argv[1:] == ["--self-test"]:
        found = self_test(Path(__file__).resolve().parents[2])
    else:
        options = sys.argv[2:]
        one_in = int(options[options.index("--one-in") + 1]) if "--one-in" in options else 1
        found = check(Path(sys.argv[1]).resolve(), ANALYZER if "--analyzer" in options else OTHERS, one_in)
    print("\n".join(found) or "ok")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

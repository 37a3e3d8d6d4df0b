#!/usr/bin/env python3
"""Who may include whom. Includes point down the list below, to what is more basic; the table says how far.

    layers.py ROOT          exit 0: all includes are allowed, and all that is allowed is used; 1: not, with each case
    layers.py --self-test   plants violations in a small tree and wants each one found

A folder that is not in the table is a violation: adding one means saying here what it may use.
"""

from __future__ import annotations

import functools
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

# src/ from the most basic folder to the least. The right side is what really is needed, so that a new edge is a
# decision, and one that nothing needs any more is a violation. Every folder may include itself.
MAY_INCLUDE = {
    "base": [],
    "os": ["base"],
    "sync": ["base", "os"],
    "progress": ["base", "os", "sync"],
    "bootstrap": ["base", "os", "sync", "progress"],
    "memory": ["base", "os"],
    "fabric": ["base", "os", "sync", "progress"],
    "context": ["base", "sync", "fabric"],
    "team": ["base", "os", "sync", "progress", "memory", "fabric"],
    "operations": ["base", "os", "progress", "bootstrap", "memory", "fabric", "context", "team"],
    "checking": ["base", "os", "sync", "progress", "bootstrap", "memory", "fabric", "context", "team", "operations"],
    "collective": ["base", "os", "sync", "progress", "memory", "fabric", "context", "team", "operations"],
    "profiling": ["base", "os", "progress", "bootstrap", "memory", "team", "context", "operations"],
    "runtime": ["base", "os", "progress", "bootstrap", "memory", "fabric", "context", "team", "operations",
                "checking", "profiling", "collective"],
    "entry": ["operations", "collective", "runtime"],
}
# Programs beside the library share its basics, the job page, and the reader of launchers' variables, nothing else.
BESIDE = ["base", "os", "sync"]
BESIDE_FILES = ["bootstrap/job_page.h", "bootstrap/launch_environment.h", "bootstrap/status_report.h"]
# Which public headers a folder of src/ reads; the rest see the ABI and the constants alone.
PUBLIC = {
    "base": ["heddle/abi.h"],
    "os": [],
    "sync": [],
    "progress": [],
    "bootstrap": [],
    "fabric": ["heddle/abi.h", "heddle/hot_path.h"],
    "collective": ["heddle/abi.h", "heddle/constants.h", "heddle/request.h"],
    "context": ["heddle/abi.h", "heddle/request.h"],
    "checking": ["heddle/abi.h", "heddle/accesses.h", "heddle/constants.h"],
    "profiling": ["heddle/abi.h", "heddle/constants.h", "heddle/hot_path.h"],
    "operations": ["heddle/abi.h", "heddle/accesses.h", "heddle/constants.h", "heddle/hot_path.h", "heddle/request.h"],
    "runtime": ["heddle/abi.h", "heddle/constants.h", "heddle/request.h"],
    "entry": ["shmemx.h"],
    "launcher": ["heddle/constants.h"],
    "tools": ["heddle/constants.h", "heddle/request.h", "shmem.h"],
}
# The C++ folders of the suite, which includes by the path from shmem-mt/ on. Every folder may include itself.
SUITE = {
    "programs/common": [],
    "programs/probes": ["programs/common"],
    **{key: ["programs/common"] for key in ["programs/pt2pt", "programs/collectives", "programs/progress",
                                            "programs/ordering", "programs/patterns", "simulator"]},
    "apps/common": ["programs/common"],
    **{key: ["programs/common", "apps/common"] for key in ["apps/krylov", "apps/cg", "apps/minimd", "apps/is",
                                                           "apps/gups", "apps/mandelbrot", "apps/halo"]},
    **{key: ["programs/common", "apps/common", "apps/krylov"] for key in ["apps/hpccg", "apps/minife"]},
}
PUBLIC_OF_OTHERS = ["heddle/abi.h", "heddle/constants.h"]
C_LIBRARY_IN_HEADERS = {"stddef.h", "stdint.h", "string.h"}
SUFFIXES = {".c", ".cpp", ".h", ".hpp", ".def"}


# Of the C++ library, which public headers of C++ may include.
CPP_LIBRARY = re.compile(r"[a-z_]+")


def includes(file: Path) -> list[tuple[int, str]]:
    """The (line, path) of each #include of a file."""
    lines = file.read_text().splitlines()
    found = ((number, re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line)) for number, line in enumerate(lines, 1))
    return [(number, match.group(1)) for number, match in found if match]


def files(root: Path, folder: str) -> list[Path]:
    return [file for file in sorted((root / folder).rglob("*")) if file.suffix in SUFFIXES]


def is_public(path: str) -> bool:
    return path.startswith("heddle/") or path in ("shmem.h", "shmemx.h", "pshmem.h")


def wrong_in_source(folder: str, path: str) -> str:
    """Why a file of src/FOLDER must not include path; empty when it may."""
    if is_public(path):
        return "" if path in PUBLIC.get(folder, PUBLIC_OF_OTHERS) else f"{folder} may not read that public header"
    target = path.split("/")[0]
    if "/" not in path or target == folder or target not in MAY_INCLUDE:  # <memory> is no folder
        return ""
    return "" if target in MAY_INCLUDE[folder] else f"{folder} may not include {target}"


def wrong_beside(folder: str, path: str) -> str:
    if is_public(path):
        return "" if path in PUBLIC[folder] else f"{folder} may not read that public header"
    if path.split("/")[0] in MAY_INCLUDE and path.split("/")[0] not in BESIDE and path not in BESIDE_FILES:
        return f"{folder} may include {', '.join(BESIDE + BESIDE_FILES)}"
    return ""


def wrong_in_public(path: str) -> str:
    if is_public(path) or path in C_LIBRARY_IN_HEADERS:
        return ""
    return "public headers include public headers and " + ", ".join(sorted(C_LIBRARY_IN_HEADERS))


def wrong_in_benchmarks(folder: str, path: str) -> str:
    if path.startswith("heddle/") or ("/" in path and path.split("/")[0] in MAY_INCLUDE):
        return "the benchmarks run on every OpenSHMEM: shmem.h alone"
    target = path.rpartition("/")[0]
    if target == folder or not target.startswith(("programs/", "apps/")):
        return ""
    return "" if target in SUITE[folder] else f"{folder} may not include {target}"


def unused_edges(root: Path) -> list[str]:
    """What the table allows and no file needs. Folders without files are left out: the self-test plants one alone."""
    found = []
    for folder, targets in MAY_INCLUDE.items():
        used = {path.split("/")[0] for file in files(root, f"src/{folder}") for _, path in includes(file)}
        found += [f"src/{folder}: includes nothing of {target}, which tests/checks/layers.py allows"
                  for target in targets if used and target not in used]
    return found


def violations(root: Path) -> list[str]:
    found = [f"src/{folder.name}: not in the table of tests/checks/layers.py"
             for folder in sorted((root / "src").iterdir()) if folder.is_dir() and folder.name not in MAY_INCLUDE]
    found += [f"shmem-mt/{name}: not in the table of tests/checks/layers.py" for name in sorted(
        f"{folder.parent.name}/{folder.name}" for part in ("programs", "apps")
        for folder in (root / "shmem-mt" / part).glob("*/")) if name not in SUITE]
    rules: list[tuple[str, Callable[[str], str]]] = [("include", wrong_in_public)]
    rules += [(f"src/{folder}", functools.partial(wrong_in_source, folder)) for folder in MAY_INCLUDE]
    rules += [(folder, functools.partial(wrong_beside, folder)) for folder in ("launcher", "tools")]
    rules += [(f"shmem-mt/{folder}", functools.partial(wrong_in_benchmarks, folder)) for folder in SUITE]
    for folder, rule in rules:
        for file in files(root, folder):
            for line, path in includes(file):
                if folder == "include" and file.suffix == ".hpp" and CPP_LIBRARY.fullmatch(path):
                    continue
                if why := rule(path):
                    found.append(f"{file.relative_to(root)}:{line}: includes {path}: {why}")
    return found


def self_test_unused() -> list[str]:
    """A folder that needs all that it may include but the last is found; one that needs all is not."""
    missed = []
    for folder, targets in MAY_INCLUDE.items():
        for needed, wanted in ((targets[:-1], 1), (targets, 0)):
            with tempfile.TemporaryDirectory() as name:
                file = Path(name) / "src" / folder / "a.h"
                file.parent.mkdir(parents=True)
                lines = ["stddef.h", *(f"{target}/a.h" for target in needed)]
                file.write_text("".join(f'#include "{line}"\n' for line in lines))
                if targets and len(unused_edges(Path(name))) != wanted:
                    missed.append(f"unused edges of {folder} with {needed}")
    return missed


def self_test() -> list[str]:
    """Plants one violation at a time; returns those that were missed, and false alarms."""
    planted = {
        "src/base/a.h": "memory/peers.h",
        "src/os/a.h": "sync/event_count.h",
        "src/sync/a.h": "progress/wait_policy.h",
        "src/memory/a.cpp": "bootstrap/bootstrap.h",
        "src/operations/a.h": "collective/sync.h",
        "src/team/a.h": "collective/collective_call.h",
        "src/runtime/a.cpp": "entry/entry.h",
        "src/memory/b.cpp": "heddle/hot_path.h",
        "src/unheard_of/a.h": "base/error.h",
        "launcher/a.cpp": "memory/allocator.h",
        "tools/a.cpp": "bootstrap/bootstrap.h",
        "include/heddle/a.h": "base/error.h",
        "include/b.h": "stdio.h",
        "include/c.h": "ranges",
        "include/d.hpp": "base/error.h",
        "shmem-mt/programs/pt2pt/a.cpp": "heddle/abi.h",
        "shmem-mt/programs/common/a.hpp": "programs/pt2pt/a.hpp",
        "shmem-mt/programs/pt2pt/b.hpp": "programs/progress/a.hpp",
        "shmem-mt/apps/common/a.hpp": "apps/cg/a.hpp",
        "shmem-mt/apps/cg/a.hpp": "apps/krylov/a.hpp",
        "shmem-mt/apps/minife/a.hpp": "programs/ordering/a.hpp",
        "shmem-mt/apps/unheard_of/a.hpp": "apps/common/a.hpp",
    }
    right = {
        "src/entry/ok.h": "runtime/runtime.h",
        "src/memory/ok.h": "heddle/abi.h",
        "launcher/ok.cpp": "bootstrap/job_page.h",
        "shmem-mt/programs/pt2pt/ok.cpp": "shmem.h",
        "shmem-mt/apps/minife/ok.hpp": "apps/krylov/solver.hpp",
        "shmem-mt/apps/cg/ok.hpp": "apps/cg/solver.hpp",
        "include/ok.h": "heddle/abi.h",
        "include/ok.hpp": "ranges",
    }
    missed = []
    for place, path in {**planted, **right}.items():
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            (root / "src").mkdir()
            file = root / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f'// A file.\n#include "{path}"\n')
            if bool(violations(root)) != (place in planted):
                missed.append(f"{place} includes {path}: {'missed' if place in planted else 'false alarm'}")
    missed += self_test_unused()
    order = list(MAY_INCLUDE)
    missed += [f"the table lets {folder} include {target}, which is above it" for folder in order
               for target in MAY_INCLUDE[folder] if order.index(target) >= order.index(folder)]
    return missed


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        wrong = self_test()
    else:
        wrong = violations(Path(sys.argv[1])) + unused_edges(Path(sys.argv[1]))
    print("\n".join(wrong) or "ok")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

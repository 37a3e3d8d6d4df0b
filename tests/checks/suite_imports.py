#!/usr/bin/env python3
"""Which part of the suite's driver may import which. Imports point up the list below, to what is more basic.

    suite_imports.py ROOT          exit 0: all imports inside shmem-mt/shmem_mt are allowed, all that is allowed is
                                   used, no modules import each other in a circle, and nothing in tests/ imports the
                                   suite but what runs the mini-apps; 1: not, with each case
    suite_imports.py --self-test   plants violations in a small tree and wants each one found

A package that is not in the table is a violation: adding one means saying here what it may import. Every module may
import those of its own package and the basics.
"""

from __future__ import annotations

import ast
import sys
import tempfile
from pathlib import Path

# The packages of shmem-mt/shmem_mt, from the most basic to the least; the right side is what is needed.
MAY_IMPORT = {
    "targets": [],
    "catalogue": ["targets"],
    "runner": ["targets", "catalogue"],
    "simulation": ["targets", "runner"],
    "comparison": ["runner"],
    "studies": ["targets", "catalogue", "runner", "simulation"],
    "advice": ["targets", "catalogue", "runner", "studies"],
    "report": ["targets", "catalogue", "runner", "simulation", "studies", "advice"],
}
# Modules beside the packages; they import only each other.
BASICS = ["errors", "units", "statistics", "distributions", "sources", "supervisor"]
COMMANDS = ["cli", "__main__"]  # modules that may import everything, and that nothing but each other imports
SUITE = "shmem_mt"
RUNS_THE_APPS = "tests/chaos/catalogue.py"  # whose subjects the mini-apps are


def imported(file: Path) -> list[tuple[int, str]]:
    """The (line, module) of each import of the suite, also of those inside functions; a name that is imported from a
    package counts as its module."""
    found = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == SUITE:
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            found.append((node.lineno, f"{SUITE}.relative"))
        elif isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names if alias.name.split(".")[0] == SUITE]
    return found


def part_of(module: str) -> str:
    """The package, or the module beside them, that a dotted name belongs to; empty: the suite itself."""
    return ([*module.split("."), ""])[1]


def why_not(part: str, target: str) -> str:
    """Why the part must not import the target; empty when it may."""
    if not target or target.startswith("__version") or target == part or part in COMMANDS:
        return ""
    if target in BASICS:
        return ""
    if target not in MAY_IMPORT:
        return f"{target} is neither a package of the table nor one of {', '.join(BASICS)}"
    return "" if target in MAY_IMPORT.get(part, []) else f"{part} may not import {target}"


def circles(modules: dict[str, set[str]]) -> list[str]:
    """The modules that are left when those that import none of the others have been taken away, again and again."""
    left = {name: needed & modules.keys() - {name} for name, needed in modules.items()}
    while done := [name for name, needed in left.items() if not needed & left.keys()]:
        for name in done:
            del left[name]
    return [f"modules that import each other, or those: {', '.join(sorted(left))}"] if left else []


def violations(root: Path) -> list[str]:
    package = root / "shmem-mt" / SUITE
    found: list[str] = []
    modules: dict[str, set[str]] = {}
    used: dict[str, set[str]] = {part: set() for part in MAY_IMPORT}
    for file in sorted(package.rglob("*.py")):
        place = file.relative_to(package).with_suffix("")
        part = place.parts[0]
        if file.name == "__init__.py" and len(place.parts) == 1:
            continue
        if part not in [*MAY_IMPORT, *BASICS, *COMMANDS]:
            found.append(f"{file.relative_to(root)}: {part} is not in the table of tests/checks/suite_imports.py")
        name = ".".join([SUITE, *place.parts]).removesuffix(".__init__")
        modules[name] = set()
        for line, module in imported(file):
            target = part_of(module)
            if why := why_not(part, target):
                found.append(f"{file.relative_to(root)}:{line}: imports {module}: {why}")
            used.get(part, set()).add(target)
            modules[name] |= {module, module.rpartition(".")[0]}  # a module, or a name in one
    found += circles(modules)
    found += [f"{part} imports nothing of {target}, which tests/checks/suite_imports.py allows"
              for part, targets in MAY_IMPORT.items() for target in targets if target not in used[part]]
    for file in sorted((root / "tests").rglob("*.py")):
        if file.relative_to(root).as_posix() == RUNS_THE_APPS:
            continue
        found += [f"{file.relative_to(root)}:{line}: imports {module}, but the library's tests do not stand on the "
                  "suite" for line, module in imported(file)]
    return found


def self_test() -> list[str]:
    """Plants one violation at a time in a tree that has every allowed import; returns those that were missed, and false
    alarms."""
    right = {f"shmem-mt/{SUITE}/{part}/a.py": "".join(f"from {SUITE}.{target} import a as {target}\n"
                                                      for target in targets) for part, targets in MAY_IMPORT.items()}
    right |= {f"shmem-mt/{SUITE}/__init__.py": "", f"shmem-mt/{SUITE}/units.py": "",
              f"shmem-mt/{SUITE}/cli.py": f"from {SUITE}.report import a\n",
              f"shmem-mt/{SUITE}/report/b.py": f"from {SUITE} import __version__, units\nimport {SUITE}.report.a\n",
              "tests/unit/ok.py": "import namespace_hosts\n"}
    allowed = {f"../../{RUNS_THE_APPS}": f"from {SUITE} import sources\n"}
    planted = {
        "an import downwards": {"targets/c.py": f"from {SUITE}.catalogue import a\n"},
        "one inside a function": {"simulation/c.py": f"def f():\n    from {SUITE}.studies.a import calibrate\n"},
        "one of a whole module": {"runner/c.py": f"import {SUITE}.report.a\n"},
        "a basic module that imports a package": {"units.py": f"from {SUITE}.targets import a\n"},
        "an import of the command line": {"report/c.py": f"from {SUITE}.cli import main\n"},
        "a relative import": {"report/c.py": "from . import a\n"},
        "a package that is not in the table": {"unheard_of/a.py": ""},
        "a module that is not in the table": {"unheard_of.py": ""},
        "two modules in a circle": {"report/c.py": f"from {SUITE}.report import d\n",
                                    "report/d.py": f"from {SUITE}.report.c import x\n"},
        "an edge that is not used": {"catalogue/a.py": ""},
        "a test of the library on the suite": {"../../tests/unit/a.py": f"from {SUITE} import hosts\n"},
    }
    missed = []
    for what, files in {"nothing": {}, "the mini-apps as subjects": allowed, **planted}.items():
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            (root / "shmem-mt" / SUITE).mkdir(parents=True)
            (root / "tests").mkdir()
            broken = {f"shmem-mt/{SUITE}/{place}": text for place, text in files.items()}
            for place, text in {**right, **broken}.items():
                (root / place).parent.mkdir(parents=True, exist_ok=True)
                (root / place).resolve().write_text(text)
            found = violations(root)
            if bool(found) != (what in planted):
                missed.append(f"{what}: {'missed' if what in planted else found}")
    order = list(MAY_IMPORT)
    missed += [f"the table lets {part} import {target}, which is less basic" for part in order
               for target in MAY_IMPORT[part] if order.index(target) >= order.index(part)]
    return missed


def main() -> int:
    wrong = self_test() if sys.argv[1:] == ["--self-test"] else violations(Path(sys.argv[1]))
    print("\n".join(wrong) or "ok")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

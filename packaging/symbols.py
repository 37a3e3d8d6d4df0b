#!/usr/bin/env python3
"""libheddle1.symbols: the version of Heddle since which the library has each name, for dpkg-shlibdeps.

    symbols.py             writes it: names of the tables that it lacks come in with the version of CMakeLists.txt
    symbols.py --check     exit 0: it has the names of the tables, as tests/abi knows them, and no others; 1: not
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "packaging/debian/libheddle1.symbols"
VERSION = "HEDDLE_1"  # of src/entry/exports.map

sys.path.insert(0, str(ROOT / "tests/abi"))
from exported_names import OWN, output  # noqa: E402


def exported() -> set[str]:
    names = {name for table in ("openshmem", "shmemx")
             for name in output(sys.executable, "-B", str(ROOT / "api/generate.py"), "--list", table).split()}
    return names | {"p" + name for name in names} | OWN | {VERSION}


def written() -> dict[str, str]:
    """Name to version, as the file has it."""
    if not FILE.exists():
        return {}
    return dict(re.findall(rf"^ (\w+)@{VERSION} (\S+)$", FILE.read_text(), flags=re.M))


def main() -> int:
    names, before = exported(), written()
    if "--check" in sys.argv[1:]:
        wrong = [f"{name} is missing" for name in sorted(names - set(before))]
        wrong += [f"{name} is gone from the tables: programs need it, and the soname would have to change"
                  for name in sorted(set(before) - names)]
        print("\n".join([f"{FILE.name}: {line}" for line in wrong[:20]]) or f"{len(before)} symbols")
        return bool(wrong)
    version = re.search(r"project\(heddle VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
    FILE.write_text("libheddle.so.1 libheddle1 #MINVER#\n" + "".join(
        f" {name}@{VERSION} {before.get(name, version)}\n" for name in sorted(names | set(before))))
    return 0


if __name__ == "__main__":
    sys.exit(main())

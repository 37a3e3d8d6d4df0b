#!/usr/bin/env python3
"""A release by one command: make release VERSION=1.2.3.

    release.py VERSION     what is committed becomes build/release-VERSION/: source, binaries and packages, recipes that
                           name the source's checksum, release notes, a bill of materials (CycloneDX), SHA256SUMS; then
                           the annotated tag vVERSION, which stays in this repository until somebody pushes it
    release.py --check     exit 0: all places that have Heddle's version agree; 1: not, with each

--parts "tarball wheel deb rpm"    which binaries; by default each whose tools are there
--url URL                          the folder in which the files will be found, for the recipes
The same commit gives the same files.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True

import bill_of_materials  # noqa: E402  behind the line above, which keeps the source tree clean

ROOT = Path(__file__).resolve().parents[1]
PLACES = {  # file, and what stands around the version
    "CMakeLists.txt": r"^project\(heddle VERSION (\S+)",
    "CHANGELOG.md": r"^## (\d\S*)",
    "include/heddle/constants.h": r'^#define SHMEM_VENDOR_STRING "Heddle (\S+)"',
    "packaging/debian/changelog": r"^heddle \(([\d.]+)-",
    "packaging/heddle.spec": r"^Version: +(\S+)",
    "packaging/spack/package.py": r'^    version\("(\S+?)"',
    "packaging/conda/recipe/recipe.yaml": r"^  version: (\d\S*)",
    "shmem-mt/pyproject.toml": r'^version = "(\S+)"',
    "shmem-mt/shmem_mt/__init__.py": r'^__version__ = "(\S+)"',
}
MADE = {"tarball": "heddle-*.tar.xz", "wheel": "heddle-*.whl", "deb": "*.deb", "rpm": "*.rpm"}
TOOLS = {"tarball": "objdump", "wheel": "python3", "deb": "dpkg-buildpackage", "rpm": "rpmbuild"}
URL = "https://heddle.invalid"


def git(*words: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True).stdout


def versions() -> dict[str, str]:
    """File to the version that it has first."""
    found = {}
    for file, pattern in PLACES.items():
        match = re.search(pattern, (ROOT / file).read_text(), flags=re.M)
        found[file] = match[1] if match else "none"
    return found


def refusals(version: str) -> list[str]:
    """Why this commit is not that release."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        return [f"VERSION={version}: three numbers are wanted, such as 1.2.3"]
    wrong = [f"{file} has version {have}, not {version}" for file, have in versions().items() if have != version]
    if re.search(rf"^## {re.escape(version)} \(unreleased\)", (ROOT / "CHANGELOG.md").read_text(), flags=re.M):
        wrong.append(f"CHANGELOG.md calls {version} unreleased: its heading is to have the date")
    changed = git("status", "--porcelain").splitlines()
    if changed:
        wrong.append(f"the tree has changes that are not committed: {', '.join(line[3:] for line in changed[:5])}")
    if git("tag", "--list", f"v{version}").strip():
        wrong.append(f"the tag v{version} is there already: a release is made once")
    return wrong


def notes(version: str) -> str:
    """The part of CHANGELOG.md about this version, whose links lead into the source."""
    text = (ROOT / "CHANGELOG.md").read_text()
    match = re.search(rf"^## {re.escape(version)}\b.*?(?=^## |\Z)", text, flags=re.M | re.S)
    if not match:
        raise SystemExit(f"release.py: CHANGELOG.md has no part about {version}")
    return "# Heddle " + match[0].removeprefix("## ")


def write_source(target: Path) -> None:
    """What is committed, packed without a time of packing."""
    name = target.name.removesuffix(".tar.gz")
    tar = subprocess.run(["git", "-C", str(ROOT), "archive", "--format=tar", f"--prefix={name}/", "HEAD"], check=True,
                         capture_output=True).stdout
    with target.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(tar)


def write_recipes(version: str, url: str, source: Path, out: Path) -> None:
    """Spack's and conda-forge's, with the source's place and checksum."""
    checksum = hashlib.sha256(source.read_bytes()).hexdigest()
    for folder in ("spack", "conda/recipe"):
        for file in sorted((ROOT / "packaging" / folder).iterdir()):
            text = file.read_text().replace("0" * 64, checksum)
            text = text.replace(f"{URL}/heddle-", f"{url}/heddle-")
            target = out / f"heddle-{version}-recipes" / folder.split("/")[0] / file.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            target.chmod(file.stat().st_mode)


def make(part: str, out: Path) -> list[Path]:
    """Runs make PART, and takes what it has made."""
    packages = ROOT / "build/packages"
    for old in packages.glob(MADE[part]):
        old.unlink()
    log = out / f"{part}.log"
    with log.open("w") as file:
        done = subprocess.run(["make", "-C", str(ROOT), part], stdout=file, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        print("".join(log.read_text().splitlines(keepends=True)[-20:]), file=sys.stderr)
        raise SystemExit(f"release.py: make {part} has failed (above, and {log}); there is no tag")
    log.unlink()
    return [Path(shutil.copy2(file, out)) for file in sorted(packages.glob(MADE[part]))]


def write_sums(out: Path) -> None:
    files = sorted(path for path in out.rglob("*") if path.is_file())
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(out)}\n" for path in files]
    (out / "SHA256SUMS").write_text("".join(lines))


def release(version: str, parts: list[str], url: str) -> Path:
    out = ROOT / f"build/release-{version}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    source = out / f"heddle-{version}.tar.gz"
    write_source(source)
    made = [source] + [file for part in parts for file in make(part, out)]
    write_recipes(version, url.rstrip("/"), source, out)
    (out / "RELEASE_NOTES.md").write_text(notes(version))
    bill_of_materials.write(version, int(git("log", "-1", "--format=%ct")), made, out / f"heddle-{version}.cdx.json")
    write_sums(out)
    # Last: what has failed before leaves no tag behind.
    git("tag", "--annotate", f"v{version}", "--message", f"Heddle {version}")
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", nargs="?", default="")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--parts", default=" ".join(part for part, tool in TOOLS.items() if shutil.which(tool)))
    parser.add_argument("--url", default=URL)
    options = parser.parse_args()
    if options.check:
        found = versions()
        agree = len(set(found.values())) == 1 and "none" not in found.values()
        print("\n".join(f"{have}  {file}" for file, have in found.items()))
        return not agree
    parts = options.parts.split()
    unknown = sorted(set(parts) - set(MADE))
    wrong = [f"--parts: no such part: {name} (there are {', '.join(MADE)})" for name in unknown]
    wrong += refusals(options.version)
    if wrong:
        print("\n".join(f"release.py: {line}" for line in wrong), file=sys.stderr)
        return 1
    out = release(options.version, parts, options.url)
    print((out / "SHA256SUMS").read_text(), end="")
    left_out = [part for part in MADE if part not in parts]
    if left_out:
        print(f"left out: {', '.join(left_out)}")
    print(f"{out.relative_to(ROOT)} is Heddle {options.version}; its tag is v{options.version}, not pushed")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""make release in a clone of what is committed: what it refuses, what it makes, and the same bytes by two runs.

RELEASE_PARTS, by default all: the binaries, such as "tarball wheel"; each is built twice."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from version import VERSION

SOURCE = Path(__file__).resolve().parents[2]
PARTS = os.environ.get("RELEASE_PARTS", "tarball wheel deb rpm")
MADE = {"tarball": rf"heddle-{VERSION}-linux-\w+\.tar\.xz", "wheel": rf"heddle-{VERSION}-.*\.whl",
        "deb": rf"libheddle1_{VERSION}-.*\.deb", "rpm": rf"heddle-libs-{VERSION}-.*\.rpm"}
LIMIT_S = 7200


def git(tree, *words):
    return subprocess.run(["git", "-C", tree, *words], check=True, capture_output=True, text=True).stdout


def commit(tree, subject):
    git(tree, "commit", "--quiet", "--all", "--message", subject)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A clone in which the version is released: the release notes have a date."""
    folder = tmp_path_factory.mktemp("release") / "heddle"
    subprocess.run(["git", "clone", "--quiet", SOURCE, folder], check=True)
    notes = folder / "CHANGELOG.md"
    notes.write_text(notes.read_text().replace(f"## {VERSION} (unreleased)", f"## {VERSION} (2026-12-01)"))
    git(folder, "config", "user.name", "Tester")
    git(folder, "config", "user.email", "tester@heddle.invalid")
    if git(folder, "status", "--porcelain"):
        commit(folder, "Release")
    return folder


def release(tree, version=VERSION, parts="", status=0):
    own = {name: value for name, value in os.environ.items() if not name.startswith("HEDDLE_")}
    done = subprocess.run([sys.executable, "-B", tree / "packaging/release.py", version, "--parts", parts, "--url",
                           "https://example.invalid/files"], capture_output=True, text=True, timeout=LIMIT_S, env=own)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def tags(tree):
    return git(tree, "tag", "--list").split()


@pytest.fixture(scope="module")
def made(tree, tmp_path_factory):
    """The files of a first run, kept elsewhere, after its refusals have been seen."""
    release(tree, parts=PARTS)
    kept = tmp_path_factory.mktemp("first") / "files"
    shutil.move(tree / f"build/release-{VERSION}", kept)
    assert git(tree, "cat-file", "-t", f"v{VERSION}") == "tag\n"  # annotated
    return kept


def test_what_is_refused(tree):
    (tree / "LICENSE").write_text("changed")
    assert "not committed: LICENSE" in release(tree, status=1)
    git(tree, "checkout", "LICENSE")
    (tree / "new").write_text("")
    assert "not committed: new" in release(tree, status=1)
    (tree / "new").unlink()
    text = release(tree, "9.9.9", status=1)
    for file in ("CMakeLists.txt", "CHANGELOG.md", "packaging/debian/changelog", "packaging/heddle.spec"):
        assert f"{file} has version {VERSION}, not 9.9.9" in text
    assert "three numbers are wanted" in release(tree, "1.2", status=1)
    assert "no such part: snap" in release(tree, parts="snap", status=1)
    assert tags(tree) == [] and not (tree / "build").exists()


def test_what_is_unreleased_is_refused(tree):
    notes = tree / "CHANGELOG.md"
    text = notes.read_text()
    notes.write_text(text.replace("(2026-12-01)", "(unreleased)"))
    commit(tree, "Unreleased")
    assert "is to have the date" in release(tree, status=1)
    git(tree, "reset", "--quiet", "--hard", "HEAD~1")


def test_a_part_that_fails_leaves_no_tag(tree):
    """make tarball, whose script is not there."""
    (tree / "packaging/tarball.sh").unlink()
    commit(tree, "Broken")
    try:
        if "tarball" in PARTS:
            assert "make tarball has failed" in release(tree, parts="tarball", status=1)
        assert tags(tree) == []
    finally:
        git(tree, "reset", "--quiet", "--hard", "HEAD~1")


def test_what_is_made(made):
    names = {path.name for path in made.iterdir()}
    assert {f"heddle-{VERSION}.tar.gz", f"heddle-{VERSION}.cdx.json", "RELEASE_NOTES.md", "SHA256SUMS"} <= names
    for part in PARTS.split():
        assert any(re.fullmatch(MADE[part], name) for name in names), (part, names)
    assert not [name for name in names if name.endswith(".log")]
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=made, check=True)
    listed = {line.split("  ")[1] for line in (made / "SHA256SUMS").read_text().splitlines()}
    assert listed | {"SHA256SUMS"} == {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()}
    notes = (made / "RELEASE_NOTES.md").read_text()
    assert notes.startswith(f"# Heddle {VERSION} (2026-12-01)\n") and "\n## " not in notes


def test_the_source_is_what_is_committed(made, tree):
    with tarfile.open(made / f"heddle-{VERSION}.tar.gz") as archive:
        names = {member.name.removeprefix(f"heddle-{VERSION}/") for member in archive if not member.isdir()}
    assert names == set(git(tree, "ls-tree", "-r", "--name-only", f"v{VERSION}").splitlines())


def test_recipes_name_the_source(made):
    checksum = hashlib.sha256((made / f"heddle-{VERSION}.tar.gz").read_bytes()).hexdigest()
    for file in ("spack/package.py", "conda/recipe.yaml"):
        text = (made / f"heddle-{VERSION}-recipes" / file).read_text()
        assert checksum in text and "https://example.invalid/files/heddle-" in text and "0" * 64 not in text, file


def test_bill_of_materials(made):
    """By the standard's own schema; all files of the release that others load, and what is linked into them."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator
    text = (made / f"heddle-{VERSION}.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bill = json.loads(text)
    parts = {part["name"]: part for part in bill["components"]}
    assert bill["metadata"]["component"]["version"] == VERSION
    assert {"ucx", "pmix", "numpy"} <= set(parts)
    if "tarball" in PARTS:
        assert re.fullmatch(r"\d+\.\d+\.\d+", parts["libstdc++"]["version"])
    for path in made.iterdir():
        if path.suffix in {".gz", ".xz", ".whl", ".deb", ".rpm"}:
            assert parts[path.name]["hashes"][0]["content"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_release_is_made_once(made, tree):
    assert f"the tag v{VERSION} is there already" in release(tree, status=1)


def test_the_same_bytes_twice(made, tree):
    """Behind a fresh build, in a second run of which nothing is left but the commit."""
    git(tree, "tag", "--delete", f"v{VERSION}")
    shutil.rmtree(tree / "build")
    release(tree, parts=PARTS)
    assert (tree / f"build/release-{VERSION}/SHA256SUMS").read_text() == (made / "SHA256SUMS").read_text()

"""What the suite compiles, and when it does so again."""

import pytest
from shmem_mt import sources
from shmem_mt.targets import build
from shmem_mt.targets.libraries import Implementation

# Copies its source, in place of compiling it.
WRAPPER = """#!/bin/sh
while [ $# -gt 0 ]; do
    case "$1" in *.cpp) source="$1" ;; -o) cp "$source" "$2"; exit ;; esac
    shift
done
"""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """The folder of the programs first and second, which are all that the suite has."""
    folder = tmp_path / "programs" / "some"
    folder.mkdir(parents=True)
    for name in ("first", "second"):
        (folder / f"{name}.cpp").write_text(f"{name} of yesterday")
    monkeypatch.setattr(sources, "root", lambda: str(tmp_path))
    return folder


@pytest.mark.parametrize("others", [[], ["second"]])
def test_a_program_is_compiled_again_though_others_were_first(programs, tmp_path, others):
    """Builds that do not name a program leave it as old as it was."""
    wrapper = tmp_path / "oshcc"
    wrapper.write_text(WRAPPER)
    wrapper.chmod(0o755)

    def compiled(*names):
        """What a new session compiles when it is to have these programs."""
        notes = []
        library = Implementation("A", str(wrapper), ["true"], "1.0", "1.0")
        assert build.build(library, str(tmp_path / "build"), names, notes.append) == {}
        return notes

    assert compiled("first") == ["compiling first with A"]
    (programs / "first.cpp").write_text("first of today")
    compiled(*others)
    assert compiled("first") == ["compiling first with A"]
    assert (tmp_path / "build" / "first").read_text() == "first of today"
    assert compiled("first", *others) == []

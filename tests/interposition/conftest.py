"""The build under test (HEDDLE_BUILD), and programs and tools made with its oshcc."""

import os
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["HEDDLE_BUILD"])
LIMIT_S = 300


class Made:
    """Programs and tools of this folder, compiled once; and runs of them."""

    def __init__(self, folder):
        self.folder = folder

    def make(self, name, *sources, options=()):
        """The file `name` of C sources of this folder (or of `folder`), optimized as users' programs are."""
        file = self.folder / name
        if not file.exists():
            paths = [self.folder / source if (self.folder / source).exists() else HERE / source for source in sources]
            subprocess.run([BUILD / "bin/oshcc", "-g", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", *paths,
                            *map(str, options), "-o", file], check=True, timeout=LIMIT_S)
        return file

    def tool(self, name, *sources, options=()):
        """A library to load ahead."""
        return self.make(name, *sources, options=["-shared", "-fPIC", *options])

    def run(self, program, *arguments, n=2, tool=None, before=(), status=0, **settings):
        """Runs the program on n PEs, behind `before` where that is another program's; returns the finished process."""
        command = [BUILD / "bin/oshrun", "-n", n, "--timeout", LIMIT_S]
        command += ["--env", f"LD_PRELOAD={tool}"] if tool else []
        done = subprocess.run([*map(str, [*command, *before, program, *arguments])], cwd=self.folder,
                              env={**os.environ, **settings}, capture_output=True, text=True, timeout=LIMIT_S)
        assert done.returncode == status, (done.stdout, done.stderr)
        return done


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    return Made(tmp_path_factory.mktemp("made"))

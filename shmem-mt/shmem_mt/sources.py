"""Where the C++ sources of the suite lie: beside the Python package in the source tree, inside it where it is
installed. Their #include lines name other files from root() on: "programs/common/job.hpp", "apps/cg/solver.hpp"."""

import glob
import hashlib
import os

from shmem_mt.errors import UserError

_SUFFIXES = (".cpp", ".hpp")


def root():
    """The folder that has programs/, apps/ and simulator/. Raises UserError."""
    package = os.path.dirname(os.path.abspath(__file__))
    for folder in (package, os.path.dirname(package)):
        if os.path.isdir(os.path.join(folder, "programs")):
            return folder
    raise UserError("the benchmark programs are missing from this installation of shmem-mt")


def is_app(program):
    """Whether that program is a mini-app."""
    return os.path.exists(_main_of_app(program))


def source_of(program):
    """The C++ file of that program: apps/PROGRAM/main.cpp of a mini-app, programs/KIND/PROGRAM.cpp of a benchmark.
    Raises UserError."""
    if is_app(program):
        return _main_of_app(program)
    found = glob.glob(os.path.join(root(), "programs", "*", program + ".cpp"))
    if len(found) != 1:
        raise UserError(f"this installation of shmem-mt has {len(found)} sources of the program {program}, not 1")
    return found[0]


def probe(name):
    """The C++ file of a feature probe: it compiles and links where a library has the feature."""
    return os.path.join(root(), "programs", "probes", name + ".cpp")


def digest(*folders):
    """A hash of the names and contents of all sources in these folders of root()."""
    made = hashlib.sha256()
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(root(), folder, "**"), recursive=True)):
            if path.endswith(_SUFFIXES):
                with open(path, "rb") as file:
                    made.update(os.path.relpath(path, root()).encode() + file.read())
    return made.hexdigest()


def _main_of_app(program):
    return os.path.join(root(), "apps", program, "main.cpp")

"""The OpenSHMEM libraries under test: finding their wrappers, and asking the launchers what they are."""

import os
import re
import shlex
import shutil
import sys

from shmem_mt.errors import UserError
from shmem_mt.targets import libraries
from shmem_mt.targets.machine import first_line


def resolve(oshccs, oshruns, labels):
    """Implementations from the three lists of options; the wrappers beside this command or on PATH without any."""
    oshccs, oshruns, labels = list(oshccs or []), list(oshruns or []), list(labels or [])
    if not oshccs and not oshruns:
        oshccs, oshruns = [_beside_or_on_path("oshcc")], [_beside_or_on_path("oshrun")]
    if len(oshccs) != len(oshruns):
        raise UserError(f"--oshcc was given {len(oshccs)} times but --oshrun {len(oshruns)} times; they go in pairs")
    if labels and len(labels) != len(oshccs):
        raise UserError(f"--label was given {len(labels)} times for {len(oshccs)} implementations")
    found = []
    for index, (oshcc, oshrun) in enumerate(zip(oshccs, oshruns)):
        compiler, launcher = named_compiler("--oshcc", oshcc), named_launcher("--oshrun", oshrun)
        found.append(identified(compiler, launcher, labels[index] if labels else None))
    names = [implementation.label for implementation in found]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"two implementations are called {name}; tell them apart with --label")
        if not re.fullmatch(r"[\w.+ -]{1,40}", name):
            raise UserError(f"--label {name!r}: use up to 40 letters, digits, spaces and . _ + -")
    return found


def _beside_or_on_path(name):
    beside = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), name)
    if os.access(beside, os.X_OK) and os.path.isfile(beside):
        return beside
    if shutil.which(name):
        return name
    raise UserError(f"no {name} beside shmem-mt or on PATH; name one with --oshcc and --oshrun")


def identified(compiler, launcher, label, sources=None):
    """The implementation with these wrappers, of the class that its launcher's version names. Without a label it is
    called as its class is, or as the compiler wrapper where that has no name."""
    version = first_line([*launcher, "--version"]) or "unknown"
    library = libraries.class_of(version)
    if label is None:
        label = library.name or os.path.basename(compiler)
    return library(label, compiler, launcher, version, first_line([compiler, "--version"]) or "unknown", sources)


def named_compiler(option, name):
    """The path of that program. Raises UserError."""
    path = shutil.which(name)
    if path is None:
        raise UserError(f"{option} {name}: no such program")
    return os.path.abspath(path)


def named_launcher(option, text):
    """The command in `text`, with the program's path. Raises UserError."""
    try:
        command = shlex.split(text)
    except ValueError as error:
        raise UserError(f"{option} {text!r}: {error}") from error
    path = shutil.which(command[0]) if command else None
    if path is None:
        raise UserError(f"{option} {text}: no such program")
    return [os.path.abspath(path), *command[1:]]

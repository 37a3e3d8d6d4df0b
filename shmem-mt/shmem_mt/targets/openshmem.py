"""The OpenSHMEM libraries under test: finding their wrappers, and asking these what they are."""

import os
import re
import shlex
import shutil
import sys

from shmem_mt.errors import UserError
from shmem_mt.targets import build, libraries
from shmem_mt.targets.launch_template import LaunchTemplate
from shmem_mt.targets.machine import first_line


def resolve(oshccs, oshruns, labels, folders=None):
    """Implementations from the lists of options; the wrappers beside this command or on PATH without any. A launcher is
    a command or a LaunchTemplate. Those of installations, whose bin/ has both wrappers, come last."""
    oshccs, oshruns, labels = list(oshccs or []), list(oshruns or []), list(labels or [])
    if len(oshccs) == len(oshruns):
        oshccs += [os.path.join(folder, "bin", "oshcc") for folder in folders or []]
        oshruns += [shlex.quote(os.path.join(folder, "bin", "oshrun")) for folder in folders or []]
    if not oshccs and len(oshruns) == sum(isinstance(oshrun, LaunchTemplate) for oshrun in oshruns) < 2:
        oshccs, oshruns = [_beside_or_on_path("oshcc")], oshruns or [_beside_or_on_path("oshrun")]
    if len(oshccs) != len(oshruns):
        launchers = f"--oshrun or --launch {len(oshruns)} times"
        raise UserError(f"--oshcc was given {len(oshccs)} times but {launchers}; they go in pairs")
    if labels and len(labels) != len(oshccs):
        raise UserError(f"--label was given {len(labels)} times for {len(oshccs)} implementations")
    found = []
    for index, (oshcc, oshrun) in enumerate(zip(oshccs, oshruns)):
        compiler, label = named_compiler("--oshcc", oshcc), labels[index] if labels else None
        if isinstance(oshrun, LaunchTemplate):
            launcher = named_launcher("--launch", oshrun.command[0])
            found.append(identified(compiler, launcher, label, template=oshrun))
        else:
            found.append(identified(compiler, named_launcher("--oshrun", oshrun), label))
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


def identified(compiler, launcher, label, reference=None, template=None):
    """The implementation with these wrappers, of the class that its launcher's version names or, where a template is
    for any launcher, its headers. Without a label it is called as its class is, or as the compiler wrapper where that
    has no name."""
    version = first_line([*launcher, "--version"]) or "unknown"
    vendor = "" if reference else build.vendor(compiler)
    library = libraries.of_headers(vendor) if template else libraries.class_of(version, vendor)
    if label is None:
        label = library.name or os.path.basename(compiler)
    said = first_line([compiler, "--version"]) or "unknown"
    return library(label, compiler, launcher, version, said, reference, template=template)


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

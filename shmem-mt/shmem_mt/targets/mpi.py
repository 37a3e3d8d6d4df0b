"""The MPI that the collectives and the study of order are measured beside: found on PATH or named, called by its own
name and version."""

import os
import re
import shlex
import shutil
import subprocess
import tempfile

from shmem_mt import sources
from shmem_mt.targets import build, openshmem

# program -> the source that does the same with MPI
SOURCES = {"collectives": "collectives_mpi", "ordering": "ordering_mpi"}


def find(mpicc=None, mpirun=None):
    """(the reference, None), or (None, why there is none). Raises UserError for a named program that is not there."""
    compiler = mpicc or shutil.which("mpicc")
    launcher = mpirun or shlex.quote(shutil.which("mpirun") or shutil.which("mpiexec") or "")
    if not compiler or launcher == "''":
        return None, "no mpicc with mpirun or mpiexec on PATH"
    wrapper, command = openshmem.named_compiler("--mpicc", compiler), openshmem.named_launcher("--mpirun", launcher)
    reference = openshmem.identified(wrapper, command, "MPI", SOURCES)
    name, problem = _library_name(reference)
    if problem:
        return None, f"{compiler} does not make a program that runs: {problem.splitlines()[-1]}"
    reference.label = f"MPI ({name})"
    return reference, None


def short_name(text):
    """``Open MPI 4.1.4`` from what MPI_Get_library_version says; ``unknown`` when it says nothing."""
    first = text.strip().splitlines()[0] if text.strip() else "unknown"
    match = re.match(r"(.*?)\s*(?:Library|Version)?[\s:]*v?(\d+\.[\w.]*)", first)
    return (f"{match[1]} {match[2]}" if match else first)[:40]


def _library_name(reference):
    """(name, None), or (None, what went wrong)."""
    with tempfile.TemporaryDirectory(prefix="shmem-mt-") as directory:
        binary = os.path.join(directory, "name")
        problem = build.run_compiler(reference, [], sources.probe("mpi_name"), binary)
        if problem:
            return None, problem
        try:
            done = subprocess.run([binary], capture_output=True, text=True, timeout=20, errors="replace")
        except (OSError, subprocess.TimeoutExpired) as error:
            return None, str(error)
    return short_name(done.stdout), None

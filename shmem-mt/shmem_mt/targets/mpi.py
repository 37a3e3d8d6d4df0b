"""The MPI that collectives, messages between two PEs and the study of order are measured beside: found on PATH or
named, called by its own name and version."""

import re
import shlex
import shutil

from shmem_mt.targets import build, openshmem
from shmem_mt.targets.libraries import Reference

# program -> the source that does the same with MPI
SOURCES = {
    "collectives": "collectives_mpi",
    "ordering": "ordering_mpi",
    "message_rate": "rma_mpi",
    "latency": "rma_mpi",
    "bandwidth": "rma_mpi",
}
# The operations that stand beside MPI's, of programs that have others.
OPS = {
    "message_rate": ("put_nbi", "get_nbi", "atomic_add", "atomic_fetch_add_nbi"),
    "latency": ("put_round_trip", "p_quiet", "put_quiet", "get", "atomic_add_quiet", "atomic_fetch_add"),
    "bandwidth": ("put", "get"),
}
REFERENCE = Reference("MPI", SOURCES, "mpi_name", OPS)


def find(mpicc=None, mpirun=None):
    """(the reference, None), or (None, why there is none). Raises UserError for a named program that is not there."""
    compiler = mpicc or shutil.which("mpicc")
    launcher = mpirun or shlex.quote(shutil.which("mpirun") or shutil.which("mpiexec") or "")
    if not compiler or launcher == "''":
        return None, "no mpicc with mpirun or mpiexec on PATH"
    wrapper, command = openshmem.named_compiler("--mpicc", compiler), openshmem.named_launcher("--mpirun", launcher)
    reference = openshmem.identified(wrapper, command, "MPI", REFERENCE)
    said, problem = build.said_by_probe(reference)
    if problem:
        return None, f"{compiler} does not make a program that runs: {problem.splitlines()[-1]}"
    reference.label = f"MPI ({short_name(said)})"
    return reference, None


def short_name(text):
    """``Open MPI 4.1.4`` from what MPI_Get_library_version says; ``unknown`` when it says nothing."""
    first = text.strip().splitlines()[0] if text.strip() else "unknown"
    match = re.match(r"(.*?)\s*(?:Library|Version)?[\s:]*v?(\d+\.[\w.]*)", first)
    return (f"{match[1]} {match[2]}" if match else first)[:40]

"""What a run measures beside the libraries, in the same rounds: MPI and bare UCX."""

from shmem_mt.targets import mpi, ucx


def find(found, starts, options):
    """(what is measured beside the libraries in some of these starts, why others are not)."""
    references, missing = [], []
    beside = [start for start in starts if start.has_references]
    # Where a template starts the PEs of hosts, an MPI that nobody has named may not know how to reach these.
    unsure = any(library.template for library in found) and not (options.mpicc or options.mpirun)
    unnamed = [start for start in beside if unsure and start.fabric.is_given and start.program in mpi.OPS]
    if any(start.program in mpi.SOURCES and start not in unnamed for start in beside):
        reference, problem = mpi.find(options.mpicc, options.mpirun)
        references += [reference] if reference else []
        missing += [f"the MPI reference skipped: {problem}"] if problem else []
    elif unnamed:
        missing.append("the MPI reference skipped: a launch template starts the PEs; give --mpicc and --mpirun")
    over = {start.fabric for start in beside if start.fabric.is_network and start.program in ucx.SOURCES}
    able = [library for library in found if not all(library.unable(fabric) for fabric in over)]
    if over and able:
        reference, problem = ucx.find(able[0])
        references += [reference] if reference else []
        missing += [f"{ucx.NAME} skipped: {problem}"] if problem else []
    return references, missing

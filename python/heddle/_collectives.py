"""Collectives: blocking, by all threads of a PE (mt), posted under a request (nbe), or both. All members of a team call
in the same order, one thread each, but for mt. Other Python threads run meanwhile."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np

from ._checks import integer, require_active
from ._contexts import CTX_DEFAULT
from ._families import Family
from ._library import foreign
from ._memory import Array, Buffer, list_of, same_dtype, symmetric
from ._plans import note
from ._requests import Request, request_for, shared_request_for

_MOST = 2**63 - 1
_barrier_all = foreign("shmem_barrier_all", "v:")
_sync_all = foreign("shmem_sync_all", "v:")


def barrier_all() -> None:
    """A quiet of the default context, then a barrier of all PEs: stores before it are visible to all PEs after it.
    Collective. OpenSHMEM 1.6, section 9.10.1."""
    require_active("barrier_all")
    taken = CTX_DEFAULT._pending.take()
    _barrier_all()
    taken.clear()


def sync_all() -> None:
    """A barrier of all PEs, which completes stores to this PE's memory, but no operations on others. Collective.
    OpenSHMEM 1.6, section 9.10.4."""
    require_active("sync_all")
    _sync_all()


def group(where: str, thread: SupportsIndex, nthreads: SupportsIndex) -> tuple[int, int]:
    """The place of a thread among those of its PE that call."""
    count = integer(where, "nthreads", nthreads, 1, 2**31 - 1)
    return integer(where, "thread", thread, 0, count - 1), count


def meet(family: Family, team: Any, threads: tuple[Any, Any] | None = None, req: Request | None = None) -> None:
    """Barriers of a team."""
    where = family.name
    one = _team(where, team)
    handle = one.handle_for(where)
    tail = _tail(where, threads, req)
    assert family.plain
    completes = where == "team_barrier_mt"
    taken = CTX_DEFAULT._pending.take() if completes else []
    family.plain(handle, *tail)
    taken.clear()
    note(req, one, {})


def call(family: Family, shape: str, team: Any, dest: Buffer, source: Buffer, nelems: SupportsIndex | None, *,
         count_name: str = "nelems", root: SupportsIndex | None = None, steps: tuple[Any, Any] | None = None,
         threads: tuple[Any, Any] | None = None, req: Request | None = None) -> None:
    """A collective that moves or combines data. shape: what dest and source have for each of nelems: "same", one
    element; "gather", dest one of each member; "collect", at least one; "exchange", both one for each member."""
    where = family.name
    one = _team(where, team)
    handle, size = one.handle_for(where), one.n_pes()
    to, to_place = symmetric(where, "dest", dest, True)
    of, of_place = symmetric(where, "source", source)
    if family.plain:
        function, scale, to_size, of_size = family.plain, 1, to.nbytes, of.nbytes
    else:
        same_dtype(where, "dest", to, "source", of)
        entry = family.of(to.dtype)
        function, scale, to_size, of_size = entry.call, entry.scale, to.size, of.size
    dst, sst = (1, 1) if steps is None else (integer(where, "dst", steps[0], 1, _MOST),
                                             integer(where, "sst", steps[1], 1, _MOST))
    count = _count(where, shape, nelems, count_name, (of_size - 1) // sst + 1 if of_size else 0, size)
    if scale != 1 and steps is not None:
        raise TypeError(f"heddle.{where}: there is none for dtype {to.dtype}; alltoallv or a dtype of numbers would be "
                        "right")
    for name, length, blocks, step in (("dest", to_size, size if shape in ("gather", "exchange") else 1, dst),
                                       ("source", of_size, size if shape == "exchange" else 1, sst)):
        needed = (count * blocks - 1) * step + 1 if count else 0
        if length < needed:
            raise ValueError(f"heddle.{where}: {name} has {length} elements, and {count_name} {count} on a team of "
                             f"{size} PEs needs {needed}")
    middle = () if steps is None else (dst, sst)
    rooted = () if root is None else (integer(where, "PE_root", root, 0, size - 1),)
    function(handle, to_place, of_place, *middle, count * scale, *rooted, *_tail(where, threads, req))
    note(req, one, {"dest": to, "source": of})


def _count(where: str, shape: str, asked: SupportsIndex | None, name: str, there: int, size: int) -> int:
    if asked is not None:
        return integer(where, name, asked, 0, _MOST)
    if shape != "exchange":
        return there
    if there % size:
        raise ValueError(f"heddle.{where}: source has {there} elements, no multiple of the team's {size} PEs; a count "
                         "would be right")
    return there // size


def _team(where: str, team: Any) -> Any:
    from ._teams import team_for
    return team_for(where, team)


def _tail(where: str, threads: tuple[Any, Any] | None, req: Request | None) -> tuple[int, ...]:
    numbers = () if threads is None else group(where, *threads)
    if req is None:
        return numbers
    return *numbers, request_for(where, req) if threads is None else shared_request_for(where, req)


def exchange(family: Family, team: Any, neighbors: Any, dest: Buffer, source: Buffer,
             blocks: tuple[Any, Any, Any, Any] | None, block_elements: SupportsIndex | None = None,
             req: Request | None = None) -> None:
    """alltoallv and the neighbor forms. blocks: counts and offsets of dest, then of source, in elements."""
    where = family.name
    one = _team(where, team)
    handle, size = one.handle_for(where), one.n_pes()
    to, to_place = symmetric(where, "dest", dest, True)
    of, of_place = symmetric(where, "source", source)
    same_dtype(where, "dest", to, "source", of)
    partners, listed = size, None
    if "neighbor" in where:
        listed = list_of(where, "neighbors", neighbors, np.intc)
        partners = listed.size
        for pe in listed:
            integer(where, "an entry of neighbors", int(pe), 0, size - 1)
    lead = [handle] if listed is None else [handle, listed.ctypes.data, partners]
    tail = [] if req is None else [request_for(where, req)]
    assert family.plain
    if blocks is None:
        count = of.size // max(partners, 1) if block_elements is None else integer(where, "nelems", block_elements, 0)
        for name, array in (("dest", to), ("source", of)):
            if array.size < count * partners:
                raise ValueError(f"heddle.{where}: {name} has {array.size} elements, and {partners} blocks of {count} "
                                 f"need {count * partners}")
        family.plain(*lead, to_place, of_place, count * to.itemsize, *tail)
        note(req, one, {"dest": to, "source": of})
        return
    lists = [list_of(where, name, values, np.uintp, partners) for name, values in
             zip(("dest_counts", "dest_offsets", "source_counts", "source_offsets"), blocks)]
    _blocks_fit(where, "dest", to, lists[0], lists[1])
    _blocks_fit(where, "source", of, lists[2], lists[3])
    places = [values.ctypes.data for values in lists]
    family.plain(*lead, to_place, *places[:2], of_place, *places[2:], to.itemsize, *tail)
    note(req, one, {"dest": to, "source": of})


def _blocks_fit(where: str, name: str, array: Array, counts: Array, offsets: Array) -> None:
    for place, (count, offset) in enumerate(zip(counts.tolist(), offsets.tolist())):
        if count and offset + count > array.size:
            raise ValueError(f"heddle.{where}: block {place} of {name}, {count} elements from {offset} on, ends behind "
                             f"the {array.size} elements of {name}")

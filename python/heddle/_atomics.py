"""Operations on one element: p and g, atomics and signals. Any thread."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np

from . import _contexts
from ._checks import require_active
from ._families import Family
from ._memory import Array, Buffer, element, local, same_dtype
from ._pending import posting
from ._requests import Request, request_for
from ._transfers import signal_place
from ._values import one_element, scalar, unsigned

# p and g of elements that ctypes cannot pass as values: long double, complex, structures, strings of a length.
_PUT = Family("p", "v:pppzi", typed="shmem_ctx_TYPENAME_put", types="rma", raw="shmem_ctx_putmem")
_GET = Family("g", "v:pppzi", typed="shmem_ctx_TYPENAME_get", types="rma", raw="shmem_ctx_getmem")


def operate(family: Family, name: str, dest: Buffer, operands: tuple[tuple[str, Any], ...], pe: SupportsIndex, ctx: Any,
            req: Request | None = None) -> Any:
    """An atomic on one symmetric element, which the caller calls `name`; its result, if it has one."""
    where = family.name
    context, handle = _contexts.context_for(where, ctx)
    array, address = element(where, name, dest)
    entry = family.of(array.dtype)
    values = [scalar(where, called, value, entry) for called, value in operands]
    tail = () if req is None else (request_for(where, req),)
    return entry.call(handle, address, *values, context.pe_for(where, pe), *tail)


def fetching(family: Family, fetch: Buffer, name: str, dest: Buffer, operands: tuple[tuple[str, Any], ...],
             pe: SupportsIndex, ctx: Any, req: Request | None = None) -> None:
    """An atomic whose old value goes to fetch, memory of the caller, which is kept until then."""
    where = family.name
    context, handle = _contexts.context_for(where, ctx)
    array, address = element(where, name, dest)
    entry = family.of(array.dtype)
    values = [scalar(where, called, value, entry) for called, value in operands]
    old, to = _fetched(where, fetch, name, array)
    tail = () if req is None else (request_for(where, req),)
    place = context.pe_for(where, pe)
    entry.call(handle, to, address, *values, place, *tail)
    if req is not None:
        req.hold(old, place)
    else:
        posting.keep(context._pending, old, place)


def _fetched(where: str, fetch: Buffer, name: str, array: Array) -> tuple[Array, int]:
    old, to = local(where, "fetch", fetch, True)
    same_dtype(where, "fetch", old, name, array)
    if old.size != 1:
        raise ValueError(f"heddle.{where}: fetch has {old.size} elements: one would be right")
    return old, to


def store(family: Family, dest: Buffer, value: Any, pe: SupportsIndex, ctx: Any) -> None:
    """p: of any dtype."""
    context, handle = _contexts.context_for("p", ctx)
    array, address = element("p", "dest", dest)
    place = context.pe_for("p", pe)
    if not family.has_values(array.dtype):
        one = one_element("p", "value", value, array.dtype)
        entry = _PUT.of(array.dtype)
        entry.call(handle, address, one.ctypes.data, entry.scale, place)
        return
    entry = family.of(array.dtype)
    entry.call(handle, address, scalar("p", "value", value, entry), place)


def load(family: Family, source: Buffer, pe: SupportsIndex, ctx: Any) -> Any:
    """g: of any dtype; a NumPy scalar where Python has no number for it."""
    context, handle = _contexts.context_for("g", ctx)
    array, address = element("g", "source", source)
    place = context.pe_for("g", pe)
    if not family.has_values(array.dtype):
        one = np.empty(1, array.dtype)
        entry = _GET.of(array.dtype)
        entry.call(handle, one.ctypes.data, address, entry.scale, place)
        return one[0]
    return family.of(array.dtype).call(handle, address, place)


def signal_update(family: Family, sig_addr: Buffer, signal: SupportsIndex, pe: SupportsIndex, ctx: Any) -> None:
    """signal_add and signal_set."""
    where = family.name
    context, handle = _contexts.context_for(where, ctx)
    address = signal_place(where, sig_addr)
    value = unsigned(where, "signal", signal)
    assert family.plain
    family.plain(handle, address, value, context.pe_for(where, pe))


def signal_fetch(family: Family, sig_addr: Buffer) -> int:
    """The caller's own signal."""
    require_active(family.name)
    assert family.plain
    return int(family.plain(signal_place(family.name, sig_addr)))

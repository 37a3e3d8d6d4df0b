"""Put, get and put with signal: contiguous, at equal distances, in blocks; blocking, nbi and nbe. Any thread.

The count of elements is by default that of all of the caller's own buffer: source of a put, dest of a get."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np

from . import _contexts
from ._checks import choice, integer
from ._families import Family
from ._library import Foreign
from ._memory import Array, Buffer, element, local, same_dtype, symmetric
from ._pending import posting
from ._requests import Request, request_for
from ._values import unsigned

_MOST = 2**63 - 1
_SIGNAL_OPS = {0: "SIGNAL_SET", 1: "SIGNAL_ADD"}


def _function(family: Family, dest: Array, source: Array) -> tuple[Foreign, int, int]:
    """(the C function, bytes of an element that the caller counts, C elements in one of these)."""
    if family.plain:
        return family.plain, family.unit, 1
    same_dtype(family.name, "dest", dest, "source", source)
    entry = family.of(dest.dtype)
    return entry.call, entry.itemsize, entry.scale


def _length(family: Family, array: Array, name: str, itemsize: int) -> int:
    """The number of elements of an array, as the caller counts."""
    if not family.plain:
        return array.size
    if array.nbytes % itemsize:
        raise ValueError(f"heddle.{family.name}: {name} has {array.nbytes} bytes, no multiple of {itemsize}; a count "
                         "would be right")
    return array.nbytes // itemsize


def _fits(family: Family, name: str, array: Array, itemsize: int, needed: int, count: int) -> None:
    there = array.nbytes // itemsize if family.plain else array.size
    if needed > there:
        raise ValueError(f"heddle.{family.name}: {name} has {there} elements of {itemsize} bytes, and a count of "
                         f"{count} needs {needed}")


class _Call:
    """One call: its buffers and context are checked, and kept where the operation may outlast it."""

    __slots__ = ("context", "dest", "family", "function", "handle", "itemsize", "mine", "my_name", "pe", "req", "scale",
                 "source", "start", "to")

    def __init__(self, family: Family, dest: Buffer, source: Buffer, pe: SupportsIndex, ctx: Any, is_put: bool,
                 req: Request | None) -> None:
        where = self.family = family
        name = where.name
        self.context, self.handle = _contexts.context_for(name, ctx)
        if is_put:
            self.dest, self.to = symmetric(name, "dest", dest)
            self.source, self.start = local(name, "source", source)
        else:
            self.dest, self.to = local(name, "dest", dest, True)
            self.source, self.start = symmetric(name, "source", source)
        self.mine, self.my_name = (self.source, "source") if is_put else (self.dest, "dest")
        self.pe = self.context.pe_for(name, pe)
        self.req = () if req is None else (request_for(name, req),)
        self.function, self.itemsize, self.scale = _function(family, self.dest, self.source)

    def count(self, asked: SupportsIndex | None, name: str = "nelems") -> int:
        if asked is None:
            return _length(self.family, self.mine, self.my_name, self.itemsize)
        return integer(self.family.name, name, asked, 0, _MOST)

    def fits(self, dest_needs: int, source_needs: int, count: int) -> None:
        _fits(self.family, "dest", self.dest, self.itemsize, dest_needs, count)
        _fits(self.family, "source", self.source, self.itemsize, source_needs, count)

    def outlasts(self, req: Request | None) -> None:
        """Keeps the caller's buffer until the operation is complete."""
        if req is not None:
            req.hold(self.mine, self.pe)
        else:
            posting.keep(self.context._pending, self.mine, self.pe)


def copy(family: Family, is_put: bool, dest: Buffer, source: Buffer, pe: SupportsIndex, nelems: SupportsIndex | None,
         ctx: Any, req: Request | None = None, nbi: bool = False) -> None:
    """Puts and gets of contiguous elements."""
    call = _Call(family, dest, source, pe, ctx, is_put, req)
    count = call.count(nelems)
    call.fits(count, count, count)
    call.function(call.handle, call.to, call.start, count * call.scale, call.pe, *call.req)
    if nbi or req is not None:
        call.outlasts(req)


def put_signal(family: Family, dest: Buffer, source: Buffer, sig_addr: Buffer, signal: SupportsIndex,
               sig_op: SupportsIndex, pe: SupportsIndex, nelems: SupportsIndex | None, ctx: Any,
               req: Request | None = None, nbi: bool = False) -> None:
    """Puts with a signal behind them."""
    call = _Call(family, dest, source, pe, ctx, True, req)
    count = call.count(nelems)
    call.fits(count, count, count)
    place = signal_place(family.name, sig_addr)
    value = unsigned(family.name, "signal", signal)
    operation = choice(family.name, "sig_op", sig_op, _SIGNAL_OPS)
    call.function(call.handle, call.to, call.start, count * call.scale, place, value, operation, call.pe, *call.req)
    if nbi or req is not None:
        call.outlasts(req)


def strided(family: Family, is_put: bool, dest: Buffer, source: Buffer, dst: SupportsIndex, sst: SupportsIndex,
            pe: SupportsIndex, count: SupportsIndex | None, ctx: Any, bsize: SupportsIndex | None = None) -> None:
    """Puts and gets of elements, or of blocks of bsize, that lie dst elements apart in dest and sst in source."""
    call = _Call(family, dest, source, pe, ctx, is_put, None)
    where = family.name
    block = 1 if bsize is None else integer(where, "bsize", bsize, 1, _MOST)
    to_step, from_step = integer(where, "dst", dst, block, _MOST), integer(where, "sst", sst, block, _MOST)
    if count is None:
        length, step = call.count(None), from_step if is_put else to_step
        number = (length - block) // step + 1 if length >= block else 0
    else:
        number = call.count(count, "nelems" if bsize is None else "nblocks")
    if number:
        call.fits((number - 1) * to_step + block, (number - 1) * from_step + block, number)
    blocks = () if bsize is None else (block,)
    call.function(call.handle, call.to, call.start, to_step, from_step, *blocks, number, call.pe)


def signal_place(where: str, sig_addr: Buffer) -> int:
    """The address of a signal: a symmetric uint64."""
    array, address = element(where, "sig_addr", sig_addr)
    if array.dtype != np.uint64:
        raise TypeError(f"heddle.{where}: sig_addr has dtype {array.dtype}: uint64 would be right")
    return address

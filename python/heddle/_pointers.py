"""Memory of other PEs of this node, for loads and stores. Any thread."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np

from ._checks import integer, pe_number, require_active, state
from ._library import foreign
from ._memory import Array, Buffer, as_memory, contiguous, symmetric

_ptr = foreign("shmem_ptr", "p:pi")
_pe_accessible = foreign("shmem_pe_accessible", "i:i")
_addr_accessible = foreign("shmem_addr_accessible", "i:pi")


class _Place:
    """The owner of an array over a peer's memory."""

    def __init__(self, address: int, nbytes: int) -> None:
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (nbytes,), "data": (address, False)}


def peer_array(array: Array, address: int | None) -> Array | None:
    """An array like `array` at an address of a peer; None without one."""
    if not address:
        return None
    return np.ndarray(array.shape, array.dtype, np.asarray(_Place(address, max(array.nbytes, 1))))


def ptr(dest: Array, pe: SupportsIndex) -> Array | None:
    """dest on PE pe as an array for loads and stores, or None where pe is on another node.

    The array may be used until dest is freed. It is no symmetric memory itself. Loads and stores need an order:
    barrier_all, or wait_until behind a fence. Local; any thread. OpenSHMEM 1.6, section 9.1.9."""
    require_active("ptr")
    array, address = symmetric("ptr", "dest", dest)
    return peer_array(array, _ptr(address, pe_number("ptr", "pe", pe, state.n_pes)))


def pe_accessible(pe: SupportsIndex) -> bool:
    """Whether pe is a PE of the job. Local; any thread. OpenSHMEM 1.6, section 9.1.7."""
    require_active("pe_accessible")
    return bool(_pe_accessible(integer("pe_accessible", "pe", pe, -2**31, 2**31 - 1)))


def addr_accessible(addr: Buffer, pe: SupportsIndex) -> bool:
    """Whether the memory of addr, any buffer, is symmetric, and pe a PE of the job. Local; any thread. OpenSHMEM 1.6,
    section 9.1.8."""
    require_active("addr_accessible")
    array = as_memory("addr_accessible", "addr", addr)
    place = contiguous("addr_accessible", "addr", array)
    return bool(_addr_accessible(place, integer("addr_accessible", "pe", pe, -2**31, 2**31 - 1)))

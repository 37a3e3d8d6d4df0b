"""Symmetric memory as NumPy arrays, and what a buffer of a call must be: memory of a known type, contiguous, long
enough, and symmetric where the function says so. Allocation is collective; the rest any thread does."""

from __future__ import annotations

import array as array_module
import ctypes
import math
import mmap
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from ._checks import described, gone, integer, require_active, state
from ._library import foreign

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
# NumPy arrays, and what else has the buffer protocol.
Buffer: TypeAlias = "Array | bytes | bytearray | memoryview | array_module.array[Any] | ctypes.Array[Any] | mmap.mmap"
Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]

_malloc = foreign("shmem_malloc", "p:z")
_malloc_with_hints = foreign("shmem_malloc_with_hints", "p:zl")
_calloc = foreign("shmem_calloc", "p:zz")
_align = foreign("shmem_align", "p:zz")
_realloc = foreign("shmem_realloc", "p:pz")
# A fifth of the time of __array_interface__.
_addressof = ctypes.addressof
_from_buffer: Callable[[Any], ctypes.c_char] = ctypes.c_char.from_buffer
_free = foreign("shmem_free", "v:p")
_accessible = foreign("shmem_addr_accessible", "i:pi")
_FREED = "was freed by heddle.free()"
# The thread of this PE that has a lock, by the lock's address.
lock_holders: dict[int, int] = {}
state.ends_with_life.append(lock_holders)


class Allocation:
    """The owner of an allocation's array: what NumPy's `base` leads to, from any view. life: that of the library, 0
    when it was freed."""

    def __init__(self, address: int, nbytes: int, owned: bool) -> None:
        self.address, self.nbytes, self.owned, self.life = address, nbytes, owned, state.life
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (nbytes,), "data": (address, False)}


def _owned(where: str, address: int | None, nbytes: int) -> Array:
    if not address:
        raise MemoryError(f"heddle.{where}: the symmetric heap has no room for {nbytes} bytes; SHMEM_SYMMETRIC_SIZE "
                          "sets its size for each PE")
    return np.asarray(Allocation(address, nbytes, True))


def _size(where: str, name: str, size: SupportsIndex, least: int = 1) -> int:
    require_active(where)
    return integer(where, name, size, least, 2**63 - 1)


def malloc(size: SupportsIndex) -> Array:
    """Allocates size bytes of symmetric heap, not set to anything, as an array of uint8 at a multiple of 64 bytes.

    Collective: all PEs call, one thread each, with one size; a barrier on exit. MemoryError on all PEs where there is
    no room. OpenSHMEM 1.6, section 9.3.1."""
    nbytes = _size("malloc", "size", size)
    return _owned("malloc", _malloc(nbytes), nbytes)


def calloc(count: SupportsIndex, size: SupportsIndex) -> Array:
    """Allocates count elements of size bytes, all zero, as an array of uint8.

    Collective, as malloc. OpenSHMEM 1.6, section 9.3.6."""
    number, each = _size("calloc", "count", count), _size("calloc", "size", size)
    return _owned("calloc", _calloc(number, each), number * each)


def align(alignment: SupportsIndex, size: SupportsIndex) -> Array:
    """Allocates size bytes at a multiple of alignment, a power of two and a multiple of 8, as an array of uint8.

    Collective, as malloc. OpenSHMEM 1.6, section 9.3.4."""
    nbytes, multiple = _size("align", "size", size), _size("align", "alignment", alignment)
    if multiple & (multiple - 1) or multiple < 8:
        raise ValueError(f"heddle.align: alignment is {multiple}: a power of two from 8 on would be right")
    return _owned("align", _align(multiple, nbytes), nbytes)


def malloc_with_hints(size: SupportsIndex, hints: SupportsIndex) -> Array:
    """malloc, with what the memory is for: 0, or an OR of MALLOC_ATOMICS_REMOTE and MALLOC_SIGNAL_REMOTE.

    Collective, as malloc. OpenSHMEM 1.6, section 9.3.5."""
    nbytes = _size("malloc_with_hints", "size", size)
    wanted = integer("malloc_with_hints", "hints", hints, 0, 3)
    return _owned("malloc_with_hints", _malloc_with_hints(nbytes, wanted), nbytes)


def realloc(array: Array, size: SupportsIndex) -> Array:
    """Changes the size of an allocation to size bytes: a new array of uint8, whose first bytes are those of array.

    array and its views are freed. MemoryError leaves array as it was. Collective, as malloc, with barriers on entry
    and exit. OpenSHMEM 1.6, section 9.3.3."""
    nbytes = _size("realloc", "size", size)
    old = _whole("realloc", array)
    address = _realloc(old.address, nbytes)
    if address:
        old.life = 0
    return _owned("realloc", address, nbytes)


def free(array: Array) -> None:
    """Frees the allocation of array: what empty, zeros, full, array, malloc and their kin returned, or any reshaped or
    other view of it. Neither may be used again: calls with them raise ValueError.

    Collective, as malloc, with a barrier on entry. Arrays are not freed by the garbage collector, because PEs collect
    in different orders. OpenSHMEM 1.6, section 9.3.2."""
    require_active("free")
    old = _whole("free", array)
    old.life = 0
    _free(old.address)


def _whole(where: str, array: Array) -> Allocation:
    """The allocation of an array, which Python has made."""
    owner = owner_of(array) if isinstance(array, np.ndarray) else None
    if owner is None:
        raise ValueError(f"heddle.{where}: array is {described(array)} that heddle has not allocated")
    if owner.life != state.life:
        raise gone(where, "array", owner.life, "was freed before")
    if not owner.owned:
        raise ValueError(f"heddle.{where}: array is memory that other code has allocated, which frees it")
    if any(0 <= lock - owner.address < owner.nbytes for lock in list(lock_holders)):
        raise RuntimeError(f"heddle.{where}: this PE has a lock in array; clear_lock comes first")
    return owner


def empty(shape: Shape, dtype: npt.DTypeLike = float) -> Array:
    """A symmetric array of that shape and dtype, whose elements are not set.

    Collective: all PEs call, one thread each, with the same shape and dtype; a barrier on exit. MemoryError on all PEs
    where there is no room. free() gives the memory back. OpenSHMEM 1.6, section 9.3.1."""
    return _shaped("empty", shape, dtype, False)


def zeros(shape: Shape, dtype: npt.DTypeLike = float) -> Array:
    """A symmetric array of that shape and dtype, all zero on all PEs when any PE returns.

    Collective, as empty. OpenSHMEM 1.6, section 9.3.6."""
    return _shaped("zeros", shape, dtype, True)


def full(shape: Shape, value: Any, dtype: npt.DTypeLike | None = None) -> Array:
    """A symmetric array whose elements are value, which PEs may choose for themselves; dtype: that of value.

    Collective, as empty, with a barrier behind the values. OpenSHMEM 1.6, section 9.3.1."""
    made = _shaped("full", shape, np.asarray(value).dtype if dtype is None else dtype, False)
    made[...] = value
    _sync()
    return made


def array(values: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> Array:
    """A symmetric array with these values, which PEs may choose for themselves, of one shape and dtype on all PEs.

    Collective, as empty, with a barrier behind the values. OpenSHMEM 1.6, section 9.3.1."""
    given = np.asarray(values, dtype)
    made = _shaped("array", given.shape, given.dtype, False)
    made[...] = given
    _sync()
    return made


_sync = foreign("shmem_sync_all", "v:")


def _kind(where: str, dtype: npt.DTypeLike) -> np.dtype[Any]:
    try:
        kind = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"heddle.{where}: dtype is {described(dtype)}: {error}") from None
    if kind.hasobject:
        raise TypeError(f"heddle.{where}: elements of dtype {kind} are Python objects, which other PEs cannot read")
    if not kind.itemsize:
        raise TypeError(f"heddle.{where}: elements of dtype {kind.str} have no bytes: a length, such as in S8, would "
                        "be right")
    return kind


def _shaped(where: str, shape: Shape, dtype: npt.DTypeLike, zeroed: bool) -> Array:
    require_active(where)
    kind = _kind(where, dtype)
    parts = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    lengths = tuple(integer(where, "a length in shape", part, 0, 2**63 - 1) for part in parts)
    nbytes = kind.itemsize
    for length in lengths:
        nbytes *= length
    if nbytes > 2**63 - 1:
        raise MemoryError(f"heddle.{where}: an array of shape {lengths} has {nbytes} bytes, more than any heap")
    # An empty array has a place, too.
    address = _calloc(max(nbytes, 1), 1) if zeroed else _malloc(max(nbytes, 1))
    whole = _owned(where, address, max(nbytes, 1))
    return np.ndarray(lengths, kind, whole)


def as_array(address: SupportsIndex, shape: Shape, dtype: npt.DTypeLike = float) -> Array:
    """Symmetric memory that other code of this process has allocated, such as an extension in C, as an array.

    Local; any thread. ValueError where the bytes are not symmetric. What frees the memory is that other code."""
    require_active("as_array")
    place = integer("as_array", "address", address, 1)
    lengths = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    kind = _kind("as_array", dtype)
    nbytes = math.prod(integer("as_array", "a length in shape", part, 1) for part in lengths) * kind.itemsize
    if nbytes > 2**62 or not (_accessible(place, state.my_pe) and _accessible(place + nbytes - 1, state.my_pe)):
        raise ValueError(f"heddle.as_array: the {nbytes} bytes at {place:#x} are not all symmetric memory of this PE")
    return np.ndarray(lengths, kind, np.asarray(Allocation(place, nbytes, False)))


def owner_of(array: Array) -> Allocation | None:
    """The allocation that array, or what it is a view of, was made from."""
    base: Any = array
    while base is not None:
        if type(base) is Allocation:
            return base
        base = base.obj if type(base) is memoryview else getattr(base, "base", None)
    return None


def as_memory(where: str, name: str, value: Any) -> Array:
    """The memory of value as an array; TypeError where it has none."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.generic):
        raise TypeError(f"heddle.{where}: {name} is a NumPy scalar, a copy of its element: a slice, such as "
                        "array[i:i+1], would be right")
    try:
        return np.asarray(memoryview(value))
    except (TypeError, ValueError):
        raise TypeError(f"heddle.{where}: {name} is {described(value)}: memory would be right, such as a NumPy array, "
                        "bytes or array.array") from None


def contiguous(where: str, name: str, array: Array) -> int:
    """The address of an array's first byte; ValueError where its elements do not lie one behind the other, TypeError
    where they are pointers to Python objects, which bytes from elsewhere would make invalid."""
    if array.dtype.hasobject:
        raise TypeError(f"heddle.{where}: elements of {name} are Python objects (dtype {array.dtype}), which other PEs "
                        "cannot read; the bytes of pickle.dumps would be right")
    if not array.flags.c_contiguous:
        raise ValueError(f"heddle.{where}: the elements of {name} (shape {array.shape}, strides {array.strides}) do "
                         "not lie one behind the other; numpy.ascontiguousarray(...) would be right, or iput and iget")
    try:
        return _addressof(_from_buffer(array))
    except (TypeError, ValueError, BufferError):  # read-only, empty, or of a dtype that the buffer protocol lacks
        return int(array.__array_interface__["data"][0])


def symmetric(where: str, name: str, value: Any, written: bool = False) -> tuple[Array, int]:
    """Memory that all PEs have: the array and its address. ValueError for other memory, for what was freed, and for
    what this PE may not write."""
    array = value if type(value) is np.ndarray else as_memory(where, name, value)
    base: Any = array.base
    if type(base) is np.ndarray:  # what empty() returns, or a view of it
        base = base.base
    owner = base if type(base) is Allocation else owner_of(array)
    if owner is None:
        raise ValueError(f"heddle.{where}: {name} is not symmetric memory: heddle.empty(), zeros(), full() and array() "
                         "make it, and heddle.as_array() knows that of other code")
    if owner.life != state.life:
        raise gone(where, name, owner.life, _FREED)
    if written and not array.flags.writeable:
        raise ValueError(f"heddle.{where}: {name} is a read-only array; one that can be written would be right")
    return array, contiguous(where, name, array)


def local(where: str, name: str, value: Any, written: bool = False) -> tuple[Array, int]:
    """Any memory of the caller: the array and its address. ValueError for what was freed, or cannot be written."""
    array = value if type(value) is np.ndarray else as_memory(where, name, value)
    owner = owner_of(array)
    if owner is not None and owner.life != state.life:
        raise gone(where, name, owner.life, _FREED)
    if written and not array.flags.writeable:
        raise ValueError(f"heddle.{where}: {name} is read-only memory; a bytearray or a NumPy array would be right")
    return array, contiguous(where, name, array)


def element(where: str, name: str, value: Any) -> tuple[Array, int]:
    """One symmetric element, aligned as its dtype asks: structures and strings may lie anywhere."""
    array, address = symmetric(where, name, value)
    if array.size != 1:
        raise ValueError(f"heddle.{where}: {name} has {array.size} elements: one would be right, such as the slice "
                         f"{name}[i:i+1]")
    if address % array.dtype.alignment:
        raise ValueError(f"heddle.{where}: {name} lies at {address:#x}, no multiple of its {array.dtype.alignment} "
                         "bytes")
    return array, address


def same_dtype(where: str, name: str, array: Array, other_name: str, other: Array) -> None:
    if array.dtype != other.dtype:
        raise TypeError(f"heddle.{where}: {name} has dtype {array.dtype} and {other_name} {other.dtype}: one would be "
                        "right, such as array.view(dtype) has")


def room(where: str, name: str, array: Array, elements: int, reason: str) -> None:
    """Raises ValueError where array has fewer elements than are needed."""
    if array.size < elements:
        raise ValueError(f"heddle.{where}: {name} has {array.size} elements, and {reason} need {elements}")


def list_of(where: str, name: str, values: Any, dtype: npt.DTypeLike, count: int | None = None) -> Array:
    """values, a buffer or a sequence of numbers, as a contiguous array of C integers: a copy where it is none."""
    kind = np.dtype(dtype)
    given = np.asarray(values)
    if given.size and (given.ndim != 1 or given.dtype.kind not in "iub"):
        raise TypeError(f"heddle.{where}: {name} is {described(values)}: a sequence of integers would be right")
    if count is not None and given.size != count:
        raise ValueError(f"heddle.{where}: {name} has {given.size} entries: {count} would be right")
    if given.size and given.dtype != kind:
        limits = np.iinfo(kind)
        if int(given.min()) < limits.min or int(given.max()) > limits.max:
            raise ValueError(f"heddle.{where}: {name} has entries from {given.min()} to {given.max()}: {kind} holds "
                             f"{limits.min} to {limits.max}")
    return np.ascontiguousarray(given, kind)

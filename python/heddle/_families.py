"""The functions of a family of the tables, found by the dtype of their data. Any thread."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ._library import Foreign, foreign
from .generated.tables import TABLES

# By the name in the tables: dtype, and how ctypes passes a value, where a family has values.
SCALARS: dict[str, tuple[np.dtype[Any], Any]] = {
    "int8": (np.dtype(np.int8), ctypes.c_int8), "int16": (np.dtype(np.int16), ctypes.c_int16),
    "int32": (np.dtype(np.int32), ctypes.c_int32), "int64": (np.dtype(np.int64), ctypes.c_int64),
    "uint8": (np.dtype(np.uint8), ctypes.c_uint8), "uint16": (np.dtype(np.uint16), ctypes.c_uint16),
    "uint32": (np.dtype(np.uint32), ctypes.c_uint32), "uint64": (np.dtype(np.uint64), ctypes.c_uint64),
    "float": (np.dtype(np.float32), ctypes.c_float), "double": (np.dtype(np.float64), ctypes.c_double),
    "longdouble": (np.dtype(np.longdouble), None), "complexf": (np.dtype(np.complex64), None),
    "complexd": (np.dtype(np.complex128), None),
}
_NAMES = {table: {SCALARS[name][0]: name for name in names if name in SCALARS} for table, names in TABLES.items()}


class Entry:
    """The function of a family for one dtype. scale: how many elements of the function one of the dtype is."""

    __slots__ = ("call", "dtype", "itemsize", "scale", "span")

    def __init__(self, call: Foreign, dtype: np.dtype[Any], scale: int) -> None:
        self.call, self.dtype, self.scale, self.itemsize = call, dtype, scale, dtype.itemsize
        self.span: tuple[int, int] | None = None  # least and greatest value of an integer
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            self.span = int(limits.min), int(limits.max)


class Family:
    """name: what Python calls it. typed: the C name with TYPENAME, types: its table. raw: the C name, with SIZE in it
    or not, for dtypes that the table lacks, or of a function without types. unit: bytes of an element of such a
    function, 0 where the dtype says."""

    def __init__(self, name: str, signature: str, *, typed: str = "", types: str = "", raw: str = "",
                 unit: int = 0) -> None:
        self.name, self.signature = name, signature
        self.typed, self.types, self.raw, self.unit = typed, types, raw, unit
        self.entries: dict[np.dtype[Any], Entry] = {}
        self.plain: Foreign | None = foreign(raw, signature) if raw and not typed else None

    def dtypes(self) -> list[np.dtype[Any]]:
        """Those with a function of their own."""
        return list(_NAMES[self.types])

    def has_values(self, dtype: np.dtype[Any]) -> bool:
        """Whether there is a function that takes or returns a value of dtype."""
        name = _NAMES[self.types].get(dtype)
        return name is not None and SCALARS[name][1] is not None

    def of(self, dtype: np.dtype[Any]) -> Entry:
        """The function for dtype; TypeError where there is none."""
        return self.entries.get(dtype) or self._find(dtype)

    def _find(self, dtype: np.dtype[Any]) -> Entry:
        names, values = _NAMES.get(self.types, {}), "T" in self.signature
        if self.plain:
            entry = Entry(self.plain, dtype, 1)
        elif dtype in names and not (values and SCALARS[names[dtype]][1] is None):
            name = names[dtype]
            call = foreign(self.typed.replace("TYPENAME", name), self.signature, SCALARS[name][1])
            entry = Entry(call, dtype, 1)
        elif self.raw and ("SIZE" not in self.raw or dtype.itemsize in (1, 2, 4, 8, 16)):
            call = foreign(self.raw.replace("SIZE", str(8 * dtype.itemsize)), self.signature)
            entry = Entry(call, dtype, 1 if "SIZE" in self.raw else dtype.itemsize)
        else:
            raise self._unknown(dtype)
        self.entries[dtype] = entry
        return entry

    def _unknown(self, dtype: np.dtype[Any]) -> TypeError:
        there = ", ".join(sorted(str(one) for one in _NAMES[self.types]))
        return TypeError(f"heddle.{self.name}: there is none for dtype {dtype.str if not dtype.isnative else dtype}; "
                         f"right would be {there}" + (", or elements of 1, 2, 4, 8 or 16 bytes" if self.raw else ""))

"""Waiting for variables and signals of this PE, and tests of them. Other Python threads run meanwhile. Any thread."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from ._checks import choice, require_active
from ._families import Family
from ._memory import Array, Buffer, element, list_of, local, same_dtype, symmetric
from ._transfers import signal_place
from ._values import scalar, unsigned

_COMPARISONS = {1: "CMP_EQ", 2: "CMP_NE", 3: "CMP_GT", 4: "CMP_GE", 5: "CMP_LT", 6: "CMP_LE"}
_SIZE_MAX = 2**64 - 1


def one(family: Family, ivar: Buffer, cmp: SupportsIndex, cmp_value: Any) -> Any:
    """wait_until and test."""
    where = family.name
    require_active(where)
    array, address = element(where, "ivar", ivar)
    entry = family.of(array.dtype)
    comparison = choice(where, "cmp", cmp, _COMPARISONS)
    result = entry.call(address, comparison, scalar(where, "cmp_value", cmp_value, entry))
    return None if result is None else bool(result)


class _Several:
    """The arguments of a form for several variables, checked, and kept until the end of the call."""

    def __init__(self, family: Family, ivars: Buffer, cmp: SupportsIndex, cmp_value: Any, status: Any) -> None:
        where = family.name
        require_active(where)
        array, self.address = symmetric(where, "ivars", ivars)
        if self.address % array.dtype.alignment:
            raise ValueError(f"heddle.{where}: ivars lies at {self.address:#x}, no multiple of "
                             f"{array.dtype.alignment} bytes")
        entry = family.of(array.dtype)
        self.call, self.size = entry.call, array.size
        self.comparison = choice(where, "cmp", cmp, _COMPARISONS)
        self.excluded = None if status is None else list_of(where, "status", status, np.intc, array.size)
        self.status = None if self.excluded is None else self.excluded.ctypes.data
        self.values: Array | None = None
        if not where.endswith("_vector"):
            self.value = scalar(where, "cmp_value", cmp_value, entry)
            return
        self.values, self.value = local(where, "cmp_values", cmp_value)
        same_dtype(where, "cmp_values", self.values, "ivars", array)
        if self.values.size != array.size:
            raise ValueError(f"heddle.{where}: cmp_values has {self.values.size} elements: {array.size} would be "
                             "right, one for each variable")


def every(family: Family, ivars: Buffer, cmp: SupportsIndex, cmp_value: Any, status: Any) -> Any:
    """wait_until_all and test_all, with one value or one for each variable."""
    one = _Several(family, ivars, cmp, cmp_value, status)
    return one.call(one.address, one.size, one.status, one.comparison, one.value)


def first(family: Family, ivars: Buffer, cmp: SupportsIndex, cmp_value: Any, status: Any) -> int | None:
    """wait_until_any and test_any."""
    one = _Several(family, ivars, cmp, cmp_value, status)
    found = int(one.call(one.address, one.size, one.status, one.comparison, one.value))
    return None if found == _SIZE_MAX else found


def some(family: Family, ivars: Buffer, cmp: SupportsIndex, cmp_value: Any, status: Any) -> npt.NDArray[np.intp]:
    """wait_until_some and test_some."""
    one = _Several(family, ivars, cmp, cmp_value, status)
    indices = np.empty(max(one.size, 1), np.uintp)
    count = one.call(one.address, one.size, indices.ctypes.data, one.status, one.comparison, one.value)
    return indices[:count].astype(np.intp)


def signal(family: Family, sig_addr: Buffer, cmp: SupportsIndex, cmp_value: SupportsIndex) -> int:
    """signal_wait_until."""
    where = family.name
    require_active(where)
    address, comparison = signal_place(where, sig_addr), choice(where, "cmp", cmp, _COMPARISONS)
    assert family.plain
    return int(family.plain(address, comparison, unsigned(where, "cmp_value", cmp_value)))

"""Values of one element: whether they fit its dtype. A value that does not is an OverflowError, and one of another kind
a TypeError: none is changed silently, but for the rounding of floats. Any thread."""

from __future__ import annotations

import math
from typing import Any, SupportsIndex

import numpy as np

from ._checks import described, integer
from ._families import Entry
from ._memory import Array

_FLOAT_MAX = float(np.finfo(np.float32).max)
_UINT64_MAX = 2**64 - 1


def too_large(where: str, name: str, value: Any, dtype: Any) -> OverflowError:
    return OverflowError(f"heddle.{where}: {name} is {described(value)}, which {dtype} cannot hold")


def scalar(where: str, name: str, value: Any, entry: Entry) -> Any:
    """value as a number that fits the dtype of entry."""
    span = entry.span
    if span is not None:
        number = value if type(value) is int else integer(where, name, value)
        if not span[0] <= number <= span[1]:
            raise OverflowError(f"heddle.{where}: {name} is {number}, and {entry.dtype} holds {span[0]} to {span[1]}")
        return number
    real = value if type(value) is float else _real(where, name, value, entry.dtype)
    if entry.itemsize == 4 and _FLOAT_MAX < abs(real) < math.inf and np.isinf(_as_float(real)):
        raise too_large(where, name, value, entry.dtype)
    return real


def _as_float(real: float) -> np.float32:
    with np.errstate(over="ignore"):
        return np.float32(real)


def _real(where: str, name: str, value: Any, dtype: Any) -> float:
    wrong = isinstance(value, str | bytes | bytearray | complex | np.complexfloating) or np.ndim(value) != 0 \
        or not (hasattr(value, "__float__") or hasattr(value, "__index__"))
    if not wrong:
        try:
            return _in_range(where, name, value, float(value), dtype)
        except OverflowError:
            raise too_large(where, name, value, dtype) from None
        except (TypeError, ValueError):
            pass
    raise TypeError(f"heddle.{where}: {name} is {described(value)}: a number would be right for {dtype}")


def _in_range(where: str, name: str, value: Any, real: float, dtype: Any) -> float:
    if math.isinf(real) and not np.isinf(value):  # a long double
        raise too_large(where, name, value, dtype)
    return real


def unsigned(where: str, name: str, value: SupportsIndex) -> int:
    """value as the number of a signal."""
    number = integer(where, name, value)
    if not 0 <= number <= _UINT64_MAX:
        raise OverflowError(f"heddle.{where}: {name} is {number}, and uint64 holds 0 to {_UINT64_MAX}")
    return number


def one_element(where: str, name: str, value: Any, dtype: np.dtype[Any]) -> Array:
    """An array of value alone, for a dtype that C has no numbers of."""
    made = np.zeros(1, dtype)
    is_text = isinstance(value, str | bytes | bytearray)
    if dtype.kind in "fc" and (is_text or (dtype.kind == "f" and isinstance(value, complex | np.complexfloating))):
        raise TypeError(f"heddle.{where}: {name} is {described(value)}: a number would be right for {dtype}")
    if dtype.kind in "iu":  # of the other byte order
        value = integer(where, name, value)
    if is_text and dtype.names is None and len(value) * (4 if dtype.kind == "U" else 1) > dtype.itemsize:
        raise too_large(where, name, value, dtype)
    try:
        with np.errstate(over="raise"):
            made[0] = value
    except (OverflowError, FloatingPointError):
        raise too_large(where, name, value, dtype) from None
    except (TypeError, ValueError) as error:
        if isinstance(value, int):  # NumPy writes it out for a long double, which has a limit
            raise too_large(where, name, value, dtype) from None
        raise TypeError(f"heddle.{where}: {name} is {described(value)}: a value of {dtype} would be right ({error})"
                        ) from None
    return made

"""libheddle.so: where it is, and its functions with the types that the tables say. ctypes releases the interpreter's
lock for each call. Any thread."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

SONAME = "libheddle.so.1"
# The native part of an installed wheel.
NATIVE = Path(__file__).resolve().parent / "native"
TYPES: dict[str, Any] = {
    "p": ctypes.c_void_p, "z": ctypes.c_size_t, "d": ctypes.c_ssize_t, "i": ctypes.c_int, "l": ctypes.c_long,
    "u": ctypes.c_uint64, "s": ctypes.c_char_p, "v": None,
}
Foreign = Callable[..., Any]


def places() -> list[Path]:
    """The files that are tried, in their order."""
    prefix = os.environ.get("HEDDLE_PREFIX")
    roots = [Path(prefix)] if prefix else [NATIVE]
    return [root / "lib" / SONAME for root in roots]


def load() -> ctypes.CDLL:
    """The library that the process has already; HEDDLE_PREFIX's or the wheel's; or the one that the loader finds."""
    try:
        return ctypes.CDLL(SONAME, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError:
        pass
    for place in places():
        if place.exists() or os.environ.get("HEDDLE_PREFIX"):
            try:
                return ctypes.CDLL(str(place))
            except OSError as error:
                raise ImportError(f"heddle: {place} cannot be loaded: {error}; HEDDLE_PREFIX is to name a folder with "
                                  f"lib/{SONAME}, or to be unset") from error
    try:
        return ctypes.CDLL(SONAME)
    except OSError as error:
        raise ImportError(f"heddle: there is no {SONAME}, neither at {places()[0]} nor where the loader looks; set "
                          "HEDDLE_PREFIX to the prefix of an installation") from error


library = load()


def foreign(name: str, signature: str, value: Any = None) -> Foreign:
    """The C function `name`. signature: a letter for the result, a colon, one for each argument (TYPES); T: value."""
    types = {**TYPES, "T": value}
    function = library[name]  # an object of its own for each call: types may differ
    result, arguments = signature.split(":")
    function.restype = types[result]
    function.argtypes = [types[letter] for letter in arguments]
    return function


def address_of(symbol: str) -> int:
    """The address of an exported object."""
    return ctypes.addressof(ctypes.c_char.in_dll(library, symbol))

"""What src/ knows of the inlined functions by name: the plugin that calls each of them by its symbol, and the hashes
of their names, by which the library looks for definitions of others (docs/decisions/0083)."""

from __future__ import annotations

import re
from collections.abc import Iterable

# What a function's argument is in an operations::OutOfLineCall. TYPE: the argument's.
ARGUMENTS = {
    "ctx": "it.ctx", "nelems": "it.nelems", "pe": "it.pe", "req": "it.req",
    "dest": "static_cast<TYPE>(it.dest)", "sig_addr": "static_cast<TYPE>(it.dest)",
    "source": "static_cast<TYPE>(it.source)", "fetch": "static_cast<TYPE>(it.fetch)",
    "value": "read<TYPE>(it.value)", "signal": "read<TYPE>(it.value)", "cond": "read<TYPE>(it.cond)",
}


def symbol_hash(name: str) -> int:
    """The hash of a symbol's name in a DT_GNU_HASH table."""
    value = 5381
    for letter in name.encode():
        value = (value * 33 + letter) & 0xFFFFFFFF
    return value


def passed(argument: str) -> str:
    """The argument, from the parts of an OutOfLineCall."""
    match = re.fullmatch(r"(.*?)\s*(\w+)", argument.strip())
    assert match, argument
    return ARGUMENTS[match[2]].replace("TYPE", match[1])


def row(function) -> str:
    """The line of the plugin's table."""
    call = f"{function.name}({', '.join(passed(argument) for argument in function.arguments.split(','))})"
    if function.returns != "void":
        call = f"write(it.result, {call})"
    return f'    {{"{function.name}", [](const OutOfLineCall& it) {{ {call}; }}}},'


def plugin(notice: str, functions: list) -> str:
    lines = [
        "// clang-format off",
        f"// The inlined functions as calls of their symbols, one line each, by name. {notice}",
        '#include "entry/out_of_line_plugin.h"',
        "",
        '#pragma GCC diagnostic ignored "-Wdeprecated-declarations"',
        "namespace heddle::operations {",
        "namespace {",
        "",
        "constexpr OutOfLineFunction kFunctions[] = {",
        *[row(function) for function in sorted(functions, key=lambda function: function.name)],
        "};",
        "",
        "}  // namespace",
        "}  // namespace heddle::operations",
        "",
        "HEDDLE_OUT_OF_LINE_TABLE(heddle::operations::kFunctions)",
    ]
    return "\n".join(lines) + "\n"


def hashes(notice: str, functions: list) -> str:
    lines = [
        "// clang-format off",
        f"// The names of the inlined functions, as DT_GNU_HASH tables hash them. {notice}",
        "#pragma once",
        "",
        "#include <cstdint>",
        "",
        "namespace heddle::operations {",
        "",
        "constexpr uint32_t kInlinedHashes[] = {",
    ]
    values = sorted(symbol_hash(function.name) for function in functions)
    lines += ["    " + " ".join(f"{value:#010x}," for value in values[i:i + 9]) for i in range(0, len(values), 9)]
    return "\n".join([*lines, "};", "", "}  // namespace heddle::operations"]) + "\n"


def files(notice: str, functions: Iterable) -> dict:
    """Path -> writer. functions: those that are inlined."""
    every = list(functions)
    return {
        "src/entry/generated/out_of_line_plugin.cpp": lambda: plugin(notice, every),
        "src/operations/generated/inlined_hashes.h": lambda: hashes(notice, every),
    }

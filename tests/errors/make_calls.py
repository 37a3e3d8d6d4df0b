"""Writes calls.c: for each family of the tables in api and each of its forms one function (that for long, where there
is one) that can be called with arguments from the command line (errors.cpp).

    make_calls.py OUTPUT.c
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "api"))
import generate  # noqa: E402  (api/generate.py reads the table)

PREFERRED = ["long", "ulong", 64]


def chosen(family):
    """The functions of a family that stand for it: plain and with a context; of shmemx.h, where the plain form is the
    other one with the default context, with a context alone."""
    index = 0
    if family.types:
        names = [entry if isinstance(entry, int) else entry[1] for entry in family.types]
        index = next((names.index(name) for name in PREFERRED if name in names), 0)
    forms = family.forms() if "since" in family.row else family.forms()[-1:]
    return [family.functions(form)[index] for form in forms]


def all_chosen():
    """Those of all families."""
    return [function for table in generate.TABLES for _, families in generate.load(table) for family in families
            for function in chosen(family)]


def parameters(function):
    """(C type, name) of each parameter."""
    if function.arguments == "void":
        return []
    parts = [re.sub(r"(\w+)\[\]", r"*\1", part).strip() for part in function.arguments.split(",")]
    return [re.fullmatch(r"(.*?)\s*(\w+)", part).groups() for part in parts if part != "..."]


def argument(c_type, name):
    if c_type.endswith("*"):
        return f'({c_type})pointer_argument("{name}")'
    if c_type == "shmem_ctx_t":
        return "context_argument()"
    if c_type == "shmemx_plan_t":
        return f'plan_argument("{name}")'
    if c_type == "shmem_team_t":
        return f'team_argument("{name}")'
    return f'({c_type})number_argument("{name}")'


def body(function):
    # Parentheses: some names are generics as well.
    call = f"({function.name})({', '.join(argument(*parameter) for parameter in parameters(function))})"
    if function.returns == "void":
        return f"{call};"
    if function.returns.endswith("*"):
        return f"show_pointer({call});"
    return f"show_number((long long){call});"


def main():
    functions = all_chosen()
    lines = ["/* Written by tests/errors/make_calls.py. */", '#include "calls.h"', ""]
    lines += [f"static void call_{function.name}(void) {{ {body(function)} }}" for function in functions]
    lines += ["", "const struct call calls[] = {"]
    lines += [f'    {{"{function.name}", call_{function.name}}},' for function in functions]
    lines += ["};", "const size_t calls_count = sizeof calls / sizeof calls[0];", ""]
    pathlib.Path(sys.argv[1]).write_text("\n".join(lines))


if __name__ == "__main__":
    main()

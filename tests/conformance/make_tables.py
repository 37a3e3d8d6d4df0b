"""Writes the rows of tables.h for one program, from api/openshmem.toml, api/shmemx.toml and families.py.

    make_tables.py PROGRAM OUTPUT            each row calls the C function by its name
    make_tables.py --generic PROGRAM OUTPUT  each row calls the type-generic name, where there is one

Stops when a family of the tables has no test in families.py, or families.py names one that is not there.
"""

import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "api"))
import generate  # noqa: E402  (api/generate.py reads the table)
from families import BODIES, FAMILIES  # noqa: E402

# table -> (row type, parameters of a row's function)
SHAPES = {
    "put": ("copy_row", "void* dest, const void* source, size_t nelems, int pe"),
    "get": ("copy_row", "void* dest, const void* source, size_t nelems, int pe"),
    "p": ("value_row", "void* to, const void* from, int pe"),
    "g": ("value_row", "void* to, const void* from, int pe"),
    "amo": ("amo_row", "void* fetch, void* dest, const void* value, const void* cond, int pe"),
    "put_signal": ("put_signal_row", "void* dest, const void* source, size_t nelems, uint64_t* sig_addr, "
                                     "uint64_t signal, int sig_op, int pe"),
    "signal": ("signal_row", "uint64_t* sig_addr, uint64_t signal, int pe"),
    "wait": ("wait_row", "void* ivars, size_t nelems, size_t* indices, const int* status, int cmp, "
                         "const void* cmp_values"),
    "sync": ("sync_row", "shmem_team_t team"),
    "move": ("move_row", "shmem_team_t team, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, "
                         "size_t nelems, int root"),
    "old_move": ("old_move_row", "void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, "
                                 "int root, int start, int log_stride, int size, long* psync"),
    "reduce": ("reduce_row", "shmem_team_t team, void* dest, const void* source, size_t nelems"),
    "old_reduce": ("old_reduce_row", "void* dest, const void* source, int nelems, int start, int log_stride, int size, "
                                     "void* pwrk, long* psync"),
}
STRIDED = "void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe"
for strided_table in ("iput", "iget", "ibput", "ibget"):
    SHAPES[strided_table] = ("strided_row", STRIDED)

AMO_OPS = ["compare_swap", "fetch_inc", "fetch_add", "fetch_and", "fetch_or", "fetch_xor", "swap", "inc", "add", "and",
           "or", "xor", "set", "fetch"]
OLD_AMO_OPS = {"cswap": "compare_swap", "finc": "fetch_inc", "fadd": "fetch_add"}


def all_families():
    """Family name -> family; stops when families.py and the table disagree."""
    families = {}
    for _, section in (entry for table in generate.TABLES for entry in generate.load(table)):
        for family in section:
            name = family.row["name"]
            families[name if name not in families else f"{name} ({family.row['types']})"] = family
    for missing in sorted(families.keys() - FAMILIES.keys()):
        sys.exit(f"tests/conformance/families.py: no test for the family {missing} of the tables in api")
    for gone in sorted(FAMILIES.keys() - families.keys()):
        sys.exit(f"tests/conformance/families.py: {gone} is not in the tables in api")
    return families


def kind_of(c_type):
    """The character of function_info.kind, as C."""
    if c_type == "void":
        return "'b'"
    if "complex" in c_type:
        return "'c'"
    if c_type in ("float", "double", "long double"):
        return "'f'"
    if c_type == "char":
        return "(CHAR_MIN < 0 ? 'i' : 'u')"
    return "'u'" if c_type.startswith(("unsigned", "uint", "size")) else "'i'"


# What a name ends in -> (when the operation is complete, what comes behind the other arguments).
FORMS = {"nbi": ("COMPLETE_AFTER_QUIET", ""), "nbe": ("COMPLETE_AFTER_REQUEST", "conformance_request"),
         "mt": ("COMPLETE_AT_RETURN", "thread, nthreads"),
         "mt_nbe": ("COMPLETE_AT_RETURN", "thread, nthreads, conformance_group_request")}
# The collectives that a thread group calls -> the function that has it do so.
BY_GROUP = {"mt": "conformance_thread_group", "mt_nbe": "conformance_posting_group"}

# C functions whose name is a C11 generic as well: the parentheses keep the macro out.
GENERIC_TOO = {"shmem_wait_until", "shmem_sync"}


class Row:
    """One function of a family, as a row and the function that the row points to."""

    def __init__(self, table, family, index, with_ctx, by_generic):
        self.table, self.family = table, family
        function = family.functions(with_ctx)[index]
        types = family.row.get("types")
        in_bits = types in ("size", "old_size")
        self.c_type = family.types[index][0] if types and not in_bits else "void"
        self.bytes = f"sizeof({self.c_type})" if self.c_type != "void" else "1"
        if in_bits:
            self.bytes = str(family.types[index] // 8)
        if family.row["name"] in ("shmem_wait", "shmem_wait_until"):
            self.c_type, self.bytes = "long", "sizeof(long)"
        self.called = self.reached = function.name
        if function.name in GENERIC_TOO:
            self.called = f"({function.name})"
        if by_generic and family.generic:
            self.called = family.generic
            self.reached = dict(family.choices(with_ctx)).get(family.same.get(self.c_type, self.c_type), function).name
        self.thunk = "row_" + function.name
        self.lead = "conformance_ctx, " if with_ctx else ""
        self.form = max((form for form in FORMS if family.row["name"].endswith(f"_{form}")), key=len, default="")
        self.base = family.row["name"].replace("shmemx_", "shmem_").removesuffix(f"_{self.form}")

    def call(self, *arguments):
        behind = [FORMS[self.form][1]] if self.form and FORMS[self.form][1] else []
        return f"{self.called}({self.lead}{', '.join([*arguments, *behind])})"

    def info(self):
        completion = FORMS[self.form][0] if self.form else "COMPLETE_AT_RETURN"
        return f'{{"{self.reached}", {self.bytes}, {kind_of(self.c_type)}, {completion}}}'


def copy_body(row):
    dest, source = f"({row.c_type}*)dest", f"(const {row.c_type}*)source"
    counts = [f"case {n}: {row.call(dest, source, str(n), 'pe')}; break;" for n in (0, 1, 2, 3)]
    return f"switch (nelems) {{ {' '.join(counts)} default: {row.call(dest, source, 'nelems', 'pe')}; }}"


def p_body(row):
    return (f"{row.c_type} value; memcpy(&value, from, sizeof value); "
            f"{row.call(f'({row.c_type}*)to', 'value', 'pe')};")


def g_body(row):
    return (f"{row.c_type} value = {row.call(f'(const {row.c_type}*)from', 'pe')}; "
            "memcpy(to, &value, sizeof value);")


def strided_body(row):
    sizes = ("bsize", "nblocks") if "_ib" in row.base else ("nblocks",)
    unused = "" if "_ib" in row.base else "(void)bsize; "
    return f"{unused}{row.call(f'({row.c_type}*)dest', f'(const {row.c_type}*)source', 'dst', 'sst', *sizes, 'pe')};"


def amo_op(row):
    old = row.base.removeprefix("shmem_TYPENAME_")
    return row.base.partition("_atomic_")[2] or OLD_AMO_OPS.get(old, old)


def amo_body(row):
    op, t = amo_op(row), row.c_type
    dest = f"(const {t}*)dest" if op == "fetch" else f"({t}*)dest"
    load = (f"{t} v = 0, c = 0; if (value) memcpy(&v, value, sizeof v); if (cond) memcpy(&c, cond, sizeof c); "
            "(void)v; (void)c; ")
    operands = {"compare_swap": ["c", "v"], "fetch": [], "inc": [], "fetch_inc": []}.get(op, ["v"])
    if row.form and amo_fetches(row):
        return load + row.call(f"({t}*)fetch", dest, *operands, "pe") + ";"
    if amo_fetches(row):
        return load + f"{t} old = {row.call(dest, *operands, 'pe')}; memcpy(fetch, &old, sizeof old);"
    return load + f"(void)fetch; {row.call(dest, *operands, 'pe')};"


def amo_fetches(row):
    return amo_op(row).startswith("fetch") or amo_op(row).endswith("swap")


def put_signal_body(row):
    return row.call(f"({row.c_type}*)dest", f"(const {row.c_type}*)source", "nelems", "sig_addr", "signal", "sig_op",
                    "pe") + ";"


def wait_body(row):
    t, vector = row.c_type, "_vector" in row.base
    if vector:
        load, values = "", f"(const {t}*)cmp_values"
    else:
        load, values = f"{t} v; memcpy(&v, cmp_values, sizeof v); ", "v"
    if wait_is_ne(row):
        call = row.call(f"({t}*)ivars", values)
        load += "(void)cmp; (void)nelems; (void)indices; (void)status; "
    elif wait_set(row) == "WAIT_ONE":
        call = row.call(f"({t}*)ivars", "cmp", values)
        load += "(void)nelems; (void)indices; (void)status; "
    elif wait_set(row) == "WAIT_SOME":
        call = row.call(f"({t}*)ivars", "nelems", "indices", "status", "cmp", values)
    else:
        call = row.call(f"({t}*)ivars", "nelems", "status", "cmp", values)
        load += "(void)indices; "
    if row.family.returns == "void":
        return load + call + "; return 0;"
    return load + f"return (size_t){call};"


def move_op(row):
    return row.base.removeprefix("shmem_").removeprefix("TYPENAME_").removesuffix("mem").removesuffix("SIZE")


def move_body(row):
    buffers = [f"({row.c_type}*)dest", f"(const {row.c_type}*)source"]
    strides = ["dst", "sst"] if move_op(row) == "alltoalls" else []
    root = ["root"] if move_op(row) == "broadcast" else []
    unused = ("" if strides else "(void)dst; (void)sst; ") + ("" if root else "(void)root; ")
    if row.table == "old_move":
        return unused + row.call(*buffers, *strides, "nelems", *root, "start", "log_stride", "size", "psync") + ";"
    return unused + "return " + row.call("team", *buffers, *strides, "nelems", *root) + ";"


def reduce_op(row):
    op = row.base.removeprefix("shmem_TYPENAME_").removesuffix("_reduce").removesuffix("_to_all")
    return op.removeprefix("sum_") if op.endswith("scan") else op


def reduce_body(row):
    buffers = [f"({row.c_type}*)dest", f"(const {row.c_type}*)source"]
    if row.table == "old_reduce":
        return row.call(*buffers, "nelems", "start", "log_stride", "size", f"({row.c_type}*)pwrk", "psync") + ";"
    return "return " + row.call("team", *buffers, "nelems") + ";"


def wait_is_ne(row):
    """The deprecated waits compare for inequality alone."""
    return row.base in ("shmem_wait", "shmem_TYPENAME_wait")


def wait_set(row):
    for word in ("all", "any", "some"):
        if f"_{word}" in row.base:
            return "WAIT_" + word.upper()
    return "WAIT_ONE"


def fields(row):
    if row.table in ("iput", "iget", "ibput", "ibget"):
        return [str(int("_ib" in row.base))]
    if row.table == "amo":
        op = amo_op(row)
        kind = op if op == "fetch" else op.removeprefix("fetch_")
        return ["AMO_" + kind.upper(), str(int(amo_fetches(row)))]
    if row.table == "signal":
        return [str(int("add" in row.base))]
    if row.table == "wait":
        tests, vector = "_test" in row.base, "_vector" in row.base
        return [str(int(tests)), wait_set(row), str(int(vector)), str(int(wait_is_ne(row)))]
    if row.table in ("move", "old_move"):
        return ["MOVE_" + move_op(row).upper()]
    if row.table in ("reduce", "old_reduce"):
        return ["REDUCE_" + reduce_op(row).upper()]
    return []


THUNKS = {"put": copy_body, "get": copy_body, "p": p_body, "g": g_body, "iput": strided_body, "iget": strided_body,
          "ibput": strided_body, "ibget": strided_body, "amo": amo_body, "put_signal": put_signal_body,
          "signal": lambda row: row.call("sig_addr", "signal", "pe") + ";", "wait": wait_body,
          "sync": lambda row: f"return {row.call('team')};", "move": move_body, "old_move": move_body,
          "reduce": reduce_body, "old_reduce": reduce_body}
RETURNS = {"wait": "size_t", "sync": "int", "move": "int", "reduce": "int"}


def thunk(row, returns, parameters):
    """The function that a row points to. That of a collective by many threads has a thread group call it (tables.h)."""
    body = THUNKS[row.table](row)
    if row.form not in BY_GROUP:
        return [f"static {returns} {row.thunk}({parameters}) {{ {body} }}"]
    return [f"static int {row.thunk}_by_group(const struct thread_group_call* call, int thread, int nthreads) "
            f"{{ {GROUP_TAKES} {body} }}",
            f"static int {row.thunk}({parameters}) {{ {GROUP_GIVES[row.table]} "
            f"return {BY_GROUP[row.form]}({row.thunk}_by_group, &call); }}"]


# The arguments of a thread group's call, as the thunks name them.
GROUP_TAKES = ("shmem_team_t team = call->team; void* dest = call->dest; const void* source = call->source; "
              "ptrdiff_t dst = call->dst, sst = call->sst; size_t nelems = call->nelems; int root = call->root; "
              "(void)dest; (void)source; (void)dst; (void)sst; (void)nelems; (void)root;")
GROUP_GIVES = {"sync": "const struct thread_group_call call = {team, NULL, NULL, 0, 0, 1, 1};",
              "move": "const struct thread_group_call call = {team, dest, source, nelems, root, dst, sst};",
              "reduce": "const struct thread_group_call call = {team, dest, source, nelems, 0, 1, 1};"}


def write_table(table, rows):
    row_type, parameters = SHAPES[table]
    returns = RETURNS.get(table, "void")
    if not rows:
        return [f"const struct {row_type} {table}_rows[1] = CONFORMANCE_NO_ROWS;",
                f"const size_t {table}_rows_count = 0;", ""]
    lines = [line for row in rows for line in thunk(row, returns, parameters)]
    lines.append(f"const struct {row_type} {table}_rows[] = {{")
    lines += ["    {" + ", ".join([row.info(), *fields(row), row.thunk]) + "}," for row in rows]
    return [*lines, "};", f"const size_t {table}_rows_count = sizeof {table}_rows / sizeof {table}_rows[0];", ""]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generic", action="store_true")
    parser.add_argument("program")
    parser.add_argument("output")
    options = parser.parse_args()
    families = all_families()
    body = BODIES.get(options.program)
    tables = {table: [] for program, table in FAMILIES.values() if body and program == body and table}
    for name, (program, table) in FAMILIES.items():
        if program != options.program or not table:
            continue
        family = families[name]
        for with_ctx in family.forms():
            for index in range(len(family.functions(with_ctx))):
                tables.setdefault(table, []).append(Row(table, family, index, with_ctx, options.generic))
    lines = ["/* Written by tests/conformance/make_tables.py. */", '#include "tables.h"', "", "#include <limits.h>",
             "#include <shmemx.h>", "#include <string.h>", ""]
    for table, rows in tables.items():
        lines += write_table(table, rows)
    pathlib.Path(options.output).write_text("\n".join(lines))


if __name__ == "__main__":
    main()

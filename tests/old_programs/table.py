"""300 programs as people wrote them from 2005 on, for OpenSHMEM 1.0 to 1.3: start_pes and no finalize, active sets with
pSync and pWrk, the names without prefix. Each checks its own answer and says so on every PE.

A program is a few words on how it begins and ends, its global variables, and a body that counts errors. `@` behind a
name makes it the program's own where several are compiled together (write.py). All of it is C and C++ alike, but for
what is marked `c_only`."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Program:
    name: str
    body: str            # me and npes are set; counts in errors
    variables: str = ""  # at file scope: symmetric
    c_only: bool = False
    # How it is written, given in turns by programs() below.
    header: str = "shmem.h"
    start: str = "start_pes(0);"
    me: str = "_my_pe()"
    npes: str = "_num_pes()"
    end: str = "return errors;"
    language: str = "c"


C_NAMES = {"longlong": "long long", "longdouble": "long double", "complexf": "float _Complex", "complexd": "double _Complex",
           "ushort": "unsigned short"}


def c_type(name):
    return C_NAMES.get(name, name)


RMA = ["short", "int", "long", "float", "double", "longlong", "longdouble"]
STANDARD = ["int", "long", "longlong"]
LARGE = ["short", "int", "long", "longlong"]
SIZES = {"32": "int", "64": "long", "128": "long double"}

FILL_SYNC = "    for (i = 0; i < {size}; i++) pSync@[i] = _SHMEM_SYNC_VALUE;\n"
CHECK = "    if ({wrong}) {{ printf(\"PE %d: {what} is wrong\\n\", me); errors++; }}\n"


def check(wrong, what="the answer"):
    return CHECK.format(wrong=wrong, what=what)


# ---- One operation each.

def puts_and_gets():
    """By type and by size, on static data and on the symmetric heap."""
    operations = [(f"{name}_{verb}", c_type(name)) for name in RMA for verb in ("put", "get")]
    operations += [(f"{verb}{size}", kind) for size, kind in SIZES.items() for verb in ("put", "get")]
    operations += [(f"{verb}mem", "char") for verb in ("put", "get")]
    for function, kind in operations:
        many = "10 * sizeof(*source)" if function.endswith("mem") else "10"
        for place in ("static", "heap"):
            variables = f"{kind} from_static@[10];\n{kind} to_static@[10];\n" if place == "static" else ""
            body = f"    {kind} *source = from_static@, *dest = to_static@;\n" if place == "static" else \
                f"    {kind} *source = ({kind} *)shmalloc(10 * sizeof(*source));\n" \
                f"    {kind} *dest = ({kind} *)shmalloc(10 * sizeof(*dest));\n"
            body += "    int i, nextpe = (me + 1) % npes, from;\n" \
                    f"    for (i = 0; i < 10; i++) {{ source[i] = ({kind})(me + i); dest[i] = 0; }}\n" \
                    "    shmem_barrier_all();\n" \
                    f"    shmem_{function}(dest, source, {many}, nextpe);\n    shmem_barrier_all();\n" \
                    f"    from = {'nextpe' if 'get' in function else '(me + npes - 1) % npes'};\n" \
                    f"    for (i = 0; i < 10; i++)\n    {check(f'dest[i] != ({kind})(from + i)', 'an element')}"
            if place == "heap":
                body += "    shfree(dest);\n    shfree(source);\n"
            yield Program(f"{function}_{place}", body, variables)


def single_elements():
    for name in RMA:
        kind = c_type(name)
        variables = f"{kind} word@ = 7;\n"
        yield Program(f"{name}_p", f"    shmem_{name}_p(&word@, ({kind})(me + 20), (me + 1) % npes);\n    shmem_barrier_all();\n"
                      + check(f"word@ != ({kind})((me + npes - 1) % npes + 20)"), variables)
        yield Program(f"{name}_g", f"    {kind} got;\n    word@ = ({kind})(me + 30);\n    shmem_barrier_all();\n"
                      f"    got = shmem_{name}_g(&word@, (me + 1) % npes);\n"
                      + check(f"got != ({kind})((me + 1) % npes + 30)"), variables)


def strided():
    operations = [(f"{name}_{verb}", c_type(name)) for name in RMA for verb in ("iput", "iget")]
    operations += [(f"{verb}{size}", kind) for size, kind in SIZES.items() for verb in ("iput", "iget")]
    for function, kind in operations:
        put = "iput" in function
        body = "    int i;\n" \
               f"    for (i = 0; i < 20; i++) {{ source@[i] = ({kind})(i + 1); dest@[i] = 0; }}\n    shmem_barrier_all();\n" \
               f"    shmem_{function}(dest@, source@, 1, 2, 10, (me + 1) % npes);\n    shmem_barrier_all();\n" if put else \
               "    int i;\n" \
               f"    for (i = 0; i < 20; i++) {{ source@[i] = ({kind})(i + 1); dest@[i] = 0; }}\n    shmem_barrier_all();\n" \
               f"    shmem_{function}(dest@, source@, 2, 1, 10, npes - 1);\n    shmem_barrier_all();\n"
        right = f"({kind})(2 * i + 1)" if put else f"({kind})(i % 2 ? 0 : i / 2 + 1)"
        body += f"    for (i = 0; i < {10 if put else 20}; i++)\n    {check(f'dest@[i] != {right}', 'an element')}"
        yield Program(function, body, f"{kind} source@[20];\n{kind} dest@[20];\n")


def atomics():
    for name in STANDARD:
        kind = c_type(name)
        for place in ("static", "heap"):
            one = f"{kind} *target = &word@;\n" if place == "static" else \
                f"{kind} *target = ({kind} *)shmalloc(sizeof(*target));\n"
            variables = f"{kind} word@;\n" if place == "static" else ""
            begin = f"    {one}    *target = 5;\n    shmem_barrier_all();\n"
            for function, call, right in [
                ("add", f"shmem_{name}_add(target, me + 1, 0)", "me == 0 && *target != 5 + npes * (npes + 1) / 2"),
                ("inc", f"shmem_{name}_inc(target, npes - 1)", "me == npes - 1 && *target != 5 + npes"),
                ("fadd", f"old = shmem_{name}_fadd(target, 2, 0)",
                 "(old - 5) % 2 || old < 5 || old >= 5 + 2 * npes || (me == 0 && *target != 5 + 2 * npes)"),
                ("finc", f"old = shmem_{name}_finc(target, 0)",
                 "old < 5 || old >= 5 + npes || (me == 0 && *target != 5 + npes)"),
                ("swap", f"old = shmem_{name}_swap(target, me + 100, (me + 1) % npes)",
                 "old != 5 || *target != (me + npes - 1) % npes + 100"),
                ("cswap", f"old = shmem_{name}_cswap(target, 5, me + 1, 0)",
                 "(old != 5 && (old < 1 || old > npes)) || (me == 0 && (*target < 1 || *target > npes))"),
            ]:
                fetches = "old = " in call
                yield Program(f"{name}_{function}_{place}", (f"    {kind} old = 0;\n" if fetches else "") + begin +
                              f"    {call};\n    shmem_barrier_all();\n" + check(right) +
                              ("    shfree(target);\n" if place == "heap" else ""), variables)
    for name in ("float", "double"):
        yield Program(f"{name}_swap", f"    {name} old;\n    target@ = ({name})me;\n    shmem_barrier_all();\n"
                      f"    old = shmem_{name}_swap(&target@, ({name})(me + 50), (me + 1) % npes);\n    shmem_barrier_all();\n" +
                      check("old != (me + 1) % npes || target@ != (me + npes - 1) % npes + 50"), f"{name} target@;\n")
    for name in [*STANDARD, "float", "double"]:
        kind = c_type(name)
        yield Program(f"{name}_set_fetch", f"    {kind} got;\n    shmem_{name}_set(&target@, ({kind})(me + 3), (me + 1) % npes);\n"
                      f"    shmem_barrier_all();\n    got = shmem_{name}_fetch(&target@, (me + 1) % npes);\n" +
                      check(f"got != ({kind})(me + 3)"), f"{kind} target@;\n")


def waits():
    """PE 0 tells each of the others, which wait."""
    comparisons = [("EQ", "9", "9"), ("NE", "0", "4"), ("GT", "6", "7"), ("GE", "7", "7"), ("LT", "0", "-1"), ("LE", "-2", "-2")]
    tell = "    if (me == 0) {{\n        int pe;\n        for (pe = 1; pe < npes; pe++) shmem_{name}_p(&flag@, {value}, pe);\n" \
           "    }} else {{\n        {wait};\n    {check}    }}\n"
    for name in LARGE:
        kind = c_type(name)
        for comparison, against, value in comparisons:
            generic = name == "long" and comparison in ("EQ", "GT")
            function = "shmem_wait_until" if generic else f"shmem_{name}_wait_until"
            yield Program(f"{name}_wait_until_{comparison.lower()}", tell.format(
                name=name, value=value, wait=f"{function}(&flag@, _SHMEM_CMP_{comparison}, {against})",
                check=check(f"flag@ != {value}")), f"{kind} flag@ = 0;\n")
        yield Program(f"{name}_wait", tell.format(name=name, value=1, wait=f"shmem_{name}_wait(&flag@, 0)",
                                                  check=check("flag@ != 1")), f"{kind} flag@ = 0;\n")
    yield Program("short_test", tell.format(name="short", value=3, wait="while (!shmem_short_test(&flag@, _SHMEM_CMP_EQ, 3)) { }",
                                            check=check("flag@ != 3")), "short flag@ = 0;\n")
    yield Program("wait", tell.format(name="long", value=1, wait="shmem_wait(&flag@, 0)", check=check("flag@ != 1")),
                  "long flag@ = 0;\n")


# ---- Collectives on active sets.

def work(kind, nreduce, size="_SHMEM_REDUCE_MIN_WRKDATA_SIZE"):
    return f"{kind} pWrk@[{nreduce} / 2 + 1 > {size} ? {nreduce} / 2 + 1 : {size}];\n"


def reductions():
    arithmetic = [(name, op) for name in RMA for op in ("sum", "prod", "min", "max")]
    complex_ones = [(name, op) for name in ("complexf", "complexd") for op in ("sum", "prod")]
    bitwise = [(name, op) for name in LARGE for op in ("and", "or", "xor")]
    right = {"sum": "npes * i + npes * (npes - 1) / 2", "prod": "1 << npes", "min": "i", "max": "i + npes - 1",
             "and": "bits_and", "or": "bits_or", "xor": "bits_xor"}
    for name, op in arithmetic + complex_ones + bitwise:
        kind = c_type(name)
        source = {"prod": f"({kind})2", "and": f"({kind})(7 | me)", "or": f"({kind})me", "xor": f"({kind})(me + 1)"}.get(
            op, f"({kind})(me + i)")
        body = "    int i;\n"
        if op in ("and", "or", "xor"):
            body += "    int bits_and = ~0, bits_or = 0, bits_xor = 0;\n" \
                    "    for (i = 0; i < npes; i++) { bits_and &= 7 | i; bits_or |= i; bits_xor ^= i + 1; }\n"
        body += FILL_SYNC.format(size="_SHMEM_REDUCE_SYNC_SIZE") + \
            f"    for (i = 0; i < 12; i++) source@[i] = {source};\n    shmem_barrier_all();\n" \
            f"    shmem_{name}_{op}_to_all(dest@, source@, 12, 0, 0, npes, pWrk@, pSync@);\n" \
            f"    for (i = 0; i < 12; i++)\n    {check(f'dest@[i] != ({kind})({right[op]})', 'an element')}"
        if op in ("and", "or", "xor"):
            body += "    (void)bits_and; (void)bits_or; (void)bits_xor;\n"
        yield Program(f"{name}_{op}_to_all", body, f"long pSync@[_SHMEM_REDUCE_SYNC_SIZE];\n{kind} source@[12], dest@[12];\n"
                      + work(kind, 12), c_only=name.startswith("complex"))
    for name in ("int", "double"):  # the PEs with even numbers, several times in a row with two pSync in turns
        yield Program(f"{name}_sum_of_every_second", "    int i, round, half = (npes + 1) / 2;\n"
                      "    for (i = 0; i < _SHMEM_REDUCE_SYNC_SIZE; i++) pSync@[0][i] = pSync@[1][i] = _SHMEM_SYNC_VALUE;\n"
                      "    shmem_barrier_all();\n    for (round = 0; round < 6 && me % 2 == 0; round++) {\n"
                      "        source@ = me + round;\n"
                      f"        shmem_{name}_sum_to_all(&dest@, &source@, 1, 0, 1, half, pWrk@, pSync@[round % 2]);\n    "
                      + check("dest@ != half * round + half * (half - 1)") + "    }\n",
                      f"long pSync@[2][_SHMEM_REDUCE_SYNC_SIZE];\n{name} source@, dest@;\n" + work(name, 1))


SETS = {"all": ("1", "0, 0, npes", "me", "npes"), "even": ("me % 2 == 0", "0, 1, (npes + 1) / 2", "me / 2", "(npes + 1) / 2"),
        "last": ("me > 0", "1, 0, npes - 1", "me - 1", "npes - 1")}


def reductions_of_sets():
    """Of the PEs with even numbers, and of all but the first."""
    for name, op in [(name, "sum") for name in RMA] + [(name, "max") for name in RMA if name not in ("short", "longdouble")]:
        kind = c_type(name)
        for words in ("even", "last"):
            belongs, active, _, members = SETS[words]
            first, step = ("0", "2") if words == "even" else ("1", "1")
            right = {"sum": f"members * {first} + {step} * members * (members - 1) / 2",
                     "max": f"{first} + (members - 1) * {step}"}[op]
            yield Program(f"{name}_{op}_to_all_{words}", "    int i, members;\n" + FILL_SYNC.format(
                size="_SHMEM_REDUCE_SYNC_SIZE") + f"    members = {members};\n"
                f"    source@ = ({kind})me;\n    shmem_barrier_all();\n    if (npes > 1 && {belongs}) {{\n"
                f"        shmem_{name}_{op}_to_all(&dest@, &source@, 1, {active}, pWrk@, pSync@);\n    " +
                check(f"dest@ != ({kind})({right})") + "    }\n    shmem_barrier_all();\n",
                f"long pSync@[_SHMEM_REDUCE_SYNC_SIZE];\n{kind} source@, dest@;\n" + work(kind, 1))


def movers():
    kinds = {"32": "int", "64": "long"}
    for size, kind in kinds.items():
        for words, (belongs, active, rank, members) in SETS.items():
            begin = "    int i, rank, members;\n" + FILL_SYNC.format(size="%SYNC%") + \
                    "    for (i = 0; i < 8; i++) { source@[i] = 100 * me + i; }\n" \
                    "    for (i = 0; i < 8 * 64; i++) dest@[i] = -1;\n    shmem_barrier_all();\n" \
                    f"    rank = {rank}; members = {members}; (void)rank; (void)members;\n    if (npes > 1 && {belongs}) {{\n"
            variables = f"long pSync@[%SYNC%];\n{kind} source@[8 * 64];\n{kind} dest@[8 * 64];\n"
            first, step = {"all": ("0", "1"), "even": ("0", "2"), "last": ("1", "1")}[words]
            sync = "_SHMEM_BCAST_SYNC_SIZE"
            yield Program(f"broadcast{size}_{words}", begin.replace("%SYNC%", sync) +
                          f"        shmem_broadcast{size}(dest@, source@, 8, members - 1, {active}, pSync@);\n"
                          "        for (i = 0; i < 8; i++)\n        " +
                          check(f"dest@[i] != (rank == members - 1 ? -1 : 100 * ({first} + (members - 1) * {step}) + i)") + "    }\n",
                          variables.replace("%SYNC%", sync))
            sync = "_SHMEM_COLLECT_SYNC_SIZE"
            yield Program(f"fcollect{size}_{words}", begin.replace("%SYNC%", sync) +
                          f"        shmem_fcollect{size}(dest@, source@, 8, {active}, pSync@);\n"
                          "        for (i = 0; i < 8 * members; i++)\n        " +
                          check(f"dest@[i] != 100 * ({first} + i / 8 * {step}) + i % 8") + "    }\n", variables.replace("%SYNC%", sync))
            yield Program(f"collect{size}_{words}", begin.replace("%SYNC%", sync) +
                          f"        int other, at = 0;\n        shmem_collect{size}(dest@, source@, rank + 1, {active}, pSync@);\n"
                          "        for (other = 0; other < members; other++)\n            for (i = 0; i <= other; i++, at++)\n    "
                          "        " + check(f"dest@[at] != 100 * ({first} + other * {step}) + i") + "    }\n",
                          variables.replace("%SYNC%", sync))
        sync = "SHMEM_ALLTOALL_SYNC_SIZE"
        begin = "    int i;\n" + FILL_SYNC.format(size=sync) + \
                "    for (i = 0; i < 2 * npes; i++) { source@[i] = 100 * me + i; dest@[i] = -1; }\n    shmem_barrier_all();\n"
        variables = f"long pSync@[{sync}];\n{kind} source@[4 * 64];\n{kind} dest@[4 * 64];\n"
        yield Program(f"alltoall{size}", begin + f"    shmem_alltoall{size}(dest@, source@, 2, 0, 0, npes, pSync@);\n"
                      "    for (i = 0; i < 2 * npes; i++)\n    " + check("dest@[i] != 100 * (i / 2) + 2 * me + i % 2"), variables)
        yield Program(f"alltoalls{size}", begin + f"    shmem_alltoalls{size}(dest@, source@, 2, 2, 1, 0, 0, npes, pSync@);\n"
                      "    for (i = 0; i < npes; i++)\n    " + check("dest@[2 * i] != 100 * i + 2 * me"), variables)


def barriers():
    for words, (belongs, active, _, members) in SETS.items():
        for function in ("barrier", "sync"):
            quiet = "        shmem_quiet();\n" if function == "sync" else ""
            target = {"all": "0", "even": "0", "last": "1"}[words]
            yield Program(f"{function}_{words}", "    int i, round;\n" + FILL_SYNC.format(size="_SHMEM_BARRIER_SYNC_SIZE") +
                          f"    shmem_barrier_all();\n    for (round = 1; round <= 10 && npes > 1 && {belongs}; round++) {{\n"
                          f"        shmem_int_inc(&count@, {target});\n{quiet}        shmem_{function}({active}, pSync@);\n"
                          f"        if (me == {target})\n        " + check(f"count@ != round * ({members})", "the count") +
                          f"        shmem_{function}({active}, pSync@);\n    }}\n",
                          "long pSync@[_SHMEM_BARRIER_SYNC_SIZE];\nint count@ = 0;\n")


# ---- Memory, locks, queries.

def memory():
    yield Program("shmalloc_many", "    int i;\n    long *block[20];\n"
                  "    for (i = 0; i < 20; i++) { block[i] = (long *)shmalloc((i + 1) * sizeof(long)); block[i][i] = me; }\n"
                  "    shmem_barrier_all();\n    for (i = 0; i < 20; i++)\n    " +
                  check("shmem_long_g(&block[i][i], (me + 1) % npes) != (me + 1) % npes") +
                  "    shmem_barrier_all();\n    for (i = 19; i >= 0; i--) shfree(block[i]);\n")
    yield Program("shrealloc_grows", "    int i, *list = (int *)shmalloc(10 * sizeof(int));\n"
                  "    for (i = 0; i < 10; i++) list[i] = me * i;\n    list = (int *)shrealloc(list, 5000 * sizeof(int));\n"
                  "    for (i = 0; i < 10; i++)\n    " + check("list[i] != me * i") + "    shfree(list);\n")
    yield Program("shrealloc_shrinks", "    int i, *list = (int *)shmalloc(5000 * sizeof(int));\n"
                  "    for (i = 0; i < 5000; i++) list[i] = me + i;\n    list = (int *)shrealloc(list, 10 * sizeof(int));\n"
                  "    for (i = 0; i < 10; i++)\n    " + check("list[i] != me + i") + "    shfree(list);\n")
    for power in (64, 256, 4096, 65536):
        yield Program(f"shmemalign_{power}", f"    char *block = (char *)shmemalign({power}, 100);\n" +
                      check(f"!block || (unsigned long)block % {power} != 0") +
                      "    shmem_barrier_all();\n    block[99] = (char)me;\n    shmem_barrier_all();\n" +
                      check("shmem_short_g((short *)(block + 98), (me + 1) % npes) == 12345") + "    shfree(block);\n")
    yield Program("globals_and_locals", "    static int local_static = 3;\n    shmem_int_p(&local_static, me, (me + 1) % npes);\n"
                  "    shmem_int_p(&initialised@, me, (me + 1) % npes);\n    shmem_int_p(&uninitialised@, me, (me + 1) % npes);\n"
                  "    shmem_barrier_all();\n" +
                  check("local_static != (me + npes - 1) % npes || initialised@ != local_static || uninitialised@ != local_static"),
                  "int initialised@ = 17;\nstatic int uninitialised@;\n")


def locks():
    yield Program("lock_counts", "    int i;\n    shmem_barrier_all();\n    for (i = 0; i < 50; i++) {\n        int now;\n"
                  "        shmem_set_lock(&lock@);\n        now = shmem_int_g(&count@, 0);\n"
                  "        shmem_int_p(&count@, now + 1, 0);\n        shmem_quiet();\n        shmem_clear_lock(&lock@);\n    }\n"
                  "    shmem_barrier_all();\n    if (me == 0)\n    " + check("count@ != 50 * npes", "the count"),
                  "long lock@ = 0;\nint count@ = 0;\n")
    yield Program("lock_tested", "    int mine = 0;\n    shmem_barrier_all();\n    while (!mine) {\n"
                  "        if (shmem_test_lock(&lock@) == 0) {\n            shmem_int_p(&count@, shmem_int_g(&count@, 0) + 1, 0);\n"
                  "            shmem_quiet();\n            shmem_clear_lock(&lock@);\n            mine = 1;\n        }\n    }\n"
                  "    shmem_barrier_all();\n    if (me == 0)\n    " + check("count@ != npes", "the count"),
                  "long lock@ = 0;\nint count@ = 0;\n")
    yield Program("lock_in_heap", "    long *lock = (long *)shmalloc(sizeof(long));\n    *lock = 0;\n    shmem_barrier_all();\n"
                  "    shmem_set_lock(lock);\n    shmem_long_p(&total@, shmem_long_g(&total@, 0) + me + 1, 0);\n    shmem_quiet();\n"
                  "    shmem_clear_lock(lock);\n    shmem_barrier_all();\n    if (me == 0)\n    " +
                  check("total@ != npes * (npes + 1) / 2") + "    shfree(lock);\n", "long total@ = 0;\n")


    yield Program("lock_for_each", "    int pe;\n    shmem_barrier_all();\n    for (pe = 0; pe < npes; pe++) {\n"
                  "        shmem_set_lock(&locks@[pe]);\n        shmem_int_p(&counts@[pe], shmem_int_g(&counts@[pe], pe) + 1, pe);\n"
                  "        shmem_quiet();\n        shmem_clear_lock(&locks@[pe]);\n    }\n    shmem_barrier_all();\n" +
                  check("counts@[me] != npes", "the count"), "long locks@[64];\nint counts@[64];\n")


def queries():
    yield Program("ptr", "    int *theirs = (int *)shmem_ptr(&word@, (me + 1) % npes);\n    if (theirs) *theirs = me;\n"
                  "    else shmem_int_p(&word@, me, (me + 1) % npes);\n    shmem_barrier_all();\n" +
                  check("word@ != (me + npes - 1) % npes"), "int word@ = -1;\n")
    yield Program("accessible", "    int on_stack = 0, *block = (int *)shmalloc(sizeof(int));\n" +
                  check("!shmem_pe_accessible(npes - 1) || shmem_pe_accessible(npes)", "pe_accessible") +
                  check("!shmem_addr_accessible(&word@, 0) || !shmem_addr_accessible(block, npes - 1)", "addr_accessible") +
                  check("shmem_addr_accessible(&on_stack, 0)", "addr_accessible of the stack") + "    shfree(block);\n",
                  "int word@;\n")
    yield Program("fence_keeps_order", "    int i;\n    if (me == 0) {\n        for (i = 1; i < npes; i++) {\n"
                  "            shmem_long_p(&data@, 77, i);\n            shmem_fence();\n            shmem_long_p(&flag@, 1, i);\n"
                  "        }\n    } else {\n        shmem_long_wait_until(&flag@, _SHMEM_CMP_EQ, 1);\n    " + check("data@ != 77") +
                  "    }\n", "long data@ = 0;\nlong flag@ = 0;\n")
    yield Program("constants", check("_SHMEM_MAJOR_VERSION < 1 || _SHMEM_MINOR_VERSION < 0 || sizeof(_SHMEM_VENDOR_STRING) > "
                                     "_SHMEM_MAX_NAME_LEN + 1", "the version"))
    yield Program("hello", "    printf(\"Hello from PE %d of %d\\n\", me, npes);\n" + check("me < 0 || me >= npes"))
    yield Program("started_twice", "    start_pes(0);\n    start_pes(npes);\n" + check("me != _my_pe() || npes != _num_pes()"))


# ---- Small applications.

def applications():
    yield Program("ring_shift", "    int i;\n    value@ = me;\n    for (i = 0; i < npes; i++) {\n        shmem_barrier_all();\n"
                  "        next@ = -1;\n        shmem_barrier_all();\n        shmem_int_p(&next@, value@, (me + 1) % npes);\n"
                  "        shmem_barrier_all();\n        value@ = next@;\n    }\n" + check("value@ != me"),
                  "int value@, next@;\n")
    yield Program("pi_by_integration", "    int i, steps = 1000;\n    double h = 1.0 / steps, sum = 0.0;\n" +
                  FILL_SYNC.format(size="_SHMEM_REDUCE_SYNC_SIZE") +
                  "    for (i = me; i < steps; i += npes) sum += 4.0 / (1.0 + (i + 0.5) * h * (i + 0.5) * h);\n"
                  "    part@ = sum * h;\n    shmem_barrier_all();\n"
                  "    shmem_double_sum_to_all(&pi@, &part@, 1, 0, 0, npes, pWrk@, pSync@);\n" +
                  check("pi@ < 3.14159 || pi@ > 3.14160", "pi"),
                  "long pSync@[_SHMEM_REDUCE_SYNC_SIZE];\ndouble part@, pi@;\n" + work("double", 1))
    yield Program("heat_1d", "    int i, step;\n    for (i = 0; i < 12; i++) old@[i] = me == 0 && i == 0 ? 100.0 : 0.0;\n"
                  "    shmem_barrier_all();\n    for (step = 0; step < 20; step++) {\n"
                  "        if (me > 0) shmem_double_put(&old@[11], &old@[1], 1, me - 1);\n"
                  "        if (me < npes - 1) shmem_double_put(&old@[0], &old@[10], 1, me + 1);\n        shmem_barrier_all();\n"
                  "        for (i = 1; i < 11; i++) fresh@[i] = 0.5 * (old@[i - 1] + old@[i + 1]);\n"
                  "        for (i = 1; i < 11; i++) old@[i] = fresh@[i];\n        shmem_barrier_all();\n    }\n" +
                  check("old@[1] < 0.0 || old@[1] > 100.0 || (me == 0 && old@[1] < 50.0)", "the heat"),
                  "double old@[12], fresh@[12];\n")
    yield Program("matrix_times_vector", "    int i, j;\n" + FILL_SYNC.format(size="_SHMEM_COLLECT_SYNC_SIZE") +
                  "    for (i = 0; i < 4; i++) mine@[i] = 4 * me + i;\n    shmem_barrier_all();\n"
                  "    shmem_fcollect64(all@, mine@, 4, 0, 0, npes, pSync@);\n    for (i = 0; i < 4; i++) {\n        long sum = 0;\n"
                  "        for (j = 0; j < 4 * npes; j++) sum += (4 * me + i + j) * all@[j];\n    " +
                  check("sum != (4 * me + i) * (2L * npes * (4 * npes - 1)) + (4L * npes - 1) * (4 * npes) * (8 * npes - 1) / 6")
                  + "    }\n", "long pSync@[_SHMEM_COLLECT_SYNC_SIZE];\nlong mine@[4], all@[256];\n")
    yield Program("prefix_sum_by_chain", "    long before = 0;\n    if (me > 0) { shmem_wait(&sum@, -1); before = sum@; }\n"
                  "    if (me < npes - 1) shmem_long_p(&sum@, before + me, me + 1);\n" +
                  check("before != (long)me * (me - 1) / 2"), "long sum@ = -1;\n")
    yield Program("odd_even_sort", "    int phase;\n    key@ = npes - me;\n    for (phase = 0; phase < npes; phase++) {\n"
                  "        int partner = phase % 2 == me % 2 ? me + 1 : me - 1, theirs;\n        shmem_barrier_all();\n"
                  "        theirs = partner >= 0 && partner < npes ? shmem_int_g(&key@, partner) : key@;\n"
                  "        shmem_barrier_all();\n"
                  "        if (partner > me ? theirs < key@ : theirs > key@) key@ = theirs;\n    }\n" + check("key@ != me + 1"),
                  "int key@;\n")
    yield Program("histogram", "    int i, sum = 0;\n    for (i = 0; i < 100; i++) shmem_int_inc(&bins@[(i * 7 + me) % 10], 0);\n"
                  "    shmem_barrier_all();\n    for (i = 0; i < 10; i++) sum += bins@[i];\n    if (me == 0)\n    " +
                  check("sum != 100 * npes || bins@[3] != 10 * npes", "the histogram"), "int bins@[10];\n")
    yield Program("transpose", "    int i;\n    for (i = 0; i < npes; i++) row@[i] = 64 * me + i;\n    shmem_barrier_all();\n"
                  "    for (i = 0; i < npes; i++) shmem_long_put(&column@[me], &row@[i], 1, i);\n    shmem_barrier_all();\n"
                  "    for (i = 0; i < npes; i++)\n    " + check("column@[i] != 64 * i + me"), "long row@[64], column@[64];\n")
    yield Program("ping_pong", "    int i, partner = me ^ 1;\n    for (i = 1; i <= 30 && partner < npes; i++) {\n"
                  "        if (me % 2 == 0) {\n            shmem_int_p(&ball@, i, partner);\n"
                  "            shmem_int_wait_until(&ball@, _SHMEM_CMP_EQ, i);\n        } else {\n"
                  "            shmem_int_wait_until(&ball@, _SHMEM_CMP_EQ, i);\n            shmem_int_p(&ball@, i, partner);\n"
                  "        }\n    }\n" + check("ball@ != 30 && partner < npes"), "int ball@ = 0;\n")
    yield Program("token", "    int round;\n    for (round = 1; round <= 3; round++) {\n"
                  "        if (me != 0 || round > 1) shmem_long_wait_until(&token@, _SHMEM_CMP_GE, me == 0 ? round - 1 : round);\n"
                  "        shmem_long_p(&token@, round, (me + 1) % npes);\n    }\n"
                  "    if (me == 0) shmem_long_wait_until(&token@, _SHMEM_CMP_EQ, 3);\n" + check("token@ != 3"),
                  "long token@ = 0;\n")
    yield Program("work_queue", "    int task, mine = 0;\n" + FILL_SYNC.format(size="_SHMEM_REDUCE_SYNC_SIZE").replace(
                  "for (i", "int i;\n    for (i") + "    while ((task = shmem_int_finc(&ticket@, 0)) < 40) mine += task;\n"
                  "    done@ = mine;\n    shmem_barrier_all();\n"
                  "    shmem_int_sum_to_all(&total@, &done@, 1, 0, 0, npes, pWrk@, pSync@);\n" + check("total@ != 780"),
                  "long pSync@[_SHMEM_REDUCE_SYNC_SIZE];\nint ticket@ = 0, done@, total@;\n" + work("int", 1))
    yield Program("dot_product", "    int i;\n" + FILL_SYNC.format(size="_SHMEM_REDUCE_SYNC_SIZE") +
                  "    dot@ = 0.0f;\n    for (i = 0; i < 16; i++) dot@ += (float)(me + 1) * (float)i;\n    shmem_barrier_all();\n"
                  "    shmem_float_sum_to_all(&all@, &dot@, 1, 0, 0, npes, pWrk@, pSync@);\n" +
                  check("all@ != 60.0f * npes * (npes + 1)"),
                  "long pSync@[_SHMEM_REDUCE_SYNC_SIZE];\nfloat dot@, all@;\n" + work("float", 1))
    yield Program("tree_broadcast", "    int distance;\n    if (me == 0) value@ = 4711;\n    else shmem_long_wait(&value@, 0);\n"
                  "    for (distance = 1; distance < npes; distance *= 2)\n"
                  "        if (me < distance && me + distance < npes) shmem_long_p(&value@, value@, me + distance);\n" +
                  check("value@ != 4711"), "long value@ = 0;\n")
    yield Program("gather_to_zero", "    int i;\n    shmem_int_p(&all@[me], me * me, 0);\n    shmem_barrier_all();\n"
                  "    for (i = 0; i < npes && me == 0; i++)\n    " + check("all@[i] != i * i"), "int all@[64];\n")
    yield Program("reverse_array", "    int i;\n    for (i = 0; i < 8; i++) mine@[i] = 8 * me + i;\n    shmem_barrier_all();\n"
                  "    for (i = 0; i < 8; i++) shmem_int_p(&back@[7 - i], mine@[i], npes - 1 - me);\n    shmem_barrier_all();\n"
                  "    for (i = 0; i < 8; i++)\n    " + check("back@[i] != 8 * npes - 1 - (8 * me + i)"),
                  "int mine@[8], back@[8];\n")
    yield Program("max_by_cswap", "    long seen = shmem_long_g(&max@, 0), value = (me * 37) % 101;\n    while (value > seen) {\n"
                  "        long old = shmem_long_cswap(&max@, seen, value, 0);\n        if (old == seen) break;\n        seen = old;\n"
                  "    }\n    shmem_barrier_all();\n    if (me == 0) {\n        int pe;\n        for (pe = 0; pe < npes; pe++)\n        " +
                  check("max@ < (pe * 37) % 101") + "    }\n", "long max@ = -1;\n")
    yield Program("two_barriers_in_turns", "    int i;\n    for (i = 0; i < _SHMEM_BARRIER_SYNC_SIZE; i++)\n"
                  "        pSync@[0][i] = pSync@[1][i] = _SHMEM_SYNC_VALUE;\n    shmem_barrier_all();\n"
                  "    for (i = 0; i < 40; i++) {\n        shmem_int_inc(&count@, (me + 1) % npes);\n"
                  "        shmem_barrier(0, 0, npes, pSync@[i % 2]);\n    }\n" + check("count@ != 40"),
                  "long pSync@[2][_SHMEM_BARRIER_SYNC_SIZE];\nint count@ = 0;\n")
    yield Program("strings", "    if (me == 0) {\n        int pe;\n        strcpy(text@, \"twenty-five years\");\n"
                  "        for (pe = 1; pe < npes; pe++) shmem_putmem(text@, text@, sizeof(text@), pe);\n    }\n"
                  "    shmem_barrier_all();\n" + check("strcmp(text@, \"twenty-five years\") != 0"), "char text@[32];\n")
    yield Program("structures", "    struct point@ mine, got;\n    mine.x = me; mine.y = 2.5 * me;\n    mine.name[0] = (char)('a' + me);\n"
                  "    here@ = mine;\n    shmem_barrier_all();\n    shmem_getmem(&got, &here@, sizeof(got), (me + 1) % npes);\n" +
                  check("got.x != (me + 1) % npes || got.y != 2.5 * got.x || got.name[0] != 'a' + got.x"),
                  "struct point@ { int x; double y; char name[6]; };\nstruct point@ here@;\n")
    for size, kind in (("32", "int"), ("64", "long")):
        yield Program(f"broadcast{size}_from_each", "    int i, root;\n"
                      "    for (i = 0; i < _SHMEM_BCAST_SYNC_SIZE; i++) pSync@[0][i] = pSync@[1][i] = _SHMEM_SYNC_VALUE;\n"
                      "    shmem_barrier_all();\n    for (root = 0; root < npes; root++) {\n        word@ = me + 40;\n"
                      "        copy@ = word@;\n        shmem_barrier_all();\n"
                      f"        shmem_broadcast{size}(&copy@, &word@, 1, root, 0, 0, npes, pSync@[root % 2]);\n    " +
                      check("copy@ != root + 40") + "        shmem_barrier_all();\n    }\n",
                      f"long pSync@[2][_SHMEM_BCAST_SYNC_SIZE];\n{kind} word@, copy@;\n")
    for name in RMA[1:]:
        kind = c_type(name)
        yield Program(f"{name}_there_and_back", f"    int i;\n    {kind} back[5];\n"
                      f"    for (i = 0; i < 5; i++) here@[i] = ({kind})(10 * me + i);\n    shmem_barrier_all();\n"
                      f"    shmem_{name}_put(there@, here@, 5, (me + 1) % npes);\n    shmem_quiet();\n"
                      f"    shmem_{name}_get(back, there@, 5, (me + 1) % npes);\n    for (i = 0; i < 5; i++)\n    " +
                      check("back[i] != here@[i]", "an element"), f"{kind} here@[5], there@[5];\n")
    for name in STANDARD:
        kind = c_type(name)
        yield Program(f"{name}_data_then_flag", "    int i;\n    if (me == 0) {\n        int pe;\n"
                      "        for (i = 0; i < 30; i++) data@[i] = i * i;\n        for (pe = 1; pe < npes; pe++) {\n"
                      f"            shmem_{name}_put(data@, data@, 30, pe);\n            shmem_fence();\n"
                      f"            shmem_{name}_p(&flag@, 1, pe);\n        }}\n    }} else {{\n"
                      f"        shmem_{name}_wait_until(&flag@, _SHMEM_CMP_NE, 0);\n        for (i = 0; i < 30; i++)\n        " +
                      check("data@[i] != i * i", "an element") + "    }\n", f"{kind} data@[30];\n{kind} flag@ = 0;\n")
    yield Program("shift_by_iget", "    int i;\n    for (i = 0; i < 10; i++) here@[i] = 10 * me + i;\n    shmem_barrier_all();\n"
                  "    shmem_int_iget(odd@, &here@[1], 1, 2, 5, (me + 1) % npes);\n    for (i = 0; i < 5; i++)\n    " +
                  check("odd@[i] != 10 * ((me + 1) % npes) + 2 * i + 1", "an element"), "int here@[10], odd@[5];\n")
    yield Program("fetch_add_places", "    int at = shmem_int_fadd(&next@, 2, 0);\n    shmem_int_p(&slots@[at], me + 1, 0);\n"
                  "    shmem_int_p(&slots@[at + 1], me + 1, 0);\n    shmem_barrier_all();\n    if (me == 0) {\n        int i;\n"
                  "        for (i = 0; i < 2 * npes; i += 2)\n        " +
                  check("slots@[i] < 1 || slots@[i] > npes || slots@[i] != slots@[i + 1]", "a slot") + "    }\n",
                  "int next@ = 0;\nint slots@[128];\n")
    yield Program("large_put", "    long i;\n    long *from = (long *)shmalloc(100000 * sizeof(long));\n"
                  "    long *to = (long *)shmalloc(100000 * sizeof(long));\n    for (i = 0; i < 100000; i++) from[i] = i * (me + 1);\n"
                  "    shmem_barrier_all();\n    shmem_long_put(to, from, 100000, (me + 1) % npes);\n    shmem_barrier_all();\n" +
                  check("to[99999] != 99999L * ((me + npes - 1) % npes + 1) || to[1] != (me + npes - 1) % npes + 1") +
                  "    shfree(to);\n    shfree(from);\n")


FAMILIES = [puts_and_gets, single_elements, strided, atomics, waits, reductions, reductions_of_sets, movers, barriers, memory, locks, queries,
            applications]

# Ways to begin and to end, in turns of different lengths, so that all meet. FALL_OFF: the end of main without a word.
FALL_OFF = "if (errors) exit(1);"
STARTS = [("start_pes(0);", True), ("start_pes(0);", True), ("start_pes(2);", True), ("shmem_init();", False)]
ENDS = ["return errors;", FALL_OFF, "exit(errors);", "shmem_barrier_all();\n    return errors;",
        "shmem_finalize();\n    return errors;"]
HEADERS = ["shmem.h", "mpp/shmem.h", "shmem.h"]
NAMES = [("_my_pe()", "_num_pes()"), ("shmem_my_pe()", "shmem_n_pes()")]


def programs() -> list[Program]:
    """All of them, in the order of their families; distinct by name."""
    written = []
    for number, program in enumerate(each for family in FAMILIES for each in family()):
        start, implicit = STARTS[number % len(STARTS)]
        me, npes = NAMES[number // 2 % len(NAMES)]
        end = ENDS[number % len(ENDS)] if implicit else ENDS[-1]
        written.append(replace(program, header=HEADERS[number % len(HEADERS)], start=start, me=me, npes=npes, end=end,
                               language="c++" if number % 6 == 5 and not program.c_only else "c"))
    return written

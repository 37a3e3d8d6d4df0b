"""The rows of collectives: as calls, by all threads of a PE (one here), and posted under a request."""

from __future__ import annotations

from rows import TYPES, TYPES_OF, Part, Way, count, expect, value

# Element k of PE j in reductions is 1 or 2; what all of them give, in integers, as an expression of k.
REDUCTIONS = {
    "sum": "sum([(given(j, k), j = 0, n - 1)])", "prod": "product([(given(j, k), j = 0, n - 1)])",
    "max": "maxval([(given(j, k), j = 0, n - 1)])", "min": "minval([(given(j, k), j = 0, n - 1)])",
    "and": "iall([(given(j, k), j = 0, n - 1)])", "or": "iany([(given(j, k), j = 0, n - 1)])",
    "xor": "iparity([(given(j, k), j = 0, n - 1)])",
}
SCANS = {"inscan": "sum([(given(j, k), j = 0, me)])", "exscan": "sum([(given(j, k), j = 0, me - 1)])"}
MOVEMENTS = ["broadcast", "collect", "fcollect", "alltoall", "alltoalls"]
STEPS = "2_c_ptrdiff_t, 1_c_ptrdiff_t, "


def call(name: str, way: Way, arguments: str) -> list[str]:
    lines = [f"ierr = {name}({arguments}{way.tail})", expect("ierr == 0", name)]
    return [*lines, *([way.ended] if way.ended else [])]


def moved(operation: str, word: str) -> tuple[str, str, str]:
    """Arguments behind dest and source, what of d is looked at, and its values. Element k of PE j is k + 2 * j."""
    each = "k + 2 * j"
    if operation == "broadcast":
        return f"{count(5)}, 0", "d(1:5)", f"[({value(word, 'k')}, k = 1, 5)]"
    if operation in ("collect", "fcollect"):
        return count(2), "d(1:2 * n)", f"[(({value(word, each)}, k = 1, 2), j = 0, n - 1)]"
    mine = f"[({value(word, 'me + 1 + 2 * j')}, j = 0, n - 1)]"
    if operation == "alltoall":
        return count(1), "d(1:n)", mine
    return STEPS + count(1), "d(1:2 * n - 1:2)", mine


def movement_lines(word: str, way: Way) -> list[str]:
    lines = [f"s = [({value(word, 'k + 2 * me')}, k = 1, 16)]"]
    for operation in MOVEMENTS:
        if not way.has(word, operation):
            continue
        more, where, values = moved(operation, word)
        for name, _ in way.names(word, operation, False):
            lines += [f"d = {value(word, '0')}", "call shmem_sync_all()",
                      *call(name, way, f"SHMEM_TEAM_WORLD, d, s, {more}"), expect(f"all({where} == {values})", name),
                      "call shmem_sync_all()"]
    return lines


def reduction_lines(word: str, way: Way) -> list[str]:
    lines = [f"s = [({value(word, 'given(me, k)')}, k = 1, 16)]"]
    for operation, total in [*[(f"{op}_reduce", total) for op, total in REDUCTIONS.items()],
                             *[(f"sum_{op}", total) for op, total in SCANS.items()]]:
        if not way.has(word, operation):
            continue
        for name, _ in way.names(word, operation, False):
            if word == "char" and name.split("_")[1] != "char":
                continue  # the generics do not reduce characters
            # gfortran 12 computes an array of achar(sum(...)) wrongly.
            right = f"d == [({value(word, total)}, k = 1, 16)]"
            if word == "char":
                right = f"iachar(d) == [({total}, k = 1, 16)]"
            lines += ["call shmem_sync_all()", *call(name, way, f"SHMEM_TEAM_WORLD, d, s, {count(16)}"),
                      expect(f"all({right})", name)]
    return lines


def bytes_lines(way: Way) -> list[str]:
    lines = ["s = [(int(k + 2 * me, c_int8_t), k = 1, 16)]"]
    for operation in MOVEMENTS:
        more, where, values = moved(operation, "int8")
        name = f"{way.start}_{operation}mem{way.suffix}"
        lines += ["d = 0", "call shmem_sync_all()", *call(name, way, f"SHMEM_TEAM_WORLD, c_loc(d), c_loc(s), {more}"),
                  expect(f"all({where} == {values})", name), "call shmem_sync_all()"]
    return lines


def collectives(suffixes: list[str]) -> dict[str, Part]:
    ways = [Way(suffix) for suffix in suffixes]
    parts = {word: (TYPES[word], "16", [line for way in ways
                                        for line in (*way.before, *movement_lines(word, way),
                                                     *reduction_lines(word, way), *way.behind)])
             for word in TYPES_OF["shmem_TYPENAME_sum_reduce"]}
    parts["bytes"] = ("integer(c_int8_t)", "16",
                      [line for way in ways for line in (*way.before, *bytes_lines(way), *way.behind)])
    return parts

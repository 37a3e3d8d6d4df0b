"""The rows of atomics and of waits. The PE on the left alone changes an element here, so that each value is known."""

from __future__ import annotations

from collections.abc import Iterator

from rows import TYPES, TYPES_OF, Part, Way, count, expect, sequence, value

# operation, operands, the element after it; it is 12 before
CHANGES = [("set", [9], 9), ("inc", [], 13), ("add", [5], 17), ("and", [6], 4), ("or", [6], 14), ("xor", [6], 10)]
FETCHES = [("fetch", [], 12), ("swap", [9], 9), ("compare_swap", [12, 7], 7), ("fetch_inc", [], 13),
           ("fetch_add", [5], 17), ("fetch_and", [6], 4), ("fetch_or", [6], 14), ("fetch_xor", [6], 10)]


def changes(word: str, way: Way) -> Iterator[str]:
    """Atomics without a result. d(2) of the PE on the right; the others stay as they are."""
    for operation, operands, after in CHANGES:
        if not way.has(word, f"atomic_{operation}"):
            continue
        arguments = ", ".join(["d(2)", *[value(word, str(one)) for one in operands], "right"])
        for name, lead in way.names(word, f"atomic_{operation}", True):
            yield from [f"d = {value(word, '12')}", "call shmem_barrier_all()",
                        f"call {name}({lead}{arguments}{way.tail})", *([way.ended] if way.ended else []),
                        "call shmem_ctx_quiet(ctx)", "call shmem_barrier_all()",
                        expect(f"d(2) == {value(word, str(after))} .and. d(1) == {value(word, '12')}", name)]


def fetches(word: str, way: Way) -> Iterator[str]:
    for operation, operands, after in FETCHES:
        if not way.has(word, f"atomic_{operation}"):
            continue
        arguments = ", ".join(["d(2)", *[value(word, str(one)) for one in operands], "right"])
        for name, lead in way.names(word, f"atomic_{operation}", True):
            yield from [f"d = {value(word, '12')}", "call shmem_barrier_all()"]
            if way.suffix:
                yield from ["fetched = 0", f"call {name}({lead}fetched, {arguments}{way.tail})",
                            *([way.ended] if way.ended else []), "call shmem_ctx_quiet(ctx)"]
            else:
                yield f"fetched = {name}({lead}{arguments})"
            yield from ["call shmem_barrier_all()",
                        expect(f"fetched == {value(word, '12')} .and. d(2) == {value(word, str(after))}", name)]


def atomics(suffixes: list[str]) -> dict[str, Part]:
    ways = [Way(suffix) for suffix in suffixes]
    return {word: (TYPES[word], "3", [line for way in ways for rows in (changes, fetches) for line in rows(word, way)])
            for word in TYPES_OF["shmem_TYPENAME_atomic_fetch"]}


def set_all(word: str) -> list[str]:
    """Becomes 1, 2, 3 on the right, in any order."""
    return ["d = 0", "call shmem_barrier_all()",
            *[f"call shmem_{word}_p(d({place}), {value(word, str(place))}, right)" for place in (2, 1, 3)]]


def wait_body(word: str) -> list[str]:
    lines = [f"s = {sequence('k', word, 3)}"]
    way = Way("")
    zero = value(word, "0")
    for name, _ in way.names(word, "wait_until", False):
        lines += [*set_all(word), f"call {name}(d(2), SHMEM_CMP_EQ, {value(word, '2')})",
                  expect(f"d(2) == {value(word, '2')}", name), "call shmem_barrier_all()"]
    for name, _ in way.names(word, "test", False):
        lines += [expect(f"{name}(d(3), SHMEM_CMP_GE, {value(word, '3')}) == 1", name),
                  expect(f"{name}(d(3), SHMEM_CMP_NE, {value(word, '3')}) == 0", name)]
    # Of all, any and some: what holds is known when all have come. `status` leaves the first one out, or is left out.
    for suffix, compared in [("", f"SHMEM_CMP_GT, {zero}"), ("_vector", "SHMEM_CMP_EQ, s")]:
        by_name = "cmp = SHMEM_CMP_GT, cmp_value = " + zero if not suffix else "cmp = SHMEM_CMP_EQ, cmp_values = s"
        for verb, is_wait in [("wait_until", True), ("test", False)]:
            for name, _ in way.names(word, f"{verb}_all{suffix}", False):
                lines += [*set_all(word)] if is_wait else []
                lines += [f"call {name}(d, {count(3)}, {by_name})" if is_wait else
                          expect(f"{name}(d, {count(3)}, {by_name}) == 1", name),
                          expect(f"all(d == {sequence('k', word, 3)})", name), "call shmem_barrier_all()"]
            for name, _ in way.names(word, f"{verb}_any{suffix}", False):
                lines += [f"found = {name}(d, {count(3)}, [1, 0, 1], {compared})",
                          expect("found == 1", name), f"found = {name}(d, {count(3)}, {by_name})",
                          expect("found >= 0 .and. found < 3", name)]
            for name, _ in way.names(word, f"{verb}_some{suffix}", False):
                lines += ["indices = -1", f"found = {name}(d, {count(3)}, indices, [1, 0, 0], {compared})",
                          expect("found == 2 .and. sum(indices(1:2)) == 3", name),
                          f"found = {name}(d, {count(3)}, indices, {by_name})", expect("found == 3", name)]
    return lines


def waits(_: list[str]) -> dict[str, Part]:
    return {word: (TYPES[word], "3", wait_body(word)) for word in TYPES_OF["shmem_TYPENAME_wait_until"]}

"""The rows of put and get: rma, and rma_nbe under requests."""

from __future__ import annotations

from collections.abc import Iterator

from rows import TYPES, TYPES_OF, N, Part, Way, count, expect, sequence, settled, value

BITS = [8, 16, 32, 64, 128]


def puts(word: str, way: Way) -> Iterator[str]:
    zero = f"d = {value(word, '0')}"
    # The source of what is not complete may not be an expression: s keeps its values.
    cases = [("put", f"d, s, {count(N)}, right", f"all(d == {sequence('k + left', word)})"),
             ("iput", "d, s, 2_c_ptrdiff_t, 3_c_ptrdiff_t, 8_c_size_t, right",
              f"all(d(1:15:2) == {sequence('3 * k - 2 + left', word, 8)}) .and. all(d(2:14:2) == {value(word, '0')})"),
             ("ibput", "d, s, 4_c_ptrdiff_t, 3_c_ptrdiff_t, 2_c_size_t, 3_c_size_t, right",
              f"all(d(1:10) == {blocks(word, 'left', 4, 3)})")]
    for operation, arguments, condition in cases:
        if way.has(word, operation):
            for name, lead in way.names(word, operation, True):
                yield from [zero, "call shmem_barrier_all()", f"call {name}({lead}{arguments}{way.tail})",
                            *settled(way), expect(condition, name)]
    signal = Way(f"_signal{way.suffix}")
    signal.start, signal.tail, signal.ended = way.start, way.tail, way.ended
    if signal.has(word, "put"):
        for name, lead in signal.names(word, "put", True):
            yield from [zero, "sig = 0", "call shmem_barrier_all()",
                        f"call {name}({lead}d, s, {count(N)}, sig, 5_c_int64_t, SHMEM_SIGNAL_OP_ADD, right{way.tail})",
                        *([way.ended] if way.ended else []), "fetched_signal = shmem_signal_wait_until("
                        "sig, SHMEM_CMP_EQ, 5_c_int64_t)",
                        expect(f"fetched_signal == 5 .and. all(d == {sequence('k + left', word)})", name),
                        "call shmem_ctx_quiet(ctx)"]


def blocks(word: str, pe: str, dest_step: int, source_step: int) -> str:
    """Three blocks of two elements, with zeros between them."""
    values = ["0"] * (2 * dest_step + 2)
    for block in range(3):
        for place in range(2):
            values[block * dest_step + place] = f"{block * source_step + place + 1} + {pe}"
    return "[" + ", ".join(value(word, one) for one in values) + "]"


def gets(word: str, way: Way) -> Iterator[str]:
    cases = [("get", f"d, s, {count(N)}, right", f"all(d == {sequence('k + right', word)})"),
             ("iget", "d, s, 2_c_ptrdiff_t, 3_c_ptrdiff_t, 8_c_size_t, right",
              f"all(d(1:15:2) == {sequence('3 * k - 2 + right', word, 8)}) .and. all(d(2:14:2) == {value(word, '0')})"),
             ("ibget", "d, s, 4_c_ptrdiff_t, 3_c_ptrdiff_t, 2_c_size_t, 3_c_size_t, right",
              f"all(d(1:10) == {blocks(word, 'right', 4, 3)})")]
    for operation, arguments, condition in cases:
        if way.has(word, operation):
            for name, lead in way.names(word, operation, True):
                yield from [f"d = {value(word, '0')}", f"call {name}({lead}{arguments}{way.tail})",
                            *([way.ended] if way.ended else []), "call shmem_ctx_quiet(ctx)", expect(condition, name)]


def single(word: str, way: Way) -> Iterator[str]:
    """One value: p and g."""
    if not way.has(word, "p"):
        return
    for name, lead in way.names(word, "p", True):
        # A character is passed by its number (docs/user/fortran.md), and not in the generic.
        passed = "int(40 + me, c_signed_char)" if word == "char" else value(word, "40 + me")
        if word == "char" and "_char_" not in name:
            continue
        yield from ["call shmem_barrier_all()", f"call {name}({lead}d(3), {passed}, right)", *settled(way),
                    expect(f"d(3) == {value(word, '40 + left')}", name)]
    for name, lead in way.names(word, "g", True):
        yield expect(f"{name}({lead}s(4), right) == {value(word, '4 + right')}", name)


def rma_body(word: str, ways: list[Way]) -> list[str]:
    lines = [f"s = {sequence('k + me', word)}", "call shmem_barrier_all()"]
    for way in ways:
        lines += [*puts(word, way), *gets(word, way), *single(word, way)]
    return lines


def strided_bytes(way: Way, middle: str, lead: str) -> Iterator[str]:
    """Two elements at distances of two, or two blocks of two elements at distances of three."""
    for operation, pe in [("iput", "left"), ("iget", "right"), ("ibput", "left"), ("ibget", "right")]:
        step, block = (3, 2) if "b" in operation else (2, 1)
        lengths = f"{count(2)}, {count(2)}" if block == 2 else count(2)
        steps = f"{step}_c_ptrdiff_t, {step}_c_ptrdiff_t"
        for bits in BITS:
            name, size = f"shmem{middle}_{operation}{bits}", bits // 8
            first, gap, second = f"1:{block * size}", f"{block * size + 1}:{step * size}", \
                f"{step * size + 1}:{(step + block) * size}"
            yield from ["d = 0", "call shmem_barrier_all()",
                        f"call {name}({lead}c_loc(d), c_loc(s), {steps}, {lengths}, right)",
                        *settled(way),
                        expect(f"all(d({first}) == s({first}) - me + {pe}) .and. all(d({gap}) == 0) .and. "
                               f"all(d({second}) == s({second}) - me + {pe})", name)]


def sized_body(ways: list[Way]) -> list[str]:
    """putSIZE and its kin, and those of bytes: addresses, as in C."""
    lines = ["s = [(int(mod(k, 100) + me, c_int8_t), k = 1, 128)]", "call shmem_barrier_all()"]
    for way in ways:
        for lead, middle in [("", ""), ("ctx, ", "_ctx")]:
            for word, bits in [("mem", 8), *[(str(bits), bits) for bits in BITS]]:
                for operation, signal, pe in [("put", "", "left"), ("put", "_signal", "left"), ("get", "", "right")]:
                    name = f"{way.start}{middle}_{operation}{word}{signal}{way.suffix}"
                    more = "sig, 5_c_int64_t, SHMEM_SIGNAL_OP_SET, " if signal else ""
                    lines += ["d = 0", "call shmem_barrier_all()",
                              f"call {name}({lead}c_loc(d), c_loc(s), {count(8)}, {more}right{way.tail})",
                              *settled(way),
                              expect(f"all(d(1:{bits}) == s(1:{bits}) - me + {pe}) .and. all(d({bits + 1}:) == 0)",
                                     name)]
            if not way.suffix:
                lines += strided_bytes(way, middle, lead)
    return lines


def complex_body(word: str, ways: list[Way]) -> list[str]:
    """Complex numbers, by the generic names alone."""
    lines = [f"s = {sequence('k + me', word)}", "call shmem_barrier_all()"]
    for way in ways:
        for lead in ("", "ctx, "):
            put, get = (f"{way.start}_{operation}{way.suffix}" for operation in ("put", "get"))
            lines += [f"d = {value(word, '0')}", "call shmem_barrier_all()",
                      f"call {put}({lead}d, s, {count(N)}, right{way.tail})", *settled(way),
                      expect(f"all(d == {sequence('k + left', word)})", put),
                      f"call {get}({lead}d, s, {count(N)}, right{way.tail})", *settled(way),
                      expect(f"all(d == {sequence('k + right', word)})", get)]
            if not way.suffix:
                lines += [f"d = {value(word, '0')}", "call shmem_barrier_all()",
                          f"call shmem_iput({lead}d, s, 2_c_ptrdiff_t, 3_c_ptrdiff_t, 8_c_size_t, right)",
                          *settled(way),
                          expect(f"all(d(1:15:2) == {sequence('3 * k - 2 + left', word, 8)})", "shmem_iput")]
    return lines


def rma(suffixes: list[str]) -> dict[str, Part]:
    ways = [Way(suffix) for suffix in suffixes]
    words = TYPES_OF["shmem_TYPENAME_put"]
    parts = {word: (TYPES[word], str(N), rma_body(word, ways)) for word in words}
    parts |= {word: (TYPES[word], str(N), complex_body(word, ways)) for word in ("complexf", "complexd")}
    parts["bytes"] = ("integer(c_int8_t)", "128", sized_body(ways))
    return parts

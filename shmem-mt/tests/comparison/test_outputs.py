"""A comparison whose verdicts are given, to the letter, in each format: what is written is what was decided."""

import json
import locale
import math
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from conftest import make_point
from shmem_mt.comparison.changes import Pair
from shmem_mt.comparison.compare import Comparison
from shmem_mt.comparison.outputs import write
from shmem_mt.comparison.runs import Row
from shmem_mt.errors import UserError


def pair_of(verdict, starts, ratios=None, seen=None, q_worse=1.0):
    """`ratios`: by how much the second side is better, and the ends of its interval."""
    sides = [{0: dict.fromkeys(range(count), 0.0)} for count in starts]
    told = dict(zip(("change", "low", "high"), map(math.log, ratios or (1, 1, 1))))
    return Pair(None, "bandwidth", *sides, verdict=verdict, seen=seen, q_worse=q_worse, **told)


@pytest.fixture
def found():
    """A row for each verdict there is, and three kinds of means."""
    rows = [
        (dict(size_bytes=8), "", pair_of("worse", (8, 9), (0.5, 0.25, 0.75), 0.075, 0.001), [2e6, 1e6]),
        (dict(size_bytes=16), "", pair_of("better", (8, 8), (2.0, 1.5, 4.0), 0.05, 0.9), [1e6, 2e6]),
        (dict(size_bytes=32), "", pair_of("no different", (8, 8), (1.0, 0.99, 1.01), 0.02, 0.8), [1e6, 1e6]),
        (dict(size_bytes=64), "", pair_of("cannot tell", (6, 7), (1.0, 0.125, 8.0), 10.0, 0.5), [1e6, 1e6]),
        (dict(size_bytes=128), "", pair_of("too few starts", (5, 8)), [1e6, 1e6]),
        (dict(size_bytes=256), "", None, [4e6, 1e6]),
        (dict(label="B|C"), "invalid", None, [1e6, 3e6]),
        (dict(op="put"), "invalid before", None, [1e6, 3e6]),
        (dict(op="get"), "not judged", None, [1e6, 3e6]),
        (dict(op="g"), "unchecked", None, [1e6, 3e6]),
        (dict(op="atomic_add"), "missing", None, []),
        (dict(op="atomic_inc"), "new", None, []),
    ]
    means = [
        pair_of("worse", (16, 16), (0.5, 0.25, 0.75), 0.03, 0.002),
        pair_of("too few starts", (5, 5)),
        pair_of("no different", (16, 16), (1.0, 0.99, 1.01), 0.01, 0.7),
    ]
    rows = [
        Row(make_point(benchmark="bandwidth", fabric="on-node", **said), verdict, pair, medians)
        for said, verdict, pair, medians in rows
    ]
    unlike = ["machine, cpu: [red] and [blue]", "compiler, A: 7 and 8"]
    return Comparison(rows, means, unlike, 0.02, 0.2, ["beside two other work took 6 % of the CPUs' time"])


def written(found, tmp_path, fail_on=()):
    paths = {name: tmp_path / f"told.{name}" for name in ("json", "markdown", "junit")}
    write(found, 4, SimpleNamespace(**{name: str(path) for name, path in paths.items()}, fail_on=fail_on))
    return {name: path.read_text(encoding="utf-8") for name, path in paths.items()}


MARKDOWN = """\
| point | metric | first | second | starts | second is better by | would see | verdict |
|---|---|---|---|---|---|---|---|
| A: bandwidth, p, 8 B, on-node, 2 PEs | rate | 2.00 M/s | 1.00 M/s | 8 and 9 | 0.500× [0.250, 0.750] | 7.5 % | worse |
| A: bandwidth, p, 16 B, on-node, 2 PEs | rate | 1.00 M/s | 2.00 M/s | 8 | 2.00× [1.50, 4.00] | 5 % | better |
| A: bandwidth, p, 32 B, on-node, 2 PEs | rate | 1.00 M/s | 1.00 M/s | 8 | 1.00× [0.990, 1.01] | 2 % | no different |
| A: bandwidth, p, 64 B, on-node, 2 PEs | rate | 1.00 M/s | 1.00 M/s | 6 and 7 | 1.00× [0.125, 8.00] |  | cannot tell |
| A: bandwidth, p, 128 B, on-node, 2 PEs | rate | 1.00 M/s | 1.00 M/s | 5 and 8 |  |  | too few starts |
| A: bandwidth, p, 256 B, on-node, 2 PEs | rate | 4.00 M/s | 1.00 M/s |  |  |  | cannot tell |
| B\\|C: bandwidth, p, 8 B, on-node, 2 PEs | rate | 1.00 M/s | 3.00 M/s |  |  |  | invalid |
| A: bandwidth, put, 8 B, on-node, 2 PEs | rate | 1.00 M/s | 3.00 M/s |  |  |  | invalid before |
| A: bandwidth, get, 8 B, on-node, 2 PEs | rate | 1.00 M/s | 3.00 M/s |  |  |  | not judged |
| A: bandwidth, g, 8 B, on-node, 2 PEs | rate | 1.00 M/s | 3.00 M/s |  |  |  | unchecked |
| A: bandwidth, atomic_add, 8 B, on-node, 2 PEs | rate |  |  |  |  |  | missing |
| A: bandwidth, atomic_inc, 8 B, on-node, 2 PEs | rate |  |  |  |  |  | new |
| bandwidth, geometric mean |  |  |  | 16 | 0.500× [0.250, 0.750] | 3 % | worse |
| bandwidth, geometric mean |  |  |  | 5 |  |  | too few starts |
| bandwidth, geometric mean |  |  |  | 16 | 1.00× [0.990, 1.01] | 1 % | no different |
"""
POWER = "half of the points could have shown a change of 6.2 %, with 8 starts a side"
LAST_LINES = [
    "1 better, 2 cannot tell, 1 invalid, 1 invalid before, 1 missing, 1 new, 1 no different, 1 not judged, "
    "1 too few starts, 1 unchecked, 1 worse",
    "not comparable: machine, cpu: [red] and [blue]",
    "not comparable: compiler, A: 7 and 8",
    "cannot tell: beside two other work took 6 % of the CPUs' time",
    POWER,
    "exit status 4, machine, worse, points, unclear",
]


def test_markdown_to_the_letter(found, tmp_path):
    text = written(found, tmp_path)["markdown"]
    assert text == MARKDOWN + "\n" + "".join(f"- {line}\n" for line in LAST_LINES)


def test_the_terminal_shows_the_same_cells(found, tmp_path, capsys):
    """In columns, numbers to the right; where there is no terminal, in lines that are long enough for all of them."""
    written(found, tmp_path)
    lines = [line.replace("\\|", "\0")[2:-2].split(" | ") for line in MARKDOWN.splitlines()]
    del lines[1]
    table = [[cell.replace("\0", "|") for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*table)]
    aligned = [
        "  ".join(cell.ljust(width) if place in (0, 1, 7) else cell.rjust(width) for place, (cell, width) in cells)
        for cells in (enumerate(zip(line, widths)) for line in table)
    ]
    assert capsys.readouterr().out.splitlines() == aligned + LAST_LINES


def test_json_to_the_letter(found, tmp_path):
    text = written(found, tmp_path)["json"]
    assert text.startswith('{\n  "status": 4,\n  "troubles": [\n') and text.endswith("\n}\n")
    numbers = ("starts", "better_by", "interval", "q_worse", "would_see")
    told = [
        ("A", "p", 8, [2e6, 1e6], "worse", [8, 9], 0.5, [0.25, 0.75], 0.001, 0.075),
        ("A", "p", 16, [1e6, 2e6], "better", [8, 8], 2.0, [1.5, 4.0], 0.9, 0.05),
        ("A", "p", 32, [1e6, 1e6], "no different", [8, 8], 1.0, [0.99, 1.01], 0.8, 0.02),
        ("A", "p", 64, [1e6, 1e6], "cannot tell", [6, 7], 1.0, [0.125, 8.0], 0.5, 10.0),
        ("A", "p", 128, [1e6, 1e6], "too few starts", [5, 8]),
        ("A", "p", 256, [4e6, 1e6], "cannot tell"),
        ("B|C", "p", 8, [1e6, 3e6], "invalid"),
        ("A", "put", 8, [1e6, 3e6], "invalid before"),
        ("A", "get", 8, [1e6, 3e6], "not judged"),
        ("A", "g", 8, [1e6, 3e6], "unchecked"),
        ("A", "atomic_add", 8, [], "missing"),
        ("A", "atomic_inc", 8, [], "new"),
    ]
    points = [
        {
            "label": label,
            "benchmark": "bandwidth",
            "metric": "rate",
            "unit": "messages/s",
            "params": make_point(op=op, size_bytes=size, fabric="on-node")["params"],
            "medians": medians,
            "verdict": verdict,
            **dict(zip(numbers, rest)),
        }
        for label, op, size, medians, verdict, *rest in told
    ]
    means = [
        ("worse", [16, 16], 0.5, [0.25, 0.75], 0.002, 0.03),
        ("too few starts", [5, 5]),
        ("no different", [16, 16], 1.0, [0.99, 1.01], 0.7, 0.01),
    ]
    read = json.loads(text)
    for one in (*read["points"], *read["geometric_means"]):
        if "interval" in one:
            one["interval"] = [round(end, 9) for end in one["interval"]]
    assert read == {
        "status": 4,
        "troubles": ["machine", "worse", "points", "unclear"],
        "not_comparable": ["machine, cpu: [red] and [blue]", "compiler, A: 7 and 8"],
        "disturbed": ["beside two other work took 6 % of the CPUs' time"],
        "margin": 0.02,
        "counts": {**{point["verdict"]: 1 for point in points}, "cannot tell": 2},
        "power": POWER,
        "points": points,
        "geometric_means": [
            {"benchmark": "bandwidth", "verdict": verdict, **dict(zip(numbers, rest))} for verdict, *rest in means
        ],
    }


CASES = [
    ("p, 8 B", "failure", "worse", "2.00 M/s, 1.00 M/s, 8 and 9, 0.500× [0.250, 0.750], 7.5 %, worse"),
    ("p, 16 B",),
    ("p, 32 B",),
    ("p, 64 B", "skipped", "cannot tell", "1.00 M/s, 1.00 M/s, 6 and 7, 1.00× [0.125, 8.00], cannot tell"),
    ("p, 128 B", "skipped", "too few starts", "1.00 M/s, 1.00 M/s, 5 and 8, too few starts"),
    ("p, 256 B", "skipped", "cannot tell", "4.00 M/s, 1.00 M/s, cannot tell"),
    ("p, 8 B", "failure", "invalid", "1.00 M/s, 3.00 M/s, invalid"),
    ("put, 8 B", "skipped", "invalid before", "1.00 M/s, 3.00 M/s, invalid before"),
    ("get, 8 B", "skipped", "not judged", "1.00 M/s, 3.00 M/s, not judged"),
    ("g, 8 B", "failure", "unchecked", "1.00 M/s, 3.00 M/s, unchecked"),
    ("atomic_add, 8 B", "failure", "missing", "missing"),
    ("atomic_inc, 8 B", "failure", "new", "new"),
    ("geometric mean", "failure", "worse", "16, 0.500× [0.250, 0.750], 3 %, worse"),
    ("geometric mean", "skipped", "too few starts", "5, too few starts"),
    ("geometric mean",),
]


@pytest.mark.parametrize("fail_on", [(), ("machine", "worse"), ("machine", "unclear")])
def test_junit_to_the_letter(found, tmp_path, fail_on):
    text = written(found, tmp_path, fail_on)["junit"]
    assert text.startswith("<?xml version='1.0' encoding='utf-8'?>\n<testsuite ") and text.endswith("</testsuite>\n")
    suite = ElementTree.fromstring(text.split("\n", 1)[1])
    failures = 6 + len({"machine", "unclear"} & set(fail_on))
    assert (suite.tag, suite.attrib) == (
        "testsuite",
        {"name": "shmem-mt compare", "tests": "17", "failures": str(failures)},
    )
    whole = [
        ("machine, compiler and settings are the same", "machine", "; ".join(found.unlike)),
        ("enough points can be told", "unclear", POWER),
    ]
    wanted = [
        ("shmem-mt.compare", name, *(("failure", trouble, words) if trouble in fail_on else ()))
        for name, trouble, words in whole
    ]
    for place, (name, *says) in enumerate(CASES):
        label = "B|C" if place == 6 else "A"
        said = name if name == "geometric mean" else f"{label}: bandwidth, {name}, on-node, 2 PEs, rate"
        wanted.append(("shmem-mt.bandwidth", said, *says))
    told = []
    for case in suite:
        assert case.tag == "testcase" and case.attrib.keys() == {"classname", "name"} and len(case) <= 1
        told.append((case.get("classname"), case.get("name")))
        for child in case:
            assert child.attrib.keys() == {"message"}
            told[-1] += (child.tag, child.get("message"), child.text)
    assert told == wanted


def test_labels_are_told_where_there_are_two(found, tmp_path):
    found.rows = found.rows[:2]
    lines = written(found, tmp_path)["markdown"].splitlines()
    assert lines[2].startswith("| bandwidth, p, 8 B, on-node, 2 PEs | rate |")
    found.rows[0].point["label"] = "B"
    lines = written(found, tmp_path)["markdown"].splitlines()
    assert [line[:15] for line in lines[2:4]] == ["| B: bandwidth,", "| A: bandwidth,"]


def test_a_label_is_no_markup(found, tmp_path, capsys):
    found.rows[0].point["label"] = "lib[red]"
    written(found, tmp_path)
    assert "lib[red]: " in capsys.readouterr().out


def test_what_would_be_seen_is_told_below_ten_times(found, tmp_path):
    found.rows = found.rows[3:4]
    for seen, told in ((9.5, "| 9.5e+02 % |"), (10.0, "|  |"), (10.5, "|  |")):
        found.rows[0].pair.seen = seen
        found.power = lambda: POWER
        assert f"[0.125, 8.00] {told} cannot tell |" in written(found, tmp_path)["markdown"]


def test_files_are_utf_8_whatever_the_locale_is(found, tmp_path):
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        locale.setlocale(locale.LC_CTYPE, "C")
        texts = written(found, tmp_path)
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
    assert "0.500× [" in texts["markdown"] and "0.500× [" in texts["junit"]


def test_a_file_that_cannot_be_written_is_named(found, tmp_path):
    (tmp_path / "told.json").mkdir()
    with pytest.raises(UserError, match=f"^cannot write {tmp_path}/told.json: Is a directory$"):
        written(found, tmp_path)

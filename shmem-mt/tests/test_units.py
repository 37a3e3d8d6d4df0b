"""Which change of a metric is for the better is known of every metric that there is."""

import re
from pathlib import Path

import pytest
from shmem_mt import sources, units
from shmem_mt.errors import UserError
from shmem_mt.simulation import simulate

# A function that prints a point, and the arguments ahead of its metric.
PRINTER = re.compile(r"\b(\w+)(?: = \[&\])?\(([^()]*)const char\* metric\b")
ARRAY = re.compile(r"const kNames\[\] = \{([^}]*)\}")
LITERAL = re.compile(r'"([^"]*)"')


def arguments_of(text, at):
    """Of the call whose opening bracket is ahead of `at`, as texts."""
    found, depth, quoted, begin = [], 0, False, at
    for place in range(at, len(text)):
        letter = text[place]
        if letter == '"' and text[place - 1] != "\\":
            quoted = not quoted
        elif not quoted and letter in "([{":
            depth += 1
        elif not quoted and (letter == "," or letter in ")]}") and depth == 0:
            found.append(text[begin:place].strip())
            begin = place + 1
            if letter != ",":
                break
        elif not quoted and letter in ")]}":
            depth -= 1
    return found


def printers_of(text):
    """{function: which of its arguments is the metric} of those that a source defines."""
    return {found.group(1): found.group(2).count(",") for found in PRINTER.finditer(text)}


def metrics_of(text, printers):
    """The metrics that a source prints points of. AssertionError where it does not show which."""
    found = set()
    for call in re.finditer(rf"\b({'|'.join(printers)})\(", text):
        arguments, index = arguments_of(text, call.end()), printers[call.group(1)]
        metric = arguments[index] if len(arguments) > index else "metric"
        if metric.split()[-1] == "metric":  # the printer itself, or one calls another
            continue
        arrays = ARRAY.findall(text[: call.start()])
        names = arrays[-1] if arrays and metric.startswith("kNames[") else metric
        assert LITERAL.findall(names), f"{' '.join(arguments)}: no metric that this test can read"
        found |= set(LITERAL.findall(names))
    return found


def test_every_metric_of_the_programs_is_better_one_way_or_not_judged():
    found = set()
    root = Path(sources.root())
    paths = [path for folder in ("programs", "apps") for path in (root / folder).rglob("*.[ch]pp")]
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    common = printers_of(texts[root / "programs" / "common" / "measure.hpp"])
    for name, text in texts.items():
        own = printers_of(text)
        assert own or '"metric"' not in text, f"{name} prints points in a way that this test cannot read"
        found |= metrics_of(text, common | own)
    assert {"rate", "latency", "consumed_rate", "communication", "figure_of_merit", "memory", "switches"} <= found
    assert {metric for metric in found if not is_known(metric)} == set()
    assert {metric for metric, *_ in simulate._METRICS if not is_known(metric)} == set()


def is_known(metric):
    try:
        return units.sense(metric) in (-1, 0, 1)
    except UserError:
        return False


def test_the_test_reads_the_forms_in_which_sources_name_metrics():
    printers = printers_of("void show(Job& job, const std::string& op, const char* metric, const char* unit) {}")
    printers |= printers_of("const auto point = [&](const char* part, const char* metric) {};")
    assert printers == {"show": 2, "point": 1}
    assert metrics_of('show(job, op("a, b"), is ? "one" : "two",\n "s");', printers) == {"one", "two"}
    assert metrics_of('const char* const kNames[] = {"a", "b"};\nshow(j, o, kNames[x], u);', printers) == {"a", "b"}
    assert metrics_of('point("total", "rate"); no_point(); point(other);', printers) == {"rate"}
    with pytest.raises(AssertionError):
        metrics_of("show(job, op, name_of(it), unit);", printers)


def test_each_metric_has_one_sense():
    sets = (units.HIGHER_IS_BETTER, units.LOWER_IS_BETTER, units.NOT_JUDGED)
    assert sum(map(len, sets)) == len(set().union(*sets))
    assert (units.sense("rate"), units.sense("time"), units.sense("poll_interval")) == (1, -1, 0)
    with pytest.raises(UserError, match="the metric 'rat' is none"):
        units.sense("rat")


def test_nothing_has_no_prefix():
    assert units.quantity(0.0, "messages/s") == "0 /s" and units.quantity(0, "bytes") == "0 B"
    assert units.quantity(2e-9, "s") == "2.00 ns"

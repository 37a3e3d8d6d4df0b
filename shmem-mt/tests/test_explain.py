"""`shmem-mt explain`: every benchmark and operation has words, every picture fits a terminal, the page of the docs is
what the code says."""

import pathlib
import re

import pytest
from shmem_mt.catalogue import catalogue, explain
from shmem_mt.catalogue.explanations import EXPLANATIONS
from shmem_mt.catalogue.message_picture import WIDTH, draw

MESSAGES = pathlib.Path(__file__).parents[1] / "docs" / "messages.md"


def test_every_benchmark_and_every_operation_is_explained():
    assert list(EXPLANATIONS) == catalogue.names()
    for benchmark in catalogue.BENCHMARKS:
        told = EXPLANATIONS[benchmark.name]
        assert list(told.ops) == list(benchmark.ops), benchmark.name
        assert len(told.words) > 60 and all(told.ops.values())
        assert any(len(step) == 3 for step in told.steps if not isinstance(step, str)), "no message in the picture"


@pytest.mark.parametrize("name", list(EXPLANATIONS))
def test_a_picture_is_as_wide_as_a_terminal_and_hides_no_bar(name):
    columns, steps = EXPLANATIONS[name].columns, EXPLANATIONS[name].steps
    lines = explain.picture(name)
    assert len(lines) == len(steps) + 3 and max(map(len, lines)) <= 110
    for line, step in zip(lines[2:], steps):
        bars = [WIDTH * place for place in range(len(columns))]
        if isinstance(step, str):
            assert f" {step} " in line and re.match("=.*=$", line)
            continue
        if len(step) == 3:
            low, high = sorted(step[:2])
            bars = [at for at in bars if not WIDTH * low < at < WIDTH * high]
            assert re.search(f"[<-]- {re.escape(step[2])} -[->]", line), line
        assert step[-1] in line and all(line[at] == "|" for at in bars), line


def test_an_arrow_points_to_the_one_that_gets_the_message():
    lines = draw(("A", "B"), ((0, 1, "there"), (1, 0, "back"), (1, "rests"), "both"))
    assert re.fullmatch(r"\|-+ there -+>\|", lines[2]) and re.fullmatch(r"\|<-+ back -+\|", lines[3])
    assert re.fullmatch(r"\| {33}\| rests", lines[4]) and re.fullmatch(r"=+ both =+", lines[5])


def test_the_command(shmem_mt):
    status, stdout, stderr = shmem_mt("explain", "latency", "gups")
    assert status == 0 and stderr == ""
    assert stdout.index("latency: seconds an operation") < stdout.index("gups: random updates")
    for line in (*explain.picture("latency"), *explain.picture("gups")):
        assert line in stdout
    status, stdout, stderr = shmem_mt("explain", "latancy")
    assert status == 2 and stdout == "" and "'latancy'" in stderr and "message-rate" in stderr


def test_the_page_of_the_docs_is_what_the_code_says():
    assert MESSAGES.read_text(encoding="utf-8") == explain.page() + "\n"

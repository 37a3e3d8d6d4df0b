"""The page answers first: a card for each of the four questions, its evidence one click behind; and the terminal says
the same at the end of a report."""

import html
import re
import sys
from pathlib import Path

import pytest
from conftest import make_point, sample_points
from shmem_mt.advice import four_questions
from shmem_mt.report import report, vega
from test_accessible import DARK, needs_chromium, violations

sys.path.append(str(Path(__file__).parents[1] / "advice"))
from drawn import known_points, overlap_points, write_run

QUESTIONS = ["PEs", "threads", "message size", "synchronization"]
ASKED = ["How many PEs?", "How many threads in each?", "Which message size?", "Which synchronization?"]


@pytest.fixture
def made(shmem_mt, tmp_path, monkeypatch):
    """(path of a page, what the command said) of a run with these points."""
    monkeypatch.setattr(vega, "write", lambda chart, folder: None)

    def make(points):
        out = tmp_path / "report.html"
        status, stdout, stderr = shmem_mt("report", write_run(tmp_path / "run", points), "--out", out)
        assert status == 0, stderr
        return out, stdout

    return make


def others(label="A"):
    """Points of other benchmarks than patterns, of several starts."""
    points = [point for point in sample_points(label, 1.0) if point["benchmark"] != "patterns"]
    return [{**point, "round": number} for number in range(6) for point in points]


def puts():
    """Of bandwidth, of two sizes more than `others` has."""
    sent = dict(benchmark="bandwidth", metric="bandwidth", unit="bytes/s", op="put", touch="read", cache="hot")
    sizes = ((4096, 5e8), (65536, 9e8))
    points = [make_point(**sent, size_bytes=size, scale=rate) for size, rate in sizes]
    return [{**point, "round": number} for number in range(6) for point in points]


def cards_of(path):
    """[(question, text, evidence lines)] of the first section of a page."""
    text = path.read_text(encoding="utf-8")
    section = re.search(r'<main>\s*<section id="answers">.*?</section>', text, re.DOTALL).group(0)
    found = []
    for card in section.split('<div class="card answer">')[1:]:
        shown, folded = card.split("<details>")
        words = re.findall(r'<div class="(?:what|text[^"]*)">(.*?)</div>', shown)
        evidence = [html.unescape(line) for line in re.findall("<li>(.*?)</li>", folded)]
        found.append((*map(html.unescape, words), evidence))
    return found


def test_the_four_questions_come_first_with_their_evidence(made):
    path, stdout = made([*known_points(), *overlap_points(), *others()])
    cards = cards_of(path)
    assert [question for question, *_ in cards] == ASKED
    assert cards[0][1].startswith("2 PEs, no more than 5 % from the best in 3 of 5 answers; 1 PE for stream, random")
    assert "random, 8 B: 1 PE 100 %, 2 PEs 50 %" in cards[0][2] and len(cards[0][2]) == 6
    assert all(evidence for *_, evidence in cards)
    assert stdout.splitlines()[-4:] == [f"{name}: {text}" for name, (_, text, _) in zip(QUESTIONS, cards)]
    text = re.sub("<script>.*?</script>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    before_tables = text.partition("<table")[0]
    assert 'id="answers"' in before_tables and '<a href="#answers">' in before_tables


def test_without_patterns_other_benchmarks_answer_what_they_can(made):
    found = {name: text for name, (_, text, _) in zip(QUESTIONS, cards_of(made([*others(), *puts()])[0]))}
    assert found["PEs"] == "not measured: shmem-mt advise"
    assert "from there on a put has half of its bandwidth" in found["message size"]
    assert found["threads"].endswith("how many threads is not measured: shmem-mt advise")
    assert found["synchronization"].startswith("put of 8 B: quiet")


def test_patterns_of_too_few_sizes_leave_the_message_size_to_bandwidth(made):
    one_size = [point for point in known_points() if point["params"]["size_bytes"] in (8, 64)]
    cards = cards_of(made([*one_size, *others(), *puts()])[0])
    found = {name: text for name, (_, text, _) in zip(QUESTIONS, cards)}
    assert "from there on a put has half of its bandwidth" in found["message size"]
    assert found["PEs"].startswith("2 PEs, no more than 5 % from the best")


def test_few_starts_say_that_they_cannot_tell(made):
    found = cards_of(made([*known_points(starts=2), *others()])[0])
    assert found[0][1] == "cannot tell: 2 starts each, and an interval needs 6"
    assert found[2][1].endswith("; by medians of fewer starts than the 6 that an interval needs")
    assert "cannot tell" in found[3][1]


def test_several_libraries_are_told_apart(made):
    path, stdout = made([*known_points(), *others(), *others("B & <b>")])
    text = path.read_text(encoding="utf-8")
    assert '<div class="who">B &amp; &lt;b&gt;, on-node</div>' in text
    assert [line.partition(":")[0] for line in stdout.splitlines()[-8:]] == [
        f"{question} ({label}, on-node)" for label in ("A", "B & <b>") for question in QUESTIONS]  # fmt: skip


def test_a_page_of_what_answers_nothing_has_no_cards(made):
    points = [{**p, "round": 0} for p in sample_points("A", 1.0) if p["benchmark"] in ("wait", "startup")]
    assert 'id="answers"' not in made(points)[0].read_text(encoding="utf-8")
    assert four_questions.replies([]) == []


@needs_chromium
@pytest.mark.long
@pytest.mark.parametrize("how", [[], [DARK], ["--window-size=360,800"], ["--window-size=360,800", DARK]], ids=str)
def test_axe_finds_nothing_in_the_cards(made, tmp_path, how):
    path, _ = made([*known_points(), *overlap_points(), *others(), *others("B & <b>")])
    assert violations(path, tmp_path, *how) == {}


def test_the_answers_are_those_of_the_part(made, tmp_path):
    made([*known_points(), *others()])
    (part,) = report.parts_of([str(tmp_path / "run")])
    assert [reply["question"] for reply in four_questions.replies(part.points.points)] == QUESTIONS

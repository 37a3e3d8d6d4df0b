"""The record itself: what fails is found, by seed and with its command; what has run is not run again; and every
program of the conformance suite is in the catalogue or left out by name."""

import json
import os
import pathlib
import re
import stat
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import catalogue  # noqa: E402
import jobs  # noqa: E402
import parts  # noqa: E402
import record  # noqa: E402
from page import page, rows_of  # noqa: E402

BUILD = pathlib.Path(os.environ["HEDDLE_BUILD"])


@pytest.fixture
def program(tmp_path):
    """A row whose jobs are a script."""
    def make(name, text, kind="examples", pes=(2,)):
        script = tmp_path / name
        script.write_text("#!/bin/sh\n" + text)
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        return catalogue.Program(kind, name, "node", [catalogue.Shape((str(script),), number) for number in pes])
    return make


def run(rows, seeds, results=None, first=1, timeout_s=60):
    results = results or record.Results(None, "")
    failures = record.run_all(BUILD, record.plan(rows, first, seeds), results, 2, float("inf"), timeout_s)
    return failures, results


def test_what_fails_is_found_by_its_seed(program, capsys):
    rows = [program("good", "true\n"), program("bad", 'test "$HEDDLE_CHAOS" != 4 || exit 3\n')]
    failures, results = run(rows, 6)
    assert failures == 1
    bad = [outcome for outcome in results.outcomes if outcome.failure]
    assert [(outcome.key, outcome.seed, outcome.chaos) for outcome in bad] == [("examples bad node", 4, True)]
    assert bad[0].failure.startswith("status 3: oshrun: PE ") and "--chaos=4 " in bad[0].command
    assert "FAILED examples bad node, seed 4, 2 PEs: status 3" in capsys.readouterr().out


def test_a_hang_is_a_failure(program):
    failures, results = run([program("hangs", 'test "$HEDDLE_CHAOS" != 2 || exec sleep 600\n')], 2, timeout_s=2)
    assert failures == 1 and [each.seed for each in results.outcomes if each.failure] == [2]
    assert "has not ended within 2 s" in next(each.failure for each in results.outcomes if each.failure)


def test_a_program_that_fails_without_chaos_is_told(program):
    _, results = run([program("never", 'test -n "$HEDDLE_CHAOS"\n')], 1)
    assert [outcome.chaos for outcome in results.outcomes if outcome.failure] == [False]


def test_what_the_machine_lacks_is_no_failure(program):
    failures, results = run([program("skips", "exit 77\n")], 2)
    assert failures == 0 and results.outcomes == []


def event(**words):
    return f"{json.dumps(words)}\n"


PASS, FAIL = (event(event="verdict", form="f", verdict=verdict) for verdict in ("pass", "fail"))
DONE = event(event="done")


@pytest.mark.parametrize("kind,text,failure", [
    ("old_programs", "x: PE 0 of 1 passed\n", ""),
    ("old_programs", "x: PE 0 of 1 wrong\n", "0 of 1 PEs passed: "),
    ("apps", PASS + DONE, ""),
    ("apps", PASS + FAIL + DONE, "verdict of f"),
    ("apps", PASS, "no verdict"),
    ("apps", DONE, "no verdict"),
    ("apps", "", "no verdict"),
])
def test_verdicts_are_in_what_is_printed(program, kind, text, failure):
    outcome = jobs.run(BUILD, program("says", f"cat <<'END'\n{text}END\n", kind, pes=(1,)), 1, True, 60)
    assert outcome.failure.startswith(failure) and bool(outcome.failure) == bool(failure), outcome


def test_seeds_are_dealt_to_all_shapes(program):
    _, results = run([program("good", "true\n", pes=(1, 2, 3))], 6)
    assert sorted(each.pes for each in results.outcomes if each.chaos) == [1, 1, 2, 2, 3, 3]
    assert {each.pes for each in results.outcomes if not each.chaos} == {1, 2, 3}


def test_a_record_is_made_in_parts(program, tmp_path):
    rows, path = [program("notes", f'echo "$HEDDLE_CHAOS" >>{tmp_path}/seeds\n', pes=(1,))], tmp_path / "results"
    run(rows, 2, record.Results(path, "a"))
    path.write_text(path.read_text() + '{"key": "cut')
    _, results = run(rows, 4, record.Results(path, "a"))
    seeds = (tmp_path / "seeds").read_text().split()
    assert sorted(seeds) == ["1", "2", "3", "4"]
    assert len(results.outcomes) == len(path.read_text().splitlines()) - 1
    assert record.Results(path, "b").outcomes == [] and json.loads(path.read_text()) == {"library": "b"}


def test_the_limit_ends_it_between_jobs(program):
    results = record.Results(None, "")
    record.run_all(BUILD, record.plan([program("good", "true\n")], 1, 1000), results, 2, 0.5, 60)
    assert 0 < len(results.outcomes) < 1000


def test_the_page(program):
    rows = [program("good", "true\n"), program("bad", 'test "$HEDDLE_CHAOS" != 4 || exit 3\n')]
    first, second = (run(rows, seeds, first=begin)[1].outcomes for begin, seeds in ((1, 5), (6, 2)))
    made = parts.parts_of(first, "aaa") + parts.parts_of(second, "bbb")
    text = page(made)
    assert re.search(r"^\| examples good \| node \| 2 \| 7 \| 0 \|( 0\.\d\d \|){2}( \d+\.\d \|){2}$", text, re.M), text
    assert re.search(r"^\| examples bad \| node \| 2 \| 7 \| 1 \|", text, re.M) and "1 have failed" in text
    assert "- examples bad node, seed 4, 2 PEs: status 3" in text
    assert "\n| aaa | 1 to 5 | 2 | 10 |\n| bbb | 6 to 7 | 2 | 4 |\n" in text and "each with 7 seeds or more" in text
    assert all(f"| {name} | {why} |" in text for name, why in catalogue.LEFT_OUT.items())
    row, good = rows_of(made)[0], [each for each in first + second if each.key == "examples good node"]
    chaos, normal = ([each for each in good if each.chaos == chaos] for chaos in (True, False))
    both = {each.seed for each in normal}
    assert row.seconds == pytest.approx(sum(each.seconds for each in chaos) / 7, abs=1e-3)
    assert row.ratio == pytest.approx(sum(each.seconds for each in chaos if each.seed in both) /
                                      sum(each.seconds for each in normal), rel=0.05)


def test_parts_are_kept_and_no_seed_counts_twice(program, tmp_path):
    rows, kept = [program("good", "true\n", pes=(1,))], tmp_path / "record.jsonl"
    first, again, later = (parts.parts_of(run(rows, 2, first=begin)[1].outcomes, f"c{begin}") for begin in (1, 2, 3))
    parts.add(kept, first)
    with pytest.raises(ValueError, match="seeds 2 to 3 of 'examples good node' overlap the part of c1 with 1 to 2"):
        parts.add(kept, again)
    assert parts.read(kept) == first
    parts.add(kept, later)
    assert parts.read(kept) == first + later


def test_a_part_ends_at_a_gap(program):
    rows = [program("good", "true\n", pes=(1,))]
    outcomes = [each for begin in (4, 7) for each in run(rows, 2, first=begin)[1].outcomes]
    assert [(part.first, part.last) for part in parts.parts_of(outcomes, "x")] == [(4, 5)]


def test_every_conformance_program_runs_or_is_left_out():
    rows = catalogue.programs(BUILD, ("conformance",))
    names = {row.name for row in rows} | set(catalogue.LEFT_OUT)
    table = (HERE.parent / "conformance/CMakeLists.txt").read_text()
    sources = {path.stem for path in (HERE.parent / "conformance").glob("*/*.cpp")}
    for name in re.findall(r"conformance_(?:whole|optimized|with_rows)\((\w+)", table):
        assert name in names or "${" in name, name
    assert set(catalogue.LEFT_OUT) <= sources | {"global_exit"}, set(catalogue.LEFT_OUT) - sources
    assert not set(catalogue.LEFT_OUT) & {row.name for row in rows}
    assert {"rma", "signals", "ordering", "waits", "stress", "sequences"} <= {row.name for row in rows}
    if (BUILD / "lib/libheddle_ucx.so").exists():
        assert {"rma", "signals", "stress", "locks"} <= {row.name for row in rows if row.place == "nodes"}

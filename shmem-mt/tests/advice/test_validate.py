"""The script behind `make validate-advice`: whether a pick is judged by what was measured exhaustively."""

import json

import validate
from drawn import FLAT, THREADED, known_points, write_run


def test_a_pick_is_judged_by_the_exhaustive_run(shmem_mt, tmp_path):
    exhaustive = write_run(tmp_path / "exhaustive", known_points())
    status, stdout, _ = shmem_mt("advise", exhaustive, "--budget", "0", "--json")
    advice = json.loads(stdout)
    assert status == 0
    lines, is_good = validate.table(list(validate.judged("2-cores", advice, exhaustive)))
    assert is_good and lines[-1].startswith("6 of 6 picks lose no more than 5 %; of 5 that are called best 5")
    for answer in advice["patterns"]:  # a pick that is never best
        answer["best"].update(context="default", sync="quiet_each", pes=1, threads=2)
    lines, is_good = validate.table(list(validate.judged("2-cores", advice, exhaustive)))
    assert not is_good and lines[-1].startswith("0 of 6 picks")
    assert f"; {FLAT}" in lines[1] and f"; {THREADED}" in lines[4]
    assert "75.0 % (75.0 to 75.0)" in lines[1]


def test_nothing_measured_is_not_good(tmp_path):
    assert validate.table([])[1] is False

"""The time left that a run tells: right within a fifth, on recorded runs and on machines that are slower than planned.
The clock is a pretended one: nothing is timed."""

import json
import pathlib
import random

import pytest
from conftest import Clock, make_point
from shmem_mt.catalogue import plan
from shmem_mt.runner import results, session
from shmem_mt.runner.forecast import Forecast
from shmem_mt.runner.process import Outcome
from shmem_mt.targets import fabrics, machine
from test_adaptive import Pretended

RECORDED = sorted(pathlib.Path(__file__).parent.glob("recorded_runs/*.json"))
WITHIN = 0.2


class Listener:
    """A display that keeps what it is told: (the time, seconds left), one a program start."""

    def __init__(self, clock):
        self._clock, self.told, self.first = clock, [], None

    def __call__(self, _labels, total_s):
        self.first = total_s
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def start(self, _text, left_s):
        self.told.append((self._clock.now, left_s))

    def say(self, *_):
        pass

    finish = point = note = say


@pytest.fixture
def replayed(tmp_path, monkeypatch):
    """Runs a session on a pretended clock: replayed(starts, seconds_of, value_of), both by start and round, returns
    [(seconds since the begin, left as told, left in truth)] of all its starts, and what was told before the first."""

    def run(starts, seconds_of, value_of, goes_on=True, profile="quick"):
        clock = Clock()
        listener = Listener(clock)

        def run_program(_command, log, _timeout_s, on_point, *_):
            start, number = starts[int(log.split("-")[-2])], int(log.split("-round")[-1].split(".")[0])
            seconds = seconds_of(start, number)
            event = make_point("A", start.program, scale=value_of(start, number), size_bytes=starts.index(start))
            on_point({"event": "point", **event})
            clock.now += seconds
            return Outcome(ok=True, seconds=seconds, left_by_itself=True)

        monkeypatch.setattr(session, "run_program", run_program)
        monkeypatch.setattr(session, "time", clock)
        monkeypatch.setattr(session, "Display", listener)
        monkeypatch.setattr(session.build, "build", lambda *_: {})
        monkeypatch.setattr(session.build, "hand_over", lambda *_: None)
        folder = results.RunFolder.open(str(tmp_path / "run"))
        found = [Pretended("A", dict.fromkeys((start.program for start in starts), 0.0))]
        made = session.Session(folder, found, profile, starts, machine.facts(), {fabrics.ON_NODE: None}, 5, goes_on)
        made.settings = {}
        assert made.measure() == 0
        return [(now, left, clock.now - now) for now, left in listener.told], listener.first

    return run


def quiet(_start, number):
    """A value of a point that six starts settle."""
    return 1 + 1e-3 * (number % 3)


def noisy(_start, number):
    """A value of a point that no number of starts settles."""
    return (1.0, 3.0, 2.0)[number % 3]


def wrong(told, whole=None):
    """Of what was told behind the first fifth of a run and ahead of its last tenth, what was wrong by more than a
    fifth. In the last tenth a fifth is less than a program start."""
    whole = whole or told[0][2]
    judged = [one for one in told if 0.2 * whole <= one[0] <= 0.9 * whole]
    assert len(judged) > 10
    return [one for one in judged if abs(one[1] - one[2]) > WITHIN * one[2]]


def planned(seconds=2.0, rounds=4, count=12):
    """Starts of as many programs, of which the plan thinks that they take so long."""
    return [plan.Start(f"program{n}", 2, 1, ("--ops", "put"), rounds, 1, seconds) for n in range(count)]


@pytest.mark.parametrize("slower", [0.4, 1.0, 3.0])
def test_a_machine_that_is_slower_than_planned_is_noticed(replayed, slower):
    draw = random.Random(1)
    own = {start: slower * draw.uniform(0.5, 2) for start in planned()}
    told, _ = replayed(planned(), lambda start, _: own[start] * start.estimate_s, quiet, goes_on=False)
    assert not wrong(told)


def test_what_goes_on_behind_the_plan_is_in_the_time(replayed):
    """One round is planned, an interval needs six."""
    told, first = replayed(planned(rounds=1), lambda start, _: 2.0, quiet)
    assert len(told) == 72 and first >= 144
    assert not wrong([one for one in told if one[0] >= 0.5 * told[0][2]], told[0][2])  # two rounds say nothing of it


def test_the_profiles_time_is_the_most(replayed):
    budget_s = plan.PROFILES["quick"].budget_s
    told, _ = replayed(planned(rounds=2), lambda start, _: 3.0, noisy)
    assert not wrong(told) and told[-1][0] <= budget_s
    assert all(left <= budget_s for _, left, _ in told)


def test_a_run_that_is_gone_on_with_knows_what_starts_took(replayed):
    starts = planned(rounds=2)
    replayed(starts, lambda start, _: 9.0, quiet, goes_on=False)
    more = [plan.replace(start, rounds=4) for start in starts]
    told, _ = replayed(more, lambda start, _: 9.0, quiet, goes_on=False)
    assert told[0][1] == pytest.approx(24 * 9.0)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_runs(replayed, path):
    """What starts took and what they found, by round; rounds that the run did not come to repeat those that it did.
    `quick_busy` is of a machine whose other work grew: starts took up to three times as long in later rounds."""
    recorded = json.loads(path.read_text(encoding="utf-8"))
    starts = [
        plan.Start(one["program"], one["pes"], one["threads"], (str(number),), one["rounds"], 1, one["estimate_s"])
        for number, one in enumerate(recorded["starts"])
    ]

    def of_round(name):
        found = {start: one[name] for start, one in zip(starts, recorded["starts"])}
        return lambda start, number: found[start][number % len(found[start])]

    told, _ = replayed(starts, of_round("seconds"), of_round("values"), profile=recorded["profile"])
    assert not wrong(told)


def test_there_are_recorded_runs():
    assert RECORDED


def test_a_start_is_judged_by_those_that_are_alike():
    one, two, other = planned(count=3)
    found = Forecast()
    assert found.seconds("A", one) == 2.0
    found.learn("A", one, 6.0)
    found.learn("A", one, 8.0)
    assert found.seconds("A", one) == 7.0
    assert found.seconds("A", two) == 7.0  # nothing is nearer than the same library
    assert found.seconds("B", one) == 7.0  # the same program
    found.learn("A", other, 1.0)
    assert found.seconds("A", two) == 5.0 and found.seconds("B", one) == 7.0

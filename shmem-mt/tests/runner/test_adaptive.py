"""How many starts a session gives to what it measures, and in which order, with programs that only pretend to run."""


import numpy
import pytest
from conftest import Clock, make_point, read_results
from shmem_mt.catalogue import plan
from shmem_mt.runner import results, session
from shmem_mt.runner.process import Outcome
from shmem_mt.targets import fabrics, machine


class Pretended:
    """An implementation whose program of that name varies so much from start to start."""

    exit_status_counts, coalesces = True, False

    def __init__(self, label, noise):
        self.label, self.noise, self.binaries = label, noise, dict.fromkeys(noise, "program")
        self.random = numpy.random.default_rng(1)

    def source_of(self, program):
        return program

    def measures(self, _start):
        return True

    def describe(self):
        return {"label": self.label}

    def launch_command(self, program, *_rest):
        return [self.label, program]

    def point(self, program):
        scale = float(numpy.exp(self.random.normal(0, self.noise[program])))
        return {"event": "point", **make_point(self.label, program, scale=scale)}


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Runs a session: measured({program: (planned rounds, noise)}) returns (the order of starts, {program: starts})."""

    def run(programs, goes_on=True, seed=5, labels=("A",), seconds=0.0, name="run", build_s=0.0, arguments=()):
        order, clock = [], Clock()
        run.paddings = []
        found = {label: Pretended(label, {p: noise for p, (_, noise) in programs.items()}) for label in labels}

        def run_program(command, _log, _timeout_s, on_point, _counts, environment):
            label, program = command
            order.append((label, program))
            run.paddings.append(len(environment[session.PADDING]))
            with monkeypatch.context() as during:
                during.setattr(results, "merge_rounds", None)  # a program that measures has the cores to itself
                on_point(found[label].point(program))
            clock.now += seconds
            return Outcome(ok=True, seconds=seconds, left_by_itself=program != "ended")

        monkeypatch.setattr(session, "run_program", run_program)
        def build(*_):
            clock.now += build_s
            return {}

        monkeypatch.setattr(session, "time", clock)
        monkeypatch.setattr(session.build, "build", build)
        monkeypatch.setattr(session.build, "hand_over", lambda *_: None)
        starts = [plan.Start(p, 2, 1, arguments, rounds, 1, seconds) for p, (rounds, _) in programs.items()]
        folder = results.RunFolder.open(str(tmp_path / name))
        made = session.Session(
            folder, list(found.values()), "quick", starts, machine.facts(), {fabrics.ON_NODE: None}, seed, goes_on
        )
        made.settings = {}
        assert made.measure() == 0
        return order, {r["benchmark"]: r["starts"] for r in read_results(tmp_path / name)}

    return run


def test_starts_go_to_what_is_wide(measured):
    """A quiet point gets what an interval needs, however few were planned; a noisy one all that the profile allows."""
    _, starts = measured({"quiet": (1, 1e-3), "noisy": (6, 0.5)})
    assert starts == {"quiet": 6, "noisy": plan.PROFILES["quick"].most_rounds}


def test_a_finished_run_given_again_starts_nothing(measured):
    programs = {"quiet": (1, 1e-3), "quiet too": (2, 1e-3)}
    _, starts = measured(programs)
    order, again = measured(programs)
    assert order == [] and again == starts == {"quiet": 6, "quiet too": 6}


def test_asked_for_so_many_rounds_there_are_no_others(measured):
    assert measured({"quiet": (2, 1e-3), "noisy": (3, 0.5)}, goes_on=False)[1] == {"quiet": 2, "noisy": 3}


def test_the_budget_ends_it(measured):
    """Each start is expected to take half of the budget."""
    _, starts = measured({"noisy": (1, 0.5)}, seconds=plan.PROFILES["quick"].budget_s * 2)
    assert starts == {"noisy": 1}


def test_what_compiling_took_is_not_left(measured):
    programs = {"noisy": (1, 0.5)}
    budget_s = plan.PROFILES["quick"].budget_s
    assert measured(programs, build_s=0.9 * budget_s, seconds=0.03 * budget_s)[1] == {"noisy": 3}


def test_the_order_of_starts_is_drawn_from_the_seed(measured):
    programs = dict.fromkeys("abcdefgh", (6, 0.001))
    first, _ = measured(programs, name="first")
    again, _ = measured(programs, name="again")
    other, _ = measured(programs, seed=6, name="other")
    assert first == again != other
    rounds = [tuple(first[begin : begin + 8]) for begin in range(0, 48, 8)]
    assert len(set(rounds)) == 6  # no round has the order of another
    assert all(len(set(one)) == 8 for one in rounds)


def test_implementations_stay_neighbours_and_take_turns(measured):
    order, _ = measured(dict.fromkeys("abcd", (6, 0.001)), labels=("A", "B"))
    neighbours = list(zip(order[::2], order[1::2]))
    assert all(one[1] == other[1] and one[0] != other[0] for one, other in neighbours)
    assert {one[0] for one, _ in neighbours} == {"A", "B"}


def test_the_size_of_the_environment_is_drawn_for_each_round(measured):
    """Implementations have the same beside each other, and the same seed has the same again."""
    programs = {"a": (20, 0.001), "b": (20, 0.001)}
    measured(programs, labels=("A", "B"), name="first")
    first = measured.paddings
    assert first[::2] == first[1::2] and len(set(first)) > 30 and max(first) < session.MOST_PADDING
    measured(programs, labels=("A", "B"), name="again")
    assert measured.paddings == first


def test_the_time_of_a_launch_is_a_point_of_the_driver(measured, tmp_path):
    """Where it is asked for, and where the launcher was not ended by the driver."""

    def launches(program, *arguments):
        measured({program: (1, 0.001)}, seconds=2.5, goes_on=False, arguments=arguments, name=program)
        return [r for r in read_results(tmp_path / program) if r["params"]["op"] == "launch"]

    (found,) = launches("startup", "--ops", "init,launch")
    assert (found["samples"], found["metric"], found["unit"], found["valid"]) == ([2.5], "time", "s", True)
    assert found["params"]["pes"] == 2 and found["params"]["fabric"] == "on-node"
    assert launches("ended", "--ops", "init,launch") == [] == launches("other", "--ops", "init")

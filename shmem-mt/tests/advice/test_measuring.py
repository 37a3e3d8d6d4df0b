"""The starts of `shmem-mt advise`, with a program that only pretends to run: what is asked for, in which order, within
which time, and that a cut run goes on."""

import itertools

import pytest
from conftest import Clock
from drawn import Machine, raw_point
from shmem_mt.advice import measuring
from shmem_mt.advice.measuring import Cell, Conductor, contexts, covering, planner
from shmem_mt.advice.ranking import BEST, rank
from shmem_mt.advice.setups import PATTERNS, questions
from shmem_mt.catalogue import plan
from shmem_mt.catalogue.plan import Room, splits
from shmem_mt.runner import results, session
from shmem_mt.runner.process import Outcome
from shmem_mt.targets import fabrics, machine

CORES = 4


def test_contexts_by_threads():
    assert contexts(1) == ("default", "private")
    assert contexts(2) == ("default", "shared", "serialized", "private")
    assert "pool:4" in contexts(8)


@pytest.mark.parametrize("seed", range(3))
def test_the_parts_cover_what_is_asked_for_and_nothing_else(seed):
    machine = Machine(seed, CORES)
    every = [Cell(size, s.context, s.sync) for s in machine.truth for size in (8, 64)]
    cells = {cell for cell in every if machine.random.random() < 0.4}
    made = [Cell(size, context, sync) for sizes, its, syncs in covering(cells)
            for size in sizes for context in its for sync in syncs]  # fmt: skip
    assert len(made) == len(set(made)) and set(made) == cells
    assert covering(set(every))[0] == ((8, 64), covering(set(every))[0][1], tuple(sorted({c.sync for c in every})))
    assert len(covering(set(every))) == 1


def given(start):
    return dict(itertools.pairwise(start.arguments))


def planned(patterns, fabric=fabrics.ON_NODE, room=Room(CORES), **chosen):  # noqa: B008
    return planner(patterns)(fabric, "quick", [], plan.Choices(**chosen), CORES, room)


def test_the_first_look_is_at_every_split():
    found = planned(("stream", "random"))
    assert [(start.pes, start.threads) for start in found] == 2 * splits(CORES)
    assert {start.program for start in found} == {"patterns"} and all("--syncs" not in given(start) for start in found)
    assert given(found[0])["--sizes"] == ",".join(map(str, measuring.SIZES["stream"]))
    assert set(measuring.SIZES) == set(PATTERNS)
    assert {given(start)["--sizes"] for start in planned(PATTERNS, sizes=(64,))} == {"64"}
    assert max(start.threads for start in planned(("stream",), room=Room(1024))) == 512  # a program takes no 1024


def test_over_a_network_channels_are_compared_where_there_are_threads():
    found = planned(("random",), fabrics.TCP, Room(CORES, 2))
    assert [(start.pes, start.setting) for start in found] == [(4, ""), (2, ""), (2, "channels:2")]
    two = planned(("random",), fabrics.NAMESPACES, Room(2, 2))  # two cores, two hosts: another one is oversubscribed
    assert [(start.pes, start.threads) for start in two] == [(4, 1), (2, 2), (2, 2)]
    assert [(start.pes, start.threads) for start in planned(("random",), room=Room(1))] == [(1, 1)]


class Pretended:
    """An implementation whose program reports what a drawn machine says; the setups of `never` in the first look
    alone."""

    exit_status_counts, coalesces, label = True, False, "A"

    def __init__(self, machine, never=()):
        self.machine, self.never, self.binaries = machine, never, {"patterns": "patterns"}

    def measures(self, _start):
        return True

    def describe(self):
        return {"label": self.label}

    def launch_command(self, _program, pes, threads, arguments, *_rest):
        return [pes, threads, arguments]

    def points(self, command):
        pes, threads, arguments = command
        asked = dict(itertools.pairwise(arguments))
        for setup, value in self.machine.truth.items():
            is_asked = (setup.pes, setup.threads) == (pes, threads) and setup.context in asked["--contexts"].split(",")
            is_asked = is_asked and setup.sync in asked.get("--syncs", setup.sync).split(",")
            if not is_asked or ("--syncs" in asked and setup in self.never):
                continue
            for size in map(int, asked["--sizes"].split(",")):
                noisy = value * float(self.machine.random.normal(1, self.machine.noise))
                yield {"event": "point", **raw_point(setup, noisy, 0, op=asked["--ops"], size=size)}


@pytest.fixture
def advised(tmp_path, monkeypatch):
    """Runs a session: advised(budget_s) returns the (PEs, threads, arguments) of each start."""

    def run(budget_s, seconds=1.0, never=(), seed=1, patterns=("stream", "random"), name="run", hangs=False):
        drawn, clock, order = Machine(seed, CORES, noise=0.02), Clock(), []
        pretended = Pretended(drawn, never)

        def run_program(command, _log, timeout_s, on_point, *_):
            order.append(command)
            if hangs:
                clock.now += timeout_s
                return Outcome(problem="hung")
            for point in pretended.points(command):
                on_point(point)
            clock.now += seconds
            return Outcome(ok=True, seconds=seconds, left_by_itself=True)

        monkeypatch.setattr(session, "run_program", run_program)
        monkeypatch.setattr(session, "time", clock)
        monkeypatch.setattr(measuring, "time", clock)
        monkeypatch.setattr(session.build, "build", lambda *_: {})
        monkeypatch.setattr(session.build, "hand_over", lambda *_: None)
        starts = planned(patterns, sizes=(64,))
        run.folder = results.RunFolder.open(str(tmp_path / name))
        made = session.Session(run.folder, [pretended], "quick", starts, machine.facts(), {fabrics.ON_NODE: None}, 1,
                               False)  # fmt: skip
        made.settings = {}
        assert made.measure(Conductor(budget_s, patterns)) == (1 if hangs else 0)
        run.machine, run.seconds = drawn, clock.now
        return order

    return run


def test_the_best_is_found_and_the_rest_is_left_behind(advised):
    order = advised(1e6)
    found = questions(advised.folder.results())
    assert {question.op for question in found} == {"stream", "random"}
    for results_of_one in found.values():
        assert len(results_of_one) == len(advised.machine.truth)
        assert advised.machine.loss(rank(results_of_one).best) < 0.05
        starts = [result["starts"] for result in results_of_one.values()]
        assert sum(starts) < 3.5 * len(starts) and min(starts) == 1
    first = {
        (pes, threads, dict(itertools.pairwise(a))["--ops"]) for pes, threads, a in order[: 2 * len(splits(CORES))]
    }
    assert len(first) == 2 * len(splits(CORES))  # every split of both patterns, ahead of all others
    assert all("--syncs" in arguments for _, _, arguments in order[2 * len(splits(CORES)) :])


@pytest.mark.parametrize("budget_s", [0.5, 3.5, 12])
def test_no_start_begins_that_would_end_behind_the_budget(advised, budget_s):
    order = advised(budget_s)
    assert advised.seconds <= budget_s + 2 and len(order) <= budget_s + 1


def test_a_start_that_hangs_ends_with_the_budget(advised):
    order = advised(30, hangs=True)
    assert len(order) == 1 and advised.seconds <= 30 + measuring.GRACE_S


def test_what_no_start_reports_is_not_asked_for_again_and_again(advised):
    """The best setups come in the first look, and never again."""
    truth = Machine(1, CORES).truth
    best = sorted(truth, key=truth.__getitem__)[-3:]
    order = advised(1e6, patterns=("stream",), never=set(best))
    assert len(order) < 100
    starts = {setup: r["starts"] for setup, r in next(iter(questions(advised.folder.results()).values())).items()}
    assert [starts[setup] for setup in best] == [1, 1, 1]


def test_in_a_short_time_some_patterns_are_finished(advised):
    """The first one first."""
    whole = len(advised(1e6, name="whole"))
    advised(whole * 0.7, patterns=("random", "stream"), name="short")
    verdicts = {q.op: rank(found).verdict for q, found in questions(advised.folder.results()).items()}
    assert (verdicts["random"] == BEST) > (verdicts["stream"] == BEST)


def test_a_run_that_was_cut_off_goes_on(advised):
    first = advised(2.5)
    then = advised(1e6)
    looks = [[start for start in order if "--syncs" not in start[2]] for order in (first, then)]
    assert len(looks[0]) == len(first) == 2 and len(looks[0]) + len(looks[1]) == 2 * len(splits(CORES))
    assert advised(1e6) == []


def test_what_is_done_takes_no_time_of_the_next_budget(advised):
    """Each first look took longer than that budget, and is there: single setups fit."""
    looks = len(splits(CORES))
    first = advised(8 * looks + 8, seconds=8, patterns=("stream",))
    assert sum("--syncs" not in start[2] for start in first) == looks
    then = advised(7.5, seconds=0.1, patterns=("stream",))
    assert then and all("--syncs" in start[2] for start in then)

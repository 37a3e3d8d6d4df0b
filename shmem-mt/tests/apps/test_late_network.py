"""Mini-apps over a network that delivers late and in another order, as OpenSHMEM allows (late_network.hpp): no form
needs order that it has not asked for, no word has two updates under way, and a signal is used as one alone."""

from pathlib import Path

import pytest
from conftest import app_events, app_verdicts, compiled_without
from shmem_mt import sources
from shmem_mt.catalogue import catalogue

APPS = [b for b in catalogue.BENCHMARKS if sources.is_app(b.program)]
LATE = ("-include", str(Path(__file__).parent / "late_network.hpp"))


@pytest.fixture(scope="module")
def late(implementation, tmp_path_factory):
    """The implementation with one program, compiled once: late(program, *features that it does without)."""
    made = {}

    def compiled(program, *features):
        key = (program, *features)
        if key not in made:
            folder = tmp_path_factory.mktemp("late")
            made[key] = compiled_without(implementation, folder, program, *features, flags=LATE)
        return made[key]

    return compiled


@pytest.mark.parametrize("pes,threads", [(2, 1), (3, 2)])
@pytest.mark.parametrize("app", APPS, ids=lambda app: app.name)
def test_every_form_is_right(late, app, pes, threads):
    every = ("--ops", ",".join(op for op in app.ops if op != "exchange"), "--size", "tiny", "--poll-rows", "100")
    found = app_verdicts(late(app.program), app.program, pes, threads, *every)
    assert found and {verdict["verdict"] for verdict in found.values()} == {"pass"}


@pytest.mark.parametrize("app", catalogue.APP_SYNCS)
def test_every_end_of_an_exchange_is_right(late, app):
    every = ("--syncs", ",".join(catalogue.APP_SYNCS[app]), "--size", "tiny")
    found = app_events(late(app), app, 3, 2, "--ops", "auto" if app == "minimd" else "overlapped", *every)
    verdicts = [event["verdict"] for event in found if event["event"] == "verdict"]
    assert len(verdicts) >= 2 and set(verdicts) == {"pass"}


@pytest.mark.parametrize("app,ops", [("minimd", "default,auto"), ("halo", "jacobi27,async7"), ("is", "default")])
def test_flags_behind_fences_are_right(late, app, ops):
    """As with a library before OpenSHMEM 1.5."""
    found = app_verdicts(late(app, "SHMEM_MT_HAVE_PUT_SIGNAL"), app, 3, 2, "--ops", ops, "--size", "tiny")
    assert found and {verdict["verdict"] for verdict in found.values()} == {"pass"}

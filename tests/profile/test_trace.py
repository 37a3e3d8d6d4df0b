"""HEDDLE_TRACE and oshrun --trace: the events, their times and arrows, and the format. The build is HEDDLE_BUILD."""

import collections
import json
import os
import subprocess

import pytest
from test_profile import BUILD, line_of, needs_network, programs, run  # noqa: F401

ROUNDS = 10
NODE = {}
NETWORK = {"HEDDLE_TEST_PES_PER_NODE": "1", "UCX_TLS": "tcp"}
PAIRS = {"HEDDLE_TEST_PES_PER_NODE": "2", "UCX_TLS": "tcp"}


@pytest.fixture
def trace(run):  # noqa: F811
    def do(n, *arguments, options=("--trace", "t.json"), **settings):
        found, err = run("traced", n, *arguments, options=options, file="t.json", **settings)
        return Trace(found), err

    return do


class Trace:
    """A trace that keeps to the format: what Perfetto would drop or misread fails here."""

    def __init__(self, document):
        self.other = document["otherData"]
        self.events = document["traceEvents"]
        self.tracks = collections.defaultdict(list)  # (PE, thread) -> slices
        starts, ends = {}, {}
        for event in self.events:
            assert isinstance(event["name"], str) and isinstance(event["pid"], int) and isinstance(event["tid"], int)
            assert event["ph"] in "XisfM", event
            assert event["ph"] == "M" or isinstance(event["ts"], (int, float)), event
            assert 0 <= event["pid"] < self.other["pes"]
            if event["ph"] == "X":
                assert event["dur"] >= 0
                self.tracks[event["pid"], event["tid"]].append(event)
            elif event["ph"] == "i":
                assert event["s"] == "t", event
            elif event["ph"] in "sf":
                found = starts if event["ph"] == "s" else ends
                assert event["id"] not in found and event["cat"] == "arrow"
                assert event["ph"] == "s" or event["bp"] == "e"
                found[event["id"]] = event
        assert starts.keys() == ends.keys()
        self.require_nesting()
        self.arrows = [(self.slice_at(starts[i]), self.slice_at(ends[i])) for i in starts]
        named = {(event["pid"], event["tid"]) for event in self.events if event["name"] == "thread_name"}
        assert self.tracks.keys() <= named

    def require_nesting(self):
        """Slices of a thread lie within each other or apart."""
        for slices in self.tracks.values():
            open_until = []
            for event in sorted(slices, key=lambda one: (one["ts"], -one["dur"])):
                end = event["ts"] + event["dur"]
                while open_until and open_until[-1] <= event["ts"] + 1e-4:
                    open_until.pop()
                assert not open_until or end <= open_until[-1] + 0.0015, event
                open_until.append(end)

    def slice_at(self, end):
        """The innermost slice there, as Perfetto binds an arrow."""
        around = [one for one in self.tracks[end["pid"], end["tid"]]
                  if one["ts"] <= end["ts"] + 1e-4 and end["ts"] <= one["ts"] + one["dur"] + 1e-4]
        assert around, end
        return min(around, key=lambda one: one["dur"])

    def of(self, name, kind=None):
        return [event for event in self.events if event["name"] == name and kind in (None, event.get("cat"))]


@pytest.mark.parametrize("settings", [NODE, pytest.param(NETWORK, marks=needs_network)], ids=["node", "network"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8])
def test_events_and_what_ended_waits(trace, n, settings):
    found, err = trace(n, "rounds", **settings)
    assert f"heddle trace of traced: {n} of {n} PEs" in err
    assert found.other["lost_events"] == 0
    for name, times in (("shmem_long_put_signal", ROUNDS), ("shmem_double_sum_reduce", ROUNDS),
                        ("gives a lock back", ROUNDS)):
        by_pe = collections.Counter(event["pid"] for event in found.of(name))
        assert by_pe == dict.fromkeys(range(n), times), (name, by_pe)
    assert len(found.of("shmem_barrier_all", "collective")) == n * ROUNDS
    # The first 64 calls of a place are all there, of further ones some.
    assert [event["args"]["pe"] for event in found.of("shmem_long_p")][:64] == (ROUNDS * list(range(n)))[:64]
    for event in found.of("shmem_long_put_signal"):
        assert event["args"]["pe"] == (event["pid"] + 1) % n and event["args"]["bytes"] == 99 * 8
        assert event["args"]["at"] == line_of("traced.c", "// signal")
    threads = collections.Counter(event["pid"] for event in found.events
                                  if event["name"] == "thread_name" and "library" not in event["args"]["name"])
    assert set(threads) == set(range(n)) and max(threads.values()) <= 2  # a thread takes the track of an ended one

    into = collections.defaultdict(list)  # the name of what waited -> arrows
    for source, wait in found.arrows:
        assert source["ts"] <= wait["ts"] + wait["dur"] + found.other["clock_error_ns"] / 1000, (source, wait)
        into[wait["name"]].append((source, wait))
    check_collectives(found, n, into)
    # Each wait for a signal was ended by the put of this round; a wait that need not wait is no event.
    # Runs of more than 64 puts of flags hide calls, which may have ended others.
    if n * ROUNDS <= 64:
        assert len(into["shmem_signal_wait_until"]) >= 0.8 * len(found.of("shmem_signal_wait_until"))
    for source, wait in into["shmem_signal_wait_until"]:
        assert source["name"] == "shmem_long_put_signal" and source["pid"] == (wait["pid"] - 1) % n
        assert source["args"]["word"] == wait["args"]["word"]
    assert n == 1 or into["shmem_long_wait_until"] or not found.of("shmem_long_wait_until")
    for source, wait in into["shmem_long_wait_until"]:
        assert source["name"] == "shmem_long_p" and source["pid"] == 0 and source["args"]["pe"] == wait["pid"]
    for source, wait in into["shmem_set_lock"]:
        assert source["name"] == "gives a lock back" and source["pid"] != wait["pid"]


def check_collectives(found, n, into):
    """The last PE to come ends the wait of all others."""
    for name in ("shmem_barrier_all", "shmem_double_sum_reduce"):
        calls = collections.defaultdict(list)
        for event in found.of(name, "collective"):
            calls[event["args"]["of the team"]].append(event)
            assert event["args"]["members"] == n
        assert [len(members) for members in calls.values()] == [n] * ROUNDS
        for source, wait in into[name]:
            members = calls[source["args"]["of the team"]]
            assert wait in members and source["ts"] == max(member["ts"] for member in members)
        assert len(into[name]) == (n - 1) * ROUNDS


@needs_network
def test_what_the_library_does_is_there(trace):
    found, err = trace(4, "rounds", **PAIRS)
    for name in ("message sent", "message received", "control message of a collective"):
        assert {event["ph"] for event in found.of(name)} == {"i"}, name
        assert all(0 <= event["args"]["pe"] < 4 for event in found.of(name))
    assert found.of("step of a collective") and found.of("sleep")
    assert any("of the library" in event["args"].get("name", "") for event in found.of("thread_name"))
    assert "clocks of the nodes agree within" in err


@needs_network
def test_clocks_of_hosts_are_corrected(trace, programs, tmp_path):  # noqa: F811
    """One host's clock is 1,000 s ahead."""
    if subprocess.run(["unshare", "--time", "--fork", "--monotonic", "1000", "true"], capture_output=True).returncode:
        pytest.skip("no time namespaces")
    script = tmp_path / "ahead"
    script.write_text('#!/bin/sh\ncase $HEDDLE_PE in 2|3) exec unshare --time --fork --monotonic 1000 "$@" ;; esac\n'
                      'exec "$@"\n')
    script.chmod(0o755)
    done = subprocess.run([BUILD / "bin/oshrun", "-n", "4", "--trace", "t.json", script, programs / "traced", "rounds"],
                          cwd=tmp_path, env={**os.environ, **PAIRS}, capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr
    found = Trace(json.loads((tmp_path / "t.json").read_text()))
    assert max(event["ts"] for event in found.of("shmem_barrier_all")) < 500e6  # us
    assert 0 < found.other["clock_error_ns"] < 50e6
    check_order_of_barriers(found)


def check_order_of_barriers(found):
    """Nobody leaves a barrier before all have come, up to the error that is told."""
    calls = collections.defaultdict(list)
    for event in found.of("shmem_barrier_all", "collective"):
        calls[event["args"]["of the team"]].append(event)
    for members in calls.values():
        last = max(member["ts"] for member in members)
        first_out = min(member["ts"] + member["dur"] for member in members)
        assert first_out >= last - 2 * found.other["clock_error_ns"] / 1000, members


def test_a_full_buffer_keeps_the_first_events_and_counts_the_others(trace):
    found, err = trace(2, "many", HEDDLE_TRACE_SIZE="256k")
    assert found.other["lost_events"] > 0
    calls = [event["args"]["call"] for event in found.of("shmem_long_p") if event["pid"] == 0]
    assert calls == list(range(1, len(calls) + 1)) and len(calls) > 1000
    assert f"{found.other['lost_events']} further events were lost: right would be a larger HEDDLE_TRACE_SIZE" in err
    kept = sum(event["ph"] == "X" for event in found.events)
    whole, _ = trace(2, "many", HEDDLE_TRACE_SIZE="16m")
    assert whole.other["lost_events"] == 0
    # Sleeps differ from run to run; calls do not.
    assert abs(kept + found.other["lost_events"] - sum(event["ph"] == "X" for event in whole.events)) < 5000
    assert len(whole.of("shmem_long_p")) == 2 * 20000


def test_blind_puts_are_samples(trace):
    found, _ = trace(2, "blind")
    for pe in range(2):
        calls = [event["args"]["call"] for event in found.of("shmem_long_p") if event["pid"] == pe]
        assert calls == sorted(set(calls)) and 60 < len(calls) < 2000
    assert found.other["lost_events"] == 0


def test_a_program_pauses_its_trace(trace):
    found, _ = trace(2, "paused")
    assert not found.of("shmem_long_atomic_inc")
    assert len(found.of("shmem_long_atomic_add")) == 2 * 3


def test_a_trace_beside_a_profile(trace, tmp_path):
    found, err = trace(2, "rounds", options=("--trace", "t.json", "--profile=p.json"))
    assert "heddle profile of traced: 2 PEs" in err and (tmp_path / "p.json").exists()
    assert len(found.of("shmem_long_put_signal")) == 2 * ROUNDS


def test_bad_names_and_settings(run):  # noqa: F811
    _, err = run("traced", 2, "paused", options=("--trace", ""), status=2)
    assert "oshrun: --trace: the name of a file is missing: right would be --trace FILE" in err
    _, err = run("traced", 2, "paused", options=("--trace", "no/such/folder"))
    assert "no/such/folder cannot be written: No such file or directory" in err
    _, err = run("traced", 2, "paused", options=("--trace", "t.json"), HEDDLE_RACES="1", status=1)
    assert "HEDDLE_TRACE: HEDDLE_CHAOS or HEDDLE_RACES is set, too" in err
    found, err = run("traced", 2, "paused", options=(), file="heddle-trace.json", HEDDLE_TRACE="yes")
    assert found["otherData"]["pes"] == 2
    found, err = run("traced", 2, "paused", options=(), file="no", HEDDLE_TRACE="no")
    assert found is None and "heddle trace" not in err


def test_one_pe_without_the_setting_is_named(run, programs, tmp_path):  # noqa: F811
    script = programs / "some"
    script.write_text('#!/bin/sh\n[ "$HEDDLE_PE" = 1 ] && unset HEDDLE_TRACE\nexec "$(dirname "$0")/traced" "$@"\n')
    script.chmod(0o755)
    _, err = run("some", 3, "paused", options=("--trace", "t.json"), status=1)
    assert "is traced (HEDDLE_TRACE), and PE 1 is not: right would be the same on all PEs" in err
    script.write_text('#!/bin/sh\n[ "$HEDDLE_PE" = 1 ] && export HEDDLE_TRACE_SIZE=1m\n'
                      'exec "$(dirname "$0")/traced" "$@"\n')
    _, err = run("some", 3, "paused", options=("--trace", "t.json"), status=1)
    assert "HEDDLE_TRACE_SIZE is" in err and "right would be one value for all" in err

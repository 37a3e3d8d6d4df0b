"""Shared by all tests: which OpenSHMEM to test with, and run folders made without one.

The implementation is named by SHMEM_MT_TEST_OSHCC and SHMEM_MT_TEST_OSHRUN (a command), else oshcc and oshrun on PATH.
Tests that need one are skipped, with the reason, where there is none.
"""

import dataclasses
import fcntl
import hashlib
import itertools
import json
import os
import shlex
import shutil
import subprocess
import time

import pytest
from shmem_mt import sources
from shmem_mt.cli import main
from shmem_mt.runner.process import run_program
from shmem_mt.targets import build, fabrics, mpi, openshmem, ucx
from shmem_mt.targets.libraries import Heddle


def pytest_configure(config):
    config.addinivalue_line("markers", "long: a whole run or report, ten seconds and more: not in make test")


def pytest_collection_modifyitems(items):
    """SHMEM_MT_TEST_SAMPLE=N: of the parameters that a test is run with, one in N; those that take long not at all."""
    one_in, seen = int(os.environ.get("SHMEM_MT_TEST_SAMPLE", "1")), {}
    if one_in > 1:
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    for item in items:
        seen[item.nodeid.split("[")[0]] = place = seen.get(item.nodeid.split("[")[0], -1) + 1
        item.is_in_sample = place % one_in == 0
    items[:] = [item for item in items if item.is_in_sample]


@pytest.fixture(scope="session")
def wrappers():
    """(oshcc, oshrun command) of the implementation under test."""
    oshcc = os.environ.get("SHMEM_MT_TEST_OSHCC", "oshcc")
    oshrun = os.environ.get("SHMEM_MT_TEST_OSHRUN", "oshrun")
    if not shutil.which(oshcc) or not shutil.which(shlex.split(oshrun)[0]):
        # Who names them wants to see them tested: a skip would pass.
        named = "SHMEM_MT_TEST_OSHCC" in os.environ or "SHMEM_MT_TEST_OSHRUN" in os.environ
        (pytest.fail if named else pytest.skip)(f"{oshcc} or {oshrun} is no program: SHMEM_MT_TEST_OSHCC, _OSHRUN")
    return oshcc, oshrun


class _CompiledOnDemand(dict):
    """The programs of an implementation; each is compiled when it is first asked for, once for all sessions of tests
    that share the directory."""

    def __init__(self, implementation, directory):
        super().__init__()
        self._implementation, self._directory = implementation, directory
        os.makedirs(directory, exist_ok=True)
        self._build([])

    def __missing__(self, program):
        failures = self._build([program])
        assert not failures, failures
        return self[program]

    def _build(self, programs):
        with open(os.path.join(self._directory, "lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return build.build(self._implementation, self._directory, programs, print)


def compiled_alone(implementation, tmp_path_factory, source):
    """The implementation with one program, which is compiled for these tests: the file of `source`, by its stem."""
    binary = str(tmp_path_factory.mktemp(source.stem) / source.stem)
    problem = build.compile_program(implementation, str(source), binary)
    assert problem is None, problem
    return dataclasses.replace(implementation, binaries={source.stem: binary})


def _directory_of_programs(oshcc, tmp_path_factory):
    """Of the folder SHMEM_MT_TEST_PROGRAMS, what belongs to the headers that the wrapper compiles with."""
    shared = os.environ.get("SHMEM_MT_TEST_PROGRAMS")
    if not shared:
        return str(tmp_path_factory.mktemp("build"))
    digest = hashlib.sha256()
    for folder, _, names in sorted(os.walk(os.path.join(os.path.dirname(oshcc), "..", "include"))):
        for name in sorted(names):
            with open(os.path.join(folder, name), "rb") as file:
                digest.update(file.read())
    return os.path.join(shared, digest.hexdigest()[:16])


def _directory_of_references(tmp_path_factory, name):
    shared = os.environ.get("SHMEM_MT_TEST_PROGRAMS")
    return os.path.join(shared, name) if shared else str(tmp_path_factory.mktemp(name))


@pytest.fixture(scope="session")
def implementation(wrappers, tmp_path_factory):
    """The implementation under test, its programs compiled once a session."""
    found = openshmem.resolve([wrappers[0]], [wrappers[1]], ["test"])[0]
    found.binaries = _CompiledOnDemand(found, _directory_of_programs(wrappers[0], tmp_path_factory))
    return found


@pytest.fixture(scope="session")
def heddle(implementation):
    """The implementation under test, where it is Heddle and can use a network."""
    plugin = os.path.join(os.path.dirname(implementation.oshrun[0]), "..", "lib", "libheddle_ucx.so")
    if not isinstance(implementation, Heddle) or not os.path.exists(plugin):
        pytest.skip("this is not Heddle with its UCX plugin")
    return implementation


@pytest.fixture(scope="session")
def mpi_reference(tmp_path_factory):
    """The MPI on PATH."""
    found, missing = mpi.find()
    if missing:
        pytest.skip(missing)
    found.binaries = _CompiledOnDemand(found, _directory_of_references(tmp_path_factory, "mpi"))
    return found


@pytest.fixture(scope="session")
def bare_ucx(heddle, tmp_path_factory):
    """Bare UCX, its programs started by the implementation under test."""
    found, missing = ucx.find(heddle)
    if missing:
        pytest.skip(missing)
    found.binaries = _CompiledOnDemand(found, _directory_of_references(tmp_path_factory, "ucx"))
    return found


@pytest.fixture
def shmem_mt(capsys):
    """Calls the command line in this process: (exit status, stdout, stderr)."""

    def call(*arguments):
        status = main([str(a) for a in arguments])
        output = capsys.readouterr()
        return status, output.out, output.err

    return call


def run_points(implementation, tmp_path, program, pes, threads, *arguments):
    """(points, what was skipped) of one quick program start that must go well."""
    points = []
    quick = ["--samples", "1", "--sample-ms", "0.1", "--threads", str(threads), *arguments]
    command = implementation.launch_command(program, pes, threads, quick)
    outcome = run_program(command, str(tmp_path / "log.txt"), 600, points.append, implementation.exit_status_counts)
    assert outcome.ok, outcome.problem
    return points, {skip["what"] for skip in outcome.skips}


def app_events(implementation, program, pes, threads, *arguments, fabric=fabrics.ON_NODE, hosts=None):
    """What a short start of a mini-app, which must go well, prints."""
    quick = ["--samples", "1", "--sample-ms", "0.1", "--point-ms", "1", "--threads", str(threads)]
    quick += map(str, arguments)
    command = implementation.launch_command(program, pes, threads, quick, fabric, hosts=hosts)
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert not implementation.exit_status_counts or done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert any(event["event"] == "done" for event in found), done.stderr
    return found


def app_verdicts(implementation, program, pes, threads, *arguments, **over):
    """{form: its verdict} of such a start."""
    found = app_events(implementation, program, pes, threads, *arguments, **over)
    return {event["form"]: event for event in found if event["event"] == "verdict"}


def compiled_without(implementation, tmp_path, program, *features, flags=()):
    """The implementation with that program alone, compiled as the probe would have it for a library without them, and
    with these flags of the compiler."""
    left = {**implementation.features, **dict.fromkeys(features, False)}
    without = dataclasses.replace(implementation, features=left, binaries={})
    without.binaries[program] = str(tmp_path / program)
    problem = build.compile_program(without, sources.source_of(program), without.binaries[program], flags)
    assert problem is None, problem
    return without


def make_point(label="A", benchmark="message-rate", metric="rate", unit="messages/s", scale=1.0, valid=True, **params):
    """A raw point with 8 samples around `scale`."""
    every = {
        "pes": 2,
        "threads": 1,
        "op": "p",
        "oversubscribed": False,
        "size_bytes": 8,
        "placement": "heap",
        "context": "default",
        "sync": "quiet",
    }
    samples = [scale * (1 + 0.01 * wobble) for wobble in (-3, 2, -1, 0, 1, -2, 3, 0.5)]
    return {
        "benchmark": benchmark,
        "params": {**every, **params},
        "metric": metric,
        "unit": unit,
        "samples": samples,
        "valid": valid,
        "label": label,
        "start_spread_s": 1e-6,
    }


def sample_points(label, faster):
    """Points for every chart; `faster` scales rates up and times down."""
    for placement in ("heap", "static"):
        for op in ("p", "put", "g", "get", "atomic_add", "plain_store", "plain_load"):
            context = "none" if op.startswith("plain") else "default"
            yield make_point(label, op=op, scale=7e7 * faster, placement=placement, context=context)
    for size in (64, 512, 4096):
        yield make_point(label, op="put", scale=6e7 * faster, size_bytes=size)
    for context in ("default", "private"):
        yield make_point(label, scale=9e7 * faster, threads=2, context=context, oversubscribed=True)
    for batch in (1, 8, 512):
        yield make_point(label, metric="consumed_rate", scale=6e7 * faster, batch=batch, sync="self_flag")
    latency = dict(benchmark="latency", metric="latency", unit="s")
    for size in (8, 1024):
        trip = dict(op="put_round_trip", sync="fence_flag", size_bytes=size, cache="hot")
        yield make_point(label, **latency, **trip, touch="read", scale=4e-7 / faster)
        yield make_point(label, **latency, **trip, touch="write-only", scale=2e-7 / faster)
    for owner, scale in (("handed-over", 1e-7), ("contended", 1e-8), ("warm", 1e-9)):
        yield make_point(label, **latency, op="get", sync="blocking", owner=owner, cache="hot", scale=scale / faster)
    yield make_point(label, **latency, op="put_round_trip", sync="last_word", scale=1e-7 / faster)
    for pes in (2, 8):
        yield make_point(
            label, **latency, op="barrier_all", sync="barrier_all", pes=pes, size_bytes=0, scale=1e-6 / faster
        )
    for metric in ("cpu_time", "wake_latency"):
        yield make_point(
            label,
            benchmark="latency",
            metric=metric,
            unit="s",
            op="wait_burn",
            sync="wait_until",
            scale=1 / faster,
            sleep_s=1.0,
        )
    bandwidth = dict(benchmark="bandwidth", metric="bandwidth", unit="bytes/s")
    for size in (1024, 1 << 20):
        for touch, scale in (("read", 1e9), ("write-only", 1e10)):
            sent = dict(op="put", size_bytes=size, touch=touch, cache="hot")
            yield make_point(label, **bandwidth, **sent, scale=scale * faster)
        yield make_point(label, **bandwidth, op="memcpy", size_bytes=size, scale=4e10, context="none", sync="none")
    for sync in ("quiet", "request_merged"):
        yield make_point(label, benchmark="requests", op="put", sync=sync, scale=5e7 * faster)
    for setting in ("default", "channels:2"):
        known = dict(benchmark="completion", op="put", sync="quiet", size_bytes=1 << 16, threads=2, setting=setting)
        yield make_point(label, **known, metric="time", unit="s", scale=1e-5 / faster)
        yield make_point(label, **known, metric="stream_bandwidth", unit="bytes/s", scale=1e9 * faster)
    for policy in ("manual", "auto"):
        hidden = dict(benchmark="overlap", op="put", sync="quiet", size_bytes=1 << 20, policy=policy)
        for part in ("communication", "compute", "total", "post", "inside"):
            yield make_point(label, **hidden, metric="time", unit="s", part=part, scale=1e-5 / faster)
        yield make_point(label, **hidden, metric="overlap", unit="%", part="overlap", scale=40 * faster)
        yield make_point(label, **hidden, metric="slowdown", unit="x", part="compute", scale=2 / faster)
    for op in ("team_sync", "broadcast"):
        time = dict(benchmark="collectives-mt", metric="latency", unit="s", sync="blocking", size_bytes=64)
        yield make_point(label, **time, op=op, threads=2, scale=1e-6 / faster)
    for context in ("default", "private"):
        time = dict(benchmark="halo", metric="time", unit="s", op="exchange", grid="2x1x1", threads=2)
        yield make_point(label, **time, sync="quiet_barrier", context=context, scale=1e-5 / faster)
        rate = dict(benchmark="alltoallv", metric="bandwidth", unit="bytes/s", op="put", threads=2)
        yield make_point(label, **rate, sync="quiet_barrier", context=context, scale=1e10 * faster)
    yield from sample_wait(label, faster)
    for op in ("blocking", "auto"):
        cg = {"benchmark": "cg", "op": op, "class": "S"}
        yield make_point(label, **cg, metric="rate", unit="iterations/s", part="total", scale=2e4 * faster)
        for part in ("total", "compute", "wait"):
            yield make_point(label, **cg, metric="time", unit="s", part=part, scale=1e-2 / faster)
        yield make_point(label, **cg, metric="communication", unit="%", part="communication", scale=30)
    yield from sample_startup(label, faster)
    yield from sample_collectives(label, faster)
    yield from sample_patterns(label, faster)


def sample_patterns(label, faster):
    for (pes, threads), sync in itertools.product(((2, 1), (1, 2)), ("quiet", "fence_flag")):
        own = dict(benchmark="patterns", pes=pes, threads=threads, cores=2, sync=sync, level="multiple")
        for context in ("default", "private") if threads > 1 else ("default",):
            through = dict(metric="throughput", unit="bytes/s", op="halo3d", context=context)
            yield make_point(label, **own, **through, scale=1e9 * threads * faster)
            yield make_point(label, **own, metric="time", unit="s", op="latency", context=context, scale=1e-6 / faster)


def sample_wait(label, faster):
    for setting in ("default", "spin"):
        for metric, unit in (("wake_latency", "s"), ("cpu_time", "s"), ("cpu_share", "%")):
            waited = dict(benchmark="wait", metric=metric, unit=unit, op="wait_until", sync="wait_until", wait_s=1)
            yield make_point(label, **waited, setting=setting, scale=1e-3 / faster)
    cost = dict(benchmark="wait", op="barrier_cost", sync="barrier_all", size_bytes=0, pes=16, setting="default")
    for part in ("barrier", "switch"):
        yield make_point(label, **cost, metric="time", unit="s", part=part, scale=1e-6 / faster)
    yield make_point(label, **cost, metric="switches", unit="x", part="barrier", scale=1 / faster)
    for waiters in (0, 256):
        trip = dict(benchmark="idle-waiters", op="round_trip", sync="last_word", waiters=waiters, unit="s")
        for metric in ("time", "cpu_time"):
            yield make_point(label, **trip, metric=metric, scale=1e-6 / faster)


def sample_startup(label, faster):
    for pes in (2, 8):
        for op, seconds in (("init", 1e-2), ("first_barrier", 1e-4), ("finalize", 1e-3)):
            time = dict(benchmark="startup", metric="time", unit="s", op=op, pes=pes)
            yield make_point(label, **time, scale=seconds / faster)
        for pe in ("median", "largest"):
            memory = dict(benchmark="startup", metric="memory", unit="bytes", op="after_init", pes=pes, pe=pe)
            yield make_point(label, **memory, scale=2e5 / faster)


def sample_collectives(label, faster):
    """Every fcollect takes ten times its floor when `faster` is 1."""
    common = dict(benchmark="collectives", team="world", sync="blocking")
    time = dict(metric="latency", unit="s", **common)
    for pes in (2, 8):
        yield make_point(label, **time, op="barrier_all", pes=pes, size_bytes=0, copied_bytes=0, scale=1e-6 / faster)
        for size in (8, 1024, 1 << 20):
            copied = dict(pes=pes, size_bytes=size)
            scale = 10 * pes * size / 1e9 / faster
            yield make_point(label, **time, **copied, op="fcollect", copied_bytes=pes * size, scale=scale)
            yield make_point(
                label, **common, **copied, metric="bandwidth", unit="bytes/s", op="copy", copied_bytes=size, scale=1e9
            )


@pytest.fixture
def run_folder(tmp_path):
    """Makes a run folder: run_folder("name", {label: speed})."""
    from shmem_mt.runner.results import RunFolder

    def make(name, speeds):
        folder = RunFolder.open(str(tmp_path / name))
        for number in range(6):
            for label, faster in speeds.items():
                for point in sample_points(label, faster):
                    folder.keep_point({**point, "round": number})
        folder.write_results()
        folder.write_json(
            "machine.json",
            {
                "machine": {"cpu": "Test CPU <1>", "cores": 2},
                "implementations": [],
                "settings": {"profile": "quick"},
            },
        )
        return folder.directory

    return make


def read_results(directory):
    with open(os.path.join(directory, "results.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class Clock:
    """What a session, and what conducts it, read of the module time."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    strftime = staticmethod(time.strftime)

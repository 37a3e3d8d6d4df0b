"""Starts programs over the metronome, an OpenSHMEM in virtual time, and says what they ought to report.

SHMEM_MT_TEST_METRONOME names the folder of the build that has it; tests are skipped without.
"""

import os

import pytest
from shmem_mt.runner.process import run_program

# Nanoseconds of each operation, and of each byte (settings.hpp). No sum of few of them is another, or twice another.
COSTS = {
    "put": (700, 0.25),
    "put_nbi": (310, 0.125),
    "get": (2300, 0.5),
    "get_nbi": (370, 0),
    "atomic": (830, 0),
    "fetch": (2900, 0),
    "signal": (130, 0),
    "flight": (1100, 0),
    "quiet": (170, 0),
    "fence": (90, 0),
    "test": (50, 0),
    "request": (270, 0),
    "post": (410, 0),
    "wait": (230, 0),
    "barrier": (6100, 0),
    "sync": (4700, 0),
    "collective": (9700, 2),
    "init": (31e6, 0),
    "finalize": (17e6, 0),
    "look": (20, 0),
    "awake": (50e3, 0),
    "skew": (0, 0),
    "thread": (0, 0),
    "late": (5e6, 0),
    "compute": (0.5, 0),
    "pipe": (1900, 0),
}

TOLERANCE = 0.02


class Times:
    """The seconds of each operation: ``times.put(64)``. `scale` makes all of them longer, `changed` some."""

    def __init__(self, scale=1, **changed):
        self.costs = {name: (scale * base, scale * byte) for name, (base, byte) in COSTS.items()}
        self.costs |= changed

    def __getattr__(self, name):
        if name not in COSTS:
            raise AttributeError(name)
        base, byte = self.costs[name]
        return lambda size=0: 1e-9 * (base + byte * size)

    def told(self):
        """As the environment has it."""
        return ",".join(f"{name}={base:.17g}+{byte:.17g}" for name, (base, byte) in self.costs.items())


def built(name):
    """The path of one of its programs."""
    folder = os.environ.get("SHMEM_MT_TEST_METRONOME")
    path = os.path.join(folder or "", name)
    if not folder:
        pytest.skip("SHMEM_MT_TEST_METRONOME does not name the folder of a build that has the metronome")
    assert os.path.exists(path), "SHMEM_MT_TEST_METRONOME names a folder without the metronome"
    return path


def start(tmp_path, program, times, *arguments, pes=2, threads=1, sample_ms=0.3, **environment):
    """(outcome, points) of a program start. Variables of the environment besides METRONOME: METRONOME_FAULT="..."."""
    points = []
    told = [f"{name}={value}" for name, value in {"METRONOME": times.told(), **environment}.items()]
    options = ["--samples", "1", "--sample-ms", str(sample_ms), "--threads", str(threads), *arguments]
    command = ["env", *told, built("oshrun"), "-n", str(pes), built(program), *options]
    return run_program(command, str(tmp_path / "log.txt"), 600, points.append, True), points


def measure(tmp_path, program, times, *arguments, **how):
    """The points of a program start that must go well."""
    outcome, points = start(tmp_path, program, times, *arguments, **how)
    assert outcome.ok, (outcome.problem, (tmp_path / "log.txt").read_text())
    assert points
    return points


def block_bytes(mean, source, dest, seed=1):
    """What PE `source` puts to PE `dest` in the benchmark alltoallv (programs/common/validation.hpp, pattern_word)."""
    ones = (1 << 64) - 1
    x = (seed ^ source << 32 ^ dest) + 0x9E3779B97F4A7C15 & ones
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & ones
    x = (x ^ x >> 27) * 0x94D049BB133111EB & ones
    return 8 * ((x ^ x >> 31) % (2 * (mean // 8) + 1))


def named(point):
    """What tells the points of these tests apart."""
    params = point["params"]
    names = ("op", "sync", "touch", "owner", "size_bytes", "batch", "team", "wait_s", "waiters", "part",
             "rule", "outstanding")
    return (point["metric"], *(params[name] for name in names if name in params))


def assert_true(points, truth):
    """Each point is valid, and each of its samples is what truth(point) says."""
    wrong = []
    for point in points:
        right = truth(point)
        off = max((sample / right - 1 for sample in point["samples"]), key=abs)
        if abs(off) > TOLERANCE or point["valid"] is not True:
            wrong.append(f"{named(point)}: off by {100 * off:.1f} % of {right:.4g}, valid: {point['valid']}")
    assert not wrong, "\n".join(wrong)

"""A run folder: what the programs printed, and what is made of it.

    DIR/results.jsonl   one object a point: benchmark, params, metric, unit, samples, median, interval, valid, ...
    DIR/raw.jsonl       one object a point and round, as it came; appended at once, so nothing done is lost
    DIR/jobs.jsonl      one object a finished program start; what a resumed run skips. Of mini-apps `verdicts`, what the
                        check of each form found, and `tuned`, what a form chose ahead of its samples
    DIR/lock            who writes the folder (lock.py)
    DIR/machine.json    the machine, the implementations and the settings
    DIR/command.txt     the commands, one a line, with the time
    DIR/logs/, build/   what compilers and programs said on stderr; the compiled programs

A point is known by its label, benchmark, metric and params. When a round was measured twice (a job was cut off and
started again), the later one counts. params.fabric says over what it was measured; points of older folders, which have
none, are on-node.

Of a point's samples `round_sizes` belong to each of `rounds`, which are its `starts`. `median` and `interval` are those
of the starts' values; `confidence` is 0.95, or null where so few starts have no more than a range (statistics.py).
`durations` are p50, p99, p999 and max of single operations, of all PEs that time and all starts, where they were
stamped. `operations_per_sample` has a number a round, which each start finds for itself. `modes` is there where
operations or starts fall into more than one (distributions.py). `clock_error_s`, of several hosts, is how far their
clocks may have been apart. `voluntary_switches_per_s` and `involuntary_switches_per_s` are context switches of the
thread that is timed, where it counts them: the mean of the starts. records.py has the types of all files but the logs.
"""

import json
import os

from shmem_mt import distributions
from shmem_mt.errors import UserError
from shmem_mt.runner import records
from shmem_mt.runner.lock import lock
from shmem_mt.statistics import (
    CONFIDENCE,
    FEWEST_STARTS,
    is_settled,
    median_interval,
    ratio_interval,
    start_values,
    starts_to_settle,
)
from shmem_mt.targets import fabrics

# Facts of machine.json without which figures are those of another machine; one that is not known is not compared.
MACHINE = (
    *("cpu", "cpu_family_model", "cores", "threads_per_core", "virtual", "caches", "numa_nodes", "microcode"),
    *("governor", "boost", "huge_pages", "mitigations", "cpu_quota", "kernel", "environment"),
)
LINES = ("raw.jsonl", "jobs.jsonl")  # what a folder is read from
OF_EVERY_RUN = (*LINES, "results.jsonl", "lock")  # a folder with none of these is somebody else's
SWITCHES = ("voluntary_switches_per_s", "involuntary_switches_per_s")
CORES = ("origin_cores", "target_cores")


def point_key(point):
    """What tells two points apart, as a string."""
    return json.dumps([point["label"], point["benchmark"], point["metric"], point["params"]], sort_keys=True)


def _with_fabric(point):
    """The point with a fabric."""
    return {**point, "params": {**point["params"], "fabric": point["params"].get("fabric", fabrics.ON_NODE.name)}}


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def _read_lines(path, tolerate_cut_end=False):
    """The objects of a file of JSON lines, checked. Raises UserError that names file and line.

    `tolerate_cut_end`: a last line without its newline is dropped (the writer was killed in the middle of it).
    """
    lines = _read(path).split("\n")
    if lines[-1] and tolerate_cut_end:
        lines.pop()
    objects = []
    for number, line in enumerate(lines, 1):
        try:
            objects += [records.parse(os.path.basename(path), line)] if line.strip() else []
        except ValueError as error:
            raise UserError(f"{path}, line {number}: {error}") from error
    return objects


def load_results(directory):
    """The points of DIR/results.jsonl, checked. Raises UserError."""
    path = os.path.join(directory, "results.jsonl")
    if not os.path.isdir(directory):
        raise UserError(f"{directory}: no such run folder")
    if not os.path.exists(path):
        raise UserError(f"{directory}: not a run folder (it has no results.jsonl)")
    points = _read_lines(path)
    if not points:
        raise UserError(f"{path}: no results yet")
    return [_with_interval(_with_fabric(point)) for point in points]


def _with_interval(point):
    """The point as `merge_rounds` makes it today; older folders have intervals of another kind."""
    return point if "starts" in point else {**point, **_summary(rounds_of(point))}


def load_machine(directory):
    """The contents of DIR/machine.json, or {} when the folder has none. Raises UserError when it is damaged."""
    path = os.path.join(directory, "machine.json")
    if not os.path.exists(path):
        return {}
    try:
        return records.parse("machine.json", _read(path))
    except ValueError as error:
        raise UserError(f"{path}: {error}") from error


def load_commands(directory):
    """The commands that made the run, without their times; none where the folder does not say."""
    path = os.path.join(directory, "command.txt")
    return [line.partition(" ")[2] for line in _read(path).splitlines()] if os.path.exists(path) else []


def unlike(what, keys, one, other):
    """In which of these keys two dicts differ, as texts; what either does not have is not compared."""
    for key in keys:
        if one.get(key) is not None and other.get(key) is not None and one[key] != other[key]:
            yield f"{what}, {key.replace('_', ' ')}: {_short(one[key])} and {_short(other[key])}"


def _short(value):
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def rounds_of(point):
    """The samples of a result, as one list a round."""
    samples, rounds = point["samples"], []
    for size in point.get("round_sizes") or [len(samples)]:
        rounds.append(samples[:size])
        samples = samples[size:]
    return rounds


def numbered_rounds(point):
    """The samples of a result by the number of their round."""
    rounds = rounds_of(point)
    return dict(zip(point.get("rounds") or range(len(rounds)), rounds))


def why_invalid(point):
    """What makes the point invalid; older folders do not say what of it."""
    return point.get("why") or "the bytes are wrong, or the check failed"


def _common_rounds(above, below, paired):
    """The numbers of the rounds that both have, which alone count where they were interleaved (`paired`)."""
    theirs = numbered_rounds(below)
    return [number for number in numbered_rounds(above) if number in theirs] if paired else []


def starts_of_ratio(above, below, paired):
    """How many values their ratio is made of: the pairs, or the starts of the one that has fewer."""
    return len(_common_rounds(above, below, paired)) or min(starts_of(above), starts_of(below))


def ratio_of_results(above, below, paired):
    """statistics.ratio_interval of two results. `paired`: they were interleaved, so that the rounds count that both
    have, by their number."""
    rounds_above, rounds_below = numbered_rounds(above), numbered_rounds(below)
    common = _common_rounds(above, below, paired)
    if common:
        return ratio_interval([rounds_above[n] for n in common], [rounds_below[n] for n in common], True)
    return ratio_interval(list(rounds_above.values()), list(rounds_below.values()), False)


def starts_of(point):
    """How many program starts the point was measured in."""
    return point.get("starts") or len(rounds_of(point))


class RunFolder:
    """Writes a run folder. `open` continues one that exists, and is `read` with `go_on`. No other process can read or
    open it as long as this object lives."""

    def __init__(self, directory):
        self.directory = directory
        self._lock = lock(directory)
        self._rounds = {}  # point key -> {round: raw point}
        self._results = {}  # point key -> result made of them
        self._done = {}  # job key -> job object

    @classmethod
    def open(cls, directory):
        """Creates the folder, or reads what an earlier run left in it. Raises UserError."""
        folder = cls.read(directory)
        folder.go_on()
        return folder

    @classmethod
    def read(cls, directory):
        """Creates the folder, or reads what an earlier run left in it, and alters none of that. Raises UserError, also
        where another process is at it."""
        try:
            os.makedirs(directory, exist_ok=True)
            found = set(os.listdir(directory))
        except OSError as error:
            raise UserError(f"cannot make the run folder {directory}: {error.strerror}") from error
        if found and found.isdisjoint(OF_EVERY_RUN):
            raise UserError(f"{directory} is there and is no run folder; use another --out")
        folder = cls(directory)
        for name in LINES:
            for value in folder._lines(name):
                folder._remember(name, value)
        return folder

    def go_on(self):
        """Makes the folder that was read ready for more: drops cut ends, and merges rounds as this version does."""
        os.makedirs(self.path("logs"), exist_ok=True)
        for name in LINES:
            if os.path.exists(self.path(name)):
                _drop_cut_end(self.path(name))
        self.write_results()

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def has_job(self, key):
        """True when that program start has been completed with success."""
        return self._done.get(key, {}).get("status") == "ok"

    def seconds_of(self, key):
        """How long that program start took when it last ended well; None where it has not."""
        return self._done[key].get("seconds") if self.has_job(key) else None

    def results_of(self, key):
        """The keys of the results that this program start gave values to, as its job says; the jobs of older folders
        do not."""
        return [result for result in self._done.get(key, {}).get("results", ()) if result in self._rounds]

    def keep_point(self, point):
        """Appends one raw point (it carries its label and round); returns the key of its result. Merges nothing, for
        the program may still be measuring."""
        self._append("raw.jsonl", point)
        return self._remember("raw.jsonl", point)

    def is_settled(self, key, half_width):
        """statistics.is_settled of a point's starts."""
        return is_settled(start_values(rounds_of(self._merged(key))), half_width)

    def starts_to_settle(self, key, half_width):
        """statistics.starts_to_settle of a point's starts."""
        return starts_to_settle(start_values(rounds_of(self._merged(key))), half_width)

    def result(self, key):
        """The merged result of that key."""
        return self._merged(key)

    def add_point(self, point):
        """Appends one raw point and returns the merged result."""
        return self._merged(self.keep_point(point))

    def add_job(self, job):
        """Notes a finished program start: {key, status, seconds, results, ...}."""
        self._append("jobs.jsonl", job)
        self._remember("jobs.jsonl", job)

    def results(self):
        """All merged results, in the order in which the points first came."""
        return [self._merged(key) for key in self._rounds]

    def write_results(self):
        """Rewrites results.jsonl from everything so far; never leaves half a file."""
        if self._rounds:
            _rewrite(self.path("results.jsonl"), self.results())

    def write_json(self, name, value):
        temporary = self.path(name + ".new")
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(value, file, indent=2)
            file.write("\n")
        os.replace(temporary, self.path(name))

    def _lines(self, name):
        path = self.path(name)
        return _read_lines(path, tolerate_cut_end=True) if os.path.exists(path) else []

    def _append(self, name, value):
        with open(self.path(name), "a", encoding="utf-8") as file:
            file.write(json.dumps(value) + "\n")

    def _remember(self, name, value):
        if name == "jobs.jsonl":
            self._done[value["key"]] = value
            return value["key"]
        value = _with_fabric(value)
        key = point_key(value)
        self._rounds.setdefault(key, {})[value["round"]] = value
        self._results.pop(key, None)
        return key

    def _merged(self, key):
        if key not in self._results:
            self._results[key] = merge_rounds([point for _, point in sorted(self._rounds[key].items())])
        return self._results[key]


def merge_rounds(points):
    """One result of the raw points of all rounds. Valid only when every round was; null when none was checked."""
    rounds = [point["samples"] for point in points]
    numbers = [point.get("round", place) for place, point in enumerate(points)]
    samples = [sample for samples in rounds for sample in samples]
    checks = [point["valid"] for point in points]
    valid = None if all(check is None for check in checks) else all(checks)
    first = points[0]
    result = {name: first[name] for name in ("benchmark", "params", "metric", "unit")}
    result.update(samples=samples, **_summary(rounds), valid=valid, label=first["label"])
    result.update(round_sizes=[len(r) for r in rounds], rounds=numbers)
    operations = [point.get("operations_per_sample") for point in points]
    if any(operations):
        result["operations_per_sample"] = operations
    spreads = [p["start_spread_s"] for p in points if isinstance(p.get("start_spread_s"), (int, float))]
    if spreads:
        result["start_spread_s"] = sorted(spreads)[len(spreads) // 2]
    why = dict.fromkeys(point["why"] for point in points if point.get("why"))
    if why:
        result["why"] = "; ".join(why)
    preempted = [point["preempted"] for point in points if "preempted" in point]
    if preempted:
        result["preempted"] = sum(preempted)
    errors = [point["clock_error_s"] for point in points if "clock_error_s" in point]
    if errors:
        result["clock_error_s"] = max(errors)
    for name in (*SWITCHES, *CORES):
        rates = [point[name] for point in points if name in point]
        if rates:
            result[name] = sum(rates) / len(rates)
    result.update(_distribution(points, rounds))
    result["staggered"] = any(point.get("staggered") for point in points)
    result["binding"] = " or ".join(dict.fromkeys(point["binding"] for point in points if point.get("binding")))
    return result


def _distribution(points, rounds):
    """`durations`, the tails of the single operations of all starts, where some were stamped; `modes`, where operations
    or starts have more than one: [[value, share], ...]."""
    stamped = [tuple(map(tuple, point["durations_ns"])) for point in points if point.get("durations_ns")]
    found: dict = {}
    if stamped:
        longest = max(point["longest_s"] for point in points if point.get("durations_ns"))
        found["durations"] = distributions.tails(distributions.merged(stamped), longest)
    several = [modes for modes in map(distributions.modes_of_operations, stamped) if len(modes) > 1]
    modes = distributions.modes_of_starts([float(value) for value in start_values(rounds)])
    if 2 * len(several) > len(stamped):
        modes = several[len(several) // 2]
    if modes:
        found["modes"] = [list(mode) for mode in modes]
    return found


def _summary(rounds):
    median, low, high = median_interval(rounds)
    confidence = CONFIDENCE if len(rounds) >= FEWEST_STARTS else None
    return {"median": median, "interval": [low, high], "confidence": confidence, "starts": len(rounds)}


def _drop_cut_end(path):
    """Of a file of JSON lines what stands behind its last newline."""
    with open(path, "rb+") as file:
        file.truncate(file.read().rfind(b"\n") + 1)


def _rewrite(path, objects):
    temporary = path + ".new"
    with open(temporary, "w", encoding="utf-8") as file:
        for value in objects:
            file.write(json.dumps(value) + "\n")
    os.replace(temporary, path)

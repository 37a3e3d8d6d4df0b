"""`shmem-mt run`: compile, measure in interleaved rounds, keep everything that is done."""

import collections
import contextlib
import math
import os
import random
import shlex
import sys
import tempfile
import time

from shmem_mt import __version__, sources
from shmem_mt.catalogue import catalogue, plan
from shmem_mt.errors import MeasuredOtherwiseError, UserError
from shmem_mt.runner import beside_libraries, dry_run, images, placing, verdicts
from shmem_mt.runner.forecast import COMPILE_S, Forecast
from shmem_mt.runner.points import describe
from shmem_mt.runner.process import last_lines, run_program
from shmem_mt.runner.progress_display import Display
from shmem_mt.runner.results import MACHINE, RunFolder, load_machine, unlike, why_invalid
from shmem_mt.statistics import FEWEST_STARTS
from shmem_mt.targets import build, fabrics, host_facts, machine, openshmem
from shmem_mt.targets import places as places_of

MOST_FAILURES = 2  # a program start that failed this often is not tried again
LIBRARY = ("version", "compiler", "digest")  # what is told of an implementation that figures of one label share
PADDING, MOST_PADDING = "SHMEM_MT_PADDING", 4096  # a variable that nobody reads, and its length
HALF_WIDTH = 0.05  # of an interval, as a share of the median: what is narrower gets no further starts


def run(options, starts_over=plan.starts_over, conductor=None):
    """Runs what the options ask for: 0, or 1 when a program failed or a point is invalid. `starts_over` plans the
    starts, and a conductor chooses which are run (advice/measuring.py)."""
    benchmarks = catalogue.select(options.only)
    catalogue.check_syncs(options.sync)
    catalogue.check_policies(options.policies)
    catalogue.check_computations(options.computation)
    catalogue.check_partners(options.partners)
    study = not options.fabric and all(benchmark.is_study for benchmark in benchmarks)
    names = [fabrics.for_studies().name] if study else options.fabric
    places = places_of.chosen(options.hosts, options.hostfile, options.nodes)
    several = places is not None and len(places.all) > 1
    wanted = fabrics.parse(None if study and several else names, options.link_rate, options.rails, places)
    found = openshmem.resolve(options.oshcc, options.oshrun, options.label, options.library)
    extra: tuple[str, ...] = ("--plant-fault", options.plant_fault) if options.plant_fault else ()
    extra += ("--compute-ratio", f"{options.compute_ratio:g}") if options.compute_ratio else ()
    extra += ("--computation", ",".join(options.computation)) if options.computation else ()
    extra += ("--size", options.size) if options.size else ()
    extra += ("--messages", str(options.messages)) if options.messages else ()
    extra += ("--scale", options.scale) if options.scale else ()
    extra += ("--policies", ",".join(options.policies)) if options.policies else ()
    extra += ("--polls-us", ",".join(map(str, options.polls_us))) if options.polls_us else ()
    extra += ("--outstanding", ",".join(map(str, options.outstanding))) if options.outstanding else ()
    choices = plan.Choices(
        _tuple(options.pes),
        _tuple(options.threads),
        _tuple(options.sizes),
        _tuple(options.sync),
        options.rounds,
        extra,
        _tuple(options.partners),
    )
    catalogue.check_pes(benchmarks, choices.pes)
    facts = machine.facts()
    with contextlib.ExitStack() as stack:
        hosts_of, skips = placing.open_fabrics(wanted, places, stack, not options.dry_run)
        placing.check_templates(found, hosts_of)
        how = (options.profile, benchmarks, choices, facts["cores"])
        a_core = machine.threads_per_core() or 1

        def planned():
            every = (starts_over(f, *how, plan.room_of(f, at, facts["cores"], a_core)) for f, at in hosts_of.items())
            return placing.fitting([start for starts in every for start in starts], hosts_of)

        starts, too_large = planned()
        if not any(i.measures(start) for i in found for start in starts):
            reasons = skips + too_large + placing.unable(found, hosts_of)
            raise UserError("; ".join(reasons) or "nothing to measure with these options")
        references, missing = beside_libraries.find(found, starts, options)
        folder = RunFolder.read(_directory(options, stack))
        seen, unseen = [], []
        if not options.dry_run:
            seen, unseen = placing.look_at_hosts(found, places, starts, hosts_of, folder.directory)
        if not options.fabric and len(seen) > 1 and fabrics.ON_NODE in hosts_of:
            hosts_of = {fabrics.HOSTS: None}  # where the launcher of a template has put the PEs by itself
            starts, too_large = planned()
        if options.partners and fabrics.HOSTS not in hosts_of and not options.dry_run:
            raise UserError(f"--partners {','.join(options.partners)}: PEs are not on several hosts here")
        found += references
        if not options.dry_run:
            _tell_builds(found, folder.directory)
        seed = options.seed or random.randrange(1, 10**9)
        session = Session(folder, found, options.profile, starts, facts, hosts_of, seed, options.rounds is None)
        session.refuse_others()
        if options.dry_run:
            print("\n".join([*dry_run.lines(session), *skips, *too_large, *placing.unable(found, hosts_of)]))
            return 0
        folder.go_on()
        session.write_command(options)
        session.hosts = seen if len(seen) > 1 else session.hosts
        session.skip(*skips, *too_large, *unseen, *placing.unable(found, hosts_of), *missing)
        return session.measure(conductor)


def _directory(options, stack):
    """Of the run; where nothing is to be written and nothing is there, one that is gone with the stack."""
    out = options.out or time.strftime("shmem-mt-%Y%m%d-%H%M%S")
    if options.dry_run and not os.path.isdir(out):
        return stack.enter_context(tempfile.TemporaryDirectory())
    return out


def _tell_builds(found, directory):
    """Gives each implementation the digest of its build. Leaves nothing in the directory, where it compiles."""
    for implementation in found:
        with tempfile.TemporaryDirectory(dir=directory) as scratch:
            implementation.digest = build.library_digest(implementation, os.path.join(scratch, "library"))


def _tuple(values):
    return tuple(values) if values else None


class Session:
    """One invocation of `run` on one folder."""

    def __init__(self, folder, found, profile_name, starts, facts, hosts_of, seed, goes_on):
        self.folder, self.most_s = folder, math.inf  # the seconds after which a start is ended, if the profile has more
        self.before = load_machine(folder.directory) if folder.results() else {}  # what its results were measured with
        self.implementations = found
        self.profile_name = profile_name
        self.profile = plan.PROFILES[profile_name]
        self.starts = starts
        self.hosts_of = hosts_of  # fabric -> hosts
        self.rounds = max(start.rounds for start in starts)
        self.seed = seed  # of the order of starts in each round
        self.goes_on = goes_on  # behind the planned rounds, while the profile's time lasts
        self.keys = {start: self._known(start) for start in starts}  # start -> its points
        self.counters = machine.counters()
        self.facts = facts
        self.hosts = self.before.get("hosts", [])  # facts of those that PEs are put on, where there are several
        self.hand_over = None  # the program that measures it
        self.hand_overs = {}  # round -> seconds, or None
        self.settings = {}
        self.problems = []  # texts
        self.failed = {}  # (label, start) -> how often
        self.skips = {}  # text -> None, in order
        self.forecast = self._learned()
        self.done = {}  # start -> its rounds that are done
        self.wanted = {}  # start -> rounds until its points are settled; None where that cannot be told
        for start in starts if goes_on else ():
            self._count(start)
        self.libraries = {}

    def skip(self, *texts):
        """Something that is not measured, and why; told at the end."""
        self.skips.update(dict.fromkeys(texts))

    def refuse_others(self):
        """Raises MeasuredOtherwiseError where rounds of two things would be merged: the folder has results of other
        programs, another machine or another build of a library, whose digests must be known."""
        now = self._machine()
        told = list(unlike("suite", ("shmem_mt", "programs"), self.before, now))
        told += unlike("machine", MACHINE, self.before.get("machine", {}), now["machine"])
        earlier = _by_label(self.before)
        for one in now["implementations"]:
            told += unlike(one["label"], LIBRARY, earlier.get(one["label"], {}), one)
        if told:
            what = f"{self.folder.directory} was measured with something else ({told[0]})"
            raise MeasuredOtherwiseError(f"{what}; use another --out, or --set-aside")

    def write_command(self, options):
        with open(self.folder.path("command.txt"), "a", encoding="utf-8") as file:
            file.write(time.strftime("%Y-%m-%dT%H:%M:%S%z ") + shlex.join(["shmem-mt", *options.arguments]) + "\n")
        self.settings = {
            "profile": options.profile,
            "fabrics": ", ".join(
                " ".join(filter(None, (f.name, f.link_rate, f.rails and f"rails {f.rails}"))) for f in self.hosts_of
            ),
            **({"hosts": str(self.hosts_of[fabrics.HOSTS])} if self.hosts_of.get(fabrics.HOSTS) else {}),
            "rounds": self.rounds,
            "seed": self.seed,
            "samples_per_round": self.profile.samples,
            "sample_ms": self.profile.sample_ms,
            "oversubscribed_sample_ms": self.profile.oversubscribed_sample_ms,
        }

    def measure(self, conductor=None):
        """The exit status. KeyboardInterrupt is passed on when all that is done has been kept and told."""
        ended = None
        seconds = conductor.budget_s if conductor else self.expected_s()[0]
        with Display([i.label for i in self.implementations], seconds) as self.display:
            try:
                began = time.monotonic()
                self._build()
                if conductor:
                    conductor(self, began)
                else:
                    self._run_jobs([job for job in self.jobs() if job[1].binaries.get(job[2].program)], began)
                    if self.goes_on:
                        self._go_on(began)
            except KeyboardInterrupt as interrupt:
                ended = interrupt
                self.problems.append("interrupted; run the same command with the same --out to go on")
            finally:
                self.folder.write_results()
                self._write_machine()
        status = self._conclude()
        if ended:
            raise ended
        return status

    def run_start(self, number, start, left_s):
        """Runs a start, planned or not, in that round, where that has not been done. `left_s`: until all is done."""
        if start not in self.keys:
            self.starts.append(start)
            self.keys[start] = self._known(start)
        for _, implementation, _ in self._turn(number, start):
            if implementation.binaries.get(start.program):
                self._try(number, implementation, start, left_s)

    def expected_of(self, start):
        """Seconds that a start takes, of all implementations."""
        return sum(self.forecast.seconds(i.label, start) for i in self.implementations if i.measures(start))

    def jobs(self):
        """(round, implementation, start) still to be run. Neighbours are implementations, in turning order."""
        jobs: list[tuple] = []
        for number in range(self.rounds):
            for start in self._shuffled(number):
                jobs += self._turn(number, start) if number < start.rounds else []
        return jobs

    def _turn(self, number, start):
        """(round, implementation, start) of each implementation that has not done it."""
        order = [i for i in self.implementations if i.measures(start)]
        turned = order if number % 2 == 0 else order[::-1]
        return [(number, i, start) for i in turned if not self.folder.has_job(start.key(i.label, number))]

    def _shuffled(self, number):
        """The starts in the order of that round: none always runs behind the same other."""
        order = list(self.starts)
        random.Random(f"{self.seed} {number}").shuffle(order)
        return order

    def _go_on(self, began):
        """Further rounds of the starts that have a point without an interval or with a wide one, while time is left."""
        budget_s = self.profile.budget_s * len(self.hosts_of)
        for number in range(self.profile.most_rounds):
            for start in self._shuffled(number):
                jobs = [job for job in self._turn(number, start) if job[1].binaries.get(start.program)]
                expected_s = sum(self.forecast.seconds(job[1].label, start) for job in jobs)
                left_s = began + budget_s - time.monotonic() - expected_s
                if left_s > 0 and not self._is_settled(start):
                    for _, implementation, _ in jobs:
                        self._try(number, implementation, start, self._left_s([], time.monotonic() - began))

    def _left_s(self, jobs, elapsed_s):
        """Seconds until the end: those of the planned jobs, as far as they fit into the profile's time, and of what
        `_go_on` will do behind them."""
        budget_s = self.profile.budget_s * len(self.hosts_of)
        planned_s = 0.0
        rounds_s: dict[int, float] = collections.defaultdict(float)
        for number, implementation, start in jobs:
            rounds_s[number] += self.forecast.seconds(implementation.label, start)
        for number, round_s in sorted(rounds_s.items()):
            if number >= 2 and elapsed_s + planned_s + round_s >= budget_s:
                break
            planned_s += round_s
        if not self.goes_on:
            return planned_s
        return planned_s + max(0.0, min(budget_s - elapsed_s - planned_s, self._further_s()))

    def expected_s(self):
        """(seconds that the whole run is expected to take, those of them in which programs are compiled)."""
        pairs = ((i, start) for i in self.implementations for start in self.starts if i.measures(start))
        paths = {os.path.join(self._programs_of(i), i.source_of(start.program)) for i, start in pairs}
        missing = [path for path in paths if not os.path.exists(path)]
        compiling_s = COMPILE_S * -(-len(missing) // (os.cpu_count() or 1))
        return compiling_s + self._left_s(self.jobs(), compiling_s), compiling_s

    def _programs_of(self, implementation):
        return self.folder.path("build", _file_name(implementation.label))

    def _further_s(self):
        """Seconds of the starts behind the planned ones."""
        known = [rounds for rounds in self.wanted.values() if rounds is not None]
        usual = sorted(known)[len(known) // 2] if known else self.profile.most_rounds
        seconds = 0.0
        for start in self.starts:
            done, wanted = self.done.get(start, 0), self.wanted.get(start)
            wanted = min(usual if wanted is None else wanted, self.profile.most_rounds)
            seconds += max(0, max(wanted, FEWEST_STARTS) - max(done, start.rounds)) * self.expected_of(start)
        return seconds

    def _count(self, start):
        """Notes how many rounds of a start are done, and how many it will take, as far as its points say."""
        labels = [i.label for i in self.implementations if i.measures(start)]
        rounds = range(max(self.rounds, self.profile.most_rounds))
        done = sum(any(self.folder.has_job(start.key(label, number)) for label in labels) for number in rounds)
        judged = [self.folder.starts_to_settle(key, HALF_WIDTH) for key in self.keys[start]]
        wanted = None if None in judged or not judged else max(judged)
        if wanted is not None and done >= FEWEST_STARTS:
            wanted = done if self._is_settled(start) else max(wanted, done + 1)
        self.done[start], self.wanted[start] = done, wanted

    def _learned(self):
        """What earlier invocations on this folder say of how long starts take."""
        found = Forecast()
        for start in self.starts:
            for number in range(max(self.rounds, self.profile.most_rounds)):
                for implementation in self.implementations:
                    seconds = self.folder.seconds_of(start.key(implementation.label, number))
                    if seconds is not None:
                        found.learn(implementation.label, start, seconds)
        return found

    def _known(self, start):
        """The points that earlier invocations on this folder measured in that start, as the keys of a dict."""
        rounds = range(max(self.rounds, self.profile.most_rounds))
        jobs = [start.key(i.label, number) for i in self.implementations for number in rounds]
        return dict.fromkeys(key for job in jobs for key in self.folder.results_of(job))

    def _is_settled(self, start):
        keys = self.keys[start]
        return bool(keys) and all(self.folder.is_settled(key, HALF_WIDTH) for key in keys)

    def _try(self, number, implementation, start, left_s):
        if self.failed.get((implementation.label, start), 0) < MOST_FAILURES:
            what = f"{implementation.label}, {start.title(implementation)}"
            self.display.start(f"round {number + 1}: {what}", left_s)
            began = time.monotonic()
            self._run_one(number, implementation, start)
            self.forecast.learn(implementation.label, start, time.monotonic() - began)
            self._count(start)

    def _build(self):
        for implementation in self.implementations:
            needed = sorted({start.program for start in self.starts if implementation.measures(start)})
            failures = build.build(implementation, self._programs_of(implementation), needed, self.display.say)
            for program, problem in failures.items():
                self._problem(f"{implementation.label}: {program} does not compile", problem.splitlines()[-5:])
        self.hand_over = build.hand_over(self.implementations[0], self.folder.path("build"))
        self._write_machine()

    def _run_jobs(self, jobs, began):
        left_s = self._left_s(jobs, time.monotonic() - began)
        for index, (number, implementation, start) in enumerate(jobs):
            if (index == 0 or jobs[index - 1][0] != number) and self._out_of_time(jobs, number, began):
                break
            self._try(number, implementation, start, left_s)
            elapsed_s = time.monotonic() - began
            left_s = self._left_s(jobs[index + 1 :], elapsed_s)
            self.display.finish(elapsed_s, left_s)

    def _out_of_time(self, jobs, number, began):
        """True when round `number` would end after the profile's budget. The first two rounds always run."""
        expected = sum(self.forecast.seconds(i.label, s) for n, i, s in jobs if n == number)
        if number < 2 or time.monotonic() - began + expected < self.profile.budget_s * len(self.hosts_of):
            return False
        self.display.note(
            f"shmem-mt: stopped after {number} rounds to end within the profile's time; the same command "
            "with the same --out adds the others"
        )
        return True

    def _run_one(self, number, implementation, start):
        if self.hand_over and number not in self.hand_overs:
            self.hand_overs[number] = machine.hand_over_s(self.hand_over)
        name = f"{_file_name(implementation.label)}-{start.program}-{start.pes}x{start.threads}"
        log = self.folder.path("logs", f"{name}-{self.starts.index(start)}-round{number}.txt")
        place = (start.fabric, start.coalescing, self.hosts_of[start.fabric], start.setting)
        arguments = (*start.arguments, *images.arguments(self.folder, implementation.label, start))
        command = implementation.launch_command(start.program, start.pes, start.threads, arguments, *place)
        labels = start.params(implementation)

        found: dict[str, None] = {}  # merged and shown when the program has ended, for it has all cores

        def on_point(event):
            event = {k: v for k, v in event.items() if k != "event"}
            params = {**event["params"], **labels, **self._where(implementation, start, event["params"])}
            event.update(label=implementation.label, round=number, params=params)
            found[self.folder.keep_point(event)] = None

        timeout_s = min(self.most_s, plan.profile_of(self.profile_name, start.fabric).timeout_s)
        environment = {**os.environ, PADDING: "x" * self._padding(number, start)}
        outcome = run_program(command, log, timeout_s, on_point, implementation.exit_status_counts, environment)
        if found and start.times_launch and outcome.left_by_itself:
            on_point(_launch(self.folder.result(next(iter(found))), outcome.seconds))
        self.keys[start].update(found)
        for key in found:
            self.display.point(self.folder.result(key))
        if outcome.start:
            self.libraries[implementation.label] = {k: outcome.start.get(k) for k in ("library", "specification")}
        for skip in outcome.skips:
            self.skip(f"{implementation.label}: {skip['benchmark']} {skip['what']} skipped: {skip['reason']}")
        self.folder.add_job(
            {
                "key": start.key(implementation.label, number),
                "status": "ok" if outcome.ok else "failed",
                "seconds": round(outcome.seconds, 3),
                "points": outcome.points,
                "results": list(found),
                "problem": outcome.problem,
                **outcome.of_forms(),
            }
        )
        self.folder.write_results()
        if not outcome.ok:
            again = (implementation.label, start) in self.failed
            self.failed[implementation.label, start] = self.failed.get((implementation.label, start), 0) + 1
            self._problem(
                f"{implementation.label}: {start.title(implementation)} {outcome.problem}",
                [] if again else last_lines(log),
            )

    def _where(self, implementation, start, params):
        """{"fabric"} of a point that says that its PEs were elsewhere than its start wanted: on several hosts where all
        were to be on one, or the other way round."""
        count, on_node, given = params.get("hosts", 1), start.fabric == fabrics.ON_NODE, start.fabric.is_given
        if not (on_node and count > 1) and not (given and count == 1 and start.pes > 1):
            return {}
        name = (fabrics.HOSTS if on_node else fabrics.ON_NODE).name
        what = f"{implementation.label}: {start.title(implementation)}: PEs were on {count} host{'s' * (count > 1)}"
        self.skip(f"{what}, so its points are called {name}, though measured as {start.fabric.name}")
        return {"fabric": name}

    def _padding(self, number, start):
        """Characters: where a process has its stack depends on the size of its environment, and what it measures on
        that (Mytkowicz et al., ASPLOS 2009). All implementations have the same in one round."""
        return random.Random(f"{self.seed} {number} {self.starts.index(start)}").randrange(MOST_PADDING)

    def _problem(self, text, lines):
        self.problems.append(text)
        self.display.note("\n  ".join([f"shmem-mt: {text}", *lines]))

    def _write_machine(self):
        self.folder.write_json("machine.json", self._machine())

    def _machine(self):
        """The contents of machine.json; of implementations that are not measured this time, what was told of them."""
        described = {i.label: {**i.describe(), **self.libraries.get(i.label, {})} for i in self.implementations}
        return {
            "machine": {**self.facts, **self._shares(), "hand_over_s": self._all_hand_overs()},
            **({"hosts": self.hosts, "hosts_differ": list(host_facts.differing(self.hosts))} if self.hosts else {}),
            "programs": sources.digest("programs", "apps"),
            "implementations": list({**_by_label(self.before), **described}.values()),
            "settings": self.settings,
            "shmem_mt": __version__,
        }

    def _shares(self):
        """What others took of the CPUs' time: of the invocations on this folder the most."""
        before = self.before.get("machine", {})
        return {
            name: max(share, before.get(name) or 0) if share is not None else before.get(name)
            for name, share in machine.since(self.counters).items()
        }

    def _all_hand_overs(self):
        """Of a line from core to core, once a round of each invocation on this folder."""
        found = [seconds for seconds in self.hand_overs.values() if seconds is not None]
        return self.before.get("machine", {}).get("hand_over_s", []) + found

    def _conclude(self):
        results = self.folder.results()
        ours = {i.label for i in self.implementations}
        invalid = [r for r in results if r["valid"] is False and r["label"] in ours]
        for warning in machine.warnings({**self.facts, **self._shares()}) + host_facts.warnings(self.hosts):
            print(f"shmem-mt: {warning}", file=sys.stderr)
        for skip in self.skips:
            print(f"shmem-mt: {skip}", file=sys.stderr)
        for result in invalid:
            what = f"{result['label']}: {describe(result['benchmark'], result['params'])}"
            print(f"shmem-mt: {what}: invalid: {why_invalid(result)}", file=sys.stderr)
        for problem in dict.fromkeys(self.problems):
            times = self.problems.count(problem)
            print(f"shmem-mt: {problem}" + (f" ({times} times)" if times > 1 else ""), file=sys.stderr)
        for line in verdicts.verdict_lines([r for r in results if r["label"] in ours]):
            print(line)
        print(f"{len(results)} points in {os.path.join(self.folder.directory, 'results.jsonl')}")
        return 1 if invalid or self.problems else 0


def _launch(other, seconds):
    """The point of a launch, from the launcher's start to its end. `other`: one of the same start."""
    same = ("pes", "threads", "oversubscribed", "hosts")
    params = {**{name: other["params"][name] for name in same if name in other["params"]}, "op": catalogue.LAUNCH}
    values = {"metric": "time", "unit": "s", "samples": [seconds], "valid": other["valid"]}
    return {"benchmark": other["benchmark"], "params": params, **values}


def _by_label(contents):
    """The implementations of a machine.json."""
    return {one.get("label"): one for one in contents.get("implementations", [])}


def _file_name(label):
    return "".join(c if c.isalnum() or c in ".-_" else "_" for c in label)

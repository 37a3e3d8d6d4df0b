"""OpenSHMEM implementations under test: finding their wrappers, asking what they can, compiling the programs once."""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from shmem_mt import fabrics, sources
from shmem_mt.catalogue import BENCHMARKS, ORDERS, SETTINGS
from shmem_mt.errors import UserError
from shmem_mt.machine import first_line

PROGRAMS = tuple(dict.fromkeys(benchmark.program for benchmark in BENCHMARKS))
COMPILE_TIMEOUT_S = 180

# Feature probes, sources in programs/probes: SHMEM_MT_HAVE_<NAME> is 1 where one compiles and links.
PROBES = ("ctx", "put_signal", "fetch_nbi", "team_collectives", "shmemx", "progress", "inscan")


@dataclass
class Implementation:
    """One library under test. `oshrun` is a command with arguments. The MPI reference is one, too (mpi.py)."""

    label: str
    oshcc: str
    oshrun: list
    is_open_mpi: bool
    is_heddle: bool
    version: str
    compiler: str
    is_hydra: bool = False  # the launcher of MPICH and its relatives
    sources: dict = None  # program -> its source; None: an OpenSHMEM library, which has every program
    features: dict = field(default_factory=dict)
    binaries: dict = field(default_factory=dict)

    def offers(self, program):
        """Whether there is such a program for this library."""
        return self.sources is None or program in self.sources

    @property
    def coalesces(self):
        """Whether it can be told to gather small messages for a network, or not to."""
        return self.is_heddle

    @property
    def has_settings(self):
        """Whether it can be told how to wait or to keep order (catalogue.SETTINGS, ORDERS)."""
        return self.is_heddle

    def unable(self, fabric):
        """Why it cannot be measured over that fabric; empty when it can."""
        if self.is_heddle or not fabric.is_network:
            return ""
        if fabric.rails > 1:
            return "SHMEM-MT knows only how to tell Heddle to use several rails"
        if self.is_open_mpi:
            return ""
        return "SHMEM-MT knows only how to tell Heddle and Open MPI what to use"

    def measures(self, start):
        """Whether that start (plan.py) is one for this library."""
        told = self.coalesces or start.coalescing != "off"  # who cannot be told is measured once
        told = told and (self.has_settings or start.setting in ("", "default"))
        return self.offers(start.program) and told and not self.unable(start.fabric)

    def launch_command(
        self, program, pes, threads, arguments, fabric=fabrics.ON_NODE, coalescing="", hosts=None, setting=""
    ):
        """The command that runs a compiled program. `hosts` are those of the fabric, where it has some of its own."""
        told = {**SETTINGS, **ORDERS}[setting] if setting and self.has_settings else {}
        command = [
            *self.oshrun,
            *self._launcher_flags(pes, threads, hosts),
            *self._fabric_flags(fabric, coalescing, hosts and _places(hosts, pes), hosts),
            *_environment(told),
            "-n",
            str(pes),
            self.binaries[program],
            *arguments,
        ]
        if hosts is None:
            return command
        told = ["env", f"OMPI_MCA_plm_rsh_agent={hosts.agent}"]  # also for the mpirun that oshrun hands over to
        return hosts.all[0].within(*told, *command, folder=os.getcwd())

    def describe(self):
        return {
            "label": self.label,
            "oshcc": self.oshcc,
            "oshrun": shlex.join(self.oshrun),
            "version": self.version,
            "standard": "OpenSHMEM" if self.sources is None else "MPI",
            "compiler": self.compiler,
            "features": self.features,
        }

    def _fabric_flags(self, fabric, coalescing, places, hosts):
        """What makes all data of the PEs go over the fabric. Without pml and osc Open MPI's collectives and puts would
        go through shared memory; the last two keep it from refusing transports that it does not recommend."""
        if not fabric.is_network:
            return []
        if self.is_heddle:
            settings = {"HEDDLE_NET_TRANSPORTS": fabric.transports}
            if hosts is None:
                settings["HEDDLE_TEST_PES_PER_NODE"] = "1"
            if fabric.rails:
                settings["HEDDLE_NET_RAILS"] = str(fabric.rails)
                settings["HEDDLE_NET_DEVICES"] = ",".join(f"eth{number}" for number in range(fabric.rails))
            if coalescing:
                settings["HEDDLE_NET_COALESCE"] = str(int(coalescing == "on"))
            return _environment(settings) + (["--hosts", places] if hosts else [])
        names = fabric.transports.split(",")
        flags = ["-x", "UCX_TLS=" + ",".join(dict.fromkeys([*names, "self"]))]
        components = {"spml": "ucx", "atomic": "ucx", "pml": "ucx", "osc": "ucx"}
        components |= {"opal_common_ucx_tls": "any", "opal_common_ucx_devices": "any"}
        flags += [word for name, value in components.items() for word in ("--mca", name, value)]
        return flags + (["--host", places] if hosts else [])

    def _launcher_flags(self, pes, threads, hosts=None):
        """All launchers bind alike: a PE of one thread to a core while there is one for each, nothing otherwise, nor
        on hosts that share the machine's cores. Open MPI does the first by itself, refuses root and more PEs than cores
        unless told, and would spin on cores that others wait for, not knowing that they are shared."""
        flags = []
        if self.is_heddle:
            crowded = pes > len(os.sched_getaffinity(0))
            return [] if threads > 1 or crowded or hosts or "--bind" in self.oshrun else ["--bind", "core"]
        if self.is_hydra:
            crowded = pes > (os.cpu_count() or 1)
            return [] if threads > 1 or crowded or "-bind-to" in self.oshrun else ["-bind-to", "core"]
        if not self.is_open_mpi:
            return flags
        if os.geteuid() == 0 and "--allow-run-as-root" not in self.oshrun:
            flags.append("--allow-run-as-root")
        if pes > (os.cpu_count() or 1) and "--oversubscribe" not in self.oshrun:
            flags.append("--oversubscribe")
        if pes * threads > (os.cpu_count() or 1) or threads > 1 or hosts:
            if "--bind-to" not in self.oshrun:
                flags += ["--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
        return flags


def _environment(settings):
    """As Heddle's oshrun takes it."""
    return [word for name, value in settings.items() for word in ("--env", f"{name}={value}")]


def _places(hosts, pes):
    """How many PEs each host has, as launchers read it: ``a:2,b:1``."""
    counts = [(pes + place) // len(hosts.all) for place in reversed(range(len(hosts.all)))]
    return ",".join(f"{host.name}:{count}" for host, count in zip(hosts.all, counts) if count)


def resolve(oshccs, oshruns, labels):
    """Implementations from the three lists of options; the wrappers beside this command or on PATH without any."""
    oshccs, oshruns, labels = list(oshccs or []), list(oshruns or []), list(labels or [])
    if not oshccs and not oshruns:
        oshccs, oshruns = [_beside_or_on_path("oshcc")], [_beside_or_on_path("oshrun")]
    if len(oshccs) != len(oshruns):
        raise UserError(f"--oshcc was given {len(oshccs)} times but --oshrun {len(oshruns)} times; they go in pairs")
    if labels and len(labels) != len(oshccs):
        raise UserError(f"--label was given {len(labels)} times for {len(oshccs)} implementations")
    found = []
    for index, (oshcc, oshrun) in enumerate(zip(oshccs, oshruns)):
        found.append(_implementation(oshcc, oshrun, labels[index] if labels else None))
    names = [implementation.label for implementation in found]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"two implementations are called {name}; tell them apart with --label")
        if not re.fullmatch(r"[\w.+ -]{1,40}", name):
            raise UserError(f"--label {name!r}: use up to 40 letters, digits, spaces and . _ + -")
    return found


def _beside_or_on_path(name):
    beside = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), name)
    if os.access(beside, os.X_OK) and os.path.isfile(beside):
        return beside
    if shutil.which(name):
        return name
    raise UserError(f"no {name} beside shmem-mt or on PATH; name one with --oshcc and --oshrun")


def _implementation(oshcc, oshrun, label):
    compiler_path, launcher = named_compiler("--oshcc", oshcc), named_launcher("--oshrun", oshrun)
    version = first_line([*launcher, "--version"]) or "unknown"
    compiler = first_line([compiler_path, "--version"]) or "unknown"
    is_open_mpi = "OpenRTE" in version or "Open MPI" in version
    is_heddle = "Heddle" in version
    if label is None:
        label = "Open MPI" if is_open_mpi else "Heddle" if is_heddle else os.path.basename(oshcc)
    return Implementation(
        label,
        compiler_path,
        launcher,
        is_open_mpi,
        is_heddle,
        version,
        compiler,
    )


def named_compiler(option, name):
    """The path of that program. Raises UserError."""
    path = shutil.which(name)
    if path is None:
        raise UserError(f"{option} {name}: no such program")
    return os.path.abspath(path)


def named_launcher(option, text):
    """The command in `text`, with the program's path. Raises UserError."""
    try:
        command = shlex.split(text)
    except ValueError as error:
        raise UserError(f"{option} {text!r}: {error}") from error
    path = shutil.which(command[0]) if command else None
    if path is None:
        raise UserError(f"{option} {text}: no such program")
    return [os.path.abspath(path), *command[1:]]


def build(implementation, directory, programs, note):
    """Compiles `programs` into `directory` and probes features. Returns the names that did not compile, with why.

    What is there and fits the sources and the wrapper is used again. `note(text)` hears what is being done.
    """
    os.makedirs(directory, exist_ok=True)
    stamp = _stamp(implementation)
    fresh = _read(os.path.join(directory, "stamp")) == stamp
    for name in PROBES if implementation.sources is None else ():
        macro = f"SHMEM_MT_HAVE_{name.upper()}"
        implementation.features[macro] = _probe(implementation, os.path.join(directory, macro), name, fresh)

    def compile_one(program):
        binary = os.path.join(directory, program)
        if fresh and os.path.exists(binary):
            return None
        note(f"compiling {program} with {implementation.label}")
        return _compile(implementation, sources.source_of((implementation.sources or {}).get(program, program)), binary)

    wanted = list(filter(implementation.offers, programs))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = dict(zip(wanted, pool.map(compile_one, wanted)))
    failures = {program: problem for program, problem in problems.items() if problem}
    implementation.binaries.update((p, os.path.join(directory, p)) for p in wanted if p not in failures)
    with open(os.path.join(directory, "stamp"), "w", encoding="utf-8") as file:
        file.write(stamp)
    return failures


def _stamp(implementation):
    wrapper = f"{implementation.oshcc} {os.stat(implementation.oshcc).st_mtime_ns}"
    return hashlib.sha256((wrapper + sources.digest("programs", "apps")).encode()).hexdigest()


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return None


def _probe(implementation, answer_path, name, fresh):
    answer = _read(answer_path)
    if fresh and answer in ("0", "1"):
        return answer == "1"
    works = run_compiler(implementation, [], sources.probe(name), answer_path + ".out") is None
    with open(answer_path, "w", encoding="utf-8") as file:
        file.write("1" if works else "0")
    return works


def _compile(implementation, source, binary):
    defines = [f"-D{macro}={int(works)}" for macro, works in implementation.features.items()]
    return run_compiler(implementation, [*defines, "-I", sources.root()], source, binary)


def run_compiler(implementation, flags, source, binary):
    """None when it worked, else what the compiler said."""
    command = [
        implementation.oshcc,
        "-x",
        "c++",
        "-std=c++17",
        "-O2",
        *flags,
        source,
        "-o",
        binary,
        "-lstdc++",
        "-lpthread",
        "-lm",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, errors="replace")
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else (done.stderr.strip() or f"exit status {done.returncode}")

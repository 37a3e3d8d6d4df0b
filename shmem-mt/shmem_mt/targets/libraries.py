"""What the suite knows of each library: how its launcher places PEs, is told of a fabric, and is told how to wait. A
library that is none of those here runs on the node as its launcher does by itself."""

import os
import shlex
from dataclasses import dataclass, field
from typing import ClassVar

from shmem_mt.targets import fabrics, machine

# How PEs wait (params.setting of the benchmark wait): what the environment tells Heddle. Others wait as they do.
SETTINGS = {
    "default": {},
    "spin": {"HEDDLE_SPIN_US": "10000000"},
    "sleep": {"HEDDLE_SPIN_US": "0", "HEDDLE_YIELD_US": "0"},
    **{policy: {"HEDDLE_PROGRESS": policy} for policy in ("manual", "thread:spin", "thread:monitor", "thread:block")},
}

# How contexts with order keep it, other than by themselves (the benchmark ordering); also values of params.setting.
ORDERS = {"reorder": {"HEDDLE_ORDER": "reorder"}}

# How many channels, each with connections and a lock of its own, a PE has to the network (the benchmark completion).
CHANNELS = {f"channels:{number}": {"HEDDLE_NET_CHANNELS": str(number)} for number in (2, 4)}


@dataclass
class Implementation:
    """One library under test. `oshrun` is a command with arguments. The MPI reference is one, too (mpi.py). Subclasses
    are libraries of which more is known."""

    label: str
    oshcc: str
    oshrun: list
    version: str
    compiler: str
    sources: dict | None = None  # program -> its source; None: an OpenSHMEM library, which has every program
    features: dict = field(default_factory=dict)
    binaries: dict = field(default_factory=dict)
    digest: str = ""  # of its headers and libraries (build.py); empty: not yet known

    name: ClassVar[str] = ""  # the label that it has by itself; empty: that of its compiler wrapper
    coalesces: ClassVar[bool] = False  # can be told to gather small messages for a network, or not to
    has_settings: ClassVar[bool] = False  # can be told what SETTINGS, ORDERS and CHANNELS say
    exit_status_counts: ClassVar[bool] = True  # False: a launcher that fails behind a program that is done

    @classmethod
    def launches(cls, version):
        """Whether `version`, the first line of the launcher's --version, is of this library."""
        return True

    def unable(self, fabric):
        """Why it cannot be measured over that fabric; empty when it can."""
        if fabric.rails > 1:
            return "SHMEM-MT knows only how to tell Heddle to use several rails"
        return "SHMEM-MT knows only how to tell Heddle and Open MPI what to use" if fabric.is_network else ""

    def placement_flags(self, pes, threads, hosts):
        """How the launcher is told to bind. All of them bind alike (binds): each PE to as many cores as it has
        threads, or nothing. A library that can be told to yield cores while it waits is told so only where they are
        too few."""
        return []

    def fabric_flags(self, fabric, coalescing, pes, hosts):
        """What makes all data of the PEs go over that network."""
        return []

    def setting_flags(self, setting):
        """How it is told to wait or to keep order."""
        return []

    def offers(self, program):
        """Whether there is such a program for this library."""
        return self.sources is None or program in self.sources

    def measures(self, start):
        """Whether that start (plan.py) is one for this library."""
        told = self.coalesces or start.coalescing != "off"  # what cannot be told is measured once
        told = told and (self.has_settings or start.setting in ("", "default"))
        return self.offers(start.program) and told and not self.unable(start.fabric)

    def launch_command(
        self, program, pes, threads, arguments, fabric=fabrics.ON_NODE, coalescing="", hosts=None, setting=""
    ):
        """The command that runs a compiled program. `hosts` are those of the fabric, where it has some of its own."""
        command = [
            *self.oshrun,
            *self.placement_flags(pes, threads, hosts),
            *(self.fabric_flags(fabric, coalescing, pes, hosts) if fabric.is_network else []),
            *(self.setting_flags(setting) if setting else []),
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
            "digest": self.digest or None,
        }


class Heddle(Implementation):
    """Settings are variables of the environment, given to oshrun with --env."""

    name = "Heddle"
    coalesces = True
    has_settings = True

    @classmethod
    def launches(cls, version):
        return "Heddle" in version

    def unable(self, fabric):
        return ""

    def placement_flags(self, pes, threads, hosts):
        if not binds(pes, threads, hosts) or {"--bind", "-c"} & set(self.oshrun):
            return []
        return ["--bind", "core"] if threads == 1 else ["-c", str(threads)]

    def fabric_flags(self, fabric, coalescing, pes, hosts):
        settings = {"HEDDLE_NET_TRANSPORTS": fabric.transports}
        if hosts is None:
            settings["HEDDLE_TEST_PES_PER_NODE"] = "1"
        if fabric.rails:
            settings["HEDDLE_NET_RAILS"] = str(fabric.rails)
            settings["HEDDLE_NET_DEVICES"] = ",".join(f"eth{number}" for number in range(fabric.rails))
        if coalescing:
            settings["HEDDLE_NET_COALESCE"] = str(int(coalescing == "on"))
        return _environment(settings) + (["--hosts", _places(hosts, pes)] if hosts else [])

    def setting_flags(self, setting):
        return _environment({**SETTINGS, **ORDERS, **CHANNELS}[setting])


class OpenMpi(Implementation):
    """OSHMEM, or the MPI beside it. Its launcher reports crashes in shmem_finalize behind all measurements."""

    name = "Open MPI"
    exit_status_counts = False

    @classmethod
    def launches(cls, version):
        return "OpenRTE" in version or "Open MPI" in version

    def unable(self, fabric):
        return super().unable(fabric) if fabric.rails > 1 else ""

    def placement_flags(self, pes, threads, hosts):
        """The launcher refuses root, and more PEs than cores, unless told. By itself it binds up to two PEs to cores,
        and more to sockets."""
        flags = []
        if os.geteuid() == 0 and "--allow-run-as-root" not in self.oshrun:
            flags.append("--allow-run-as-root")
        if pes > usable_cores() and "--oversubscribe" not in self.oshrun:
            flags.append("--oversubscribe")
        if not {"--bind-to", "--map-by"} & set(self.oshrun):
            place = ["--map-by", f"slot:PE={threads}", "--bind-to", "core"]
            flags += place if binds(pes, threads, hosts) else ["--bind-to", "none"]
        if pes * threads > usable_cpus():
            flags += ["--mca", "mpi_yield_when_idle", "1"]
        return flags

    def fabric_flags(self, fabric, coalescing, pes, hosts):
        """Without pml and osc the collectives and puts of MPI would go through shared memory; the last two components
        keep it from refusing transports that it does not recommend."""
        names = fabric.transports.split(",")
        flags = ["-x", "UCX_TLS=" + ",".join(dict.fromkeys([*names, "self"]))]
        components = {"spml": "ucx", "atomic": "ucx", "pml": "ucx", "osc": "ucx"}
        components |= {"opal_common_ucx_tls": "any", "opal_common_ucx_devices": "any"}
        flags += [word for name, value in components.items() for word in ("--mca", name, value)]
        return flags + (["--host", _places(hosts, pes)] if hosts else [])


class Hydra(Implementation):
    """A library that is started by Hydra, the launcher of MPICH and its relatives."""

    @classmethod
    def launches(cls, version):
        return "HYDRA" in version.upper()

    def placement_flags(self, pes, threads, hosts):
        if not binds(pes, threads, hosts) or "-bind-to" in self.oshrun:
            return []
        return ["-bind-to", "core" if threads == 1 else f"core:{threads}"]


KNOWN = (Heddle, OpenMpi, Hydra)


def usable_cpus():
    """Hardware threads of this process' affinity mask."""
    return len(os.sched_getaffinity(0))


def usable_cores():
    """What launchers bind to and have slots for; a core has one hardware thread where the kernel does not say."""
    return max(1, usable_cpus() // (machine.threads_per_core() or 1))


def binds(pes, threads, hosts):
    """Whether PEs are bound: where each thread has a core, and not on hosts that share the machine's cores."""
    return pes * threads <= usable_cores() and not hosts


def class_of(version):
    """The class of the library whose launcher says that of its version."""
    return next((library for library in KNOWN if library.launches(version)), Implementation)


def _environment(settings):
    """As Heddle's oshrun takes it."""
    return [word for name, value in settings.items() for word in ("--env", f"{name}={value}")]


def _places(hosts, pes):
    """How many PEs each host has, as launchers read it: ``a:2,b:1``."""
    counts = [(pes + place) // len(hosts.all) for place in reversed(range(len(hosts.all)))]
    return ",".join(f"{host.name}:{count}" for host, count in zip(hosts.all, counts) if count)

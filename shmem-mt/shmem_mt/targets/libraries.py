"""What the suite knows of each library: how its launcher places PEs, is told of a fabric, and is told how to wait. A
library that is none of those here runs on the node as its launcher does by itself, or as a launch template says."""

import os
import shlex
from dataclasses import dataclass, field
from typing import Any, ClassVar

from shmem_mt.errors import UserError
from shmem_mt.targets import fabrics, machine
from shmem_mt.targets.places import Places

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


@dataclass(frozen=True)
class Reference:
    """What an implementation is that is no OpenSHMEM library, and stands beside those: MPI (mpi.py), UCX (ucx.py)."""

    standard: str  # its name
    sources: dict  # program -> its source; it has no others
    probe: str  # in programs/probes: prints its version
    # Program -> its operations that the source has, which has a part of several programs; of others it has all.
    ops: dict = field(default_factory=dict)
    libraries: tuple = ()  # for the linker


@dataclass
class Implementation:
    """One library under test, or a reference beside it. `oshrun` is a command with arguments. Subclasses are libraries
    of which more is known."""

    label: str
    oshcc: str
    oshrun: list
    version: str
    compiler: str
    reference: Reference | None = None  # None: an OpenSHMEM library, which has every program
    features: dict = field(default_factory=dict)
    binaries: dict = field(default_factory=dict)
    digest: str = ""  # of its headers and libraries (build.py); empty: not yet known
    template: Any = None  # the launch template (launch_template.py) that oshrun stands for, if it is one

    name: ClassVar[str] = ""  # the label that it has by itself; empty: that of its compiler wrapper
    coalesces: ClassVar[bool] = False  # can be told to gather small messages for a network, or not to
    has_settings: ClassVar[bool] = False  # can be told what SETTINGS, ORDERS and CHANNELS say
    exit_status_counts: ClassVar[bool] = True  # False: a launcher that fails behind a program that is done

    vendor: ClassVar[str] = ""  # a part of what its headers say of their vendor, and no others do; empty: not known
    needs: ClassVar[str] = ""  # what a user must have done; empty: nothing is known of it
    has_run: ClassVar[bool] = True  # here; False: it is described from its documentation
    defaults: ClassVar[dict] = {}  # variables that PEs get, unless the environment has them

    @classmethod
    def launches(cls, version):
        """Whether `version`, the first line of the launcher's --version, is of this library."""
        return True

    def unable(self, fabric):
        """Why it cannot be measured over that fabric; empty when it can."""
        if fabric.rails > 1:
            return "SHMEM-MT knows only how to tell Heddle to use several rails"
        if self.template and fabric.hosts > 1:
            return "a launch template reaches no hosts made of namespaces"
        return self.cannot_be_told(fabric)

    def cannot_be_told(self, fabric):
        """Why it cannot be told to use that fabric; empty when it can, or need not."""
        if fabric.is_given:
            return "" if self.template else "SHMEM-MT does not know how its launcher is told of hosts; give --launch"
        return "SHMEM-MT knows only how to tell Heddle and Open MPI what to use" if fabric.is_network else ""

    def placement_flags(self, pes, threads, hosts):
        """How the launcher is told to bind. All of them bind alike (binds): each PE to as many cores as it has
        threads, or nothing. A library that can be told to yield cores while it waits is told so only where they are
        too few."""
        return []

    def host_flags(self, hosts, pes):
        """How the launcher is told to put so many PEs on these hosts."""
        return []

    def fabric_settings(self, fabric, coalescing):
        """Variables that make all data of the PEs go over that network."""
        return {}

    def settings(self, setting):
        """Variables that tell it how to wait or to keep order."""
        return {}

    def setting_flags(self, variables):
        """How the launcher is told to give PEs these variables."""
        return []

    def offers(self, program):
        """Whether there is such a program for this library."""
        return self.reference is None or program in self.reference.sources

    def source_of(self, program):
        """The name of the program's source."""
        return self.reference.sources[program] if self.reference else program

    def arguments_of(self, program, arguments):
        """Those of a start, with the operations alone that there are here, and the benchmark where the source has
        several."""
        ops = self.reference.ops.get(program) if self.reference else None
        if ops is None:
            return arguments
        if "--ops" in arguments:
            at = arguments.index("--ops") + 1
            there = [op for op in arguments[at].split(",") if op in ops]
            arguments = (*arguments[:at], ",".join(there), *arguments[at + 1 :])
        return (*arguments, "--benchmark", program.replace("_", "-"))

    def measures(self, start):
        """Whether that start (plan.py) is one for this library."""
        if self.reference and not start.has_references:
            return False
        told = self.coalesces or start.coalescing != "off"  # what cannot be told is measured once
        told = told and (self.has_settings or start.setting in ("", "default"))
        return self.offers(start.program) and told and not self.unable(start.fabric)

    def launch_command(
        self, program, pes, threads, arguments, fabric=fabrics.ON_NODE, coalescing="", hosts=None, setting=""
    ):
        """The command that runs a compiled program. `hosts`: Places, or those that are made for the fabric; None: the
        launcher decides."""
        variables = {name: value for name, value in self.defaults.items() if name not in os.environ}
        variables |= self.fabric_settings(fabric, coalescing) if fabric.is_network else {}
        variables |= self.settings(setting) if setting else {}
        run = [self.binaries[program], *self.arguments_of(program, arguments)]
        if self.template:
            told = ["env", *(f"{name}={value}" for name, value in variables.items())] if variables else []
            return self.template.words(pes, threads, hosts, [*told, *run])
        command = [
            *self.oshrun,
            *self.placement_flags(pes, threads, hosts),
            *self.setting_flags(variables),
            *(self.host_flags(hosts, pes) if _can_be_told(hosts) else []),
            "-n",
            str(pes),
            *run,
        ]
        if hosts is None or isinstance(hosts, Places):
            return command
        agent = ["env", f"OMPI_MCA_plm_rsh_agent={hosts.agent}"]  # also for the mpirun that oshrun hands over to
        return hosts.all[0].within(*agent, *command, folder=os.getcwd())

    def describe(self):
        return {
            "label": self.label,
            "oshcc": self.oshcc,
            "oshrun": self.template.text if self.template else shlex.join(self.oshrun),
            "version": self.version,
            "standard": self.reference.standard if self.reference else "OpenSHMEM",
            "compiler": self.compiler,
            "features": self.features,
            "digest": self.digest or None,
        }


class Heddle(Implementation):
    """Settings are variables of the environment, given to oshrun with --env."""

    name = "Heddle"
    coalesces = True
    has_settings = True
    vendor = "Heddle"
    needs = "nothing more; its oshrun starts PEs on other hosts by prterun, mpirun, srun, mpiexec (Hydra) or flux"

    @classmethod
    def launches(cls, version):
        return "Heddle" in version

    def unable(self, fabric):
        return "" if fabric.rails > 1 and not self.template else super().unable(fabric)

    def cannot_be_told(self, fabric):
        return ""

    def placement_flags(self, pes, threads, hosts):
        if not binds(pes, threads, hosts) or {"--bind", "-c"} & set(self.oshrun):
            return []
        return ["--bind", "core"] if threads == 1 else ["-c", str(threads)]

    def host_flags(self, hosts, pes):
        return ["--hosts", _places(hosts, pes)]

    def fabric_settings(self, fabric, coalescing):
        settings = {"HEDDLE_NET_TRANSPORTS": fabric.transports} if fabric.transports else {}
        if fabric.nodes_are_pretended:
            settings["HEDDLE_TEST_PES_PER_NODE"] = "1"
        if fabric.rails:
            settings["HEDDLE_NET_RAILS"] = str(fabric.rails)
            settings["HEDDLE_NET_DEVICES"] = ",".join(f"eth{number}" for number in range(fabric.rails))
        if coalescing:
            settings["HEDDLE_NET_COALESCE"] = str(int(coalescing == "on"))
        return settings

    def settings(self, setting):
        return {**SETTINGS, **ORDERS, **CHANNELS}[setting]

    def setting_flags(self, variables):
        return [word for name, value in variables.items() for word in ("--env", f"{name}={value}")]


class OpenMpi(Implementation):
    """OSHMEM, or the MPI beside it. Its launcher reports crashes in shmem_finalize behind all measurements."""

    name = "Open MPI"
    exit_status_counts = False
    vendor = "open-mpi.org"
    needs = "a build with OSHMEM and UCX"

    @classmethod
    def launches(cls, version):
        return "OpenRTE" in version or "Open MPI" in version

    def cannot_be_told(self, fabric):
        return ""

    def placement_flags(self, pes, threads, hosts):
        """The launcher refuses root, and more PEs than cores, unless told. By itself it binds up to two PEs to cores,
        and more to sockets."""
        flags = []
        if os.geteuid() == 0 and "--allow-run-as-root" not in self.oshrun:
            flags.append("--allow-run-as-root")
        given = isinstance(hosts, Places)  # a host has a core for each of its slots
        if pes > usable_cores() and not given and "--oversubscribe" not in self.oshrun:
            flags.append("--oversubscribe")
        if not {"--bind-to", "--map-by"} & set(self.oshrun):
            place = ["--map-by", f"slot:PE={threads}", "--bind-to", "core"]
            flags += place if binds(pes, threads, hosts) else ["--bind-to", "none"]
        too_few = not binds(pes, threads, hosts) if given else pes * threads > usable_cpus()
        return flags + (self.yielding_flags() if too_few else [])

    def yielding_flags(self):
        """How it is told to yield cores while it waits."""
        return ["--mca", "mpi_yield_when_idle", "1"]

    def host_flags(self, hosts, pes):
        return ["--host", _places(hosts, pes)]

    def fabric_settings(self, fabric, coalescing):
        """Without pml and osc the collectives and puts of MPI would go through shared memory; the last two components
        keep it from refusing transports that it does not recommend. Between hosts that are there it uses what it
        finds."""
        if fabric.is_given:
            return {}
        names = fabric.transports.split(",")
        components = {"spml": "ucx", "atomic": "ucx", "pml": "ucx", "osc": "ucx"}
        components |= {"opal_common_ucx_tls": "any", "opal_common_ucx_devices": "any"}
        told = {"UCX_TLS": ",".join(dict.fromkeys([*names, "self"]))}
        return told | {f"{_MCA}{name}": value for name, value in components.items()}

    def setting_flags(self, variables):
        return [
            word
            for name, value in variables.items()
            for word in (
                ("--mca", name.removeprefix(_MCA), value) if name.startswith(_MCA) else ("-x", f"{name}={value}")
            )
        ]


_MCA = "OMPI_MCA_"  # a parameter of Open MPI as a variable


class Hydra(Implementation):
    """A library that is started by Hydra, the launcher of MPICH and its relatives."""

    @classmethod
    def launches(cls, version):
        return "HYDRA" in version.upper()

    def placement_flags(self, pes, threads, hosts):
        if not binds(pes, threads, hosts) or "-bind-to" in self.oshrun:
            return []
        return ["-bind-to", "core" if threads == 1 else f"core:{threads}"]

    def cannot_be_told(self, fabric):
        return "" if fabric.is_given else super().cannot_be_told(fabric)

    def host_flags(self, hosts, pes):
        return ["-hosts", _places(hosts, pes)]


_HEAP = {"SHMEM_SYMMETRIC_SIZE": "512M"}  # of a PE; by themselves these two have less than benchmarks need


class Sandia(Hydra):
    """Sandia OpenSHMEM (SOS) on libfabric: README and src/shmem_launcher_script.in of its sources. Its oshrun is the
    launcher that OSHRUN_LAUNCHER names, or the first of yod, mpiexec, mpirun and srun on PATH."""

    name = "Sandia OpenSHMEM"
    vendor = "Sandia OpenSHMEM"
    has_run = False
    defaults = _HEAP
    needs = "a build with --enable-pmi-simple; OSHRUN_LAUNCHER=mpiexec.hydra, or srun --mpi=pmi2 in --launch"

    @classmethod
    def launches(cls, version):
        return False  # no launcher is its own

    def cannot_be_told(self, fabric):
        if fabric.is_given or not fabric.is_network:
            return ""
        return "what joins the PEs of a host was chosen when it was built, and between hosts by SHMEM_OFI_PROVIDER"

    def setting_flags(self, variables):
        return [word for item in variables.items() for word in ("-genv", *item)]


class OsssUcx(OpenMpi):
    """OSSS-UCX on UCX and PMIx: doc/building.md and man/man1/oshrun.1.in of its sources. Its oshrun is the launcher
    that SHMEM_LAUNCHER names, or the first of PRRTE's prun, mpiexec and mpirun on PATH."""

    name = "OSSS-UCX"
    vendor = "osss-ucx"
    exit_status_counts = True
    has_run = False
    defaults = _HEAP
    needs = "UCX with --enable-mt; Open MPI or PRRTE as SHMEM_LAUNCHER, or srun --mpi=pmix in --launch"

    @classmethod
    def launches(cls, version):
        return False  # no launcher is its own

    def fabric_settings(self, fabric, coalescing):
        settings = super().fabric_settings(fabric, coalescing)
        return {name: value for name, value in settings.items() if not name.startswith(_MCA)}

    def yielding_flags(self):
        return []


KNOWN = (Heddle, OpenMpi, Hydra, Sandia, OsssUcx)
STARTED_BY = {Sandia: Hydra, OsssUcx: OpenMpi}  # libraries without a launcher of their own -> whose they must have


def usable_cpus():
    """Hardware threads of this process' affinity mask."""
    return len(os.sched_getaffinity(0))


def usable_cores():
    """What launchers bind to and have slots for; a core has one hardware thread where the kernel does not say."""
    return max(1, usable_cpus() // (machine.threads_per_core() or 1))


def binds(pes, threads, hosts):
    """Whether PEs are bound: where each thread has a core, and not on hosts that share the machine's cores. Hosts that
    are there have as many cores as slots."""
    if isinstance(hosts, Places):
        return all(count * threads <= host.slots for host, count in hosts.used(pes))
    return pes * threads <= usable_cores() and not hosts


def class_of(version, vendor=""):
    """The class of the library whose launcher says that of its version, or that has none of its own and whose headers
    say that of their vendor. Raises UserError where such a one has a launcher that its class does not know."""
    launcher = next((library for library in KNOWN if library.launches(version)), Implementation)
    library = of_headers(vendor)
    if library not in STARTED_BY:
        return launcher
    if not issubclass(launcher, STARTED_BY[library]) and "PRRTE" not in version:
        raise UserError(f"{library.name} is started by {version!r}, which SHMEM-MT cannot tell what to do; it needs "
                        f"{library.needs}")
    return library


def of_headers(vendor):
    """The class of the library whose headers say that of their vendor."""
    known = (library for library in KNOWN if library.vendor and library.vendor.lower() in vendor.lower())
    return next(known, Implementation)


def _can_be_told(hosts):
    return hosts is not None and not (isinstance(hosts, Places) and not hosts.are_named)


def _places(hosts, pes):
    """How many PEs each host has, as launchers read it: ``a:2,b:1``."""
    if isinstance(hosts, Places):
        return ",".join(f"{host.name}:{count}" for host, count in hosts.used(pes))
    counts = [(pes + place) // len(hosts.all) for place in reversed(range(len(hosts.all)))]
    return ",".join(f"{host.name}:{count}" for host, count in zip(hosts.all, counts) if count)

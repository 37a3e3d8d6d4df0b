"""Where PEs are put: hosts that the user names, those of a file, or those of an allocation by Slurm, Flux or PBS."""

import itertools
import math
import os
import re
import shutil
import socket
import subprocess
from dataclasses import dataclass

from shmem_mt.errors import UserError

MOST_HOSTS = 1 << 16
MOST_SLOTS = 1 << 20
_NAME = re.compile(r"[A-Za-z0-9_][\w.-]{0,252}")  # no launcher takes it for an option


@dataclass(frozen=True)
class Host:
    name: str  # empty: one that the launcher chooses
    slots: int = MOST_SLOTS  # PEs that it may have


@dataclass(frozen=True)
class Places:
    """Hosts, of which a program start gets as many as it has PEs, all of them as evenly filled as their slots let."""

    all: tuple

    @property
    def slots(self):
        return sum(host.slots for host in self.all)

    @property
    def are_named(self):
        return all(host.name for host in self.all)

    def first(self):
        """The first host alone."""
        return Places(self.all[:1])

    def counts(self, pes):
        """How many of so many PEs, no more than slots, each host has; those of a host have numbers in a row."""
        low, high = 0, pes  # PEs that every host may have, as far as its slots go
        while low < high:
            level = (low + high + 1) // 2
            low, high = (level, high) if self._filled(level) <= pes else (low, level - 1)
        counts = [min(host.slots, low) for host in self.all]
        more = [place for place, host in enumerate(self.all) if host.slots > low]
        for place in more[: pes - sum(counts)]:
            counts[place] += 1
        return counts

    def have_partners(self, pes, partner):
        """Whether each of an even number of PEs has a partner near, on its host, or far, on another one."""
        counts = self.counts(pes)
        return not any(count % 2 for count in counts) if partner == "near" else 2 * max(counts) <= pes

    def _filled(self, level):
        return sum(min(host.slots, level) for host in self.all)

    def used(self, pes):
        """[(host, its PEs)] of the hosts that have any."""
        return [(host, count) for host, count in zip(self.all, self.counts(pes)) if count]

    def __str__(self):
        """``a:4,b:4``, or ``2 nodes``."""
        if not self.are_named:
            return f"{len(self.all)} node{'s' * (len(self.all) > 1)}"
        return ",".join(f"{host.name}:{host.slots}" for host in self.all)


def unnamed(nodes):
    """So many hosts that the launcher chooses."""
    return Places(tuple(Host("") for _ in range(nodes)))


def named(option, words):
    """The hosts of words such as ``a:4`` and ``b``, which has one slot; a host that is named again has more. Raises
    UserError."""
    slots: dict[str, int] = {}
    for word in words:
        name, colon, number = word.partition(":")
        count = int(number) if number.isdecimal() and len(number) < 9 else 0 if colon else 1
        if not _NAME.fullmatch(name) or not 1 <= count <= MOST_SLOTS:
            right = f"right would be a name, or a name and from 1 to {MOST_SLOTS} PEs, such as a:4"
            raise UserError(f"{option}: {word!r} is no host; {right}")
        slots[name] = slots.get(name, 0) + count
    if not slots or len(slots) > MOST_HOSTS:
        raise UserError(f"{option} names {len(slots)} hosts; right would be 1 to {MOST_HOSTS}")
    return Places(tuple(Host(*item) for item in slots.items()))


def read_hostfile(path):
    """A host a line: ``a``, ``a:4`` or ``a slots=4``; # begins a comment. Raises UserError."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [line.partition("#")[0].split() for line in file]
    except OSError as error:
        raise UserError(f"--hostfile {path}: {error.strerror}") from error
    words = [re.sub(r"\sslots=", ":", " ".join(line)) for line in lines if line]
    return named(f"--hostfile {path}", words)


def of_allocation(environment):
    """The hosts that Slurm, Flux or PBS has given to this process; None where there are none. Raises UserError for a
    list of them that cannot be read."""
    for reader in (_of_slurm, _of_flux, _of_pbs):
        if found := reader(environment):
            return found
    return None


def _of_slurm(environment):
    hosts = environment.get("SLURM_JOB_NODELIST")
    if not hosts:
        return None
    names = expand("SLURM_JOB_NODELIST", hosts)
    for name in ("SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"):
        if text := environment.get(name):
            counts = _counts(name, text)
            if len(counts) != len(names):
                raise UserError(
                    f"{name}={text} counts for {len(counts)} hosts, but SLURM_JOB_NODELIST={hosts} names "
                    f"{len(names)}; name them by --hosts"
                )
            return Places(tuple(Host(*pair) for pair in zip(names, counts)))
    return named("SLURM_JOB_NODELIST", names)


def _of_flux(environment):
    if "FLUX_URI" not in environment or not shutil.which("flux"):
        return None
    command = ["flux", "resource", "list", "-s", "up", "-no", "{ncores} {nodelist}"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        said = ""
    found = []
    for line in said.splitlines():
        cores, _, hosts = line.strip().partition(" ")
        names = expand("flux resource list", hosts) if cores.isdecimal() and hosts else []
        found += [f"{name}:{max(1, int(cores) // len(names))}" for name in names]
    if not found:
        raise UserError("FLUX_URI is set, but flux resource list does not tell the hosts; name them by --hosts")
    return named("flux resource list", found)


def _of_pbs(environment):
    """Its file has a line for each slot."""
    path = environment.get("PBS_NODEFILE")
    if not path:
        return None
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return named(f"PBS_NODEFILE={path}", file.read().split())
    except OSError as error:
        raise UserError(f"PBS_NODEFILE={path}: {error.strerror}; name the hosts by --hosts") from error


def expand(source, text):
    """The names of a list such as ``n[01-03,7],login``, as Slurm and Flux write it. Raises UserError, which names the
    source."""
    names: list[str] = []
    for word in re.findall(r"(?:\[[^]]*\]|[^,])+", text):
        parts = [_numbers(part) if part.startswith("[") else [part] for part in re.findall(r"\[[^]]*\]?|[^\[]+", word)]
        size = math.prod(map(len, parts))
        if len(names) + size > MOST_HOSTS:
            raise UserError(f"{source}={text[:60]} names more than {MOST_HOSTS} hosts")
        found = ["".join(parts) for parts in itertools.product(*parts)]
        if not found or not all(map(_NAME.fullmatch, found)):
            raise UserError(f"{source}={text[:60]} is no list of hosts ({word[:60]!r}); name them by --hosts")
        names += found
    if not names:
        raise UserError(f"{source}={text[:60]} is no list of hosts; name them by --hosts")
    return names


def _numbers(bracket):
    """The numbers of ``[01-03,7]`` as texts; none where it is wrong or too long, and so no names either."""
    found: list[str] = []
    for item in bracket[1:-1].split(",") if bracket.endswith("]") else [""]:
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", item)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not match or not 0 <= last - first < MOST_HOSTS:
            return []
        found += [f"{number:0{len(match[1])}}" for number in range(first, last + 1)]
    return found


def _counts(name, text):
    """The numbers of ``4(x2),3``."""
    counts: list[int] = []
    for item in text.split(","):
        match = re.fullmatch(r"([1-9]\d{0,5})(?:\(x([1-9]\d{0,5})\))?", item)
        if not match or len(counts) > MOST_HOSTS:
            raise UserError(f"{name}={text[:60]} is no list of counts such as 4(x2),3; name the hosts by --hosts")
        counts += [int(match[1])] * int(match[2] or 1)
    return counts


def chosen(hosts, hostfile, nodes):
    """The hosts that the options name, or those of the allocation; None without any. Raises UserError."""
    given = {"--hosts": hosts, "--hostfile": hostfile, "--nodes": nodes}
    asked = [name for name, value in given.items() if value is not None]
    if len(asked) > 1:
        raise UserError(f"{' and '.join(asked)} both say where PEs are put; give one of them")
    if hosts is not None:
        return named("--hosts", hosts.split(","))
    if hostfile is not None:
        return read_hostfile(hostfile)
    found = unnamed(nodes) if nodes else of_allocation(os.environ)
    here = found is not None and len(found.all) == 1 and _is_here(found.all[0].name)
    return Places((Host("", found.all[0].slots),)) if here else found


def _is_here(name):
    """Whether that host is this one, where a launcher starts PEs by itself."""
    return name.partition(".")[0] == socket.gethostname().partition(".")[0]

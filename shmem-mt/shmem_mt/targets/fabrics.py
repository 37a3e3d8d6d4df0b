"""Fabrics: what carries data between the PEs of a program start. How an implementation is told to use one is in
libraries.py."""

import re
import shutil
from dataclasses import dataclass, replace

from shmem_mt.errors import UserError
from shmem_mt.targets import hosts


@dataclass(frozen=True)
class Fabric:
    name: str  # of --fabric, and in results
    what: str
    transports: str = ""  # between PEs, as UCX_TLS names them; empty: the memory of the machine
    hosts: int = 1
    link_rate: str = ""  # of each host's links, as tc reads it, or of each link with commas; empty: as the machine can
    rails: int = 0  # links of each host, all of them used at once; 0: one, and nobody is told
    is_given: bool = False  # whatever joins hosts that are there (places.py)

    @property
    def is_network(self):
        return bool(self.transports) or self.is_given

    @property
    def nodes_are_pretended(self):
        """Whether PEs on one host are told to take each other for PEs of other hosts."""
        return self.is_network and not self.is_given and self.hosts == 1

    def missing(self):
        """What this machine lacks for it, as words; empty when nothing."""
        if self.hosts == 1:
            return ""
        return hosts.missing() or ("" if shutil.which("mpirun") else "mpirun")


ON_NODE = Fabric("on-node", "the memory of the machine")
TCP = Fabric("tcp", "TCP within the machine: each PE is a node of its own", "tcp")
NAMESPACES = Fabric(
    "namespaces", "TCP between two hosts made of namespaces (root, mpirun); half of the PEs on each", "tcp", hosts=2
)
HOSTS = Fabric("hosts", "what joins the hosts of --hosts, --hostfile, --nodes or an allocation", is_given=True)
NAMED = (ON_NODE, TCP, NAMESPACES, HOSTS)
SIMULATED = Fabric("simulated", "a network that shmem-mt simulate computes")  # of results only: nothing runs on it
UCX = "ucx:"  # and the names of transports


def for_studies():
    """The fabric of benchmarks that need a network: between hosts where they can be made, else within the machine."""
    return TCP if NAMESPACES.missing() else NAMESPACES


def parse(texts, link_rate=None, rails=None, places=None):
    """The fabrics of these names, each once; without any that between the hosts of `places`, or on-node where these are
    no several. Those with hosts get links of that rate and, once for
    each of `rails`, that number of them. Raises UserError for a name that is none, for rates or rails without hosts,
    and for rates that do not fit the rails."""
    several = places is not None and len(places.all) > 1
    texts = texts or [HOSTS.name if several else ON_NODE.name]
    for text in texts:
        if not named(text) or text == SIMULATED.name:
            known = ", ".join(fabric.name for fabric in NAMED)
            raise UserError(f"no fabric is called {text}; there are {known}, and {UCX}NAMES with names as in UCX_TLS")
    found = [named(text) for text in dict.fromkeys(texts)]
    if HOSTS in found and places is None:
        raise UserError("--fabric hosts: no hosts are known; right would be --hosts, --hostfile or an allocation")
    asked = f"--link-rate {link_rate}" if link_rate else f"--rails {','.join(map(str, rails))}" if rails else ""
    if asked and not any(fabric.hosts > 1 for fabric in found):
        raise UserError(f"{asked}: no fabric here has links; give --fabric {NAMESPACES.name}, too")
    rates, links = (link_rate or "").split(","), max(rails or [1])
    if len(rates) not in (1, links):
        right = f"one, or one for each of {links} rails"
        raise UserError(f"--link-rate {link_rate}: {len(rates)} rates; right would be {right}")
    return [
        replace(fabric, link_rate=",".join(rates[: count or 1]), rails=count) if fabric.hosts > 1 else fabric
        for fabric in found
        for count in (dict.fromkeys(rails or [0]) if fabric.hosts > 1 else [0])
    ]


def suffix(name):
    """What sets the places of that fabric in a page apart from those of on-node; letters, digits, - and _."""
    return "" if name == ON_NODE.name else "-" + re.sub(r"\W", "-", name)


def named(text):
    """The fabric of that name, None when there is none."""
    for fabric in (*NAMED, SIMULATED):
        if text == fabric.name:
            return fabric
    match = re.fullmatch(UCX + r"([a-z0-9_]+(?:,[a-z0-9_]+)*)", text) if isinstance(text, str) else None
    return match and Fabric(text, f"{match[1]} of UCX within the machine: each PE is a node of its own", match[1])

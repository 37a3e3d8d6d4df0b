"""Facts of the hosts that PEs are put on, which a job gathers: a small program, programs/probes/host_facts.cpp, that
the launcher under test starts on each of them. It calls no library."""

import json
import os
import subprocess

from shmem_mt import sources, supervisor
from shmem_mt.targets import build, fabrics

PROGRAM = "host_facts"
LIMIT_S = 120  # of a start on all hosts
COMPARED = ("cpu", "cores", "kernel", "memory_bytes", "governor")
MEMORY_SHARE = 0.01  # hosts of one kind differ by less of their memory, which the kernel takes at the start


def gather(implementation, pes, places, directory):
    """(the hosts of so many PEs in the order of their names, None), or ([], why they are not known). The program is
    compiled into the directory, which all hosts must see."""
    binary = os.path.join(directory, PROGRAM)
    problem = build.run_compiler(implementation, ["-I", sources.root()], sources.probe(PROGRAM), binary)
    if problem:
        return [], f"the program that asks does not compile: {problem.splitlines()[-1]}"
    implementation.binaries[PROGRAM] = os.path.abspath(binary)
    command = implementation.launch_command(PROGRAM, pes, 1, [], fabrics.HOSTS, hosts=places)
    del implementation.binaries[PROGRAM]
    try:
        done = supervisor.run(command, LIMIT_S)
    except subprocess.TimeoutExpired:
        return [], f"{' '.join(command)} took longer than {LIMIT_S} s"
    except OSError as error:
        return [], f"{command[0]}: {error.strerror}"
    said = list(filter(None, map(_parse, done.stdout.splitlines())))
    if len(said) != pes:
        words = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return [], f"{len(said)} of {pes} processes answered ({words})"
    return _by_host(said), None


def _parse(line):
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) and value.get("event") == "host" else None


def _by_host(said):
    """One of each kernel; where that is not known, one of each name."""
    found = {one.get("boot") or one.get("name"): one for one in said}
    hosts = [{"name": str(one.get("name")), **{k: one.get(k) or None for k in COMPARED}} for one in found.values()]
    return sorted(hosts, key=lambda host: host["name"])


def differing(hosts):
    """{fact: {its text: the names of the hosts that have it}} of what is not the same on all hosts."""
    found = {}
    for fact in COMPARED:
        values: dict[str, list[str]] = {}
        for host in hosts:
            values.setdefault(text(fact, _alike(fact, host.get(fact), hosts)), []).append(host["name"])
        if len(values) > 1:
            found[fact] = values
    return found


def _alike(fact, value, hosts):
    """The value; memory that is nearly that of the first host counts as that."""
    if fact != "memory_bytes" or value is None:
        return value
    first = next(host[fact] for host in hosts if host.get(fact))
    return first if abs(value - first) <= MEMORY_SHARE * first else value


def text(fact, value):
    """A fact for people."""
    if value is None:
        return "unknown"
    return f"{value / 2**30:.1f} GiB" if fact == "memory_bytes" else str(value)


def in_words(values):
    """Such as ``5.14 on n1, n2 and 6 more; 6.1 on n9``."""
    told = []
    for text, names in values.items():
        more = f" and {len(names) - 2} more" if len(names) > 3 else ""
        told.append(f"{text} on {', '.join(names[:2] if more else names)}{more}")
    return "; ".join(told)


def warnings(hosts):
    """What makes the figures of these hosts doubtful, as texts."""
    return [f"hosts differ: {fact.replace('_bytes', '')} {in_words(v)}" for fact, v in differing(hosts).items()]

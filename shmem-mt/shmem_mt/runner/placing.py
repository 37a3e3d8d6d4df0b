"""Where the PEs of a run are: the hosts of its fabrics, which starts fit on them, and what is skipped there."""

import contextlib
import os
import subprocess
import tempfile

from shmem_mt.errors import UserError
from shmem_mt.targets import fabrics, host_facts, hosts
from shmem_mt.targets import places as places_of


def fitting(starts, hosts_of):
    """(those whose PEs have room, and partners, on the hosts; why the others are skipped)."""
    kept, told = [], dict[str, None]()
    for start in starts:
        there, reason = hosts_of[start.fabric], ""
        if isinstance(there, places_of.Places) and start.pes > there.slots:
            reason = f"for {start.pes} PEs: its hosts have room for {there.slots}"
        elif start.partner and there is not None and not there.have_partners(start.pes, start.partner):
            spread = ", ".join(map(str, filter(None, there.counts(start.pes))))
            reason = f"for {start.pes} PEs: of hosts with {spread} not every PE has a partner {start.partner}"
        if reason:
            told[_skipped(start.fabric, reason)] = None
        else:
            kept.append(start)
    return kept, list(told)


def look_at_hosts(found, places, starts, hosts_of, directory):
    """(facts of the hosts that PEs are put on, why they are not known). Only launchers that may put them on several are
    asked: those of hosts, with a PE for each, and those of templates, with as many PEs as any start has."""
    several = fabrics.HOSTS in hosts_of
    asked = next((i for i in found if i.template or (several and not i.unable(fabrics.HOSTS))), None)
    if asked is None:
        return [], []
    pes = len(places.all) if several and places else max(start.pes for start in starts)
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        os.chmod(scratch, 0o755)
        seen, problem = host_facts.gather(asked, pes, places, scratch)
    return seen, [f"{asked.label}: facts of hosts skipped: {problem}"] if problem else []


def check_templates(found, hosts_of):
    """Raises UserError where a launch template has a placeholder that nothing is known for."""
    for implementation in found:
        for there in hosts_of.values() if implementation.template else ():
            if lacking := implementation.template.lacks(there):
                raise UserError(f"--launch {implementation.template.text!r}: {lacking}")
    for there in hosts_of.values():
        unnamed = isinstance(there, places_of.Places) and len(there.all) > 1 and not there.are_named
        if unnamed and not all(i.template for i in found):
            raise UserError("--nodes is for launchers of --launch alone; name the hosts by --hosts or --hostfile")


def open_fabrics(wanted, places, stack, makes_hosts):
    """({fabric: its hosts}, why others are skipped). The hosts of one within the machine are the first of `places`, or
    None, the machine itself, or where none are made. Hosts that are made live as long as the stack."""
    found, skips = {}, []
    for fabric in wanted:
        lacking = fabric.missing()
        if lacking:
            skips.append(_skipped(fabric, f"it needs {lacking}"))
            continue
        try:
            there = contextlib.nullcontext(places if fabric.is_given or places is None else places.first())
            several = makes_hosts and fabric.hosts > 1
            made = hosts.made(fabric.hosts, fabric.link_rate, fabric.rails or 1) if several else there
            found[fabric] = stack.enter_context(made)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            words = getattr(error, "stderr", None) or str(error)
            skips.append(_skipped(fabric, f"its hosts cannot be made: {words.strip()}"))
    return found, skips


def unable(found, fabrics_there):
    """Which implementation is not measured over which fabric, and why."""
    return [f"{i.label}: {_skipped(f, i.unable(f))}" for f in fabrics_there for i in found if i.unable(f)]


def _skipped(fabric, reason):
    return f"fabric {fabric.name} skipped: {reason}"

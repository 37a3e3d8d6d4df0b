"""Launch templates: how any launcher is told what a program start needs, such as
``srun -N{nodes} -n{pes} -c{threads} {program}``."""

import shlex
import string

from shmem_mt.errors import UserError

PLACEHOLDERS = {
    "pes": "all PEs",
    "threads": "threads of each PE",
    "nodes": "hosts that have any PE",
    "per_node": "PEs of a host, where that is most",
    "hosts": "these hosts with their PEs: a:2,b:2",
    "host_names": "these hosts: a,b",
    "program": "the program with its arguments",
}
REQUIRED = ("pes", "program")
OF_HOSTS = ("nodes", "per_node")  # need a number of hosts
OF_NAMES = ("hosts", "host_names")  # need their names


class LaunchTemplate:
    """`text` as the user gave it. Raises UserError where it is none."""

    def __init__(self, text):
        self.text = text
        try:
            self.command = shlex.split(text)
            used = {name for word in self.command for name in _placeholders(word)}
        except ValueError as error:
            raise UserError(f"--launch {text!r}: {error}") from error
        known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
        for name in sorted(used - set(PLACEHOLDERS)):
            raise UserError(f"--launch {text!r}: {{{name}}} is no placeholder; there are {known}")
        for name in REQUIRED:
            if name not in used:
                raise UserError(f"--launch {text!r}: {{{name}}} is missing, {PLACEHOLDERS[name]}")
        self.used = used

    def lacks(self, places):
        """What a placeholder needs that these hosts (None: none are known) do not tell, as words; else empty."""
        names = [f"{{{name}}}" for name in PLACEHOLDERS if name in self.used]
        if places is None and not self.used.isdisjoint(OF_HOSTS):
            return f"{' and '.join(n for n in names if n[1:-1] in OF_HOSTS)} needs --nodes, --hosts or --hostfile"
        if (places is None or not places.are_named) and not self.used.isdisjoint(OF_NAMES):
            return f"{' and '.join(n for n in names if n[1:-1] in OF_NAMES)} needs --hosts or --hostfile"
        return ""

    def words(self, pes, threads, places, program):
        """The command. `program`: a command; `places` as lacks() accepts them."""
        used = places.used(pes) if places else []
        values = {
            "pes": pes,
            "threads": threads,
            "nodes": len(used),
            "per_node": max((count for _, count in used), default=0),
            "hosts": ",".join(f"{host.name}:{count}" for host, count in used),
            "host_names": ",".join(host.name for host, _ in used),
            "program": shlex.join(program),  # inside a word that a shell reads
        }
        return [part for word in self.command for part in (program if word == "{program}" else [word.format(**values)])]


def _placeholders(word):
    """Their names. Raises ValueError where braces do not match, or hold more than a name."""
    found = []
    for _, name, form, conversion in string.Formatter().parse(word):
        if name is None:
            continue
        if form or conversion or not name.isidentifier():
            raise ValueError(f"{{{name}}} in {word!r} is no placeholder; a brace that is none is doubled")
        found.append(name)
    return found

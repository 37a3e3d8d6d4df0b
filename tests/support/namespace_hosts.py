"""Hosts out of namespaces: each has a name, a network interface and an /etc/hosts of its own, and a switch joins them.
They share the machine's files and process numbers. Nothing is left behind: a namespace lives as long as the process
that holds it, and that ends with its standard input, so with this process, however that ends.

Needs nothing but Python: tests of several hosts import it from here, the suite as shmem_mt.targets.hosts, which is a
symbolic link to this file."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import uuid

TOOLS = ["ip", "tc", "unshare", "nsenter", "mount"]
# What the kernel hands to a shaped interface at once, and a bucket that holds it. For a bucket of less than a segment
# the kernel cuts it to packets with a timer for each, which takes 5 to 50 % from a computation beside plain TCP on a
# virtual machine. A bucket of whole messages would carry them while the program computes, and hide what is to be
# measured.
SEGMENT, BURST = "16384", "20kb"
HOLD = """
set -e
hostname "$1"
mount --bind "$2" /etc/hosts
[ -z "$3" ] || mount --bind "$3" /proc/sys/kernel/random/boot_id
mount -t sysfs sysfs /sys
ip link set lo up
echo ready
exec cat
"""


def missing():
    """What this machine lacks for hosts, as words; empty when nothing."""
    if os.geteuid() != 0:
        return "root"
    return ", ".join(tool for tool in TOOLS if not shutil.which(tool))


class Namespace:
    def __init__(self, name, hosts_file, boot_file=""):
        self.name = name
        command = ["unshare", "--net", "--uts", "--mount", "sh", "-c", HOLD, "sh", name, hosts_file, boot_file]
        self.holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
        assert self.holder.stdout  # the pipe asked for above
        if self.holder.stdout.readline() != "ready\n":
            self.holder.kill()
            raise RuntimeError(f"no namespace {name}: {self.holder.communicate()[1]}")

    def within(self, *command, folder="/"):
        return ["nsenter", f"--target={self.holder.pid}", "--net", "--uts", "--mount", f"--wd={folder}",
                *map(str, command)]

    def do(self, *command):
        """What the command says."""
        return subprocess.run(self.within(*command), check=True, capture_output=True, text=True, timeout=20).stdout

    def shape(self, *words, interface="eth0"):
        """What leaves goes through a token bucket; there is no netem everywhere. None: through nothing."""
        if words:
            self.do("tc", "qdisc", "replace", "dev", interface, "root", "tbf", *words)
        else:
            self.do("tc", "qdisc", "delete", "dev", interface, "root")

    def dropped(self, interface="eth0"):
        """Packets that the bucket had no room for."""
        return int(re.findall(r"dropped (\d+)", self.do("tc", "-s", "qdisc", "show", "dev", interface))[0])

    def sent_bytes(self, interface):
        return int(self.do("cat", f"/sys/class/net/{interface}/statistics/tx_bytes"))

    def processes(self):
        """Those of jobs: all that run here but the one that holds the namespace."""
        here = os.readlink(f"/proc/{self.holder.pid}/ns/net")
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and os.readlink(entry / "ns" / "net") == here:
                    found.append(int(entry.name))
            except OSError:  # gone, or nobody's to look at
                continue
        return [pid for pid in found if pid != self.holder.pid]

    def kill_all(self):
        """As when the host loses its power."""
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def close(self):
        """The holder ends with its input, which communicate() closes."""
        try:
            self.holder.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            self.holder.kill()
            self.holder.communicate()


class Hosts:
    """interfaces: eth0, eth1, ... of each host, each in a network of its own, 10.77.0.0/24, 10.78.0.0/24, ...
    one_kernel: the hosts say that they are one machine, so that programs compare their clocks."""

    def __init__(self, folder, count, interfaces=1, one_kernel=False):
        folder = pathlib.Path(folder)
        names = [f"heddle-{os.getpid()}-{number}" for number in range(count)]
        hosts_file = folder / "hosts"
        hosts_file.write_text("127.0.0.1 localhost\n" + "".join(
            f"10.77.0.{number + 1} {name}\n" for number, name in enumerate(names)))
        self.all = []
        self.switch = Namespace("switch", hosts_file)
        try:
            for name in names:
                boot = folder / f"{name}.boot_id"
                boot.write_text(f"{uuid.uuid4()}\n")
                self.all.append(Namespace(name, hosts_file, "" if one_kernel else boot))
            for network in range(interfaces):
                self.join(network)
        except Exception:
            self.close()
            raise
        self.agent = folder / "agent"
        cases = "".join(f"    {host.name}) pid={host.holder.pid} ;;\n" for host in self.all)
        self.agent.write_text(f'#!/bin/sh\n# What mpirun calls in place of ssh.\nhost=$1\nshift\ncase $host in\n{cases}'
                              '    *) echo "no host $host" >&2; exit 255 ;;\nesac\n'
                              'exec nsenter --target=$pid --net --uts --mount --wd=/ sh -c "$*"\n')
        self.agent.chmod(0o755)

    def join(self, network):
        switch, interface = f"switch{network}", f"eth{network}"
        self.switch.do("ip", "link", "add", switch, "type", "bridge")
        self.switch.do("ip", "link", "set", switch, "up")
        for number, host in enumerate(self.all):
            port = f"port{network}-{number}"
            self.switch.do("ip", "link", "add", port, "type", "veth", "peer", "name", interface, "netns",
                           host.holder.pid)
            self.switch.do("ip", "link", "set", port, "master", switch, "up")
            host.do("ip", "address", "add", f"10.{77 + network}.0.{number + 1}/24", "dev", interface)
            host.do("ip", "link", "set", interface, "up")

    def close(self):
        for namespace in [*self.all, self.switch]:
            namespace.close()


@contextlib.contextmanager
def made(count, link_rates="", interfaces=1):
    """So many hosts while the context lasts; what leaves one goes at that rate, such as ``100mbit``, and waits where it
    is more, with room for all that TCP lets wait. BURST may go faster than that. ``100mbit,50mbit``: a rate for each
    interface."""
    with tempfile.TemporaryDirectory(prefix="hosts-") as folder:
        hosts = Hosts(folder, count, interfaces, one_kernel=True)
        rates = link_rates.split(",") if link_rates else []
        rates = rates * interfaces if len(rates) == 1 else rates
        try:
            for host in hosts.all:
                for number, rate in enumerate(rates):
                    host.do("ip", "link", "set", "dev", f"eth{number}", "gso_max_size", SEGMENT)
                    host.shape("rate", rate, "burst", BURST, "limit", "32mb", interface=f"eth{number}")
            yield hosts
        finally:
            hosts.close()

"""Hosts out of namespaces: each has a name, a network interface and an /etc/hosts of its own, and a switch joins them.
They share the machine's files and process numbers. Nothing is left behind: a namespace lives as long as the process
that holds it, and that ends with its standard input, so with this process, however that ends."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

TOOLS = ["ip", "unshare", "nsenter", "mount"]
HOLD = """
set -e
hostname "$1"
mount --bind "$2" /etc/hosts
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
    def __init__(self, name, hosts_file):
        self.name = name
        command = ["unshare", "--net", "--uts", "--mount", "sh", "-c", HOLD, "sh", name, hosts_file]
        self.holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            self.holder.kill()
            raise RuntimeError(f"no namespace {name}: {self.holder.communicate()[1]}")

    def within(self, *command, folder="/"):
        return ["nsenter", f"--target={self.holder.pid}", "--net", "--uts", "--mount", f"--wd={folder}",
                *map(str, command)]

    def do(self, *command):
        subprocess.run(self.within(*command), check=True, capture_output=True, text=True, timeout=20)

    def close(self):
        self.holder.stdin.close()
        try:
            self.holder.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.holder.kill()
            self.holder.wait()
        self.holder.stdout.close()
        self.holder.stderr.close()


class Hosts:
    def __init__(self, folder, count):
        folder = pathlib.Path(folder)
        names = [f"heddle-{os.getpid()}-{number}" for number in range(count)]
        hosts_file = folder / "hosts"
        hosts_file.write_text("127.0.0.1 localhost\n" + "".join(
            f"10.77.0.{number + 1} {name}\n" for number, name in enumerate(names)))
        self.all = []
        self.switch = Namespace("switch", hosts_file)
        try:
            self.switch.do("ip", "link", "add", "switch", "type", "bridge")
            self.switch.do("ip", "link", "set", "switch", "up")
            for number, name in enumerate(names):
                self.add(number, name, hosts_file)
        except Exception:
            self.close()
            raise
        self.agent = folder / "agent"
        cases = "".join(f"    {host.name}) pid={host.holder.pid} ;;\n" for host in self.all)
        self.agent.write_text(f'#!/bin/sh\n# What mpirun calls in place of ssh.\nhost=$1\nshift\ncase $host in\n{cases}'
                              '    *) echo "no host $host" >&2; exit 255 ;;\nesac\n'
                              'exec nsenter --target=$pid --net --uts --mount --wd=/ sh -c "$*"\n')
        self.agent.chmod(0o755)

    def add(self, number, name, hosts_file):
        host = Namespace(name, hosts_file)
        self.all.append(host)
        port = f"port{number}"
        self.switch.do("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", host.holder.pid)
        self.switch.do("ip", "link", "set", port, "master", "switch", "up")
        host.do("ip", "address", "add", f"10.77.0.{number + 1}/24", "dev", "eth0")
        host.do("ip", "link", "set", "eth0", "up")

    def close(self):
        for namespace in [*self.all, self.switch]:
            namespace.close()


@contextlib.contextmanager
def made(count):
    """So many hosts while the context lasts."""
    with tempfile.TemporaryDirectory(prefix="hosts-") as folder:
        hosts = Hosts(folder, count)
        try:
            yield hosts
        finally:
            hosts.close()

"""Slurm of the tests' own, on this machine alone or on hosts made of namespaces: munged, slurmctld and a slurmd for
each host, with files and ports of their own, which end with the tests. Needs root."""

import contextlib
import os
import shutil
import socket
import subprocess
import time

PROGRAMS = ["munged", "slurmctld", "slurmd", "srun", "salloc", "sinfo"]
READY_S = 60.0
CONF = """
ClusterName=tests
SlurmctldHost={names[0]}({addresses[0]})
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
TmpFS={folder}/tmp-%n
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
KillWait=2
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MailProg=/bin/true
LaunchParameters=use_interactive_step
SlurmdParameters=config_overrides
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def path_with_daemons():
    return os.environ["PATH"] + ":/usr/sbin:/sbin"


def missing():
    if os.geteuid() != 0:
        return "root"
    return ", ".join(name for name in PROGRAMS if not shutil.which(name, path=path_with_daemons()))


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class Slurm:
    def __init__(self, folder, hosts=()):
        """hosts: namespaces (namespace_hosts); the first has slurmctld. None: this machine."""
        self.folder, self.hosts, self.daemons, self.daemon_of = folder, hosts, [], {}
        for name in ["munge", "state"]:
            (folder / name).mkdir(mode=0o700)
        (folder / "munge" / "key").write_bytes(os.urandom(1024))
        (folder / "munge" / "key").chmod(0o600)
        self.names = [host.name for host in hosts] or [socket.gethostname().split(".")[0]]
        for name in self.names:
            (folder / f"tmp-{name}").mkdir()
        addresses = [f"10.77.0.{number + 1}" for number in range(len(hosts))] or ["127.0.0.1"]
        nodes = "\n".join(f"NodeName={name} NodeAddr={address} CPUs={128 if hosts else 8} State=UNKNOWN"
                          for name, address in zip(self.names, addresses, strict=True))
        (folder / "slurm.conf").write_text(CONF.format(names=self.names, addresses=addresses, nodes=nodes,
                                                       folder=folder, ports=free_ports(2)))
        # Nothing of it is used; slurmd would look for it in /sys, which a host has for itself.
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": path_with_daemons()}
        try:
            munge = folder / "munge"
            self.start("munged", "--force", "--foreground", f"--key-file={munge}/key", f"--socket={munge}/socket",
                       f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed")
            self.wait_until((munge / "socket").exists, "munged")
            self.start(*self.within(0, "slurmctld", "-D"))
            for number in range(len(self.names)):
                self.start_node(number)
            self.wait_until(self.is_idle, "slurmd")
        except BaseException:
            self.close()
            raise

    def within(self, number, *command):
        """The words of a command on a host."""
        return self.hosts[number].within(*command) if self.hosts else list(map(str, command))

    def start(self, *command):
        log = (self.folder / f"{len(self.daemons)}.log").open("w")
        daemon = subprocess.Popen(command, env={**os.environ, **self.environment}, stdin=subprocess.DEVNULL,
                                  stdout=log, stderr=subprocess.STDOUT)
        self.daemons.append(daemon)
        return daemon

    def start_node(self, number):
        self.daemon_of[number] = self.start(*self.within(number, "slurmd", "-D", "-N", self.names[number]))

    def kill_host(self, number):
        """As when the host loses its power: its network first, so that nothing tells of the end."""
        host = self.hosts[number]
        host.do("ip", "link", "set", "eth0", "down")
        host.kill_all()
        daemon = self.daemon_of.pop(number)
        daemon.wait(60)
        self.daemons.remove(daemon)

    def revive_host(self, number):
        self.hosts[number].do("ip", "link", "set", "eth0", "up")
        self.start_node(number)
        self.wait_until(self.is_idle, "a slurmd that was killed")

    def is_idle(self):
        said = subprocess.run(self.within(0, "sinfo", "--noheader", "--Node", "--format=%t"), capture_output=True,
                              env={**os.environ, **self.environment}, text=True, timeout=60)
        return said.stdout.split() == ["idle"] * len(self.names)

    def wait_until(self, condition, name):
        end = time.monotonic() + READY_S
        while not condition():
            if time.monotonic() > end or any(daemon.poll() is not None for daemon in self.daemons):
                logs = "\n".join(path.read_text()[-1000:] for path in self.folder.glob("*.log"))
                raise RuntimeError(f"{name} is not ready:\n{logs}")
            time.sleep(0.1)

    def close(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

"""Slurm on this machine alone, for the tests: munged, slurmctld and slurmd with files and ports of their own, which end
with the tests. Needs root."""

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
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MailProg=/bin/true
LaunchParameters=use_interactive_step
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
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
    def __init__(self, folder):
        self.folder, self.daemons = folder, []
        for name in ["munge", "state", "spool"]:
            (folder / name).mkdir(mode=0o700)
        (folder / "munge" / "key").write_bytes(os.urandom(1024))
        (folder / "munge" / "key").chmod(0o600)
        host = socket.gethostname().split(".")[0]
        (folder / "slurm.conf").write_text(CONF.format(host=host, folder=folder, ports=free_ports(2)))
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": path_with_daemons()}
        try:
            munge = folder / "munge"
            self.start("munged", "--force", "--foreground", f"--key-file={munge}/key", f"--socket={munge}/socket",
                       f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed")
            self.wait_until((munge / "socket").exists, "munged")
            self.start("slurmctld", "-D")
            self.start("slurmd", "-D", "-N", host)
            self.wait_until(self.is_idle, "slurmd")
        except BaseException:
            self.close()
            raise

    def start(self, *command):
        log = (self.folder / f"{command[0]}.log").open("w")
        self.daemons.append(subprocess.Popen(command, env={**os.environ, **self.environment}, stdin=subprocess.DEVNULL,
                                             stdout=log, stderr=subprocess.STDOUT))

    def is_idle(self):
        said = subprocess.run(["sinfo", "--noheader", "--format=%t"], env={**os.environ, **self.environment},
                              capture_output=True, text=True, timeout=60)
        return said.stdout.strip() == "idle"

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

"""Launchers on two hosts, which are namespaces of this machine."""

import os
import pathlib
import subprocess
import time

import namespace_hosts
import slurm as slurm_of_tests
from conftest import BUILD, LAUNCHERS, LIMIT_S, OVER_TCP, write_script

SERVER = """
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
"""
CLIENT = """
IdentityFile {folder}/key
IdentitiesOnly yes
UserKnownHostsFile {folder}/known_hosts
StrictHostKeyChecking accept-new
LogLevel ERROR
"""


class TwoHosts:
    """The hosts, and how a launcher on the first starts PEs on both. way: its name; oshrun-NAME is oshrun that takes
    it. environment: what it needs there."""

    def __init__(self, here, folder, way):
        self.here, self.folder, self.way, self.environment = here, folder, way, {}
        self.hosts = namespace_hosts.Hosts(folder, 2)
        try:
            self.prepare()
        except BaseException:
            self.close()
            raise

    def start(self, on_each, *program, **settings):
        """Starts so many PEs on each host."""
        return self.do(*self.words(on_each, settings), "-n", 2 * on_each, *program, **settings)

    def run(self, on_each, *program, **settings):
        return self.start(on_each, *program, **settings).end()

    def do(self, *command, **settings):
        """Starts a command on the first host."""
        return self.here.start(*self.hosts.all[0].within(*command),
                               **{**OVER_TCP, **self.environment, **settings})

    def oshrun(self, on_each):
        return [BUILD / "bin/oshrun", "--hosts", ",".join(f"{host.name}:{on_each}" for host in self.hosts.all)]

    def lose_host(self):
        """The second one, as when it loses its power."""
        self.hosts.all[1].kill_all()

    def revive_host(self):
        pass

    def close(self):
        self.hosts.close()


class Hydra(TwoHosts):
    def prepare(self):
        agent = write_script(self.folder / "ssh", f'[ "$1" = -x ] && shift\nexec {self.hosts.agent} "$@"')
        (self.folder / "bin").mkdir()
        for name in ["prterun", "mpirun", "srun"]:  # none of which works, for oshrun
            write_script(self.folder / "bin" / name, "exit 1")
        self.environment = {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "HYDRA_LAUNCHER": "ssh",
                            "HYDRA_LAUNCHER_EXEC": str(agent)}

    def words(self, on_each, settings):
        if self.way == "oshrun-hydra":
            return self.oshrun(on_each)
        return [*LAUNCHERS["hydra"], "-hosts", ",".join(host.name for host in self.hosts.all), "-ppn", on_each]


class OpenMpi(TwoHosts):
    """mpirun over real ssh, with an sshd on each host, and keys made for the tests."""

    def prepare(self):
        self.servers = []
        for name in ["host_key", "key"]:
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name], check=True,
                           timeout=LIMIT_S)
        (self.folder / "server").write_text(SERVER.format(folder=self.folder))
        (self.folder / "client").write_text(CLIENT.format(folder=self.folder))
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)  # that sshd wants to be there
        self.agent = f"ssh -F {self.folder}/client"
        self.environment = {"OMPI_MCA_plm_rsh_agent": self.agent}
        self.servers = [self.serve(host) for host in self.hosts.all]
        for host in self.hosts.all:
            self.wait_for(host)

    def serve(self, host):
        with (self.folder / f"{host.name}.log").open("a") as log:
            return subprocess.Popen(host.within("/usr/sbin/sshd", "-D", "-e", "-f", self.folder / "server"),
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait_for(self, host):
        end = time.monotonic() + LIMIT_S
        while subprocess.run(self.hosts.all[0].within(*self.agent.split(), host.name, "true"),
                             capture_output=True).returncode != 0:
            if time.monotonic() > end:
                raise RuntimeError(f"no ssh: {(self.folder / f'{host.name}.log').read_text()[-1000:]}")
            time.sleep(0.1)

    def words(self, on_each, settings):
        if self.way == "oshrun-mpirun":
            return self.oshrun(on_each)
        places = ",".join(f"{host.name}:{on_each}" for host in self.hosts.all)
        passed = [word for name in {**OVER_TCP, **settings} for word in ("-x", name)]
        return [*LAUNCHERS["openmpi"], "--host", places, *passed]

    def revive_host(self):
        self.servers[1].wait(LIMIT_S)
        self.servers[1] = self.serve(self.hosts.all[1])
        self.wait_for(self.hosts.all[1])

    def close(self):
        for server in self.servers:
            server.terminate()
            server.wait(LIMIT_S)
        super().close()


class Slurm(TwoHosts):
    """srun, with a slurmd on each host; oshrun in an allocation."""

    def prepare(self):
        self.slurm = None
        self.slurm = slurm_of_tests.Slurm(self.folder, self.hosts.all)
        self.environment = self.slurm.environment

    def words(self, on_each, settings):
        places = ["-N", 2, "--ntasks-per-node", on_each]
        if self.way == "oshrun-srun":
            return ["salloc", "--quiet", "--overcommit", *places, "-n", 2 * on_each, BUILD / "bin/oshrun"]
        return [*LAUNCHERS[self.way], *places]

    def lose_host(self):
        self.slurm.kill_host(1)

    def revive_host(self):
        self.slurm.revive_host(1)

    def close(self):
        if self.slurm:
            self.slurm.close()
        super().close()


WAYS = {"hydra": Hydra, "oshrun-hydra": Hydra, "openmpi": OpenMpi, "oshrun-mpirun": OpenMpi, "slurm-pmi2": Slurm,
        "slurm-pmix": Slurm, "oshrun-srun": Slurm}

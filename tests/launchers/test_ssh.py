"""Open MPI's mpirun over real ssh: two hosts, which are namespaces of this machine, each with an sshd of its own, and
keys made for the test. By itself, and behind oshrun --hosts."""

import pathlib
import subprocess
import time

import namespace_hosts
import pytest
from conftest import BUILD, LAUNCHERS, LIMIT_S, Result

SETTINGS = {"HEDDLE_NET_TRANSPORTS": "tcp", "HEDDLE_NET_HEARTBEAT_TIMEOUT_S": "60"}
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


class Ssh:
    def __init__(self, here, folder):
        self.here, self.folder = here, folder
        self.hosts = namespace_hosts.Hosts(folder, 2)
        for name in ["host_key", "key"]:
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True,
                           timeout=LIMIT_S)
        (folder / "server").write_text(SERVER.format(folder=folder))
        (folder / "client").write_text(CLIENT.format(folder=folder))
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)  # that sshd wants to be there
        self.agent = f"ssh -F {folder}/client"
        self.servers = []
        for host in self.hosts.all:
            log = (folder / f"{host.name}.log").open("w")
            self.servers.append(subprocess.Popen(host.within("/usr/sbin/sshd", "-D", "-e", "-f", folder / "server"),
                                                 stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        for host in self.hosts.all:
            self.wait_for(host)

    def wait_for(self, host):
        end = time.monotonic() + LIMIT_S
        while subprocess.run(self.hosts.all[0].within(*self.agent.split(), host.name, "true"),
                             capture_output=True).returncode != 0:
            if time.monotonic() > end:
                raise RuntimeError(f"no ssh: {(self.folder / f'{host.name}.log').read_text()[-1000:]}")
            time.sleep(0.1)

    def run(self, way, on_each, *words, **settings):
        """way: mpirun or oshrun."""
        places = ",".join(f"{host.name}:{on_each}" for host in self.hosts.all)
        settings = {**SETTINGS, "OMPI_MCA_plm_rsh_agent": self.agent, **settings}
        if way == "oshrun":
            command = [BUILD / "bin/oshrun", "--hosts", places]
        else:
            passed = [word for name in settings if name.startswith("HEDDLE_") for word in ("-x", name)]
            command = [*LAUNCHERS["openmpi"], "--host", places, *passed]
        return command_in(self.hosts.all[0], [*command, "-n", 2 * on_each, self.here.program, *words], settings)

    def start(self, way, on_each, *words):
        command = self.run(way, on_each, *words)
        return subprocess.Popen(command, env=self.here.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def close(self):
        for server in self.servers:
            server.terminate()
            server.wait(LIMIT_S)
        self.hosts.close()


def command_in(host, words, settings):
    return host.within("env", *(f"{name}={value}" for name, value in settings.items()), *words)


@pytest.fixture(scope="module")
def ssh(here, tmp_path_factory):
    if lacking := namespace_hosts.missing():
        pytest.skip(f"hosts of namespaces need {lacking}")
    made = Ssh(here, tmp_path_factory.mktemp("ssh"))
    yield made
    made.close()


@pytest.mark.parametrize("way", ["mpirun", "oshrun"])
@pytest.mark.parametrize("on_each", [1, 2])
def test_starts(here, ssh, way, on_each):
    here.run(*ssh.run(way, on_each)).is_well(2 * on_each, near=on_each)


@pytest.mark.parametrize("way", ["mpirun", "oshrun"])
def test_starts_256(here, ssh, way):
    here.run(*ssh.run(way, 128, "hello", HEDDLE_NET_HEARTBEAT_TIMEOUT_S="600")).is_well(256, near=128)


@pytest.mark.parametrize("way", ["mpirun", "oshrun"])
@pytest.mark.parametrize("end,status", [("exit", 7), ("global", 5), ("kill", 137)])
def test_a_pe_ends_the_job(here, ssh, way, end, status):
    """With the status that oshrun has on one host."""
    result = here.run(*ssh.run(way, 2, end))
    assert result.status == status and len(result.processes) == 4, result
    result.leaves_nothing()


@pytest.mark.parametrize("way", ["mpirun", "oshrun"])
def test_a_host_that_dies_ends_the_job(ssh, way):
    process = ssh.start(way, 1, "stay")
    out = "".join(process.stdout.readline() for _ in range(2))
    server = ssh.servers[1]
    ssh.hosts.all[1].kill_all()
    server.wait(LIMIT_S)
    rest, err = process.communicate(timeout=LIMIT_S)
    result = Result(process.returncode, out + rest, err)
    ssh.servers[1] = subprocess.Popen(ssh.hosts.all[1].within("/usr/sbin/sshd", "-D", "-f", ssh.folder / "server"),
                                      stdin=subprocess.DEVNULL)
    ssh.wait_for(ssh.hosts.all[1])
    assert result.status != 0 and len(result.processes) == 2, result
    result.leaves_nothing()


def test_a_job_that_takes_too_long_is_ended(here, ssh):
    result = here.run(*command_in(ssh.hosts.all[0], [
        BUILD / "bin/oshrun", "--hosts", ",".join(host.name for host in ssh.hosts.all), "--ppn", 1, "--timeout", 10,
        here.program, "stay"], {**SETTINGS, "OMPI_MCA_plm_rsh_agent": ssh.agent}))
    assert result.status == 124 and len(result.processes) == 2, result
    assert "oshrun: the job has not ended within 10 s (--timeout); ending it" in result.err, result
    result.leaves_nothing()

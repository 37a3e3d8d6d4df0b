"""The processes of a job that finds itself by a rendezvous, and the bytes by which a stranger talks to its server."""

import contextlib
import os
import pathlib
import struct
import subprocess

from conftest import wait_until

MAGIC, JOIN, WAITING, REFUSED, START = 0x317a64726c646568, 1, 2, 3, 4  # src/bootstrap/rendezvous/message.h
LIMIT_S = 120


class Job:
    """Processes that a test starts one by one, as a daemon would. Ends those that are left."""

    def __init__(self, programs, folder):
        self.programs, self.folder, self.processes = programs, folder, []
        self.file = folder / "id"

    def start(self, *command, within=(), **variables):
        inherited = {name: text for name, text in os.environ.items()
                     if not name.startswith(("PMI", "SLURM_", "HEDDLE_", "OMPI_"))}
        settings = {"SHMEM_SYMMETRIC_SIZE": "1M", **variables}
        process = subprocess.Popen([*map(str, within), *map(str, command)], env={**inherited, **settings}, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.processes.append(process)
        return process

    def pe(self, pe, pes, *way, **options):
        """A PE by the unique id in the file."""
        return self.start(self.programs / "unique_id", self.file, pe, pes, *way, **options)

    def worker(self, rank, size, port, *way, **options):
        """A PE by the environment."""
        return self.start(self.programs / "pmi", *way, **{
            "HEDDLE_LAUNCH": "env", "RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port), **options})

    def finish(self):
        """(status, out, err) of each, in the order of their starts."""
        results = []
        for process in self.processes:
            out, err = process.communicate(timeout=LIMIT_S)
            results.append((process.returncode, out, err))
        self.processes = []
        return results

    def place(self):
        """(token, port) of the id."""
        assert wait_until(self.file.exists)
        _, _, token, port = struct.unpack_from("=QQQH", self.file.read_bytes())
        return token, port

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()


def descriptors(process):
    """What the process has open: its numbers, each with what it leads to."""
    found = {}
    with contextlib.suppress(FileNotFoundError):  # the process has ended
        for each in pathlib.Path("/proc", str(process.pid), "fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile, such as a socket that did not connect
                found[int(each.name)] = os.readlink(each)
    return found


def joins(token, pe, pes, host=1):
    """The bytes of a PE that asks to join."""
    payload = struct.pack("=QQiii64s4xQ", token, host, pe, pes, 7, b"elsewhere", 0)
    return struct.pack("=QII", MAGIC, JOIN, len(payload)) + payload


def answers(connection, last=WAITING):
    """The (kind, payload) that come until the end of the connection, or until the last kind."""
    got, found = b"", []
    connection.settimeout(LIMIT_S)
    while True:
        while len(got) >= 16 and len(got) >= 16 + struct.unpack_from("=QII", got)[2]:
            magic, kind, size = struct.unpack_from("=QII", got)
            assert magic == MAGIC
            found.append((kind, got[16:16 + size]))
            got = got[16 + size:]
        if found and found[-1][0] == last:
            return found
        more = connection.recv(65536)
        if not more:
            return found
        got += more

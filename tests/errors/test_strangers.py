"""Processes that are no PEs, at the TCP ports of PEs: what they send reaches no memory, and the job goes on, or ends
with a message that says which PE has ended."""

import contextlib
import os
import pathlib
import random
import re
import socket
import struct
import subprocess

import pytest
from conftest import BUILD, OSHRUN, PROGRAMS, TIMEOUT_S, execute

pytestmark = pytest.mark.skipif(not (BUILD / "lib" / "libheddle_ucx.so").exists(),
                                reason="there is no plugin for a network")
SETTINGS = {"HEDDLE_TEST_PES_PER_NODE": "1", "HEDDLE_NET_TRANSPORTS": "tcp"}
PES = 2


def listening(pid):
    """The addresses at which a process listens, of TCP over IPv4."""
    process = pathlib.Path(f"/proc/{pid}")
    links = []
    for fd in (process / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            links.append(os.readlink(fd))
    mine = {match[1] for link in links if (match := re.fullmatch(r"socket:\[(\d+)\]", link))}
    rows = [line.split() for line in (process / "net" / "tcp").read_text().splitlines()[1:]]
    local = [row[1].split(":") for row in rows if row[3] == "0A" and row[9] in mine]
    return [(socket.inet_ntoa(bytes.fromhex(address)[::-1]), int(port, 16)) for address, port in local]


def job_with_strangers(folder, send, times=1):
    """Status, output, errors of a job to whose ports strangers connect; send(connection) is what each does."""
    file = folder / "end"
    environment = {**os.environ, **SETTINGS}
    with subprocess.Popen([OSHRUN, "-n", str(PES), str(PROGRAMS / "strangers"), str(file)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as job:
        pids = [int(job.stdout.readline().split()[1]) for _ in range(PES)]
        addresses = [address for pid in pids for address in listening(pid)]
        assert len(addresses) >= PES
        with contextlib.ExitStack() as open_ones:
            for address in addresses * times:
                with contextlib.suppress(OSError):  # the job may have ended, or has closed the connection
                    connection = open_ones.enter_context(socket.create_connection(address, timeout=10))
                    send(connection)
            file.touch()
            out, err = job.communicate(timeout=TIMEOUT_S)
    return job.returncode, out, err


def noise(number):
    return random.Random(number).randbytes(number)


STRANGERS = {"nothing": b"", "a byte": b"x", "a request": b"GET / HTTP/1.1\r\nHost: pe\r\n\r\n", "zeroes": bytes(4096),
             "ones": b"\xff" * 4096, "noise": noise(100), "much noise": noise(65536), "megabytes": bytes(8 << 20)}


@pytest.mark.parametrize("kind", STRANGERS)
def test_who_does_not_speak_ucx_changes_nothing(tmp_path, kind):
    status, out, err = job_with_strangers(tmp_path, lambda connection: connection.sendall(STRANGERS[kind]), 3)
    assert (status, out.split(), err) == (0, ["right"] * PES, ""), (status, out, err)


def test_connections_that_close_at_once_change_nothing(tmp_path):
    status, out, err = job_with_strangers(tmp_path, lambda connection: connection.close(), 50)
    assert (status, out.split(), err) == (0, ["right"] * PES, ""), (status, out, err)


# What UCX begins its connections with (1.13), and the beginning of a message: its number and length.
MAGIC = struct.pack("<Q", 0xCAFEBABE12345678)


def packet(number, body, length=None):
    return struct.pack("<BI", number, len(body) if length is None else length) + body


UCX = {"magic": MAGIC, "half": MAGIC[:5], "noise": MAGIC + noise(3000), "zeroes": MAGIC + bytes(3000),
       "ones": MAGIC + b"\xff" * 3000, "connection": MAGIC + packet(32, struct.pack("<I", 1) + bytes(200)),
       "long": MAGIC + packet(32, b"", 0x7fffffff) + bytes(100000), "message": MAGIC + packet(10, bytes(64)),
       "half a message": MAGIC + packet(2, bytes(10), 1000)}


@pytest.mark.parametrize("kind", UCX)
def test_who_begins_as_ucx_does_changes_nothing_or_ends_the_job_by_name(tmp_path, kind):
    """UCX itself ends the process on bytes that it does not expect: docs/user/running.md says so."""
    status, out, err = job_with_strangers(tmp_path, lambda connection: connection.sendall(UCX[kind]))
    assert "wrong" not in out.split(), (status, out, err)
    if status == 0:
        assert [line for line in out.splitlines() if "UCX" not in line] == ["right"] * PES, (status, out, err)
    else:
        assert re.search(r"^oshrun: PE \d \(.*\) was killed by signal 6", err, re.M), (status, out, err)


def test_messages_of_another_job_are_refused(tmp_path):
    result = execute([OSHRUN, "-n", PES, PROGRAMS / "strangers", "forge"], **SETTINGS)
    assert result.status == 0 and result.out.split().count("right") == PES, result
    assert result.err == "heddle [pe 0] network: refused a message that does not come from this job\n", result

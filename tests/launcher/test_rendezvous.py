"""Jobs whose PEs find each other by one TCP rendezvous: by a unique id, which the program passes on, and by the
environment in the way of torchrun (HEDDLE_LAUNCH=env). Right ones, those with wrong or missing partners, strangers at
the port, and ends."""

import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest
from conftest import PROGRAMS, build, wait_until
from processes import stop
from rendezvous_job import JOIN, LIMIT_S, MAGIC, REFUSED, START, WAITING, Job, answers, descriptors, joins

NET = {"HEDDLE_NET_TRANSPORTS": "tcp", "HEDDLE_NET_HEARTBEAT_TIMEOUT_S": "60"}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rendezvous")
    for name in ("unique_id", "pmi"):
        subprocess.run([build() / "bin" / "oshcc", "-O2", "-Wall", PROGRAMS / f"{name}.c", "-o", folder / name],
                       check=True, timeout=LIMIT_S)
    return folder


@pytest.fixture
def job(programs, tmp_path):
    it = Job(programs, tmp_path)
    yield it
    it.end()


def free_port():
    """A port that is free, and so is the next one. The kernel gives neither to a socket that asks for any port."""
    first_given = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(1024, first_given - 1)
        try:
            with socket.create_server(("", port)), socket.create_server(("", port + 1)):
                return port
        except OSError:
            continue


def line(pe, pes, near=None):
    return f"PE {pe} of {pes}: {pes * (pes + 1) // 2}, {near or pes} near\n"


def check_is_well(results, near=None, times=1, err=""):
    pes = len(results)
    assert results == [(0, line(pe, pes, near) * times, err) for pe in range(pes)]


def check_fails(results, *patterns):
    """Each PE fails by one message, which has each of the patterns."""
    for status, out, err in results:
        assert status in (1, 3) and (out == "" or "init returns" in out), results
        assert len(re.findall("^heddle .*shmem", err, re.MULTILINE)) == 1, results
        for pattern in patterns:
            assert re.search(pattern, err), (pattern, results)


# --- right jobs ---

@pytest.mark.parametrize("pes", [1, 2, 3, 4, 7, 8])
def test_unique_id(job, pes):
    for pe in range(pes):
        job.pe(pe, pes)
    check_is_well(job.finish())


@pytest.mark.parametrize("pes", [1, 2, 3, 4, 7, 8])
def test_environment(job, pes):
    port = free_port()
    for pe in reversed(range(pes)):
        job.worker(pe, pes, port)
    check_is_well(job.finish()[::-1])


def test_pretended_nodes(job):
    """Addresses of the network go by the rendezvous, and the barriers between nodes."""
    for pe in range(3):
        job.pe(pe, 3, "twice", HEDDLE_TEST_PES_PER_NODE="1", **NET)
    check_is_well(job.finish(), near=1, times=2)


def test_threads_may_be_asked_for(job):
    for pe in range(2):
        job.pe(pe, 2, "threads")
    check_is_well(job.finish())


def test_the_maker_of_the_id_may_be_no_pe(job):
    """A driver, which lives as long as the job."""
    driver = job.start(job.programs / "unique_id", job.file, 0, 0, "serve")
    job.place()
    for pe in range(2):
        job.pe(pe, 2)
    results = [(process.wait(LIMIT_S), *process.communicate(timeout=LIMIT_S)) for process in job.processes[1:]]
    check_is_well(results)
    assert driver.poll() is None


def test_names_are_resolved(job):
    port = free_port()
    for pe in range(2):
        job.worker(pe, 2, port, MASTER_ADDR="localhost", LOCAL_RANK=str(pe), LOCAL_WORLD_SIZE="2")
    check_is_well(job.finish())


def test_a_store_of_torchrun_has_the_port(job):
    with socket.create_server(("127.0.0.1", free_port())) as store:
        for pe in range(2):
            job.worker(pe, 2, store.getsockname()[1], TORCHELASTIC_USE_AGENT_STORE="True")
        check_is_well(job.finish())


def test_a_world_of_one_needs_no_port(job):
    with socket.create_server(("127.0.0.1", 0)) as other:
        job.worker(0, 1, other.getsockname()[1])
        check_is_well(job.finish())


def test_a_port_is_free_again(job):
    port = free_port()
    for _ in range(2):
        for pe in range(2):
            job.worker(pe, 2, port)
        check_is_well(job.finish())


def test_a_program_that_a_pe_starts_is_no_pe(job, tmp_path):
    source = tmp_path / "parent.c"
    source.write_text('#include <shmem.h>\n#include <stdlib.h>\nint main(int argc, char** argv) {\n'
                      'shmem_init();\nint status = system(argv[1]);\nshmem_finalize();\nreturn status != 0;}')
    subprocess.run([build() / "bin" / "oshcc", source, "-o", tmp_path / "parent"], check=True, timeout=LIMIT_S)
    port = free_port()
    for pe in range(2):
        job.start(tmp_path / "parent", job.programs / "pmi", HEDDLE_LAUNCH="env", RANK=str(pe), WORLD_SIZE="2",
                  MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    assert job.finish() == [(0, line(0, 1), "")] * 2


def test_never_alone_by_mistake(job):
    """The variables of torchrun without HEDDLE_LAUNCH=env."""
    job.worker(0, 2, free_port(), HEDDLE_LAUNCH="auto")
    check_fails(job.finish(), r"\(WORLD_SIZE=2\)", "right would be HEDDLE_LAUNCH=env, or HEDDLE_LAUNCH=alone")


# --- missing and wrong partners ---

@pytest.mark.parametrize("here,missing", [((0, 2), "PE 1 and 3 of 4 have"), ((0, 1, 2), "PE 3 of 4 has")])
def test_who_is_missing(job, here, missing):
    for pe in here:
        job.pe(pe, 4, HEDDLE_LAUNCH_TIMEOUT_S="1")
    check_fails(job.finish(), r"shmemx_init_uniqueid: PE \d of 4 on host \S+, at the rendezvous [\d.]+:\d+: " +
                missing + r" not come within 1 s \(HEDDLE_LAUNCH_TIMEOUT_S\); here are PE 0")


def test_pe_0_is_missing(job):
    driver = job.start(job.programs / "unique_id", job.file, 0, 0, "serve", HEDDLE_LAUNCH_TIMEOUT_S="1")
    job.place()
    for pe in (1, 2):
        job.pe(pe, 3, HEDDLE_LAUNCH_TIMEOUT_S="1")
    results = [(process.wait(LIMIT_S), *process.communicate(timeout=LIMIT_S)) for process in job.processes[1:]]
    check_fails(results, "PE 0 of 3 has not come within 1 s")
    assert driver.poll() is None


def test_nobody_listens(job):
    port = free_port()
    job.worker(1, 2, port, HEDDLE_LAUNCH_TIMEOUT_S="1")
    check_fails(job.finish(), rf"PE 1 of 2 on host \S+, on its way to the rendezvous at 127.0.0.1:{port}: not found "
                r"within 1 s \(HEDDLE_LAUNCH_TIMEOUT_S\): Connection refused; right would be PE 0 \(RANK=0\)")


def test_a_host_that_has_no_address(job):
    job.worker(1, 2, 4000, MASTER_ADDR="no-such-host.invalid", HEDDLE_LAUNCH_TIMEOUT_S="1")
    check_fails(job.finish(), "no-such-host.invalid:4000: not found within 1 s .*: right would be|not found within 1 s")


def test_another_program_listens(job):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        job.worker(0, 2, port)
        check_fails(job.finish(), rf"cannot listen on port {port}: Address already in use; right would be a port that "
                    "no other job")


def test_two_jobs_at_one_port(job):
    """The second one hears of it, the first one starts."""
    port = free_port()
    job.worker(0, 2, port, HEDDLE_LAUNCH_TOKEN="first")
    wait_until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0)
    first, job.processes = job.processes, []
    for pe in range(2):
        job.worker(pe, 2, port, HEDDLE_LAUNCH_TOKEN="second")
    second = job.finish()
    check_fails(second[:1], "Address already in use")
    check_fails(second[1:], r"PE 1 of 2 is of another job \(its token differs\)")
    job.processes = first
    job.worker(1, 2, port, HEDDLE_LAUNCH_TOKEN="first")
    results = job.finish()
    assert [(status, out) for status, out, _ in results] == [(0, line(pe, 2)) for pe in range(2)], results
    assert "launcher: refused a connection from 127.0.0.1:" in results[0][2]


@pytest.mark.parametrize("pe,pes,words", [(2, 2, "my_pe 2 is out of range: right would be 0 to n_pes - 1, 1"),
                                          (-1, 2, "my_pe -1 is out of range"), (0, 0, "n_pes 0 is out of range"),
                                          (0, 5000, "n_pes 5000 is out of range: right would be 1 to 4096")])
def test_numbers_out_of_range(job, pe, pes, words):
    job.file.write_bytes(bytes(128))
    job.pe(pe, pes)
    check_fails(job.finish(), words)


@pytest.mark.parametrize("seed", range(3))
def test_bytes_that_are_no_id(job, seed):
    job.file.write_bytes(random.Random(seed).randbytes(128) if seed else bytes(128))
    job.pe(0, 2)
    check_fails(job.finish(), "id is no unique id: right would be the 128 bytes that shmemx_get_uniqueid")


def test_a_second_claim_of_a_number(job):
    """The first one stays, and the job starts when the others come."""
    job.pe(0, 3)
    job.place()
    both = [job.pe(1, 3) for _ in range(2)]  # either may be the first
    assert wait_until(lambda: any(process.poll() is not None for process in both))
    job.pe(2, 3)
    results = job.finish()
    refused = [result for result in results if result[0] != 0]
    check_fails(refused, "PE 1 of 3 is here already: process [0-9]+ on host")
    assert sorted(out for status, out, _ in results if status == 0) == [line(pe, 3) for pe in range(3)], results


def test_another_number_of_pes(job):
    job.pe(0, 2)
    job.place()
    wrong = job.pe(1, 3)
    assert wait_until(lambda: wrong.poll() is not None)
    job.pe(1, 2)
    results = job.finish()
    check_fails(results[1:2], "PE 1 of 3 is none of this job, which has 2 PEs")
    assert [results[0][1], results[2][1]] == [line(0, 2), line(1, 2)], results


@pytest.mark.parametrize("variables,words", [
    ({"RANK": "2"}, "RANK=2: right would be a number from 0 to 1"),
    ({"RANK": ""}, "RANK=: right would be"),
    ({"WORLD_SIZE": "two"}, "WORLD_SIZE=two: right would be a number from 1 to 4096"),
    ({"MASTER_PORT": "70000"}, "MASTER_PORT=70000: right would be"),
    ({"MASTER_ADDR": ""}, "MASTER_ADDR is not set: right would be the name or address of the host of PE 0"),
    ({"LOCAL_RANK": "1"}, "LOCAL_RANK=1: right would be a number from 0 to 0"),
    ({"LOCAL_WORLD_SIZE": "3"}, "LOCAL_WORLD_SIZE=3: right would be a number from 1 to 2"),
])
def test_variables(job, variables, words):
    job.worker(0, 2, free_port(), **variables)
    check_fails(job.finish(), r"at its environment \(HEDDLE_LAUNCH=env\), ?.*: " + re.escape(words))


def test_sizes_that_differ(job):
    """A PE that finds its job wrong ends it for all, who hear why."""
    for pe in range(3):
        job.pe(pe, 3, SHMEM_SYMMETRIC_SIZE="2M" if pe == 1 else "1M")
    check_fails(job.finish(), "SHMEM_SYMMETRIC_SIZE is")


# --- strangers at the port ---

def test_strangers(job):
    """Whatever comes to the port: it is refused, and the job starts with the right ones."""
    random_bytes = random.Random(7).randbytes
    job.pe(0, 3)
    token, port = job.place()
    right = joins(token, 1, 3)
    half = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
    for connection, size in zip(half, (0, 10, 40)):
        connection.sendall(right[:size])
    for data in (random_bytes(64), random_bytes(4096), b"GET / HTTP/1.0\r\n\r\n", right[:8] + random_bytes(200),
                 struct.pack("=QII", MAGIC, JOIN, 2**32 - 1), struct.pack("=QII", MAGIC, 9, 0),
                 struct.pack("=QII", MAGIC, 99, 0)):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(data)
            found = answers(connection)
            assert [kind for kind, _ in found] == [REFUSED] and b"no request of a PE" in found[0][1], (data, found)
    for data, words in ((joins(token ^ 1, 1, 3), b"its token differs"), (joins(token, 1, 4), b"which has 3 PEs"),
                        (joins(token, 3, 3), b"cannot be"), (joins(token, -1, 3), b"cannot be"),
                        (joins(token, 0, 3), b"is here already"), (joins(token, 0, 2**31 - 1), b"cannot be")):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(data)
            found = answers(connection)
            assert [kind for kind, _ in found] == [REFUSED] and words in found[0][1], (data, found)
    for pe in (1, 2):
        job.pe(pe, 3)
    results = job.finish()
    assert [(status, out) for status, out, _ in results] == [(0, line(pe, 3)) for pe in range(3)], results
    assert results[0][2].count("launcher: refused a connection from 127.0.0.1:") == 8, results
    for connection in half:
        connection.close()


def test_a_pe_that_asked_again_is_not_taken_for_two(job):
    """Its first connection waits with its bytes, closed, while the server's process is stopped."""
    first = job.pe(0, 2)
    token, port = job.place()
    stop(first.pid)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(joins(token, 1, 2))
    first.send_signal(signal.SIGCONT)
    time.sleep(0.3)
    job.pe(1, 2)
    check_is_well(job.finish())


def test_the_number_of_pes_of_a_pe_0_that_has_gone(job):
    driver = job.pe(0, 1, "serve")
    token, port = job.place()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(joins(token, 0, 3))
        answers(connection)
    job.processes.remove(driver)
    for pe in range(2):
        job.pe(pe, 2)
    check_is_well(job.finish())
    driver.communicate(timeout=LIMIT_S)


@pytest.mark.parametrize("address", ["127.0.1.1", "localhost"])
def test_the_name_of_a_host_may_mean_loopback(job, address):
    port = free_port()
    for rank in range(2):
        job.worker(rank, 2, port, MASTER_ADDR=address)
    check_is_well(job.finish())


def test_a_pe_that_goes_before_all_are_there(job):
    """Its number is free again."""
    job.pe(0, 3)
    token, port = job.place()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(joins(token, 1, 3))
        assert answers(connection)[0][0] == WAITING
    job.pe(1, 3)
    job.pe(2, 3)
    check_is_well(job.finish())


@pytest.mark.parametrize("data", [b"garbage that is no message", struct.pack("=QII", MAGIC, 5, 4) + b"\1\0\0\0",
                                  struct.pack("=QII", MAGIC, 6, 0), struct.pack("=QII", MAGIC, JOIN, 0),
                                  struct.pack("=QII", MAGIC, 8, 12) + struct.pack("=iII", 0, 60, 0)])
def test_a_pe_that_breaks_the_protocol(job, data):
    job.pe(0, 2)
    token, port = job.place()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(joins(token, 1, 2))
        assert [kind for kind, _ in answers(connection, START)] == [WAITING, START]
        connection.sendall(data)
        results = job.finish()
    check_fails(results, r"PE 1 \(process 7 on host elsewhere\) has sent bytes that are no message of a rendezvous")


def test_a_pe_that_stays_in_its_init(job):
    job.pe(0, 2, HEDDLE_LAUNCH_TIMEOUT_S="1")
    token, port = job.place()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(joins(token, 1, 2))
        answers(connection)
        check_fails(job.finish(), r"PE 1 \(process 7 on host elsewhere\) does not go on in its init, for 1 s")


# --- ends ---

@pytest.mark.parametrize("way", ["die", "child"])
@pytest.mark.parametrize("dead", [0, 2])
def test_a_pe_dies(job, dead, way):
    """Also where a process that it has forked lives on."""
    for pe in range(4):
        job.pe(pe, 4, way, dead)
    for process in job.processes:
        process.wait(LIMIT_S)
    results = job.finish()
    words = "which served the job" if dead == 0 else rf"PE {dead} \(process \d+ on host \S+\) has ended without"
    for pe, (status, out, err) in enumerate(results):
        assert (status, out) == (-9 if pe == dead else 1, line(pe, 4)), results
        assert pe == dead or re.fullmatch(rf"heddle \[pe {pe}\] launcher: .*{words}.*\n", err), results


@pytest.mark.parametrize("pe_that_ends", [0, 1])
@pytest.mark.parametrize("way,status", [("fatal", 1), ("global", 5)])
def test_a_pe_ends_the_job(job, pe_that_ends, way, status):
    for pe in range(3):
        job.pe(pe, 3, way, pe_that_ends)
    results = job.finish()
    assert [code for code, _, _ in results] == [status] * 3, results
    for pe, (_, _, err) in enumerate(results):
        assert pe == pe_that_ends or re.fullmatch(
            rf"heddle \[pe {pe}\] launcher: PE {pe_that_ends} \(process \d+ on host \S+\) has ended the job with "
            rf"status {status}\n", err), results


@pytest.mark.parametrize("way", ["after", "hurry"])
def test_a_pe_may_end_when_it_has_finalized(job, way):
    """PE 0, too, whose process serves the job; and by _exit."""
    for pe in range(3):
        job.pe(pe, 3, way)
    check_is_well(job.finish())


def test_init_again(job):
    for pe in range(2):
        job.pe(pe, 2, "other")
    for pe, (status, out, err) in enumerate(job.finish()):
        assert (status, out) == (0, line(pe, 2) + "again 0, another 1\n")
        assert f"this process is PE {pe} of 2 already: right would be the id, my_pe and n_pes of that job" in err


def test_nothing_is_left(job):
    """No port, no file, no process: all that there was ends with the processes."""
    before = set(os.listdir("/dev/shm")) | set(os.listdir(os.environ.get("TMPDIR", "/tmp")))
    job.pe(0, 2)
    _, port = job.place()
    job.pe(1, 2)
    check_is_well(job.finish())
    assert socket.socket().connect_ex(("127.0.0.1", port)) != 0
    left = set(os.listdir("/dev/shm")) | set(os.listdir(os.environ.get("TMPDIR", "/tmp")))
    assert not [name for name in left - before if "heddle" in name]


def test_nothing_of_the_job_stands_for_standard_descriptors(job):
    """A daemon has closed them: what the program writes there must not go to a socket of the library."""
    port = free_port()
    for rank in range(2):
        job.worker(rank, 2, port, "signal", within=("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"))
    for process in job.processes:
        assert wait_until(lambda it=process: any("socket" in to for to in descriptors(it).values()))
        assert {descriptors(process).get(number) for number in range(3)} == {"/dev/null"}, descriptors(process)
        process.send_signal(signal.SIGUSR1)
    assert [status for status, _, _ in job.finish()] == [0, 0]


def test_a_driver_keeps_nothing_of_a_job_that_is_over(job):
    driver = job.pe(0, 2, "serve")
    job.place()
    assert len(descriptors(driver)) > 3
    job.processes.remove(driver)
    for pe in range(2):
        job.pe(pe, 2)
    check_is_well(job.finish())
    assert wait_until(lambda: set(descriptors(driver)) == {0, 1, 2}), descriptors(driver)
    assert wait_until(lambda: len(os.listdir(f"/proc/{driver.pid}/task")) == 1)
    driver.communicate(timeout=LIMIT_S)


# --- hosts made of namespaces ---

@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
    import namespace_hosts
    if lacking := namespace_hosts.missing():
        pytest.skip(f"hosts of namespaces need {lacking}")
    if not (build() / "lib" / "libheddle_ucx.so").exists():
        pytest.skip("jobs on several hosts need libheddle_ucx.so")
    made = namespace_hosts.Hosts(tmp_path_factory.mktemp("hosts"), 2)
    yield made
    made.close()


@pytest.mark.parametrize("pes", [2, 4])
def test_two_hosts_by_id(job, hosts, pes):
    """The id carries the host's address."""
    for pe in range(pes):
        job.pe(pe, pes, within=hosts.all[2 * pe // pes].within(), **NET)
    check_is_well(job.finish(), near=pes // 2)


def test_two_hosts_by_environment(job, hosts):
    for pe in range(2):
        job.worker(pe, 2, 29500, MASTER_ADDR=hosts.all[0].name, within=hosts.all[pe].within(), **NET)
    check_is_well(job.finish(), near=1)


def test_a_pe_dies_on_another_host(job, hosts):
    for pe in range(2):
        job.pe(pe, 2, "die", 1, within=hosts.all[pe].within(), **NET)
    results = job.finish()
    assert results[0][0] == 1 and re.search(rf"PE 1 \(process \d+ on host {hosts.all[1].name}\) has ended without",
                                            results[0][2]), results

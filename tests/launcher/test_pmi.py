"""PMI-1 and PMI-2 as a process manager of our own speaks them, and what a client must withstand. The real ones are the
subject of tests/launchers."""

import random
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import PROGRAMS, build
from pmi_manager import MAX_MESSAGE, Manager

COMMANDS = {1: ["init", "get_maxes", "get_my_kvsname", "put", "barrier_in", "get"],
            2: ["init", "fullinit", "job-getid", "kvs-put", "kvs-fence", "kvs-get"]}
EVERY = [(version, command) for version, commands in COMMANDS.items() for command in commands]
LAUNCH = {1: "pmi", 2: "pmi2"}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("pmi") / "pmi"
    subprocess.run([build() / "bin" / "oshcc", "-O2", "-Wall", PROGRAMS / "pmi.c", "-o", path], check=True, timeout=120)
    return path


def lines_of(pes, near):
    return [f"PE {pe} of {pes}: {pes * (pes + 1) // 2}, {near} near" for pe in range(pes)]


def check_is_well(results, near=None):
    assert [status for status, _, _ in results] == [0] * len(results), results
    assert [out.strip() for _, out, _ in results] == lines_of(len(results), near or len(results)), results


def check_is_refused(results, words):
    """Each PE ends by itself, by one line."""
    for status, out, err in results:
        assert status == 1 and out == "" and err.count("\n") == 1, results
        assert re.search(words, err), results


def at(version, command, change, pe=None):
    """Spoils the answer to a command, to each PE or to one."""
    return lambda its, its_command, answer: (change(answer) if its_command == command and pe in (None, its) else answer)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("pes", [1, 2, 4, 7])
def test_right(program, version, pes):
    manager = Manager(pes)
    check_is_well(manager.run([program], HEDDLE_LAUNCH=LAUNCH[version]))
    assert [command for _, command in manager.commands].count("finalize") == pes


@pytest.mark.parametrize("version", [1, 2])
def test_pretended_nodes(program, version):
    check_is_well(Manager(3).run([program], HEDDLE_LAUNCH=LAUNCH[version], HEDDLE_TEST_PES_PER_NODE="1",
                                 HEDDLE_NET_TRANSPORTS="tcp", HEDDLE_NET_HEARTBEAT_TIMEOUT_S="60"), near=1)


def test_longest_value_is_kept_to(program):
    """Addresses of the network go in several parts."""
    manager = Manager(2, maxes="kvsname_max=256 keylen_max=64 vallen_max=41")
    check_is_well(manager.run([program], HEDDLE_TEST_PES_PER_NODE="1", HEDDLE_NET_TRANSPORTS="tcp",
                              HEDDLE_NET_HEARTBEAT_TIMEOUT_S="60"), near=1)
    assert max(map(len, manager.keys.values())) <= 40 and any(key.endswith(".3") for key in manager.keys)


@pytest.mark.parametrize("versions,taken", [((1, 2), "barrier_in"), ((1,), "barrier_in"), ((2,), "kvs-fence")])
def test_version_is_agreed_upon(program, versions, taken):
    manager = Manager(2, versions)
    check_is_well(manager.run([program]))
    assert {command for _, command in manager.commands} & {"barrier_in", "kvs-fence"} == {taken}


@pytest.mark.parametrize("version", [1, 2])
def test_answers_that_come_by_the_byte(program, version):
    def split(_pe, _command, answer):
        return [answer[i:i + 1] for i in range(len(answer))]
    check_is_well(Manager(2, spoil=split).run([program], HEDDLE_LAUNCH=LAUNCH[version]))


@pytest.mark.parametrize("spoil,words", [
    (lambda _: b"", r"shmem_init: PE \d of 2 and the process manager .*within 1 s \(HEDDLE_LAUNCH_TIMEOUT_S\)"),
    (lambda answer: answer[:len(answer) // 2], r"no answer within 1 s"),
], ids=["nothing", "half"])
def test_no_whole_answer(program, spoil, words):
    """To each command. All jobs wait for their second side by side."""
    def run(version, command):
        return Manager(2, spoil=at(version, command, spoil)).run(
            [program], HEDDLE_LAUNCH=LAUNCH[version], HEDDLE_LAUNCH_TIMEOUT_S="1")
    with ThreadPoolExecutor(len(EVERY)) as jobs:
        for results in jobs.map(run, *zip(*EVERY, strict=True)):
            check_is_refused(results, words)


@pytest.mark.parametrize("version,command", EVERY)
def test_the_process_manager_dies(program, version, command):
    results = Manager(2, spoil=at(version, command, lambda _: None)).run([program], HEDDLE_LAUNCH=LAUNCH[version])
    check_is_refused(results, r"it has closed the connection")


@pytest.mark.parametrize("version,command", EVERY)
def test_another_answer(program, version, command):
    def change(answer):
        other = answer.replace(b"cmd=", b"cmd=x-")
        return other if version == 1 or command == "init" else f"{len(other) - 6:6}".encode() + other[6:]
    results = Manager(2, spoil=at(version, command, change)).run([program], HEDDLE_LAUNCH=LAUNCH[version])
    check_is_refused(results, r"the answer is 'x-[\w-]+': right would be '[\w-]+'")


@pytest.mark.parametrize("version,command", EVERY[1:6] + EVERY[7:])
def test_a_failure(program, version, command):
    def change(answer):
        other = answer.replace(b"rc=0", b"rc=13")
        return other if version == 1 else f"{len(other) - 6:6}".encode() + other[6:]
    results = Manager(2, spoil=at(version, command, change)).run([program], HEDDLE_LAUNCH=LAUNCH[version])
    check_is_refused(results, r"has failed: rc=13")


@pytest.mark.parametrize("version,command", EVERY)
def test_bytes_without_an_end(program, version, command):
    endless = b"c" * (2 * MAX_MESSAGE) if version == 1 or command == "init" else b"999999" + b"c" * MAX_MESSAGE
    results = Manager(2, spoil=at(version, command, lambda _: endless)).run([program], HEDDLE_LAUNCH=LAUNCH[version])
    check_is_refused(results, rf"longer than {MAX_MESSAGE} bytes|begins with '999999', which is no length")


@pytest.mark.parametrize("seed", range(20))
def test_garbage(program, seed):
    """Whatever comes, a PE ends by a line of text, or as if it had not come."""
    source = random.Random(seed)
    version = source.choice([1, 2])
    def change(answer):
        spoiled = bytearray(answer)
        for _ in range(source.randint(1, 4)):
            spoiled[source.randrange(len(spoiled))] = source.choice(b"\0\n ;=-9fz\x80\xff")
        return bytes(spoiled)
    results = Manager(1, spoil=at(version, source.choice(COMMANDS[version][:-1]), change)).run(
        [program], HEDDLE_LAUNCH=LAUNCH[version], HEDDLE_LAUNCH_TIMEOUT_S="1")
    status, _, err = results[0]
    assert status == 0 or (status == 1 and err.startswith("heddle shmem_init: PE ")), (seed, results)


def test_values_that_no_pe_has_published(program):
    """All jobs side by side: some wait for the whole time."""
    def run(old, new):
        return Manager(2, spoil=at(1, "get", lambda answer: answer.replace(old, new), pe=1)).run(
            [program], HEDDLE_LAUNCH="pmi", HEDDLE_LAUNCH_TIMEOUT_S="3")
    changes = [(b"value=0", b"value=G"), (b"value=0", b"value="), (b"value=00000008", b"value=00000009"),
               (b"value=00000008", b"value=ffffffff"), (b"value=00000008", b"value=00000000"), (b"value=", b"valve=")]
    with ThreadPoolExecutor(len(changes)) as jobs:
        for change, results in zip(changes, jobs.map(run, *zip(*changes, strict=True)), strict=True):
            assert results[1][0] == 1 and re.search(r"right would be 1 to 8 bytes|no such key", results[1][2]), (
                change, results)


@pytest.mark.parametrize("change,words", [((b"size=2", b"size=3"), "another rank or size"),
                                          ((b"rank=", b"rank=7"), "another rank or size")])
def test_another_number_of_pes(program, change, words):
    def spoil(answer):
        other = answer.replace(*change)
        return f"{len(other) - 6:6}".encode() + other[6:]
    check_is_refused(Manager(2, spoil=at(2, "fullinit", spoil)).run([program], HEDDLE_LAUNCH="pmi2"), words)


@pytest.mark.parametrize("variables,words", [
    ({"PMI_RANK": "2"}, "PMI_RANK=2: right would be a number from 0 to 1"),
    ({"PMI_RANK": "one"}, "PMI_RANK=one: right would be"),
    ({"PMI_SIZE": "0"}, "PMI_SIZE=0: right would be"),
    ({"PMI_SIZE": "99999999999"}, "PMI_SIZE=99999999999: right would be"),
    ({"PMI_FD": "99", "HEDDLE_LAUNCH": "pmi"}, "PMI_FD=99 is no socket that is open here"),
    ({"PMI_FD": "", "PMI_PORT": "nowhere", "PMI_ID": "0"}, "PMI_PORT=nowhere is malformed: right would be HOST:PORT"),
    ({"PMI_FD": "", "PMI_PORT": "127.0.0.1:1", "PMI_ID": "0"}, "PMI_PORT=127.0.0.1:1: Connection refused"),
])
def test_variables(program, variables, words):
    check_is_refused(Manager(2).run([program], **variables), re.escape(words))


@pytest.mark.parametrize("version", [1, 2])
def test_the_process_manager_dies_while_the_pe_waits(program, version):
    """For ever in a wait, when the output says so."""
    manager = Manager(1)
    results = manager.run([program, "stay"], HEDDLE_LAUNCH=LAUNCH[version], ends_behind="near")
    assert results == [(1, "PE 0 of 1: 1, 1 near\n", "heddle [pe 0] launcher: the launcher has died\n")]


def test_an_abort_is_passed_on(program):
    for version in (1, 2):
        manager = Manager(1)
        results = manager.run([program, "global"], HEDDLE_LAUNCH=LAUNCH[version])
        assert results[0][0] == 5 and manager.aborted and manager.aborted[0] == 0, results
        assert manager.aborted[1].get("exitcode", "5") == "5"


def test_a_program_that_a_pe_starts_is_no_pe(program, tmp_path):
    script = tmp_path / "parent.c"
    script.write_text('#include <shmem.h>\n#include <stdlib.h>\nint main(int argc, char** argv) {\n'
                      'shmem_init();\nint status = argc > 1 ? system(argv[1]) : 0;\n'
                      'shmem_finalize();\nreturn status != 0;}')
    subprocess.run([build() / "bin" / "oshcc", script, "-o", tmp_path / "parent"], check=True, timeout=120)
    results = Manager(2).run([tmp_path / "parent", program])
    assert [(status, out) for status, out, _ in results] == [(0, "PE 0 of 1: 1, 1 near\n")] * 2, results

"""Malformed settings, a job's descriptor and PE that are wrong, limits of the machine: said by shmem_init, which ends
the program, and by shmem_init_thread, which returns nonzero."""

import os
import re

import pytest
from conftest import OSHRUN, PROGRAMS, SANITIZER, both_runs, execute, is_said, message

PROGRAM = PROGRAMS / "errors_inline"
INIT = PROGRAMS / "init_only"

MALFORMED = [("SHMEM_SYMMETRIC_SIZE", value, "a size such as 64M or 1.5G") for value in
             ["12Q", "", "-1", "nan", "inf", "0x10", "1e30", "M", ".", " 1M", "+1M", "1 M", "--", "NaN", "1e400"]]
MALFORMED += [("SMA_SYMMETRIC_SIZE", "huge", "a size such as 64M or 1.5G")]
MALFORMED += [("HEDDLE_BARRIER", value, "auto|central|dissemination|flat")
              for value in ["fast", "", "auto|central", "Auto"]]
MALFORMED += [("HEDDLE_BROADCAST", "bounce", "auto|inline|push|pull"),
              ("HEDDLE_COLLECT", "inline", "auto|bounce|push"),
              ("HEDDLE_FCOLLECT", "pull", "auto|inline|bounce|push"),
              ("HEDDLE_ALLTOALL", "", "auto|inline|bounce|push"),
              ("HEDDLE_REDUCE", "ring", "auto|bounce|sliced"),
              ("HEDDLE_SCAN", "push", "auto|inline|bounce|sliced"),
              ("HEDDLE_COLLECTIVE_THREADS", "4", "auto|one|all"),
              ("HEDDLE_VECTOR", "sse", "auto|baseline|avx2|avx512")]
MALFORMED += [("HEDDLE_OUT_OF_LINE", value, "auto|1|0") for value in ["yes", "2", "", "-1"]]
MALFORMED += [("HEDDLE_MONITOR", "quick", "auto|none|umwait|mwaitx|wfe|fake")]
MALFORMED += [("HEDDLE_NET_TRANSPORT", value, "auto|ucx") for value in ["ucxx", "UCX", "tcp", ""]]
MALFORMED += [("HEDDLE_PROGRESS", value, "auto|manual|thread|thread:spin|thread:monitor|thread:block")
              for value in ["fast", "", "thread:", "thread:fast", "Manual", "thread,block"]]
MALFORMED += [(name, value, "a whole number from 0 to 1000000000") for name in ["HEDDLE_SPIN_US", "HEDDLE_YIELD_US"]
              for value in ["abc", "", "-1", "1.5", "99999999999999999999999", "1000000001", "5us"]]


def said(function, name, value, right):
    return (rf"heddle {function}: {name}={re.escape(value)} is malformed: right would be {re.escape(right)}"
            r"(; did you mean [a-z0-9:]+\?)?")


@pytest.mark.parametrize("name,value,right", MALFORMED)
def test_malformed_setting_ends_init(name, value, right):
    execute([INIT, "init"], **{name: value}).is_fatal(said("shmem_init", name, value, right))


@pytest.mark.parametrize("name,value,right", MALFORMED)
def test_malformed_setting_fails_init_thread(name, value, right):
    result = execute([INIT, "init_thread"], **{name: value})
    assert result.status == 0 and "returned 1" in result.out, result
    assert is_said(said("shmem_init_thread", name, value, right), result.err.rstrip()), result
    assert "then 0" in result.out, result  # after the variable was unset


def test_malformed_setting_ends_a_job():
    """oshrun says it, once, and starts nothing."""
    result = execute([OSHRUN, "-n", 3, INIT, "init"], SHMEM_SYMMETRIC_SIZE="12Q")
    assert result.status == 2 and result.out == "", result
    assert result.err == "oshrun: SHMEM_SYMMETRIC_SIZE=12Q is malformed: right would be a size such as 64M or 1.5G\n"


def test_setting_of_the_pes_alone_is_said_by_the_first():
    """Where a script sets it, behind oshrun's back; the others have three seconds' patience."""
    result = execute([OSHRUN, "-n", 3, "sh", "-c", f'HEDDLE_CHEK=1 exec "{INIT}" init'])
    result.is_fatal(message("shmem_init", r"HEDDLE_CHEK is no setting of Heddle: did you mean HEDDLE_CHECK\?")
                    .replace(r"\[pe \d+\] ", ""))


def test_setting_of_one_pe_is_said_by_it():
    result = execute([OSHRUN, "-n", 2, "sh", "-c",
                      f'if [ $HEDDLE_PE = 1 ]; then export HEDDLE_CHECK=n; fi; exec "{INIT}" init'])
    result.is_fatal(r"heddle shmem_init: HEDDLE_CHECK=n is malformed: right would be yes or no \(on or off, true or "
                    r"false, 1 or 0\)")


def test_open_mpis_name_of_the_heaps_size_is_said_once():
    result = execute([OSHRUN, "-n", 3, INIT, "init"], SHMEM_SYMMETRIC_HEAP_SIZE="4M")
    line = (f"heddle [pe 0] shmem_init: SHMEM_SYMMETRIC_HEAP_SIZE=4M has no effect, it is Open MPI's: the heap has "
            f"{1 << 30} bytes; right would be SHMEM_SYMMETRIC_SIZE=4M\n")
    assert (result.status, result.err) == (0, line), result


@pytest.mark.parametrize("name", ["SHMEM_SYMMETRIC_SIZE", "SMA_SYMMETRIC_SIZE"])
def test_open_mpis_name_beside_the_standards_is_not_spoken_of(name):
    result = execute([OSHRUN, "-n", 3, INIT, "init"], **{"SHMEM_SYMMETRIC_HEAP_SIZE": "8M", name: "4M"})
    assert (result.status, result.err) == (0, ""), result


MISSPELT = [("HEDDLE_CHEK", "HEDDLE_CHECK"), ("SHMEM_SYMETRIC_SIZE", "SHMEM_SYMMETRIC_SIZE"),
            ("SMA_SYMMETRIC_SIZES", "SMA_SYMMETRIC_SIZE"), ("HEDDLE_NET_CHANNEL", "HEDDLE_NET_CHANNELS")]


@pytest.mark.parametrize("name,meant", MISSPELT)
def test_misspelt_names_are_refused(name, meant):
    text = f"{name} is no setting of Heddle: did you mean {meant}?"
    for command in ([OSHRUN, "-n", 2, INIT, "init"], [OSHRUN, "--hosts", "nowhere:2", "-n", 2, INIT, "init"]):
        result = execute(command, **{name: "1"})
        assert result.status == 2 and result.err == f"oshrun: {text}\n", result
    result = execute([OSHRUN, "--env", f"{name}=1", "-n", 2, INIT, "init"])
    assert result.status == 2 and result.err == f"oshrun: {text}\n", result
    execute([INIT, "init"], **{name: "1"}).is_fatal(f"heddle shmem_init: {re.escape(text)}")


def test_names_of_other_libraries_are_left_alone():
    result = execute([OSHRUN, "-n", 1, INIT, "init"], SHMEM_HOME="/opt", SHMEM_SYMMETRIC_HEAP_SIZE="1G", SMA_OTHER="1",
                     NVSHMEM_DEBGU="1", HEDDLE_ROOT="/opt/heddle", SHMEM_DEBUG="whatever")
    assert result.status == 0, result


def test_new_name_wins_over_a_malformed_old_one():
    assert execute([INIT, "init"], SHMEM_SYMMETRIC_SIZE="1M", SMA_SYMMETRIC_SIZE="huge").status == 0


def test_different_heap_sizes():
    result = execute([OSHRUN, "-n", 3, "sh", "-c", f'SHMEM_SYMMETRIC_SIZE=$((HEDDLE_PE / 2 + 1))M exec "{INIT}" init'])
    result.is_fatal(message("shmem_init", r"SHMEM_SYMMETRIC_SIZE is (1048576|2097152) bytes here, but "
                                          r"(1048576|2097152) on PE [02]: right would be one value for all"))


def test_heap_larger_than_the_address_space():
    result = execute([OSHRUN, "-n", 2, INIT, "init"], SHMEM_SYMMETRIC_SIZE="60000T")
    result.is_fatal(message("shmem_init", r"cannot map the memory of 2 PEs, \d+ bytes of heap each: .*; right would be "
                                          r"a smaller SHMEM_SYMMETRIC_SIZE \(or a higher limit, ulimit -v\)"))


# ---- The launcher's descriptor and the PE's number.
def test_descriptor_that_is_not_open():
    execute([INIT, "init"], HEDDLE_JOB_FD="99", HEDDLE_PE="0").is_fatal(
        "heddle shmem_init: HEDDLE_JOB_FD=99 is not the launcher's memory: start the program with oshrun, or unset it")


@pytest.mark.parametrize("content", [b"", b"short", bytes(1 << 20), os.urandom(1 << 20)])
def test_descriptor_of_another_file(tmp_path, content):
    file = tmp_path / "file"
    file.write_bytes(content)
    result = execute(["sh", "-c", f'HEDDLE_JOB_FD=7 HEDDLE_PE=0 exec "{INIT}" init 7<>"{file}"'])
    result.is_fatal(r"heddle shmem_init: (HEDDLE_JOB_FD=7 is not the launcher's memory: start the program with oshrun, "
                    r"or unset it|the launcher's memory is of another version of Heddle: use its own oshrun)")
    result = execute(["sh", "-c", f'HEDDLE_JOB_FD=7 HEDDLE_PE=0 exec "{INIT}" init_thread 7<>"{file}"'])
    assert "returned 1" in result.out and result.err.count("heddle shmem_init_thread: ") >= 1, result


@pytest.mark.parametrize("number", ["7", "-1", "2", "x", "", "99999999999999999999"])
def test_wrong_pe(number):
    shown = number if number in ("7", "2") else "-1"
    result = execute([OSHRUN, "-n", 2, "sh", "-c", f'HEDDLE_PE="{number}" exec "{INIT}" init'])
    result.is_fatal(f"heddle shmem_init: HEDDLE_PE={shown} is wrong: the job has PEs 0 to 1")


def test_no_pe():
    result = execute([OSHRUN, "-n", 2, "sh", "-c", f'unset HEDDLE_PE; exec "{INIT}" init'])
    result.is_fatal("heddle shmem_init: HEDDLE_PE=-1 is wrong: the job has PEs 0 to 1")


def test_two_processes_are_one_pe():
    result = execute([OSHRUN, "-n", 1, "sh", "-c", f'"{INIT}" init && exec "{INIT}" init'])
    own = [line for line in result.err.splitlines() if line.startswith("heddle")]
    assert result.status == 1 and len(own) == 1, result
    assert is_said(r"heddle shmem_init: process \d+ is PE 0 already: one process per PE may call shmem_init", own[0])


def test_two_pes_with_one_number():
    result = execute([OSHRUN, "-n", 2, "sh", "-c", f'HEDDLE_PE=1 exec "{INIT}" init'])
    result.is_fatal(r"heddle shmem_init: process \d+ is PE 1 already: one process per PE may call shmem_init")


def test_program_that_a_pe_starts_is_no_pe():
    """The descriptor is not handed on: a program started by a PE is a job of one."""
    result = execute([OSHRUN, "-n", 2, INIT, "system"])
    assert result.status == 0 and result.out.count("1 PEs inside") == 2, result


# ---- Limits.
@pytest.mark.skipif("address" in SANITIZER, reason="AddressSanitizer itself needs more address space")
@both_runs
def test_no_room_for_the_peer_table(check):
    """A smaller table then answers for plausible PEs: what is right works, and what is wrong is said."""
    environment = {"SHMEM_SYMMETRIC_SIZE": "16M", "HEDDLE_CHECK": str(int(check))}
    limited = f'ulimit -v 8000000; exec "{PROGRAM}" '
    for function in ("shmem_long_p", "shmem_putmem", "shmem_long_atomic_fetch_add", "shmem_long_iget",
                     "shmem_ctx_long_g", "shmem_ctx_fence", "shmem_putmem_signal"):
        result = execute([OSHRUN, "-n", 2, "sh", "-c", limited + f"one {function} pe=1"], **environment)
        assert result.status == 0 and result.out.count("survived") == 2, result
    for pe in (-1, 2, -2000, 2000):
        result = execute([OSHRUN, "-n", 2, "sh", "-c", limited + f"one shmem_long_p pe={pe}"], **environment)
        result.is_fatal(message("shmem_long_p", f"pe {pe} is out of range: the job has PEs 0 to 1", 0))


@pytest.mark.skipif("address" in SANITIZER, reason="AddressSanitizer itself needs more address space")
@pytest.mark.parametrize("function", ["shmem_ctx_long_p", "shmem_ctx_fence", "shmem_ctx_long_put"])
def test_room_for_one_peer_table_only(function):
    """One table of 128 GiB fits, the second, for contexts that were destroyed, does not."""
    result = execute([OSHRUN, "-n", 2, "sh", "-c",
                      f'ulimit -v 200000000; exec "{PROGRAM}" one {function} ctx=destroyed'],
                     SHMEM_SYMMETRIC_SIZE="16M")
    result.is_fatal(message(function, r"ctx 0x[0-9a-f]+ is no context: it was destroyed, or never created", 0))


@pytest.mark.skipif("address" in SANITIZER, reason="AddressSanitizer itself needs more address space")
def test_no_room_for_the_heap():
    result = execute([OSHRUN, "-n", 2, "sh", "-c", f'ulimit -v 500000; exec "{INIT}" init'])
    result.is_fatal(message("shmem_init", r"cannot map the memory of 2 PEs, 1073741824 bytes of heap each: .*; right "
                                          r"would be a smaller SHMEM_SYMMETRIC_SIZE \(or a higher limit, ulimit -v\)"))


TOO_LARGE = r"File too large: the limit of file sizes \(ulimit -f\) holds for shared memory, too"


def test_limit_of_file_sizes():
    """The kernel applies ulimit -f to shared memory: a message of the PEs, of a job of one and of oshrun, no signal."""
    execute([OSHRUN, "-n", 2, "sh", "-c", f'ulimit -f 100; exec "{INIT}" init']).is_fatal(
        message("shmem_init", rf"cannot map the memory of 2 PEs, 1073741824 bytes of heap each: {TOO_LARGE}; right "
                              r"would be a smaller SHMEM_SYMMETRIC_SIZE \(or a higher limit, ulimit -v\)"))
    execute(["sh", "-c", f'ulimit -f 0; exec "{INIT}" init']).is_fatal(
        rf"heddle shmem_init: cannot create shared memory: {TOO_LARGE}")
    result = execute(["sh", "-c", f'ulimit -f 0; exec "{OSHRUN}" -n 2 true'])
    assert result.status == 1, result
    assert re.fullmatch(rf"oshrun: cannot make the job's memory: {TOO_LARGE}\n", result.err), result


RENAMED = [("HEDDLE_OVERLAP", "HEDDLE_ASYNC_COPY"), ("HEDDLE_NET_WIRES", "HEDDLE_NET_CHANNELS"),
           ("HEDDLE_NET_BATCH", "HEDDLE_NET_COALESCE"), ("HEDDLE_NET_SILENCE_S", "HEDDLE_NET_HEARTBEAT_TIMEOUT_S"),
           ("HEDDLE_NODE_PES", "HEDDLE_TEST_PES_PER_NODE")]


@pytest.mark.parametrize("name,now", RENAMED)
def test_a_name_of_before_is_refused_with_the_new_one(name, now):
    result = execute([OSHRUN, "-n", 2, INIT, "init"], **{name: "1"})
    assert result.status == 2 and result.err == f"oshrun: {name} has another name now: {now}\n", result
    execute([INIT, "init"], **{name: "1"}).is_fatal(f"heddle shmem_init: {name} has another name now: {now}")


@pytest.mark.parametrize("name,word,now", [
    ("HEDDLE_BROADCAST", "note", "inline"), ("HEDDLE_COLLECT", "mail", "bounce"), ("HEDDLE_REDUCE", "slices", "sliced"),
    ("HEDDLE_NET_PROTOCOL", "batch", "am"), ("HEDDLE_NET_PROTOCOL", "native", "rma")])
def test_a_word_of_before_is_refused_with_the_new_one(name, word, now):
    execute([INIT, "init"], **{name: word}).is_fatal(
        f"heddle shmem_init: {name}={word} is malformed: right would be [a-z|]+; {word} is called {now} now")

"""What others read of the node's memory: a real core dump of one PE holds the PE's static data and the heap that was
handed out to it; Valgrind's search for leaks reads nothing of it. And what HEDDLE_FIRST_TOUCH and HEDDLE_HUGE_PAGES
make of the heap. The build under test is the folder HEDDLE_BUILD."""

import os
import pathlib
import re
import resource
import shutil
import struct
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["HEDDLE_BUILD"])
PES = 4
MIB = 1 << 20
PT_LOAD = 1


def loaded(core):
    """The (address, bytes, offset) of the memory that an ELF core file holds."""
    header = core.read(64)
    table, = struct.unpack_from("<Q", header, 32)
    entry_bytes, entries = struct.unpack_from("<HH", header, 54)
    core.seek(table)
    for _ in range(entries):
        kind, _, offset, address, _, file_bytes = struct.unpack_from("<IIQQQQ", core.read(entry_bytes))
        if kind == PT_LOAD and file_bytes:
            yield address, file_bytes, offset


def word_at(core, segments, address):
    for begin, size, offset in segments:
        if begin <= address < begin + size:
            core.seek(offset + address - begin)
            return struct.unpack("<q", core.read(8))[0]
    return None


def test_core_of_one_pe(tmp_path):
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern.startswith(("|", "/")):
        pytest.skip(f"cores do not go into the working directory: {pattern}")
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    if resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY:
        pytest.skip("core files are limited")
    result = subprocess.run([BUILD / "bin" / "oshrun", "-n", str(PES), "--tag-output",
                             BUILD / "tests/conformance/conformance_node_memory", "crash"],
                            cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                            timeout=120, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, unlimited))
    assert result.returncode == 128 + 6, result
    words, heap, word = (int(text, 16) for text in re.search(
        r"words (0x\w+) heap (0x\w+) word (\w+)", next(line for line in result.stdout.splitlines()
                                                       if line.startswith("[0]") and "heap" in line)).groups())
    cores = list(tmp_path.iterdir())
    assert len(cores) == 1, cores
    with open(cores[0], "rb") as core:
        segments = list(loaded(core))
        assert word_at(core, segments, words) == word_at(core, segments, heap) == word
    assert cores[0].stat().st_size < 32 * MIB  # 4 heaps of 1 GiB, and the segments of teams


def test_memory_under_valgrind(tmp_path):
    """Memcheck needs some 60 MiB for a program of its own; reading the heaps of 1 GiB made it more than 2 GiB."""
    if not shutil.which("valgrind"):
        pytest.skip("there is no valgrind")
    with open(tmp_path / "out", "w+") as out:
        process = subprocess.Popen([BUILD / "bin" / "oshrun", "-n", "2", "valgrind", "-q", "--error-exitcode=9",
                                    BUILD / "tests/conformance/conformance_touch_heap", "1"],
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        assert process.returncode == 0, out.read()
    assert used.ru_maxrss < 160 * 1024, f"{used.ru_maxrss} KiB"  # of the largest process


def test_how_the_heap_is_prepared():
    """One job without the settings and one with both; the kernel may refuse, and SHMEM_DEBUG then says so."""
    def run(**settings):
        program = BUILD / "tests/conformance/conformance_node_memory"
        result = subprocess.run([BUILD / "bin" / "oshrun", "-n", "2", program, "prepared"],
                                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
                                env={**os.environ, "SHMEM_SYMMETRIC_SIZE": "16M", "SHMEM_DEBUG": "1", **settings})
        assert result.returncode == 0, result
        return result

    said = r"of 5242880 bytes: (\d) resident, (\d) for huge pages"
    assert re.findall(said, run().stdout) == [("0", "0")] * 2
    result = run(HEDDLE_FIRST_TOUCH="1", HEDDLE_HUGE_PAGES="1")
    touched = result.stderr.count("HEDDLE_FIRST_TOUCH: touching the heap (16777216 bytes): done")
    huge = result.stderr.count("HEDDLE_HUGE_PAGES: the kernel may use huge pages in the heap")
    refused = result.stderr.count("HEDDLE_HUGE_PAGES: no huge pages") + len(
        re.findall(r"touching the heap \(16777216 bytes\): (?!done)", result.stderr))
    assert touched + huge + refused == 4, result.stderr
    found = re.findall(said, result.stdout)
    resident, flagged = sum(first == "1" for first, _ in found), sum(second == "1" for _, second in found)
    assert (resident, flagged) == (touched, huge), result

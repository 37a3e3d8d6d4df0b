"""Jobs started in unusual ways: without a launcher, ended by shmem_global_exit, of two programs, with a small /dev/shm,
with the standard's environment variables. The build under test is the folder HEDDLE_BUILD."""

import os
import pathlib
import re
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["HEDDLE_BUILD"])
PROGRAMS = BUILD / "tests" / "conformance"
OSHRUN = str(BUILD / "bin" / "oshrun")
SANITIZER = os.environ.get("HEDDLE_SANITIZER", "")
SETTINGS = pathlib.Path(__file__).resolve().parents[2] / "src" / "base" / "settings.def"


def run(*command, status=0, timeout=600, **environment):
    """Runs a command to its end and checks its status; the result has text in stdout and stderr."""
    result = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            timeout=timeout, check=False, env={**os.environ, **environment})
    assert result.returncode == status, f"status {result.returncode}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
    return result


# What a program that is ended in the middle has not given back is no leak.
ENDED = {"ASAN_OPTIONS": "detect_leaks=0"}


def program(name):
    return PROGRAMS / f"conformance_{name}"


@pytest.mark.parametrize("name", ["rma_inline", "strided_inline", "atomics_inline", "signals_inline", "waits_inline",
                                  "barriers_inline", "setup_inline", "static_data_inline", "contexts_inline"])
def test_program_without_launcher_is_a_job_of_one(name):
    out = run(program(name), HEDDLE_TEST_PES="1").stdout
    assert ", 1 PEs" in out


@pytest.mark.parametrize("status", [0, 1, 7, 255])
@pytest.mark.parametrize("pes", [1, 3])
@pytest.mark.parametrize("check", ["0", "1"])
def test_global_exit_ends_all_with_its_status(status, pes, check):
    result = run(OSHRUN, "-n", pes, program("global_exit_inline"), status, status=status, HEDDLE_CHECK=check, **ENDED)
    assert "leaving\n" in result.stdout


@pytest.mark.parametrize("pes", [1, 3])
@pytest.mark.parametrize("network", [{}, {"HEDDLE_TEST_PES_PER_NODE": "1", "HEDDLE_NET_TRANSPORTS": "tcp"}],
                         ids=["node", "nodes"])
def test_global_exit_flushes_and_runs_exit_handlers(tmp_path, pes, network):
    if network and not (BUILD / "lib" / "libheddle_ucx.so").exists():
        pytest.skip("needs UCX")
    file = tmp_path / "words"
    result = run(OSHRUN, "-n", pes, "--grace", 300, program("global_exit_inline"), 3, status=3,
                 HEDDLE_TEST_FILE=str(file), HEDDLE_TEST_THREADS="4", **network, **ENDED)
    assert file.read_text() == "unflushed\nhandler\ndestructor\n"
    assert "heddle" not in result.stderr, result.stderr


def test_other_threads_rest_behind_global_exit(tmp_path):
    """Without a launcher, so that a handler has all the time that it takes."""
    file = tmp_path / "words"
    result = run(program("global_exit_inline"), 3, status=3, HEDDLE_TEST_FILE=str(file), HEDDLE_TEST_THREADS="4",
                 HEDDLE_TEST_NAP_MS="200", **ENDED)
    assert file.read_text() == "unflushed\nhandler\ndestructor\n" and result.stderr == "", result.stderr


def test_calls_in_exit_handlers_behind_global_exit():
    err = run(OSHRUN, "-n", 2, program("global_exit_inline"), 3, status=3, HEDDLE_TEST_LATE="1", **ENDED).stderr
    assert "heddle [pe 1] shmem_my_pe: called in an exit handler behind shmem_global_exit" in err, err


def test_global_exit_without_launcher():
    assert "leaving\n" in run(program("global_exit_inline"), 5, status=5, **ENDED).stdout


@pytest.mark.parametrize("pes", [2, 3, 7])
def test_programs_of_different_size_in_one_job(tmp_path, pes):
    wrapper = tmp_path / "wrapper.sh"
    wrapper.write_text(f'#!/bin/sh\nif [ $((HEDDLE_PE % 2)) = 0 ]; then exec "{program("small")}"; fi\n'
                       f'exec "{program("large")}"\n')
    wrapper.chmod(0o755)
    run(OSHRUN, "-n", pes, wrapper)
    run(OSHRUN, "-n", pes, wrapper, HEDDLE_CHECK="1")


def test_nothing_appears_in_dev_shm():
    watcher = ('before=$(ls -A /dev/shm); "$@" & job=$!; while kill -0 $job 2>/dev/null; do '
               '[ "$(ls -A /dev/shm)" = "$before" ] || { echo "new in /dev/shm: $(ls -A /dev/shm)"; exit 9; }; '
               'done; wait $job; [ "$(ls -A /dev/shm)" = "$before" ]')
    if os.geteuid() != 0:
        pytest.skip("needs root, for a /dev/shm of its own")
    run("unshare", "-m", "sh", "-c", "mount -t tmpfs tmpfs /dev/shm && " + watcher, "sh", OSHRUN, "-n", 4,
        program("touch_heap"), 20)


def test_a_small_dev_shm_does_not_limit_the_heap():
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small /dev/shm")
    run("unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"', "sh",
        OSHRUN, "-n", 4, program("touch_heap"), 100)


@pytest.mark.parametrize("prefix", ["SHMEM", "SMA"])
@pytest.mark.parametrize("value", ["1", "yes", "anything", "2"])
def test_version_at_start(prefix, value):
    err = run(OSHRUN, "-n", 2, program("touch_heap"), 1, **{f"{prefix}_VERSION": value}).stderr
    assert re.fullmatch(r"Heddle [\d.]+, OpenSHMEM 1\.6\n", err), err


@pytest.mark.parametrize("prefix", ["SHMEM", "SMA"])
def test_info_at_start_explains_every_setting(prefix):
    err = run(OSHRUN, "-n", 2, program("touch_heap"), 1, **{f"{prefix}_INFO": "1"}).stderr
    rows = re.findall(r'^(?:SETTING|CHOICE)\(\w+, \w+, "(\w+)"', SETTINGS.read_text(), re.M)
    assert {"SHMEM_VERSION", "SHMEM_INFO", "SHMEM_SYMMETRIC_SIZE", "SHMEM_DEBUG"} < set(rows)
    told = re.findall(r"^(\w+)=.* \(.+\)\n    (.+)$", err, re.M)
    assert [name for name, _ in told] == rows and all(len(help_text) > 10 for _, help_text in told), err


@pytest.mark.parametrize("value", ["no", "off", "FALSE", "0", ""])
def test_words_that_mean_no(value):
    assert run(OSHRUN, "-n", 1, program("touch_heap"), 1, SHMEM_VERSION=value, SHMEM_INFO=value).stderr == ""


def test_counters_are_printed_when_asked_for():
    """Once, a line for each row of the table; the PEs' values add up to the sum, and least and most are those of the
    PEs that are named."""
    rows = dict(re.findall(r"^COUNTER\((\w+), (\w+), ", SETTINGS.with_name("counters.def").read_text(), re.M))
    assert rows["sleeps"] == "waits" and rows["messages_sent"] == "messages"
    for settings in ({}, {"HEDDLE_STATS": "no"}):
        assert "counters" not in run(OSHRUN, "-n", 3, program("touch_heap"), 1, **settings).stderr
    for pes in (1, 2, 3, 7, 8, 17):
        err = run(OSHRUN, "-n", pes, program("touch_heap"), 1, HEDDLE_STATS="1").stderr
        assert err.startswith(f"heddle: counters of {pes} PE{'s' if pes > 1 else ''}\n"), err
        assert err.count("heddle: counters") == 1, err
        lines = re.findall(r"^  (\w+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)  (\w+) +\[([\d ]+)\]$", err, re.M)
        assert {line[0]: line[6] for line in lines} == rows, err
        for name, total, least, least_pe, most, most_pe, _, each in lines:
            values = [int(value) for value in each.split()]
            assert len(values) == pes, name
            assert (int(total), int(least), int(most)) == (sum(values), min(values), max(values)), name
            assert values[int(least_pe)] == min(values) and values[int(most_pe)] == max(values), name


def test_the_counters_of_many_pes_are_not_listed_each():
    """Beyond 32 PEs a row has sum, least and most alone."""
    err = run(OSHRUN, "-n", 33, program("touch_heap"), 1, HEDDLE_STATS="1", SHMEM_SYMMETRIC_SIZE="1M").stderr
    assert "heddle: counters of 33 PEs\n" in err and "[" not in err, err
    sums = re.findall(r"^  (\w+) +(\d+) +(\d+) +\d+ +(\d+) +\d+  \w+$", err, re.M)
    assert len(sums) > 10, err
    for name, total, least, most in sums:
        assert 33 * int(least) <= int(total) <= 33 * int(most), name


def test_counters_of_nodes_are_one_table():
    """Every PE a node of its own, beyond one round of 16; the heap that the program has is as large as it asked for."""
    for pes in (2, 18):
        err = run(OSHRUN, "-n", pes, program("touch_heap"), 1, HEDDLE_STATS="1", HEDDLE_TEST_PES_PER_NODE="1",
                  HEDDLE_NET_TRANSPORTS="tcp", SHMEM_SYMMETRIC_SIZE="4M").stderr
        assert err.count("heddle: counters") == 1, err
        found = re.search(r"^  control_messages_received +(\d+) .*\[([\d ]+)\]$", err, re.M)
        values = [int(value) for value in found[2].split()]
        assert len(values) == pes and min(values) > 0 and sum(values) == int(found[1]), err


def test_a_job_that_is_ended_prints_no_counters():
    script = 'if [ "$HEDDLE_PE" = 1 ]; then unset HEDDLE_STATS; fi; exec "$0" 1'
    result = run(OSHRUN, "-n", 2, "sh", "-c", script, program("touch_heap"), status=1, HEDDLE_STATS="1")
    assert "PE 0 has its counters printed (HEDDLE_STATS), and PE 1 has not: right would be" in result.stderr
    assert "heddle: counters" not in result.stderr


def test_a_new_name_wins():
    assert run(OSHRUN, "-n", 1, program("touch_heap"), 1, SHMEM_VERSION="no", SMA_VERSION="yes").stderr == ""
    assert run(OSHRUN, "-n", 1, program("touch_heap"), 1, SHMEM_VERSION="yes", SMA_VERSION="no").stderr != ""


def test_same_seed_gives_the_same_run():
    out = run(OSHRUN, "-n", 2, program("atomics_inline"), HEDDLE_TEST_SEED="12345").stdout
    assert "HEDDLE_TEST_SEED=12345," in out


def test_a_run_says_how_to_repeat_it():
    """The line is a shell's command, which runs the program with its seed and settings once more."""
    first = run(OSHRUN, "-n", 2, program("touch_heap"), 1, HEDDLE_TEST_SEED="77", HEDDLE_BARRIER="flat",
                HEDDLE_BUILD=str(BUILD)).stdout
    line, = re.findall("^reproduce: (.*)$", first, re.M)
    assert "HEDDLE_TEST_SEED=77" in line and "HEDDLE_BARRIER='flat'" in line and "HEDDLE_PE=" not in line, line
    assert sorted(run("sh", "-c", line).stdout.split()) == sorted(first.split())


def test_too_many_teams_and_active_sets_are_explained():
    """Of 2 PEs there are 1,024; when teams have taken them all, a first active set has no room."""
    err = run(OSHRUN, "-n", 2, program("many_sets"), HEDDLE_TEST_TOO_MANY="1", status=1).stderr
    full = "as many teams and active sets of 2 to 2 PEs are there on this node as there can be, 1024"
    assert f"shmem_team_split_strided: {full}: right would be to destroy teams that are not used any more" in err, err
    assert (f"no room for the active set PE_start 0, logPE_stride 0, PE_size 2: {full}; right would be fewer, or "
            "teams, which can be destroyed") in err, err

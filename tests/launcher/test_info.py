"""heddle-info --check and --report. What goes wrong in a check is a library's doing that is loaded before Heddle
(programs/faulty.c)."""

import os
import pathlib
import re
import signal
import subprocess

import pytest
from conftest import PROGRAMS, alive, build, wait_until

LIMIT_S = 600
NODES = {"HEDDLE_TEST_PES_PER_NODE": "1", "HEDDLE_NET_TRANSPORTS": "tcp", "HEDDLE_NET_HEARTBEAT_TIMEOUT_S": "60"}
WELL = "heddle-info: the check has found nothing wrong\n"
HAS_NETWORK = (build() / "lib/libheddle_ucx.so").exists()
needs_network = pytest.mark.skipif(not HAS_NETWORK, reason="needs UCX")


def info(*arguments, **environment):
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(("HEDDLE_", "SHMEM_", "UCX_"))}
    return subprocess.run([build() / "bin/heddle-info", *map(str, arguments)], env={**inherited, **environment},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    library = tmp_path_factory.mktemp("faulty") / "libfaulty.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-I", build() / "include", PROGRAMS / "faulty.c", "-o", library],
                   check=True, timeout=LIMIT_S)
    return ["-x", f"LD_PRELOAD={library}"]


@pytest.mark.parametrize("options,pes", [([], 2), (["-x", "WORD=1"], 2), (["-n", 1], 1), (["--ppn", 3], 3)])
def test_a_check_of_one_host(options, pes):
    done = info("--check", *options)
    assert done.returncode == 0 and done.stdout.endswith(WELL) and done.stderr == "", done
    assert done.stdout.startswith(f"check: {pes} PE{'s' if pes > 1 else ''} on 1 node\n"), done


@needs_network
@pytest.mark.parametrize("pes,on_node,nodes", [(4, 1, 4), (5, 2, 3)])
def test_a_check_of_pretended_nodes(faulty, pes, on_node, nodes):
    done = info("--check", "-n", pes, *faulty, **{**NODES, "HEDDLE_TEST_PES_PER_NODE": str(on_node)})
    assert done.returncode == 0 and done.stdout.endswith(WELL) and done.stderr == "", done
    assert done.stdout.startswith(f"check: {pes} PEs on {nodes} nodes\n"), done


@needs_network
@pytest.mark.parametrize("fault,operation", [("word", "put and get"), ("block", "put and get"), ("get", "put and get"),
                                             ("atomic", "atomics")])
def test_a_wrong_operation_is_named_with_its_pairs(faulty, fault, operation):
    done = info("--check", "-n", 3, *faulty, FAULT=fault, FAULT_PE="1", **NODES)
    host = os.uname().nodename
    assert done.returncode == 1 and WELL not in done.stdout, done
    assert done.stderr.endswith("heddle-info: the check has failed: the lines above say why\n"), done
    for source in (0, 2):
        assert f"FAILED: {operation} between PE {source} (host {host}) and PE 1 (host {host}): " in done.stderr, done
    assert not re.search(r"and PE [02] \(", done.stderr), done  # the other pairs are right


@needs_network
def test_what_has_arrived_wrong_is_seen_there(faulty):
    done = info("--check", "-n", 2, *faulty, FAULT="word", FAULT_PE="0", **NODES)
    assert re.search(r"FAILED: a put between PE 1 .* and PE 0 .*: 0x\w+ was sent, 0x\w+ has arrived", done.stderr), done


def test_settings_that_differ_are_named(faulty):
    done = info("--check", "-n", 3, *faulty, FAULT="setting", FAULT_PE="2")
    assert done.returncode == 1 and done.stderr.count("FAILED") == 1, done
    assert "FAILED: the settings differ: UCX_TCP_PREFER_DEFAULT=n on PE 2 " in done.stderr, done


def test_a_launch_token_that_differs_is_not_told(faulty):
    for options, pes in ({}, "PE 2"), ({"HEDDLE_LAUNCH_TOKEN": "hidden, too"}, "PE [02]"):
        done = info("--check", "-n", 3, *faulty, FAULT="token", FAULT_PE="2", **options)
        assert done.returncode == 1 and "hidden" not in done.stdout + done.stderr, done
        found = rf"FAILED: the settings differ: HEDDLE_LAUNCH_TOKEN=\(not shown\) on {pes} "
        assert len(re.findall(found, done.stderr)) == done.stderr.count("FAILED") == len(options) + 1, done


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_check_that_is_ended_ends_its_job(faulty, end):
    """oshrun, and the PEs."""
    process = subprocess.Popen([build() / "bin/heddle-info", "--check", "-n", "1", *faulty], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "FAULT": "stays", "FAULT_PE": "0"})
    pe = int(process.stdout.readline().split()[1])
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(end)
    try:
        assert process.wait(LIMIT_S) == (-end if end == signal.SIGKILL else 128 + end)
        assert len(children) == 1 and wait_until(lambda: not alive(int(children[0])) and not alive(pe))
    finally:
        for pid in [*map(int, children), pe]:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        process.communicate()


def test_memory_that_is_not_shared_is_named(faulty):
    done = info("--check", "-n", 3, *faulty, FAULT="memory", FAULT_PE="1")
    assert done.returncode == 1 and "FAILED: PE 0 and PE 1 are on host" in done.stderr, done
    assert "but share no memory" in done.stderr, done


def test_a_pair_that_hangs_is_named_in_time(faulty):
    done = info("--limit", 80, "--check", "-n", 3, *faulty, FAULT="hang", FAULT_PE="1")
    assert done.returncode == 1, done
    assert re.search(r"FAILED: a get between PE 0 .* and PE 1 .* has not ended in time", done.stderr), done


def test_a_job_that_never_starts_is_ended(tmp_path):
    """By a launcher of several hosts that hangs."""
    for name, text in {"mpirun": '[ "$1" = --version ] && echo "(Open MPI) 4" || exec sleep 1000'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    done = info("--limit", 2, "--check", "--hosts", "a,b", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode == 1 and "FAILED: the job has not ended within 2 s (--limit)\n" in done.stderr, done


@pytest.mark.parametrize("arguments,status,message", [
    (["--check", "-n", "0"], 1, "oshrun: -n 0: the number of PEs must be"),
    (["--check", "--hots", "a"], 1, "did you mean --hosts?"),
    (["--limit", "x", "--check"], 2, "heddle-info: --limit x: must be a number of seconds"),
    (["--report", "words"], 2, "heddle-info: words: nothing may follow here"),
    (["words"], 2, "heddle-info: words: nothing may follow here"),
    (["--chek"], 2, "unrecognized option"),
])
def test_what_is_refused(arguments, status, message):
    done = info(*arguments)
    assert done.returncode == status and message in done.stderr, done


def test_a_report_has_what_a_bug_report_needs(tmp_path):
    (tmp_path / "mpirun").write_text("#!/bin/sh\necho 'mpirun (Open MPI) 9.8.7'\n")
    (tmp_path / "prterun").write_text("#!/bin/sh\nexit 3\n")
    for name in ("mpirun", "prterun"):
        (tmp_path / name).chmod(0o755)
    done = info("--report", PATH=str(tmp_path), SMA_SYMMETRIC_SIZE="64m", HEDDLE_CHECK="wrong", UCX_TLS="tcp",
                SECRET_TOKEN="hidden", HEDDLE_LAUNCH_TOKEN="hidden")
    assert done.returncode == 0 and done.stderr == "", done
    rows = {line[2:20].strip(): line[21:] for line in done.stdout.splitlines() if line.startswith("  ")}
    assert {"version", "commit", "compiler", "system", "kernel", "C library", "cpu", "cores", "memory", "open files",
            "locked memory", "processes", "libheddle_ucx.so", "libheddle_pmix.so"} <= set(rows), done
    settings = {"  SHMEM_SYMMETRIC_SIZE=64m", "  HEDDLE_CHECK=wrong", "  UCX_TLS=tcp", "  HEDDLE_LAUNCH_TOKEN=(set)"}
    assert settings <= set(done.stdout.splitlines()), done
    assert "hidden" not in done.stdout and "HEDDLE_LAUNCH=" not in done.stdout, done
    assert rows["mpirun"] == "mpirun (Open MPI) 9.8.7" and rows["prterun"] == "does not tell its version", done
    assert "srun" not in rows and "hidden" not in done.stdout and os.uname().nodename not in rows.values(), done
    assert re.fullmatch(r"[0-9a-f]{7,40}(-dirty)?|unknown: .*", rows["commit"]), done


def test_a_report_tells_of_parts_that_are_missing(tmp_path):
    """Of an installation with the program alone."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/heddle-info").write_bytes((build() / "bin/heddle-info").read_bytes())
    (tmp_path / "bin/heddle-info").chmod(0o755)
    done = subprocess.run([tmp_path / "bin/heddle-info", "--report"], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0 and "libheddle_ucx.so   none: built without UCX" in done.stdout, done

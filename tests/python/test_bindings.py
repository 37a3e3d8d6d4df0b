"""The Python bindings: programs under oshrun, and what the tables say of the names that are there."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/python"
BUILD = Path(os.environ["HEDDLE_BUILD"])
INTERPRETER = os.environ.get("HEDDLE_TEST_PYTHON", sys.executable)
ENVIRONMENT = {**os.environ, "HEDDLE_PREFIX": str(BUILD), "PYTHONPATH": str(ROOT / "python"),
               "SHMEM_SYMMETRIC_SIZE": "64M", "OPENBLAS_NUM_THREADS": "1"}


def run(pes, program, **settings):
    return subprocess.run([BUILD / "bin/oshrun", "-n", str(pes), INTERPRETER, *program], text=True, timeout=600,
                          capture_output=True, env={**ENVIRONMENT, **settings})


@pytest.mark.parametrize("pes", [1, 2, 3, 4, 7, 8])
@pytest.mark.parametrize("name", ["families", "objects"])
def test_program(name, pes):
    done = run(pes, [HERE / f"{name}_program.py"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{name}: pass on {pes} PEs")
    assert done.stderr == ""


@pytest.mark.parametrize("name", ["families", "objects"])
@pytest.mark.parametrize("settings", [{"HEDDLE_CHECK": "1"}, {"HEDDLE_TEST_PES_PER_NODE": "2"}],
                         ids=["checked", "nodes"])
def test_setting(name, settings):
    done = run(4, [HERE / f"{name}_program.py"], **settings)
    assert done.returncode == 0, done.stdout + done.stderr


def test_mistakes_are_exceptions():
    done = run(2, [HERE / "errors_program.py"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "errors: pass on 2 PEs\n"


@pytest.mark.parametrize("seed", [1, 11, 12])
def test_any_arguments(seed):
    done = run(1, [HERE / "arguments_program.py", str(seed), "8000"])
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert "arguments: pass" in done.stdout


def test_start_after_the_end():
    done = run(2, [HERE / "restart_program.py"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "restart: pass on 2 PEs\n"


def test_code_beside_python_starts_and_ends_the_library():
    program = ("import heddle; from heddle._library import library; library.shmem_init(); old = heddle.zeros(1, 'i8')\n"
               "library.shmem_finalize()\n"
               "try: heddle.barrier_all()\nexcept RuntimeError as error: assert 'is finalized' in str(error)\n"
               "else: raise AssertionError\n"
               "library.shmem_init(); heddle.init(); library.shmem_finalize(); new = heddle.zeros(1, 'i8')\n"
               "try: heddle.p(old, 1, 0)\nexcept ValueError as error: assert 'before heddle.finalize()' in str(error)\n"
               "else: raise AssertionError\nheddle.finalize(); assert not heddle.query_initialized()")
    done = run(1, ["-c", program])
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_uncaught_exception_ends_the_job():
    program = "import heddle; heddle.init(); heddle.my_pe() and 1 / 0; heddle.barrier_all()"
    done = run(2, ["-c", program])
    assert done.returncode == 1 and "ZeroDivisionError" in done.stderr and "PE 1" in done.stderr


@pytest.mark.parametrize("fails", ["thread", "main"])
def test_uncaught_exception_beside_a_thread_ends_the_job(fails):
    """The others wait for the PE, and so does a thread of its own."""
    program = ("import heddle, threading\n"
               "threading.excepthook = lambda args, was=threading.excepthook: (was(args), print('seen', flush=True))\n"
               "heddle.init(); signal = heddle.zeros(1, 'u8')\n"
               "def wait(): heddle.signal_wait_until(signal, heddle.CMP_EQ, 1)\n"
               "def fail(): heddle.my_pe() and 1 / 0\n"
               "def leave(): raise SystemExit\n"
               "leaving = threading.Thread(target=leave); leaving.start(); leaving.join(); heddle.barrier_all()\n"
               "threading.Thread(target=wait).start()\n"
               f"fail() if {fails == 'main'} else threading.Thread(target=fail).start()\n"
               "heddle.barrier_all()")
    done = subprocess.run([BUILD / "bin/oshrun", "-n", "2", INTERPRETER, "-c", program], text=True, timeout=60,
                          capture_output=True, env=ENVIRONMENT)
    assert done.returncode == 1 and "ZeroDivisionError" in done.stderr
    assert done.stdout.count("seen") == (3 if fails == "thread" else 2)  # SystemExit of both PEs comes by, too


def test_total_of_a_collect():
    """Too long for dest: found by HEDDLE_CHECK, as the documentation of collect says."""
    program = ("import heddle; heddle.init(); dest, source = heddle.zeros(8, 'i8'), heddle.zeros(8, 'i8');"
               "heddle.TEAM_WORLD.{}; heddle.finalize()")
    for call in ("collect(dest, source)", "collect_mt(dest, source, 0, 1)"):
        done = run(2, ["-c", program.format(call)], HEDDLE_CHECK="1")
        assert done.returncode != 0 and "128 bytes from there cross the end of the allocation" in done.stderr

    shown = subprocess.run([INTERPRETER, "-c", "import heddle; print(heddle.collect_nbe.__doc__)"], text=True,
                           capture_output=True, timeout=600, env=ENVIRONMENT).stdout
    assert "No member knows the total before" in " ".join(shown.split())


def test_global_exit():
    done = run(2, ["-c", "import heddle; heddle.init(); print('x'); heddle.my_pe() and heddle.global_exit(7); "
                         "heddle.barrier_all()"])
    assert done.returncode == 7


def test_start_by_unique_id():
    program = ("import heddle, sys; heddle.init_uniqueid(bytes.fromhex(sys.argv[1]), int(sys.argv[2]), 2);"
               "sys.stdout.write(f'{heddle.my_pe()} {heddle.n_pes()}\\n'); heddle.finalize()")
    script = (f"import heddle, subprocess, sys; id = heddle.get_uniqueid().hex(); program = {program!r};"
              "jobs = [subprocess.Popen([sys.executable, '-c', program, id, str(pe)]) for pe in (0, 1)];"
              "sys.exit(max(job.wait() for job in jobs))")
    done = subprocess.run([INTERPRETER, "-c", script], capture_output=True, text=True, timeout=600, env=ENVIRONMENT)
    assert done.returncode == 0 and sorted(done.stdout.split("\n")) == ["", "0 2", "1 2"], done.stderr


def test_without_the_library():
    done = subprocess.run([INTERPRETER, "-c", "import heddle"], capture_output=True, text=True, timeout=600,
                          env={**ENVIRONMENT, "HEDDLE_PREFIX": "/nowhere"})
    assert "ImportError: heddle: /nowhere/lib/libheddle.so.1 cannot be loaded" in done.stderr


def test_every_name_is_there(monkeypatch):
    """Each function of the tables that is not deprecated has a name in Python, without shmem_, and documentation."""
    monkeypatch.setenv("HEDDLE_PREFIX", str(BUILD))
    monkeypatch.syspath_prepend(str(ROOT / "python"))
    monkeypatch.syspath_prepend(str(ROOT / "api"))
    heddle, generate, bindings = (importlib.import_module(name) for name in ("heddle", "generate", "python_bindings"))
    wanted, standard = set(), set()
    for table in generate.TABLES:
        for title, families in generate.load(table):
            for family in families:
                if family.deprecated or title.startswith("Deprecated"):
                    continue
                names = [family.generic] if family.generic else [one.name for one in family.functions(False)]
                wanted |= {bindings.python_name(name) for name in names}
                standard |= {bindings.python_name(name) for name in names if "section" in family.row}
    assert sorted(name for name in wanted if name not in heddle.__all__) == []
    shown = [name for name in heddle.__all__ if callable(getattr(heddle, name)) and not name[0].isupper()]
    assert [name for name in shown if not getattr(heddle, name).__doc__] == []
    assert [name for name in standard
            if "OpenSHMEM 1.6, section" not in " ".join(getattr(heddle, name).__doc__.split())] == []

"""The commands and the Python of the pages, as a reader types them: each indented block that begins with a command, or
with an import, runs here. What is not run is in a table, with the reason."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["HEDDLE_TEST_BUILD"])
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md", "tests/README.md",
                                    "shmem-mt/README.md")),
         *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "shmem-mt/docs").glob("*.md"))]
PROGRAMS = {"oshrun", "oshcc", "oshc++", "oshfort", "heddle-info", "heddle-status", "shmem-mt", "make", "pip", "cmake",
            "ctest", "mpirun", "mpiexec", "srun", "salloc", "git", "export", "python3", "ulimit", "gdb", "addr2line",
            "cd", "sudo", "for", "module", "apt", "torchrun"}

# What is not run, by the beginning of the command, and why.
NOT_RUN = {
    "make ": "the front door itself: tests/packages run these in an empty Debian",
    "git clone": "tests/packages run it in an empty Debian",
    "export PATH": "tests/packages run it in an empty Debian",
    "cd build/packages": "tests/packages run it in an empty Debian",
    "sudo apt install": "tests/packages run it in an empty Debian",
    "pip install build/packages": "tests/packages and tests/install/wheel.py install the wheel",
    "OSHCC=oshcc CFLAGS": "fetches shmem4py from PyPI: tests/python do that",
    "oshrun -n 4 python prog.py": "of a program with shmem4py: tests/python have such",
    "cmake ": "a whole build, which make test-all makes",
    "ctest --preset release -R": "a test beside this one",
    "HEDDLE_OUT_OF_LINE=1 oshrun -n 4 bpftrace": "probes of the kernel, which root may set",
    "python3 -m venv": "make makes such an environment for these tests",
    "venv/bin/pytest": "the suite's own tests, which are tests beside this one",
    "SHMEM_MT_TEST_OSHCC": "the suite's own tests, which are tests beside this one",
    "oshrun --top": "needs a terminal and a job that runs: tests/launcher/test_top.py",
    "oshrun --hosts": "needs a second host: tests/multihost",
    "oshrun -n 4 --hosts": "needs a second host: tests/multihost",
    "mpirun --host": "needs a second host: tests/multihost",
    "heddle-info --check --hosts": "needs a second host: tests/multihost",
    "HEDDLE_LAUNCH=env torchrun": "needs PyTorch, which is as large as everything else together",
    "export HEDDLE_FC=flang-new": "needs flang, which Debian 12 does not have by this name",
    "heddle-status core": "needs a core file: tests/launcher/test_debugger.py",
    "gdb ./prog core": "needs a core file: tests/launcher/test_debugger.py",
    "salloc": "needs Slurm: tests/launchers",
    "shmem-mt advise": "measures for ten minutes and more: shmem-mt/tests/advice",
    "shmem-mt simulate --nodes": "half an hour and many GB: shmem-mt/tests/simulation have smaller ones",
    "shmem-mt simulate --calibrate": "needs a run that was measured: shmem-mt/tests/simulation",
    "shmem-mt simulate --model": "needs a run that was measured: shmem-mt/tests/simulation",
    "shmem-mt report scale": "needs a simulation of half an hour: shmem-mt/tests/report",
    "shmem-mt report both": "needs a run that was measured: shmem-mt/tests/report",
    "shmem-mt export": "needs a run that was measured: shmem-mt/tests/report",
    "shmem-mt compare": "needs runs that were measured: shmem-mt/tests/comparison",
    "shmem-mt run --out both --library": "needs another OpenSHMEM beside Heddle",
    "ray": "needs Ray: the page says with which version it was run",
}
# What ends otherwise than with status 0.
FAILS = {"oshrun --chaos-runs 100 -n 2 ./missing_fence": "the program has the mistake that the page is about",
         "oshrun -n 4 --env HEDDLE_ABORT=1 gdb -batch -ex run -ex bt --args ./prog arguments":
             "gdb has no stack to show of a program without a mistake"}
# What prints something else than the page: numbers of processes, times, seeds.
VARIES = ("oshrun --chaos-runs", "oshrun -n 4 --timeout 10 ./ring", "oshrun -n 2 ./missing_fence")
# Run with one word more, which leaves the measuring out and reads the command like the whole.
SHORTER = {"shmem-mt run ": "--dry-run"}
TIMEOUT_S = 900
BOTH = """#include <mpi.h>
#include <shmem.h>
int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    shmem_init();
    shmem_barrier_all();
    shmem_finalize();
    MPI_Finalize();
}
"""


def blocks(page):
    """The indented blocks of a page, by their lines, as they are behind the indent."""
    prose = re.sub(r"^( *)```.*?^ *```$|<!--.*?-->", "", page.read_text(), flags=re.S | re.M)
    return [[line[4:].rstrip() for line in block.strip("\n").splitlines()]
            for block in re.findall(r"(?:^    .*\n|^ *\n(?=    ))+", prose, flags=re.M)]


def program_of(line):
    """The program that a line of a shell begins with."""
    words = [word for word in line.removeprefix("$ ").split() if not re.match(r"[A-Z_]+=", word)]
    return words[0] if words else ""


def is_shell(block):
    first = next(filter(None, block))
    return not first.startswith(" ") and (program_of(first) in PROGRAMS or re.match(r"(build|venv)/\S+ ", first))


def is_left_alone(text):
    """Whether processes in the background are not waited for yet."""
    return bool(re.search(r" &$", text, re.M)) and not re.search(r"^wait$", text, re.M)


def commands_of(block):
    """(command, the lines that the page shows behind it) of a block. With "$ " at one line's beginning, the others are
    what is printed. A command goes on while the shell wants more: behind a backslash, in a loop."""
    shown = any(line.startswith("$ ") for line in block)
    found = []
    unfinished = ""
    for line in block:
        if shown and not unfinished and not line.startswith("$ "):
            found[-1][1].append(line)
            continue
        text = unfinished + line.removeprefix("$ ")
        is_cut = text.endswith("\\") or is_left_alone(text)
        wants_more = is_cut or subprocess.run(["bash", "-nc", text], capture_output=True).returncode != 0
        unfinished = text + "\n" if wants_more else ""
        if not wants_more and re.sub(r"^\s*(#.*)?", "", text):
            found.append((text, []))
    assert not unfinished, unfinished
    return found


SHELL = {page: [one for block in blocks(page) if any(block) and is_shell(block) for one in commands_of(block)]
         for page in PAGES}
PYTHON = [(page, "\n".join(block)) for page in PAGES for block in blocks(page)
          if re.match(r"(# \w+\.py\b.*\n)?import ", "\n".join(block).lstrip("\n"))]


def reason_not_to_run(command):
    return next((reason for start, reason in NOT_RUN.items() if command.startswith(start)), None)


# What stands for a reader's own folders, in the order of the replacements.
PLACEHOLDERS = {"build/release": f"{BUILD}", "--preset release": f"--test-dir {BUILD}",
                "PREFIX/share/heddle/fortran": f"{BUILD}/fortran", "PREFIX": f"{BUILD}", "oshrun --flag": "oshrun",
                "A/osh": f"{BUILD}/bin/osh", "B/osh": f"{BUILD}/bin/osh", "/opt/x/osh": f"{BUILD}/bin/osh"}


def fixed(text):
    for placeholder, own in PLACEHOLDERS.items():
        text = text.replace(placeholder, own)
    return text


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """What the commands name: the programs of pages, of the examples and of tests, and prog for a reader's own."""
    made = tmp_path_factory.mktemp("files")
    for page in PAGES:
        for name, text in re.findall(r"^```\w+ (\w+\.\w+)[^\n]*\n(.*?)^```$", page.read_text(), flags=re.S | re.M):
            (made / name).write_text(text)
    for source in [*(ROOT / "examples").iterdir(), *(ROOT / "tests/finding_bugs").iterdir()]:
        if source.suffix in (".c", ".cpp", ".f90", ".h"):
            shutil.copy(source, made)
    (made / "both.c").write_text(BOTH)
    (made / "FILE").write_text("n1\nn2:4\nn3 slots=2\n")
    for suffix in (".c", ".f90"):
        shutil.copy(made / f"hello{suffix}", made / f"prog{suffix}")
    for name in ("ring", "hello", "prog"):
        subprocess.run([BUILD / "bin/oshcc", "-O2", f"{name}.c", "-o", name], cwd=made, check=True)
    for name in ("server", "client", "program"):
        shutil.copy(made / "prog", made / name)
    return made


@pytest.fixture
def folder(files, tmp_path):
    """They, for the commands of one page."""
    return shutil.copytree(files, tmp_path / "files")


def environment():
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}
    return {**os.environ, **root, "PATH": f"{BUILD}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "python"), "HEDDLE_PREFIX": str(BUILD), "SHMEM_SYMMETRIC_SIZE": "64M",
            "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def run(command, folder):
    more = next((f" {word}" for part, word in SHORTER.items() if part in command), "")
    text = re.sub(r"\s+#.*$", "", fixed(command)) + more
    return subprocess.run(["bash", "-c", text], cwd=folder, env=environment(), capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=TIMEOUT_S)


def lacks(command):
    """What of the programs this machine or build has not, or null."""
    if program_of(command) == "oshfort" and not (BUILD / "bin/oshfort").exists():
        return "oshfort"
    return next((name for name in ("mpicc", "mpirun", "gdb", "addr2line", "srun", "ltrace")
                 if re.search(rf"(^|[ =']){name} ", command) and not shutil.which(name)), None)


@pytest.mark.parametrize("page", [page for page in PAGES if SHELL[page]], ids=lambda page: str(page.relative_to(ROOT)))
def test_commands(page, folder):
    ran = 0
    for command, shown in SHELL[page]:
        if reason_not_to_run(command) or lacks(command):
            continue
        done = run(command, folder)
        said = f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}"
        assert (done.returncode != 0) == (command in FAILS), said
        if shown and not command.startswith(VARIES):
            assert sorted(done.stdout.splitlines()) == sorted(filter(None, shown)), said
        ran += 1
    if not ran:
        pytest.skip("nothing of this page can run here: " + "; ".join(
            sorted({reason_not_to_run(command) or f"no {lacks(command)}" for command, _ in SHELL[page]})))


@pytest.mark.parametrize("page,text", PYTHON, ids=lambda value: value.stem if isinstance(value, Path) else "python")
def test_python(page, text, tmp_path):
    """Each block is Python, and runs as its first line says: torchrun's variables are enough without torchrun."""
    compile(text, str(page), "exec")
    first = text.strip().splitlines()[0]
    if not first.startswith("# "):
        assert re.search(r"^import .*\bray$", text, re.M), f"{page}: how is this run?\n{text}"
        return
    name, pes = re.match(r"# (\w+\.py): HEDDLE_LAUNCH=env torchrun --nproc-per-node (\d) \1$", first).groups()
    (tmp_path / name).write_text(fixed(text))
    started = [subprocess.Popen([sys.executable, tmp_path / name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, env={**environment(), "HEDDLE_LAUNCH": "env", "RANK": str(rank),
                                                "WORLD_SIZE": pes, "MASTER_ADDR": "localhost",
                                                "MASTER_PORT": "29517"}) for rank in range(int(pes))]
    printed = [process.communicate(timeout=TIMEOUT_S)[0] for process in started]
    assert printed == [f"{rank} {pes}\n" for rank in range(int(pes))]


def test_every_exception_is_needed():
    commands = [command for page in PAGES for command, _ in SHELL[page]]
    assert len(commands) > 80
    assert [start for start in NOT_RUN if start != "ray" and not any(one.startswith(start) for one in commands)] == []
    assert [command for command in FAILS if command not in commands] == []
    assert [start for start in VARIES if not any(one.startswith(start) for one in commands)] == []


def test_python_blocks_have_names_or_are_read_here():
    unnamed = re.compile(r"^ *```(python|sh|bash|shell|console)\s*$", re.M)
    assert [page for page in PAGES if unnamed.search(page.read_text())] == []
    assert sorted(page.stem for page, _ in PYTHON) == ["running", "running"]

"""The page for those who come from another OpenSHMEM: what it names of Heddle is there, and does what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["HEDDLE_TEST_BUILD"])
PAGE = (ROOT / "docs/user/migration.md").read_text()


def listed(table):
    done = subprocess.run([sys.executable, "-B", ROOT / "api/generate.py", "--list", table], capture_output=True,
                          text=True, check=True)
    return set(done.stdout.split())


def generics():
    text = "".join((ROOT / f"api/{table}.toml").read_text() for table in ("openshmem", "shmemx"))
    return set(re.findall(r'generic = "(\w+)"', text))


def rows():
    """(what it is elsewhere, what it is in Heddle) of each row of the tables with such columns."""
    found = []
    for table in re.findall(r"^\| elsewhere \|.*?(?=\n\n)", PAGE, re.S | re.M):
        for line in table.splitlines()[2:]:
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            assert len(cells) == 3, line
            found.append((cells[0], cells[2]))
    return found


def named(text):
    return [word for code in re.findall(r"`([^`]+)`", text) for word in re.findall(r"[A-Za-z_]\w+", code)]


FUNCTIONS = listed("openshmem") | listed("shmemx") | generics()
SETTINGS = set(re.findall(r'"((?:SHMEM|SMA|HEDDLE)_\w+)"', (ROOT / "src/base/settings.def").read_text()))
BEYOND = {"HEDDLE_CC", "HEDDLE_NO_INLINE"}  # of the wrapper and of the headers


def constants():
    return set(re.findall(r"\bSHMEMX?_\w+", "".join(path.read_text() for path in (ROOT / "include").rglob("*.h"))))


def test_the_tables_are_read():
    assert len(rows()) > 70
    assert any("SHMEM_OFI_STX_MAX" in there and "HEDDLE_NET_CHANNELS" in here for there, here in rows())


def test_each_variable_of_heddle_exists():
    variables = [word for _, here in rows() for word in named(here) if word.startswith(("HEDDLE_", "SHMEM_", "SMA_"))]
    assert len(variables) > 30
    assert sorted(set(variables) - SETTINGS - BEYOND - constants()) == []
    everywhere = set(re.findall(r"\bHEDDLE_\w+", PAGE)) - {"HEDDLE_"}
    assert sorted(everywhere - SETTINGS - BEYOND) == []


def test_each_function_of_heddle_exists():
    functions = [word for _, here in rows() for word in named(here) if re.match(r"shmemx?_\w", word)]
    assert len(functions) > 20
    assert sorted(set(functions) - FUNCTIONS) == []
    prose = re.sub(r"^\|.*\n", "", PAGE, flags=re.M)
    assert {word for word in named(prose) if re.match(r"shmemx?_\w", word)} - FUNCTIONS == {"shmem_int32_sum_to_all"}


def test_what_has_a_counterpart_is_not_heddles_own():
    """A function that Heddle has under the same name needs no row, unless its arguments differ."""
    same = {word for there, _ in rows() for word in named(there) if word in FUNCTIONS}
    assert same == {"shmemx_alltoallv"}


@pytest.mark.parametrize("program", ["oshcc", "oshc++", "oshrun", "heddle-info"])
def test_programs_are_there(program):
    assert f"`{program}" in PAGE and (BUILD / "bin" / program).exists()


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("migration")
    (folder / "a.c").write_text(
        "#include <shmem.h>\n#include <stdio.h>\nint main(void) {\n    int level;\n"
        "    shmem_init_thread(SHMEM_THREAD_SINGLE, &level);\n    void* p = shmem_malloc((size_t)48 << 20);\n"
        '    printf("%d %d\\n", level == SHMEM_THREAD_MULTIPLE, p != NULL);\n    shmem_finalize();\n}\n')
    subprocess.run([BUILD / "bin/oshcc", folder / "a.c", "-o", folder / "a"], check=True)
    return folder / "a"


def run(*command, **settings):
    clean = {name: value for name, value in os.environ.items() if not re.match("(N?V?SHMEM|SMA|HEDDLE)_", name)}
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600,
                          env={**clean, "HEDDLE_ASYNC_COPY": "auto", **settings})


@pytest.mark.parametrize("name,value,fits", [
    ("SHMEM_SYMMETRIC_SIZE", "32M", 0), ("SHMEM_SYMMETRIC_SIZE", "1.5G", 1), ("SHMEM_SYMMETRIC_SIZE", "64MB", 1),
    ("SMA_SYMMETRIC_SIZE", "32M", 0), ("SHMEM_SYMMETRIC_HEAP_SIZE", "32M", 1), ("NVSHMEM_SYMMETRIC_SIZE", "32M", 1),
])
def test_sizes_and_levels_are_as_the_page_says(program, name, value, fits):
    done = run(BUILD / "bin/oshrun", "-np", 1, program, **{name: value})
    assert (done.returncode, done.stdout) == (0, f"1 {fits}\n")
    assert ("right would be SHMEM_SYMMETRIC_SIZE=" in done.stderr) == (name == "SHMEM_SYMMETRIC_HEAP_SIZE"), done.stderr
    assert done.stderr.count("\n") <= 1


def test_variables_of_others_are_ignored(program):
    theirs = {word for there, _ in rows() for word in named(there)
              if re.match("(?:SHMEM|NVSHMEM)_[A-Z]", word)} - SETTINGS - constants()
    assert len(theirs) > 40
    theirs -= {"SHMEM_SYMMETRIC_HEAP_SIZE"}  # which a line says has no effect
    done = run(BUILD / "bin/oshrun", "-n", 1, program, **dict.fromkeys(theirs, "1"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 1\n", "")


def test_options_of_open_mpi(program):
    done = run(BUILD / "bin/oshrun", "-n", 1, "--mca", "spml", "ucx", program)
    assert done.returncode == 2 and "unknown option --mca" in done.stderr
    assert "-lheddle" in run(BUILD / "bin/oshcc", "--showme:link").stdout

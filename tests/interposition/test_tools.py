"""Tools of every kind see inlined operations of programs that nobody has compiled for them: HEDDLE_OUT_OF_LINE."""

import collections
import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import BUILD, HERE, LIMIT_S

# What one thread of calls.c does.
CALLS = {"shmem_long_p": 7, "shmem_ctx_double_g": 5, "shmem_putmem": 3, "shmem_int_atomic_fetch_add": 2,
         "shmem_longdouble_p": 4}
# And each PE.
OF_PE = {"shmem_barrier_all": 2, "shmem_pcontrol": 1, "pcontrol_level_3": 1}
OF_GOT = {name: CALLS[name] for name in ("shmem_long_p", "shmem_ctx_double_g")}


def counted(made, program, *arguments, tool=None, n=2, **settings):
    """The counts of all PEs that a tool has made in a run whose values are right."""
    file = made.folder / "counts"
    file.unlink(missing_ok=True)
    made.run(program, *arguments, tool=tool, n=n, HEDDLE_TEST_COUNTS=str(file), **settings)
    counts = collections.Counter()
    for line in file.read_text().splitlines() if file.exists() else []:
        name, count = line.split()
        counts[name] += int(count)
    return counts


def expected(n, threads=1, calls=None, of_pe=None):
    counts = {name: count * n * threads for name, count in (CALLS if calls is None else calls).items()}
    return counts | {name: count * n for name, count in (OF_PE if of_pe is None else of_pe).items()}


@pytest.fixture(scope="session")
def calls(made):
    return made.make("calls", "calls.c")


@pytest.fixture(scope="session")
def twins(made):
    return made.tool("twins.so", "wrappers.c")


@pytest.fixture(scope="session")
def next_ones(made):
    return made.tool("next.so", "wrappers.c", options=["-DBY_NEXT"])


@pytest.fixture(scope="session")
def got(made):
    return made.tool("got.so", "got.c")


@pytest.mark.parametrize("n", [1, 2, 4])
def test_preloaded_by_second_names(made, calls, twins, n):
    assert counted(made, calls, tool=twins, n=n) == expected(n)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_preloaded_by_next(made, calls, next_ones, n):
    assert counted(made, calls, tool=next_ones, n=n) == expected(n)


def test_threads(made, calls, twins):
    assert counted(made, calls, 7, tool=twins, n=3) == expected(3, threads=7)


@pytest.mark.parametrize("optimization", ["-O0", "-O2", "-O2 -DHEDDLE_NO_INLINE", "-O2 -fno-plt", "-O2 -no-pie"])
def test_each_call_is_seen_once(made, twins, optimization):
    """Also those that programs make by the symbol, which come to the wrapper first and to the library behind it."""
    program = made.make("calls" + optimization.replace(" ", ""), "calls.c", options=optimization.split())
    assert counted(made, program, tool=twins) == expected(2)
    assert counted(made, program, tool=twins, HEDDLE_OUT_OF_LINE="1") == expected(2)


def test_linked_before_the_library(made, twins):
    shutil.copy(twins, made.folder / "libtwins.so")
    program = made.make("calls_linked", "calls.c",
                        options=[f"-L{made.folder}", "-Wl,--no-as-needed", "-ltwins", f"-Wl,-rpath,{made.folder}"])
    assert counted(made, program) == expected(2)


def test_linked_into_the_program(made):
    assert counted(made, made.make("calls_static", "calls.c", "wrappers.c")) == expected(2)


def test_a_table_of_the_old_kind_of_hash(made, calls):
    tool = made.tool("sysv.so", "wrappers.c", options=["-Wl,--hash-style=sysv"])
    assert counted(made, calls, tool=tool) == expected(2)


def test_a_wrapper_may_be_inlined_code_itself(made, calls):
    """It puts by the function that it wraps, and by another: what a call does by itself is carried out."""
    tool = made.tool("only_putmem.so", "wrappers.c", options=["-DONLY_PUTMEM"])
    assert counted(made, calls, tool=tool) == {"shmem_putmem": 6}
    assert counted(made, calls, 3, tool=tool, HEDDLE_OUT_OF_LINE="1") == {"shmem_putmem": 18}


def test_the_setting_forbids_it(made, calls, twins):
    """Then the tool sees what is not inlined."""
    assert counted(made, calls, tool=twins, HEDDLE_OUT_OF_LINE="0") == expected(2, calls={})


def test_changed_tables_need_the_setting(made, calls, got):
    assert counted(made, calls, tool=got) == {}
    for n in (1, 2, 4):
        assert counted(made, calls, 3, tool=got, n=n, HEDDLE_OUT_OF_LINE="1") == expected(n, 3, OF_GOT, {})


@pytest.mark.parametrize("n,threads", [(1, 1), (2, 3), (4, 1)])
def test_values_without_a_tool(made, calls, n, threads):
    made.run(calls, threads, n=n, HEDDLE_OUT_OF_LINE="1")


@pytest.mark.parametrize("setting", [{}, {"HEDDLE_OUT_OF_LINE": "0"}, {"HEDDLE_OUT_OF_LINE": "1"}])
def test_what_a_run_says_of_it(made, calls, twins, setting):
    said = made.run(calls, n=1, SHMEM_DEBUG="1", **setting).stderr
    assert ("operations are called out of line: HEDDLE_OUT_OF_LINE=1" in said) == (setting.get(
        "HEDDLE_OUT_OF_LINE") == "1"), said
    if not setting:
        said = made.run(calls, n=1, tool=twins, SHMEM_DEBUG="1").stderr
        assert re.search(r"init: operations are called out of line: .*/twins.so defines shmem_\w+\n", said), said


def test_addresses_of_functions_are_no_definitions(made):
    program = made.make("addresses", "addresses.c", options=["-no-pie", "-fno-pie"])
    assert "out of line" not in made.run(program, n=1, SHMEM_DEBUG="1").stderr


def test_the_start_without_a_tool_loads_nothing(made, calls):
    said = made.run(calls, n=1, LD_DEBUG="files").stderr
    assert "libheddle.so" in said and "libheddle_out_of_line" not in said


@pytest.mark.parametrize("lacks", ["libheddle_out_of_line.so", None])
def test_an_installation_without_the_plugin(made, calls, lacks):
    folder = made.folder / f"without_{lacks}"
    shutil.copytree(BUILD / "lib", folder, symlinks=True, ignore=shutil.ignore_patterns("*.a", lacks or "*.a"))
    settings = {"LD_LIBRARY_PATH": str(folder), "HEDDLE_OUT_OF_LINE": "1"}
    if not lacks:
        made.run(calls, n=1, **settings)
        return
    said = made.run(calls, n=1, status=1, **settings).stderr
    assert re.search(r"shmem_init_thread: HEDDLE_OUT_OF_LINE=1, so operations are to be called out of line, which "
                     r"cannot be: .*libheddle_out_of_line.so: cannot open shared object file: .*; right would be an "
                     r"installation with libheddle_out_of_line.so, or HEDDLE_OUT_OF_LINE=0", said), said


@pytest.mark.parametrize("way", ["tool", "setting"])
def test_profiles_name_the_programs_places(made, calls, twins, way):
    options = {"tool": twins} if way == "tool" else {"HEDDLE_OUT_OF_LINE": "1"}
    (made.folder / "heddle-profile.json").unlink(missing_ok=True)
    if way == "tool":
        assert counted(made, calls, HEDDLE_PROFILE="1", **options) == expected(2)
    else:
        made.run(calls, HEDDLE_PROFILE="1", **options)
    sites = {site["function"]: site for site in json.loads((made.folder / "heddle-profile.json").read_text())["sites"]
             if site["function"] in CALLS}
    source = (HERE / "calls.c").read_text().splitlines()
    for name, count in CALLS.items():
        line = next(i for i, text in enumerate(source, 1) if f" {name}(" in text or f"({name}(" in text)
        assert sites[name]["calls"]["sum"] == 2 * count and sites[name]["place"] == f"calls.c:{line}", sites[name]


@pytest.mark.parametrize("setting", ["HEDDLE_CHECK", "HEDDLE_CHAOS", "HEDDLE_RACES"])
def test_checked_runs(made, calls, twins, setting):
    assert counted(made, calls, tool=twins, **{setting: "1"}) == expected(2)
    made.run(calls, n=3, HEDDLE_OUT_OF_LINE="1", **{setting: "1"})


def test_mistakes_are_told_at_the_programs_place(made, twins):
    wrong = made.make("wrong", "wrong.c")
    plain = made.run(wrong, n=1, status=1).stderr
    assert "shmem_long_p" in plain and "pe 5 is out of range" in plain and "wrong" in plain
    assert made.run(wrong, n=1, status=1, HEDDLE_OUT_OF_LINE="1").stderr == plain
    assert made.run(wrong, n=1, status=1, tool=twins).stderr == plain


def test_children_of_forks(made):
    """They are no PEs, with a tool or without one."""
    forks = made.make("forks", "forks.c")
    plain = made.run(forks, n=1).stderr
    assert "shmem_long_p" in plain
    assert made.run(forks, n=1, HEDDLE_OUT_OF_LINE="1").stderr == plain


def test_cpp(made, twins):
    """The overloads and the C++20 header are functions of C in the end."""
    source = made.folder / "objects.cpp"
    source.write_text("#include <shmem.hpp>\nstatic long x;\n"
                      "int main() {\n    shmem_init();\n    shmem_p(&x, 5L, 0);\n    shmem_finalize();\n}\n")
    subprocess.run([BUILD / "bin/oshc++", "-std=c++20", "-O2", source, "-o", made.folder / "objects"], check=True,
                   timeout=LIMIT_S)
    assert counted(made, made.folder / "objects", tool=twins) == {"shmem_long_p": 2}


@pytest.mark.skipif(not (BUILD / "lib/heddle/fortran/shmem.mod").exists(), reason="no Fortran module")
def test_fortran(made, twins):
    source = made.folder / "module.f90"
    source.write_text("program module_user\n  use shmem\n  use iso_c_binding\n  integer(c_long), save, target :: x\n"
                      "  call shmem_init()\n  call shmem_long_p(x, 5_c_long, 0)\n  call shmem_finalize()\n"
                      "end program\n")
    subprocess.run([BUILD / "bin/oshfort", source, "-o", made.folder / "module"], check=True, timeout=LIMIT_S)
    assert counted(made, made.folder / "module", tool=twins) == {"shmem_long_p": 2}
    assert counted(made, made.folder / "module", tool=twins, HEDDLE_OUT_OF_LINE="1") == {"shmem_long_p": 2}


@pytest.mark.skipif(not shutil.which("ltrace"), reason="no ltrace")
def test_ltrace(made, calls):
    """It sees the library's functions as they are entered; without the setting, none of those that are inlined."""

    def seen(**settings):
        ltrace = ["ltrace", "-f", "-x", "shmem_long_p@libheddle.so*", "-e", "none"]
        run = made.run(calls, n=1, before=ltrace, **settings)
        return len(re.findall(r"shmem_long_p@libheddle\S*\(", run.stderr))

    assert seen() == 0
    assert seen(HEDDLE_OUT_OF_LINE="1") == 7


@pytest.mark.skipif(not shutil.which("gdb"), reason="no gdb")
def test_breakpoints(made):
    """As uprobes and perf probe have them: at the library's functions."""
    commands = ["set breakpoint pending on", "set debuginfod enabled off", "break shmem_long_p", "ignore 1 1000000",
                "run", "info breakpoints"]

    bare = made.make("calls_bare", "calls.c", options=["-g0"])  # gdb breaks where a function is inlined, too

    def hits(**settings):
        done = subprocess.run(["gdb", "-batch", "-nx", *(word for one in commands for word in ("-ex", one)), bare],
                              env={**os.environ, **settings}, capture_output=True, text=True, timeout=LIMIT_S)
        assert "exited normally" in done.stdout, (done.stdout, done.stderr)
        return [int(count) for count in re.findall(r"already hit (\d+) time", done.stdout)]

    assert hits() == []
    assert hits(HEDDLE_OUT_OF_LINE="1") == [7]

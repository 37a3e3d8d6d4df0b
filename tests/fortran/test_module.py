"""The Fortran modules have every function of the tables that docs/user/fortran.md does not leave out; the programs here
call each; types have the sizes of C's; an installation and other compilers can use them; mistakes have messages."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

BUILD = Path(os.environ["HEDDLE_BUILD"])
SOURCE = Path(os.environ["HEDDLE_SOURCE"])
PROGRAMS = ["library", "arrays", "unique_id", "rma", "rma_nbe", "atomics", "atomics_nbe", "waits", "collectives",
            "collectives_mt", "collectives_mt_nbe", "collectives_nbe"]
sys.path.insert(0, str(SOURCE / "api"))


def run(*command, status=0, cwd=None, **environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, cwd=cwd,
                          env={**os.environ, **environment})
    assert done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def functions():
    """All C functions but the deprecated ones, the variadic one, and the one that a generic is."""
    from generate import load

    families = [family for table in ("openshmem", "shmemx") for _, some in load(table) for family in some]
    return {function.name for family in families if not family.deprecated and "..." not in family.arguments
            for function in family.every()} - {"shmem_wait_until"}


def test_every_function_is_in_the_modules():
    text = "".join((BUILD / f"fortran/{name}.f90").read_text() for name in ("shmem", "shmemx"))
    bound = set(re.findall(r'bind\(C, name="(\w+)"\)', re.sub(r" &\n +", " ", text)))
    missing = functions() - bound
    assert len(functions()) > 2500 and not missing, sorted(missing)[:10]
    exported = {line.split()[2].split("@")[0]
                for line in run("nm", "-D", "--defined-only", BUILD / "lib/libheddle.so").splitlines()}
    assert not {name for name in bound - exported if not name.startswith("heddle_fortran")}


def test_every_function_is_called_by_a_program():
    called = set()
    for program in PROGRAMS:
        called |= {line.split()[-1].split("@")[0]
                   for line in run("nm", "-u", BUILD / f"tests/fortran/{program}").splitlines()}
    missing = functions() - called
    assert not missing, (len(missing), sorted(missing)[:20])


def test_types_have_the_sizes_of_c(tmp_path):
    types = ["shmem_team_t", "shmem_ctx_t", "shmemx_request_t", "shmemx_plan_t", "shmem_team_config_t",
             "shmem_ctx_session_config_t", "shmemx_uniqueid_t", "shmemx_ctx_info_t"]
    (tmp_path / "f.f90").write_text(
        "program sizes\nuse shmem\nuse shmemx\n" + "".join(f"type({name}) :: v{i}\n" for i, name in enumerate(types)) +
        "".join(f"print '(i0)', c_sizeof(v{i})\n" for i, _ in enumerate(types)) +
        "print '(i0)', c_sizeof(1_c_long_double), SHMEMX_CTX_RELAXED, SHMEM_CTX_NOSTORE\nend program\n"
        .replace("1_c_long_double", "1.0_c_long_double"))
    (tmp_path / "c.c").write_text(
        "#include <shmemx.h>\n#include <stdio.h>\nint main(void) {\n" +
        "".join(f'printf("%zu\\n", sizeof({name}));\n' for name in types) +
        'printf("%zu\\n%ld\\n%ld\\n", sizeof(long double), SHMEMX_CTX_RELAXED, SHMEM_CTX_NOSTORE);\n}\n')
    run(BUILD / "bin/oshfort", "f.f90", "-o", "f", cwd=tmp_path)
    run(BUILD / "bin/oshcc", "c.c", "-o", "c", cwd=tmp_path)
    assert run(tmp_path / "f") == run(tmp_path / "c")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    place = tmp_path_factory.mktemp("installed") / "prefix"
    run("cmake", "--install", BUILD, "--prefix", place)
    return place


def test_installed(prefix, tmp_path):
    """Also where no build is, and the command that -show prints."""
    source = SOURCE / "examples/hello.f90"
    shown = run(prefix / "bin/oshfort", "-show", source, "-o", "hello")
    words = shown.split()
    assert words[0] == "gfortran" and f"-I{prefix}/include" in words and words[-2:] == ["-lheddle_fortran", "-lheddle"]
    run(*words, cwd=tmp_path)
    lines = sorted(run(prefix / "bin/oshrun", "-n", 3, tmp_path / "hello").splitlines())
    assert lines == [f"PE {me} of 3: my left neighbor is {(me + 2) % 3}" for me in range(3)]
    assert "HEDDLE_FC" in run(prefix / "bin/oshfort", "--help")


def test_a_compiler_that_cannot_read_the_modules(prefix, tmp_path):
    """It compiles them of their sources: what lies in the program's folder is found first."""
    for name in ("shmem", "shmemx"):
        (prefix / f"include/{name}.mod").write_bytes(b"of another compiler")
    shutil.copy(SOURCE / "examples/halo.f90", tmp_path)
    assert "shmem.mod" in run(prefix / "bin/oshfort", "-c", "halo.f90", cwd=tmp_path, status=1)
    sources = [prefix / f"share/heddle/fortran/{name}.f90" for name in ("shmem", "shmemx")]
    run(prefix / "bin/oshfort", "-c", *sources, cwd=tmp_path)
    run(prefix / "bin/oshfort", "halo.f90", "shmem.o", "-o", "halo", cwd=tmp_path)
    assert run(prefix / "bin/oshrun", "-n", 2, tmp_path / "halo") == "halo: pass on 2 PEs\n"


def test_cmake_package(prefix, tmp_path):
    for name in ("shmem", "shmemx"):
        shutil.copy(BUILD / f"lib/heddle/fortran/{name}.mod", prefix / "include")
    shutil.copy(SOURCE / "examples/hello.f90", tmp_path)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(hello Fortran)\nfind_package(Heddle REQUIRED)\n"
        "add_executable(hello hello.f90)\ntarget_link_libraries(hello PRIVATE Heddle::fortran)\n")
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build/hello") == "PE 0 of 1: my left neighbor is 0\n"


def test_a_shape_of_another_rank_is_named(tmp_path):
    (tmp_path / "wrong.f90").write_text("program wrong\nuse shmem\nreal(c_double), pointer :: a(:, :)\n"
                                        "call shmem_init()\ncall shmem_alloc(a, [3])\nend program\n")
    run(BUILD / "bin/oshfort", "wrong.f90", "-o", "wrong", cwd=tmp_path)
    assert run(tmp_path / "wrong", status=1) == \
        "heddle [pe 0] shmem_alloc: shape has 1 elements: must have as many as array has dimensions: 2\n"


@pytest.mark.parametrize("call", ["call shmem_put(words, halves, 1_c_size_t, 0)", "call shmem_barrier_all(1)",
                                  "call shmem_team_destroy(SHMEM_CTX_DEFAULT)", "call shmem_put(words, words, 1, 0)",
                                  "if (shmem_test(words(1), SHMEM_CMP_EQ, 1)) stop"])
def test_the_compiler_finds_wrong_types(tmp_path, call):
    (tmp_path / "wrong.f90").write_text("program wrong\nuse shmem\ninteger(c_int), target, save :: words(2)\n"
                                        f"real(c_float), target, save :: halves(2)\n{call}\nend program\n")
    assert "Error:" in run(BUILD / "bin/oshfort", "-c", "wrong.f90", cwd=tmp_path, status=1)


SECTIONS = """program sections
use shmem
use shmemx
integer(c_int), target, asynchronous, save :: d(8), s(2, 4)
integer(c_int), pointer, contiguous, asynchronous :: p(:)
type(shmemx_request_t) :: req
"""


def sections(place, calls, *options, status=0):
    """What the compiler says of the calls, and the lines, of the program alone, that it speaks of."""
    (place / "sections.f90").write_text(SECTIONS + "".join(f"call {call}\n" for call in calls) + "end program\n")
    said = run(BUILD / "bin/oshfort", *options, "sections.f90", "-o", "sections", cwd=place, status=status)
    places = {int(line) - SECTIONS.count("\n") for line in re.findall(r"^sections.f90:(\d+):", said, re.M)}
    return said, [calls[place - 1] for place in sorted(places)]


def test_the_compiler_finds_copies_of_asynchronous_variables(tmp_path):
    """A section with gaps would be a copy, which ends with the call, or in which nothing arrives."""
    wrong = ["shmem_put_nbi(d, s(1, :), 4_c_size_t, 0)", "shmem_int_put_nbi(d, s(1, :), 4_c_size_t, 0)",
             "shmem_get_nbi(s(1, :), d, 4_c_size_t, 0)", "shmemx_put_nbe(d, d(1:8:2), 4_c_size_t, 0, req)",
             "shmemx_get_nbe(d([1, 3]), d, 4_c_size_t, 0, req)",
             "shmem_wait_until_all(d(1:8:2), 4_c_size_t, cmp = SHMEM_CMP_EQ, cmp_value = 1)"]
    right = ["shmem_put_nbi(d, s, 8_c_size_t, 0)", "shmem_put_nbi(d(3:4), s(:, 2), 2_c_size_t, 0)",
             "shmem_put_nbi(d(3), s(1, 2), 2_c_size_t, 0)", "shmemx_get_nbe(p, d, 2_c_size_t, 0, req)",
             "shmem_atomic_fetch_add_nbi(s(1, 1), d(1), 1, 0)",
             "shmem_wait_until_all(d(1:4), 4_c_size_t, cmp = SHMEM_CMP_EQ, cmp_value = 1)",
             "shmem_put(d, s(1, :), 4_c_size_t, 0)"]  # complete when it returns
    assert sections(tmp_path, wrong + right, "-c", status=1)[1] == wrong
    assert sections(tmp_path, right, "-Wall")[0] == ""


def test_temporaries_are_warned_of(tmp_path):
    """By the option of gfortran that the page names."""
    copied = [f"shmem_put(d, {source}, 2_c_size_t, 0)" for source in ("s(1, :)", "d(1:4) + 1", "(d)", "d([1, 2])")]
    whole = [f"shmem_put(d, {source}, 2_c_size_t, 0)" for source in ("s(:, 1)", "d", "d(3:)", "s")]
    assert sections(tmp_path, copied + whole, "-c", "-Warray-temporaries")[1] == copied


def test_a_section_with_gaps_is_not_symmetric(tmp_path):
    sections(tmp_path, ["shmem_init()", "shmem_put(s(1, :), d, 4_c_size_t, 0)"])
    assert re.search(r"shmem_int32_put: dest 0x\w+ is not symmetric", run(tmp_path / "sections", status=1))


def run_piece(place, piece, status=0):
    """Compiles declarations and statements as a main program, with the option that leaves the most on the stack."""
    declared, done = ([line for line in piece.splitlines() if bool(re.search("::|^ *save$", line)) == is_declared]
                      for is_declared in (True, False))
    names = "".join(line.split("::")[1] for line in declared if ", save ::" in line)
    saved = re.findall(r"(\w+)(?:\([^)]*\))?,? *", names)
    asked = [f"if (shmem_addr_accessible(c_loc({name}), 0) /= 1) call shmem_global_exit(3)" for name in saved]
    (place / "piece.f90").write_text("\n".join(
        ["program piece", "use shmem", *declared, "integer :: rows = 2, columns = 3, pe = 0", "call shmem_init()",
         *asked, *done, "call shmem_finalize()", "end program", ""]))
    run(BUILD / "bin/oshfort", "-fopenmp", "piece.f90", "-o", "piece", cwd=place)
    return saved, run(place / "piece", status=status)


def test_what_the_page_declares_is_symmetric(tmp_path):
    page = (SOURCE / "docs/user/fortran.md").read_text()
    pieces = [piece for piece in re.findall(r"\n\n((?:    .*\n)+)", page) if "::" in piece]
    names = [run_piece(tmp_path, piece)[0] for piece in pieces]
    assert names == [["inbox", "table", "many"], [], ["a", "halo"]]


def test_a_variable_of_the_main_program_needs_save(tmp_path):
    """As the page says of gfortran; a line of its own is enough."""
    piece = "integer(c_int), target :: x\ncall shmem_p(x, 1, 0)\n"
    assert re.search(r"shmem_int32_p: dest 0x\w+ is not symmetric", run_piece(tmp_path, piece, status=1)[1])
    run_piece(tmp_path, f"save\n{piece}")


def test_races_of_a_program(tmp_path):
    """-fheddle-races is for Fortran, too, and says nothing of options."""
    (tmp_path / "race.f90").write_text("""program race
use shmem
integer(c_int), target, save :: x = 0
call shmem_init()
if (shmem_my_pe() == 1) call shmem_p(x, 1, 0)
if (shmem_my_pe() == 0) x = 2
call shmem_barrier_all()
call shmem_finalize()
end program
""")
    if not (BUILD / "lib/heddle/races").exists():
        pytest.skip("this build has no part of programs")
    assert run(BUILD / "bin/oshfort", "-g", "-fheddle-races", "race.f90", "-o", "race", cwd=tmp_path) == ""
    done = subprocess.run([BUILD / "bin/oshrun", "-n", "2", tmp_path / "race"], capture_output=True, text=True,
                          timeout=600, env={**os.environ, "HEDDLE_RACES": "1"})
    # Either access is told of first.
    assert "shmem_int32_p (called at race" in done.stderr and "race.f90:6) on PE 0 writes" in done.stderr, done


def test_tables_are_understood():
    """A type that Fortran is not told of ends the build with its name."""
    from fortran_module import OTHERS, TYPES

    words = tomllib.loads((SOURCE / "api/openshmem.toml").read_text())["types"]
    assert all(name in TYPES for table in ("rma", "amo", "reduce_arithmetic") for _, name in words[table])
    assert "shmem_team_t" in OTHERS

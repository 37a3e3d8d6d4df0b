"""Where in the program a message says that it was: the place that addr2line takes, and the line where there is debug
information; crashes; HEDDLE_ABORT."""

import pathlib
import re
import resource
import shutil
import signal
import subprocess

import pytest
from conftest import ADDRESS, BUILD, OSHRUN, SANITIZER, execute

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE / "places.c"
LINES = {match[1]: number for number, text in enumerate(SOURCE.read_text().splitlines(), 1)
         if (match := re.search(r'when\("(\w+)"\)', text))}
NEEDS_TOOL = pytest.mark.skipif(not shutil.which("addr2line"), reason="there is no addr2line")
NEEDS_OWN_HANDLERS = pytest.mark.skipif(bool(SANITIZER), reason="a sanitizer has handlers of its own")
BUILDS = {"inlined": ["-O2", "-g"], "calls": ["-O0", "-g"], "fixed": ["-O2", "-g", "-no-pie", "-fno-pie"],
          "no_lines": ["-O2", "-g0"],
          "no_frames": ["-O2", "-g", "-fomit-frame-pointer", "-fno-asynchronous-unwind-tables"]}


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("places")
    oshcc = str(BUILD / "bin" / "oshcc")
    jobs = [subprocess.Popen([oshcc, "-DHEDDLE_SILENCE_DEPRECATED", *flags, SOURCE, "-o", folder / name])
            for name, flags in BUILDS.items()]
    jobs.append(subprocess.Popen([oshcc, "-O2", "-g", "-fPIC", "-shared", "-DLIBRARY", SOURCE,
                                  "-o", folder / "libplaces.so"]))
    assert all(job.wait() == 0 for job in jobs)
    subprocess.run([oshcc, "-O2", "-g", "-DCALLER", SOURCE, "-o", folder / "with_library", "-L", folder, "-lplaces",
                    f"-Wl,-rpath,{folder}"], check=True)
    return folder


def run(program, when, pes=2, **environment):
    return execute([OSHRUN, "-n", pes, program, when], SHMEM_SYMMETRIC_SIZE="16M", **environment)


def own_line(result):
    """The one message of the library; PEs without a number yet may all have said it before the launcher ended them."""
    lines = {line for line in result.err.splitlines() if line.startswith("heddle")}
    assert len(lines) == 1, result
    return lines.pop()


def line_by_tool(module, address):
    """What addr2line says of the place: the innermost line that is not in a header."""
    said = subprocess.run(["addr2line", "-i", "-e", module, address], capture_output=True, text=True, check=True).stdout
    return next(re.sub(r" .*", "", line) for line in said.splitlines() if ".h:" not in line).rsplit(":", 1)[1]


CALLS = [name for name in LINES if not name.startswith("crash") and name not in ("different", "posted", "warned")]


@pytest.mark.parametrize("when", CALLS)
def test_place_and_line(programs, when):
    """Slow paths of inlined operations and calls, memory, teams, contexts, requests, locks: each with its own line."""
    result = run(programs / "inlined", when)
    assert result.status == 1, result
    found = re.match(rf"heddle (?:\[pe 1\] )?\w+: .* \(called at inlined\+({ADDRESS})(, places.c:(\d+))?\)",
                     own_line(result))
    assert found, result
    if shutil.which("addr2line"):
        assert found[3] == str(LINES[when]) == line_by_tool(programs / "inlined", found[1]), (found, result)


@NEEDS_TOOL
@pytest.mark.parametrize("build", [name for name in BUILDS if name != "no_lines"])
def test_however_it_is_compiled(programs, build):
    for when in ("pe", "stack", "lock"):
        assert f"places.c:{LINES[when]})" in own_line(run(programs / build, when)), build


def test_without_debug_information(programs):
    text = own_line(run(programs / "no_lines", "pe"))
    assert re.search(rf"\(called at no_lines\+{ADDRESS}\)$", text), text


def test_without_the_tool(programs):
    """The place is there all the same."""
    text = own_line(run(programs / "inlined", "pe", PATH="/nowhere"))
    assert re.search(rf"\(called at inlined\+{ADDRESS}\)$", text), text


def test_a_tool_that_fails_or_talks_does_no_harm(programs, tmp_path):
    for body in ("exit 3", "kill -9 $$", "echo '??:0'", "head -c 100000 /dev/zero | tr '\\0' x",
                 "echo; echo :; echo a:b"):
        tool = tmp_path / "addr2line"
        tool.write_text(f"#!/bin/sh\nPATH={'/usr/bin:/bin'}\n{body}\n")
        tool.chmod(0o755)
        text = own_line(run(programs / "inlined", "pe", PATH=str(tmp_path)))
        assert re.search(rf"\(called at inlined\+{ADDRESS}\)$", text), text


def test_a_shared_library_is_named(programs):
    text = own_line(run(programs / "with_library", "pe"))
    line = f", places.c:{LINES['pe']}" if shutil.which("addr2line") else ""
    assert re.search(rf"\(called at libplaces.so\+{ADDRESS}{line}\)$", text), text


@NEEDS_TOOL
def test_a_place_of_another_pe_has_its_line(programs):
    """In a checked run each member says where it called."""
    result = run(programs / "inlined", "different", HEDDLE_CHECK="1")
    assert result.status == 1, result
    for line in (LINES["different"], LINES["different"] + 1):
        assert f"places.c:{line})" in result.err, result


@NEEDS_TOOL
def test_a_posted_collective_has_the_line_of_its_post(programs):
    result = run(programs / "inlined", "posted", pes=1)
    assert f"places.c:{LINES['posted']})" in own_line(result), result


def test_a_warning_has_a_place(programs):
    """And no line: the program goes on, and no other is started for it."""
    result = run(programs / "inlined", "warned", pes=1)
    assert re.search(rf"alignment 3 is wrong: .* \(called at inlined\+{ADDRESS}\)\n", result.err), result


# ---- HEDDLE_ABORT
def test_abort_is_a_signal(programs):
    result = run(programs / "inlined", "pe", HEDDLE_ABORT="1")
    assert result.status == 128 + signal.SIGABRT and "pe 2 is out of range" in own_line(result), result
    assert "PE 1 (" in result.err and "was killed by signal 6 (Aborted" in result.err, result


def test_abort_before_init_too(programs):
    result = execute([programs / "inlined", "before"], HEDDLE_ABORT="yes")
    assert result.status == -signal.SIGABRT and "called before shmem_init" in own_line(result), result
    assert execute([programs / "inlined", "before"], HEDDLE_ABORT="no").status == 1


# ---- Crashes
NULL = rf"address {ADDRESS}, of a null pointer"
CRASHES = {"crash_null": ("SIGSEGV", "Segmentation fault", NULL),
           "crash_in_libc": ("SIGSEGV", "Segmentation fault", rf"address {ADDRESS}"),
           "crash_in_put": ("SIGSEGV", "Segmentation fault", NULL),
           "crash_division": ("SIGFPE", "Floating point exception", "a division by zero"),
           "crash_trap": ("SIGILL", "Illegal instruction",
                          "an instruction that this CPU lacks, or a trap of the compiler's"),
           "crash_bus": ("SIGBUS", "Bus error", rf"address {ADDRESS}, where no memory is left, or behind the end of a "
                                                "mapped file"),
           "crash_sent": ("SIGBUS", "Bus error", r"sent by process \d+"),
           "crash_stack": ("SIGSEGV", "Segmentation fault",
                           rf"address {ADDRESS}, where the stack ends: an overflow of the stack"),
           "crash_heap": ("SIGSEGV", "Segmentation fault",
                          rf"address {ADDRESS}, byte 4096 of the symmetric heap of PE 0"),
           "crash_thread": ("SIGSEGV", "Segmentation fault", NULL)}
if "x86" in __import__("platform").machine():
    CRASHES["crash_nowhere"] = ("SIGSEGV", "Segmentation fault", "an address that cannot be one")
else:
    CRASHES.pop("crash_division")  # is 0 there


@NEEDS_OWN_HANDLERS
@pytest.mark.parametrize("when", CRASHES)
def test_crash_is_told(programs, when):
    """With the signal, the address and what is there, and the place; the PE ends as it would without."""
    name, words, address = CRASHES[when]
    number = getattr(signal, name)
    result = run(programs / "inlined", when)
    assert result.status == 128 + number, result
    place = rf"(?:; at inlined\+{ADDRESS}|; at [\w.-]+\+{ADDRESS}(?:, [\w.-]+:\d+)?, called at inlined\+{ADDRESS})"
    found = re.fullmatch(rf"heddle \[pe 1\] signal {int(number)} \({words}\): {address}{place}(?:, places.c:(\d+))?",
                         own_line(result))
    assert found, result
    if shutil.which("addr2line"):
        assert found[1] == str(LINES[when]), result
    lines = result.err.splitlines()
    assert "was killed by signal" in lines[-1] and lines.index(own_line(result)) < len(lines) - 1, result


@NEEDS_OWN_HANDLERS
@pytest.mark.parametrize("when", ["own_before", "own_after"])
def test_handlers_of_the_program_are_left_alone(programs, when):
    result = run(programs / "inlined", f"crash_{when}")
    assert result.status == 77 and "own handler" in result.out and "heddle" not in result.err, result


@NEEDS_OWN_HANDLERS
def test_signals_can_be_left_alone(programs):
    result = run(programs / "inlined", "crash_null", HEDDLE_CRASH_REPORT="no")
    assert result.status == 128 + signal.SIGSEGV and "heddle" not in result.err, result


@NEEDS_OWN_HANDLERS
def test_child_of_a_pe_is_no_pe(programs):
    result = run(programs / "inlined", "crash_child")
    assert result.status == 0 and "heddle" not in result.err and result.out.count("child: signal 11") == 1, result


@NEEDS_OWN_HANDLERS
def test_a_core_shows_the_place_itself(programs, tmp_path):
    """The kernel writes what it would have written: the signal is taken where it happened, not in a handler."""
    if pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip() != "core" or not shutil.which("gdb"):
        pytest.skip("cores do not lie in the folder, or there is no gdb")
    subprocess.run([programs / "inlined", "crash_alone"], cwd=tmp_path, check=False, capture_output=True, timeout=60,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2))
    core = next(tmp_path.glob("core*"))
    said = subprocess.run(["gdb", "-batch", "-ex", "bt 1", programs / "inlined", core], capture_output=True, text=True,
                          timeout=60, check=False).stdout
    core.unlink()
    assert re.search(rf"#0 .*places.c:{LINES['crash_alone']}", said), said


def test_settings_that_are_no_words(programs):
    result = run(programs / "inlined", "pe", HEDDLE_ABORT="disable")
    assert result.status == 2, result
    assert result.err.startswith("oshrun: HEDDLE_ABORT=disable is malformed: right would be yes or no"), result

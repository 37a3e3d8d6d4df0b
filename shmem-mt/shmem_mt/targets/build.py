"""Compiles the programs with a library's wrapper, and finds out which features it has: once for each state of the
sources and the wrapper."""

import hashlib
import os
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

from shmem_mt import sources, supervisor

COMPILE_TIMEOUT_S = 180
_SYSTEM = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/")

# Feature probes, sources in programs/probes: SHMEM_MT_HAVE_<NAME> is 1 where one compiles and links.
PROBES = ("ctx", "put_signal", "fetch_nbi", "team_collectives", "shmemx", "progress", "progress_network", "inscan",
          "pe_quiet")  # fmt: skip


def build(implementation, directory, programs, note):
    """Compiles `programs` into `directory` and probes features. Returns the names that did not compile, with why.

    What is there and fits the sources and the wrapper is used again. `note(text)` hears what is being done.
    """
    os.makedirs(directory, exist_ok=True)
    implementation.digest = implementation.digest or library_digest(implementation, os.path.join(directory, "library"))
    stamp = _stamp(implementation)
    fresh = _read(os.path.join(directory, "stamp")) == stamp
    for name in () if implementation.reference else PROBES:
        macro = f"SHMEM_MT_HAVE_{name.upper()}"
        implementation.features[macro] = _probe(implementation, os.path.join(directory, macro), name, fresh)

    def compile_one(name):
        binary = os.path.join(directory, name)
        if os.path.exists(binary) and _read(binary + ".stamp") == stamp:
            return None
        note(f"compiling {name} with {implementation.label}")
        problem = compile_program(implementation, sources.source_of(name), binary)
        if problem is None:
            _write(binary + ".stamp", stamp)
        return problem

    names = {program: implementation.source_of(program) for program in programs if implementation.offers(program)}
    wanted = list(dict.fromkeys(names.values()))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            problems = dict(zip(wanted, pool.map(compile_one, wanted)))
        except KeyboardInterrupt:
            supervisor.end_running()  # the pool's threads wait for them
            raise
    failures = {program: problems[name] for program, name in names.items() if problems[name]}
    implementation.binaries.update((p, os.path.join(directory, n)) for p, n in names.items() if p not in failures)
    _write(os.path.join(directory, "stamp"), stamp)
    return failures


def said_by_probe(implementation):
    """(what the probe of a reference prints, None), or (None, what went wrong). No launcher starts it."""
    with tempfile.TemporaryDirectory(prefix="shmem-mt-") as directory:
        binary = os.path.join(directory, "probe")
        problem = run_compiler(implementation, [], sources.probe(implementation.reference.probe), binary)
        if problem:
            return None, problem
        try:
            done = subprocess.run([binary], capture_output=True, text=True, timeout=20, errors="replace")
        except (OSError, subprocess.TimeoutExpired) as error:
            return None, str(error)
    return done.stdout, None


def hand_over(implementation, directory):
    """The path of the program that prints what the hand-over of a line takes; None where it does not compile."""
    binary = os.path.join(directory, "hand_over")
    flags = ["-I", sources.root()]
    return binary if run_compiler(implementation, flags, sources.probe("hand_over"), binary) is None else None


def _write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _stamp(implementation):
    wrapper = f"{implementation.oshcc} {os.stat(implementation.oshcc).st_mtime_ns}"
    return hashlib.sha256((wrapper + implementation.digest + sources.digest("programs", "apps")).encode()).hexdigest()


def library_digest(implementation, binary):
    """A digest of the headers that the wrapper finds, whose functions may be inlined, and of the libraries that it
    links, but for those in the system's folders. Of a wrapper that does not work it is that of nothing."""
    made = hashlib.sha256()
    source = sources.probe(implementation.reference.probe if implementation.reference else "library")
    run_compiler(implementation, ["-E", "-dD"], source, binary + ".ii")
    run_compiler(implementation, [], source, binary)
    files = [binary + ".ii", *re.findall(r"=> (/\S+)", _output(["ldd", binary]))]
    for path in files:
        if not path.startswith(_SYSTEM) and os.path.exists(path):
            with open(path, "rb") as file:
                made.update(file.read())
    return made.hexdigest()


def vendor(oshcc):
    """What the library's headers say of their vendor (SHMEM_VENDOR_STRING); empty where they say nothing."""
    said = _output([oshcc, "-x", "c++", "-E", "-dM", sources.probe("library")])
    match = re.search(r'^#define SHMEM_VENDOR_STRING "(.*)"$', said, re.MULTILINE)
    return match[1] if match else ""


def _output(command):
    """What it prints; nothing where it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, errors="replace")
        return done.stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return None


def _probe(implementation, answer_path, name, fresh):
    answer = _read(answer_path)
    if fresh and answer in ("0", "1"):
        return answer == "1"
    works = run_compiler(implementation, [], sources.probe(name), answer_path + ".out") is None
    with open(answer_path, "w", encoding="utf-8") as file:
        file.write("1" if works else "0")
    return works


def compile_program(implementation, source, binary, more=()):
    """`more`: further flags. None when it worked, else what the compiler said. Never leaves half a binary."""
    defines = [f"-D{macro}={int(works)}" for macro, works in implementation.features.items()]
    problem = run_compiler(implementation, [*defines, "-I", sources.root(), *more], source, binary + ".new")
    if problem is None:
        try:
            os.replace(binary + ".new", binary)
        except OSError as error:
            problem = f"the compiler has made no program: {error.strerror}"
    return problem


def run_compiler(implementation, flags, source, binary):
    """None when it worked, else what the compiler said."""
    command = [
        implementation.oshcc,
        "-x",
        "c++",
        "-std=c++17",
        "-O2",
        *flags,
        source,
        "-o",
        binary,
        *(implementation.reference.libraries if implementation.reference else ()),
        "-lstdc++",
        "-lpthread",
        "-lm",
    ]
    try:
        done = supervisor.run(command, COMPILE_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else (done.stderr.strip() or f"exit status {done.returncode}")

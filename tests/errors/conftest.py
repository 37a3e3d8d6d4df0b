"""Runs errors.cpp under oshrun and looks at how it ends. The build under test is the folder HEDDLE_BUILD."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from make_calls import all_chosen, parameters

BUILD = pathlib.Path(os.environ["HEDDLE_BUILD"])
PROGRAMS = BUILD / "tests" / "errors"
OSHRUN = str(BUILD / "bin" / "oshrun")
SANITIZER = os.environ.get("HEDDLE_SANITIZER", "")
HEAP_BYTES = 16 << 20
TIMEOUT_S = 300  # a hang: anything here ends within a second on a machine that is free

ADDRESS = r"0x[0-9a-f]+"
PLACES = rf"heap is \[{ADDRESS}, {ADDRESS}\), data is \[{ADDRESS}, {ADDRESS}\)"
PLACE = rf" \(called at [\w.-]+\+{ADDRESS}(, [\w.-]+:\d+)?\)"  # where in the program; docs/debugging.md
SIZE_MAX = 2**64 - 1
INT_MIN, INT_MAX = -(2**31), 2**31 - 1

# Every function that can be called, and the names of its parameters.
FUNCTIONS = {function.name: [name for _, name in parameters(function)] for function in all_chosen()}
INLINED = {function.name for function in all_chosen() if function.inline}


# Collectives on a team or an active set, with data; and those that only wait.
MOVING = ("broadcast", "collect", "alltoall", "_reduce", "scan", "to_all")
EXCHANGES = [name for name in FUNCTIONS if "alltoallv" in name or "neighbor" in name]  # test_exchanges.py
COLLECTIVES = [name for name in FUNCTIONS if any(word in name for word in MOVING) and name not in EXCHANGES]
WAITING = ["shmem_team_sync", "shmem_sync", "shmem_barrier", "shmemx_team_sync_mt", "shmemx_team_barrier_mt",
           "shmemx_team_sync_nbe", "shmemx_team_barrier_nbe", "shmemx_team_sync_mt_nbe", "shmemx_team_barrier_mt_nbe"]
ON_TEAMS = [name for name in COLLECTIVES + EXCHANGES + WAITING if "team" in FUNCTIONS[name]]
ON_ACTIVE_SETS = [name for name in COLLECTIVES + WAITING if "pSync" in FUNCTIONS[name]]


def those_with(*names):
    """The functions that have all these parameters, in the table's order, but for COLLECTIVES and EXCHANGES."""
    return [function for function, parameter in FUNCTIONS.items()
            if set(names) <= set(parameter) and function not in COLLECTIVES + EXCHANGES]


def remote_argument(function):
    """The parameter of a communicating function that must be symmetric."""
    names = FUNCTIONS[function]
    reads = "get" in function or function.endswith("_g") or "_fetch" in function
    return "source" if "source" in names and ("dest" not in names or reads) else "dest"


def element_bytes(function):
    """Of one element of its data."""
    if re.search("(put|get|broadcast|collect|alltoall|alltoalls)mem", function):
        return 1
    return 2 if "_short_" in function else 8


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def __repr__(self):
        return f"status {self.status}\nout: {self.out[-1500:]}\nerr: {self.err[-1500:]}"

    def is_fatal(self, message, status=1):
        """Ended by exactly this message (a regular expression), from one PE or several, and by nothing else."""
        own = [line for line in self.err.splitlines() if not line.startswith("oshrun: ")]
        assert self.status == status, self
        assert own, self
        for line in own:
            assert is_said(message, line), f"{message}\n{self}"

    def is_fine(self, pes=2):
        assert self.status == 0 and self.out.count("survived") == pes, self
        assert self.err == "", self


def execute(command, **environment):
    """The result of a command; fails the test when it hangs."""
    process = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             errors="replace", timeout=TIMEOUT_S, check=False, env={**os.environ, **environment})
    return Result(process.returncode, process.stdout, process.stderr)


def invoke(when, function, *arguments, pes=2, check=False, program="errors_inline", **environment):
    """Runs errors.cpp, see there, as a job."""
    variables = {"SHMEM_SYMMETRIC_SIZE": str(HEAP_BYTES), "ERRORS_HEAP_BYTES": str(HEAP_BYTES),
                 "HEDDLE_CHECK": str(int(check)), **environment}
    return execute([OSHRUN, "-n", pes, PROGRAMS / program, when, function, *arguments], **variables)


def message(function, text, pe=r"\d+"):
    return rf"heddle \[pe {pe}\] {re.escape(function)}: {text}"


def alike(argument, mine, theirs, pe):
    """Of a PE, where another one passes something else."""
    call = r"\w+ \(called at [^)]+\)"
    name = re.escape(argument)
    return rf"{name} is {mine} in {call}, but {theirs} on PE {pe} in {call}: right would be the same on all"


def is_said(message, line):
    """Whether the line is the message and the place of the call; or the message alone, when it has places in it."""
    return re.fullmatch(message if "called at" in message else f"(?:{message}){PLACE}", line)


def pytest_collection_modifyitems(items):
    """HEDDLE_TEST_SAMPLE=N: of the many functions that a test is for, one in N; all in make test-rest."""
    one_in, seen = int(os.environ.get("HEDDLE_TEST_SAMPLE", "1")), {}
    for item in items:
        seen[item.originalname] = seen.get(item.originalname, -1) + 1
        item.is_in_sample = seen[item.originalname] % one_in == 0
    items[:] = [item for item in items if item.is_in_sample]


both_runs = pytest.mark.parametrize("check", [False, True], ids=["plain", "checked"])

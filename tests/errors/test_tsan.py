"""Programs under ThreadSanitizer on the library as it is installed, which is not: it is silent where threads order
their accesses by the library, and reports what they do not order, in the program's lines."""

import os
import pathlib
import subprocess

import pytest
from conftest import BUILD, OSHRUN, SANITIZER, execute

SOURCE = pathlib.Path(__file__).with_name("tsan.c")
HAS_NETWORK = (BUILD / "lib" / "libheddle_ucx.so").exists()
pytestmark = pytest.mark.skipif(bool(SANITIZER), reason="the library is to be one without a sanitizer")


def can_run(compiler, folder):
    """Whether there is this compiler, its runtime, and a kernel on which it starts."""
    (folder / "empty.c").write_text("int main(void) { return 0; }\n")
    try:
        subprocess.run([compiler, "-fsanitize=thread", folder / "empty.c", "-o", folder / "empty"], check=True,
                       capture_output=True, timeout=60)
        return subprocess.run([folder / "empty"], capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.CalledProcessError):
        return False


@pytest.fixture(scope="module", params=["gcc -O0", "gcc -O2", "clang-19 -O0", "clang-19 -O2"])
def program(request, tmp_path_factory):
    compiler, level = request.param.split()
    folder = tmp_path_factory.mktemp("tsan")
    if not can_run(compiler, folder):
        pytest.skip(f"{compiler} has no ThreadSanitizer here")
    built = folder / "tsan"
    subprocess.run([BUILD / "bin" / "oshcc", "-g", level, "-fsanitize=thread", "-pthread", SOURCE, "-o", built],
                   check=True, timeout=120, env={**os.environ, "HEDDLE_CC": compiler})
    return built


def run(program, *scenarios, pes=2, **environment):
    return execute([OSHRUN, "-n", pes, program, *scenarios], HEDDLE_ASYNC_COPY="always", HEDDLE_PROGRESS="thread",
                   HEDDLE_NET_TRANSPORTS="tcp", UCX_LOG_LEVEL="fatal", **environment)


def test_what_is_ordered_is_silent(program):
    run(program).is_fine(2)
    run(program, pes=1).is_fine(1)
    run(program, HEDDLE_CHECK="1").is_fine(2)


@pytest.mark.skipif(not HAS_NETWORK, reason="no plugin for UCX")
def test_and_over_a_network(program):
    run(program, HEDDLE_TEST_PES_PER_NODE="1").is_fine(2)


@pytest.mark.parametrize("scenario,lines", [("race", ["increment", "increment"]),
                                            ("race_with_a_put", ["put", "read_unordered"])])
def test_races_are_reported(program, scenario, lines):
    """Not hidden by what the library says of order."""
    result = run(program, scenario, pes=1)
    assert "WARNING: ThreadSanitizer: data race" in result.err and result.status != 0, result
    for function in lines if "symbolizer!" not in result.err else []:  # clang needs llvm-symbolizer for the names
        assert f" {function} " in result.err, result

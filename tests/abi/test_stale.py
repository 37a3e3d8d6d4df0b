"""Constants of the ABI that compilers keep across shmem_init: stale.c by both compilers, at every level of
optimization, with addresses that the linker fixed and without (docs/decisions/0006)."""

import os
import pathlib
import shutil
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["HEDDLE_BUILD"])
SOURCE = pathlib.Path(__file__).resolve().parent / "stale.c"
TIMEOUT_S = 120  # a hang; each program ends within a second
PES = 3


@pytest.mark.parametrize("kind", [["-fno-pie", "-no-pie"], ["-fPIE", "-pie"]], ids=["no-pie", "pie"])
@pytest.mark.parametrize("level", ["-O0", "-O2", "-O3"])
@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
def test_stale_words(tmp_path, compiler, level, kind):
    if not shutil.which(compiler):
        pytest.skip(f"there is no {compiler}")
    program = tmp_path / "stale"
    subprocess.run([BUILD / "bin" / "oshcc", "-std=c11", level, *kind, SOURCE, "-o", program], check=True,
                   env={**os.environ, "HEDDLE_CC": compiler})
    for arguments in ([], ["1"], ["1", "2"]):
        result = subprocess.run([BUILD / "bin" / "oshrun", "-n", str(PES), program, *arguments], check=False, text=True,
                                stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S)
        assert (result.returncode, result.stdout, result.stderr) == (0, "right\n" * PES, ""), arguments

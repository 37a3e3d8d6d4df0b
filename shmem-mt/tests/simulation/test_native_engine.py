"""The simulator's program: where it is kept, and that it computes the same bits whatever the processor can do."""

import os
import pathlib
import platform
import subprocess

import pytest
from shmem_mt.errors import UserError
from shmem_mt.simulation import native_engine, network_model
from shmem_mt.simulation.network_model import Traffic

CPU = pathlib.Path("/proc/cpuinfo")


def test_the_program_is_kept_in_the_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = native_engine.program()
    assert os.path.dirname(made) == str(tmp_path / "cache" / "shmem-mt")
    compiled = os.stat(made).st_mtime_ns
    assert native_engine.program() == made and os.stat(made).st_mtime_ns == compiled
    monkeypatch.setattr(native_engine, "FLAGS", (*native_engine.FLAGS, "-g"))
    assert native_engine.program() != made  # other flags may give other bits


def test_without_a_folder_the_error_names_both(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(native_engine.tempfile, "gettempdir", lambda: str(tmp_path / "file"))
    with pytest.raises(UserError, match="file/shmem-mt nor the temporary folder"):
        native_engine.program()


def test_fused_instructions_change_no_bit(monkeypatch, tmp_path):
    """Programs for this processor with and without its fused multiply-add say the same."""
    if platform.machine() not in ("x86_64", "AMD64") or " fma " not in CPU.read_text("utf-8"):
        pytest.skip("this processor has no -mfma")
    model = network_model.load("gemini")
    traffic = Traffic(200, 4, 4000, "relaxed", 8, "random", 1, 40)
    answers, flags_of_all = [], native_engine.FLAGS
    for flags in (("-mno-fma",), ("-mfma",)):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / flags[0]))
        monkeypatch.setattr(native_engine, "FLAGS", (*flags_of_all, *flags))
        listing = subprocess.run(["objdump", "-d", native_engine.program()], capture_output=True, text=True)
        assert listing.stdout and listing.stdout.count("vfmadd") == 0
        with native_engine.Engine() as engine:
            answer = engine.simulate(model, traffic)
        answers.append({name: answer[name] for name in ("rate", "latency_mean_s", "simulated_s", "overtaken_share")})
    assert answers[0] == answers[1]

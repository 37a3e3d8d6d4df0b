"""Facts about the machine, and what they warn of."""

import json
import os
import resource
import subprocess
import sys
from types import SimpleNamespace

import pytest
from shmem_mt import sources
from shmem_mt.targets import machine


def test_warnings_name_what_makes_figures_doubtful():
    assert not machine.warnings({"cores": 2, "load_at_start": 0.1, "governor": "performance", "steal_share": 0.0})
    told = machine.warnings(
        {"cores": 2, "load_at_start": 1.4, "others_share": 0.3, "governor": "powersave", "steal_share": 0.1}
        | {"cpu_quota": 1.5}
    )
    expected = ("a load of 1.4 on 2 cores", "other work took 30 %", "powersave", "10.0 %", "1.5 cores")
    for words, text in zip(expected, told, strict=True):
        assert words in text


def test_own_work_is_told_from_that_of_others(monkeypatch):
    """In 10 s of two CPUs: 6 s nothing, 2 s stolen, 12 s of work, 9 s of it own, most by children."""
    ticks = os.sysconf("SC_CLK_TCK")
    times = iter([(0, 0, 0, 0, 0, 0, 0, 0), (7, 1, 3, 4, 2, 0, 1, 2)])  # user nice system idle iowait irq softirq steal
    used = iter([0.5, 3.0, 1.5, 11.0])
    monkeypatch.setattr(machine, "_read", lambda path: "cpu  " + " ".join(str(ticks * t) for t in next(times)) + "\n")
    monkeypatch.setattr(resource, "getrusage", lambda who: SimpleNamespace(ru_utime=next(used), ru_stime=0.0))
    assert machine.since(machine.counters()) == {"steal_share": 0.1, "others_share": 0.15}


def test_own_children_are_no_other_work():
    before = machine.counters()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.5: pass"], check=True)
    assert machine.counters()[3] - before[3] > 0.45


@pytest.mark.parametrize("text,seconds", [("5.7e-08", 5.7e-8), ("", None), ("no number", None)])
def test_the_hand_over_is_what_the_program_prints(tmp_path, text, seconds):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho {text}\n")
    program.chmod(0o755)
    assert machine.hand_over_s(str(program)) == seconds
    assert machine.hand_over_s(str(tmp_path / "none")) is None


def test_the_program_measures_a_hand_over(tmp_path):
    """Half a second at most, on any number of CPUs, and no less than a load from a neighbour's cache takes."""
    program = str(tmp_path / "hand_over")
    subprocess.run(["c++", "-std=c++17", "-O2", "-I", sources.root(), sources.probe("hand_over"), "-o", program,
                    "-pthread"], check=True)
    found = machine.hand_over_s(program)
    assert found is None or 5e-9 < found < 0.2
    one_cpu = subprocess.run(["taskset", "-c", str(min(os.sched_getaffinity(0))), program], capture_output=True)
    assert (one_cpu.returncode, one_cpu.stdout) == (0, b"")


def test_facts_are_json():
    facts = {**machine.facts(), **machine.since(machine.counters())}
    assert json.loads(json.dumps(facts)) == facts
    for name in ("governor", "huge_pages", "numa_nodes", "cpu_quota", "mitigations", "steal_share", "others_share"):
        assert name in facts


def test_cores_are_those_that_may_be_used(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5, 7})
    assert machine.facts()["cores"] == 3

"""MiniMD: the atoms have the same bits on any number of PEs and threads and in a serial run, however small the box, and
a wrong answer is seen as one."""

import json
import os
import subprocess

import pytest
from conftest import app_verdicts, compiled_without, make_point, run_points
from shmem_mt.catalogue import catalogue
from shmem_mt.runner.points import describe
from shmem_mt.targets import fabrics

FORMS = catalogue.select(["minimd"])[0].ops
SHORT = ("--samples", "1", "--sample-ms", "0.1", "--point-ms", "1")


def lattice_potential():
    """Of an atom on the lattice: the shells of neighbours around it, added up."""
    half = (4 / 0.8442) ** (1 / 3) / 2
    reach = range(-4, 5)
    squares = [half**2 * (x * x + y * y + z * z) for x in reach for y in reach for z in reach if (x + y + z) % 2 == 0]
    return sum(2 * (r2**-6 - r2**-3) for r2 in squares if 0 < r2 < 2.5**2)


def check(verdict, edge, steps):
    assert verdict["verdict"] == "pass", verdict
    assert (verdict["edge"], verdict["steps"], verdict["atoms"]) == (edge, steps, 4 * edge**3)
    assert verdict["same_bits"] is True and verdict["deviation"] < 1e-11 and verdict["drift"] < 2e-3
    assert verdict["first_potential"] == pytest.approx(lattice_potential(), rel=1e-8)


def test_neither_pes_nor_threads_nor_forms_change_a_bit(implementation):
    states = set()
    for pes, threads in ((1, 1), (1, 3), (2, 1), (2, 3), (3, 2), (4, 1), (6, 2), (8, 1)):
        found = app_verdicts(implementation, "minimd", pes, threads)
        assert set(found) == set(FORMS)
        for verdict in found.values():
            check(verdict, 5, 100)
            states.add((verdict["state"], verdict["temperature"], verdict["pressure"], verdict["energy"]))
    assert len(states) == 1


@pytest.mark.parametrize("pes,threads,edge", [(1, 2, 1), (6, 1, 1), (16, 1, 1), (5, 2, 2), (7, 1, 3), (4, 2, 4)])
def test_parts_may_be_thinner_than_the_cutoff(implementation, pes, threads, edge):
    """Down to 4 atoms whose own images are neighbours, and 16 PEs for them: ghosts come from several PEs away. 1,000
    steps, in which bits that differ would grow apart."""
    for verdict in app_verdicts(implementation, "minimd", pes, threads, "--size", str(edge)).values():
        check(verdict, edge, 1000)


def test_a_thousand_steps(implementation):
    (verdict,) = app_verdicts(implementation, "minimd", 2, 2, "--size", "8", "--form", "private").values()
    check(verdict, 8, 1000)
    assert 0.6 < verdict["temperature"] < 0.8 and 0 < verdict["pressure"] < 1.5


def test_old_libraries_lead_to_the_same_bits(implementation, tmp_path):
    """Active sets, and put, fence and put instead of put with signal."""
    features = ("SHMEM_MT_HAVE_TEAM_COLLECTIVES", "SHMEM_MT_HAVE_PUT_SIGNAL")
    old = compiled_without(implementation, tmp_path, "minimd", *features)
    states = [
        verdict["state"]
        for which in (implementation, old)
        for verdict in app_verdicts(which, "minimd", 3, 2, "--form", "default,auto").values()
    ]
    assert len(states) == 4 and len(set(states)) == 1


def test_a_network_changes_no_bit(implementation):
    if implementation.unable(fabrics.TCP):
        pytest.skip(implementation.unable(fabrics.TCP))
    arguments = (*SHORT, "--threads", "2")
    command = implementation.launch_command("minimd", 3, 2, arguments, fabrics.TCP)
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    verdicts = [json.loads(line) for line in done.stdout.splitlines() if '"event":"verdict"' in line]
    assert {verdict["form"] for verdict in verdicts} == set(FORMS), done.stderr
    for verdict in verdicts:
        check(verdict, 5, 100)


def test_forms_missing_are_skipped_by_name(implementation, tmp_path):
    without = compiled_without(implementation, tmp_path, "minimd", "SHMEM_MT_HAVE_CTX")
    points, skipped = run_points(without, tmp_path, "minimd", 2, 2, "--point-ms", "1")
    assert {p["params"]["op"] for p in points} == {"default", "auto"} and skipped == {"private"}


def test_points_add_up(implementation, tmp_path):
    points, _ = run_points(implementation, tmp_path, "minimd", 2, 2, "--samples", "3", "--point-ms", "1")
    by_name = {(p["params"]["op"], p["metric"], p["params"]["part"], p["unit"]): p for p in points}
    assert len(by_name) == len(points)
    for form in FORMS:
        rate = by_name[form, "rate", "total", "atom-steps/s"]
        names = ("total", "compute", "force", "neighbour", "exchange", "reduce")
        parts = [by_name[form, "time", name, "s"] for name in names]
        share = by_name[form, "communication", "communication", "%"]
        for each in (rate, share, *parts):
            params = each["params"]
            assert each["valid"] is True and (params["edge"], params["steps"], params["pes"]) == (5, 100, 2)
        for r, percent, total, compute, *phases in zip(*(p["samples"] for p in (rate, share, *parts))):
            assert min(phases) > 0 and compute == pytest.approx(total - sum(phases), rel=1e-4, abs=1e-9)
            assert r == pytest.approx(500 * 100 / total, rel=1e-6)
            assert percent == pytest.approx(100 * sum(phases[2:]) / total, rel=1e-6)
        # MiniMD's clock starts behind the first forces: a hundredth and a half of a run here, with the first lists.
        merit = by_name[form, "figure_of_merit", "performance", "atom-steps/s"]
        assert merit["params"]["timed"] == "all steps behind the first forces"
        assert all(r < m < 2 * r for r, m in zip(rate["samples"], merit["samples"]))
        # 54 neighbours an atom on the lattice, about as many in the liquid, 101 times for 500 atoms.
        pulls = by_name[form, "figure_of_merit", "pair updates", "pairs/s"]["samples"]
        forces = by_name[form, "time", "force", "s"]["samples"]
        assert [53 < p * f / (101 * 500) < 57 for p, f in zip(pulls, forces)] == [True] * len(forces)


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["--size", "257"], "--size 257: a box has at most 256 unit cells along an edge"),
        (["--size", "huge"], "--size: 'huge' is not a number between 1 and"),
        (["--size", "0"], "--size: '0' is not a number between 1 and"),
        (["--form", "odd"], "unknown operation odd; there are default, private, auto"),
    ],
)
def test_bad_options_end_with_status_2(implementation, arguments, words):
    done = subprocess.run([implementation.binaries["minimd"], *arguments], capture_output=True, text=True, timeout=600)
    assert done.returncode == 2
    assert words in done.stderr


def test_what_does_not_fit_into_the_machine_is_refused(implementation):
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > 140 << 30:
        pytest.skip("this machine has room for the largest box")
    command = implementation.launch_command("minimd", 2, 1, ["--size", "256"])
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert "--size 256 needs" in done.stderr and "GiB of memory here, and the machine has" in done.stderr


def test_describe_names_the_edge():
    point = make_point(benchmark="minimd", op="auto", edge=16, fabric="tcp", part="force")
    assert describe("minimd", point["params"]).startswith("minimd, auto, edge 16, ")

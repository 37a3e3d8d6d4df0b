"""Mandelbrot: every form computes every row once and finds the same picture, and a wrong one is seen as such."""

import contextlib
import json
import subprocess

import pytest
from conftest import app_events, app_verdicts, compiled_without, make_point, read_results, run_points
from shmem_mt.catalogue import catalogue
from shmem_mt.report import app_images
from shmem_mt.runner import images
from shmem_mt.runner.points import describe
from shmem_mt.runner.process import run_program
from shmem_mt.targets import fabrics, hosts

FORMS = catalogue.select(["mandelbrot"])[0].ops
HASH_OF_TINY = "030b2793207d"


def verdicts(implementation, pes, threads, *arguments):
    return app_verdicts(implementation, "mandelbrot", pes, threads, *arguments)


@pytest.mark.parametrize("pes,threads", [(1, 1), (1, 3), (2, 1), (2, 2), (3, 2), (4, 1), (6, 3)])
def test_every_form_finds_the_picture(implementation, pes, threads):
    found = verdicts(implementation, pes, threads)
    assert set(found) == set(FORMS)
    for form, verdict in found.items():
        assert verdict["verdict"] == "pass", form
        assert verdict["hash"] == verdict["known_hash"] == HASH_OF_TINY
        assert verdict["pieces_computed"] == 192 and 0 <= verdict["pieces_stolen"] < 192


@pytest.mark.parametrize(
    "pes,edge,pieces", [(1, 1, 1), (3, 1, 1), (6, 5, 5), (2, 17, 17), (4, 131, 131), (3, 1601, 801)]
)
def test_odd_edges(implementation, pes, edge, pieces):
    found = verdicts(implementation, pes, 2, "--size", edge)
    assert {v["verdict"] for v in found.values()} == {"pass"}
    assert {(v["pieces_computed"], v["known_hash"]) for v in found.values()} == {(pieces, "none")}
    assert len({v["hash"] for v in found.values()}) == 1


def test_neither_pes_nor_threads_change_the_picture(implementation):
    hashes = {
        verdict["hash"]
        for pes, threads in ((1, 2), (3, 1), (4, 2))
        for verdict in verdicts(implementation, pes, threads, "--size", "77").values()
    }
    assert len(hashes) == 1


@pytest.mark.parametrize("fabric", [fabrics.TCP, fabrics.NAMESPACES])
def test_over_a_network(implementation, tmp_path, fabric):
    """With 3 PEs on two hosts some neighbours are near and some are not."""
    why = implementation.unable(fabric) or fabric.missing()
    if why:
        pytest.skip(why)
    points = []
    arguments = ["--samples", "1", "--sample-ms", "0.1", "--point-ms", "1", "--threads", "2"]
    with hosts.made(2) if fabric.hosts > 1 else contextlib.nullcontext() as made:
        command = implementation.launch_command("mandelbrot", 3, 2, arguments, fabric, hosts=made)
        outcome = run_program(command, str(tmp_path / "log.txt"), 120, points.append, implementation.exit_status_counts)
    assert outcome.ok, outcome.problem
    assert {(p["params"]["op"], p["valid"]) for p in points} == {(form, True) for form in FORMS}


def test_points_add_up(implementation, tmp_path):
    points, _ = run_points(implementation, tmp_path, "mandelbrot", 2, 2, "--samples", "3")
    by_name = {(p["params"]["op"], p["metric"], p["params"]["part"], p["unit"]): p for p in points}
    assert len(by_name) == len(points)
    for form in FORMS:
        rate = by_name[form, "rate", "total", "pixels/s"]
        parts = [by_name[form, "time", part, "s"] for part in ("total", "compute", "steal", "put")]
        for each in (rate, *parts):
            assert each["valid"] is True and each["params"]["edge"] == 192 and each["params"]["threads"] == 2
        for r, total, compute, steal, put in zip(*(p["samples"] for p in (rate, *parts))):
            assert r == pytest.approx(192 * 192 / total, rel=1e-6)
            assert steal > 0 and put > 0 and compute == pytest.approx(total - steal - put, rel=1e-6)


def read_picture(path):
    """(width, height, pixels as triples) of a binary PPM."""
    kind, size, most, data = path.read_bytes().split(b"\n", 3)
    assert (kind, most) == (b"P6", b"255")
    width, height = map(int, size.split())
    assert len(data) == 3 * width * height
    return width, height, [tuple(data[i : i + 3]) for i in range(0, len(data), 3)]


@pytest.mark.parametrize("edge,side", [(120, 120), (850, 800)])
def test_the_picture_is_written(implementation, tmp_path, edge, side):
    path = tmp_path / "picture.ppm"
    app_events(implementation, "mandelbrot", 2, 2, "--size", edge, "--form", "pipelined", "--image", path)
    width, height, pixels = read_picture(path)
    assert (width, height) == (side, side)
    assert len(set(pixels)) > 20  # PEs, threads, steps
    middle, corner = pixels[side * (side // 2) + side // 2], pixels[0]
    assert sum(middle) < sum(corner)  # the set is darkest


def test_a_picture_that_cannot_be_written_ends_the_program(implementation, tmp_path):
    arguments = ["--image", str(tmp_path / "missing" / "picture.ppm")]
    command = implementation.launch_command("mandelbrot", 2, 1, arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode != 0 and "cannot be written: No such file or directory" in done.stderr


def test_forms_missing_are_skipped_by_name(implementation, tmp_path):
    without = compiled_without(implementation, tmp_path, "mandelbrot", "SHMEM_MT_HAVE_CTX")
    points, skipped = run_points(without, tmp_path, "mandelbrot", 2, 1)
    assert {p["params"]["op"] for p in points} == {"default", "default-pipelined"}
    assert skipped == {"private", "pipelined"}


def test_blocking_fetch_adds_lead_to_the_same_picture(implementation, tmp_path):
    without = compiled_without(implementation, tmp_path, "mandelbrot", "SHMEM_MT_HAVE_FETCH_NBI")
    (verdict,) = verdicts(without, 3, 2, "--form", "pipelined").values()
    assert verdict["verdict"] == "pass" and verdict["hash"] == HASH_OF_TINY


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["--size", "32769"], "--size 32769: the edge of the picture is 1 to 32768 pixels"),
        (["--size", "huge"], "--size: 'huge' is not a number between 1 and"),
        (["--form", "odd"], "unknown operation odd; there are default, private, default-pipelined, pipelined"),
    ],
)
def test_bad_options_end_with_status_2(implementation, arguments, words):
    done = subprocess.run([implementation.binaries["mandelbrot"], *arguments], capture_output=True, text=True)
    assert done.returncode == 2
    assert words in done.stderr


def test_the_report_shows_the_picture(shmem_mt, wrappers, tmp_path):
    run = tmp_path / "run"
    implementation = ["--oshcc", wrappers[0], "--oshrun", wrappers[1], "--label", "Odd one"]
    chosen = ["--only", "mandelbrot", "--pes", "2", "--threads", "2", "--rounds", "1"]
    status, _, stderr = shmem_mt("run", *implementation, *chosen, "--out", run)
    assert status == 0, stderr
    results = read_results(run)
    assert {r["metric"] for r in results} == {"rate", "time", "communication", "imbalance", "memory"}
    assert all(r["valid"] for r in results)
    assert shmem_mt("report", run)[0] == 0
    page = (run / "report.html").read_text(encoding="utf-8")
    assert page.count('<img src="data:image/png;base64,') == 1
    assert "Odd one, 2 PEs x 2 threads" in page
    (png,) = (run / "report-pictures").glob("mandelbrot-picture*.png")
    assert png.read_bytes().startswith(b"\x89PNG")


def test_pictures_of_starts_that_were_cut_off_are_left_out(tmp_path):
    folder = tmp_path / images.FOLDER
    folder.mkdir()
    told = {"program": "mandelbrot", "label": "A", "pes": 2, "threads": 1, "fabric": "tcp", "link_rate": "100mbit"}
    whole = b"P6\n2 1\n255\n" + bytes([255, 0, 0, 10, 10, 10])  # 10 is a newline
    for name, ppm in (("whole", whole), ("cut", whole[:-1]), ("empty", b""), ("other", b"P5\n2 1\n255\nab")):
        (folder / f"{name}.json").write_text(json.dumps(told))
        (folder / f"{name}.ppm").write_bytes(ppm)
    (folder / "alone.json").write_text(json.dumps(told))
    (picture,) = app_images.of(tmp_path)
    assert picture.slug == "mandelbrot-picture-whole" and picture.png.startswith(b"\x89PNG")
    assert picture.caption == "A, 2 PEs, tcp, links of 100mbit"
    assert app_images.of(tmp_path / "nothing") == []


def test_describe_names_the_edge():
    point = make_point(benchmark="mandelbrot", op="pipelined", edge=192, fabric="tcp", part="put")
    assert describe("mandelbrot", point["params"]).startswith("mandelbrot, pipelined, edge 192, ")

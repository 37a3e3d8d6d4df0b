"""--scale weak: a problem that grows with the threads of all PEs, so that each has as much to do; its answer is
verified as any other. And the memory that a problem takes, beside the caches."""

import subprocess

import pytest
from conftest import app_events, make_point, read_results
from shmem_mt.runner.points import describe, problem_of_app

# (form, --size, what the verdict or a point says of the whole problem, with 1 worker and with 2 x 2)
GROWN = {
    "hpccg": ("blocking", "6", "rows", 6**3, 4 * 6**3),
    "minife": ("blocking", "6", "edge", 6, 10),  # 6 times the cube root of 4
    "minimd": ("default", "3", "edge", 3, 5),
    "mandelbrot": ("default", "96", "edge", 96, 192),
    "gups": ("atomic", "2048", "words", 2048, 4 * 2048),
    "halo": ("jacobi7", "6", "edge", 6, 10),
}


def events_of(implementation, app, pes, threads, *more):
    form, size, *_ = GROWN[app]
    return app_events(implementation, app, pes, threads, "--form", form, "--size", size, *more)


@pytest.mark.parametrize("app", GROWN)
def test_it_grows_with_pes_and_threads(implementation, app):
    _, size, name, *whole = GROWN[app]
    for (pes, threads), right in zip(((1, 1), (2, 2)), whole):
        events = events_of(implementation, app, pes, threads, "--scale", "weak")
        for verdict in (event for event in events if event["event"] == "verdict"):
            assert verdict["verdict"] == "pass" and verdict[name] == right
        for params in (event["params"] for event in events if event["event"] == "point"):
            assert params["scale"] == "weak" and params["size"] == size


def test_strong_scaling_says_nothing(implementation):
    events = events_of(implementation, "hpccg", 2, 1, "--scale", "strong")
    assert all("scale" not in event["params"] for event in events if event["event"] == "point")
    assert {e["rows"] for e in events if e["event"] == "verdict"} == {4 * 6**3}


@pytest.mark.parametrize("app", ["hpccg", "minife"])
def test_rates_of_what_grows_count_rows(implementation, app):
    """An iteration over four times the rows is four times the work: so a rate a core can be compared."""
    events = events_of(implementation, app, 2, 2, "--scale", "weak")
    points = {(e["metric"], e["params"]["part"]): e for e in events if e["event"] == "point"}
    (verdict,) = [event for event in events if event["event"] == "verdict"]
    rate, time = points["rate", "total"], points["time", "total"]
    unit, rows, iterations = {
        "hpccg": ("row-iterations/s", verdict.get("rows"), 50),
        "minife": ("node-iterations/s", verdict.get("nodes"), 4 * 10),
    }[app]
    assert rate["unit"] == unit
    assert rate["samples"][0] * time["samples"][0] == pytest.approx(rows * iterations, rel=1e-6)


@pytest.mark.parametrize("app", ["cg", "is"])
def test_classes_have_one_size(implementation, app):
    events = app_events(implementation, app, 2, 1, "--scale", "weak")
    assert [event["what"] for event in events if event["event"] == "skip"] == ["--scale weak"]
    assert not [event for event in events if event["event"] in ("point", "verdict")]


@pytest.mark.parametrize("app,size", [("hpccg", 800), ("minife", 1200), ("halo", 200)])
def test_what_grows_too_large_is_refused(implementation, app, size):
    form = GROWN[app][0]
    more = ["--form", form, "--scale", "weak", "--size", str(size), "--threads", "8"]
    done = subprocess.run(implementation.launch_command(app, 1, 8, more), capture_output=True, text=True, timeout=600)
    assert f"--scale weak: --size {size} for each of 8 threads" in done.stderr and "choose less" in done.stderr


def test_another_word_is_refused(implementation):
    command = [implementation.binaries["hpccg"], "--scale", "linear"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 2 and "unknown scale linear; there are strong, weak" in done.stderr


def test_points_say_how_the_problem_was_chosen():
    params = make_point(benchmark="hpccg", edge=12, fabric="tcp", part="total")["params"]
    params |= {"scale": "weak", "size": "small"}
    assert "weak scaling of size small" in describe("hpccg", params).split(", ")
    told = problem_of_app(params)
    assert "scale weak, size small" in told and "edge" not in told


@pytest.mark.parametrize("app,fits", [("hpccg", True), ("is", True), ("minimd", True), ("mandelbrot", None)])
def test_memory_stands_beside_the_caches(implementation, app, fits):
    """The smallest problems fit any cache, and processes are larger than what they compute with."""
    events = app_events(implementation, app, 2, 1, "--samples", 2)
    first, *others = [event for event in events if event["event"] == "verdict"]
    points = {e["params"]["part"]: e for e in events if e["event"] == "point" and e["metric"] == "memory"}
    assert first.get("in_caches") is fits and not any("job_bytes" in verdict for verdict in others)
    assert set(points) == ({"job", "working set"} if fits else {"job"})
    assert points["job"]["samples"] == [pytest.approx(first["job_bytes"])] and points["job"]["unit"] == "bytes"
    assert first["job_bytes"] > 1 << 20 and first["job_bytes"] > first["working_set_bytes"]
    if fits:
        assert points["working set"]["params"]["last_caches_bytes"] == first["last_caches_bytes"] > 1 << 17


@pytest.mark.long
def test_the_driver_asks_for_it(shmem_mt, wrappers, tmp_path):
    out = tmp_path / "run"
    named = ("--oshcc", wrappers[0], "--oshrun", wrappers[1], "--only", "hpccg", "--out", out)
    asked = ("--pes", "1,2", "--threads", "1,2", "--rounds", "1", "--size", "6", "--scale", "weak")
    status, stdout, stderr = shmem_mt("run", *named, *asked)
    assert status == 0, stderr
    results = read_results(out)
    assert {r["params"]["scale"] for r in results} == {"weak"} and "memory " in stdout
    assert shmem_mt("report", out)[0] == 0
    page = (out / "report.html").read_text(encoding="utf-8")
    assert '<section id="efficiency">' in page and "scale weak, size 6" in page and "memory of the job" in page

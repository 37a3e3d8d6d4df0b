"""HEDDLE_PROFILE and oshrun --profile: what is counted, the advice, the page, the file. The build is HEDDLE_BUILD."""

import collections
import json
import os
import pathlib
import re
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["HEDDLE_BUILD"])
LIMIT_S = 300
HAS_NETWORK = (BUILD / "lib/libheddle_ucx.so").exists()
needs_network = pytest.mark.skipif(not HAS_NETWORK, reason="no libheddle_ucx.so")


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    for source in HERE.glob("*.c"):
        for name, flags in ((source.stem, ["-O2"]), (f"{source.stem}_slow", ["-O0"])):
            subprocess.run([BUILD / "bin/oshcc", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", *flags, source, "-o",
                            folder / name], check=True, timeout=LIMIT_S)
    return folder


@pytest.fixture
def run(programs, tmp_path):
    """Runs a program on n PEs; returns (the profile, stderr)."""

    def do(name, n, *arguments, options=("--profile",), file="heddle-profile.json", status=0, **settings):
        done = subprocess.run([BUILD / "bin/oshrun", "-n", str(n), *options, programs / name, *map(str, arguments)],
                              cwd=tmp_path, env={**os.environ, **settings}, capture_output=True, text=True,
                              timeout=LIMIT_S)
        assert done.returncode == status, done.stderr
        path = tmp_path / file
        return (json.loads(path.read_text()) if path.exists() else None), done.stderr

    return do


def line_of(source, text, nth=0):
    lines = (HERE / source).read_text().splitlines()
    return f"{source}:{[i for i, line in enumerate(lines, 1) if text in line][nth]}"


def totals(profile):
    """{(kind, function): (calls, bytes)} of all PEs and contexts, of the program's own calls."""
    found = collections.Counter()
    for site in profile["sites"]:
        key = site["kind"], site["function"]
        found[key, "calls"] += int(site["calls"]["sum"])
        found[key, "bytes"] += site["bytes"]
    return {key: (found[key, "calls"], found[key, "bytes"]) for key, _ in found}


def expected(n, threads):
    each = {
        ("put", "shmem_ctx_long_p"): (37 * threads, 8 * 37 * threads),
        ("put", "shmem_putmem"): (11, 11 * 1001),
        ("get", "shmem_getmem"): (5, 5 * 100001),
        ("atomic", "shmem_long_atomic_inc"): (13, 0),
        ("get", "shmem_long_g"): (17, 17 * 8),
        ("put", "shmem_long_put_nbi"): (19, 19 * 8),
        ("put", "shmemx_putmem_nbe"): (23, 23 * 64),
        ("put_signal", "shmem_putmem_signal"): (1, 33),
        ("fence", "shmem_fence"): (19, 0),
        ("quiet", "shmem_quiet"): (1, 0),
        ("quiet", "shmem_ctx_quiet"): (threads, 0),
        ("collective", "shmem_barrier_all"): (3, 0),
    }
    return {key: (n * calls, n * count) for key, (calls, count) in each.items()}


NODES = [0] + [pytest.param(pes, marks=needs_network) for pes in (1, 2)]


@pytest.mark.parametrize("per_node", NODES)
@pytest.mark.parametrize("program,threads", [("counted", 1), ("counted", 3), ("counted_slow", 2)])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8])
def test_calls_are_counted(run, program, threads, n, per_node):
    settings = {"HEDDLE_TEST_PES_PER_NODE": str(per_node), "UCX_TLS": "tcp"} if per_node else {}
    profile, err = run(program, n, threads, **settings)
    found = totals(profile)
    for key, wanted in expected(n, threads).items():
        assert found.get(key) == wanted, (key, found)
    assert profile["pes"] == n and profile["lost_calls"] == 0
    assert 1 <= profile["threads"]["most"] <= threads + 1  # that call at the same time
    assert profile["heap_bytes"]["least"] >= 1 << 20
    groups = range(n)
    sent = profile["pairs"]["operations"]
    to_right = 37 * threads + 11 + 5 + 17 + 19 + 23 + 1
    for me in groups:
        for other in groups:
            wanted = to_right * (other == (me + 1) % n) + 13 * (other == 0)
            assert sent[me][other] == wanted, sent
    assert "counted" in err and "Traceback" not in err


def test_places_and_sizes(run):
    profile, err = run("counted", 3, 2)
    sites = {site["function"]: site for site in profile["sites"]}
    gets = sites["shmem_getmem"]
    assert gets["place"] == line_of("counted.c", "shmem_getmem(")
    assert gets["sizes"] == [0, 0, 0, 0, 0, 15, 0, 0] and gets["paths"] == [15, 0, 0]
    assert sites["shmem_putmem"]["sizes"] == [0, 0, 0, 33, 0, 0, 0, 0]
    assert (gets["pes"], gets["partners"], gets["threads"]) == (3, 3, 1)
    # Two threads, each with a context of its own: two sites.
    mine = [site for site in profile["sites"] if site["function"] == "shmem_ctx_long_p"]
    assert {site["context"] for site in mine} <= {1, 2} and sum(site["pes"] for site in mine) in (3, 4, 5, 6)
    fence = sites["shmem_fence"]
    assert (fence["operations"], fence["singles"]) == (3 * (19 + 11 + 5 + 13 + 17), 3 * 18)
    assert gets["seconds"]["sum"] > 0 and gets["longest_seconds"] <= gets["seconds"]["sum"]
    for site in profile["sites"]:
        assert site["seconds"]["least"] <= site["seconds"]["most"] <= site["seconds"]["sum"] * 1.0001
    assert all(len(line) <= 100 for line in err.splitlines() if not line.startswith(("heddle [", "oshrun:"))), err


@needs_network
def test_paths_over_the_network(run):
    profile, _ = run("counted", 2, 1, HEDDLE_TEST_PES_PER_NODE="1", UCX_TLS="tcp")
    sites = {site["function"]: site for site in profile["sites"]}
    assert sites["shmem_putmem"]["paths"] == [0, 22, 0]
    assert sites["shmem_getmem"]["paths"] == [0, 0, 10]


OVER_NETWORK = {"single-quiets", "small-gets", "fetches", "shared-context", "blocking-transfers", "no-overlap"}
DISEASES = ["single-quiets", "late-pe", "small-gets", "small-puts", "fetches", "shared-context",
            "blocking-transfers", "no-overlap", "locks", "small-collectives", "barriers-of-neighbors", "hot-target"]


def job_of(disease):
    """The number of PEs and the settings of its job."""
    settings = {"HEDDLE_TEST_PES_PER_NODE": "1", "UCX_TLS": "tcp"} if disease in OVER_NETWORK else {}
    return {"barriers-of-neighbors": 7, "hot-target": 4, "late-pe": 3}.get(disease, 2), settings


def advice_on(run, disease, state):
    n, settings = job_of(disease)
    profile, err = run("sick", n, disease, state, **settings)
    found = [one for one in profile["advice"] if one["rule"] == disease]
    return profile, found, err


@pytest.mark.parametrize(
    "disease", [pytest.param(name, marks=needs_network) if name in OVER_NETWORK else name for name in DISEASES])
def test_each_disease_is_named_with_its_line(run, disease):
    profile, found, err = advice_on(run, disease, "sick")
    assert found, (profile["advice"], err)
    line = line_of("sick.c", f"// {disease}")
    assert any(f"at {line}" in one["text"] for one in found), found
    assert all(one["gain_seconds"] > 0 for one in found)
    assert f"at {line}" in " ".join(err.partition("advice")[2].split()), err
    _, found, err = advice_on(run, disease, "cured")
    assert not found or disease == "late-pe", err  # a busy machine has late PEs of its own


def test_who_is_late_is_named(run):
    _, found, _ = advice_on(run, "late-pe", "sick")
    assert re.search(r"PE 2 only", found[0]["text"]), found
    assert 0.3 < found[0]["gain_seconds"] < 0.8, found  # 30 times 19 ms, for two of three PEs


def test_no_share_is_above_the_whole(run):
    """Times of few calls stand for many, but no thread has spent more than there was."""
    for settings in ({}, {"HEDDLE_TEST_PES_PER_NODE": "1", "UCX_TLS": "tcp"} if HAS_NETWORK else {}):
        for disease in ("small-gets", "single-quiets", "small-puts"):
            profile, err = run("sick", 2, disease, "sick", **settings)
            for site in profile["sites"]:
                assert site["seconds"]["most"] <= profile["wall_seconds"]["most"] * 1.001, site
            assert profile["library_seconds"]["most"] <= profile["wall_seconds"]["most"] * 1.001
            assert all(float(share) <= 100.1 for share in re.findall(r" (\d+\.\d)%", err)), err


def test_a_context_at_the_place_of_another(run):
    """A thread's run of puts ends with the context, whoever destroys it: its handle may be another team's."""
    profile, err = run("reused", 3)
    assert profile["pes"] == 3, err


def test_ways_to_ask(run, tmp_path):
    assert run("counted", 2, options=())[0] is None
    assert run("counted", 2, options=(), HEDDLE_PROFILE="no")[0] is None
    for yes in ("1", "yes", "on"):
        profile, err = run("counted", 2, options=(), HEDDLE_PROFILE=yes)
        assert profile["pes"] == 2 and "all of it as JSON: heddle-profile.json" in err
        (tmp_path / "heddle-profile.json").unlink()
    assert run("counted", 2, options=("--profile=mine.json",), file="mine.json")[0]["pes"] == 2


def test_the_line_of_a_long_name_is_whole(run, programs):
    """The page has 100 columns: letters of the function give way, not the number of the line."""
    name = "a_solver_of_long_name"
    source = programs / f"{name}.c"
    source.write_text("#include <shmem.h>\nint main(void) {\n    static double from[2], to[2];\n    shmem_init();\n"
                      "    for (int i = 0; i < 500; ++i)\n"
                      "        shmem_double_sum_reduce(SHMEM_TEAM_WORLD, to, from, 2);\n"
                      "    shmem_finalize();\n    return 0;\n}\n")
    subprocess.run([BUILD / "bin/oshcc", "-g", "-O2", source, "-o", programs / name], check=True, timeout=LIMIT_S)
    _, err = run(name, 2)
    lines = err.splitlines()
    assert all(len(line) <= 100 for line in lines), lines
    assert any(re.search(rf" shm\w*\.\. at {name}\.c:6$", line) for line in lines), lines


def test_mistakes(run, tmp_path):
    _, err = run("counted", 2, options=("--profile=",), status=2)
    assert "--profile=: the name of a file is missing: right would be --profile=FILE, or --profile" in err
    _, err = run("counted", 2, options=("--profile=no/such/folder",))
    assert "HEDDLE_PROFILE: no/such/folder cannot be written: No such file or directory" in err
    assert "in the library" in err  # the page is there
    _, err = run("counted", 2, options=("--profile",), HEDDLE_RACES="1", status=1)
    assert "HEDDLE_PROFILE: HEDDLE_CHAOS or HEDDLE_RACES is set, too: right would be one of them in a run" in err


def test_a_checked_run_may_be_profiled(run):
    assert totals(run("counted", 2, HEDDLE_CHECK="1")[0])["put", "shmem_putmem"] == (22, 22 * 1001)

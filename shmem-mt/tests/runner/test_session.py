"""`shmem-mt run`: what it writes, resuming, several implementations, bad input, programs that fail."""

import json
import os
import re
import stat

import pytest
from conftest import make_point, read_results
from shmem_mt import sources
from shmem_mt.catalogue import plan
from shmem_mt.cli import build_parser
from shmem_mt.runner import process
from shmem_mt.runner.results import RunFolder
from shmem_mt.targets import build, openshmem


@pytest.fixture
def run(shmem_mt, wrappers, tmp_path):
    """Runs a few points quickly: run(*more arguments)."""

    def call(*more):
        return shmem_mt(
            "run",
            "--oshcc",
            wrappers[0],
            "--oshrun",
            wrappers[1],
            "--only",
            "bandwidth",
            "--sizes",
            "64,1024",
            "--threads",
            "1",
            "--rounds",
            "1",
            "--out",
            tmp_path / "run",
            *more,
        )

    return call


def script(tmp_path, name, text):
    path = tmp_path / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_results_have_all_keys_and_resume_measures_nothing_again(run, tmp_path):
    assert run()[0] == 0
    results = read_results(tmp_path / "run")
    for result in results:
        for key in ("benchmark", "params", "metric", "unit", "samples", "median", "interval", "valid", "label"):
            assert key in result
        for key in ("pes", "threads", "size_bytes", "sync", "context", "op", "placement", "oversubscribed"):
            assert key in result["params"]
        assert result["valid"] is True
        assert result["interval"][0] <= result["median"] <= result["interval"][1]
    assert {(r["params"]["op"], r["params"]["size_bytes"]) for r in results} == {
        (op, size) for op in ("put", "get", "memcpy") for size in (64, 1024)
    }
    machine = json.loads((tmp_path / "run" / "machine.json").read_text())
    assert machine["machine"]["cores"] >= 1 and machine["implementations"][0]["library"]
    jobs = (tmp_path / "run" / "jobs.jsonl").read_text()
    assert run()[0] == 0
    assert (tmp_path / "run" / "jobs.jsonl").read_text() == jobs
    assert read_results(tmp_path / "run") == results
    assert (tmp_path / "run" / "command.txt").read_text().count("shmem-mt run") == 2


@pytest.mark.parametrize(
    "changed,words",
    [
        ({"programs": "of yesterday"}, "programs: of yesterday and"),
        ({"machine": {"cpu": "another"}}, "cpu: another and"),
        ({"implementations": [{"label": "true", "version": "0.9"}]}, "version: 0.9 and"),
        ({}, None),
    ],
)
def test_results_of_something_else_are_not_gone_on_with(shmem_mt, tmp_path, changed, words):
    """Not even a line is added to the folder, none that a kill has cut off is dropped, and none is merged anew."""
    folder = RunFolder.open(str(tmp_path / "run"))
    folder.add_point({**make_point("true"), "round": 0})
    with open(folder.path("raw.jsonl"), "a", encoding="utf-8") as file:
        file.write('{"benchmark": "mess')
    (tmp_path / "run" / "results.jsonl").write_text("merged as an earlier version did\n")
    folder.write_json("machine.json", {"programs": sources.digest("programs", "apps"), **changed})
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").glob("*.json*")}
    pair = ["--oshcc", "true", "--oshrun", "true"]
    status, _, stderr = shmem_mt("run", *pair, "--only", "bandwidth", "--out", folder.directory, "--rounds", "1")
    if words is None:
        assert status == 1  # nothing is measured with true
    else:
        assert status == 2 and words in stderr and "use another --out" in stderr and stderr.count("\n") == 1
        assert {path.name: path.read_bytes() for path in (tmp_path / "run").glob("*.json*")} == before
        arguments = [*pair, "--only", "bandwidth", "--out", folder.directory, "--rounds", "1", "--set-aside"]
        status, stdout, _ = shmem_mt("run", *arguments)
        (kept,) = tmp_path.glob("run.*")
        assert status == 1 and str(kept) in stdout
        assert {path.name: path.read_bytes() for path in kept.glob("*.json*")} == before
        assert not (tmp_path / "run" / "raw.jsonl").exists()


@pytest.fixture
def imitation(tmp_path):
    """(the options that name it, its library, its calls) of an OpenSHMEM whose compiler copies the library in place of
    compiling, and whose launcher prints one point. The calls are the compiler's arguments, a line each."""
    library, calls = tmp_path / "library", tmp_path / "calls"
    library.write_text("of yesterday")
    calls.write_text("")
    copies = f'while [ $# -gt 0 ]; do [ "$1" = -o ] && exec cp {library} "$2"; shift; done\n'
    oshcc = script(tmp_path, "oshcc", f'echo "$@" >> {calls}\n{copies}')
    event = json.dumps({"event": "point", **make_point(benchmark="bandwidth", metric="bandwidth", unit="bytes/s")})
    done = json.dumps({"event": "done", "points": 1})
    oshrun = script(tmp_path, "oshrun", f"echo '{event}'\necho '{done}'\n")
    return ["--oshcc", oshcc, "--oshrun", oshrun, "--label", "A"], library, calls


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_rebuilt_library_is_noticed_before_anything_is_compiled(shmem_mt, imitation, tmp_path):
    """The folder that is set aside stays as it was, its programs and logs too."""
    pair, library, calls = imitation
    arguments = ["run", *pair, "--only", "bandwidth", "--rounds", "1", "--out", str(tmp_path / "run")]
    assert shmem_mt(*arguments)[0] == 0
    before = contents(tmp_path / "run")
    library.write_text("of today")
    calls.write_text("")
    status, _, stderr = shmem_mt(*arguments)
    assert status == 2 and "A, digest: " in stderr and contents(tmp_path / "run") == before
    assert shmem_mt(*arguments, "--set-aside")[0] == 0
    (kept,) = tmp_path.glob("run.*")
    assert contents(kept) == before
    assert (tmp_path / "run" / "build" / "A" / "bandwidth").read_text() == "of today"
    assert calls.read_text().count("bandwidth.cpp") == 1


def test_another_build_of_a_library_is_another_library(wrappers, tmp_path):
    """What its headers say counts."""
    header = tmp_path / "more.h"
    wrapper = script(tmp_path, "oshcc", f'exec {wrappers[0]} -include {header} "$@"\n')
    digests = []
    for text in ("", "", "#define SHMEMX_ANOTHER 1\n"):
        header.write_text(text)
        (found,) = openshmem.resolve([wrapper], [wrappers[1]], ["A"])
        digests.append(build.library_digest(found, str(tmp_path / "library")))
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.long
def test_more_rounds_add_samples(run, tmp_path):
    run()
    before = {json.dumps(r["params"]): len(r["samples"]) for r in read_results(tmp_path / "run")}
    assert run("--rounds", "2")[0] == 0
    for result in read_results(tmp_path / "run"):
        assert len(result["samples"]) > before[json.dumps(result["params"])]
        assert len(result["round_sizes"]) == 2


@pytest.mark.long
def test_two_implementations_are_interleaved(shmem_mt, wrappers, tmp_path):
    pair = ["--oshcc", wrappers[0], "--oshrun", wrappers[1]]
    status, _, _ = shmem_mt(
        "run",
        *pair,
        "--label",
        "A",
        *pair,
        "--label",
        "B",
        "--only",
        "bibandwidth",
        "--sizes",
        "64",
        "--threads",
        "1",
        "--rounds",
        "2",
        "--out",
        tmp_path / "run",
    )
    assert status == 0
    jobs = [json.loads(line)["key"] for line in (tmp_path / "run" / "jobs.jsonl").read_text().splitlines()]
    assert [json.loads(job)[0] for job in jobs] == ["A", "B", "B", "A"]


@pytest.mark.long
def test_sync_selects(shmem_mt, wrappers, tmp_path):
    status, _, _ = shmem_mt(
        "run",
        "--oshcc",
        wrappers[0],
        "--oshrun",
        wrappers[1],
        "--only",
        "bandwidth",
        "--sizes",
        "64",
        "--threads",
        "1",
        "--rounds",
        "1",
        "--sync",
        "blocking",
        "--out",
        tmp_path / "run",
    )
    assert status == 0
    assert {r["params"]["op"] for r in read_results(tmp_path / "run")} == {"get"}


@pytest.mark.long
def test_a_failing_program_is_named_with_its_last_words(shmem_mt, wrappers, tmp_path):
    broken = script(tmp_path, "broken-oshrun", "echo first >&2; echo it broke here >&2; exit 7\n")
    status, _, stderr = shmem_mt(
        "run",
        "--oshcc",
        wrappers[0],
        "--oshrun",
        broken,
        "--only",
        "bibandwidth",
        "--sizes",
        "64",
        "--threads",
        "1",
        "--rounds",
        "3",
        "--out",
        tmp_path / "run",
    )
    assert status == 1
    assert "bandwidth, 2 PEs x 1 threads ended early with exit status 7" in stderr
    assert stderr.count("it broke here") == 1
    assert "(2 times)" in stderr  # and not a third time


@pytest.mark.long
def test_one_bad_implementation_does_not_stop_the_other(shmem_mt, wrappers, tmp_path):
    broken = script(tmp_path, "broken-oshrun", "exit 3\n")
    status, _, _ = shmem_mt(
        "run",
        "--oshcc",
        wrappers[0],
        "--oshrun",
        broken,
        "--label",
        "bad",
        "--oshcc",
        wrappers[0],
        "--oshrun",
        wrappers[1],
        "--label",
        "good",
        "--only",
        "bandwidth",
        "--sizes",
        "64",
        "--threads",
        "1",
        "--rounds",
        "1",
        "--out",
        tmp_path / "run",
    )
    assert status == 1
    assert {r["label"] for r in read_results(tmp_path / "run")} == {"good"}


def test_a_compiler_that_fails_is_reported(shmem_mt, wrappers, tmp_path):
    broken = script(tmp_path, "broken-oshcc", "echo no such header >&2; exit 1\n")
    status, _, stderr = shmem_mt(
        "run", "--oshcc", broken, "--oshrun", wrappers[1], "--only", "bandwidth", "--out", tmp_path / "run"
    )
    assert status == 1
    assert "bandwidth does not compile" in stderr and "no such header" in stderr


def test_a_program_that_hangs_is_ended(tmp_path):
    hang = script(tmp_path, "hang", "sleep 600 & sleep 600\n")
    outcome = process.run_program([hang], str(tmp_path / "log"), 0.5, lambda point: None, True)
    assert not outcome.ok and "took longer than 0.5 s" in outcome.problem
    assert outcome.seconds < 300


def test_exit_status_after_done_counts_only_where_asked(tmp_path):
    crash = script(tmp_path, "crash", """echo '{"event": "done", "points": 0}'; exit 9\n""")
    assert not process.run_program([crash], str(tmp_path / "log"), 10, lambda point: None, True).ok
    assert process.run_program([crash], str(tmp_path / "log"), 10, lambda point: None, False).ok


def test_what_forms_say_of_their_checks_and_choices_is_kept(shmem_mt, imitation, tmp_path):
    """Verdicts and tuned values stand in the job; what is no event that the driver knows goes to the log."""
    pair, _, _ = imitation
    verdict = {"benchmark": "cg", "form": "blocking", "verdict": "pass", "residual": 1e-12, "seconds": {"total": 2}}
    tuned = [{"benchmark": "cg", "form": form, "poll_rows": rows} for form, rows in (("a", 32), ("b", 128))]
    events = [{"event": "tuned", **one} for one in tuned] + [{"event": "verdict", **verdict}, {"event": "weather"}]
    (tmp_path / "oshrun").write_text(
        (tmp_path / "oshrun")
        .read_text()
        .replace("#!/bin/sh\n", "#!/bin/sh\n" + "".join(f"echo '{json.dumps(event)}'\n" for event in events))
    )
    out = tmp_path / "run"
    assert shmem_mt("run", *pair, "--only", "bandwidth", "--rounds", "1", "--out", out)[0] == 0
    jobs = [json.loads(line) for line in (out / "jobs.jsonl").read_text().splitlines()]
    assert jobs and all(job["verdicts"] == [verdict] and job["tuned"] == tuned for job in jobs)
    assert any('"weather"' in path.read_text() for path in (out / "logs").glob("A-bandwidth-*"))
    assert process.Outcome().of_forms() == {}


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["--oshcc", "/nowhere/oshcc", "--oshrun", "true"], "no such program"),
        (["--oshcc", "true", "--oshrun", "/nowhere/oshrun"], "no such program"),
        (["--oshcc", "true"], "they go in pairs"),
        (
            ["--oshcc", "true", "--oshrun", "true", "--label", "a", "--label", "b"],
            "--label was given 2 times",
        ),
        (["--oshcc", "true", "--oshrun", "true", "--oshcc", "true", "--oshrun", "true"], "tell them apart"),
        (["--oshcc", "true", "--oshrun", "'"], "--oshrun"),
        (["--mpicc", "/nowhere/mpicc", "--oshcc", "true", "--oshrun", "true"], "--mpicc /nowhere/mpicc: no such"),
        (["--mpirun", "/nowhere/mpirun", "--oshcc", "true", "--oshrun", "true"], "--mpirun /nowhere/mpirun"),
        (["--only", "latancy"], "no benchmark is called latancy"),
        (["--only", ","], "names no benchmark"),
        (["--sync", "nonsense"], "no synchronization is called nonsense"),
        (["--pes", "3", "--oshcc", "true", "--oshrun", "true"], "must be even"),
        (["--pes", "3", "--only", "overlap", "--oshcc", "true", "--oshrun", "true"], "must be even, or 1"),
        (["--compute-ratio", "0"], "'0' is not a number from 0.01"),
        (["--pes", "0"], "'0' is not a number"),
        (["--threads", "two"], "'two' is not a number"),
        (["--sizes", "8,,16"], "'' is not a number"),
        (["--rounds", "-1"], "--rounds"),
        (["--profile", "slow"], "invalid choice"),
        (["--fabric", "ethernet"], "no fabric is called ethernet; there are on-node, tcp, namespaces, hosts, and"),
        (["--fabric", "tcp", "--oshcc", "true", "--oshrun", "true"], "true: fabric tcp skipped: SHMEM-MT knows only"),
    ],
)
def test_bad_input_is_one_line_and_status_2(shmem_mt, tmp_path, arguments, words):
    status, stdout, stderr = shmem_mt("run", "--out", tmp_path / "run", *arguments)
    assert status == 2
    assert words in stderr
    assert stderr.count("\n") == 1 and stdout == ""


def test_a_folder_that_cannot_be_made(shmem_mt, wrappers, tmp_path):
    (tmp_path / "file").write_text("")
    status, _, stderr = shmem_mt(
        "run", "--oshcc", wrappers[0], "--oshrun", wrappers[1], "--out", tmp_path / "file" / "run"
    )
    assert status == 2 and "cannot make the run folder" in stderr


def test_no_oshcc_anywhere(shmem_mt, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    status, _, stderr = shmem_mt("run", "--out", tmp_path / "run")
    assert status == 2 and "no oshcc" in stderr
    assert not os.path.exists(tmp_path / "run")


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_completes_the_options(shell, capsys):
    with pytest.raises(SystemExit) as ended:
        build_parser().parse_args(["--print-completion", shell])
    assert ended.value.code == 0 and "--link-rate" in capsys.readouterr().out


def test_the_quick_profile_is_planned_to_take_less_than_seven_minutes():
    """With two implementations and MPI on two cores, by the plan's own estimate, without compiling."""
    from shmem_mt.catalogue import catalogue
    from shmem_mt.targets import mpi

    profile = plan.PROFILES["quick"]
    starts = plan.starts(profile, catalogue.select(None), plan.Choices(), cores=2)
    took = {
        with_mpi: sum(
            start.rounds * start.estimate_s
            for start in starts
            if (start.has_references and start.program in mpi.SOURCES) == with_mpi
        )
        for with_mpi in (False, True)
    }
    assert 2 * took[False] + 3 * took[True] < 390
    assert 3 * took[True] < 100
    # The mini-apps have the cores, and do not share them.
    apps = [start for start in starts if "--size" in start.arguments and start.program != "halo"]
    assert len(apps) == 7 and {start.pes * start.threads for start in apps} == {2}
    many = plan.starts(profile, catalogue.select(["hpccg"]), plan.Choices(), cores=16)
    assert [(start.pes, start.threads) for start in many] == [(2, 8)]
    assert profile.budget_s <= 350  # with compiling


def test_a_dry_run_tells_the_points_and_the_time_and_makes_nothing(shmem_mt, imitation, tmp_path):
    pair, _, calls = imitation
    arguments = ["run", *pair, "--only", "bandwidth,startup", "--rounds", "3", "--out", tmp_path / "run", "--dry-run"]
    status, stdout, stderr = shmem_mt(*arguments)
    assert status == 0 and stderr == "" and not (tmp_path / "run").exists()
    assert not any("-o" in line.split() for line in calls.read_text().splitlines())
    lines = stdout.splitlines()
    assert lines[0].split() == ["program", "starts", "points", "seconds", "each", "what"]
    assert any(line.startswith("bandwidth, 2 PEs x 1 threads") and "put,get: 1 KiB, 64 KiB" in line for line in lines)
    rows = [line.split("threads")[1].split()[:3] for line in lines if " PEs x " in line]
    starts, points = sum(int(row[0]) for row in rows), sum(int(row[1]) for row in rows)
    assert starts == 3 * len(rows) and f"{starts} program starts of A, about {points} points, " in stdout


def test_a_dry_run_of_a_folder_tells_what_is_left(shmem_mt, imitation, tmp_path):
    pair, _, _ = imitation
    arguments = ["run", *pair, "--only", "bandwidth", "--threads", "1", "--out", tmp_path / "run"]
    assert shmem_mt(*arguments, "--rounds", "1")[0] == 0
    before = contents(tmp_path / "run")
    stdout = shmem_mt(*arguments, "--rounds", "3", "--dry-run")[1]
    planned = re.search(r"(\d+) program starts of A", stdout)
    assert int(planned[1]) == 2 * (len(stdout.splitlines()) - 2) and "compiling" not in stdout
    assert shmem_mt(*arguments, "--rounds", "1", "--dry-run")[1] == "nothing is left\n"
    assert contents(tmp_path / "run") == before
    library = tmp_path / "run" / "machine.json"
    library.write_text(library.read_text().replace(sources.digest("programs", "apps"), "of yesterday"))
    status, _, stderr = shmem_mt(*arguments, "--rounds", "3", "--dry-run")
    assert status == 2 and "programs: of yesterday" in stderr


def test_a_folder_of_something_else_is_not_written_to(shmem_mt, imitation, tmp_path):
    pair, _, _ = imitation
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("It was a dark and stormy night")
    for more in ([], ["--set-aside"], ["--dry-run"]):
        status, _, stderr = shmem_mt("run", *pair, "--only", "bandwidth", "--out", tmp_path / "thesis", *more)
        assert status == 2 and "is there and is no run folder" in stderr
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter1.tex"]
    (tmp_path / "empty").mkdir()
    assert shmem_mt("run", *pair, "--only", "bandwidth", "--rounds", "1", "--out", tmp_path / "empty")[0] == 0

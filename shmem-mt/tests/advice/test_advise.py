"""`shmem-mt advise` on runs whose answers are known: what it says, as text and as JSON, and to bad input."""

import json
import pathlib
import subprocess

import pytest
from drawn import FLAT, WOBBLE, WORST, known_points, overlap_points, raw_point, write_run
from pydantic import TypeAdapter
from shmem_mt.advice import advise, model, recipes
from shmem_mt.advice.ranking import COMMON_SYNCS
from shmem_mt.advice.setups import Setup
from shmem_mt.cli import main
from shmem_mt.runner.results import load_machine

# What the calls of recipes.py use.
_DECLARED = """
#include <shmem.h>
#include <shmemx.h>
static int provided, pe, thread, threads, t;
static long flag, word, value;
static size_t count, bytes;
static double *dest, *source;
static uint64_t signal;
static shmem_team_t team;
static shmemx_request_t request;
"""


@pytest.fixture
def known(tmp_path):
    """A run folder whose answers are known."""
    return write_run(tmp_path / "run", [*known_points(), *overlap_points()])


def answers(shmem_mt, folder, *more):
    status, stdout, stderr = shmem_mt("advise", folder, "--budget", "0", "--json", *more)
    assert status == 0, stderr
    found = json.loads(stdout)
    TypeAdapter(model.Advice).validate_python(found, strict=True)
    return found


def test_json_has_the_answers(shmem_mt, known):
    found = answers(shmem_mt, known)
    by_place = {(one["pattern"], one["size_bytes"]): one for one in found["patterns"]}
    assert list(by_place) == [("stream", 64), ("stream", 1024), ("stream", 16384), ("stream", 262144), ("random", 8),
                              ("collective", 8)]  # fmt: skip
    small = by_place["stream", 64]
    assert (small["verdict"], small["fabric"], small["library"], small["where"]) == ("best", "on-node", "A", {})
    best = small["best"]
    assert (best["pes"], best["threads"], best["context"], best["sync"]) == (2, 1, "default", "quiet")
    assert (best["setting"], best["level"], best["starts"], best["behind"]) == (None, "multiple", 6, 1)
    assert small["margin"] == pytest.approx(1) and small["interval"] == pytest.approx([1, 1])
    assert small["default_loss"]["share"] == 0 and small["within_5_percent"] == []
    assert small["worst_common_loss"]["share"] == pytest.approx(0.75)
    assert small["changes_at_bytes"] == 262144 and 1024 < small["half_bandwidth_bytes"] < 16384
    assert small["step_at_bytes"] is None
    assert len(by_place["stream", 16384]["within_5_percent"]) == 1
    large, random = by_place["stream", 262144], by_place["random", 8]
    assert large["best"]["threads"] == random["best"]["threads"] == 2
    assert random["default_loss"]["share"] == pytest.approx(0.5) and random["half_bandwidth_bytes"] is None
    assert by_place["collective", 8]["verdict"] == "cannot tell" and "may be up to" in by_place["collective", 8]["why"]
    (policy,) = found["policies"]
    assert (policy["best"], policy["verdict"], policy["environment"]) == ("auto", "best", [])
    assert policy["margin"] == pytest.approx(1 / 3)


def test_lines_to_paste_are_those_of_the_best(shmem_mt, known):
    random = next(one for one in answers(shmem_mt, known)["patterns"] if one["pattern"] == "random")
    assert random["best"]["command"] == "oshrun -n 1 -c 2 ./program"
    assert random["best"]["environment"] == ["OMP_NUM_THREADS=2"]
    assert "SHMEM_CTX_PRIVATE" in " ".join(random["best"]["call"]) and "nbe" in " ".join(random["best"]["call"])


def test_the_four_answers(shmem_mt, known):
    found = {one["question"]: one for one in answers(shmem_mt, known)["questions"]}
    assert list(found) == ["PEs", "threads", "message size", "synchronization"]
    told = "2 PEs, no more than 5 % from the best in 3 of 5 answers; 1 PE for stream, random"
    assert found["PEs"]["text"].startswith(told)
    assert found["PEs"]["text"].endswith("cannot tell in 1")
    assert found["threads"]["text"].startswith("1 thread in each PE, ")
    assert "stream has half of its bandwidth" in found["message size"]["text"]
    assert found["synchronization"]["text"].startswith("quiet, ")
    assert "progress policy, put, 1 MiB: auto" in found["synchronization"]["evidence"]
    assert "random, 8 B: 1 PE 100 %, 2 PEs 50 %" in found["PEs"]["evidence"]


def test_few_starts_cannot_tell(shmem_mt, tmp_path):
    found = answers(shmem_mt, write_run(tmp_path / "run", known_points(starts=3)))
    assert {one["verdict"] for one in found["patterns"]} == {"cannot tell"}
    assert found["patterns"][0]["why"] == "3 starts each, and an interval needs 6"
    verdicts = {one["question"]: one["verdict"] for one in found["questions"]}
    assert verdicts == {"PEs": "cannot tell", "threads": "cannot tell", "message size": "answered",
                        "synchronization": "cannot tell"}  # fmt: skip


def test_the_text_says_what_json_does(shmem_mt, known):
    status, stdout, _ = shmem_mt("advise", known, "--budget", "0")
    assert status == 0
    assert "A over on-node" in stdout and "A over on-node, progress policy, put, 1 MiB: auto\n" in stdout
    best = "stream, 64 B: 2 PEs x 1 thread, default context, quiet: 200 MB/s, 6 starts"
    assert f"{best}, 100 % (100 to 100 %) better than 1 PE x 2 threads, private contexts, request_merged" in stdout
    assert "16 KiB: 2 PEs x 1 thread, default context, quiet: 3.00 GB/s, 6 starts, 2 % (2 to 2 %) better than" in stdout
    assert "another setup is better from 256 KiB on" in stdout and "collective, 8 B: cannot tell: " in stdout
    assert "OMP_NUM_THREADS=2 oshrun -n 1 -c 2 ./program" in stdout
    assert [line.partition(":")[0] for line in stdout.splitlines()[-4:]] == [
        "PEs", "threads", "message size", "synchronization"]  # fmt: skip


def test_what_is_not_clearly_better_is_not_called_so(shmem_mt, tmp_path):
    points = [raw_point(setup, 1e9 * wobble, number) for setup, wobbles in ((FLAT, WOBBLE), (WORST, WOBBLE[::-1]))
              for number, wobble in enumerate(wobbles)]  # fmt: skip
    stdout = shmem_mt("advise", write_run(tmp_path / "run", points), "--budget", "0")[1]
    assert f"6 starts, not clearly better than {WORST} (-" in stdout


def test_patterns_are_chosen(shmem_mt, known):
    assert {one["pattern"] for one in answers(shmem_mt, known, "--pattern", "random,stream")["patterns"]} == {
        "random", "stream"}  # fmt: skip


def test_overlap_that_is_not_whole_gives_no_policy(shmem_mt, tmp_path):
    """A start that was cut off, a point of another program, and a clock that stood still."""
    whole = list(overlap_points())
    cut = [p for p in whole if (p["params"]["part"] == "total") == (p["round"] < 3)]
    other = [{**p, "params": {name: value for name, value in p["params"].items() if name != "policy"}} for p in whole]
    still = [{**p, "samples": [0.0]} for p in whole]
    for number, overlap in enumerate((cut, other, still)):
        folder = write_run(tmp_path / str(number), [*known_points(), *overlap])
        assert answers(shmem_mt, folder)["policies"] == []


def test_a_larger_message_that_is_faster_is_said(shmem_mt, tmp_path):
    points = []
    for size, seconds in ((64, 1e-5), (128, 5e-6)):
        for number, wobble in enumerate(WOBBLE):
            for setup, slower in ((FLAT, 1), (WORST, 3)):
                points.append(raw_point(setup, size / seconds / slower * wobble, number, size=size))
    folder = write_run(tmp_path / "run", points)
    first, second = answers(shmem_mt, folder)["patterns"]
    assert (first["step_at_bytes"], second["step_at_bytes"]) == (128, None)
    assert "a message of 128 B takes less time" in shmem_mt("advise", folder, "--budget", "0")[1]


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["nowhere"], "nowhere: no such run folder"),
        (["{run}", "--pattern", "flood"], "--pattern flood: no pattern is called so; there are latency, stream"),
        (["{run}", "--pattern", ""], "--pattern names no pattern"),
        (["{run}", "--budget", "soon"], "'soon' is no time such as 90s, 10m or 2h"),
        (["{run}", "--budget", "-5m"], "expected one argument"),
        (["{run}", "--budget", "10"], "'10' is no time"),
        (["--budget", "0"], "--budget 0 measures nothing: name the RUN"),
        (["{run}", "--budget", "0", "--pattern", "incast"], "has no valid points of the benchmark patterns of incast"),
        (["{run}", "--out", "other"], "right would be one of them"),
        (["{run}", "--link-rate", "100mbit"], "no fabric here has links"),
        (["{run}", "--fabric", "carrier-pigeon"], "no fabric is called carrier-pigeon"),
        (["{run}", "--library", "/nowhere"], "no such program"),
    ],
)
def test_bad_input(shmem_mt, known, arguments, words, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    status, stdout, stderr = shmem_mt("advise", *(text.format(run=known) for text in arguments))
    assert status == 2 and words in stderr and stderr.count("\n") == 1 and stdout == ""


def test_without_points_of_patterns(shmem_mt, tmp_path):
    folder = write_run(tmp_path / "run", overlap_points())
    status, _, stderr = shmem_mt("advise", folder, "--budget", "0")
    assert status == 2 and "has no valid points of the benchmark patterns; right would be" in stderr


def test_what_is_measured_goes_into_the_run_folder_with_its_libraries(shmem_mt, known, monkeypatch):
    """Without a RUN into a new folder, as `run` makes one."""
    contents = {**load_machine(known), "implementations": [
        {"label": "A", "oshcc": "/bin/true", "oshrun": "/bin/true -x", "standard": "OpenSHMEM"},
        {"label": "MPI", "oshcc": "/bin/true", "oshrun": "/bin/true", "standard": "MPI"},
        {"label": "B", "oshcc": "/bin/true", "oshrun": "srun -n{pes} {program}", "standard": "OpenSHMEM"},
        {"label": "gone", "oshcc": "/nowhere/oshcc", "oshrun": "oshrun", "standard": "OpenSHMEM"}]}  # fmt: skip
    pathlib.Path(known, "machine.json").write_text(json.dumps(contents), encoding="utf-8")
    asked: list = []

    def run(options, starts_over, conductor):
        asked.append((options, starts_over, conductor))
        print("what a run says")
        return 1

    monkeypatch.setattr(advise, "run", run)
    status, stdout, stderr = shmem_mt("advise", known, "--json", "--budget", "2m", "--pattern", "random")
    ((options, _, conductor),) = asked
    assert status == 1 and json.loads(stdout)["runs"] == [known] and "what a run says" in stderr
    assert (options.out, options.only, options.rounds, options.label) == (known, ["patterns"], 1, ["A", "B"])
    assert options.oshrun[0] == "/bin/true -x" and options.oshrun[1].text == "srun -n{pes} {program}"
    assert (conductor.budget_s, conductor.patterns) == (120, ("random",))


def test_a_budget_that_was_too_short(shmem_mt, tmp_path, monkeypatch):
    monkeypatch.setattr(advise, "run", lambda *_: 0)
    status, _, stderr = shmem_mt("advise", "--out", tmp_path / "run", "--budget", "5s")
    assert status == 2 and "nothing was measured within 5 s" in stderr and f"--out {tmp_path / 'run'}" in stderr


def test_it_takes_what_a_run_reads_of_its_options():
    """Each option that `run` looks at is there, as `run` has it by itself."""
    from shmem_mt.cli import build_parser

    one, other = (vars(build_parser().parse_args(words)) for words in (["run"], ["advise"]))
    lacking = set(one) - set(other) - {"only", "rounds"}
    assert lacking == set()
    assert {name for name in one if name in other and one[name] != other[name]} == {"command", "call"}


def test_the_published_schema_is_that_of_the_types():
    """python3 -m shmem_mt.advice.model > shmem_mt/advice/advice.schema.json"""
    beside = pathlib.Path(model.__file__).with_name("advice.schema.json")
    assert json.loads(beside.read_text(encoding="utf-8")) == model.schema()


def test_shells_complete_it(capsys):
    with pytest.raises(SystemExit):
        main(["--print-completion", "bash"])
    assert "--budget" in capsys.readouterr().out


@pytest.mark.parametrize(
    "sync",
    [*COMMON_SYNCS, "pe_quiet", "request_merged", "request_shared", "request_wait", "all_threads", "request_each"],
)
def test_each_synchronization_has_a_call(sync):
    lines = recipes.calls(Setup(1, 2, "private", sync))
    assert lines[0] == "shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);" and len(lines) >= 3
    assert "shmem-mt list" not in " ".join(lines), "recipes.py knows no call of it"
    assert "shmem-mt list" in recipes.calls(Setup(1, 2, "private", "unheard-of"))[-1]


def test_each_choice_has_its_lines():
    assert recipes.command(Setup(4, 1, "default", "quiet")) == "oshrun -n 4 --bind core ./program"
    assert recipes.environment(Setup(2, 2, "default", "quiet", setting="channels:2")) == [
        "OMP_NUM_THREADS=2", "HEDDLE_NET_CHANNELS=2"]  # fmt: skip
    assert recipes.calls(Setup(4, 1, "default", "quiet"))[0] == "shmem_init_thread(SHMEM_THREAD_SINGLE, &provided);"
    assert recipes.calls(Setup(4, 1, "default", "quiet"))[2].startswith("shmem_quiet();")
    assert "ctx[t % 4]" in recipes.calls(Setup(1, 8, "pool:4", "quiet"))[1]
    assert "SHMEM_THREAD_SERIALIZED" in recipes.calls(Setup(1, 8, "serialized", "quiet", level="serialized"))[0]


def test_the_calls_go_through_the_context_of_the_setup():
    assert recipes.calls(Setup(1, 2, "private", "request_each"))[2].startswith("shmemx_ctx_double_put_nbe(ctx, dest")
    assert recipes.calls(Setup(1, 2, "default", "request_each"))[2].startswith("shmemx_double_put_nbe(dest")
    assert "quiet(ctx[t % 4]);" in recipes.calls(Setup(1, 8, "pool:4", "quiet"))[2]
    # One thread completes for all: it must not leave out what others have sent through other contexts.
    assert "i < 4; ++i) shmem_ctx_quiet(ctx[i]);" in recipes.calls(Setup(1, 8, "pool:4", "thread_quiet"))[-1]


def test_the_calls_compile(wrappers, tmp_path):
    """All of them, so that they can be pasted."""
    functions = []
    for context in ("default", "shared", "private", "serialized", "pool:2"):
        for sync in recipes.SYNCS:
            lines = recipes.calls(Setup(1, 4, context, sync, level="multiple"))
            ctx = "shmem_ctx_t ctx[2]" if context == "pool:2" else "shmem_ctx_t ctx"
            functions.append("\n".join([f"void f{len(functions)}({ctx}) {{", *lines, "}"]))
    source = tmp_path / "calls.c"
    source.write_text(_DECLARED + "\n".join(functions), encoding="utf-8")
    done = subprocess.run([wrappers[0], "-fsyntax-only", "-Werror=implicit-function-declaration", str(source)],
                          capture_output=True, text=True, check=False)  # fmt: skip
    if "shmemx.h" in done.stderr:
        pytest.skip("the library has no shmemx.h")
    assert done.returncode == 0, done.stderr

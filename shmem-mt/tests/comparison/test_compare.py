"""`shmem-mt compare`: its exit statuses, what it refuses, what it writes."""

import json
from xml.etree import ElementTree

import numpy
import pytest
from conftest import make_point
from shmem_mt.comparison.changes import Pair
from shmem_mt.comparison.compare import Comparison
from shmem_mt.comparison.runs import Row
from shmem_mt.runner.results import RunFolder, load_machine

MACHINE = {"cpu": "CPU", "cores": 2, "governor": "performance"}
SIZES = (8, 64, 512, 4096)


@pytest.fixture
def folder(tmp_path):
    """Makes a run folder whose points vary by `noise` between starts: folder("name", scale=...)."""

    def make(name, starts=8, scale=1.0, noise=0.003, seed=None, machine=(), valid=True, sizes=SIZES, **fields):
        made = RunFolder.open(str(tmp_path / name))
        random = numpy.random.default_rng(seed if seed is not None else sum(name.encode()))
        for number in range(starts):
            for size in sizes:
                point = make_point(scale=scale * numpy.exp(random.normal(0, noise)), valid=valid, size_bytes=size)
                made.add_point({**point, **fields, "round": number})
        made.write_results()
        compiler = dict(machine).pop("compiler", "gcc 12")
        implementations = [{"label": fields.get("label", "A"), "compiler": compiler}]
        settings = {"profile": dict(machine).pop("profile", "quick")}
        facts = {**MACHINE, **{k: v for k, v in dict(machine).items() if k not in ("compiler", "profile")}}
        made.write_json("machine.json", {"machine": facts, "implementations": implementations, "settings": settings})
        return made.directory

    return make


def test_a_run_and_itself_are_no_different(shmem_mt, folder):
    one = folder("one")
    status, stdout, _ = shmem_mt("compare", one, one)
    assert status == 0 and "4 no different" in stdout and "worse" not in stdout


@pytest.mark.parametrize("scale,status,word", [(1.1, 0, "better"), (0.9, 1, "worse")])
def test_a_change_is_called(shmem_mt, folder, scale, status, word):
    found, stdout, _ = shmem_mt("compare", folder("one"), folder("two", scale=scale))
    assert found == status and f"4 {word}" in stdout


def test_each_benchmark_has_a_mean_of_its_own(shmem_mt, folder, tmp_path):
    sides = []
    for name, scale in (("one", 1.0), ("two", 0.9)):
        sides.append(folder(name))
        again = RunFolder.open(sides[-1])
        random = numpy.random.default_rng(len(sides))
        for number in range(8):
            point = make_point(benchmark="requests", scale=scale * numpy.exp(random.normal(0, 0.003)))
            again.add_point({**point, "round": number})
        again.write_results()
    assert shmem_mt("compare", *sides, "--json", tmp_path / "told.json")[0] == 1
    means = json.loads((tmp_path / "told.json").read_text())["geometric_means"]
    told = {mean["benchmark"]: mean["verdict"] for mean in means}
    assert told == {"message-rate": "no different", "requests": "worse"}


def test_of_times_the_smaller_is_better(shmem_mt, folder):
    time = dict(metric="latency", unit="s")
    assert shmem_mt("compare", folder("one", **time), folder("two", scale=1.1, **time))[0] == 1


@pytest.mark.parametrize("metric,unit", [("communication", "%"), ("poll_interval", "s")])
@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_what_is_better_neither_way_is_not_judged(shmem_mt, folder, metric, unit, scale):
    """It is there or not, and valid or not; whether too much cannot be told is asked of the other points alone."""
    shares = dict(metric=metric, unit=unit)
    one, two = folder("one", **shares), folder("two", scale=scale, **shares)
    status, stdout, _ = shmem_mt("compare", one, two)
    assert status == 0 and stdout.splitlines()[-3] == "4 not judged"
    assert shmem_mt("compare", one, folder("three", valid=False, **shares))[0] == 1
    assert shmem_mt("compare", one, folder("four", sizes=SIZES[:2], **shares))[0] == 3
    for directory in (one, two):
        again = RunFolder.open(directory)
        again.add_point({**make_point(), "round": 0})
        again.write_results()
    status, stdout, _ = shmem_mt("compare", one, two)
    assert status == 5 and "4 not judged, 1 too few starts" in stdout


def test_a_metric_of_unknown_sense_is_an_error(shmem_mt, folder):
    one = folder("one", metric="wobble", unit="x")
    status, _, stderr = shmem_mt("compare", one, one)
    assert status == 2 and "the metric 'wobble' is none" in stderr and stderr.count("\n") == 1


@pytest.mark.parametrize("sides", [("one", "two"), ("two", "one")])
def test_points_that_are_gone_or_new_are_status_3(shmem_mt, folder, sides):
    runs = {"one": folder("one"), "two": folder("two", sizes=SIZES[:2])}
    status, stdout, _ = shmem_mt("compare", *(runs[name] for name in sides))
    assert status == 3 and ("2 missing" if sides[0] == "one" else "2 new") in stdout


@pytest.mark.parametrize(
    "difference,words",
    [
        ({"cpu": "other"}, "machine, cpu: CPU and other"),
        ({"cores": 4}, "machine, cores: 2 and 4"),
        ({"governor": "powersave"}, "machine, governor: performance and powersave"),
        ({"compiler": "clang"}, "compiler, A: gcc 12 and clang"),
        ({"profile": "full"}, "settings, profile: quick and full"),
    ],
)
def test_another_machine_is_status_4_whatever_the_figures_say(shmem_mt, folder, difference, words):
    status, stdout, _ = shmem_mt("compare", folder("one"), folder("two", scale=0.5, machine=difference))
    assert status == 4 and f"\nnot comparable: {words}\n" in stdout


@pytest.mark.parametrize("share", [{"others_share": 0.06}, {"steal_share": 0.03, "others_share": 0.03}])
def test_a_run_beside_other_work_cannot_tell_a_change_from_that_work(shmem_mt, folder, share):
    busy = folder("two", scale=0.5, machine=share)
    status, stdout, _ = shmem_mt("compare", folder("one"), busy)
    assert status == 5 and "4 cannot tell" in stdout and "worse" not in stdout
    assert f"beside {busy} other work took 6 % of the CPUs' time" in stdout.replace("\n", " ")
    assert shmem_mt("compare", "--others", "0.06", folder("one"), busy)[0] == 1
    _, stdout, _ = shmem_mt("compare", folder("one"), folder("four", machine={"others_share": 0.56}))
    assert "other work took 56 % of" in stdout.replace("\n", " ")
    assert shmem_mt("compare", folder("one"), folder("three", scale=0.5, machine={"others_share": 0.04}))[0] == 1


@pytest.mark.parametrize("seconds,status", [([9e-8, 6e-8, 1e-7], 5), ([7e-8], 1), ([], 1)])
def test_runs_on_cores_that_stood_elsewhere_cannot_tell(shmem_mt, folder, seconds, status):
    one = folder("one", machine={"hand_over_s": [5e-8, 5.5e-8, 3e-7]})
    two = folder("two", scale=0.5, machine={"hand_over_s": seconds})
    found, stdout, _ = shmem_mt("compare", one, two)
    assert found == status
    told = f"a line went from core to core in 55.0 ns beside {one} and in 90.0 ns beside {two}"
    assert (told in stdout) == (status == 5)


@pytest.mark.parametrize("name,words", [("programs", "suite, programs"), ("shmem_mt", "suite, shmem mt")])
def test_other_programs_are_status_4(shmem_mt, folder, name, words):
    one, two = folder("one"), folder("two")
    for directory, digest in ((one, "o" * 60), (two, "n" * 61)):
        made = RunFolder.open(directory)
        made.write_json("machine.json", {**load_machine(directory), name: digest})
    status, stdout, _ = shmem_mt("compare", one, two)
    assert status == 4 and f"not comparable: {words}: {'o' * 60} and {'n' * 57}...\n" in stdout


@pytest.mark.parametrize("without", ["one", "two"])
def test_a_folder_that_knows_no_machine_is_status_4(shmem_mt, folder, tmp_path, without):
    one, two = folder("one"), folder("two")
    (tmp_path / without / "machine.json").unlink()
    status, stdout, _ = shmem_mt("compare", one, two)
    assert status == 4 and "does not say on which machine" in stdout


def test_noise_is_status_5_and_says_what_would_be_needed(shmem_mt, folder):
    status, stdout, _ = shmem_mt("compare", folder("one", noise=0.3), folder("two", noise=0.3))
    assert status == 5 and "cannot tell" in stdout and "half of the points could have shown a change of" in stdout


def test_few_starts_are_status_5(shmem_mt, folder):
    status, stdout, _ = shmem_mt("compare", folder("one", starts=5), folder("two", starts=5, scale=0.5))
    assert status == 5 and "4 too few starts" in stdout


def test_what_became_invalid_fails_and_what_was_invalid_does_not(shmem_mt, folder):
    good, bad = folder("good"), folder("bad", valid=False)
    status, stdout, _ = shmem_mt("compare", good, bad)
    assert status == 1 and "4 invalid" in stdout
    status, stdout, _ = shmem_mt("compare", bad, good)
    assert status == 5 and "4 invalid before" in stdout


def test_one_invalid_run_of_several_is_invalid(shmem_mt, folder):
    one, good, bad = folder("one"), folder("good"), folder("bad", valid=False)
    status, stdout, _ = shmem_mt("compare", one, f"{good},{bad}")
    assert status == 1 and "4 invalid" in stdout


def test_what_was_not_always_checked_may_stay_so(shmem_mt, folder):
    """A check is gone only where every run of the first side had it."""
    one, unchecked, two = folder("one"), folder("unchecked", valid=None), folder("two", valid=None)
    status, stdout, _ = shmem_mt("compare", "--baseline", f"{one},{unchecked}", two)
    assert status in (0, 5) and "unchecked" not in stdout


def test_a_check_that_is_gone_is_status_3(shmem_mt, folder):
    status, stdout, _ = shmem_mt("compare", folder("one"), folder("two", valid=None))
    assert status == 3 and "4 unchecked" in stdout
    assert shmem_mt("compare", folder("three", valid=None), folder("four", valid=None))[0] == 0


def test_a_point_with_a_start_of_zero_cannot_be_told(shmem_mt, folder, tmp_path):
    """It has no logarithm; the others are told all the same."""
    one, two = folder("one"), folder("two")
    other = RunFolder.open(two)
    for number in range(8):
        zero = {**make_point(op="zero"), "samples": [0.0 if number == 3 else 1.0], "round": number}
        other.add_point(zero)
        RunFolder.open(one).add_point({**zero, "samples": [1.0]})
    other.write_results()
    RunFolder.open(one)
    status, stdout, _ = shmem_mt("compare", one, two)
    assert status == 0 and "1 cannot tell, 4 no different" in stdout


def test_several_baselines_bring_in_how_far_runs_differ(shmem_mt, folder):
    """Each run is quiet by itself, and all of it lies elsewhere than the next."""
    scales = (1.0, 1.12, 0.93)
    runs = [folder(f"base{index}", scale=scale) for index, scale in enumerate(scales)]
    second = folder("second", scale=0.9)
    assert shmem_mt("compare", runs[0], second)[0] == 1
    status, stdout, _ = shmem_mt("compare", "--baseline", ",".join(runs), second)
    assert status == 5 and "4 cannot tell" in stdout
    assert shmem_mt("compare", ",".join(runs), second)[0] == 5


def test_a_slowdown_far_beyond_how_runs_differ_is_found(shmem_mt, folder):
    runs = [folder(f"base{index}", scale=scale) for index, scale in enumerate((1.0, 1.01, 0.99, 1.005))]
    assert shmem_mt("compare", "--baseline", ",".join(runs), folder("second", scale=0.7))[0] == 1


@pytest.mark.parametrize(
    "says,troubles",
    [
        (["worse"], ["worse"]),
        (["invalid"], ["worse"]),
        (["missing"], ["points"]),
        (["new"], ["points"]),
        (["unchecked"], ["points"]),
        (["better", "no different"], []),
        (["cannot tell"] * 2 + ["better"] * 2, []),
        (["cannot tell", "too few starts", "invalid before", "better"], ["unclear"]),
        (["worse", "cannot tell", "cannot tell", "missing"], ["worse", "points"]),
    ],
)
def test_what_one_point_makes_of_a_comparison(says, troubles):
    rows = [Row(make_point(), word) for word in says]
    assert Comparison(rows, [], [], 0.02, 0.5).troubles() == troubles
    worse = Pair(None, "latency", {}, {}, verdict="worse")
    assert Comparison(rows, [worse], [], 0.02, 0.5).troubles() == ["worse", *(t for t in troubles if t != "worse")]
    assert Comparison(rows, [], ["other"], 0.02, 0.5).troubles() == ["machine", *troubles]


@pytest.mark.parametrize(
    "seen,factor,words",
    [
        (0.05, 9.0, "half of the points could have shown a change of 5 %, with 8 starts a side"),
        (0.1, 9.0, "a change of 10 %, with 8 starts a side"),
        (0.3, 2.4, "a change of 30 %, with 8 starts a side; 10 % needs 20 starts a side"),
        (0.3, None, "more starts would not show 10 %, for runs differ by more: give several (--baseline A1,A2)"),
        (10.0, 2.4, "a change of more than 1000 %, with 8 starts"),
        (10.5, 2.4, "a change of more than 1000 %, with 8 starts"),
    ],
)
def test_what_could_have_been_seen(monkeypatch, seen, factor, words):
    """Of points with 8 and 9 starts; the geometric means that were tested count as tests."""
    asked = []
    monkeypatch.setattr(Pair, "is_seen_with", lambda _, change, tests, margin: asked.append((change, tests)) or factor)
    sides = [{0: dict.fromkeys(range(starts), 1.0)} for starts in (8, 9)]
    rows = [Row(make_point(), pair=Pair(None, "latency", *sides, seen=seen)) for _ in range(3)]
    means = [*(Pair(None, "latency", *sides, seen=seen) for _ in range(2)), Pair(None, "wait", *sides)]
    text = Comparison(rows, means, [], 0.02, 0.5).power()
    assert text.endswith(words) if factor != 2.4 or seen < 1 else words in text
    assert set(asked) == ({(0.1, 5)} if seen > 0.1 else set())


def test_without_a_test_there_is_no_power():
    assert "no point has the 6 starts" in Comparison([Row(make_point(), "missing")], [], [], 0.02, 0.5).power()


def test_fail_on_and_only(shmem_mt, folder):
    one, two = folder("one"), folder("two", scale=0.9, sizes=SIZES[:3])
    assert shmem_mt("compare", one, two)[0] == 1
    assert shmem_mt("compare", one, two, "--fail-on", "points")[0] == 3
    assert shmem_mt("compare", one, two, "--fail-on", "machine,unclear")[0] == 0
    status, _, stderr = shmem_mt("compare", one, two, "--only", "latency")
    assert status == 2 and stderr == "shmem-mt: the runs have no point in common\n"


def test_outputs_say_the_same(shmem_mt, folder, tmp_path):
    one, two = folder("one"), folder("two", scale=0.9, sizes=SIZES[:3])
    files = [str(tmp_path / name) for name in ("a.json", "a.md", "a.xml")]
    shmem_mt("compare", one, two, "--json", files[0], "--markdown", files[1], "--junit", files[2])
    found = json.loads((tmp_path / "a.json").read_text())
    assert found["status"] == 1 and found["troubles"] == ["worse", "points"]
    assert found["counts"] == {"worse": 3, "missing": 1}
    told = next(point for point in found["points"] if point["verdict"] == "worse")
    assert told["better_by"] == pytest.approx(0.9, rel=0.02)
    assert told["starts"] == [8, 8] and told["interval"][0] < told["better_by"] < told["interval"][1] < 1
    assert found["geometric_means"][0]["verdict"] == "worse"
    assert (tmp_path / "a.md").read_text().count("| worse |") == 4
    suite = ElementTree.parse(files[2]).getroot()
    assert suite.get("tests") == "7" and suite.get("failures") == "5"


@pytest.mark.parametrize(
    "starts,machine,status,failed",
    [
        (8, {}, 0, []),
        (5, {}, 5, ["enough points can be told"]),
        (8, {"cores": 4}, 4, ["machine, compiler and settings are the same"]),
    ],
)
def test_junit_fails_where_the_exit_status_does(shmem_mt, folder, tmp_path, starts, machine, status, failed):
    """Also where no single point does."""
    one, two, file = folder("one", starts=starts), folder("two", starts=starts, machine=machine), tmp_path / "a.xml"
    assert shmem_mt("compare", one, two, "--junit", file)[0] == status
    suite = ElementTree.parse(file).getroot()
    assert [case.get("name") for case in suite if case.find("failure") is not None] == failed
    assert suite.get("failures") == str(len(failed)) and suite.get("tests") == str(len(suite))
    assert shmem_mt("compare", one, two, "--junit", file, "--fail-on", "worse")[0] == 0
    assert ElementTree.parse(file).getroot().get("failures") == "0"


def test_points_whose_pes_were_bound_otherwise_are_not_comparable(shmem_mt, folder, tmp_path):
    bound, free = folder("bound", binding="1 CPU a PE"), folder("free", binding="2 CPUs a PE")
    status, stdout, _ = shmem_mt("compare", bound, free)
    assert status == 4 and "not comparable: binding of 4 points: 1 CPU a PE and 2 CPUs a PE" in stdout
    assert shmem_mt("compare", bound, bound)[0] == 0
    assert shmem_mt("compare", bound, folder("silent"))[0] == 0
    assert shmem_mt("compare", bound, free, "--only", "message-rate")[0] == 4
    for name in ("bound", "free"):
        again = RunFolder.open(str(tmp_path / name))
        for number in range(8):
            again.add_point({**make_point(benchmark="requests"), "round": number, "binding": "1 CPU a PE"})
        again.write_results()
    assert shmem_mt("compare", bound, free)[0] == 4
    assert shmem_mt("compare", bound, free, "--only", "requests")[0] == 0


def test_two_libraries_of_different_name(shmem_mt, folder):
    status, stdout, _ = shmem_mt("compare", folder("one"), folder("two", label="B", scale=1.1))
    assert status == 0 and "4 better" in stdout
    status, stdout, _ = shmem_mt("compare", folder("one"), folder("three", label="C", machine={"compiler": "clang"}))
    assert status == 4 and "compiler, A: gcc 12 and clang" in stdout


def test_the_order_of_params_says_nothing(shmem_mt, folder, tmp_path):
    one, two = folder("one"), folder("two")
    path = tmp_path / "two" / "results.jsonl"
    points = [json.loads(line) for line in path.read_text().splitlines()]
    turned = [{**point, "params": dict(reversed(point["params"].items()))} for point in points]
    path.write_text("".join(json.dumps(point) + "\n" for point in turned))
    assert "4 no different" in shmem_mt("compare", one, two)[1]


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["one"], ": compare wants two sides: RUN RUN, or --baseline RUN,... RUN\n"),
        (["one", "two", "three"], "two sides"),
        (["--baseline", "one", "two", "three"], "two sides"),
        (["one,one", "two"], "several different ones, not 'one,one'"),
        (["one", "two", "--fail-on", "nothing"], "names none of"),
        (["one", "nowhere"], "no such run folder"),
    ],
)
def test_bad_input_is_one_line_and_status_2(shmem_mt, folder, monkeypatch, tmp_path, arguments, words):
    for name in ("one", "two", "three"):
        folder(name)
    monkeypatch.chdir(tmp_path)
    status, _, stderr = shmem_mt("compare", *arguments)
    assert status == 2 and words in stderr and stderr.count("\n") == 1


def test_runs_with_nothing_in_common(shmem_mt, run_folder):
    status, _, stderr = shmem_mt("compare", run_folder("first", {"C": 1.0, "A": 1.0}), run_folder("second", {"B": 2.0}))
    assert status == 2 and "no implementation in common (A, C and B)\n" in stderr
